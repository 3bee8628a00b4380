"""Names of `mx.image.image`: functions on single images, augmenters and `ImageIter`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from .... import mx_image as _mx_image
from ....mx_image.functions import interpolation
from ..ndarray_results import ToNDArray, as_giving, giving, step_giving, with_steps

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


class _GivenSteps(_mx_image.DescribedSteps):
    """The steps of `CreateAugmenter`, of which each gives an NDArray."""

    def __getitem__(self, position: Any) -> Any:
        steps = super().__getitem__(position)
        return tuple(map(as_giving, steps)) if isinstance(steps, tuple) else as_giving(steps)

    def __iter__(self) -> Any:
        return (as_giving(step) for step in super().__iter__())


def _get_interp_method(interp: int, sizes: Sequence[int] = ()) -> int:
    """Return the method that `interp` stands for between two sizes, as gluon-cv asks for it.

    `sizes` has the old height and width and the new ones; without them 9 is cubic, as in MXNet.
    """
    return (
        interpolation(interp, sizes[:2], sizes[2:])
        if len(sizes)
        else interpolation(interp, (0, 0), (1, 1))
    )


def _create_augmenter(*values: Any, **keywords: Any) -> Any:
    return _GivenSteps(**_mx_image.CreateAugmenter(*values, **keywords).changed())


CreateAugmenter: Callable[..., Any] = functools.wraps(_mx_image.CreateAugmenter)(_create_augmenter)
ImageIter: Any = with_steps(_mx_image.ImageIter, ToNDArray(), __name__)
