"""Write examples of TensorFlow, which `recordio.containers.tf_example` reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

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
