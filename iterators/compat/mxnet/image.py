"""Names of `mx.image`: functions on single images, augmenters and iterators that give `NDArray`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ... import mx_image as _mx_image
from .delivery import ToNDArray, delivering, giving, step_giving

imdecode: Callable[..., Any] = giving(_mx_image.imdecode)
imread: Callable[..., Any] = giving(_mx_image.imread)
imresize: Callable[..., Any] = giving(_mx_image.imresize)
imrotate: Callable[..., Any] = giving(_mx_image.imrotate)
random_rotate: Callable[..., Any] = giving(_mx_image.random_rotate)
resize_short: Callable[..., Any] = giving(_mx_image.resize_short)
scale_down: Callable[..., tuple[int, int]] = _mx_image.scale_down
copyMakeBorder: Callable[..., Any] = giving(_mx_image.copyMakeBorder)
color_normalize: Callable[..., Any] = giving(_mx_image.color_normalize)
fixed_crop: Callable[..., Any] = giving(_mx_image.fixed_crop)
center_crop: Callable[..., Any] = giving(_mx_image.center_crop)
random_crop: Callable[..., Any] = giving(_mx_image.random_crop)
random_size_crop: Callable[..., Any] = giving(_mx_image.random_size_crop)

Augmenter = _mx_image.Augmenter
DetAugmenter = _mx_image.DetAugmenter
CreateMultiRandCropAugmenter = _mx_image.CreateMultiRandCropAugmenter

BrightnessJitterAug: type[_mx_image.BrightnessJitterAug] = step_giving(
    _mx_image.BrightnessJitterAug, __name__
)
CastAug: type[_mx_image.CastAug] = step_giving(_mx_image.CastAug, __name__)
CenterCropAug: type[_mx_image.CenterCropAug] = step_giving(_mx_image.CenterCropAug, __name__)
ColorJitterAug: type[_mx_image.ColorJitterAug] = step_giving(_mx_image.ColorJitterAug, __name__)
ColorNormalizeAug: type[_mx_image.ColorNormalizeAug] = step_giving(
    _mx_image.ColorNormalizeAug, __name__
)
ContrastJitterAug: type[_mx_image.ContrastJitterAug] = step_giving(
    _mx_image.ContrastJitterAug, __name__
)
ForceResizeAug: type[_mx_image.ForceResizeAug] = step_giving(_mx_image.ForceResizeAug, __name__)
HorizontalFlipAug: type[_mx_image.HorizontalFlipAug] = step_giving(
    _mx_image.HorizontalFlipAug, __name__
)
HueJitterAug: type[_mx_image.HueJitterAug] = step_giving(_mx_image.HueJitterAug, __name__)
LightingAug: type[_mx_image.LightingAug] = step_giving(_mx_image.LightingAug, __name__)
RandomCropAug: type[_mx_image.RandomCropAug] = step_giving(_mx_image.RandomCropAug, __name__)
RandomGrayAug: type[_mx_image.RandomGrayAug] = step_giving(_mx_image.RandomGrayAug, __name__)
RandomOrderAug: type[_mx_image.RandomOrderAug] = step_giving(_mx_image.RandomOrderAug, __name__)
RandomSizedCropAug: type[_mx_image.RandomSizedCropAug] = step_giving(
    _mx_image.RandomSizedCropAug, __name__
)
ResizeAug: type[_mx_image.ResizeAug] = step_giving(_mx_image.ResizeAug, __name__)
SaturationJitterAug: type[_mx_image.SaturationJitterAug] = step_giving(
    _mx_image.SaturationJitterAug, __name__
)
SequentialAug: type[_mx_image.SequentialAug] = step_giving(_mx_image.SequentialAug, __name__)
DetBorrowAug: type[_mx_image.DetBorrowAug] = step_giving(_mx_image.DetBorrowAug, __name__)
DetHorizontalFlipAug: type[_mx_image.DetHorizontalFlipAug] = step_giving(
    _mx_image.DetHorizontalFlipAug, __name__
)
DetRandomCropAug: type[_mx_image.DetRandomCropAug] = step_giving(
    _mx_image.DetRandomCropAug, __name__
)
DetRandomPadAug: type[_mx_image.DetRandomPadAug] = step_giving(_mx_image.DetRandomPadAug, __name__)
DetRandomSelectAug: type[_mx_image.DetRandomSelectAug] = step_giving(
    _mx_image.DetRandomSelectAug, __name__
)


class _GivenSteps(_mx_image.DescribedSteps):
    """The steps of `CreateAugmenter`, of which each gives an NDArray."""

    def __getitem__(self, position: Any) -> Any:
        found = super().__getitem__(position)
        return tuple(map(_given, found)) if isinstance(found, tuple) else _given(found)

    def __iter__(self) -> Any:
        return (_given(step) for step in super().__iter__())


def _create_augmenter(*values: Any, **keywords: Any) -> Any:
    return _GivenSteps(**_mx_image.CreateAugmenter(*values, **keywords).changed())


def _create_det_augmenter(*values: Any, **keywords: Any) -> list[Any]:
    return [_given(step) for step in _mx_image.CreateDetAugmenter(*values, **keywords)]


def _given(step: Any) -> Any:
    """Make a step that was just made one that gives an NDArray."""
    step.__class__ = globals()[type(step).__name__]
    return step


def _with_steps(kind: type[Any], first: Any) -> Any:
    """Return an iterator class whose functions of a script are called with NDArrays."""

    def made(self: Any, *values: Any, **keywords: Any) -> None:
        steps = keywords.get("aug_list")
        if isinstance(steps, list | tuple):
            keywords["aug_list"] = [first, *steps]
        kind.__init__(self, *values, **keywords)  # type: ignore[misc]

    return delivering(kind, __name__, __init__=functools.wraps(kind.__init__)(made))  # type: ignore[misc]


CreateAugmenter = functools.wraps(_mx_image.CreateAugmenter)(_create_augmenter)
CreateDetAugmenter = functools.wraps(_mx_image.CreateDetAugmenter)(_create_det_augmenter)
ImageIter: Any = _with_steps(_mx_image.ImageIter, ToNDArray())
ImageDetIter: Any = _with_steps(_mx_image.ImageDetIter, DetBorrowAug(ToNDArray()))
