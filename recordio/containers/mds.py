"""Shards of Mosaic's streaming data sets, MDS: the images of one column as spans of the files.

A folder, or the URL of its ``index.json``, stands for its shards.  Each of them says itself which
columns it has.
"""

from __future__ import annotations

import json
import os
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..bytes.files import StoredFile, open_text
from ..bytes.remote.objects import redacted_url
from ..bytes.remote.settings import RemoteSettings
from ..errors import CorruptRecordError, FieldError, LabelError, RecordIOError, TruncatedRecordError
from ..frames.encoder import MAX_RECORD_LENGTH
from ..list_files import check_labels
from ..values import number as number_of
from .container import USUAL, Choice, Container
from .labels import IMAGES, LABELS, check_finite, first_named, note_numbers
from .objects import MOST_ROWS, labels_of_rows
from .samples import NO_CONTENT, ContainedSamples

INDEX = "index.json"
ENCODED = ("jpeg", "png", "jpegarray", "jpeg_array")
#: Columns that may be fields of a sample: their bytes are used as they are.
JSON = "json"
FIELDS = (*ENCODED, "bytes", "str", JSON)
NUMBERS = {
    "int": "<i8",
    **{
        f"{sign}int{bits}": f"<{sign or 'i'}{bits // 8}"
        for sign in ("", "u")
        for bits in (8, 16, 32, 64)
    },
    **{f"float{bits}": f"<f{bits // 8}" for bits in (16, 32, 64)},
}
TEXTS = ("str_int", "str_float", "str_decimal", "str")
#: The description of the columns takes a few hundred bytes.
MOST_DESCRIPTION, MOST_INDEX = 1 << 20, 1 << 28


def _described(file: StoredFile, settings: RemoteSettings | None = None) -> list[dict] | None:
    """Read the shards that an index lists; None of any other file."""
    name = file.name
    if file.is_local and not os.path.isfile(name):
        return None
    if file.is_local and os.path.getsize(name) > MOST_INDEX:
        return None
    try:
        with open_text(file, settings=settings) as text:
            index = json.load(text)
    except (ValueError, RecursionError):
        return None
    shards = index.get("shards") if isinstance(index, dict) else None
    if not isinstance(shards, list) or not all(isinstance(shard, dict) for shard in shards):
        return None
    return shards if any(shard.get("format") == "mds" for shard in shards) else None


def _index_of(file: StoredFile) -> StoredFile:
    if file.is_local and os.path.isdir(file.name):
        return StoredFile(os.path.join(file.name, INDEX))
    return file


def _is_mds(file: StoredFile) -> bool:
    """Tell a folder with an index of shards, that index, or its URL."""
    if not file.is_local:
        return file.name.partition("?")[0].endswith(f"/{INDEX}")
    index = _index_of(file)
    return os.path.basename(index.name) == INDEX and _described(index) is not None


def _shards(file: StoredFile, settings: RemoteSettings | None = None) -> list[StoredFile]:
    """Name the shards in the order of the index, all of which must be there, unpacked."""
    if PATTERN.search(file.name.partition("?")[0]):
        return [file]
    index = _index_of(file)
    shards = _described(index, settings)
    if shards is None:
        raise RecordIOError("it is no index of MDS shards", path=redacted_url(file.name))
    files = []
    for number, shard in enumerate(shards):
        raw, packed = shard.get("raw_data"), shard.get("zip_data")
        name = raw.get("basename") if isinstance(raw, dict) else None
        if shard.get("format") != "mds" or not isinstance(name, str) or not name:
            raise RecordIOError(f"shard {number} is no MDS shard", path=redacted_url(index.name))
        if os.path.isabs(name) or ".." in re.split(r"[/\\]", name):
            raise RecordIOError(
                f"shard {number} lies elsewhere: {name}", path=redacted_url(index.name)
            )
        one = index.neighbour(name)
        if packed and not (one.is_local and os.path.exists(one.name)):
            raise RecordIOError(
                f"the shard {name} is there packed only, by {str(shard.get('compression'))[:20]}: "
                "unpack the shards beside it, for example with `zstd -d *.zstd`",
                path=redacted_url(index.name),
            )
        if one.is_local and not os.path.exists(one.name):
            raise RecordIOError(f"the shard {name} is missing", path=redacted_url(index.name))
        size = raw.get("bytes") if isinstance(raw, dict) else None
        if one.is_local and size != os.path.getsize(one.name):
            raise TruncatedRecordError(
                f"it has {os.path.getsize(one.name)} bytes, and {INDEX} says {size}: copy it again",
                path=redacted_url(one.name),
            )
        files.append(one)
    if not files:
        raise RecordIOError("it lists no shard", path=redacted_url(index.name))
    return files


@dataclass
class _Columns:
    """The columns of a shard."""

    names: list[str]
    encodings: list[str]
    #: Bytes of each column; 0 where each sample says it.
    sizes: list[int]

    @classmethod
    def of(cls, description: Any) -> _Columns:
        """Take the description apart."""
        parts = [description.get(f"column_{part}") for part in ("names", "encodings", "sizes")]
        if not all(isinstance(part, list) and len(part) == len(parts[0]) for part in parts):
            raise ValueError("no columns")
        names, encodings, sizes = parts
        whole = all(size is None or (type(size) is int and 0 <= size < 2**32) for size in sizes)
        if not names or not whole or not all(isinstance(i, str) for i in [*names, *encodings]):
            raise ValueError("no columns")
        return cls(names, encodings, [size or 0 for size in sizes])

    def image(self, chosen: str = "") -> int:
        """Choose the column of the image."""
        pairs = list(zip(self.names, self.encodings, strict=True))
        usable = [name for name, kind in pairs if kind in (*ENCODED, "bytes")]
        encoded = [name for name, kind in pairs if kind in ENCODED]
        name = first_named(usable, IMAGES) or (encoded[0] if len(encoded) == 1 else None)
        if chosen:
            name = chosen if chosen in usable else None
        if name is not None:
            return self.names.index(name)
        columns = ", ".join(f"{n} ({k})" for n, k in pairs)
        which = f"none is {chosen}" if chosen else "none is an encoded image, or several are"
        raise RecordIOError(
            f"of the columns {columns:.500} {which}: image_field= chooses one that is written as "
            "jpeg, png or bytes"
        )

    def fields(self, choice: Choice) -> list[str]:
        """Name the columns besides image and label that are bytes, images, texts or JSON."""
        label = self.label(choice)
        taken = {self.image(choice.image_field), -1 if label is None else label[0]}
        pairs = enumerate(zip(self.names, self.encodings, strict=True))
        names = [name for i, (name, kind) in pairs if i not in taken and kind in FIELDS]
        return [name for name in names if name.isascii() and name.isidentifier()]

    def field(self, choice: Choice) -> int:
        """Find the column of a field; any other is a FieldError."""
        name = choice.field
        if name not in self.fields(choice):
            there = ", ".join(f"{n} ({k})" for n, k in zip(self.names, self.encodings, strict=True))
            raise FieldError(
                f"it has no column {name} of {', '.join(FIELDS)}, besides image and label; its "
                f"columns are {there:.500}"
            )
        return self.names.index(name)

    def numbers(self) -> list[str]:
        """Name the columns that hold one number in each sample."""
        pairs = zip(self.names, self.encodings, strict=True)
        return [name for name, kind in pairs if kind in (*NUMBERS, *TEXTS[:-1])]

    def label(self, choice: Choice) -> tuple[int, Callable[[memoryview], float]] | None:
        """Choose the column of the label, and how it is read; None where there is none."""
        name = choice.label_field or first_named(self.names, LABELS)
        if name is None or not choice.has_labels:
            return None
        if name not in self.names:
            raise RecordIOError(f"it has no column {name}, only {', '.join(self.names):.500}")
        i = self.names.index(name)
        kind = self.encodings[i]
        if kind in NUMBERS:
            dtype = np.dtype(NUMBERS[kind])
            if self.sizes[i] not in (0, dtype.itemsize):
                raise RecordIOError(f"the column {self.names[i]} has {self.sizes[i]} bytes")
            return i, lambda data: np.frombuffer(data, dtype)[0].item()
        if kind in TEXTS:
            return i, _number_in
        raise RecordIOError(
            f"the label in the column {self.names[i]} is {kind:.60}: write it as int or float, or "
            "choose another column by label_field="
        )


def _scan(
    file: StoredFile, settings: RemoteSettings | None = None, choice: Choice = USUAL
) -> ContainedSamples:
    """Read where the images of a shard lie, and their labels; or where a field of each lies."""
    view, edges, columns = _opened(file, settings)
    try:
        if choice.field:
            return _samples(view, edges, columns, columns.field(choice), None)
        label = columns.label(choice)
        samples = _samples(view, edges, columns, columns.image(choice.image_field), label)
        if choice.has_labels and len(samples):
            samples.labelled = label is not None
            if label is None:
                note_numbers(samples.notes, columns.numbers(), len(samples), "column")
        return samples
    except RecordIOError as error:
        raise error.at(path=redacted_url(file.name)) from None


def _fields(
    file: StoredFile, settings: RemoteSettings | None, samples: ContainedSamples, choice: Choice
) -> list[str]:
    """List the fields that its samples have besides images and labels."""
    return _opened(file, settings)[2].fields(choice)


def _opened(
    file: StoredFile, settings: RemoteSettings | None
) -> tuple[memoryview, np.ndarray, _Columns]:
    """Map a shard, and read where its samples begin and what its columns are."""
    if file.is_local and not os.path.isfile(file.name):
        raise RecordIOError("it stands for shards: give one of them", path=redacted_url(file.name))
    view = file.map(settings)
    try:
        return view, *_head(view)
    except RecordIOError as error:
        raise error.at(path=redacted_url(file.name)) from None
    except (ValueError, AttributeError, RecursionError, struct.error) as error:
        raise CorruptRecordError(
            f"it is no MDS shard: {error}", path=redacted_url(file.name)
        ) from None


def _head(view: memoryview) -> tuple[np.ndarray, _Columns]:
    """Read where each sample begins, with the end of the last, and what the columns are."""
    if len(view) < 8:
        raise TruncatedRecordError("the shard ends within its header")
    (count,) = struct.unpack_from("<I", view)
    begin = 4 * (count + 2)
    if begin > len(view):
        raise TruncatedRecordError(f"the shard ends within the table of its {count} samples")
    edges = np.frombuffer(view, "<u4", count + 1, 4).astype(np.int64)
    if (np.diff(edges) < 0).any() or edges[0] < begin:
        raise CorruptRecordError("its samples do not follow one another")
    if edges[-1] != len(view):
        raise TruncatedRecordError(f"the shard has {len(view)} bytes of {edges[-1]}: copy it again")
    if edges[0] - begin > MOST_DESCRIPTION:
        raise CorruptRecordError("there is no description of its columns")
    return edges, _Columns.of(json.loads(bytes(view[begin : int(edges[0])])))


def _samples(
    view: memoryview,
    edges: np.ndarray,
    columns: _Columns,
    image: int,
    label: tuple[int, Callable[[memoryview], float]] | None,
) -> ContainedSamples:
    """Find the column `image` of each sample, and its label; rows of objects in JSON are labels."""
    has_rows = label is None and columns.encodings[image] == JSON
    variable = [i for i, size in enumerate(columns.sizes) if not size]
    head = struct.Struct(f"<{len(variable)}I")
    offsets, sizes, labels = [], [], []
    faults: dict[int, str] = {}
    for row, (begin, end) in enumerate(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)):
        offset, size, row_labels = begin, NO_CONTENT, [0.0]
        try:
            if begin + head.size > end:
                raise RecordIOError("it ends within the sizes of its columns")
            widths = list(columns.sizes)
            for i, width in zip(variable, head.unpack_from(view, begin), strict=True):
                widths[i] = width
            at = np.cumsum([begin + head.size, *widths]).tolist()
            if at[-1] != end:
                raise RecordIOError(
                    f"its columns have {at[-1] - begin} bytes, and it has {end - begin}"
                )
            if label is not None:
                row_labels = [_number(view[at[label[0]] : at[label[0] + 1]], label[1])]
            if widths[image] > MAX_RECORD_LENGTH:
                raise RecordIOError(
                    f"it has {widths[image]} bytes: at most {MAX_RECORD_LENGTH} are possible"
                )
            if has_rows and widths[image] <= MOST_ROWS:
                row_labels = labels_of_rows(view[at[image] : at[image + 1]]) or row_labels
            offset, size = at[image], widths[image]
        except RecordIOError as error:
            faults[row] = error.reason
        offsets.append(offset)
        sizes.append(size)
        labels.append(row_labels)
    return ContainedSamples.of(offsets, sizes, labels, faults=faults)


def _number_in(data: memoryview) -> float:
    """Read a number in text."""
    value = number_of(bytes(data[:64]))
    if value is None:
        raise ValueError
    return value


def _number(data: memoryview, read: Callable[[memoryview], float]) -> float:
    try:
        value = read(data)
    except (ValueError, IndexError):
        text = bytes(data[:40])
        raise LabelError(f"its label {text!r} is no number: write classes as int") from None
    check_finite(value)
    check_labels([value])
    return value


#: A shard by itself.
PATTERN = re.compile(r"\.mds$")
MDS = Container(
    "an MDS shard",
    _scan,
    pattern=PATTERN,
    is_it=_is_mds,
    shards=_shards,
    fields=_fields,
    chooses=frozenset(["field", "image_field", "label_field", "has_labels"]),
    rules=3,
)
