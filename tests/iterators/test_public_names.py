"""`import iterators` loads nothing, and everything public is there all the same."""

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

import iterators


def run(program):
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_the_import_loads_no_other_module():
    run(
        "import sys, iterators\n"
        "loaded = {name for name in sys.modules if name.startswith(('iterators.', 'numpy'))}\n"
        "sys.exit(', '.join(sorted(loaded)) or 0)"
    )


def test_a_star_import_and_attribute_access_find_everything():
    run(
        "import iterators\n"
        "from iterators import *\n"
        "assert all(globals()[name] is getattr(iterators, name) for name in iterators.__all__)\n"
        "assert iterators.providers.csv.CSVIter is CSVIter"
    )


def test_the_stub_names_every_public_object_and_where_it_lives():
    tree = ast.parse(Path(iterators.__file__).with_suffix(".pyi").read_text())
    lines = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    assert all(alias.asname == alias.name for node in lines for alias in node.names)
    places = {alias.name: node.module for node in lines for alias in node.names}
    assert sorted(places) == sorted(iterators.__all__)
    for name, module in places.items():
        place = importlib.import_module(f"iterators.{module or name}")
        assert getattr(iterators, name) is (getattr(place, name) if module else place)


def test_all_public_names_are_listed_by_dir():
    assert set(iterators.__all__) <= set(dir(iterators))


def test_other_names_are_refused():
    with pytest.raises(AttributeError, match="nothing"):
        iterators.nothing  # noqa: B018
    with pytest.raises(ImportError, match="nothing"):
        from iterators import nothing  # noqa: F401


def test_importing_recordio_loads_none_of_its_modules():
    run(
        "import sys, recordio\n"
        "loaded = {name for name in sys.modules if name.startswith(('recordio.', 'numpy'))}\n"
        "sys.exit(', '.join(sorted(loaded - {'recordio.frames'})) or 0)"
    )


def test_public_modules_are_there_when_they_are_named():
    run("import iterators\nassert iterators.fields.Mask() and iterators.testing.write_pack")
    for name in iterators._MODULES:
        assert importlib.util.find_spec(f"iterators.{name}")
        if name not in ("torch", "ray"):  # which need what may not be installed
            assert getattr(iterators, name) is importlib.import_module(f"iterators.{name}")
