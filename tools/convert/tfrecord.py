"""Records become TFRecord files of examples, without TensorFlow; `containers` has the way back."""

from __future__ import annotations

import argparse
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from recordio import RecordIOError
from recordio.bytes.storage import AtomicOutput
from recordio.containers.labels import IMAGES, LABELS
from recordio.containers.tfrecord import masked_crc32c
from recordio.keywords.checks import boolean
from recordio.keywords.options import option

from ..record_pack import Record, RecordPack
from .csv import one_file
from .format import Export, ExportedFields
from .tf_example import encode_example

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
        for field in pack.fields_of(record):
            if field.name in features:
                raise RecordIOError(
                    f"the field {field.name} and the image or label would be the same feature: "
                    "give another --content or --label",
                    path=pack.path,
                )
            features[field.name] = [field.stored]
        return encode_example(features)

    for _, data in pack.made(example):
        yield data


TO_TFRECORD = Export(
    "tfrecord",
    "a tf.train.Example for each record; TARGET is a file",
    one_file,
    write_tfrecord,
    TFRecordOptions,
    ".tfrecord",
)
