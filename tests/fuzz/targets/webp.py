"""WebP: our decoder beside OpenCV's, and regions beside the whole."""

from __future__ import annotations

import random

import numpy as np

from faces.codecs import decode_webp
from recordio.errors import ImageDecodeError

from .mutate import change_bytes, change_number, move_item
from .target import Target, drawing, most_pixels


def chunks(data: bytes) -> list[bytes]:
    """The chunks behind the head of a WebP file, as far as their lengths lead."""
    pieces, at = [], 12
    while at < len(data):
        size = int.from_bytes(data[at + 4 : at + 8], "little")
        end = at + 8 + size + size % 2
        pieces.append(data[at:end])
        at = end
    return pieces or [b""]


def change_webp(data: bytes, draw: random.Random) -> bytes:
    """A chunk gone, twice, elsewhere, or another number in it."""
    pieces = chunks(data)
    if draw.randrange(3) == 0:
        pieces = move_item(pieces, draw)
    else:
        number = draw.randrange(len(pieces))
        if draw.random() < 0.5:
            at = draw.choice([4, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17])
            pieces[number] = change_number(pieces[number], draw, at)
        else:
            pieces[number] = change_bytes(pieces[number], draw)
    return data[:12] + b"".join(pieces)


def mend_webp(data: bytes) -> bytes:
    """The length in the head becomes right."""
    return data[:4] + max(0, len(data) - 8).to_bytes(4, "little") + data[8:]


def check_webp(data: bytes) -> None:
    """A region is part of the whole, which is OpenCV's where both decode it."""
    import cv2

    draw = drawing(data)
    channels, limit = draw.choice([3, 3, 1, 4]), most_pixels(data)
    whole = decode_webp(data, channels, max_pixels=limit)
    if whole is None:
        return
    height, width = whole.shape[:2]
    assert width * height <= limit
    for _ in range(3):
        x, y = draw.randrange(width), draw.randrange(height)
        region = x, y, draw.randint(1, width - x), draw.randint(1, height - y)
        part = decode_webp(data, channels, region, max_pixels=limit)
        assert np.array_equal(part, whole[y : y + region[3], x : x + region[2]]), region
    turned = decode_webp(data, channels, upright=True, max_pixels=limit)
    assert turned is not None and turned.size == whole.size
    flags = cv2.IMREAD_UNCHANGED if channels == 4 else cv2.IMREAD_COLOR
    flags = cv2.IMREAD_GRAYSCALE if channels == 1 else flags
    theirs = cv2.imdecode(
        np.frombuffer(data, np.uint8),
        flags if channels == 4 else flags | cv2.IMREAD_IGNORE_ORIENTATION,
    )
    # OpenCV takes the flag of the head for transparency, libwebp the chunk.
    if theirs is None or theirs.size != whole.size:
        return
    theirs = theirs.reshape(whole.shape)
    theirs = theirs[..., [2, 1, 0, 3][:channels]] if channels > 1 else theirs
    assert np.array_equal(whole, theirs)


WEBP = Target(
    "webp",
    check_webp,
    change_webp,
    mend_webp,
    words=(b"RIFF", b"WEBP", b"VP8 ", b"VP8L", b"VP8X", b"ALPH", b"EXIF", b"ANIM", b"ICCP"),
    errors=(ImageDecodeError,),
)
