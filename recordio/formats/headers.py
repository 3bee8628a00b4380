"""Headers of image files: sizes and orientations, and the chunks of PNG.

Nothing is decoded here: a few bytes can announce millions of pixels.  Each function gets a file
that begins as one of its format does; a size is None where the header is not as it should be.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterator

from recordio.errors import ImageDecodeError
from recordio.formats.avif import boxes
from recordio.formats.jpeg_markers import segments, tiff_orientation

__all__ = [
    "FIRST_TURNED",
    "JPEG_FRAMES",
    "PNG_CHANNELS",
    "Facts",
    "check_chunks",
    "check_jpeg_end",
    "jpeg_facts",
    "jxl_orientation",
    "jxl_size",
    "png_chunks",
    "png_facts",
    "png_orientation",
    "png_size",
    "tiff_size",
    "tiff_tiles",
    "webp_orientation",
    "webp_size",
]

Size = tuple[int, int] | None
#: Bits of a stored value, channels, and whether the picture comes in passes.
Facts = tuple[int, int, bool] | None

#: Orientations from here on exchange width and height.
FIRST_TURNED = 5

JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
PNG_CHANNELS = {0: 1, 2: 3, 3: 3, 4: 2, 6: 4}  # by colour type; a palette gives colours
_JPEG_EOI, _JPEG_SOS = b"\xff\xd9", 0xDA
_PNG_START = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
#: Bytes in the chunks of animations that OpenCV reads without looking how many there are.
_PNG_LENGTHS = {b"acTL": 8, b"fcTL": 26}
#: The bit of a WebP file that announces EXIF data, and where it is.
_WEBP_EXIF, _WEBP_FLAGS = 8, 20
#: Width to height of a JPEG XL image that does not name its width.
_JXL_RATIOS = ((1, 1), (6, 5), (4, 3), (3, 2), (16, 9), (5, 4), (2, 1))
#: Bits of a number in the header of a JPEG XL image, chosen by two bits in front of it.
_JXL_BITS = (9, 13, 18, 30)
#: The size and the orientation of a JPEG XL image end before; no image has fewer bytes than those.
_JXL_BYTES, _JXL_LEAST = 16, 12
#: Bytes of the kinds of whole numbers in TIFF files.
_TIFF_WHOLE = {1: 1, 3: 2, 4: 4, 6: 1, 8: 2, 9: 4}


# ---- JPEG, whose markers `jpeg_markers` reads


def check_jpeg_end(view: memoryview) -> None:
    """Refuse a JPEG file without a marker of its end: OpenCV would fill up with grey.

    Coded data contains no marker by chance; a thumbnail in a segment before it may.
    """
    scans = (end for marker, _, end, _ in segments(view) if marker == _JPEG_SOS)
    if view[:3] == b"\xff\xd8\xff" and bytes(view).find(_JPEG_EOI, next(scans, 2)) < 0:
        raise ImageDecodeError("the JPEG image is truncated; pack it again from its source")


def jpeg_facts(view: memoryview) -> Facts:
    """Return the facts in the first frame header."""
    for marker, begin, end, _ in segments(view):
        if marker in JPEG_FRAMES and end - begin >= 6:
            return view[begin], view[begin + 5], marker & 3 == 2
    return None


# ---- PNG


def png_size(view: memoryview) -> Size:
    """Return the size in the first chunk, which is always the same."""
    if len(view) < 24 or view[:16] != _PNG_START:
        return None
    return int.from_bytes(view[16:20], "big"), int.from_bytes(view[20:24], "big")


def png_chunks(view: memoryview) -> Iterator[tuple[bytes, int, int]]:
    """Yield kind, offset and announced length of each chunk, as far as the lengths lead.

    The offset is that of its first byte; the length leaves out the 12 bytes around its content.
    """
    at = 8
    while at + 4 <= len(view):
        size = int.from_bytes(view[at : at + 4], "big")
        yield bytes(view[at + 4 : at + 8]), at, size
        at += 12 + size


def check_chunks(view: memoryview) -> None:
    """Refuse a PNG file with a chunk that is longer than what is left of the file.

    To be called before OpenCV decodes.  From version 4.11 on it takes memory for as many bytes as a
    chunk announces, up to 4 GiB, and version 4.11 writes beyond it where that number overflows.
    """
    has_pixels = False
    for kind, at, length in png_chunks(view):
        name = kind.decode("ascii", "backslashreplace")
        if length > len(view) - at - 12:
            raise ImageDecodeError(
                f"the PNG image is truncated (its chunk {name} at byte {at} has {length} bytes, "
                f"and the file has {len(view)}); pack it again from its source"
            )
        if length != _PNG_LENGTHS.get(kind, length):
            raise ImageDecodeError(
                f"the PNG image is damaged (its chunk {name} at byte {at} has {length} bytes, not "
                f"{_PNG_LENGTHS[kind]}); pack it again from its source"
            )
        has_pixels |= kind == b"IDAT"
        # Without pixels OpenCV goes on after the end; it does not decode the second frame.
        if has_pixels and kind in (b"IEND", b"fcTL"):
            return


def png_facts(view: memoryview) -> Facts:
    """Return the facts in the first chunk; a palette holds colours, some of them transparent."""
    if png_size(view) is None or len(view) < 29:
        return None
    bits, colour = view[24], view[25]
    in_front = itertools.takewhile(_leads, png_chunks(view))
    transparent = any(kind == b"tRNS" for kind, _, _ in in_front)
    channels = PNG_CHANNELS.get(colour, 0) + (transparent and colour in (0, 2, 3))
    return (8 if colour == 3 else bits), channels, view[28] == 1


def _leads(chunk: tuple[bytes, int, int]) -> bool:
    """Return True for a chunk in front of the pixels."""
    return chunk[0] not in (b"IDAT", b"IEND")


def png_orientation(view: memoryview) -> int:
    """Heed the first sound chunk of EXIF data, which may stand behind the pixels."""
    for kind, at, size in png_chunks(view):
        if kind == b"IEND":
            break
        end = at + 8 + size
        if kind == b"eXIf" and zlib.crc32(view[at + 4 : end]) == int.from_bytes(
            view[end : end + 4], "big"
        ):
            return tiff_orientation(view[at + 8 : end])
    return 0


# ---- WebP


def webp_size(view: memoryview) -> Size:
    """Return the size of the picture, or of the canvas of an animation."""
    kind, start = bytes(view[12:16]), view[20:30]
    if len(start) < 10:
        return None
    if kind == b"VP8 " and start[3:6] == b"\x9d\x01\x2a":
        width, height = (int.from_bytes(start[at : at + 2], "little") & 0x3FFF for at in (6, 8))
        return width, height
    if kind == b"VP8L" and start[0] == 0x2F:
        bits = int.from_bytes(start[1:5], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if kind == b"VP8X":
        return 1 + int.from_bytes(start[4:7], "little"), 1 + int.from_bytes(start[7:10], "little")
    return None


def webp_orientation(view: memoryview) -> int:
    """Heed the EXIF data of a file that announces some."""
    at = 12
    announced = len(view) > _WEBP_FLAGS and view[_WEBP_FLAGS] & _WEBP_EXIF
    if view[at : at + 4] != b"VP8X" or not announced:
        return 0
    while at + 8 <= len(view):
        size = int.from_bytes(view[at + 4 : at + 8], "little")
        if view[at : at + 4] == b"EXIF":
            return tiff_orientation(view[at + 8 : at + 8 + size])
        at += 8 + size + size % 2
    return 0


# ---- JPEG XL


def jxl_size(view: memoryview) -> Size:
    """Return the size in a bare stream, or in the first one of a container."""
    header = _jxl_header(view)
    return None if header is None else header[0]


def jxl_orientation(view: memoryview) -> int:
    """Return the orientation of the picture and of its EXIF data together.

    A decoder turns it by the first, and who heeds EXIF data does not do it again.  In a file made
    of a JPEG file both say the same, and it is turned once.
    """
    header = _jxl_header(view)
    stored = 1 if header is None else header[1]
    if view[:2] == b"\xff\x0a" or any(True for _ in boxes(view, b"jbrd")):
        return stored
    exif = next(boxes(view, b"Exif"), view[:0])
    named = tiff_orientation(exif[4:]) or tiff_orientation(exif) or 1
    if stored >= FIRST_TURNED and named >= FIRST_TURNED:
        return 1  # turned there and back
    return max(stored, named)


def _jxl_header(view: memoryview) -> tuple[tuple[int, int], int] | None:
    """Return width and height, and the orientation."""
    start = bytes(view[:_JXL_BYTES])
    if start[:2] != b"\xff\x0a":
        parts = [*boxes(view, b"jxlc"), *(part[4:] for part in boxes(view, b"jxlp"))]
        start = b"".join(bytes(part[:_JXL_BYTES]) for part in parts[:_JXL_BYTES])[:_JXL_BYTES]
    if start[:2] != b"\xff\x0a" or len(start) < _JXL_LEAST:
        return None
    bits = int.from_bytes(start[2:], "little")

    def number(count: int) -> int:
        nonlocal bits
        value, bits = bits & (1 << count) - 1, bits >> count
        return value

    in_eights = number(1)

    def side() -> int:
        return 8 * (1 + number(5)) if in_eights else 1 + number(_JXL_BITS[number(2)])

    height = side()
    if ratio := number(3):
        across, down = _JXL_RATIOS[ratio - 1]
        width = height * across // down
    else:
        width = side()
    extra_fields = not number(1) and number(1)
    return (width, height), 1 + number(3) if extra_fields else 1


# ---- TIFF


def tiff_size(view: memoryview) -> Size:
    """Return the size of the first picture; libtiff takes the first of two equal tags."""
    return _tiff_sides(view, 256, 257)


def tiff_tiles(view: memoryview) -> list[tuple[int, int]]:
    """Return the size of its tiles, if any: they take memory however small the picture is."""
    tile = _tiff_sides(view, 322, 323)
    return [] if tile is None else [tile]


def _tiff_sides(view: memoryview, *tags: int) -> Size:
    """Return the numbers in two tags."""
    order = "little" if view[:2] == b"II" else "big"

    def number(at: int, count: int) -> int:
        return int.from_bytes(view[at : at + count], order)  # type: ignore[arg-type]

    at = number(4, 4)
    sides: dict[int, int] = {}
    for entry in range(at + 2, min(at + 2 + 12 * number(at, 2), len(view) - 11), 12):
        tag, kind = number(entry, 2), number(entry + 2, 2)
        if tag in tags and tag not in sides:
            if kind not in _TIFF_WHOLE:
                return None
            sides[tag] = number(entry + 8, _TIFF_WHOLE[kind])
    return (sides[tags[0]], sides[tags[1]]) if len(sides) == 2 else None
