"""The examples on the page about the command ``recordio`` do what they show."""

import re
import shlex
from pathlib import Path

import cv2
import pytest

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "recordio-command.md"


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.fixture
def folder(tmp_path, monkeypatch, images):
    """What the page starts with."""
    (tmp_path / "table.csv").write_text("1,0.5,2\n0,1,3\n1,-1,4\n")
    for number in range(4):
        name = tmp_path / "photos" / "ab"[number // 2] / f"{number}.png"
        name.parent.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(name), images.gradient(20, 30) // (number + 1))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def numbers_hidden(text):
    """Sizes of files depend on the version of the PNG encoder."""
    return re.sub(r"\d{3,}", "N", re.sub(r" +", " ", text))


@pytest.mark.libjpeg
def test_every_example_runs_and_prints_what_is_shown(folder, command, capfdbinary):
    for block in blocks("console"):
        for example in block.split("$ ")[1:]:
            line, _, shown = example.partition("\n")
            words = shlex.split(line.partition(">")[0])
            assert words[0] == "recordio"
            assert command(*words[1:]) == 0, line
            printed = capfdbinary.readouterr().out
            if shown:
                assert numbers_hidden(printed.decode()) == numbers_hidden(shown)
    for program in blocks("python"):
        space = {}
        exec(program, space)
        assert space["row"].tolist() == [0.5, 2]
    assert (folder / "again.csv").read_text() == (folder / "table.csv").read_text()
    for path in (folder / "photos").rglob("*.png"):
        again = folder / "photos-again" / path.relative_to(folder / "photos")
        assert again.read_bytes() == path.read_bytes()
    assert (folder / "from-tar.rec").read_bytes() == (folder / "set.rec").read_bytes()
    assert (folder / "2.png").exists()
    assert (folder / "whole.idx").read_bytes() == (folder / "set.idx").read_bytes()


def test_every_command_and_format_is_on_the_page():
    from recordio.tools.convert.registry import EXPORTS, IMPORTS

    text = PAGE.read_text()
    assert all(f"`recordio from-{name}`" in text for name in IMPORTS)
    assert all(f"| `{name}`" in text for name in EXPORTS)
