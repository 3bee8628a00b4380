"""Images as browsers show them: decoded by our own decoder, at a fraction of their size.

What lies over an image is drawn into its pixels, as on contact sheets.

Every picture is made of pixels; no bytes of a pack reach an `img` element.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from iterators.images.contact_sheet import Layer, Tile, drawn
from recordio.formats.decode import decode_image
from recordio.formats.encode import encode_as_opencv
from recordio.formats.image_header import read_header
from recordio.kernels.resample import resize

#: Pixels of images that are decoded to be looked at; a JPEG image at a fraction counts that.
MOST_PIXELS = 1 << 26
#: Up to this many, an image is sent without loss.
LOSSLESS_PIXELS = 1 << 17
QUALITY = 88
#: The resampler's mean over areas.
AREA = 3


class Pictures:
    """Decoder of a few images at a time; by default one for every processor."""

    def __init__(self, threads: int | None = None) -> None:
        self._room = threading.BoundedSemaphore(threads or os.cpu_count() or 1)

    def picture(
        self,
        content: Any,
        side: int,
        layers: Callable[[tuple[int, ...]], Sequence[Layer]] = lambda shape: (),
        names: Mapping[int, str] | None = None,
        numbered: bool = False,
    ) -> tuple[bytes, str]:
        """Return an encoded image whose longer side is at most `side` pixels, and its type.

        `content` is an encoded image or pixels, (height, width, channels); ``layers(shape)`` gives
        what is drawn over it, and `names` those of classes of boxes.
        """
        with self._room:
            pixels = content if isinstance(content, np.ndarray) else decoded(content, side)
            pixels = np.atleast_3d(fitted(pixels, side))
            if overlays := layers(pixels.shape):
                pixels = np.asarray(drawn(Tile(pixels, layers=overlays), names, numbered))
            return encoded(pixels)

    def drawn(self, tile: Tile, names: Mapping[int, str] | None = None) -> tuple[bytes, str]:
        """Return an image of any size with what is drawn over it, encoded, and its type."""
        with self._room:
            return encoded(np.asarray(drawn(tile, names)) if tile.layers else tile.pixels)


def decoded(content: Any, side: int) -> np.ndarray:
    """Decode an image upright, RGB, at the smallest fraction of its size not below `side`."""
    longest = max(read_header(content).size)
    scale = next(1 / by for by in (8, 4, 2, 1) if by == 1 or longest // by >= side)
    return decode_image(content, scale=scale, max_pixels=MOST_PIXELS)


def fitted(pixels: np.ndarray, side: int) -> np.ndarray:
    """Return an image made smaller, if its longer side has more than `side` pixels."""
    height, width = pixels.shape[:2]
    if max(height, width) <= side:
        return pixels
    scale = side / max(height, width)
    size = max(round(width * scale), 1), max(round(height * scale), 1)
    return resize(np.ascontiguousarray(pixels), size, AREA)


def encoded(pixels: np.ndarray) -> tuple[bytes, str]:
    """Return RGB or grey pixels as a file for browsers."""
    if pixels.ndim == 3 and pixels.shape[2] == 3:
        pixels = pixels[..., ::-1]
    if pixels.shape[0] * pixels.shape[1] <= LOSSLESS_PIXELS:
        return encode_as_opencv(pixels, ".png", 1), "image/png"
    return encode_as_opencv(pixels, ".jpg", QUALITY), "image/jpeg"
