"""Which records a text file names: by key, one in a line, or by id, as a ``.lst`` file does.

Lists that name image files of a folder are made and read by the tools; here a line stands for a
record that exists already.
"""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from ..errors import KeyNotFoundError, RecordIOError
from ..limits import bounded_lines
from .source import SourcePack

__all__ = ["ListEntry", "chosen_records", "is_list", "parse_line", "read_entries"]

#: Image headers hold ids up to 2**64 - 1, but the id is also the key, and an index ends here.
LARGEST_ID = 2**63 - 1
LARGEST_FLOAT32 = 3.4028235677973366e38  # the first double that rounds to infinity


class ListEntry(NamedTuple):
    """One line of a list: the record id, its labels, and the image's path below the root."""

    id: int
    labels: tuple[float, ...]
    path: str


def parse_line(line: str) -> ListEntry:
    r"""Read one line: an integer id, one or more labels and a path, with a TAB between them.

    Spaces round the fields are dropped.

    Raises
    ------
    RecordIOError
        The line is not of that form, or the id or a label does not fit an image header.

    Examples
    --------
    >>> parse_line("3\t2.0\tant/s 0.png")
    ListEntry(id=3, labels=(2.0,), path='ant/s 0.png')
    """
    fields = [part.strip() for part in line.strip().split("\t")]
    if len(fields) < 3:
        raise RecordIOError(
            f"{len(fields)} field(s) with a TAB between them instead of at least 3: "
            "an id, one or more labels, a path"
        )
    try:
        number = int(fields[0])
    except ValueError:
        raise RecordIOError(f"the id {fields[0]!r} is not an integer") from None
    if not 0 <= number <= LARGEST_ID:
        raise RecordIOError(f"the id {number} is outside 0 to 2**63 - 1")
    try:
        labels = tuple(float(label) for label in fields[1:-1])
    except ValueError:
        raise RecordIOError(f"a label of {fields[1:-1]} is not a number") from None
    if any(math.isfinite(label) and abs(label) >= LARGEST_FLOAT32 for label in labels):
        raise RecordIOError(f"a label of {fields[1:-1]} is too large for a 32-bit float")
    return ListEntry(number, labels, fields[-1])


def is_list(path: object) -> bool:
    """Whether something is the path of a ``.lst`` file."""
    return isinstance(path, (str, os.PathLike)) and os.fsdecode(path).endswith(".lst")


def read_entries(path: str | os.PathLike[str]) -> Iterator[tuple[int, ListEntry]]:
    """Lines of a ``.lst`` file with their numbers, from 1.

    Raises
    ------
    RecordIOError
        A line is not of that form.
    OSError
        The file cannot be read.
    """
    for number, line in _lines(path):
        try:
            yield number, parse_line(line)
        except RecordIOError as error:
            raise RecordIOError(error.reason, path=path, line=number) from None


def chosen_records(pack: SourcePack, keys: str | os.PathLike[str] | Iterable[int]) -> np.ndarray:
    """Numbers of the records that keys or a list name, ascending.

    Parameters
    ----------
    pack : SourcePack
    keys : path or iterable of int
        Keys of the pack's index; a text file with one in each line; or a ``.lst`` file, whose lines
        begin with the ids of records.

    Returns
    -------
    numpy.ndarray of int64
        Each record once.  Where several have an id, or a key, all of them are meant.

    Raises
    ------
    KeyNotFoundError
        No record has a key or an id.
    RecordIOError
        A line is no whole number, or not one of a ``.lst`` file.
    """
    path = lines = None
    if isinstance(keys, (str, os.PathLike)):
        path = os.fsdecode(keys)
        lines, wanted = np.array(list(_numbers(path)), np.int64).reshape(-1, 2).T
    else:
        wanted = _as_keys(keys)
    what, names = "key", pack.keys
    if is_list(path):  # records without header have no id
        what, names = "id", np.where(pack.headed, pack.ids.astype(np.int64), -1)
    if len(unknown := np.flatnonzero(~np.isin(wanted, names))):
        row = int(unknown[0])
        raise KeyNotFoundError(
            f"no record of {pack.path} has the {what} {wanted[row]}",
            path=path,
            line=None if lines is None else int(lines[row]),
        )
    return np.flatnonzero(np.isin(names, wanted))


def _as_keys(keys: Iterable[int]) -> np.ndarray:
    found = [operator.index(key) for key in keys]
    if found and max(map(abs, found)) > LARGEST_ID:
        raise KeyNotFoundError("a key has more than 64 bits")
    return np.array(found, np.int64)


def _numbers(path: str) -> Iterator[tuple[int, int]]:
    """Numbers of lines and the key or id in each."""
    if is_list(path):
        for line, entry in read_entries(path):
            yield line, entry.id
        return
    for line, text in _lines(path):
        try:
            key = int(text)
        except ValueError:
            key = LARGEST_ID + 1
        if abs(key) > LARGEST_ID:
            raise RecordIOError(f"{text.strip()!r:.60} is no key", path=path, line=line)
        yield line, key


def _lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, str]]:
    """Lines that are neither blank nor comments, with their numbers."""
    with open(path, encoding="utf-8-sig", errors="surrogateescape") as file:
        for number, line in bounded_lines(file, path):
            if line.strip() and not line.lstrip().startswith("#"):
                yield number, line
