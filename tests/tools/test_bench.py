"""`recordio bench`: an epoch of a pack, measured."""

import json

import pytest

from iterators.testing import encode_jpeg, picture, write_pack


@pytest.fixture
def pack(tmp_path):
    """A few photographs."""
    return write_pack(tmp_path / "p.rec", [encode_jpeg(picture(60, 70, seed)) for seed in range(7)])


KEYWORDS = ("--data-shape", "3,32,32", "--batch-size", "4")


def test_an_epoch_is_reported(pack, command, capsys):
    assert command("bench", pack, *KEYWORDS, "--rand-crop", "--preprocess-threads", "auto") == 0
    out = capsys.readouterr().out
    assert out.startswith("7 images in") and "decode" in out and "advice: " in out


def test_other_forms(pack, command, capsys):
    assert command("bench", pack, *KEYWORDS, "--json") == 0
    assert json.loads(capsys.readouterr().out)["images"] == 7
    assert command("bench", pack, *KEYWORDS, "--prometheus") == 0
    assert "recordio_epoch_images 7" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--data-shape", "3,32,32"), "--batch-size"),
        ((*KEYWORDS, "--batch-size", "many"), "--batch-size"),
        ((*KEYWORDS, "--cache-size", "5"), "cache"),
        ((*KEYWORDS, "--seconds", "0"), "--seconds"),
        ((*KEYWORDS, "--no-such-keyword", "5"), "no-such-keyword"),
    ],
)
def test_wrong_keywords_are_named(pack, command, capsys, arguments, message):
    try:
        code = command("bench", pack, *arguments)
    except SystemExit as end:
        code = end.code
    assert code == 2 and message in capsys.readouterr().err


def test_a_pack_that_is_missing(tmp_path, command, capsys):
    assert command("bench", tmp_path / "none.rec", *KEYWORDS) == 1
    assert "none.rec" in capsys.readouterr().err
