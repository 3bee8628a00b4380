"""The crops of MXNet's `mx.image`: at a position, at the centre, at random, of a random size.

Images are those of `functions`; sizes are (width, height), as in MXNet.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.example_random import example_random
from ..images.augment.ranges import interval
from .functions import image_of, imresize

Crop = tuple[int, int, int, int]

#: Random areas that are tried before the crop at the centre is taken.
TRIES = 10
#: The narrowest proportions, width / height.
LEAST_RATIO = 1e-6


def scale_down(src_size: Sequence[int], size: Sequence[int]) -> tuple[int, int]:
    """Return the largest size with the proportions of `size`, at most `size`, that fits an image.

    Parameters
    ----------
    src_size : (int, int)
        Width and height of the image.
    size : (int, int)
        Requested width and height.

    Returns
    -------
    (int, int)
        Rounded down.

    Examples
    --------
    >>> scale_down((640, 480), (720, 120))
    (640, 106)
    """
    largest_width, largest_height = src_size
    width, height = (float(side) for side in size)
    if largest_height < height:
        width, height = width * largest_height / height, largest_height
    if largest_width < width:
        width, height = largest_width, height * largest_width / width
    return int(width), int(height)


def fixed_crop(
    src: Any, x0: int, y0: int, w: int, h: int, size: Sequence[int] | None = None, interp: int = 2
) -> np.ndarray:
    """Cut a rectangle out of an image and, with `size`, resize it.

    Parameters
    ----------
    src : array_like
        The image.
    x0, y0 : int
        Left column and top row of the rectangle.
    w, h : int
        Its width and height, at least 1.
    size : (int, int), optional
        Width and height of the result.
    interp : int
        As for `imresize`.

    Raises
    ------
    ValueError
        If the rectangle is not inside the image.

    Examples
    --------
    >>> fixed_crop(np.zeros((8, 9, 3), np.uint8), 1, 2, 5, 6).shape
    (6, 5, 3)
    """
    image = image_of(src)
    height, width = image.shape[:2]
    if not (0 <= x0 < x0 + w <= width and 0 <= y0 < y0 + h <= height):
        raise ValueError(
            f"the crop x0={x0}, y0={y0}, w={w}, h={h} is not inside an image of width {width} and "
            f"height {height}"
        )
    crop = image[y0 : y0 + h, x0 : x0 + w]
    if size is None or (w, h) == tuple(size):
        return crop.copy()
    return imresize(crop, size[0], size[1], interp)


def center_crop(src: Any, size: Sequence[int], interp: int = 2) -> tuple[np.ndarray, Crop]:
    """Crop at the centre; an image that is too small is cropped to the same proportions.

    Parameters
    ----------
    src : array_like
        The image.
    size : (int, int)
        Width and height of the result.
    interp : int
        As for `imresize`, where the image is too small.

    Returns
    -------
    image : numpy.ndarray
    crop : (x0, y0, width, height)
        What was cut out of `src`.

    Examples
    --------
    >>> center_crop(np.zeros((8, 9, 3), np.uint8), (4, 5))[1]
    (2, 1, 4, 5)
    """
    image = image_of(src)
    height, width = image.shape[:2]
    w, h = _crop_size((width, height), size)
    x0, y0 = (width - w) // 2, (height - h) // 2
    return fixed_crop(image, x0, y0, w, h, size, interp), (x0, y0, w, h)


def random_crop(src: Any, size: Sequence[int], interp: int = 2) -> tuple[np.ndarray, Crop]:
    """Crop at a random position; otherwise as `center_crop`.

    Examples
    --------
    >>> random_crop(np.zeros((8, 9, 3), np.uint8), (4, 5))[0].shape
    (5, 4, 3)
    """
    image = image_of(src)
    height, width = image.shape[:2]
    w, h = _crop_size((width, height), size)
    x0, y0 = _random_corner((width, height), (w, h))
    return fixed_crop(image, x0, y0, w, h, size, interp), (x0, y0, w, h)


def random_size_crop(
    src: Any,
    size: Sequence[int],
    area: float | Sequence[float],
    ratio: Sequence[float],
    interp: int = 2,
    *,
    min_area: float | Sequence[float] | None = None,
) -> tuple[np.ndarray, Crop]:
    """Cut out a random share of the area with random proportions, and resize it.

    Parameters
    ----------
    src : array_like
        The image.
    size : (int, int)
        Width and height of the result.
    area : float or (float, float)
        Least share of the area, or least and largest; 0 to 1.
    ratio : (float, float)
        Least and largest width / height, uniform in its logarithm; above 0.
    interp : int
        As for `imresize`.
    min_area : float or (float, float), optional
        Older name of `area`.

        .. deprecated:: 0.1

    Returns
    -------
    image : numpy.ndarray
    crop : (x0, y0, width, height)
        What was cut out of `src`: after ten shares that did not fit, that of `center_crop`.

    Examples
    --------
    >>> random_size_crop(np.zeros((8, 9, 3), np.uint8), (4, 5), 0.5, (0.75, 1.33))[0].shape
    (5, 4, 3)
    """
    image = image_of(src)
    height, width = image.shape[:2]
    least, largest = area_range(renamed_area(area, min_area))
    draw = example_random().uniform
    logs = logarithms(ratio)
    for _ in range(TRIES):
        pixels = draw(least, largest) * (height * width)
        proportion = math.exp(draw(*logs))
        w, h = round(math.sqrt(pixels * proportion)), round(math.sqrt(pixels / proportion))
        if 0 < w <= width and 0 < h <= height:
            x0, y0 = _random_corner((width, height), (w, h))
            return fixed_crop(image, x0, y0, w, h, size, interp), (x0, y0, w, h)
    return center_crop(image, size, interp)


def area_range(area: float | Sequence[float]) -> tuple[float, float]:
    """Return the least and the largest share of an area."""
    pair = area if isinstance(area, Sequence) and not isinstance(area, str) else (area, 1.0)
    return interval("area", pair, 0, 1)


def logarithms(ratio: Sequence[float]) -> tuple[float, float]:
    """Return the ends of a range of proportions, which is even in its logarithm."""
    least, largest = interval("ratio", ratio, LEAST_RATIO, 1 / LEAST_RATIO)
    return math.log(least), math.log(largest)


def renamed_area(area: Any, min_area: Any) -> Any:
    """Return the value of `area`, which was called `min_area`."""
    if min_area is None:
        return area
    warnings.warn("min_area is called area: use that name", DeprecationWarning, stacklevel=3)
    return min_area


def _crop_size(image: tuple[int, int], size: Sequence[int]) -> tuple[int, int]:
    """Return the width and height to cut out; a pixel at least, whatever the proportions."""
    width, height = scale_down(image, size)
    return max(width, 1), max(height, 1)


def _random_corner(image: tuple[int, int], crop: tuple[int, int]) -> tuple[int, int]:
    draw = example_random().randint
    x0 = draw(0, image[0] - crop[0])
    return x0, draw(0, image[1] - crop[1])
