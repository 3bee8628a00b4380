"""The augmenters of MXNet's `mx.image` that change colours.

The results are float32 (float64 for such images) and not limited to 0 to 255.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.example_random import example_normal, example_random
from .augmenters import ImageAugmenter, RandomOrderAug, Step
from .functions import color_normalize, floating, image_of, per_row

__all__ = [
    "BrightnessJitterAug",
    "ColorJitterAug",
    "ColorNormalizeAug",
    "ContrastJitterAug",
    "HueJitterAug",
    "LightingAug",
    "RandomGrayAug",
    "SaturationJitterAug",
]

#: Shares of R, G and B in the luminance, and, of `RandomGrayAug` alone, in grey.
LUMINANCE = np.array([0.299, 0.587, 0.114])
GREY = np.array([0.21, 0.72, 0.07])

#: From RGB to luminance and two colour differences, which a hue turns, and back.
TO_YIQ = np.array([[0.299, 0.587, 0.114], [0.596, -0.274, -0.321], [0.211, -0.523, 0.311]])
FROM_YIQ = np.array([[1.0, 0.956, 0.621], [1.0, -0.272, -0.647], [1.0, -1.107, 1.705]])


class BrightnessJitterAug(ImageAugmenter):
    """All values times a factor from ``[1 - brightness, 1 + brightness]``.

    Parameters
    ----------
    brightness : float
        0 to 1.

    Notes
    -----
    As of all changes of colour the result is float32 and not limited to 0 to 255.

    Examples
    --------
    >>> image = np.full((1, 1, 3), 100, np.uint8)
    >>> bool(abs(BrightnessJitterAug(0.2)(image) - 100).max() <= 20)
    True
    """

    def __init__(self, brightness: float) -> None:
        super().__init__(brightness=brightness)
        self.brightness = brightness

    def __call__(self, src: Any) -> np.ndarray:
        """Return the image after the step."""
        return floating(src) * _factor(self.brightness)


class ContrastJitterAug(ImageAugmenter):
    """The distance to the mean luminance of the image times a random factor.

    Parameters
    ----------
    contrast : float
        0 to 1; the factor comes from ``[1 - contrast, 1 + contrast]``.

    Examples
    --------
    >>> grey = np.full((2, 2, 3), 100, np.uint8)  # no contrast that could change
    >>> np.round(ContrastJitterAug(0.5)(grey)[0, 0], 3).tolist()
    [100.0, 100.0, 100.0]
    """

    def __init__(self, contrast: float) -> None:
        super().__init__(contrast=contrast)
        self.contrast = contrast

    def __call__(self, src: Any) -> np.ndarray:
        """Return the image after the step."""
        image, factor = rgb(src), _factor(self.contrast)
        luminance = (image @ LUMINANCE.astype(image.dtype)).mean(dtype=np.float64)
        return image * factor + image.dtype.type((1 - factor) * luminance)


class SaturationJitterAug(ImageAugmenter):
    """The distance of every pixel to its luminance times a random factor.

    Parameters
    ----------
    saturation : float
        0 to 1; the factor comes from ``[1 - saturation, 1 + saturation]``.

    Examples
    --------
    >>> grey = np.full((1, 1, 3), 100, np.uint8)  # no colour that could change
    >>> np.round(SaturationJitterAug(0.5)(grey)[0, 0], 3).tolist()
    [100.0, 100.0, 100.0]
    """

    def __init__(self, saturation: float) -> None:
        super().__init__(saturation=saturation)
        self.saturation = saturation

    def __call__(self, src: Any) -> np.ndarray:
        """Return the image after the step."""
        image, factor = rgb(src), _factor(self.saturation)
        return _mixed(image, factor * np.eye(3) + (1 - factor) * LUMINANCE)


class HueJitterAug(ImageAugmenter):
    """The colours turned around the axis of grey.

    Parameters
    ----------
    hue : float
        0 to 1; the angle comes from plus/minus this many half turns.

    Examples
    --------
    >>> red = np.array([[[255, 0, 0]]], np.uint8)
    >>> HueJitterAug(0.5)(red).shape
    (1, 1, 3)
    """

    def __init__(self, hue: float) -> None:
        super().__init__(hue=hue)
        self.hue = hue

    def __call__(self, src: Any) -> np.ndarray:
        """Return the image after the step."""
        image = rgb(src)
        angle = np.pi * example_random().uniform(-self.hue, self.hue)
        u, w = np.cos(angle), np.sin(angle)
        turn = FROM_YIQ @ np.array([[1.0, 0.0, 0.0], [0.0, u, -w], [0.0, w, u]]) @ TO_YIQ
        return _mixed(image, turn)


class ColorJitterAug(RandomOrderAug):
    """Brightness, contrast and saturation in random order.

    Parameters
    ----------
    brightness, contrast, saturation : float
        0 to 1; a 0 leaves out the step.

    Examples
    --------
    >>> ColorJitterAug(0.2, 0, 0.1).ts
    [BrightnessJitterAug(brightness=0.2), SaturationJitterAug(saturation=0.1)]
    """

    def __init__(self, brightness: float, contrast: float, saturation: float) -> None:
        steps: list[Step] = []
        if brightness > 0:
            steps.append(BrightnessJitterAug(brightness))
        if contrast > 0:
            steps.append(ContrastJitterAug(contrast))
        if saturation > 0:
            steps.append(SaturationJitterAug(saturation))
        super().__init__(steps)


class LightingAug(ImageAugmenter):
    """One colour added to all pixels: noise along the principal colours of a set of images.

    Parameters
    ----------
    alphastd : float
        Standard deviation of the share of each principal colour.
    eigval : array_like, (3,)
        How much the images vary along each.
    eigvec : array_like, (3, 3)
        The principal colours, in columns.

    Examples
    --------
    >>> light = LightingAug(0.1, [55.46, 4.794, 1.148], np.eye(3))
    >>> difference = light(np.zeros((2, 2, 3), np.uint8))
    >>> bool((difference == difference[0, 0]).all())
    True
    """

    def __init__(self, alphastd: float, eigval: Any, eigvec: Any) -> None:
        super().__init__(alphastd=alphastd, eigval=eigval, eigvec=eigvec)
        self.alphastd = alphastd
        self.eigval, self.eigvec = np.asarray(eigval), np.asarray(eigvec)

    def __call__(self, src: Any) -> np.ndarray:
        """Return the image after the step."""
        image = rgb(src)
        shares = example_normal(self.alphastd, 3)
        return image + per_row(self.eigvec * shares @ self.eigval, image)


class ColorNormalizeAug(ImageAugmenter):
    """Subtract a mean and divide by a standard deviation: `color_normalize`.

    Parameters
    ----------
    mean, std : array_like of 1 or 3 numbers, optional
        In grey levels.

    Examples
    --------
    >>> ColorNormalizeAug([1, 2, 3], [2, 2, 2])(np.full((1, 1, 3), 5, np.uint8)).tolist()
    [[[2.0, 1.5, 1.0]]]
    """

    def __init__(self, mean: Any, std: Any) -> None:
        super().__init__(mean=mean, std=std)
        self.mean = None if mean is None else np.asarray(mean, np.float32)
        self.std = None if std is None else np.asarray(std, np.float32)

    def __call__(self, src: Any) -> np.ndarray:
        """Return the image after the step."""
        return color_normalize(src, self.mean, self.std)


class RandomGrayAug(ImageAugmenter):
    """Turn grey with a probability; the image keeps three channels.

    Parameters
    ----------
    p : float
        0 to 1.

    Examples
    --------
    >>> red = np.array([[[100, 0, 0]]], np.uint8)
    >>> np.round(RandomGrayAug(1)(red), 3).tolist()
    [[[21.0, 21.0, 21.0]]]
    """

    def __init__(self, p: float) -> None:
        super().__init__(p=p)
        self.p = p

    def __call__(self, src: Any) -> np.ndarray:
        """Return the image after the step."""
        if example_random().random() >= self.p:
            return image_of(src)
        return _mixed(rgb(src), np.tile(GREY, (3, 1)))


def rgb(src: Any) -> np.ndarray:
    """Return the image as floats, checked to have three channels."""
    image = floating(src)
    if image.shape[2] != 3:
        raise ValueError(f"colours of an image of shape {image.shape}: expected 3 channels")
    return image


def _factor(change: float) -> float:
    return 1.0 + example_random().uniform(-change, change)


def _mixed(image: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Multiply every pixel by a matrix whose rows give R, G and B."""
    import cv2

    return cv2.transform(image, matrix)
