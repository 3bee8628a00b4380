"""Pieces of a conversion that every format module fills in.

A format is read by a function that yields items, and written by one that goes over a pack.  The
rest, record files, reports and the command line, is the same for all of them and stands elsewhere.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from recordio.errors import RecordIOError
from recordio.text.lines import MAX_LINE_BYTES

from ..image_list import Skipped
from ..record_pack import RecordPack

__all__ = [
    "Counts",
    "Export",
    "Import",
    "ImportSource",
    "Item",
    "Items",
    "LeftOut",
    "add_array_limit",
    "add_content_limit",
    "add_metadata_limit",
    "add_text_limit",
    "natural",
    "no_options",
    "unreadable",
]

#: Names and numbers of things that no record holds.
Counts: TypeAlias = Mapping[str, int]

DEFAULT_CONTENT_BYTES = 1 << 28
DEFAULT_METADATA_BYTES = 1 << 22


class Item(NamedTuple):
    """Content of one record."""

    #: One: stored in the image header; several: behind it; none at all: 0.  None: the content is
    #: the whole record, without an image header.
    labels: Sequence[float] | None
    content: bytes
    name: str = ""  # path of its file, relative, with ``/``; kept in PREFIX.lst
    left_out: Counts = MappingProxyType({})  # parts of it that are not stored


class LeftOut(NamedTuple):
    """Something sound in a source that gets no record.

    It is counted, and has no id; `Skipped` is for faults.
    """

    things: Counts


#: Results of a source, in its order: items, faulty ones that were skipped, and things left out.
Items: TypeAlias = Iterator["Item | Skipped | LeftOut"]


@dataclass
class ImportSource:
    """Items that are read while somebody iterates."""

    #: The id of a record is its position among items and skipped ones.
    items: Items
    total: int | None = None
    classes: Sequence[str] = ()  # folder of each label, if labels stand for folders
    #: Messages about the source when all items were read.
    notes: Callable[[], Sequence[str]] = field(default=lambda: ())


def no_options(parser: argparse._ActionsContainer) -> None:
    """Add nothing, for formats without options of their own."""


def natural(text: str) -> int:
    """Read a number that is not negative."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no number")
    return int(text)


def add_content_limit(parser: argparse._ActionsContainer) -> None:
    """Add the option of formats whose files state sizes, and may be packed."""
    parser.add_argument(
        "--max-content-bytes",
        type=natural,
        default=DEFAULT_CONTENT_BYTES,
        metavar="N",
        help="refuse images, arrays or other contents with more bytes (default: 2**28)",
    )


def add_metadata_limit(parser: argparse._ActionsContainer, what: str) -> None:
    """Add the option of formats with small files, or parts, beside the contents."""
    parser.add_argument(
        "--max-metadata-bytes",
        type=natural,
        default=DEFAULT_METADATA_BYTES,
        metavar="N",
        help=f"refuse {what} with more bytes (default: 2**22)",
    )


def add_text_limit(parser: argparse._ActionsContainer) -> None:
    """Add the option of formats of lines."""
    parser.add_argument(
        "--max-line-bytes",
        type=natural,
        default=MAX_LINE_BYTES,
        metavar="N",
        help="stop at a longer line (default: 2**26)",
    )


def add_array_limit(parser: argparse._ActionsContainer) -> None:
    """Add the option of formats that are read as a whole."""
    parser.add_argument(
        "--max-array-bytes",
        type=natural,
        metavar="N",
        help="stop when more memory is needed for what is read (default: 64 times the size of the "
        "file, at least 2**28)",
    )


@dataclass(frozen=True)
class Import:
    """Way of files of a format to records."""

    name: str  # the command is ``recordio from-NAME``
    summary: str
    #: Positional arguments: name, help, and True if several may be given.
    sources: Sequence[tuple[str, str, bool]]
    open: Callable[[argparse.Namespace], ImportSource]
    add_options: Callable[[argparse._ActionsContainer], None] = no_options
    description: str = ""


@dataclass(frozen=True)
class Export:
    """Way of records to files of a format."""

    name: str  # the command is ``recordio export --to NAME``
    summary: str
    #: The files of a target, the main one first; none for a folder.
    outputs: Callable[[str], Sequence[str]]
    #: Writes the files, or the folder, whole or not at all; returns the number of records.
    write: Callable[[RecordPack, Sequence[str], argparse.Namespace], int]
    add_options: Callable[[argparse._ActionsContainer], None] = no_options
    suffix: str = ""  # of a target that is a file


def unreadable(path: str, error: BaseException) -> RecordIOError:
    """Return an error for a file that a library could not read."""
    return RecordIOError(f"cannot be read: {error}", path=path)
