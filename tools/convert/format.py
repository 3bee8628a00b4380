"""What a conversion is made of: the pieces that every format module fills in.

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
    "Item",
    "Items",
    "LeftOut",
    "Source",
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
    """What becomes one record.

    Attributes
    ----------
    labels : sequence of float, or None
        One: stored in the image header; several: behind it; none at all: 0.  None: the content is
        the whole record, without an image header.
    content : bytes
        What follows the header.
    name : str
        Path of the file it comes from, relative, with ``/``; kept in PREFIX.lst.  Empty: none.
    left_out : mapping of str to int
        What belongs to it in the source and is not stored, with numbers.
    """

    labels: Sequence[float] | None
    content: bytes
    name: str = ""
    left_out: Counts = MappingProxyType({})


class LeftOut(NamedTuple):
    """Something in a source that gets no record although nothing is wrong with it.

    It is counted, and has no id; `Skipped` is for what is wrong.

    Attributes
    ----------
    things : mapping of str to int
        What is not stored, with numbers.
    """

    things: Counts


#: What a source yields, in its order: items, what had to be left out, and what is never stored.
Items: TypeAlias = Iterator["Item | Skipped | LeftOut"]


@dataclass
class Source:
    """Items that are read while somebody iterates.

    Attributes
    ----------
    items : iterator of Item, Skipped or LeftOut
        In the order of the source; the position among items and skipped ones is the id of the
        record.
    total : int or None
        How many, where that is known.
    classes : sequence of str
        Folder of each label, if labels stand for folders.
    notes : callable
        What else there is to say about the source when all items were read.
    """

    items: Items
    total: int | None = None
    classes: Sequence[str] = ()
    notes: Callable[[], Sequence[str]] = field(default=lambda: ())


def no_options(parser: argparse._ActionsContainer) -> None:
    """For formats without options of their own."""


def natural(text: str) -> int:
    """A number that is not negative."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no number")
    return int(text)


def add_content_limit(parser: argparse._ActionsContainer) -> None:
    """The option of formats whose sizes are what a file says, and may be packed."""
    parser.add_argument(
        "--max-content-bytes",
        type=natural,
        default=DEFAULT_CONTENT_BYTES,
        metavar="N",
        help="refuse images, arrays or other contents with more bytes (default: 2**28)",
    )


def add_metadata_limit(parser: argparse._ActionsContainer, what: str) -> None:
    """The option of formats with small files, or parts of files, beside the contents."""
    parser.add_argument(
        "--max-metadata-bytes",
        type=natural,
        default=DEFAULT_METADATA_BYTES,
        metavar="N",
        help=f"refuse {what} with more bytes (default: 2**22)",
    )


def add_text_limit(parser: argparse._ActionsContainer) -> None:
    """The option of formats of lines."""
    parser.add_argument(
        "--max-line-bytes",
        type=natural,
        default=MAX_LINE_BYTES,
        metavar="N",
        help="stop at a longer line (default: 2**26)",
    )


def add_array_limit(parser: argparse._ActionsContainer) -> None:
    """The option of formats that are read as a whole."""
    parser.add_argument(
        "--max-array-bytes",
        type=natural,
        metavar="N",
        help="stop when more memory is needed for what is read (default: 64 times the size of the "
        "file, at least 2**28)",
    )


@dataclass(frozen=True)
class Import:
    """How files of a format become records.

    Attributes
    ----------
    name : str
        Name of the format: the command is ``recordio from-NAME``.
    summary : str
        One line for the help.
    sources : sequence of (str, str, bool)
        The positional arguments: name, help, and whether several may be given.
    open : callable
        ``open(settings)`` returns a `Source`; `settings` has an attribute for each option.
    add_options : callable
        ``add_options(parser)`` adds the options of the format.
    description : str
        What becomes of what, for the help.
    """

    name: str
    summary: str
    sources: Sequence[tuple[str, str, bool]]
    open: Callable[[argparse.Namespace], Source]
    add_options: Callable[[argparse._ActionsContainer], None] = no_options
    description: str = ""


@dataclass(frozen=True)
class Export:
    """How records become files of a format.

    Attributes
    ----------
    name : str
        Name of the format: the command is ``recordio export --to NAME``.
    summary : str
        One line for the help.
    outputs : callable
        ``outputs(target)`` returns the files that are written, the main one first; none for a
        folder.
    write : callable
        ``write(pack, paths, settings)`` writes them, whole or not at all, and returns the number of
        records; for a folder `paths` is the target alone.
    add_options : callable
        ``add_options(parser)`` adds the options of the format.
    suffix : str
        Of a target that is a file, as people name it.
    """

    name: str
    summary: str
    outputs: Callable[[str], Sequence[str]]
    write: Callable[[RecordPack, Sequence[str], argparse.Namespace], int]
    add_options: Callable[[argparse._ActionsContainer], None] = no_options
    suffix: str = ""


def unreadable(path: str, error: BaseException) -> RecordIOError:
    """An error of a library, with the file that it was about."""
    return RecordIOError(f"cannot be read: {error}", path=path)
