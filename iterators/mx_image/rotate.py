"""The rotations of MXNet's `mx.image`, which take channels first and float32, unlike the others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.example_random import example_uniform

__all__ = ["imrotate", "random_rotate"]


def imrotate(
    src: Any, rotation_degrees: Any, zoom_in: bool = False, zoom_out: bool = False
) -> np.ndarray:
    """Rotate an image, or the images of a batch, around the centre.

    Parameters
    ----------
    src : array_like of float32, (channels, height, width) or (n, channels, height, width)
    rotation_degrees : float, or array_like of float, (n,)
        Counterclockwise; for a batch one angle for all or one for each.
    zoom_in : bool
        Enlarge so far that nothing outside the image is seen.
    zoom_out : bool
        Shrink so far that all of the image is seen.

    Returns
    -------
    numpy.ndarray of float32
        In the shape of `src`, bilinear between pixels and 0 outside the image.

    Raises
    ------
    TypeError
        If `src` is not float32, or an image has several angles.
    ValueError
        If `src` has another number of axes, the angles are not as many as the images, or both kinds
        of zoom are asked for.

    Examples
    --------
    >>> imrotate(np.float32([[[1, 2], [3, 4]]]), 90).round(3).tolist()
    [[[2.0, 4.0], [1.0, 3.0]]]
    """
    images = np.asarray(src)
    if zoom_in and zoom_out:
        raise ValueError("zoom_in and zoom_out: give one of them")
    if images.dtype != np.float32:
        raise TypeError(f"images of {images.dtype}: expected float32")
    if images.ndim not in (3, 4):
        raise ValueError(
            f"images of shape {images.shape}: expected (channels, height, width) or a batch of them"
        )
    if images.ndim == 3:
        if np.ndim(rotation_degrees):
            raise TypeError("one image is rotated by one angle")
        return _rotated(images, float(rotation_degrees), zoom_in, zoom_out)
    angles = np.asarray(rotation_degrees, np.float64)
    if angles.ndim == 0:
        angles = np.full(len(images), angles)
    if angles.shape != (len(images),):
        raise ValueError(f"angles of shape {angles.shape} for {len(images)} images")
    pairs = zip(images, angles.tolist(), strict=True)
    rotated = [_rotated(image, angle, zoom_in, zoom_out) for image, angle in pairs]
    return np.stack(rotated) if rotated else images.copy()


def random_rotate(
    src: Any, angle_limits: Sequence[float], zoom_in: bool = False, zoom_out: bool = False
) -> np.ndarray:
    """Rotate by a random angle; each image of a batch by its own.

    Parameters
    ----------
    src
        As for `imrotate`.
    angle_limits : (float, float)
        Least and largest angle, in degrees.
    zoom_in, zoom_out : bool
        As for `imrotate`.

    Examples
    --------
    >>> random_rotate(np.ones((2, 3, 8, 8), np.float32), (-10, 10), zoom_in=True).shape
    (2, 3, 8, 8)
    """
    images = np.asarray(src)
    low, high = angle_limits
    angles = example_uniform(low, high, len(images) if images.ndim == 4 else 1)
    return imrotate(images, angles if images.ndim == 4 else angles[0], zoom_in, zoom_out)


def _rotated(image: np.ndarray, degrees: float, zoom_in: bool, zoom_out: bool) -> np.ndarray:
    _, height, width = image.shape
    angle = math.radians(degrees)
    zoom = _zoom(height, width, angle, zoom_in) if zoom_in or zoom_out else 1.0
    x = zoom * (np.arange(width) - (width - 1) / 2)
    y = zoom * (np.arange(height) - (height - 1) / 2)[:, None]
    # Source of each pixel of the result.
    columns = x * math.cos(angle) - y * math.sin(angle) + (width - 1) / 2
    rows = x * math.sin(angle) + y * math.cos(angle) + (height - 1) / 2
    left, top = np.floor(columns).astype(int), np.floor(rows).astype(int)
    result = np.zeros(image.shape, np.float64)
    for i, down in ((top, 1 - (rows - top)), (top + 1, rows - top)):
        for j, across in ((left, 1 - (columns - left)), (left + 1, columns - left)):
            inside = (i >= 0) & (i < height) & (j >= 0) & (j < width)
            pixels = image[:, np.clip(i, 0, height - 1), np.clip(j, 0, width - 1)]
            result += pixels * (down * across * inside)
    return result.astype(np.float32)


def _zoom(height: int, width: int, angle: float, zoom_in: bool) -> float:
    """Return the distance in the image between pixels that are neighbours in the result."""
    diagonal, corner = math.hypot(height, width), math.atan(height / width)
    turned = [corner + abs(angle), corner - abs(angle)]
    x = max(abs(diagonal * math.cos(direction)) for direction in turned)
    y = max(abs(diagonal * math.sin(direction)) for direction in turned)
    return min(width / x, height / y) if zoom_in else max(x / width, y / height)
