"""Arguments of commands over packs with more than one value: outputs, and mappings of labels."""

from __future__ import annotations

import argparse
import os
from typing import Any

from recordio.errors import RecordIOError
from recordio.file_limits import bounded_lines
from recordio.values import number

from ..outputs import local_path

WORDS = {"keep": "keep", "append": "append", "names": "names", "none": None}


def output(text: str) -> tuple[str, str]:
    """Read ``PREFIX=WHAT``."""
    prefix, equals, what = text.rpartition("=")
    if not equals or not prefix or not what:
        raise argparse.ArgumentTypeError(f"{text!r} is not PREFIX=SHARE or PREFIX=FILE")
    return local_path(prefix), what


def share(text: str) -> float:
    """Read a number above 0 and up to 1."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number above 0 and up to 1")
    return value


def mapping(text: str) -> dict[float | str, float]:
    """Read new labels of old ones, ``OLD=NEW,OLD=NEW``, or the lines ``OLD TAB NEW`` of a file.

    OLD is a label or, unless it is a number, the name of a class.
    """
    if "=" in text and not os.path.exists(text):
        pairs = [(part.partition("="), f"{part!r} is not OLD=NEW") for part in text.split(",")]
    else:
        pairs = [
            (line.strip().partition("\t"), f"{text}, line {number}: expected OLD, a TAB and NEW")
            for number, line in _lines(text)
        ]
    new_labels: dict[float | str, float] = {}
    for (old, _, new), wrong in pairs:
        try:
            value = float(new)
        except ValueError:
            raise argparse.ArgumentTypeError(wrong) from None
        if not old:
            raise argparse.ArgumentTypeError(wrong)
        key = old if (label := number(old)) is None else label
        if key in new_labels:
            raise argparse.ArgumentTypeError(f"{wrong}: {old} is there twice")
        new_labels[key] = value
    return new_labels


def _lines(path: str) -> list[tuple[int, str]]:
    try:
        with open(local_path(path), encoding="utf-8-sig") as file:
            return [pair for pair in bounded_lines(file, path) if pair[1].strip()]
    except (OSError, UnicodeDecodeError, RecordIOError) as error:
        raise argparse.ArgumentTypeError(
            f"{path}: {getattr(error, 'strerror', None) or error}"
        ) from None


def labels(text: str) -> Any:
    """Read the argument of ``--labels``: a word, or new labels of old ones."""
    return WORDS[text] if text in WORDS else mapping(text)


def list_file(text: str) -> str:
    """Read the name of a ``.lst`` file."""
    if not text.endswith(".lst"):
        raise argparse.ArgumentTypeError(f"{text}: the name of a list ends with .lst")
    return local_path(text)
