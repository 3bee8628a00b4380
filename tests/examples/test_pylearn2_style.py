"""The example of spaces does what it says."""

import importlib.util
from pathlib import Path

import pytest

PATH = Path(__file__).parents[2] / "examples" / "pylearn2_style.py"


@pytest.fixture(scope="module")
def example():
    """The example as a module."""
    specification = importlib.util.spec_from_file_location("pylearn2_style", PATH)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_each_part(example, tmp_path):
    assert example.rows_as_images() == 100
    assert example.nested_requests() == (("X", "y"), "X")
    assert example.differentiable_conversion()
    assert example.records_as_columns(tmp_path) == (3, 32, 32, 3)


def test_the_whole(example, capsys):
    example.main()
    assert "nested again: (('X', 'y'), 'X')" in capsys.readouterr().out
