"""recordio.extras: what is missing is named with the command that installs it."""

import importlib
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from recordio.extras import EXTRAS, PACKAGES, command, need


def requirements():
    """What each extra brings: names of distributions, as pip spells them."""
    tomllib = pytest.importorskip("tomllib")
    text = Path(__file__).parents[2].joinpath("pyproject.toml").read_text()
    extras = tomllib.loads(text)["project"]["optional-dependencies"]
    return {
        extra: [re.match(r"[\w.-]+(\[[\w,.-]+\])?", line).group() for line in lines]
        for extra, lines in extras.items()
    }


@pytest.mark.parametrize("package", [name for name in EXTRAS if name != "pyarrow"])
def test_the_extra_brings_the_package(package):
    brought = [name.partition("[")[0] for name in requirements()[EXTRAS[package]]]
    assert PACKAGES.get(package, (package, package))[1] in brought


def test_all_brings_every_extra_for_users():
    (everything,) = requirements()["all"]
    extras = set(everything.partition("[")[2].rstrip("]").split(","))
    assert extras == requirements().keys() - {"all"}


def test_an_error_inside_a_package_that_is_installed_stays_what_it_is(tmp_path, monkeypatch):
    (tmp_path / "broken_package.py").write_text("import a_library_that_is_not_there")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ModuleNotFoundError) as raised:
        need("broken_package", "a test")
    assert raised.value.name == "a_library_that_is_not_there"


def test_the_error_names_the_module_and_keeps_its_cause(monkeypatch):
    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(ModuleNotFoundError, match="OpenCV is needed for a test: pip") as raised:
        need("cv2", "a test")
    assert raised.value.name == "cv2"
    assert isinstance(raised.value.__cause__, ModuleNotFoundError)


def sparse_batch():
    from iterators import VectorSpace

    VectorSpace(5, sparse=True).get_origin_batch(2)


def sparse_from_dense():
    from iterators.core.backend import backend_of

    backend_of(np.zeros(2)).sparse(np.zeros((2, 2)))


def element_type():
    from iterators.core.dtypes import torch_dtype

    torch_dtype("float32")


def torch_batch():
    from iterators import VectorSpace

    VectorSpace(5).make_torch_batch()


@pytest.mark.parametrize(
    ("module", "use"),
    [
        ("torch", element_type),
        ("torch", torch_batch),
        ("scipy.sparse", sparse_batch),
        ("scipy.sparse", sparse_from_dense),
    ],
)
def test_each_use_names_what_it_needs(module, use, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=re.escape(command(module))):
        use()


@pytest.mark.parametrize(
    ("package", "module"),
    [("iterators.torch", "torch"), ("iterators.ray", "ray"), ("recordio.ray", "ray")],
)
def test_packages_of_extras_name_them(package, module, monkeypatch):
    for name in [name for name in sys.modules if f"{name}.".startswith(f"{package}.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=f"for {package}: " + re.escape(command(module))):
        importlib.import_module(package)


@pytest.mark.parametrize(
    ("module", "spelled"),
    [
        ("torch", "pip install 'recordio-iterators[torch]'"),
        ("cv2", "pip install opencv-python-headless"),
        ("no_such_package", "pip install no_such_package"),
    ],
)
def test_the_command_that_installs(module, spelled):
    assert command(module) == spelled
