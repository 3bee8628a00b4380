"""Quarter turns of encoded images when they are shown, by their headers alone.

No pixel is decoded: the few bytes of an EXIF mark may stand in a file that announces millions.
"""

from __future__ import annotations

import zlib
from typing import Any

from recordio.formats.avif import avif_is_turned
from recordio.formats.format_sizes import jxl_is_turned
from recordio.formats.image_size import png_chunks
from recordio.formats.jpeg_limits import jpeg_orientation, tiff_orientation
from recordio.formats.kinds import kind_of

__all__ = ["is_turned"]

#: Orientations from here on exchange width and height.
FIRST_TURNED = 5
#: Of a WebP file: the bit that announces EXIF data, and where it is.
_WEBP_EXIF, _WEBP_FLAGS = 8, 20


def is_turned(data: Any) -> bool:
    """Return True if the orientation of an image exchanges its width and height.

    It is False for formats without an orientation, too.  Not every decoder heeds every orientation.
    """
    view = memoryview(data).cast("B")
    kind = kind_of(view)
    if kind == "avif":
        return avif_is_turned(view)
    if kind == "jxl":
        return jxl_is_turned(view)
    if kind == "jpeg":
        return jpeg_orientation(view) >= FIRST_TURNED
    exif = {"png": _exif_of_png, "webp": _exif_of_webp, "tiff": lambda view: view}.get(kind)
    return exif is not None and tiff_orientation(exif(view)) >= FIRST_TURNED


def _exif_of_png(view: memoryview) -> memoryview:
    """The first sound chunk of EXIF data, which may stand behind the pixels."""
    for kind, at, size in png_chunks(view):
        if kind == b"IEND":
            break
        end = at + 8 + size
        if kind == b"eXIf" and zlib.crc32(view[at + 4 : end]) == int.from_bytes(
            view[end : end + 4], "big"
        ):
            return view[at + 8 : end]
    return view[:0]


def _exif_of_webp(view: memoryview) -> memoryview:
    """The EXIF data of a file that announces some."""
    at = 12
    announced = len(view) > _WEBP_FLAGS and view[_WEBP_FLAGS] & _WEBP_EXIF
    if view[at : at + 4] != b"VP8X" or not announced:
        return view[:0]
    while at + 8 <= len(view):
        size = int.from_bytes(view[at + 4 : at + 8], "little")
        if view[at : at + 4] == b"EXIF":
            return view[at + 8 : at + 8 + size]
        at += 8 + size + size % 2
    return view[:0]
