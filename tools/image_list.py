"""Image lists: their entries, order and parts, and the ``.lst`` files that hold them.

The shuffle, the names and sizes of the parts and the lines are those of MXNet 1.9.1's
``im2rec.py``, so that the same images give the same list bytes.  Image files are never opened here.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TextIO

from recordio.bytes.files import open_output, remove_output
from recordio.errors import RecordIOError
from recordio.list_files import ListEntry, entry_lines, open_list, parse_line
from recordio.notes import Notes

from .im2rec_options import SHUFFLE_SEED, ListOptions

#: Multiples of it, taken modulo 1, are spread evenly however many there are.
GOLDEN_RATIO = (5**0.5 - 1) / 2

LARGEST_KEY = 2**63 - 1


class Skipped(NamedTuple):
    """File or list line that was left out, and the reason."""

    path: str
    reason: str


@dataclass
class ImageList:
    """Images of a scan or a list file, with everything that was left out."""

    entries: list[ListEntry] = field(default_factory=list)
    #: Folder of each label, relative to the root, with ``/``; empty if a file was read.
    classes: list[str] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    #: Files that a scan passed over, by suffix in lower case.
    left_out: Counter[str] = field(default_factory=Counter)
    #: What else of a scan somebody may miss, or take for something else.
    notes: Notes = field(default_factory=Notes)


def shuffle_entries(entries: Sequence[ListEntry], seed: int = SHUFFLE_SEED) -> list[ListEntry]:
    """Return the entries in the order in which MXNet's tool shuffles a list of that length."""
    shuffled = list(entries)
    random.Random(seed).shuffle(shuffled)
    return shuffled


def split_entries(
    prefix: str,
    entries: Sequence[ListEntry],
    chunks: int = 1,
    train_ratio: float = 1.0,
    test_ratio: float = 0.0,
    stratify: bool = False,
) -> list[tuple[str, Sequence[ListEntry]]]:
    """Cut a list into chunks and each chunk into test, train and validation parts.

    Every part has the size that a full chunk gives it, also in a shorter last chunk, as in MXNet's
    tool.  With ``train_ratio=1`` there is one list per chunk and `test_ratio` has no effect.

    With `stratify` every chunk and part takes its share of each class, that is, of the entries with
    the same labels: the share of the class rounded up or down, or one image more or less where that
    keeps the sizes of the parts.  Inside a part the entries keep their order.  A part may be empty.
    """
    ListOptions(chunks=chunks, train_ratio=train_ratio, test_ratio=test_ratio)
    positions = _by_share(entries) if stratify else range(len(entries))
    chunk_size = -(-len(entries) // chunks)
    train_size, test_size = int(chunk_size * train_ratio), int(chunk_size * test_ratio)
    lists: list[tuple[str, Sequence[int]]] = []
    for number in range(chunks):
        name = f"{prefix}_{number}" if chunks > 1 else prefix
        chunk = positions[number * chunk_size : (number + 1) * chunk_size]
        if train_ratio == 1.0:
            lists.append((f"{name}.lst", chunk))
            continue
        if test_ratio:
            lists.append((f"{name}_test.lst", chunk[:test_size]))
        lists.append((f"{name}_train.lst", chunk[test_size : test_size + train_size]))
        if train_ratio + test_ratio < 1.0:
            lists.append((f"{name}_val.lst", chunk[test_size + train_size :]))
    return [(name, [entries[position] for position in sorted(part)]) for name, part in lists]


def _by_share(entries: Sequence[ListEntry]) -> list[int]:
    """Order positions so that every stretch of them holds the same share of each class.

    The i-th of n entries of a class stands at (i + start) / n of the way.  The start differs from
    class to class, so that small classes do not all have their first entry at the same position.
    """
    classes: dict[tuple[float, ...], list[int]] = {}
    for position, entry in enumerate(entries):
        classes.setdefault(entry.labels, []).append(position)
    shares = []
    for number, members in enumerate(classes.values()):
        start = (number + 0.5) * GOLDEN_RATIO % 1
        shares += [((i + start) / len(members), position) for i, position in enumerate(members)]
    return [position for _, position in sorted(shares)]


def format_line(entry: ListEntry) -> str:
    """Return the line of an entry in a ``.lst`` file, with its line break."""
    labels = "".join(f"{label:f}\t" for label in entry.labels)
    return f"{entry.id:d}\t{labels}{entry.path}\n"


def read_list(path: str | os.PathLike[str]) -> ImageList:
    """Read a ``.lst`` file; lines that cannot be used are in ``skipped`` with their number.

    The grammar is that of `recordio.list_files`, but an id is also a key, and so smaller.
    """
    with open_list(path) as lines:
        return listed(lines, os.fspath(path))


def listed(lines: TextIO, path: str, before: int = 0) -> ImageList:
    """Return the images that lines of a list name; `before` others stand before them."""
    images = ImageList()
    for number, line in entry_lines(lines, path, before):
        try:
            entry = parse_line(line)
            if entry.id > LARGEST_KEY:
                raise RecordIOError(f"the id {entry.id}, which is also the key, is above 2**63 - 1")
            images.entries.append(entry)
        except RecordIOError as error:
            images.skipped.append(Skipped(f"{path}, line {number}", error.reason))
    return images


def write_list(path: str | os.PathLike[str], entries: Iterable[ListEntry]) -> None:
    """Write a ``.lst`` file; it appears whole or not at all."""
    with open_output(path) as output:
        for entry in entries:
            output.write(_encode(format_line(entry)))


def write_classes(path: str | os.PathLike[str], classes: Iterable[str]) -> None:
    """Write the folder of every label: ``label TAB folder`` lines; whole or not at all."""
    with open_output(path) as output:
        for label, folder in enumerate(classes):
            output.write(_encode(f"{label}\t{folder}\n"))


def skipped_path(prefix: str) -> str:
    """Return the name of the report of skipped images that belongs to ``PREFIX.rec``."""
    return f"{prefix}.skipped.txt"


def write_skipped(prefix: str, skipped: Sequence[Skipped]) -> None:
    """Write ``PREFIX.skipped.txt``, or remove it when nothing was skipped.

    Its lines are ``path TAB reason``.
    """
    path = skipped_path(prefix)
    if not skipped:
        remove_output(path)
        return
    with open_output(path) as output:
        for item in skipped:
            line = "\t".join(part.replace("\n", " ").replace("\t", " ") for part in item)
            output.write(_encode(f"{line}\n"))


def _encode(text: str) -> bytes:
    # File names on POSIX are bytes; what is not UTF-8 comes from the scan as surrogates.
    return text.encode("utf-8", "surrogateescape")
