"""The options of packing, each described and checked once, for command lines and for Python.

im2rec, `recordio pack` and the converters of containers list which of them they take.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, make_dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar

from recordio.formats.image_header import DEFAULT_MAX_PIXELS
from recordio.formats.table import FORMATS
from recordio.keywords.checks import boolean, choice, colour, integer, real
from recordio.keywords.options import (
    Options,
    Rule,
    described,
    option,
    optional,
    refuse_ineffective,
)
from recordio.operations.options import field_list
from recordio.packs.fields_meta import check_name

#: Those of MXNet's tool.
DEFAULT_EXTENSIONS = (".jpeg", ".jpg", ".png")
#: Options that matter only where images are changed.
IMAGE_OPTIONS = (
    *("resize", "center_crop", "quality", "encoding", "color", "background"),
    "inter_method",
)
#: The seed of MXNet's tool.
SHUFFLE_SEED = 100
#: No larger contents of samples; the limit of containers.
MOST_CONTENT = 1 << 28
#: Formats that the table says how to write, and pixels without any.
ENCODINGS = (*(row.suffixes[0] for row in FORMATS if row.quality), "raw")


def suffixes(name: str, value: Any) -> tuple[str, ...]:
    """Return suffixes in lower case and with their dots; a text has commas between them.

    >>> suffixes("exts", "PNG,.webp"), suffixes("exts", [".jpg"])
    (('.png', '.webp'), ('.jpg',))
    """
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, (list, tuple)) or not all(isinstance(part, str) for part in parts):
        raise TypeError(f"{name}={value!r}: expected suffixes, such as .jpg,.webp")
    endings = tuple(f".{part.strip().lstrip('*.').lower()}" for part in parts)
    if "." in endings:
        raise ValueError(f"{name}={value!r}: expected suffixes, such as .jpg,.webp")
    return endings


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
    for item in [value] if isinstance(value, str) else value or ():
        pair = item.split("=", 1) if isinstance(item, str) else item
        if len(pair) != 2 or not pair[1]:
            raise ValueError(f"{name}={item!r}: expected NAME=PATH, such as mask=masks/")
        pairs.append((check_name(pair[0]), os.fspath(pair[1])))
    if len(dict(pairs)) != len(pairs):
        raise ValueError(f"{name}={value!r}: a field is named twice")
    return tuple(pairs)


@dataclass(frozen=True, kw_only=True)
class Together(Options):
    """Options that are checked one by one, and beside each other."""

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse_ineffective(self)


@dataclass(frozen=True, kw_only=True)
class ListOptions(Together):
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
        """Suffixes to accept in folders, in upper or lower case, such as .webp .gif .bmp .tiff; a
        note counts the other files (default: all images; in im2rec .jpeg .jpg .png).""",
        suffixes,
    )
    shuffle: bool = option(True, "bool", "Shuffle the images, in the same way every time.", boolean)
    train_ratio: float = option(
        1.0,
        "float",
        """Share of the images for PREFIX_train; the images left by this and by `test_ratio` go to
        PREFIX_val (default: 1, all in PREFIX).""",
        partial(real, low=0, high=1),
    )
    test_ratio: float = option(
        0.0,
        "float",
        "Share of the images for PREFIX_test; needs `train_ratio` below 1 (default: 0).",
        partial(real, low=0, high=1),
    )
    stratify: bool = option(
        False,
        "bool",
        "Split every class in the same proportions (default: split the images as a whole).",
        boolean,
    )
    chunks: int = option(
        1,
        "int",
        "Cut the images into N parts PREFIX_0, PREFIX_1, ... (default: 1).",
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


@dataclass(frozen=True, kw_only=True)
class EncodeOptions(Together):
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
    background: tuple[int, int, int] | None = option(
        None,
        "str, optional",
        """Colour that transparent images are laid over: R,G,B or one number, 0 to 255, such as 255
        for white (default: alpha is dropped, and the colours under it are stored).""",
        optional(colour),
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
        """How to check images that are stored untouched. header: all pixels must be there, and
        formats that do not show this otherwise are decoded; decode: decode all; none: store
        anything (default: header).""",
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
            "background",
            lambda v: v.color < 0,
            "must be left out: `color` -1 keeps the alpha channel",
            refused=True,
        ),
        Rule(
            "optimize",
            lambda v: v.encoding != ".jpg" and not v.pass_through,
            "is for JPEG images, and `encoding` is another format",
            refused=True,
        ),
    )


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
        """Cut the images into N shards, PREFIX-000000.rec and so on, with a manifest (default with
        `part` and `ray`: one for every 10000 images).""",
        optional(partial(integer, low=1)),
    )
    part: tuple[int, int] | None = option(
        None,
        "tuple of int, optional",
        """Make only the shards of worker K of N, from 1 to N. The last worker to finish writes the
        manifest.""",
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


@dataclass(frozen=True, kw_only=True)
class SampleOptions(Options):
    """Options for the samples of a container: which part of each is stored."""

    image_field: str | None = option(
        None,
        "str, optional",
        """The part of a sample to store: the ending of a file in tars, such as jpg or left.png; a
        feature of TFRecord, or a column (default: the image, or else the array).""",
    )
    label_field: str | None = option(
        None,
        "str, optional",
        """The part with the label or labels, such as cls, json:label for a value in JSON, or a
        feature or column (default: the one with a usual name).""",
    )
    no_labels: bool = option(False, "bool", "Do not look for labels; every label is 0.", boolean)
    fields: tuple[str, ...] = option(
        (),
        "sequence of str",
        """Other parts of the samples to write beside the images, unchanged, as PREFIX.NAME.rec:
        mask for KEY.mask.png, txt for KEY.txt; masks are cropped and resized with the images. all:
        every part that is neither image nor label (default: none).""",
        field_list,
    )
    max_content_bytes: int = option(
        MOST_CONTENT,
        "int",
        "Leave out images, arrays or other contents with more bytes (default: 2**28).",
        partial(integer, low=0, high=MOST_CONTENT),
    )
    seed: int = option(
        SHUFFLE_SEED,
        "int",
        "Seed of the order of `shuffle`: the same seed gives the same order.",
        integer,
    )

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule("seed", lambda v: not v.shuffle, "needs `shuffle`", refused=True),
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


def family_of(
    title: str,
    text: str,
    names: Mapping[str, str],
    extra: Mapping[str, Any] = MappingProxyType({}),
    **more: Any,
) -> Any:
    """Make a family of options of this table, under names of its own: `names` are new and old.

    `extra` are options of its own, and `more` defaults that differ, and what the class has besides.
    """
    items = [(name, "bool", item) for name, item in extra.items()]
    for new, old in names.items():
        base = next(kind for kind in (Im2recOptions, SampleOptions) if old in _types(kind))
        items.append((new, _types(base)[old], described(base, old, default=more.pop(new, MISSING))))
    return make_dataclass(
        title,
        items,
        bases=(Together,),
        namespace={
            "__doc__": text,
            "__module__": __name__,
            **more,
        },
        frozen=True,
        kw_only=True,
    )


def _types(family: type[Options]) -> dict[str, Any]:
    return {item.name: item.type for item in fields(family)}


#: Options of im2rec that say where images lie, or what follows from a container.
FOREIGN = ("list", "recursive", "pass_through", "pack_label", "field", "skip_errors")
SHARDED = ("shards", "part", "ray")

#: The options of `recordio pack`.
PackOptions: Any = family_of(
    "PackOptions",
    "Options of `recordio pack`; a value out of range is a ValueError.",
    {
        item.name: item.name
        for item in (*fields(SampleOptions), *fields(Im2recOptions))
        if item.name not in FOREIGN
    },
    shuffle=False,
    exts=(),
    # Contents are stored as they are where nothing changes images.
    pass_through=property(lambda self: not any(map(self.differs, IMAGE_OPTIONS))),
    is_sharded=property(lambda self: any(getattr(self, name) is not None for name in SHARDED)),
    rules=(
        *SampleOptions.rules,
        *Im2recOptions.rules,
        Rule(
            "chunks train_ratio",
            lambda v: v.is_sharded,
            "is for several packs, and shards are one",
            refused=True,
        ),
        Rule(
            "test_ratio stratify",
            lambda v: v.train_ratio == 1 and (v.test_ratio or v.chunks == 1),
            "needs `train_ratio` below 1",
            refused=True,
        ),
    ),
)
