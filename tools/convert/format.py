"""Pieces of a conversion that every format module fills in.

A format is read by a function that yields items, and written by one that goes over a pack.  The
rest, record files, reports and the command line, is the same for all of them and stands elsewhere.
"""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from recordio.errors import RecordIOError
from recordio.formats.image_header import DEFAULT_MAX_PIXELS
from recordio.keywords.checks import integer
from recordio.keywords.options import Options, option, optional
from recordio.operations.options import field_list
from recordio.packs.fields_meta import FieldMeta
from recordio.text.lines import MAX_LINE_BYTES

from ..command import add_option
from ..image_list import Skipped
from ..record_pack import RecordPack

#: Names and numbers of things that no record holds.
Counts: TypeAlias = Mapping[str, int]

DEFAULT_METADATA_BYTES = 1 << 22


class Item(NamedTuple):
    """Content of one record."""

    #: One: stored in the image header; several: behind it; none at all: 0.  None: the content is
    #: the whole record, without an image header.
    labels: Sequence[float] | None
    content: bytes
    name: str = ""  # path of its file, relative, with ``/``; kept in PREFIX.lst
    left_out: Counts = MappingProxyType({})  # parts of it that are not stored
    #: Its fields by name: labels, as above, and content.  Those of `ImportSource.fields` alone.
    fields: Mapping[str, tuple[Sequence[float], bytes]] = MappingProxyType({})


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
    fields: Sequence[str] = ()  # names of those that items may have
    #: What these are, when all items were read.
    describe: Callable[[], Mapping[str, FieldMeta]] = field(default=dict)


#: Lines of an example that make ``photos/cat/1.png``.
WITH_IMAGE = """>>> import cv2, numpy as np
>>> (folder / "photos" / "cat").mkdir(parents=True)
>>> cv2.imwrite(str(folder / "photos" / "cat" / "1.png"), np.zeros((4, 6, 3), np.uint8))
True
"""


def of_text(read: Callable[[str], Any]) -> Callable[[str, Any], Any]:
    """Make a check of what reads a text: the value may be a text, a number or several."""

    def check(name: str, value: Any) -> Any:
        several = value if isinstance(value, (list, tuple)) else [value]
        try:
            return read(value if isinstance(value, str) else ",".join(map(str, several)))
        except argparse.ArgumentTypeError as error:
            raise ValueError(f"{name}={value!r}: {error}") from None

    return check


def names_among(name: str, value: Any, among: Sequence[str]) -> tuple[str, ...]:
    """Return names that are among those allowed, given one by one or with commas between them.

    >>> names_among("fields", "mask,caption", ["mask", "caption"])
    ('mask', 'caption')
    """
    names = field_list(name, value)
    for word in names:
        if word not in among:
            raise ValueError(f"{name}={value!r}: expected {', '.join(among)}, not {word}")
    return names


@dataclass(frozen=True, kw_only=True)
class NoOptions(Options):
    """Options of formats that have none of their own."""


@dataclass(frozen=True, kw_only=True)
class ExportedFields(Options):
    """Option of formats whose samples have fields."""

    fields: tuple[str, ...] | None = option(
        None,
        "sequence of str, optional",
        "Names of the fields to write with the images, separated by commas (default: all).",
        optional(field_list),
    )


@dataclass(frozen=True, kw_only=True)
class MetadataLimit(Options):
    """Option of formats with small files, or parts, beside the contents."""

    max_metadata_bytes: int = option(
        DEFAULT_METADATA_BYTES,
        "int",
        "Refuse annotation and label files, and headers between files, with more bytes "
        "(default: 2**22).",
        partial(integer, low=0),
    )


@dataclass(frozen=True, kw_only=True)
class TextLimit(Options):
    """Option of formats of lines."""

    max_line_bytes: int = option(
        MAX_LINE_BYTES,
        "int",
        "Stop at a longer line (default: 2**26).",
        partial(integer, low=0),
    )


@dataclass(frozen=True, kw_only=True)
class ArrayLimit(Options):
    """Option of formats that are read as a whole."""

    max_array_bytes: int | None = option(
        None,
        "int, optional",
        """Stop if the data need more memory (default: 64 times the size of the file, at least
        2**28).""",
        optional(partial(integer, low=0)),
    )


@dataclass(frozen=True, kw_only=True)
class PixelLimit(Options):
    """Option of formats whose images are decoded."""

    max_pixels: int = option(
        DEFAULT_MAX_PIXELS,
        "int",
        "Do not decode images with more pixels (default: 2**26).",
        partial(integer, low=1),
    )


def options_of_format(family: type[Options]) -> list[Field[Any]]:
    """List the options of a format, its own before those that it shares with others."""
    options = {item.name: item for item in fields(family)}
    own = [name for kind in family.__mro__ for name in inspect.get_annotations(kind)]
    return [options[name] for name in dict.fromkeys(own) if name in options]


def add_options_of(parser: argparse._ActionsContainer, family: type[Options]) -> None:
    """Add the options of a format to a parser, each as it is described and checked."""
    for item in options_of_format(family):
        add_option(parser, item)


@dataclass(frozen=True)
class Import:
    """Way of files of a format to records."""

    name: str  # the command is ``recordio from-NAME``
    summary: str
    #: Positional arguments: name, help, and True if several may be given.
    sources: Sequence[tuple[str, str, bool]]
    open: Callable[[Any], ImportSource] | None = None
    options: type[Options] = NoOptions
    description: str = ""
    #: Lines of a doctest that call the function in `folder`, a new one.
    example: str = ""
    #: Writes the items where they do not become an ordinary pack; called as `import_records`.
    write: Callable[..., Any] | None = None
    #: Files that it writes besides, by the prefix of the pack.
    beside: Callable[[str], Sequence[str]] = lambda prefix: ()
    #: Packs a container, where there is no `open`; given the settings and the prefix.
    pack: Callable[..., Any] | None = None

    def add_options(self, parser: argparse._ActionsContainer) -> None:
        """Add the options of the command."""
        add_options_of(parser, self.options)


@dataclass(frozen=True)
class Export:
    """Way of records to files of a format."""

    name: str  # the command is ``recordio export --to NAME``
    summary: str
    #: The files of a target, the main one first; none for a folder.
    outputs: Callable[[str], Sequence[str]]
    #: Writes the files, or the folder, whole or not at all; returns the number of records.
    write: Callable[[RecordPack, Sequence[str], Any], int]
    options: type[Options] = NoOptions
    suffix: str = ""  # of a target that is a file

    def add_options(self, parser: argparse._ActionsContainer) -> None:
        """Add the options of the command."""
        add_options_of(parser, self.options)


def unreadable(path: str, error: BaseException) -> RecordIOError:
    """Return an error for a file that a library could not read."""
    return RecordIOError(f"cannot be read: {error}", path=path)
