"""Structure of JPEG, PNG and PNM files: size, channels, orientation, and the end of the file.

This finds truncated files and tells whether a file can be stored untouched.  No pixel is decoded.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any, NamedTuple

from recordio.errors import ImageDecodeError
from recordio.formats import pnm
from recordio.formats.headers import JPEG_FRAMES, PNG_CHANNELS, png_chunks
from recordio.formats.jpeg_markers import segments

__all__ = ["ANY_SIZE", "ImageHeader", "jpeg_header", "png_header", "pnm_header"]

JPEG_COMMON_FRAMES = frozenset([0xC0, 0xC1, 0xC2])  # the others few decoders can read
JPEG_EOI, JPEG_SOS, JPEG_APP1 = 0xD9, 0xDA, 0xE1
EXIF_ORIENTATION = 0x0112
ANY_SIZE = 2**62


class ImageHeader(NamedTuple):
    """Facts from the header of an image."""

    format: str  # ".jpg", ".png" or, for binary PNM with 8 bits, "raw"
    width: int  # as stored, before any EXIF orientation
    height: int
    channels: int
    bits: int  # of a sample
    #: The stored pixels are everything: upright, no palette, no transparent colour, no animation.
    plain: bool


def jpeg_header(data: bytes) -> ImageHeader | None:
    """Read a JPEG file that has the marker at its end; None for one of unusual structure."""
    if data[:3] != b"\xff\xd8\xff":
        return None
    frame = None
    plain = common = True
    for marker, begin, end, gap in segments(data):
        if marker == JPEG_EOI:
            raise ImageDecodeError("the JPEG file ends before its image data")
        if gap or (end < begin <= len(data)):
            return None  # bytes between segments: decoders skip them with a warning
        if marker in JPEG_FRAMES:
            if end - begin < 6:
                break
            frame = struct.unpack_from(">BHHB", data, begin)
            common = marker in JPEG_COMMON_FRAMES
        elif marker == JPEG_APP1 and data.startswith(b"Exif\0\0", begin):
            plain = plain and _is_upright(data[begin + 6 : end])
        elif marker == JPEG_SOS:
            # Entropy-coded data never holds this marker, so a complete file is known by it; what
            # cameras append behind the image does not matter.
            if data.rfind(b"\xff\xd9", end) < 0:
                break
            if frame is None or 0 in frame or not common:
                return None
            bits, height, width, channels = frame
            return ImageHeader(".jpg", width, height, channels, bits, plain)
    raise ImageDecodeError("the JPEG file is truncated")


def png_header(data: bytes) -> ImageHeader:
    """Read a PNG file that has the right checksums of all that is decoded."""
    header = None
    plain, has_pixels = True, False
    view = memoryview(data)
    for kind, at, length in png_chunks(view):
        body, end = at + 8, at + 12 + length
        if end > len(view):
            break
        checksum = int.from_bytes(view[end - 4 : end], "big")
        if zlib.crc32(view[at + 4 : end - 4]) != checksum:
            if kind[:1].isupper():
                name = kind.decode("latin-1")
                raise ImageDecodeError(f"the PNG file is damaged: wrong checksum in {name}")
            plain = False  # decoders pass over a damaged chunk that is not critical
        if kind == b"IHDR" and length == 13:
            header = struct.unpack_from(">IIBB", data, body)
        elif kind in (b"tRNS", b"acTL"):
            plain = False
        elif kind == b"eXIf":
            plain = plain and _is_upright(data[body : end - 4])
        elif kind == b"IDAT":
            has_pixels = True
        elif kind == b"IEND":
            if header is None or not has_pixels:
                raise ImageDecodeError("the PNG file is damaged: it has no image data")
            width, height, bits, colour = header
            plain = plain and colour != 3
            return ImageHeader(".png", width, height, PNG_CHANNELS.get(colour, 0), bits, plain)
    raise ImageDecodeError("the PNG file is truncated")


def pnm_header(data: Any) -> ImageHeader | None:
    """Read a binary PNM file; None for one whose largest value is not 255."""
    raw = pnm.header(data, max_pixels=ANY_SIZE)
    return raw and ImageHeader("raw", raw.width, raw.height, raw.channels, 8, True)


def _is_upright(exif: bytes) -> bool:
    """Return True if EXIF data asks for no rotation; False when that cannot be told."""
    order = {b"II*\0": "<", b"MM\0*": ">"}.get(exif[:4])
    if order is None or len(exif) < 8:
        return False
    (start,) = struct.unpack_from(order + "I", exif, 4)
    if start + 2 > len(exif):
        return False
    (count,) = struct.unpack_from(order + "H", exif, start)
    for entry in range(start + 2, start + 2 + 12 * count, 12):
        if entry + 12 > len(exif):
            return False
        tag, _, _, value = struct.unpack_from(order + "HHIH", exif, entry)
        if tag == EXIF_ORIENTATION:
            return value == 1
    return True
