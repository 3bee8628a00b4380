"""Look at the structure of JPEG, PNG and PNM files: size, channels, orientation, the end.

This finds truncated files and tells whether a file can be stored untouched.  No pixel is decoded.
"""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple

from recordio.errors import ImageDecodeError
from recordio.formats import pnm

__all__ = ["ImageHeader", "read_image_header"]

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
PNG_CHANNELS = {0: 1, 2: 3, 3: 3, 4: 2, 6: 4}  # by colour type; a palette gives colours
JPEG_EOI = b"\xff\xd9"
JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
JPEG_COMMON_FRAMES = frozenset([0xC0, 0xC1, 0xC2])  # the others few decoders can read
JPEG_WITHOUT_LENGTH = frozenset([0x01, *range(0xD0, 0xD9)])
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


def read_image_header(data: bytes) -> ImageHeader | None:
    """Read the header of a JPEG, PNG or PNM file and check that the file is complete.

    A JPEG file must have the marker that ends the image, a PNG file the right checksums of all that
    is decoded.  None stands for other formats, for a JPEG of unusual structure and for PNM other
    than P5 and P6 with a largest value of 255: only a decoder can tell.
    """
    if not data:
        raise ImageDecodeError("the file is empty")
    if data.startswith(b"\xff\xd8\xff"):
        return _read_jpeg(data)
    if data.startswith(PNG_SIGNATURE):
        return _read_png(data)
    if data.startswith((b"P5", b"P6")) and (raw := pnm.header(data, max_pixels=ANY_SIZE)):
        return ImageHeader("raw", raw.width, raw.height, raw.channels, 8, True)
    return None


def _read_jpeg(data: bytes) -> ImageHeader | None:
    frame = None
    plain = common = True
    position, size = 2, len(data)
    while position + 4 <= size:
        if data[position] != 0xFF:
            return None  # bytes between segments: decoders skip them with a warning
        marker = data[position + 1]
        if marker == 0xFF:  # a fill byte
            position += 1
            continue
        if marker in JPEG_WITHOUT_LENGTH:
            position += 2
            continue
        if marker == 0xD9:
            raise ImageDecodeError("the JPEG file ends before its image data")
        length = data[position + 2] << 8 | data[position + 3]
        if length < 2:
            return None
        body = position + 4
        position += 2 + length
        if marker in JPEG_FRAMES:
            if length < 8 or position > size:
                break
            frame = struct.unpack_from(">BHHB", data, body)
            common = marker in JPEG_COMMON_FRAMES
        elif marker == 0xE1 and data.startswith(b"Exif\0\0", body):
            plain = plain and _is_upright(data[body + 6 : position])
        elif marker == 0xDA:
            # Entropy-coded data never holds this marker, so a complete file is known by it; what
            # cameras append behind the image does not matter.
            if data.rfind(JPEG_EOI, position) < 0:
                break
            if frame is None or 0 in frame or not common:
                return None
            bits, height, width, channels = frame
            return ImageHeader(".jpg", width, height, channels, bits, plain)
    raise ImageDecodeError("the JPEG file is truncated")


def _read_png(data: bytes) -> ImageHeader:
    header = None
    plain, has_pixels = True, False
    position, size = len(PNG_SIGNATURE), len(data)
    view = memoryview(data)
    while position + 12 <= size:
        length = int.from_bytes(view[position : position + 4], "big")
        end = position + 12 + length
        if end > size:
            break
        kind = bytes(view[position + 4 : position + 8])
        body = position + 8
        checksum = int.from_bytes(view[end - 4 : end], "big")
        if zlib.crc32(view[position + 4 : end - 4]) != checksum:
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
        position = end
    raise ImageDecodeError("the PNG file is truncated")


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
