"""Pictures as numbers: the sums of their channels, and a hash that similar pictures share."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..formats.general import decode_as_opencv
from ..formats.image_size import image_size

__all__ = ["channel_sums", "picture_hash"]

#: The sides of the picture of which the cosine transform is taken, and of the corner that is kept.
SIDE, CORNER = 32, 8
#: A JPEG image is decoded at a reduced size as long as its sides keep at least this many pixels.
LEAST_SIDE = 2 * SIDE


def channel_sums(content: Any, **limits: int | None) -> tuple[int, np.ndarray]:
    """Count the pixels of an encoded image; sum their values, and the squares of these.

    Sums are float64, (2, 3): values and squares; red, green, blue.  They are whole numbers.
    """
    import cv2

    mode = cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION
    image = decode_as_opencv(content, mode, limits)
    pixels = image.shape[0] * image.shape[1]
    mean, deviation = (array[2::-1, 0] for array in cv2.meanStdDev(image))
    # What OpenCV divided were whole numbers, below 2**53 by far: they are found again exactly.
    sums = [mean * pixels, (deviation**2 + mean**2) * pixels]
    return pixels, np.rint(sums)


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
    import cv2

    reduced = {
        2: cv2.IMREAD_REDUCED_GRAYSCALE_2,
        4: cv2.IMREAD_REDUCED_GRAYSCALE_4,
        8: cv2.IMREAD_REDUCED_GRAYSCALE_8,
    }
    smaller = min(image_size(content)) // LEAST_SIDE
    mode = next((mode for by, mode in sorted(reduced.items())[::-1] if by <= smaller), None)
    image = decode_as_opencv(content, cv2.IMREAD_GRAYSCALE if mode is None else mode, limits)
    small = cv2.resize(image, (SIDE, SIDE), interpolation=cv2.INTER_AREA)
    low = cv2.dct(small.astype(np.float32))[:CORNER, :CORNER].ravel()
    bits = low > np.median(low[1:])  # the first is the mean of the picture
    return int.from_bytes(np.packbits(bits).tobytes(), "big")
