"""WebDataset's rules: which file of a sample is its content, which one holds the label, and how."""

from __future__ import annotations

import collections
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..errors import LabelError, RecordIOError
from ..formats.table import FORMATS, is_read_everywhere
from ..lists import safe_name

__all__ = ["CONTENTS", "FieldChoice", "PartChoice", "WebSample", "add_part", "ending_fields"]

#: Last parts of the endings that count as the content of a sample, where none is chosen.
CONTENTS = frozenset(
    ["npy"] + [suffix[1:] for row in FORMATS if is_read_everywhere(row) for suffix in row.suffixes]
)
LABEL_FIELDS = ("label", "labels", "cls")
#: Files of a sample, besides its content and its labels, that are told apart.
MOST_FILES = 1000


class WebSample(NamedTuple):
    """A sample: its name in lists, its content, its labels, and files and fields left out."""

    name: str
    content: Any
    labels: list[float]
    left_out: collections.Counter[str]


def add_part(
    files: dict[str, Any], ending: str, content: Any, passed_over: collections.Counter[str]
) -> None:
    """Add a file to those of a sample; its content is None if nobody wants it."""
    if ending in files:
        content = RecordIOError(f"two files end with .{ending}")
    if content is not None or len(files) < MOST_FILES:
        files[ending] = content
    else:
        passed_over[f".{ending}"] += 1


@dataclass(frozen=True)
class PartChoice:
    """Say which files of a sample are used; by default the first image or array, and its class.

    One of the ending ``.jpg`` goes before one of two endings, such as ``.depth.png``.

    >>> PartChoice().chosen(["depth.png", "jpg", "cls"]), PartChoice().chosen(["left.png"])
    ('jpg', 'left.png')
    """

    #: The ending of the content.
    content: str = ""
    #: The ending of the file with the label, and a field of it: "json:class".
    label: str = ""
    has_labels: bool = True

    def is_content(self, ending: str) -> bool:
        """Tell whether a file may be the content."""
        if self.content:
            return ending == self.content.lower().removeprefix(".")
        return ending.rpartition(".")[2] in CONTENTS

    def chosen(self, endings: Iterable[str]) -> str:
        """Return the ending of the content among those of a sample; "" if none may be it."""
        found = [ending for ending in endings if self.is_content(ending)]
        return next((ending for ending in found if "." not in ending), found[0] if found else "")

    def purpose(self, ending: str, before: Sequence[str]) -> str:
        """Return "content" or "label" for a file that is wanted behind others; "" for the rest.

        A file that may be the content is wanted until there is one that goes before it.
        """
        if self.is_content(ending) and self.chosen([*before, ending]) == ending:
            return "content"
        names: tuple[str, ...] = ("cls", "json")
        if self.label:
            names = (self.label.partition(":")[0].lower().removeprefix("."),)
        return "label" if self.has_labels and ending in names else ""

    def sample(self, key: str, files: dict[str, Any]) -> WebSample:
        """Make a sample of the files with one key; those that are wanted have their content.

        An error stands for the content of a file that cannot be used.
        """
        chosen = self.chosen(files)
        if not chosen:
            wanted = self.content.lower().removeprefix(".")
            what = f"no .{wanted} file" if wanted else "no image or .npy file"
            raise RecordIOError(
                f"the sample has {what}, only {', '.join(f'.{ending}' for ending in files)}; files "
                "of a sample must follow one another"
            )
        content = _taken(files, chosen)
        left_out = collections.Counter(f".{ending}" for ending in files if ending != chosen)
        labels: list[float] = []
        if self.has_labels:
            labels, ending, fields = self._labels(files)
            del left_out[f".{ending}"]
            left_out.update(f"{name} in .{ending}" for name in fields)
        return WebSample(safe_name(f"{key}.{chosen}"), content, labels, left_out)

    def _labels(self, files: dict[str, Any]) -> tuple[list[float], str, list[str]]:
        """Return the labels, the ending of the file that holds them, and other fields of it."""
        if self.label:
            ending, _, field = self.label.partition(":")
            ending = ending.lower().removeprefix(".")
            fields: Sequence[str] = (field,) if field else LABEL_FIELDS
        else:
            ending, fields = "cls" if "cls" in files else "json", LABEL_FIELDS
        if ending not in files:
            raise LabelError(
                f"the sample has no label file .{ending}, only"
                f" {', '.join(f'.{known}' for known in files)}; --no-labels makes every label 0"
            )
        text, others = _taken(files, ending), []  # type: bytes, list[str]
        try:
            if ending.rpartition(".")[2] != "json":
                return [_number(word) for word in text.decode().split()], ending, others
            values = json.loads(text)
            if isinstance(values, dict):
                found = [name for name in fields if name in values]
                if not found:
                    raise LabelError(f"its .{ending} file has no field {' or '.join(fields)}")
                others = [name for name in values if name != found[0]]
                values = values[found[0]]
            values = values if isinstance(values, list) else [values]
            if not all(type(value) in (int, float) for value in values):
                raise RecordIOError(f"the labels {values!s:.60} in .{ending} are no numbers")
            return values, ending, others
        except (ValueError, RecursionError) as error:
            if isinstance(error, RecordIOError):
                raise
            raise RecordIOError(f"its .{ending} file holds no labels: {error}") from None


@dataclass(frozen=True)
class FieldChoice(PartChoice):
    """Use one field of each sample: its file ``KEY.NAME`` or ``KEY.NAME.ENDING``.

    >>> [FieldChoice("mask").is_content(ending) for ending in ("mask.png", "mask", "png")]
    [True, True, False]
    """

    has_labels: bool = False

    def is_content(self, ending: str) -> bool:
        """Tell whether a file may be the field."""
        return ending.partition(".")[0] == self.content.lower()


def ending_fields(left_out: Iterable[str]) -> list[str]:
    """List the names of fields among kinds of files that were left out.

    >>> ending_fields([".mask.png", ".txt", "width in .json", "others"])
    ['mask', 'txt']
    """
    names = {kind.split(".")[1] for kind in left_out if kind.startswith(".")}
    return sorted(name for name in names if name.isascii() and name.isidentifier())


def _taken(files: dict[str, Any], ending: str) -> Any:
    """Return the content of a file, or raise the reason why there is none."""
    content = files[ending]
    if isinstance(content, RecordIOError):
        raise content
    return content


def _number(word: str) -> float:
    """Return a number in text, whole if it can be."""
    try:
        return int(word)
    except ValueError:
        return float(word)
