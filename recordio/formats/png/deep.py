"""PNG images of 16 bits, decoded to the values that they store."""

from __future__ import annotations

import threading
from typing import Any

from recordio.formats.codec_rows import decode
from recordio.formats.png import png

__all__ = ["decode_deep"]

_thread = threading.local()


def decode_deep(view: memoryview, channels: int, *, max_pixels: int) -> Any:
    """Decode with the decoder that this thread used last, whose memory is there already."""
    key = channels, max_pixels, png.decoder()
    # Taken out while it is in use: a finalizer in this thread may come here as well.
    kept: dict[Any, png.PngRows] = _thread.__dict__
    rows = kept.pop(key, None) or png.PngRows(channels, deep=True, max_pixels=max_pixels)
    kept.clear()
    pixels = decode(rows, view)
    kept[key] = rows
    return pixels
