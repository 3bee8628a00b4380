"""`iterators.compat` has names of other systems, of which each belongs to an object of ours."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import iterators
from iterators import compat

SYSTEMS = ["chainer", "dp", "mxnet", "pylearn2"]


def names_of(system):
    tree = ast.parse(Path(compat.__file__).with_name(f"{system}.py").read_text())
    assert ast.get_docstring(tree)
    assert all(isinstance(node, ast.ImportFrom) for node in tree.body[1:]), "names only"
    return [alias.asname for node in tree.body[1:] for alias in node.names]


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_system_has_names_only_and_each_once(system):
    names = names_of(system)
    assert len(names) == len(set(names)) and None not in names
    module = importlib.import_module(f"iterators.compat.{system}")
    assert set(names) <= set(dir(module))


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_name_of_the_top_level_is_the_same_thing_there(system):
    module = getattr(compat, system)
    for name in set(names_of(system)) & set(iterators.__all__) - {"Augmenter"}:
        assert getattr(module, name) is getattr(iterators, name), name


def test_what_other_packages_call_augmenter():
    assert compat.mxnet.Augmenter is iterators.mx_image.Augmenter


def test_mxnets_other_names():
    assert compat.mxnet.MXDataIter is iterators.MXDataProvider
    assert compat.mxnet.gluon is iterators.datasets.gluon
    for name in ("ImageRecord", "MNIST", "CSV"):
        assert getattr(compat.mxnet, f"{name}Provider") is getattr(iterators, f"{name}Iter")


def test_a_system_is_loaded_when_it_is_asked_for():
    program = (
        "import sys, iterators\n"
        "iterators.compat.dp\n"
        "loaded = {name for name in sys.modules if name.startswith('iterators.')}\n"
        "wrong = loaded & {'iterators.datasets', 'iterators.providers', 'iterators.compat.mxnet'}\n"
        "sys.exit(', '.join(sorted(wrong)) or 0)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
