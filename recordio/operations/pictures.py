"""Pictures as numbers: the sums of their channels, and a hash that similar pictures share."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..formats.decode import (
    COLOR,
    GRAYSCALE,
    IGNORE_ORIENTATION,
    REDUCED_GRAYSCALE,
    decode_as_opencv,
)
from ..formats.image_header import read_header
from ..kernels.resample import resize

#: The sides of the picture of which the cosine transform is taken, and of the corner that is kept.
SIDE, CORNER = 32, 8
#: A JPEG image is decoded at a reduced size as long as its sides keep at least this many pixels.
LEAST_SIDE = 2 * SIDE
#: The resampler's mean over areas.
AREA = 3
#: The lowest frequencies of the cosine transform, (CORNER, SIDE).
WAVES: np.ndarray = np.cos(np.pi / SIDE * np.outer(np.arange(CORNER), np.arange(SIDE) + 0.5))
WAVES *= np.where(np.arange(CORNER) == 0, SIDE**-0.5, (SIDE / 2) ** -0.5)[:, None]


def channel_sums(content: Any, **limits: int | None) -> tuple[int, np.ndarray]:
    """Count the pixels of an encoded image; sum their values, and the squares of these.

    Sums are float64, (2, 3): values and squares; red, green, blue.  They are whole numbers.
    """
    image = decode_as_opencv(content, COLOR | IGNORE_ORIENTATION, limits)
    values = np.arange(256, dtype=np.float64)
    counts = [np.bincount(image[:, :, channel].ravel(), minlength=256) for channel in (2, 1, 0)]
    sums = np.array([[count @ values, count @ values**2] for count in counts]).T
    return image.shape[0] * image.shape[1], sums


def picture_hash(content: Any, **limits: int | None) -> int:
    """Hash an encoded picture to 64 bits that hardly change when it is resized or compressed again.

    The bits tell for each of the lowest frequencies of the grey picture, scaled to 32 x 32 pixels,
    whether it is stronger than their median.

    >>> import cv2
    >>> picture = np.add.outer(np.arange(80), 2 * np.arange(90)).astype(np.uint8)
    >>> small = cv2.resize(picture, (60, 50), interpolation=cv2.INTER_AREA)
    >>> one, other = (picture_hash(cv2.imencode(".png", i)[1]) for i in (picture, small))
    >>> (one ^ other).bit_count() < 8
    True
    """
    smaller = min(read_header(content).size) // LEAST_SIDE
    reduced = (mode for by, mode in sorted(REDUCED_GRAYSCALE.items())[::-1] if by <= smaller)
    image = decode_as_opencv(content, next(reduced, GRAYSCALE), limits)
    small = resize(image[:, :, None], (SIDE, SIDE), AREA)[:, :, 0]
    low = (WAVES @ small.astype(np.float64) @ WAVES.T).ravel()
    bits = low > np.median(low[1:])  # the first is the mean of the picture
    return int.from_bytes(np.packbits(bits).tobytes(), "big")
