"""Mean images in MXNet's file format: read, check and write them.

This module deals with the file alone; a provider computes the mean.
"""

from __future__ import annotations

import os
import struct

import numpy as np

from recordio.bytes.regular_files import open_regular
from recordio.bytes.storage import AtomicOutput
from recordio.errors import RecordIOError

LIST_MAGIC = 0x112
ARRAY_MAGIC_V3 = 0xF993FACA
ARRAY_MAGIC_V2 = 0xF993FAC9
ARRAY_MAGIC_V1 = 0xF993FAC8
DTYPES = {0: "<f4", 1: "<f8", 2: "<f2", 3: "u1", 4: "<i4", 5: "i1", 6: "<i8"}


class _Fields:
    """Reads fields one after the other and notices the end of the file."""

    def __init__(self, path: str, content: bytes) -> None:
        self.path, self.content, self.position = path, content, 0

    def take(self, layout: str) -> tuple[int, ...]:
        return struct.unpack("<" + layout, self.bytes(struct.calcsize("<" + layout)))

    def bytes(self, count: int) -> bytes:
        piece = self.content[self.position : self.position + count]
        if len(piece) < count:
            raise self.error("the file ends inside the mean image: write it again")
        self.position += count
        return piece

    def error(self, reason: str) -> RecordIOError:
        return RecordIOError(reason, path=self.path, offset=self.position)


def read_mean_image(path: str | os.PathLike[str]) -> np.ndarray:
    """Read a mean image, float32 (channels, height, width), of MXNet or `write_mean_image`.

    The file, of ``mx.nd.save``, holds exactly one dense array of any name.
    """
    path = os.fspath(path)
    with open_regular(path) as file:
        fields = _Fields(path, file.read())
    magic, _, count = fields.take("QQQ")
    if magic != LIST_MAGIC:
        raise fields.error("this is not a file of arrays as MXNet writes them")
    if count != 1:
        raise fields.error(f"the file holds {count} arrays, a mean image is exactly one")
    (magic,) = fields.take("I")
    if magic in (ARRAY_MAGIC_V2, ARRAY_MAGIC_V3):
        (storage,) = fields.take("i")
        if storage != 0:
            raise fields.error("the array is sparse: a mean image must be dense")
    if magic in (ARRAY_MAGIC_V1, ARRAY_MAGIC_V2, ARRAY_MAGIC_V3):
        (rank,) = fields.take("I")
        size = "q"
    else:  # the oldest files begin with the rank
        rank, size = magic, "I"
    if rank != 3:
        raise fields.error(
            f"the array has {rank} axes: a mean image has channels, height and width"
        )
    shape = fields.take(3 * size)
    _, _, code = fields.take("iii")
    if code not in DTYPES or min(shape) < 1:
        raise fields.error("the array has an unknown element type or an empty shape")
    dtype = np.dtype(DTYPES[code])
    data = fields.bytes(int(np.prod(shape, dtype=object)) * dtype.itemsize)
    (names,) = fields.take("Q")  # how MXNet notices that the end is missing
    for _ in range(names):
        fields.bytes(*fields.take("Q"))
    return np.frombuffer(data, dtype).reshape(shape).astype(np.float32)


def write_mean_image(path: str | os.PathLike[str], image: np.ndarray) -> None:
    """Write a mean image (channels, height, width) as float32, as MXNet does.

    The file is replaced only when everything is written.
    """
    image = np.ascontiguousarray(image, "<f4")
    if image.ndim != 3:
        raise ValueError(f"a mean image has 3 axes, not {image.ndim}")
    name = b"mean_img"
    content = b"".join(
        [
            struct.pack("<QQQ", LIST_MAGIC, 0, 1),
            struct.pack("<IiI3qiii", ARRAY_MAGIC_V2, 0, 3, *image.shape, 1, 0, 0),
            image.tobytes(),
            struct.pack("<QQ", 1, len(name)),
            name,
        ]
    )
    with AtomicOutput(path) as output:
        output.write(content)
