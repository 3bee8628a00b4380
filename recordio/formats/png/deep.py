"""PNG images decoded to the values that they store, of 8 or 16 bits."""

from __future__ import annotations

import threading
from typing import Any

from recordio.formats.codec_rows import decode
from recordio.formats.png import png

#: Channels of pixels by those of the file: grey with alpha becomes RGBA.
STORED = {1: 1, 2: 4, 3: 3, 4: 4}

_thread = threading.local()


def decode_deep(view: memoryview, channels: int, *, max_pixels: int) -> Any:
    """Decode with the decoder that this thread used last, whose memory is there already.

    0 channels are those that are stored: grey, RGB or RGBA.
    """
    if channels == 0 and (header := png.png_header(view)) is not None:
        channels = STORED[header[4]]
    key = channels, max_pixels
    # Taken out while it is in use: a finalizer in this thread may come here as well.
    kept: dict[Any, png.PngRows] = _thread.__dict__
    rows = kept.pop(key, None) or png.PngRows(channels, deep=True, max_pixels=max_pixels)
    kept.clear()
    pixels = decode(rows, view)
    kept[key] = rows
    return pixels
