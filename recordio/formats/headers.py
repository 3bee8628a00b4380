"""Headers of image files: size, orientation, bits and channels, by the same reader for all.

Sizes of packs, buckets, limits, boxes and decoders ask these readers, so they cannot differ.
Nothing is decoded here: a few bytes can announce millions of pixels.  A reader gets a file that
begins as one of its format does, and returns None where the header is not as it should be.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from recordio.formats.avif import avif_picture, boxes
from recordio.formats.jpeg_markers import exif_orientation, jpeg_facts
from recordio.formats.png.png import png_header
from recordio.formats.pnm import HEADER

#: Orientations from here on exchange width and height.
FIRST_TURNED = 5

#: Bits of a WebP file that announce EXIF data and transparency, and where they are.
_WEBP_EXIF, _WEBP_ALPHA, _WEBP_FLAGS = 8, 16, 20
#: Width to height of a JPEG XL image that does not name its width.
_JXL_RATIOS = ((1, 1), (6, 5), (4, 3), (3, 2), (16, 9), (5, 4), (2, 1))
#: Bits of a number in the header of a JPEG XL image, chosen by two bits in front of it.
_JXL_BITS = (9, 13, 18, 30)
#: The size and the orientation of a JPEG XL image end before; no image has fewer bytes than those.
_JXL_BYTES, _JXL_LEAST = 16, 12
#: Bytes of the kinds of whole numbers in TIFF files.
_TIFF_WHOLE = {1: 1, 3: 2, 4: 4, 6: 1, 8: 2, 9: 4, 13: 4, 16: 8, 17: 8, 18: 8}
_TIFF_SIGNED = (6, 8, 9, 17)
_TIFF_TAGS = {
    256: "width",
    257: "height",
    258: "bits",
    259: "compression",
    262: "photometric",
    274: "orientation",
    277: "samples",
    322: "tile_width",
    323: "tile_height",
    338: "extra",
    339: "numbers",
}
_TIFF_PALETTE = 3
_TIFF_NUMBERS = {1: "u", 2: "i", 3: "f", 4: "u"}
_PFM = re.compile(rb"P([fF])\s+(\d{1,10})\s+(\d{1,10})\s+[-+.\deE]+\s")
_HDR = re.compile(rb"\n([-+])Y (\d{1,10}) ([-+])X (\d{1,10})\n")
#: Bytes in which the header of a text format has to end.
_TEXT_HEADER = 4096


class ImageHeader(NamedTuple):
    """Facts from the header of an image; bits and channels are None where it does not say them."""

    width: int  # as stored, before the orientation
    height: int
    orientation: int = 1  # EXIF, 1 to 8: how decoders turn what is stored
    bits: int | None = None  # of a stored value
    channels: int | None = None
    progressive: bool = False
    #: The stored pixels are everything: no palette, no transparent colour, no animation.
    plain: bool = False
    #: What values are: "u" for whole numbers from 0 on, "i" with a sign, "f" floating point.
    numbers: str = "u"

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the upright image."""
        turned = self.orientation >= FIRST_TURNED
        return (self.height, self.width) if turned else (self.width, self.height)


def read_jpeg(view: memoryview) -> ImageHeader | None:
    """Read the markers in front of the first scan."""
    facts = jpeg_facts(view)
    return ImageHeader(*facts, plain=True) if facts and facts[0] and facts[1] else None


def read_png(view: memoryview) -> ImageHeader | None:
    """Read all chunks but those of the pixels."""
    facts = png_header(view)
    return facts and ImageHeader(*facts)


def read_webp(view: memoryview) -> ImageHeader | None:
    """Read the size of the picture, or of the canvas of an animation, and the EXIF data."""
    kind, start = bytes(view[12:16]), view[20:30]
    if len(start) < 10:
        return None
    if kind == b"VP8 " and start[3:6] == b"\x9d\x01\x2a":
        width, height = (int.from_bytes(start[at : at + 2], "little") & 0x3FFF for at in (6, 8))
        return ImageHeader(width, height, 1, 8, 3)
    if kind == b"VP8L" and start[0] == 0x2F:
        bits = int.from_bytes(start[1:5], "little")
        channels = 4 if bits >> 28 & 1 else 3
        return ImageHeader(1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF), 1, 8, channels)
    if kind == b"VP8X":
        width, height = (1 + int.from_bytes(start[at : at + 3], "little") for at in (4, 7))
        channels = 4 if view[_WEBP_FLAGS] & _WEBP_ALPHA else 3
        return ImageHeader(width, height, _webp_orientation(view), 8, channels)
    return None


def _webp_orientation(view: memoryview) -> int:
    """Heed the EXIF data of a file that announces some."""
    at = 12
    while view[_WEBP_FLAGS] & _WEBP_EXIF and at + 8 <= len(view):
        size = int.from_bytes(view[at + 4 : at + 8], "little")
        if view[at : at + 4] == b"EXIF":
            return exif_orientation(view[at + 8 : at + 8 + size]) or 1
        at += 8 + size + size % 2
    return 1


def read_avif(view: memoryview) -> ImageHeader | None:
    """Read the properties of the picture that is shown."""
    facts = avif_picture(view)
    return facts and ImageHeader(*facts)


# ---- JPEG XL


def read_jxl(view: memoryview) -> ImageHeader | None:
    """Read the header of a bare stream, or of the first one in a container.

    Its orientation counts, whatever EXIF data in the container say.
    """
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
    return ImageHeader(width, height, 1 + number(3) if extra_fields else 1)


# ---- JPEG 2000


def read_jpeg2000(view: memoryview) -> ImageHeader | None:
    """Read the marker of sizes in the stream."""
    stream = view if view[:2] == b"\xff\x4f" else next(boxes(view, b"jp2c"), view[:0])
    if stream[:4] != b"\xff\x4f\xff\x51" or len(stream) < 43:
        return None
    right, bottom, left, top = (
        int.from_bytes(stream[at : at + 4], "big") for at in (8, 12, 16, 20)
    )
    if right <= left or bottom <= top:
        return None
    channels, depth = int.from_bytes(stream[40:42], "big"), stream[42]
    numbers = "i" if depth & 128 else "u"
    return ImageHeader(
        right - left, bottom - top, 1, (depth & 127) + 1, channels, False, False, numbers
    )


# ---- TIFF


def read_tiff(view: memoryview) -> ImageHeader | None:
    """Read the first directory of a TIFF or BigTIFF file."""
    tags = _tiff_tags(view)
    width, height = (tags.get(name, [0])[0] for name in ("width", "height"))
    if width < 1 or height < 1 or "twice" in tags:  # libraries take the one or the other
        return None
    samples = tags.get("samples", [1])[0]
    bits, photometric = tags.get("bits", [1])[0], tags.get("photometric", [1])[0]
    channels = samples
    if photometric == _TIFF_PALETTE:
        bits, channels = 8, samples + 2
    orientation = tags.get("orientation", [1])[0]
    return ImageHeader(
        width,
        height,
        orientation if 1 <= orientation <= 8 else 1,
        bits,
        channels,
        numbers=_TIFF_NUMBERS.get(tags.get("numbers", [1])[0], "?"),
    )


def tiff_tiles(view: memoryview) -> list[tuple[int, int]]:
    """Return the size of its tiles, if any: they take memory however small the picture is."""
    tags = _tiff_tags(view)
    if "tile_width" not in tags or "tile_height" not in tags:
        return []
    return [(tags["tile_width"][0], tags["tile_height"][0])]


def describe_tiff(view: memoryview) -> str:
    """Say what kind of TIFF it is, for errors."""
    tags = _tiff_tags(view)
    numbers = {"i": " with a sign", "f": " of floating point"}
    kind = numbers.get(_TIFF_NUMBERS.get(tags.get("numbers", [1])[0], ""), "")
    samples, bits, photometric, compression = (
        tags.get(name, [1])[0] for name in ("samples", "bits", "photometric", "compression")
    )
    return (
        f"{samples} samples of {bits} bits{kind}, photometric interpretation {photometric}, "
        f"compression {compression}"
    )


def _tiff_tags(view: memoryview) -> dict[str, list[int]]:
    """Return the numbers in known tags of the first directory, and if one is there twice."""
    order = "little" if view[:2] == b"II" else "big"

    def number(at: int, count: int, signed: bool = False) -> int:
        return int.from_bytes(view[at : at + count], order, signed=signed)  # type: ignore[arg-type]

    is_big = number(2, 2) == 43
    start, count_bytes, entry_bytes, room = (8, 8, 20, 8) if is_big else (4, 2, 12, 4)
    at = number(start, room)
    first = at + count_bytes
    tags: dict[str, list[int]] = {}
    last = min(first + entry_bytes * number(at, count_bytes), len(view) - entry_bytes + 1)
    for entry in range(first, last, entry_bytes):
        name, kind = _TIFF_TAGS.get(number(entry, 2)), number(entry + 2, 2)
        if name is None or kind not in _TIFF_WHOLE:
            continue
        size, count = _TIFF_WHOLE[kind], number(entry + 4, room)
        place = entry + 4 + room
        if size * count > room:
            place = number(place, room)
        if name == "orientation" and kind == 1:
            continue  # bytes, which Pillow takes for no number
        if name in tags:
            name = "twice"
        tags[name] = [
            number(place + size * i, size, kind in _TIFF_SIGNED)
            for i in range(min(count, 8))
            if place + size * i < len(view)
        ] or [0]
    return tags


# ---- GIF


def without_empty_blocks(view: memoryview) -> bytes | memoryview:
    """Leave out empty extensions in front of the first frame of a GIF, which Pillow cannot read."""
    start, parts = 0, []
    at = 13 + (3 << (view[10] & 7) + 1 if len(view) > 13 and view[10] & 128 else 0)
    while view[at : at + 1] == b"\x21":
        if view[at + 2 : at + 3] == b"\0":
            parts.append(view[start:at])
            start = at + 3
        at += 2
        while at < len(view) and view[at]:
            at += view[at] + 1
        at += 1
    return b"".join([*parts, view[start:]]) if parts else view


# ---- PNM, PFM, Radiance and OpenEXR


def read_pnm(view: memoryview) -> ImageHeader | None:
    """Read the header of binary grey or colour values of at most 16 bits."""
    match = HEADER.match(bytes(view[:_TEXT_HEADER]))
    if match is None:
        return None
    kind, width, height, largest = map(int, match.groups())
    if not (width and height and 0 < largest < 65536):
        return None
    bits = max(largest.bit_length(), 8)
    return ImageHeader(width, height, 1, bits, 1 if kind == 5 else 3, plain=largest == 255)


def read_pfm(view: memoryview) -> ImageHeader | None:
    """Read the header of grey or colour values of floating point."""
    match = _PFM.match(bytes(view[:_TEXT_HEADER]))
    if match is None:
        return None
    width, height = int(match[2]), int(match[3])
    return ImageHeader(width, height, 1, 32, 1 if match[1] == b"f" else 3, numbers="f")


def read_hdr(view: memoryview) -> ImageHeader | None:
    """Read the line of sizes of a Radiance file in the usual order of its rows."""
    match = _HDR.search(bytes(view[:_TEXT_HEADER]))
    if match is None or (match[1], match[3]) != (b"-", b"+"):
        return None
    return ImageHeader(int(match[4]), int(match[2]), 1, 32, 3, numbers="f")


def read_exr(view: memoryview) -> ImageHeader | None:
    """Read the window of the pixels of an OpenEXR file."""
    for name, kind, value in _exr_attributes(view):
        if name == b"dataWindow" and kind == b"box2i" and len(value) == 16:
            left, top, right, bottom = (
                int.from_bytes(value[at : at + 4], "little", signed=True) for at in (0, 4, 8, 12)
            )
            if right < left or bottom < top:
                return None
            return ImageHeader(right - left + 1, bottom - top + 1, 1, 32, None, numbers="f")
    return None


def _exr_attributes(view: memoryview) -> Iterator[tuple[bytes, bytes, memoryview]]:
    """Yield name, type and value of the attributes in front of the pixels."""
    start, at = bytes(view[:65536]), 8
    while at < len(start) and start[at]:
        words = start[at : at + 512].split(b"\0", 2)
        if len(words) < 3:
            return
        at += len(words[0]) + len(words[1]) + 2
        size = int.from_bytes(start[at : at + 4], "little")
        yield words[0], words[1], view[at + 4 : at + 4 + size]
        at += 4 + size
