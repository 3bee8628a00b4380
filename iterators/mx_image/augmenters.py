"""The augmenters of MXNet's `mx.image` as callables: an image goes in, another one comes out.

Each is one step in Python; those that change colours are in `colours`.  `CreateAugmenter` describes
the same steps for the image stage, which does them for whole batches in threads of its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.example_random import example_random
from ..providers.image_iter import described_step
from .crops import center_crop, random_crop, random_size_crop, renamed_area
from .functions import image_of, imresize, mirrored, resize_short

__all__ = [
    "Augmenter",
    "CastAug",
    "CenterCropAug",
    "ForceResizeAug",
    "HorizontalFlipAug",
    "ImageAugmenter",
    "RandomCropAug",
    "RandomOrderAug",
    "RandomSizedCropAug",
    "ResizeAug",
    "SequentialAug",
]


class Described:
    """Base with a name and parameters: numbers, strings, and sequences of these."""

    def __init__(self, **parameters: Any) -> None:
        self._kwargs = {name: _plain(value) for name, value in parameters.items()}

    def dumps(self) -> Any:
        """Return the name and parameters in JSON; lists of these for a step of several."""
        return json.dumps([type(self).__name__.lower(), self._kwargs])

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self._kwargs.items())
        return f"{type(self).__name__}({given})"


class ImageAugmenter(Described):
    """Base class: a step that is called with an image and returns one.

    Parameters
    ----------
    **parameters
        What `dumps` says about the step: numbers, strings, and sequences of these.

    Notes
    -----
    What is random comes from `example_random`: inside an iterator it depends on the seed, the epoch
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
    """Steps one after the other.

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
        """Return the image after the step."""
        for step in self.ts:
            src = step(src)
        return src

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self.ts)!r})"


class RandomOrderAug(SequentialAug):
    """Steps in random order.

    Parameters
    ----------
    ts : list of callable
        Stays as it is; MXNet shuffles the list itself.

    Examples
    --------
    >>> image = np.zeros((8, 9, 3), np.uint8)
    >>> RandomOrderAug([CastAug(), HorizontalFlipAug(0.5)])(image).dtype
    dtype('float32')
    """

    def __call__(self, src: Any) -> np.ndarray:
        """Return the image after the step."""
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
        Pixels of the shorter side.
    interp : int
        As for `imresize`.

    Examples
    --------
    >>> ResizeAug(4)(np.zeros((8, 16, 3), np.uint8)).shape
    (4, 8, 3)
    """

    def __init__(self, size: int, interp: int = 2) -> None:
        super().__init__(size=size, interp=interp)
        self.size, self.interp = size, interp

    def __call__(self, src: Any) -> np.ndarray:
        """Return the image after the step."""
        return resize_short(src, self.size, self.interp)


class ForceResizeAug(ImageAugmenter):
    """Resize to a given size, whatever the proportions: `imresize`.

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

    def __init__(self, size: Sequence[int], interp: int = 2) -> None:
        super().__init__(size=size, interp=interp)
        self.size, self.interp = size, interp

    def __call__(self, src: Any) -> np.ndarray:
        """Return the image after the step."""
        return imresize(src, self.size[0], self.size[1], self.interp)


class RandomCropAug(ImageAugmenter):
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

    def __init__(self, size: Sequence[int], interp: int = 2) -> None:
        super().__init__(size=size, interp=interp)
        self.size, self.interp = size, interp

    def __call__(self, src: Any) -> np.ndarray:
        """Return the image after the step."""
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
        self.size, self.area, self.ratio, self.interp = size, area, ratio, interp

    def __call__(self, src: Any) -> np.ndarray:
        """Return the image after the step."""
        return random_size_crop(src, self.size, self.area, self.ratio, self.interp)[0]


class CenterCropAug(ImageAugmenter):
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

    def __init__(self, size: Sequence[int], interp: int = 2) -> None:
        super().__init__(size=size, interp=interp)
        self.size, self.interp = size, interp

    def __call__(self, src: Any) -> np.ndarray:
        """Return the image after the step."""
        return center_crop(src, self.size, self.interp)[0]


class HorizontalFlipAug(ImageAugmenter):
    """Mirror left and right with a probability.

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
        self.p = p

    def __call__(self, src: Any) -> np.ndarray:
        """Return the image after the step."""
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
        """Return the image after the step."""
        return np.asarray(src).astype(self.typ)


def _plain(value: Any) -> Any:
    """Return a value that JSON can hold."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    return value
