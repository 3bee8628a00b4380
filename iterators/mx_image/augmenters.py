"""The augmenters of MXNet's `mx.image` as callables: an image goes in, another one comes out.

Each is one step in Python; what those that change colours return is float32 (float64 for such
images) and not limited to 0 to 255.  `CreateAugmenter` describes the same steps for the image
stage, which does them for whole batches in threads of its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from recordio.formats import by_opencv
from recordio.keywords.checks import choice, integer, integers, real

from ..core.example_random import example_normal, example_random
from ..images.augment.ranges import chance
from .crops import (
    area_range,
    center_crop,
    logarithms,
    random_crop,
    random_size_crop,
    renamed_area,
)
from .functions import (
    METHODS,
    color_normalize,
    floating,
    image_of,
    imresize,
    mirrored,
    per_row,
    resize_short,
)
from .image_iter import described_step


class Described:
    """Base with a name and parameters: numbers, strings, and sequences of these."""

    def __init__(self, **parameters: Any) -> None:
        self._kwargs = {name: _plain(value) for name, value in parameters.items()}

    def dumps(self) -> Any:
        """Return the name and parameters in JSON; lists of these for a step of several."""
        return json.dumps([type(self).__name__.lower(), self._kwargs])

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in self._kwargs.items())
        return f"{type(self).__name__}({arguments})"


class ImageAugmenter(Described):
    """Base class: a step that is called with an image and returns one.

    Parameters
    ----------
    **parameters
        Values for `dumps`: numbers, strings, and sequences of these.

    Notes
    -----
    Random numbers come from `example_random`: inside an iterator they depend on the seed, the epoch
    and the image alone, elsewhere on Python's generator.

    Examples
    --------
    >>> class Darker(ImageAugmenter):
    ...     def __init__(self, factor):
    ...         super().__init__(factor=factor)
    ...         self.factor = factor
    ...     def __call__(self, src):
    ...         return src * self.factor
    >>> Darker(0.5).dumps()
    '["darker", {"factor": 0.5}]'
    """

    def __call__(self, src: Any) -> np.ndarray:
        """Return the image after the step."""
        raise NotImplementedError(f"{type(self).__name__} does not define __call__(src)")


#: MXNet's name, which on the top level of `iterators` is that of a description of steps.
Augmenter = ImageAugmenter

Step = Callable[[Any], Any]


class SequentialAug(ImageAugmenter):
    """Apply steps one after the other.

    Parameters
    ----------
    ts : list of callable

    Examples
    --------
    >>> SequentialAug([ResizeAug(4), CenterCropAug((4, 4))])(np.zeros((8, 9, 3), np.uint8)).shape
    (4, 4, 3)
    """

    def __init__(self, ts: Sequence[Step]) -> None:
        super().__init__()
        self.ts = ts

    def dumps(self) -> list[Any]:
        """Return the name and parameters of all steps."""
        return [type(self).__name__.lower(), [described_step(step) for step in self.ts]]

    def __call__(self, src: Any) -> np.ndarray:
        for step in self.ts:
            src = step(src)
        return src

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self.ts)!r})"


class RandomOrderAug(SequentialAug):
    """Apply steps in random order.

    Parameters
    ----------
    ts : list of callable
        The list is left unchanged; MXNet shuffles it.

    Examples
    --------
    >>> image = np.zeros((8, 9, 3), np.uint8)
    >>> RandomOrderAug([CastAug(), HorizontalFlipAug(0.5)])(image).dtype
    dtype('float32')
    """

    def __call__(self, src: Any) -> np.ndarray:
        order = list(self.ts)
        example_random().shuffle(order)
        for step in order:
            src = step(src)
        return src


class ResizeAug(ImageAugmenter):
    """Resize so that the shorter side has a given length: `resize_short`.

    Parameters
    ----------
    size : int
        Pixels of the shorter side, at least 1.
    interp : int
        As for `imresize`.

    Examples
    --------
    >>> ResizeAug(4)(np.zeros((8, 16, 3), np.uint8)).shape
    (4, 8, 3)
    """

    def __init__(self, size: int, interp: int = 2) -> None:
        super().__init__(size=size, interp=interp)
        self.size: int = integer("size", size, low=1)
        self.interp: int = choice("interp", interp, METHODS)

    def __call__(self, src: Any) -> np.ndarray:
        return resize_short(src, self.size, self.interp)


class _ToSize(ImageAugmenter):
    """Base of the steps to a width and a height."""

    def __init__(self, size: Sequence[int], interp: int = 2) -> None:
        super().__init__(size=size, interp=interp)
        self.size: Sequence[int] = integers("size", size, 2)
        self.interp: int = choice("interp", interp, METHODS)


class ForceResizeAug(_ToSize):
    """Resize to a given size, which may change the proportions: `imresize`.

    Parameters
    ----------
    size : (int, int)
        Width and height.
    interp : int
        As for `imresize`.

    Examples
    --------
    >>> ForceResizeAug((5, 4))(np.zeros((8, 16, 3), np.uint8)).shape
    (4, 5, 3)
    """

    def __call__(self, src: Any) -> np.ndarray:
        return imresize(src, self.size[0], self.size[1], self.interp)


class RandomCropAug(_ToSize):
    """Crop at a random position: `random_crop`.

    Parameters
    ----------
    size : (int, int)
        Width and height.
    interp : int
        As for `imresize`.

    Examples
    --------
    >>> RandomCropAug((5, 4))(np.zeros((8, 16, 3), np.uint8)).shape
    (4, 5, 3)
    """

    def __call__(self, src: Any) -> np.ndarray:
        return random_crop(src, self.size, self.interp)[0]


class RandomSizedCropAug(ImageAugmenter):
    """Crop a random share of the area with random proportions: `random_size_crop`.

    Parameters
    ----------
    size, area, ratio, interp, min_area
        As for `random_size_crop`.

    Examples
    --------
    >>> crop = RandomSizedCropAug((5, 4), area=(0.08, 1), ratio=(3 / 4, 4 / 3))
    >>> crop(np.zeros((8, 16, 3), np.uint8)).shape
    (4, 5, 3)
    """

    def __init__(
        self,
        size: Sequence[int],
        area: Any,
        ratio: Sequence[float],
        interp: int = 2,
        *,
        min_area: Any = None,
    ) -> None:
        area = renamed_area(area, min_area)
        super().__init__(size=size, area=area, ratio=ratio, interp=interp)
        # Refuse now what no image can be cropped by.
        area_range(area)
        logarithms(ratio)
        self.size: Sequence[int] = integers("size", size, 2)
        self.area: Any = area
        self.ratio: Sequence[float] = ratio
        self.interp: int = choice("interp", interp, METHODS)

    def __call__(self, src: Any) -> np.ndarray:
        return random_size_crop(src, self.size, self.area, self.ratio, self.interp)[0]


class CenterCropAug(_ToSize):
    """Crop at the centre: `center_crop`.

    Parameters
    ----------
    size : (int, int)
        Width and height.
    interp : int
        As for `imresize`.

    Examples
    --------
    >>> image = np.arange(24, dtype=np.uint8).reshape(4, 6, 1)
    >>> CenterCropAug((2, 2))(image)[:, :, 0].tolist()
    [[8, 9], [14, 15]]
    """

    def __call__(self, src: Any) -> np.ndarray:
        return center_crop(src, self.size, self.interp)[0]


class HorizontalFlipAug(ImageAugmenter):
    """Mirror an image horizontally with probability `p`.

    Parameters
    ----------
    p : float
        0 to 1.

    Examples
    --------
    >>> HorizontalFlipAug(1)(np.arange(3, dtype=np.uint8).reshape(1, 3, 1)).ravel().tolist()
    [2, 1, 0]
    """

    def __init__(self, p: float) -> None:
        super().__init__(p=p)
        self.p: float = chance("p", p)

    def __call__(self, src: Any) -> np.ndarray:
        image = image_of(src)
        if example_random().random() < self.p:
            return mirrored(image)
        return image


class CastAug(ImageAugmenter):
    """Convert to another element type.

    Parameters
    ----------
    typ : dtype_like
        float32 by default.

    Examples
    --------
    >>> CastAug()(np.zeros((2, 2, 3), np.uint8)).dtype
    dtype('float32')
    """

    def __init__(self, typ: Any = "float32") -> None:
        super().__init__(type=np.dtype(typ).name)
        self.typ = typ

    def __call__(self, src: Any) -> np.ndarray:
        return np.asarray(src).astype(self.typ)


def _plain(value: Any) -> Any:
    """Return a value that JSON can hold."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    return value


#: Shares of R, G and B in the luminance, and, of `RandomGrayAug` alone, in grey.
LUMINANCE = np.array([0.299, 0.587, 0.114])
GREY = np.array([0.21, 0.72, 0.07])

#: From RGB to luminance and two colour differences, which a hue turns, and back.
TO_YIQ = np.array([[0.299, 0.587, 0.114], [0.596, -0.274, -0.321], [0.211, -0.523, 0.311]])
FROM_YIQ = np.array([[1.0, 0.956, 0.621], [1.0, -0.272, -0.647], [1.0, -1.107, 1.705]])


class BrightnessJitterAug(ImageAugmenter):
    """Multiply all values by a factor drawn from ``[1 - brightness, 1 + brightness]``.

    Parameters
    ----------
    brightness : float
        At least 0.

    Notes
    -----
    The result is float32 and not limited to 0 to 255, as for all changes of colour.

    Examples
    --------
    >>> image = np.full((1, 1, 3), 100, np.uint8)
    >>> bool(abs(BrightnessJitterAug(0.2)(image) - 100).max() <= 20)
    True
    """

    def __init__(self, brightness: float) -> None:
        super().__init__(brightness=brightness)
        self.brightness: float = real("brightness", brightness, low=0)

    def __call__(self, src: Any) -> np.ndarray:
        return floating(src) * _factor(self.brightness)


class ContrastJitterAug(ImageAugmenter):
    """Multiply the distance to the mean luminance of the image by a random factor.

    Parameters
    ----------
    contrast : float
        At least 0; the factor comes from ``[1 - contrast, 1 + contrast]``.

    Examples
    --------
    >>> grey = np.full((2, 2, 3), 100, np.uint8)  # no contrast that could change
    >>> np.round(ContrastJitterAug(0.5)(grey)[0, 0], 3).tolist()
    [100.0, 100.0, 100.0]
    """

    def __init__(self, contrast: float) -> None:
        super().__init__(contrast=contrast)
        self.contrast: float = real("contrast", contrast, low=0)

    def __call__(self, src: Any) -> np.ndarray:
        image, factor = rgb(src), _factor(self.contrast)
        luminance = (image @ LUMINANCE.astype(image.dtype)).mean(dtype=np.float64)
        return image * factor + image.dtype.type((1 - factor) * luminance)


class SaturationJitterAug(ImageAugmenter):
    """Multiply the distance of every pixel to its luminance by a random factor.

    Parameters
    ----------
    saturation : float
        At least 0; the factor comes from ``[1 - saturation, 1 + saturation]``.

    Examples
    --------
    >>> grey = np.full((1, 1, 3), 100, np.uint8)  # no colour that could change
    >>> np.round(SaturationJitterAug(0.5)(grey)[0, 0], 3).tolist()
    [100.0, 100.0, 100.0]
    """

    def __init__(self, saturation: float) -> None:
        super().__init__(saturation=saturation)
        self.saturation: float = real("saturation", saturation, low=0)

    def __call__(self, src: Any) -> np.ndarray:
        image, factor = rgb(src), _factor(self.saturation)
        return _mixed(image, factor * np.eye(3) + (1 - factor) * LUMINANCE)


class HueJitterAug(ImageAugmenter):
    """Turn the colours around the axis of grey by a random angle.

    Parameters
    ----------
    hue : float
        At least 0; the angle comes from plus/minus this many half turns.

    Examples
    --------
    >>> red = np.array([[[255, 0, 0]]], np.uint8)
    >>> HueJitterAug(0.5)(red).shape
    (1, 1, 3)
    """

    def __init__(self, hue: float) -> None:
        super().__init__(hue=hue)
        self.hue: float = real("hue", hue, low=0)

    def __call__(self, src: Any) -> np.ndarray:
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
        At least 0; a 0 leaves out the step.

    Examples
    --------
    >>> ColorJitterAug(0.2, 0, 0.1).ts
    [BrightnessJitterAug(brightness=0.2), SaturationJitterAug(saturation=0.1)]
    """

    def __init__(self, brightness: float, contrast: float, saturation: float) -> None:
        changes = (
            (BrightnessJitterAug(brightness), brightness),
            (ContrastJitterAug(contrast), contrast),
            (SaturationJitterAug(saturation), saturation),
        )
        super().__init__([step for step, change in changes if change])


class LightingAug(ImageAugmenter):
    """Add one colour to all pixels: noise along the principal colours of a set of images.

    Parameters
    ----------
    alphastd : float
        Standard deviation of the share of each principal colour, at least 0.
    eigval : array_like, (3,)
        Variation of the images along each of them.
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
        self.alphastd: float = real("alphastd", alphastd, low=0)
        self.eigval: np.ndarray = np.asarray(eigval)
        self.eigvec: np.ndarray = np.asarray(eigvec)
        if self.eigval.shape != (3,) or self.eigvec.shape != (3, 3):
            raise ValueError(
                f"eigval and eigvec have the shapes {self.eigval.shape} and {self.eigvec.shape}: "
                "expected (3,) and (3, 3)"
            )

    def __call__(self, src: Any) -> np.ndarray:
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
        self.mean: np.ndarray | None = None if mean is None else np.asarray(mean, np.float32)
        self.std: np.ndarray | None = None if std is None else np.asarray(std, np.float32)

    def __call__(self, src: Any) -> np.ndarray:
        return color_normalize(src, self.mean, self.std)


class RandomGrayAug(ImageAugmenter):
    """Turn an image grey with probability `p`; it keeps three channels.

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
        self.p: float = chance("p", p)

    def __call__(self, src: Any) -> np.ndarray:
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
    if by_opencv.available():
        import cv2

        return cv2.transform(image, matrix)
    return np.inner(image, np.asarray(matrix, image.dtype))
