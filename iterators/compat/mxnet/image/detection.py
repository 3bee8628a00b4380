"""Names of `mx.image.detection`: augmenters of images with boxes, and `ImageDetIter`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .... import mx_image as _mx_image
from ..ndarray_results import ToNDArray, as_giving, step_giving, with_steps

DetAugmenter = _mx_image.DetAugmenter
CreateMultiRandCropAugmenter: Callable[..., Any] = _mx_image.CreateMultiRandCropAugmenter

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


def _create_det_augmenter(*values: Any, **keywords: Any) -> list[Any]:
    return [as_giving(step) for step in _mx_image.CreateDetAugmenter(*values, **keywords)]


CreateDetAugmenter: Callable[..., Any] = functools.wraps(_mx_image.CreateDetAugmenter)(
    _create_det_augmenter
)
ImageDetIter: Any = with_steps(_mx_image.ImageDetIter, DetBorrowAug(ToNDArray()), __name__)
