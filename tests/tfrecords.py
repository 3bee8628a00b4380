"""TFRecord files for tests, written by hand."""

import struct

from recordio.containers.tfrecord import masked_crc32c
from recordio.tools.convert.tf_example import encode_example

__all__ = ["framed", "write_tfrecord"]


def framed(*data):
    """Put records between their lengths and checksums."""
    pieces = []
    for item in data:
        head = struct.pack("<Q", len(item))
        pieces += [head, struct.pack("<I", masked_crc32c(head))]
        pieces += [item, struct.pack("<I", masked_crc32c(item))]
    return b"".join(pieces)


def write_tfrecord(path, *examples):
    """Write examples, which are dictionaries or already bytes."""
    items = (e if isinstance(e, bytes) else encode_example(e) for e in examples)
    path.write_bytes(framed(*items))
    return path
