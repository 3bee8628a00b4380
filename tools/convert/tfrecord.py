"""Records become TFRecord files of examples, without TensorFlow; `containers` has the way back."""

from __future__ import annotations

import argparse
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from recordio import RecordIOError
from recordio.bytes.storage import AtomicOutput
from recordio.containers.labels import IMAGES, LABELS
from recordio.containers.tfrecord import masked_crc32c
from recordio.keywords.checks import boolean
from recordio.keywords.options import option

from ..record_pack import Record, RecordPack
from .csv import one_file
from .format import Export, ExportedFields

LENGTH, CHECKSUM = struct.Struct("<Q"), struct.Struct("<I")


@dataclass(frozen=True, kw_only=True)
class TFRecordOptions(ExportedFields):
    """Options of export --to tfrecord."""

    content: str | None = option(
        None, "str, optional", f"The feature for the image (default: {IMAGES[0]})."
    )
    label: str | None = option(
        None, "str, optional", f"The feature for the label or labels (default: {LABELS[0]})."
    )
    raw: bool = option(
        False, "bool", "Write records as they are, not as tf.train.Example.", boolean
    )


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

    def example(record: Record) -> bytes:
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
        return encode_example(features)

    for _, made in pack.made(example):
        yield made


TO_TFRECORD = Export(
    "tfrecord",
    "a tf.train.Example for each record; TARGET is a file",
    one_file,
    write_tfrecord,
    TFRecordOptions,
    ".tfrecord",
)


BYTES = 2
BYTES_LIST, FLOAT_LIST, INT64_LIST = 1, 2, 3


def encode_example(features: Mapping[str, Sequence[Any]]) -> bytes:
    """Make a serialized example, its features in the given order.

    The values of a feature are all bytes, all integers, or all numbers.
    """
    entries = b""
    for name, values in features.items():
        if all(isinstance(value, bytes) for value in values):
            number, items = BYTES_LIST, b"".join(field(1, value) for value in values)
        elif all(isinstance(value, int) for value in values):
            packed = b"".join(varint(value & 0xFFFF_FFFF_FFFF_FFFF) for value in values)
            number, items = INT64_LIST, field(1, packed)
        else:
            number, items = FLOAT_LIST, field(1, np.array(values, "<f4").tobytes())
        entries += field(1, field(1, name.encode()) + field(2, field(number, items)))
    return field(1, entries)


def field(number: int, content: bytes) -> bytes:
    """Make a field whose length stands before its content."""
    return varint(number << 3 | BYTES) + varint(len(content)) + content


def varint(value: int) -> bytes:
    """Make groups of seven bits of a non-negative integer, the lowest first."""
    data = bytearray()
    while value > 0x7F:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    data.append(value)
    return bytes(data)
