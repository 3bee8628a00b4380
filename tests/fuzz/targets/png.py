"""PNG: our decoder beside OpenCV's."""

from __future__ import annotations

import random
import zlib

import numpy as np

from faces.codecs import decode_png
from recordio.errors import ImageDecodeError

from .mutate import change_bytes, change_number, move_item
from .target import Target, drawing, most_pixels


def png_chunks(data: bytes) -> list[bytes]:
    """The chunks of a PNG, lengths and checksums included."""
    pieces, at = [], 8
    while at < len(data):
        end = at + 12 + int.from_bytes(data[at : at + 4], "big")
        pieces.append(data[at:end])
        at = end
    return pieces or [b""]


def made_chunk(kind: bytes, content: bytes) -> bytes:
    """A chunk with its length and checksum."""
    checksum = zlib.crc32(kind + content).to_bytes(4, "big")
    return len(content).to_bytes(4, "big") + kind + content + checksum


def change_png(data: bytes, draw: random.Random) -> bytes:
    """A chunk gone, twice, elsewhere, or another number in it; other formats: a number."""
    if not data.startswith(b"\x89PNG"):
        return change_number(data, draw, draw.randrange(min(len(data), 60) + 1))
    pieces = png_chunks(data)
    kind = draw.randrange(3)
    if kind == 0:
        return data[:8] + b"".join(move_item(pieces, draw))
    number = draw.randrange(len(pieces))
    if kind == 1:
        pieces[number] = change_number(pieces[number], draw, draw.choice([8, 12, 16, 17, 18, 20]))
    else:
        pieces[number] = change_bytes(pieces[number], draw)
    return data[:8] + b"".join(pieces)


def mend_png(data: bytes) -> bytes:
    """Lengths that are wrong stay; checksums become right."""
    if not data.startswith(b"\x89PNG"):
        return data
    return data[:8] + b"".join(
        piece[:-4] + zlib.crc32(piece[4:-4]).to_bytes(4, "big") if len(piece) >= 12 else piece
        for piece in png_chunks(data)
    )


def change_rows(data: bytes, draw: random.Random) -> bytes:
    """What was compressed changed, and compressed again; or `change_png`."""
    pieces = png_chunks(data)
    coded = [i for i, piece in enumerate(pieces) if piece[4:8] == b"IDAT"]
    if not coded or draw.random() < 0.5:
        return change_png(data, draw)
    try:
        rows = zlib.decompress(b"".join(pieces[i][8:-4] for i in coded))
    except zlib.error:
        return change_png(data, draw)
    packed = zlib.compress(change_bytes(rows, draw), draw.randrange(10))
    pieces[coded[0]] = made_chunk(b"IDAT", packed)
    for i in reversed(coded[1:]):
        del pieces[i]
    return data[:8] + b"".join(pieces)


#: Chunks that OpenCV heeds, or takes memory for.
LEFT_OUT = (b"acTL", b"fcTL", b"fdAT", b"eXIf", b"gAMA", b"sRGB", b"iCCP", b"cICP", b"tRNS", b"Raw")


def check_png(data: bytes) -> None:
    """The pixels of OpenCV, where it reads the file as well; a region is part of the whole."""
    import cv2

    draw = drawing(data)
    channels, limit = draw.choice([3, 3, 1, 4]), most_pixels(data)
    flags = {1: cv2.IMREAD_GRAYSCALE, 3: cv2.IMREAD_COLOR, 4: cv2.IMREAD_UNCHANGED}
    message = ""
    try:
        whole = decode_png(data, channels, max_pixels=limit)
    except ImageDecodeError as error:
        whole, message = None, str(error)
    if "large" in message or (whole is None and not message):
        return
    if whole is None:
        return
    theirs = None
    if not any(word in data for word in LEFT_OUT):
        theirs = cv2.imdecode(np.frombuffer(data, np.uint8), flags[channels])
    if theirs is not None and theirs.size == whole.size:
        if theirs.dtype == np.uint16:
            theirs = (theirs >> 8).astype(np.uint8)
        theirs = theirs.reshape(whole.shape)
        theirs = theirs[..., [2, 1, 0, 3][:channels]] if channels > 1 else theirs
        assert np.array_equal(whole, theirs)
    height, width = whole.shape[:2]
    x, y = draw.randrange(width), draw.randrange(height)
    region = x, y, draw.randint(1, width - x), draw.randint(1, height - y)
    for vectors in (True, False):
        part = decode_png(data, channels, region, vectors=vectors, max_pixels=limit)
        assert np.array_equal(part, whole[y : y + region[3], x : x + region[2]]), region
    deep = decode_png(data, channels, region, deep=True, max_pixels=limit)
    assert np.array_equal(deep >> 8 if deep.dtype == np.uint16 else deep, part)


PNG = Target(
    "png",
    check_png,
    change_rows,
    mend_png,
    words=(b"IHDR", b"tRNS", b"PLTE", b"IDAT", b"IEND", b"eXIf", b"gAMA", b"bKGD"),
)
