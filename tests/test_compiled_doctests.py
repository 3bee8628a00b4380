"""Examples in the docstrings of compiled modules, which pytest does not collect by itself."""

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODULES = [
    ".".join(source.relative_to(ROOT).with_suffix("").parts)
    for package in ("recordio", "iterators")
    for source in sorted((ROOT / package).rglob("*.pyx"))
]
JPEG = "recordio.formats.jpeg.jpeg"


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.libjpeg if name == JPEG else ()) for name in MODULES],
)
def test_examples_in_compiled_modules_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # examples may write files
    try:
        doctest.testmod(importlib.import_module(name), raise_on_error=True)
    except doctest.DocTestFailure as failure:
        example = failure.example
        pytest.fail(f"{example.source}gives\n{failure.got}and not\n{example.want}")
