"""Small files that take a decoder much memory or time: a new one is a line of `BOMBS`."""

from __future__ import annotations

import base64
import functools
import io
import struct
import zlib
from collections.abc import Callable

import numpy as np
from PIL import Image

SIDE = 30_000
#: A JPEG XL stream of 1 x 1 pixels.
SMALL_JXL = base64.b64decode("/woAEBAJCAABACwASxiLFcJJluUMieI=")
#: A grey AVIF picture of 16,384 x 16,384 pixels by libaom, compressed.
LARGE_AVIF = zlib.decompress(
    base64.b64decode(
        "eNpjYGCQSSupLEgsy0xjAAIQnZuZZpibmQjiv8xNLUlkgADFjJScIiiboSAzuYQBDfAVZJbkglmMQCyXmZOfDO"
        "K4gPiMEFFGXgYG9t1AtkZmZl4aXK0UkJPKBOUllhkYOufn5IPtysgsKCoA0p6ZBcn5QFoks7ggFWKdAxSD7K3I"
        "BGvmABI8iWWGzo3yMiAB4eT8nKK85JwKoLm8DGwNQCHxzIJcmI+AzmJhZGpmAbrpcG5KYokQAxe3/Pf6////Lm"
        "OS4nUwWskvwbwxrPx/tz0Dg/X5Uzre63eLz9jfeU670UN7l+qxAm4l+1rP6ZPcb4rcCtfkCc0Tz9dICg2yPvBM"
        "nvnl82sxYUdNHReslFnlaTCqeVTzqOZRzaOaRzWPasalmRK9AEoXfhk="
    )
)


def chunk(kind: bytes, content: bytes) -> bytes:
    """A chunk of a PNG file."""
    body = kind + content
    return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))


def exif(orientation: int = 6) -> bytes:
    """EXIF data with an orientation and nothing else."""
    return b"II*\0" + struct.pack("<IHHHIHHI", 8, 1, 0x112, 3, 1, orientation, 0, 0)


@functools.cache
def zeros(count: int) -> bytes:
    """So many bytes, compressed to a thousandth."""
    packer = zlib.compressobj(9)
    parts = [packer.compress(bytes(1 << 20)) for _ in range(count >> 20)]
    return b"".join([*parts, packer.compress(bytes(count % (1 << 20))), packer.flush()])


def png(*before: bytes, side: int = SIDE, data: bytes = zlib.compress(bytes(9))) -> bytes:
    """A PNG file of one bit a pixel."""
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0))
    rest = chunk(b"IDAT", data) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + head + b"".join(before) + rest


def png_bomb(*before: bytes) -> bytes:
    """A sound one with all its pixels."""
    return png(*before, data=zeros(SIDE * (1 + SIDE // 8)))


def webp() -> bytes:
    """86 bytes of 16,384 x 16,384 pixels with an orientation."""
    found = bytearray(
        base64.b64decode(
            "UklGRk4AAABXRUJQVlA4WAoAAAAIAAAAAQAAAAAAVlA4TA4AAAAvAQAAAAcQEf0PRET/A0VYSUYaAAAATU0AKgAA"
            "AAgAAQESAAMAAAABAAYAAAAAAAA="
        )
    )
    found[24:30] = b"\xff\x3f\0" * 2
    found[39:43] = (int.from_bytes(found[39:43], "little") | (1 << 28) - 1).to_bytes(4, "little")
    return bytes(found)


def tiff(*entries: tuple[int, int], data: bytes, strips: int = 1) -> bytes:
    """A grey TIFF file, deflated, with some numbers; all of its strips, or tiles, are the data."""
    common = [(258, 8), (259, 8), (262, 1), (277, 1)]
    places = (324, 325) if any(tag == 322 for tag, _ in entries) else (273, 279)
    arrays = 8 + 2 + 12 * (len(entries) + len(common) + 2) + 4
    start = arrays + 8 * strips
    lists = (start, len(data)) if strips == 1 else (arrays, arrays + 4 * strips)
    table = [*entries, *common, *zip(places, lists, strict=True)]
    packed = [
        struct.pack("<HHII", tag, 4, strips if tag in places else 1, value)
        for tag, value in sorted(table, key=by_tag)
    ]
    head = b"II*\0\x08\0\0\0" + struct.pack("<H", len(table)) + b"".join(packed) + bytes(4)
    return head + struct.pack(f"<{2 * strips}I", *[start] * strips, *[len(data)] * strips) + data


def tiff_of(*entries: tuple[int, int]) -> bytes:
    """One of 30,000 x 30,000 pixels in 300 strips of which each is the same."""
    return tiff(*entries, (278, 100), data=zeros(100 * SIDE), strips=SIDE // 100)


def by_tag(entry: tuple[int, int]) -> int:
    """What entries are sorted by; those with the same tag stay as they are."""
    return entry[0]


def tiff_tile() -> bytes:
    """16 x 16 pixels in one tile of 16,000 x 16,000."""
    tile = [(256, 16), (257, 16), (322, 16_000), (323, 16_000)]
    return tiff(*tile, data=zeros(16_000 * 16_000))


def jpeg(frame: int, side: int, bits: int = 8) -> bytes:
    """A grey progressive file of Pillow, with another kind of frame and size."""
    target = io.BytesIO()
    pixels = np.random.default_rng(0).integers(0, 256, (64, 64), np.uint8)
    Image.fromarray(pixels).save(target, "JPEG", progressive=True, quality=60)
    found = bytearray(target.getvalue())
    at = found.index(b"\xff\xc2")
    found[at + 1] = frame
    found[at + 4 : at + 9] = struct.pack(">BHH", bits, side, side)
    return bytes(found)


def jpeg_scans(frame: int = 0xC2, side: int = 5000, bits: int = 8, scans: int = 3000) -> bytes:
    """The same with many scans, which hold hardly anything."""
    found = jpeg(frame, side, bits)
    first = found.index(b"\xff\xda")
    end = found.index(b"\xff\xda", first + 2)
    length = int.from_bytes(found[end + 2 : end + 4], "big")
    scan = found[end : end + 2 + length]
    return found[:end] + scan * scans + found[end:]


def avif() -> bytes:
    """A frame of 16,384 x 16,384 pixels in a file that announces 8 x 8."""
    found = bytearray(LARGE_AVIF)
    at = found.index(b"ispe") + 8
    found[at : at + 8] = struct.pack(">II", 8, 8)
    return bytes(found)


def jxl() -> bytes:
    """A JPEG XL stream that announces 2**30 x 2**30 pixels."""
    size = 3 << 1 | (1 << 30) - 1 << 3 | 3 << 36 | (1 << 30) - 1 << 38
    return SMALL_JXL[:2] + size.to_bytes(10, "little") + SMALL_JXL[4:]


def gif(screen: int, frame: int) -> bytes:
    """A GIF file, its screen and its frame."""
    head = b"GIF89a" + struct.pack("<HHBBB", screen, screen, 0x80, 0, 0) + bytes(6)
    return head + b"," + struct.pack("<HHHHB", 0, 0, frame, frame, 0) + b"\x02\x02\x44\x01\0;"


def bmp() -> bytes:
    """A BMP file without pixels, run-length encoded."""
    head = struct.pack("<IiiHHIIiiII", 40, SIDE, SIDE, 1, 8, 1, 4, 0, 0, 1, 0)
    return b"BM" + struct.pack("<IHHI", 62, 0, 0, 58) + head + bytes(4) + b"\0\1" * 2


def jpeg2000() -> bytes:
    """A JPEG 2000 file that announces much, made by changing a small one."""
    target = io.BytesIO()
    Image.new("L", (64, 64)).save(target, "JPEG2000")
    found = bytearray(target.getvalue())
    at = found.index(b"ihdr") + 4
    found[at : at + 8] = struct.pack(">II", SIDE, SIDE)
    at = found.index(b"\xff\x51") + 6
    found[at : at + 8] = found[at + 16 : at + 24] = struct.pack(">II", SIDE, SIDE)
    return bytes(found)


def sound() -> bytes:
    """What every door takes."""
    target = io.BytesIO()
    Image.new("RGB", (64, 48), "red").save(target, "JPEG")
    return target.getvalue()


BOMBS: dict[str, Callable[[], bytes]] = {
    "PNG, size": png,
    "PNG, zlib": png_bomb,
    "PNG, zlib, EXIF": lambda: png_bomb(chunk(b"eXIf", exif())),
    "PNG, chunk length": lambda: png()[:33] + b"\xf0\0\0\0tEXt" + png()[33:],
    "WebP, size, EXIF": webp,
    "TIFF, size, orientation": lambda: tiff_of((256, SIDE), (257, SIDE), (274, 6)),
    "TIFF, width twice, small first": lambda: tiff_of((256, 8), (256, SIDE), (257, SIDE)),
    "TIFF, width twice, large first": lambda: tiff_of((256, SIDE), (256, 8), (257, SIDE)),
    "TIFF, tile": tiff_tile,
    "TIFF, strip": lambda: tiff((256, 64), (257, SIDE**2), (278, SIDE**2), data=zeros(1 << 20)),
    "JPEG, size": lambda: jpeg(0xC0, 65_500),
    "JPEG, size, progressive": lambda: jpeg(0xC2, 65_500),
    "JPEG, scans": jpeg_scans,
    "JPEG, scans of many pixels": lambda: jpeg_scans(side=8000, scans=120),
    "JPEG, scans, arithmetic": lambda: jpeg_scans(0xCA),
    "JPEG, scans, 12 bits": lambda: jpeg_scans(bits=12),
    "AVIF, frame": avif,
    "JPEG XL, size": jxl,
    "GIF, screen": lambda: gif(SIDE, 8),
    "GIF, frame": lambda: gif(8, SIDE),
    "BMP, size": bmp,
    "PNM, size": lambda: b"P6\n%d %d\n255\n" % (SIDE, SIDE) + bytes(99),
    "PNM, size, text": lambda: b"P3\n%d %d\n255\n" % (SIDE, SIDE) + b"0 " * 99,
    "JPEG 2000, size": jpeg2000,
    "JSON, nested": lambda: b"[" * 900 + b"1," * 30_000 + b"1" + b"]" * 900,
}
