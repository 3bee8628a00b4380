"""Functions of `mx.nd.image` on images of (height, width, channels) and batches of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....mx_image import imresize
from ....mx_image.create import IMAGENET_VALUES, IMAGENET_VECTORS
from ..random import chance, drawn
from .array import NDArray, as_nd

__all__ = [
    "adjust_lighting",
    "crop",
    "flip_left_right",
    "flip_top_bottom",
    "normalize",
    "random_brightness",
    "random_contrast",
    "random_flip_left_right",
    "random_flip_top_bottom",
    "random_hue",
    "random_saturation",
    "resize",
    "to_tensor",
]

#: How bright red, green and blue are.
GREY = np.array([0.299, 0.587, 0.114], np.float32)


def to_tensor(data: Any) -> NDArray:
    """Return an image as float32 from 0 to 1, channels first."""
    image = np.asarray(data)
    return as_nd(np.ascontiguousarray(np.moveaxis(image, -1, -3), np.float32) / np.float32(255))


def normalize(data: Any, mean: Any = 0.0, std: Any = 1.0) -> NDArray:
    """Subtract a mean and divide by a deviation, for each channel; channels come first."""
    image = np.asarray(data)
    if image.dtype.kind != "f":
        raise TypeError(f"an image of {image.dtype}: normalize takes floats, which to_tensor gives")
    columns = (np.reshape(np.asarray(value, np.float32), (-1, 1, 1)) for value in (mean, std))
    shift, scale = columns
    return as_nd(((image - shift) / scale).astype(image.dtype))


def resize(data: Any, size: Any = 0, keep_ratio: bool = False, interp: int = 1) -> NDArray:
    """Resize to a width and a height, to a square, or by the shorter side with `keep_ratio`."""

    def change(image: np.ndarray) -> np.ndarray:
        if np.ndim(size) and len(size) == 2:
            width, height = size
        else:
            width = height = size[0] if np.ndim(size) else size
            if keep_ratio:
                rows, columns = image.shape[:2]
                if rows > columns:
                    height = width * rows // columns
                else:
                    width = height * columns // rows
        return imresize(image, width, height, interp)

    return _each(change, data)


def crop(data: Any, x: int, y: int, width: int, height: int) -> NDArray:
    """Cut out a rectangle, which must lie inside the image."""
    image = np.asarray(data)
    rows, columns = image.shape[-3:-1]
    if min(x, y) < 0 or min(width, height) < 1 or x + width > columns or y + height > rows:
        raise ValueError(
            f"a crop of {width} x {height} at ({x}, {y}) does not lie inside an image of "
            f"{columns} x {rows}"
        )
    return as_nd(image[..., y : y + height, x : x + width, :].copy())


def flip_left_right(data: Any) -> NDArray:
    """Exchange left and right."""
    return as_nd(np.asarray(data)[..., ::-1, :].copy())


def flip_top_bottom(data: Any) -> NDArray:
    """Exchange top and bottom."""
    return as_nd(np.asarray(data)[..., ::-1, :, :].copy())


def random_flip_left_right(data: Any, p: float = 0.5) -> NDArray:
    """Exchange left and right, with a probability."""
    return flip_left_right(data) if chance(p) else as_nd(np.asarray(data))


def random_flip_top_bottom(data: Any, p: float = 0.5) -> NDArray:
    """Exchange top and bottom, with a probability."""
    return flip_top_bottom(data) if chance(p) else as_nd(np.asarray(data))


def random_brightness(data: Any, min_factor: float, max_factor: float) -> NDArray:
    """Multiply by a random factor."""
    image, factor = np.asarray(data), np.float32(drawn(min_factor, max_factor))
    return _of_type(image.astype(np.float32) * factor, image.dtype)


def random_contrast(data: Any, min_factor: float, max_factor: float) -> NDArray:
    """Move all pixels away from the mean brightness, or towards it, by a random factor."""
    factor = np.float32(drawn(min_factor, max_factor))

    def change(image: np.ndarray) -> np.ndarray:
        mean = np.mean(_grey(image.astype(np.float32)), dtype=np.float64)
        changed = image.astype(np.float32) * factor + np.float32((1 - factor) * mean)
        return np.asarray(_of_type(changed, image.dtype))

    return _each(change, data)


def random_saturation(data: Any, min_factor: float, max_factor: float) -> NDArray:
    """Move the colour of each pixel away from grey, or towards it, by a random factor."""
    image, factor = np.asarray(data), np.float32(drawn(min_factor, max_factor))
    pixels = image.astype(np.float32)
    return _of_type(pixels * factor + _grey(pixels) * (1 - factor), image.dtype)


#: Channels of a full colour: they rise or fall with the distance of its hue from a middle, in
#: sixths of a turn, and are at least 0 and at most 1.
MIDDLES, RISES, FROM = np.array([[3, 2, 4], [1, -1, -1], [-1, 2, 2]], np.float32)


def random_hue(data: Any, min_factor: float, max_factor: float) -> NDArray:
    """Turn the hue of all pixels, in hue, lightness and saturation, by a random part of a turn."""
    turn = np.float32(drawn(min_factor, max_factor) * 6)

    def change(image: np.ndarray) -> np.ndarray:
        # Lightness and saturation are those of the largest and least channel, which stay.
        colours = image.astype(np.float32)
        most, least = colours.max(-1), colours.min(-1)
        spread = most - least
        red, green, blue = np.moveaxis(colours, -1, 0)
        first = [most == red, most == green]
        ahead = np.select(first, [green - blue, blue - red], red - green)
        sixths = ahead / np.maximum(spread, np.float32(1e-9)) + np.select(first, [0, 2], 4)
        hue = np.mod(sixths + turn, 6)[..., None]
        shares = np.clip(FROM + RISES * np.abs(hue - MIDDLES), 0, 1)
        turned = least[..., None] + spread[..., None] * shares
        return np.asarray(_of_type(turned, image.dtype))

    return _each(change, data)


def adjust_lighting(data: Any, alpha: Any) -> NDArray:
    """Add the principal colours of ImageNet, each times its factor in `alpha`."""
    image = np.asarray(data)
    noise = (IMAGENET_VECTORS * np.asarray(alpha)) @ IMAGENET_VALUES
    return _of_type(image.astype(np.float32) + noise.astype(np.float32), image.dtype)


def _each(function: Callable[[np.ndarray], np.ndarray], data: Any) -> NDArray:
    """Return what a function makes of an image, or of every image of a batch."""
    images = np.asarray(data)
    return as_nd(function(images) if images.ndim == 3 else np.stack([*map(function, images)]))


def _grey(image: np.ndarray) -> np.ndarray:
    """Return the brightness of pixels, with one channel."""
    if image.shape[-1] == 1:
        return image
    return (image @ GREY)[..., None]


def _of_type(image: np.ndarray, dtype: np.dtype) -> NDArray:
    """Return an image of a type; whole numbers are cut off, and limited to 0 to 255."""
    if dtype == np.uint8:
        image = np.clip(image, 0, 255)
    return as_nd(image.astype(dtype))
