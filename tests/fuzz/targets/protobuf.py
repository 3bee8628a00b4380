"""Records of SageMaker's protobuf format: as a file of records, and as one record of a file."""

from __future__ import annotations

import random

import numpy as np

from recordio import read_protobuf, write_protobuf
from recordio.frames.encoder import encode

from .target import Target, scratch

WORDS = (
    b"\x0a\x06values\x12",
    b"\x0a\x1a\x0a\x06values\x12\x10\x12\x0e\x0a\x0c",
    b"\x12\x12\x0a\x06values\x12\x08\x12\x06\x0a\x04",
    b"\x3a\x04",
    b"\x1a\x01",
    b"\x13\x14",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    b"\x0a\x23\xd7\xce",
)


def dense(array):
    """A matrix as an array, whatever it is stored as; None for one that would be large."""
    if array is None or isinstance(array, np.ndarray):
        return array
    return array.toarray() if array.shape[0] * array.shape[1] < 1 << 20 else array.data


def same(one, other) -> bool:
    """True for equal arrays of one type, nan included."""
    if one is None or other is None:
        return one is other
    return one.dtype == other.dtype and one.tobytes() == other.tobytes()


def check_file(data: bytes) -> None:
    """Threads give the same arrays, and what was read is read again when it is written."""
    path = scratch("a.pbr", data)
    features, labels = read_protobuf(path, threads=1, max_array_bytes=1 << 24)
    again, other = read_protobuf(path, threads=3, max_array_bytes=1 << 24)
    assert same(dense(features), dense(again)) and same(labels, other)
    if features.shape[1]:
        copy = scratch("b.pbr", b"")
        write_protobuf(copy, features, labels)
        again, other = read_protobuf(copy, threads=1, max_array_bytes=1 << 24)
        assert same(dense(features), dense(again))
        assert same(labels, other) or labels.size == 0


def check_protobuf(data: bytes) -> None:
    """A first byte that is odd says that the rest is one record, between two sound ones."""
    if data[:1] and data[0] % 2:
        sound = b"\x0a\x1a\x0a\x06values\x12\x10\x12\x0e\x0a\x0c" + bytes(12)
        sound += b"\x12\x12\x0a\x06values\x12\x08\x12\x06\x0a\x04" + bytes(4)
        records = [data[1:]] if data[0] & 2 else [sound, data[1:], sound]
        data = b"".join(encode(record) for record in records)
    else:
        data = data[1:]
    check_file(data)


def change_protobuf(data: bytes, draw: random.Random) -> bytes:
    """Another way to be read, or a length that is one more or less."""
    changed = bytearray(data or b"\x00")
    if draw.random() < 0.2:
        changed[0] = draw.randrange(4)
    else:
        at = draw.randrange(len(changed))
        changed[at] = (changed[at] + draw.choice([1, -1, 0x80])) % 256
    return bytes(changed)


PROTOBUF = Target("protobuf", check_protobuf, change_protobuf, words=WORDS)
