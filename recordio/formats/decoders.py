"""Our own decoders of JPEG, PNG, WebP and raw images, asked in one way.

Each gets a file, the channels that are wanted, and limits; `deep` asks for all bits, `least_side`
for no more pixels than its longer side needs, `upright` for the EXIF orientation.  None is what
they leave to the general decoder.
"""

from __future__ import annotations

from typing import Any

from recordio.errors import ImageDecodeError
from recordio.formats import pnm
from recordio.formats.jpeg import jpeg
from recordio.formats.jpeg_markers import segments
from recordio.formats.png import png
from recordio.formats.webp import webp
from recordio.kernels.orient import orient

__all__ = ["decode_jpeg", "decode_nothing", "decode_png", "decode_raw", "decode_webp"]

JPEG_EOI, JPEG_SOS = b"\xff\xd9", 0xDA


def decode_jpeg(
    data: memoryview,
    channels: int,
    *,
    deep: bool,
    least_side: int,
    upright: bool,
    limits: dict[str, int],
) -> Any:
    """Decode the usual JPEG by libjpeg-turbo, and refuse all that is truncated."""
    if data[:3] != b"\xff\xd8\xff":
        return None
    if channels == 4:
        raise ImageDecodeError("a JPEG image has no alpha channel; ask for 3 channels")
    if jpeg.available():
        header = jpeg.header(data)
        if header.supported:
            fraction = 1
            while least_side and fraction < 8 and _longest(header) // (2 * fraction) >= least_side:
                fraction *= 2
            pixels = jpeg.decode(data, channels, denominator=fraction, **limits)  # type: ignore[arg-type]
            turned = upright and header.orientation != 1
            return orient(pixels, header.orientation) if turned else pixels
    # OpenCV would fill up with grey what is missing.  Coded data contains no marker by chance; a
    # thumbnail in a segment before it may.
    scans = (end for marker, _, end, _ in segments(data) if marker == JPEG_SOS)
    if bytes(data).find(JPEG_EOI, next(scans, 2)) < 0:
        raise ImageDecodeError("the JPEG image is truncated; pack it again from its source")
    return None


def _longest(header: Any) -> int:
    return int(max(header.width, header.height))


def decode_png(
    data: memoryview,
    channels: int,
    *,
    deep: bool,
    least_side: int,
    upright: bool,
    limits: dict[str, int],
) -> Any:
    """Decode a PNG image in which nothing is odd."""
    return png.decode(data, channels, deep=deep, max_pixels=limits["max_pixels"])


def decode_raw(
    data: memoryview,
    channels: int,
    *,
    deep: bool,
    least_side: int,
    upright: bool,
    limits: dict[str, int],
) -> Any:
    """Copy the pixels of a raw image."""
    if channels == 4 or deep:
        return None
    return pnm.decode(data, channels, max_pixels=limits["max_pixels"])


def decode_webp(
    data: memoryview,
    channels: int,
    *,
    deep: bool,
    least_side: int,
    upright: bool,
    limits: dict[str, int],
) -> Any:
    """Decode a still WebP image."""
    return webp.decode(
        data, channels, upright=upright and channels != 4, max_pixels=limits["max_pixels"]
    )


def decode_nothing(data: memoryview, channels: int, **settings: Any) -> Any:
    """Leave everything to the general decoder."""
    return None
