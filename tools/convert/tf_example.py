"""TensorFlow's ``tf.train.Example``: a map from names to lists of bytes, floats or integers.

The message is fixed and has five field numbers, so that reading its wire format takes fewer lines
than describing it to the protobuf package, whose version TensorFlow, Ray and others pin against one
another.  Every valid encoding is read; nothing else of protobuf is known here.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from recordio.errors import RecordIOError

__all__ = ["Feature", "decode_example", "encode_example"]

#: Values of one feature, all of the same type.
Feature: TypeAlias = "list[bytes] | list[float] | list[int]"

#: In one feature: a number takes one byte at least, and many times that in a list.
MOST_NUMBERS = 1 << 22

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
#: Features of an Example, or the context of a SequenceExample; and the lists of the latter.
FEATURES, FEATURE_LISTS = 1, 2
BYTES_LIST, FLOAT_LIST, INT64_LIST = 1, 2, 3


def decode_example(data: bytes, wanted: Collection[str] | None = None) -> dict[str, Feature]:
    """Read a serialized example: the values of its features.

    Only `wanted` features have values, by default all.  Floats are 32-bit floats, integers 64-bit
    ones.  The feature lists of a SequenceExample have none.
    """
    features: dict[str, Feature] = {}
    try:
        for number, kind, message in fields(memoryview(data)):
            if kind != BYTES or number not in (FEATURES, FEATURE_LISTS):
                continue
            for entry_number, entry_kind, entry in fields(message):
                if (entry_number, entry_kind) != (1, BYTES):
                    continue
                name, feature = read_entry(entry, wanted if number == FEATURES else ())
                if number == FEATURES or name not in features:
                    features[name] = feature
    except (ValueError, struct.error) as error:
        raise RecordIOError(f"the data are no tf.train.Example: {error}") from None
    return features


def read_entry(entry: memoryview, wanted: Collection[str] | None) -> tuple[str, Feature]:
    """Return name and values of one entry of the map."""
    name, feature = "", memoryview(b"")
    for number, kind, value in fields(entry):
        if (number, kind) == (1, BYTES):
            name = bytes(value).decode()
        elif (number, kind) == (2, BYTES):
            feature = value
    values: Feature = []
    if wanted is None or name in wanted:
        for number, kind, items in fields(feature):
            if kind == BYTES and number in (BYTES_LIST, FLOAT_LIST, INT64_LIST):
                values = read_list(number, items)
    return name, values


def read_list(kind_of_list: int, items: memoryview) -> Feature:
    """Return the values of one feature; numbers may be packed together or stand alone."""
    values: list[Any] = []
    for number, kind, value in fields(items):
        if number != 1:
            continue
        if kind_of_list != BYTES_LIST and len(values) > MOST_NUMBERS:
            raise ValueError(f"a feature has more than {MOST_NUMBERS} numbers")
        if kind_of_list == BYTES_LIST and kind == BYTES:
            values.append(bytes(value))
        elif kind == BYTES and len(value) > 4 * MOST_NUMBERS:
            raise ValueError(f"a feature has more than {MOST_NUMBERS} numbers")
        elif kind_of_list == FLOAT_LIST and kind == BYTES:
            values += np.frombuffer(value, "<f4").tolist()
        elif kind_of_list == FLOAT_LIST and kind == FIXED32:
            values += struct.unpack("<f", value)
        elif kind_of_list == INT64_LIST and kind == BYTES:
            at = 0
            while at < len(value):
                integer, at = read_varint(value, at)
                values.append(signed(integer))
        elif kind_of_list == INT64_LIST and kind == VARINT:
            values.append(signed(value))
        else:
            raise ValueError(f"a value of wire type {kind} in list {kind_of_list}")
    return values


def fields(message: memoryview) -> Iterator[tuple[int, int, Any]]:
    """Yield number, wire type and value of each field of a message."""
    at = 0
    while at < len(message):
        tag, at = read_varint(message, at)
        number, kind = tag >> 3, tag & 7
        if kind == VARINT:
            value, at = read_varint(message, at)
            yield number, kind, value
            continue
        if kind == BYTES:
            length, at = read_varint(message, at)
        elif kind in (FIXED32, FIXED64):
            length = 4 if kind == FIXED32 else 8
        else:
            raise ValueError(f"wire type {kind} at byte {at}")
        if length > len(message) - at:
            raise ValueError(f"a field of {length} bytes where {len(message) - at} are left")
        yield number, kind, message[at : at + length]
        at += length


def read_varint(data: memoryview, at: int) -> tuple[int, int]:
    """Return an integer in groups of seven bits, and where it ends."""
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError(f"an integer that does not end at byte {at}")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, at
        shift += 7


def signed(value: int) -> int:
    """Return the 64 bits of an integer with their sign."""
    return value - (1 << 64) if value >> 63 else value


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
