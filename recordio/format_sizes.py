"""Width and height in the headers of WebP, AVIF, JPEG XL and TIFF files.

Each function gets a file that begins as one of its format does, and returns None where the header
is not as it should be.  Nothing is decoded here.
"""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["avif_size", "jxl_size", "tiff_size", "webp_size"]

Size = tuple[int, int] | None

#: Width to height of a JPEG XL image that does not name its width.
_JXL_RATIOS = ((1, 1), (6, 5), (4, 3), (3, 2), (16, 9), (5, 4), (2, 1))
#: Bits of a number in the header of a JPEG XL image, chosen by two bits in front of it.
_JXL_BITS = (9, 13, 18, 30)


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


def avif_size(view: memoryview) -> Size:
    """The size of the largest picture in the file: others are parts or previews of it."""
    found = [
        (int.from_bytes(size[4:8], "big"), int.from_bytes(size[8:12], "big"))
        for meta in _boxes(view, b"meta")
        for properties in _boxes(meta[4:], b"iprp")
        for container in _boxes(properties, b"ipco")
        for size in _boxes(container, b"ispe")
        if len(size) >= 12
    ]
    return max(found, key=lambda size: size[0] * size[1], default=None)


def _boxes(view: memoryview, wanted: bytes) -> Iterator[memoryview]:
    """The contents of the boxes of one kind, as far as the boxes in front of them are sound."""
    at = 0
    while at + 8 <= len(view):
        size, start = int.from_bytes(view[at : at + 4], "big"), at + 8
        if size == 1:
            size, start = int.from_bytes(view[at + 8 : at + 16], "big"), at + 16
        end = len(view) if size == 0 else at + size
        if end < start:
            return
        if view[at + 4 : at + 8] == wanted:
            yield view[start:end]
        at = end


def jxl_size(view: memoryview) -> Size:
    """The size in a bare stream, or in the first one of a container."""
    if view[:2] != b"\xff\x0a":
        parts = [*_boxes(view, b"jxlc"), *(part[4:] for part in _boxes(view, b"jxlp"))]
        if not parts or parts[0][:2] != b"\xff\x0a":
            return None
        view = parts[0]
    if len(view) < 12:
        return None
    bits = int.from_bytes(view[2:12], "little")

    def number(count: int) -> int:
        nonlocal bits
        value, bits = bits & (1 << count) - 1, bits >> count
        return value

    in_eights = number(1)

    def side() -> int:
        return 8 * (1 + number(5)) if in_eights else 1 + number(_JXL_BITS[number(2)])

    height = side()
    ratio = number(3)
    if ratio == 0:
        return side(), height
    across, down = _JXL_RATIOS[ratio - 1]
    return height * across // down, height


def tiff_size(view: memoryview) -> Size:
    """The size of the first picture; of a tag that is there twice libtiff takes the first."""
    order = "little" if view[:2] == b"II" else "big"

    def number(at: int, count: int) -> int:
        return int.from_bytes(view[at : at + count], order)  # type: ignore[arg-type]

    at = number(4, 4)
    sides: dict[int, int] = {}
    for entry in range(at + 2, min(at + 2 + 12 * number(at, 2), len(view) - 11), 12):
        tag, kind = number(entry, 2), number(entry + 2, 2)
        if tag in (256, 257) and kind not in (3, 4):
            return None
        if tag in (256, 257):
            sides.setdefault(tag, number(entry + 8, 2 if kind == 3 else 4))
    return (sides[256], sides[257]) if len(sides) == 2 else None
