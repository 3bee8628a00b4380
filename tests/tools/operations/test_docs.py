"""The examples on the page about packs do what they show."""

import re
import shlex
from pathlib import Path

import cv2
import pytest

from recordio.tools.operations.table import PACK_COMMANDS

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "packs.md"


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.fixture
def folder(tmp_path, monkeypatch, images):
    """What the page starts with."""
    for name, classes, each in (("photos", ("cat", "dog"), 6), ("more", ("bird", "cat"), 4)):
        for number in range(2 * each):
            path = tmp_path / name / classes[number // each] / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            cv2.imwrite(str(path), images.gradient(20, 30) // (number + 1))
    (tmp_path / "first.txt").write_text("0\n5\n")
    (tmp_path / "rest.lst").write_text("3\t0\tcat/3.png\n7\t1\tdog/7.png\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def hidden(text):
    """Without sizes and times, which are different elsewhere."""
    text = re.sub(r"in \d+\.\d s \(\d+ records/s\)", "T", re.sub(r" +", " ", text))
    text = re.sub(r"\b\d{2,}\b(?= png)", "N", text)
    return re.sub(r"\b(?:\d+ to )?\d+ bytes(?:, median [\d.]+)?", "N bytes", text)


def test_every_example_runs_and_prints_what_is_shown(folder, command, capfd):
    for block in blocks("console"):
        for example in block.split("$ ")[1:]:
            line, _, shown = example.partition("\n")
            words = shlex.split(line)
            assert words[0] == "recordio"
            assert command(*words[1:]) == ("error:" in shown or "under another" in shown), line
            printed = "".join(capfd.readouterr())
            assert hidden(printed) == hidden(shown), line
    for program in blocks("python"):
        exec(program, {})


def test_every_command_is_on_the_page():
    text = PAGE.read_text()
    for name in PACK_COMMANDS:
        assert f"`recordio {name}`" in text and f"\n## {name}\n" in text
