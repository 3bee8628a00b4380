"""Width and height in the headers of WebP, JPEG XL and TIFF files.

Each function gets a file that begins as one of its format does, and returns None where the header
is not as it should be.  Nothing is decoded here.
"""

from __future__ import annotations

from recordio.formats.avif import boxes
from recordio.formats.jpeg_limits import tiff_orientation

__all__ = ["jxl_is_turned", "jxl_size", "tiff_size", "tiff_tile", "webp_size"]

Size = tuple[int, int] | None

#: Width to height of a JPEG XL image that does not name its width.
_JXL_RATIOS = ((1, 1), (6, 5), (4, 3), (3, 2), (16, 9), (5, 4), (2, 1))
#: Bits of a number in the header of a JPEG XL image, chosen by two bits in front of it.
_JXL_BITS = (9, 13, 18, 30)
#: The size and the orientation of a JPEG XL image end before; no image has fewer bytes than those.
_JXL_BYTES, _JXL_LEAST = 16, 12
#: Bytes of the kinds of whole numbers in TIFF files.
_TIFF_WHOLE = {1: 1, 3: 2, 4: 4, 6: 1, 8: 2, 9: 4}


def webp_size(view: memoryview) -> Size:
    """The size of the picture, or of the canvas of an animation."""
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


def jxl_size(view: memoryview) -> Size:
    """The size in a bare stream, or in the first one of a container."""
    header = _jxl_header(view)
    return None if header is None else header[0]


def jxl_is_turned(view: memoryview) -> bool:
    """Whether a decoder exchanges these sides, and those who heed EXIF data do not do it again."""
    header = _jxl_header(view)
    turned = header is not None and header[1] >= 5
    if view[:2] == b"\xff\x0a" or any(True for _ in boxes(view, b"jbrd")):
        return turned  # of a JPEG file both say the same, and it is turned once
    exif = next(boxes(view, b"Exif"), view[:0])
    return turned != ((tiff_orientation(exif[4:]) or tiff_orientation(exif)) >= 5)


def _jxl_header(view: memoryview) -> tuple[tuple[int, int], int] | None:
    """Width and height, and the orientation."""
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


def tiff_size(view: memoryview) -> Size:
    """The size of the first picture; of a tag that is there twice libtiff takes the first."""
    return _tiff_sides(view, 256, 257)


def tiff_tile(view: memoryview) -> Size:
    """The size of its tiles, for which decoders take memory however small the picture is."""
    return _tiff_sides(view, 322, 323)


def _tiff_sides(view: memoryview, *tags: int) -> Size:
    """The numbers in two tags."""
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
