"""The options of im2rec, each described and checked once, for its command line and for Python."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, ClassVar

from recordio.formats.image_header import DEFAULT_MAX_PIXELS
from recordio.formats.table import FORMATS
from recordio.keywords.checks import boolean, choice, integer, real
from recordio.keywords.options import Options, Rule, option, optional, refuse_ineffective
from recordio.packs.fields_meta import check_name

__all__ = [
    "DEFAULT_EXTENSIONS",
    "ENCODINGS",
    "EncodeOptions",
    "Im2recOptions",
    "ListOptions",
    "encode_options",
]

#: Those of MXNet's tool.
DEFAULT_EXTENSIONS = (".jpeg", ".jpg", ".png")
#: Formats that the table says how to write, and pixels without any.
ENCODINGS = (*(row.suffixes[0] for row in FORMATS if row.quality), "raw")


def _part(name: str, value: Any) -> tuple[int, int]:
    """Return the number of a worker and that of all; ``3/16`` is a text for both."""
    words = [str(word) for word in value] if isinstance(value, tuple) else str(value).split("/")
    if len(words) == 2 and all(word.isdecimal() for word in words):
        part, parts = (int(word) for word in words)
        if 1 <= part <= parts:
            return part, parts
    raise ValueError(f"{name}={value!r}: expected K/N with K from 1 to N, such as 3/16")


def _fields(name: str, value: Any) -> tuple[tuple[str, str], ...]:
    """Return names and paths of fields, each given as a text NAME=PATH or as a pair.

    >>> _fields("field", ["mask=masks/"])
    (('mask', 'masks/'),)
    """
    pairs = []
    for one in [value] if isinstance(value, str) else value or ():
        pair = one.split("=", 1) if isinstance(one, str) else one
        if len(pair) != 2 or not pair[1]:
            raise ValueError(f"{name}={one!r}: expected NAME=PATH, such as mask=masks/")
        pairs.append((check_name(pair[0]), os.fspath(pair[1])))
    if len(dict(pairs)) != len(pairs):
        raise ValueError(f"{name}={value!r}: a field is named twice")
    return tuple(pairs)


@dataclass(frozen=True, kw_only=True)
class ListOptions(Options):
    """Settings of lists; a value out of range is a ValueError."""

    recursive: bool | None = option(
        None,
        "bool, optional",
        """Search sub-folders and label images by folder. By default, `list` takes the files
        directly in ROOT, all with label 0; without `list`, sub-folders are searched if they
        contain images.""",
        optional(boolean),
    )
    exts: tuple[str, ...] = option(
        DEFAULT_EXTENSIONS,
        "tuple of str",
        """Suffixes to accept, in upper or lower case, such as .webp .gif .bmp .tiff; a note counts
        the other files (default: .jpeg .jpg .png).""",
    )
    shuffle: bool = option(
        True, "bool", "Shuffle the list, in the same way every time (default: True).", boolean
    )
    train_ratio: float = option(
        1.0,
        "float",
        """Share of the images for PREFIX_train.lst; the images left by this and by `test_ratio` go
        to PREFIX_val.lst (default: 1, a single PREFIX.lst).""",
        partial(real, low=0, high=1),
    )
    test_ratio: float = option(
        0.0,
        "float",
        "Share of the images for PREFIX_test.lst; needs `train_ratio` below 1 (default: 0).",
        partial(real, low=0, high=1),
    )
    stratify: bool = option(
        False,
        "bool",
        "Split every class in the same proportions (default: split the list as a whole).",
        boolean,
    )
    chunks: int = option(
        1,
        "int",
        "Cut the list into N files PREFIX_0.lst, PREFIX_1.lst, ... (default: 1).",
        partial(integer, low=1),
    )

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "train_ratio",
            lambda v: v.train_ratio + v.test_ratio > 1 + 1e-9,
            "and `test_ratio` add up to more than 1",
            refused=True,
        ),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse_ineffective(self)


@dataclass(frozen=True, kw_only=True)
class EncodeOptions(Options):
    """Settings for every image; a value out of range is a ValueError."""

    pass_through: bool = option(
        False,
        "bool",
        "Store the files unchanged; the other options of this group then have no effect.",
        boolean,
    )
    resize: int = option(
        0,
        "int",
        "Scale the short side to this size, up or down (default: 0, keep the size).",
        partial(integer, low=0),
    )
    center_crop: bool = option(
        False, "bool", "Cut out the square in the centre before scaling.", boolean
    )
    quality: int | None = option(
        None,
        "int, optional",
        """JPEG quality 0-100, or PNG compression 0-9 (higher values count as 9); not for raw. If
        given, every image is encoded again; by default quality is 95, and images that need no
        change are stored untouched.""",
        optional(partial(integer, low=0, high=100)),
    )
    encoding: str = option(
        ".jpg",
        "str",
        """Format of the stored images. raw: pixels that need no decoding, larger but much faster
        to read; meant for use with `resize` (default: .jpg).""",
        partial(choice, allowed=ENCODINGS),
    )
    color: int = option(
        1,
        "int",
        """1: colour of 8 bits, alpha dropped; 0: grey of 8 bits; -1: as stored, 16 bits and alpha
        kept with `encoding` .png. Images are stored upright (default: 1).""",
        partial(choice, allowed=(-1, 0, 1)),
    )
    inter_method: int = option(
        1,
        "int",
        """Resampling: 0 nearest, 1 linear, 2 cubic, 3 area, 4 Lanczos, 9 cubic to enlarge and area
        to shrink (default: 1).""",
        partial(choice, allowed=(0, 1, 2, 3, 4, 9)),
    )
    pack_label: bool = option(
        False,
        "bool",
        "Store all labels of a line (default: only the first label).",
        boolean,
    )
    check: str = option(
        "header",
        "str",
        """How to check files that are stored untouched. header: all pixels must be there, and
        formats that do not show this otherwise are decoded; decode: decode all; none: store any
        file (default: header).""",
        partial(choice, allowed=("header", "decode", "none")),
    )
    optimize: bool = option(
        False,
        "bool",
        """Rewrite all JPEG images without loss, so that parts of them are decoded faster: not
        progressive, with restart markers; the pixels stay the same.""",
        boolean,
    )
    field: tuple[tuple[str, str], ...] = option(
        (),
        "tuple of (str, str)",
        """A field NAME=PATH of the images, written as PREFIX.NAME.rec; may be given several times.
        PATH is a folder of masks or other images, found by the names of the images, and cropped
        and resized with them by the nearest pixel; or a table, .tsv or .csv with image and text,
        or .jsonl of objects with image and value: a text, boxes, key points, or any JSON.""",
        _fields,
    )
    max_pixels: int = option(
        DEFAULT_MAX_PIXELS,
        "int",
        """Leave out images that must be decoded and have more pixels (default: 2**26).""",
        partial(integer, low=1),
    )

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "quality",
            lambda v: v.encoding == "raw",
            "must be left out: raw images have no quality",
            refused=True,
        ),
        Rule(
            "optimize",
            lambda v: v.encoding != ".jpg" and not v.pass_through,
            "is for JPEG images, and `encoding` is another format",
            refused=True,
        ),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse_ineffective(self)


@dataclass(frozen=True, kw_only=True)
class Im2recOptions(EncodeOptions, ListOptions):
    """All options of the command."""

    list: bool = option(
        False, "bool", "Only write the list and the class names, pack nothing.", boolean
    )
    checksums: bool = option(
        False,
        "bool",
        """Also write PREFIX.crc with a checksum of every record, which recordio check and the
        iterators (verify=True) compare.""",
        boolean,
    )
    num_thread: int | None = option(
        None,
        "int, optional",
        "Number of encoding threads (default: all cores; with `ray` 1 for each shard).",
        optional(partial(integer, low=1)),
    )
    shards: int | None = option(
        None,
        "int, optional",
        """Cut the list into N shards, PREFIX-000000.rec and so on (default with `part` and `ray`:
        one for every 10000 images).""",
        optional(partial(integer, low=1)),
    )
    part: tuple[int, int] | None = option(
        None,
        "tuple of int, optional",
        """Make only the shards of worker K of N, from 1 to N; the list must exist. The last worker
        to finish writes the manifest.""",
        optional(_part),
    )
    ray: str | None = option(
        None,
        "str, optional",
        """Make the shards as tasks of a Ray cluster whose nodes find the files under the same
        paths: the one at ADDRESS, such as 10.0.0.1:6379, or without ADDRESS that of RAY_ADDRESS or
        of this machine, started if there is none. Needs ray.""",
    )
    skip_errors: bool = option(False, "bool", "Exit with 0 even if images are left out.", boolean)
    strict: bool = option(False, "bool", "Stop at the first bad image, and write nothing.", boolean)

    rules: ClassVar[tuple[Rule, ...]] = (
        *ListOptions.rules,
        *EncodeOptions.rules,
        Rule(
            "part",
            lambda v: v.ray is not None,
            "is for several workers, and with `ray` one process makes all shards; drop one of both",
            refused=True,
        ),
    )


def encode_options(settings: Any) -> EncodeOptions:
    """Return the options for images among settings that have them as attributes."""
    return EncodeOptions(
        **{item.name: getattr(settings, item.name) for item in fields(EncodeOptions)}
    )


def note_on_bits(count: int) -> list[str]:
    """Return a line for people about images that lost bits, if there are any."""
    if not count:
        return []
    return [
        f"note: {count} images have more than 8 bits, and the upper 8 were stored; --color -1 with "
        "--encoding .png keeps up to 16"
    ]
