"""TFRecord files: examples become image records, and back, without TensorFlow.

A record is framed by its length and two CRC-32C checksums, which are always compared.
"""

from __future__ import annotations

import argparse
import collections
import gzip
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

from recordio import (
    CorruptRecordError,
    RecordIOError,
    RecordTooLargeError,
    TruncatedRecordError,
)
from recordio.bytes.files import open_bytes
from recordio.bytes.storage import AtomicOutput
from recordio.containers.labels import IMAGES, LABELS
from recordio.containers.tf_example import BOX_KEYS, decode_example
from recordio.containers.tfrecord import content_of, labels_of, masked_crc32c
from recordio.keywords.checks import boolean
from recordio.keywords.options import Options, option

from ..image_list import Skipped
from ..payloads import check_content
from ..record_pack import RecordPack
from .csv import one_file
from .folders import CheckOptions
from .format import (
    WITH_IMAGE,
    ContentLimit,
    Export,
    ExportedFields,
    Import,
    ImportSource,
    Item,
    Items,
)
from .shards import matching_files
from .tf_example import encode_example

__all__ = ["FROM_TFRECORD", "TO_TFRECORD", "read_frames"]

LENGTH, CHECKSUM = struct.Struct("<Q"), struct.Struct("<I")
HEAD = LENGTH.size + CHECKSUM.size
LARGEST = 2**29 - 1
#: Features with the size of an image, which tell raw pixels from other bytes.
SIDES = ("height", "image/height", "width", "image/width", "depth", "channels", "image/channels")


@dataclass(frozen=True, kw_only=True)
class FeatureOptions(Options):
    """Options that name features, and leave records as they are."""

    content: str | None = option(
        None,
        "str, optional",
        f"The feature with the image (default: {', '.join(IMAGES[:2])}, or another usual name).",
    )
    label: str | None = option(
        None,
        "str, optional",
        f"The feature with the label or labels (default: {', '.join(LABELS[:2])}, or another "
        "usual name).",
    )
    raw: bool = option(
        False, "bool", "Write records as they are, not as tf.train.Example.", boolean
    )


@dataclass(frozen=True, kw_only=True)
class ToTFRecordOptions(FeatureOptions, ExportedFields):
    """Options of export --to tfrecord."""


@dataclass(frozen=True, kw_only=True)
class TFRecordOptions(CheckOptions, ContentLimit, FeatureOptions):
    """Options of from-tfrecord."""

    no_labels: bool = option(False, "bool", "Do not look for labels; every label is 0.", boolean)
    raw: bool = option(
        False,
        "bool",
        "Store the data of each TFRecord unchanged and unread, without an image header.",
        boolean,
    )


def open_tfrecord(settings: argparse.Namespace) -> ImportSource:
    """Open the files."""
    limit = min(settings.max_content_bytes, LARGEST)
    wanted = {settings.content, settings.label, *IMAGES, *LABELS, *BOX_KEYS, *SIDES}

    paths = matching_files(settings.source)

    def items() -> Items:
        for path in paths:
            for number, (offset, data) in enumerate(read_frames(path, limit)):
                if settings.raw:
                    yield Item(None, data)
                    continue
                try:
                    yield as_item(decode_example(data, wanted), settings)
                except RecordIOError as error:
                    yield Skipped(f"{path}, record {number}, offset {offset}", error.reason)

    return ImportSource(items())


def read_frames(path: str, limit: int = LARGEST) -> Iterator[tuple[int, bytes]]:
    """Yield offset and data of each record of a TFRecord file, plain or gzip.

    Reading ends with an error at a wrong checksum: the rest cannot be trusted.
    """
    file, _ = open_bytes(path)
    offset = 0
    with file:
        try:
            for number in range(1 << 63):
                location: dict[str, Any] = {"path": path, "offset": offset, "record": number}
                head = read_fully(file, HEAD)
                if not head:
                    return
                if len(head) < HEAD:
                    raise TruncatedRecordError(
                        "the file ends inside the head of a record", **location
                    )
                if masked_crc32c(head[: LENGTH.size]) != CHECKSUM.unpack_from(head, LENGTH.size)[0]:
                    raise CorruptRecordError(
                        "the checksum of the length is wrong: the file is damaged here, or no "
                        "TFRecord file",
                        **location,
                    )
                (length,) = LENGTH.unpack_from(head)
                if length > limit:
                    raise RecordTooLargeError(
                        f"{length} bytes are too much for one record; --max-content-bytes raises "
                        "the limit up to 2**29",
                        **location,
                    )
                data = read_fully(file, length + CHECKSUM.size)
                if len(data) < length + CHECKSUM.size:
                    raise TruncatedRecordError("the file ends inside a record", **location)
                (expected,) = CHECKSUM.unpack_from(data, length)
                data = data[:length]
                if masked_crc32c(data) != expected:
                    raise CorruptRecordError("the checksum of the data is wrong", **location)
                yield offset, data
                offset += HEAD + length + CHECKSUM.size
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            if isinstance(error, RecordIOError):
                raise
            raise RecordIOError(
                f"the gzip data is damaged or truncated: {error}", path=path, offset=offset
            ) from None


def read_fully(file: BinaryIO, count: int) -> bytes:
    """Read as many bytes as there are, up to `count`; memory grows only with what comes."""
    pieces = []
    while count and (piece := file.read(min(count, 1 << 22))):
        pieces.append(piece)
        count -= len(piece)
    return b"".join(pieces)


def as_item(features: dict[str, Any], settings: argparse.Namespace) -> Item:
    """Make an item of one example."""
    taken = [content_of(features, [settings.content] if settings.content else IMAGES)]
    content = features[taken[0]]
    if settings.check == "header":
        sides = [side for name in SIDES for side in features.get(name, ())[:1]]
        check_content(content[0], [side for side in sides if isinstance(side, int)])
    labels: Any = []
    if not settings.no_labels:
        labels, names = labels_of(features, [settings.label] if settings.label else LABELS)
        taken += names
    left_out = collections.Counter(name for name in features if name not in taken)
    return Item(labels, content[0], left_out=left_out)


def write_tfrecord(pack: RecordPack, paths: Sequence[str], settings: argparse.Namespace) -> int:
    """Write an example for each record: its content, and its labels as integers or floats."""
    count = 0
    with AtomicOutput(paths[0]) as output:
        for data in raw_records(pack) if settings.raw else examples(pack, settings):
            head = LENGTH.pack(len(data))
            output.write(head + CHECKSUM.pack(masked_crc32c(head)))
            output.write(data + CHECKSUM.pack(masked_crc32c(data)))
            count += 1
    return count


def raw_records(pack: RecordPack) -> Iterator[bytes]:
    """Yield every record as it is."""
    for position in pack.watched(pack.everything()):
        yield pack.reader.read_many([position], copy=True)[0]


def examples(pack: RecordPack, settings: argparse.Namespace) -> Iterator[bytes]:
    """Yield every record as an example."""
    content, label = settings.content or IMAGES[0], settings.label or LABELS[0]
    for record in pack:
        labels: list[float] = record.labels
        if all(value.is_integer() and abs(value) < 2**63 for value in labels):
            labels = [int(value) for value in labels]
        features: dict[str, Any] = {content: [bytes(record.content)], label: labels}
        for one in pack.fields_of(record):
            if one.name in features:
                raise RecordIOError(
                    f"the field {one.name} and the image or label would be the same feature: give "
                    "another --content or --label",
                    path=pack.path,
                )
            features[one.name] = [one.stored]
        yield encode_example(features)


FROM_TFRECORD = Import(
    "tfrecord",
    "TFRecord files of tf.train.Example",
    [("source", "the files, plain or gzip, or fsspec URLs; {000..009} and * stand for many", True)],
    open_tfrecord,
    TFRecordOptions,
    "Each example becomes an image record: the encoded image untouched, the label in the header.",
    example=WITH_IMAGE
    + """>>> _ = recordio.convert.from_imagefolder(folder / "photos", folder / "a")
>>> _ = recordio.convert.export(folder / "a", folder / "a.tfrecord", to="tfrecord")
>>> recordio.convert.from_tfrecord(folder / "a.tfrecord", folder / "b").records
1""",
)
TO_TFRECORD = Export(
    "tfrecord",
    "a tf.train.Example for each record; TARGET is a file",
    one_file,
    write_tfrecord,
    ToTFRecordOptions,
    ".tfrecord",
)
