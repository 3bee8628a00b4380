"""`docs/prose.py`: which sentences of a page it finds."""

import importlib.util
from pathlib import Path

import pytest

pytest.importorskip("proselint")
PROGRAM = Path(__file__).parents[2] / "docs" / "prose.py"


@pytest.fixture
def prose():
    specification = importlib.util.spec_from_file_location("prose", PROGRAM)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "sentence",
    [
        "What needs an extra says so.",
        "It works. What is lost is counted.",
        "Of the images two are grey.",
        "It works. Of changes the best is named.",
        "Whatever changes pixels is refused.",
        "Say that there is a folder.",
        "It belongs into a list.",
        "The file wants a header.",
        "## What is read",
        "The mini-batch is full.",
        "An epoch takes 2 s by the clock.",
        "Threads wait for Python's lock.",
    ],
)
def test_faults_are_found_with_their_line(prose, tmp_path, capsys, sentence):
    page = tmp_path / "page.md"
    page.write_text(f"# Title\n\nA sound sentence,\non two lines.\n\n{sentence}\n")
    assert prose.main([page]) == 1
    assert f"{page}:6: " in capsys.readouterr().out


@pytest.mark.parametrize(
    "text",
    [
        "What does it cost? Nothing.",
        "It says what was\nread, and what was not.",
        "`What is read.`",
        "```python\nprint('Say that there is one.')\n```",
        "Find [the image](of-the-image.md).",
    ],
)
def test_questions_clauses_inside_and_code_are_no_faults(prose, tmp_path, capsys, text):
    page = tmp_path / "page.md"
    page.write_text(text)
    assert prose.main([page]) == 0, capsys.readouterr().out
