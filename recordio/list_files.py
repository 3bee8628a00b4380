"""Lines of ``.lst`` files: an id, labels and the path of an image, with one grammar for all.

Lists are written by the tools; `packs.chosen` finds the records of a pack that one names.
"""

from __future__ import annotations

import codecs
import math
import os
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple, TextIO

import numpy as np

from .bytes.files import open_text
from .errors import LabelError
from .file_limits import bounded_lines
from .values import number

if TYPE_CHECKING:
    from .bytes.remote.settings import RemoteSettings

#: Image headers have 64 bits for an id.
LARGEST_ID = 2**64 - 1
LARGEST_FLOAT32 = 3.4028235677973366e38  # the first double that rounds to infinity
#: Every whole number up to this one, and down to its opposite, is a 32-bit float.
EXACT_IN_FLOAT32 = 1 << 24
LONGEST_NAME = 4096
#: Control characters, line ends of Unicode among them.
UNLISTED = re.compile("[\0-\x1f\x7f\x85\u2028\u2029]")


class ListEntry(NamedTuple):
    """One line of a list: the record id, its labels, and the image's path below the root."""

    id: int
    labels: tuple[float, ...]
    path: str


def is_list(path: object) -> bool:
    """Tell by its name whether something is the path of a ``.lst`` file."""
    return isinstance(path, (str, os.PathLike)) and os.fsdecode(path).endswith(".lst")


def names_image(line: str | bytes) -> bool:
    """Tell whether a line is to be read: it is neither blank nor a comment."""
    if line[:1].isdigit():  # as nearly all do
        return True
    if isinstance(line, bytes):
        line = line.removeprefix(codecs.BOM_UTF8).decode(errors="replace")
    first = line.lstrip()[:1]
    return first != "" and first != "#"


def parse_line(line: str, label_width: int | None = None) -> ListEntry:
    """Read one line: an integer id, labels and a path.

    Its fields have a TAB between them, or white space where there is no TAB; spaces round them are
    dropped.  The last is the path, and all between it and the id are labels.  With `label_width`
    any white space ends so many labels, and what follows is the path, which may be missing.
    """
    if label_width is None:
        words = line.split("\t") if "\t" in line else line.split()
        if len(words) < 3:
            raise LabelError(
                f"{len(words)} field(s) with TABs or blanks between them instead of at least 3: "
                f"an id, one or more labels, a path; found {line.strip()[:80]!r}"
            )
        path = words.pop().strip()
        if not path:
            raise LabelError("the line ends with a TAB where the path of the image should be")
    else:
        words = line.split(None, label_width + 1)
        path = words.pop().rstrip() if len(words) > label_width + 1 else ""
        if len(words) <= label_width:
            raise LabelError(
                f"expected an id and {label_width} labels, found {line.strip()[:80]!r}"
            )
    try:
        key = int(words[0])
    except ValueError:
        raise LabelError(f"the id {words[0].strip()[:80]!r} is not an integer") from None
    if not 0 <= key <= LARGEST_ID:
        raise LabelError(f"the id {key} is outside 0 to 2**64 - 1")
    try:
        labels = tuple(map(float, words[1:]))
        if any("_" in word for word in words[1:]):  # which Python leaves out
            raise ValueError
    except ValueError:
        raise LabelError(
            f"expected an id and {len(words) - 1} labels, but one of {' '.join(words[1:])[:80]!r} "
            "is not a number"
        ) from None
    for word, label in zip(words[1:], labels, strict=True):
        if not -EXACT_IN_FLOAT32 <= label <= EXACT_IN_FLOAT32:
            _check_large(word, label)
    return ListEntry(key, labels, path)


def _check_large(word: str, label: float) -> None:
    """Refuse a label that is no number, or one of which a 32-bit float does not keep all digits."""
    if not math.isfinite(label):
        raise LabelError(f"the label {word.strip()} is no finite number")
    if abs(label) >= LARGEST_FLOAT32:
        raise LabelError(f"the label {label} is too large for a 32-bit float")
    check_labels([number(word) or 0])


def entries_among(lines: Iterable[str | bytes]) -> Iterator[ListEntry]:
    """Read those of some lines that can be read."""
    for line in lines:
        try:
            text = line if isinstance(line, str) else line.decode("utf-8", "surrogateescape")
            yield parse_line(text)
        except LabelError:
            continue


def open_list(path: str | os.PathLike[str], settings: RemoteSettings | None = None) -> TextIO:
    """Open a list at a path or a URL; names that are not UTF-8 survive."""
    return open_text(path, "surrogateescape", "utf-8-sig", settings)


def entry_lines(
    file: TextIO, path: str | os.PathLike[str], before: int = 0
) -> Iterator[tuple[int, str]]:
    """Yield number, from 1, and text of the lines to be read; `before` others stand before them."""
    for position, line in bounded_lines(file, path):
        if names_image(line):
            yield position + before, line


def read_entries(
    path: str | os.PathLike[str],
    label_width: int | None = None,
    settings: RemoteSettings | None = None,
) -> Iterator[tuple[int, ListEntry]]:
    """Yield the entries of a list, with the numbers of their lines, from 1."""
    with open_list(path, settings) as file:
        for position, line in entry_lines(file, path):
            try:
                entry = parse_line(line, label_width)
            except LabelError as error:
                raise LabelError(error.reason, path=path, line=position) from None
            yield position, entry


def safe_name(name: str) -> str:
    """Return a name that a list can hold and that leads nowhere else; empty if nothing is left.

    Parts that lead upwards or to the root are left out.  Names that a line cannot hold, and those
    longer than a path can be, give an empty one.
    """
    if UNLISTED.search(name) or name != name.strip() or len(name) > LONGEST_NAME:
        return ""
    return "/".join(part for part in name.split("/") if part not in ("", ".", ".."))


def check_labels(labels: Iterable[float]) -> None:
    """Raise LabelError for a label that records cannot hold, which have floats of 32 bits."""
    for label in labels:
        if isinstance(label, float) and LARGEST_FLOAT32 <= abs(label) < math.inf:
            raise LabelError(f"the label {label} is too large for a 32-bit float")
        if not holds_whole(label):
            raise LabelError(f"the label {label} has no exact 32-bit float")


def holds_whole(label: float) -> bool:
    """Tell whether a 32-bit float holds a label, if that is a whole number of whatever type.

    >>> [holds_whole(label) for label in (16777217, 16777217.0, 16777218, 0.1, float("inf"))]
    [False, False, True, True, True]
    """
    is_whole = isinstance(label, int) or label.is_integer()
    return not is_whole or abs(label) <= EXACT_IN_FLOAT32 or _is_exact(int(label))


def _is_exact(label: int) -> bool:
    with np.errstate(over="ignore"):
        stored = float(np.float32(float(label))) if abs(label) < 1 << 128 else float("inf")
    return stored != float("inf") and int(stored) == label
