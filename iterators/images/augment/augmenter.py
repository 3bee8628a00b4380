"""`CreateAugmenter`: the image parameters of MXNet's `mx.image`, described for the image stage.

MXNet's function returns a list of callables; this one returns an `Augmenter`, a validated set of
parameters that the stage executes.  It never touches a pixel itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from ...core.parameters import boolean, integer, real
from .recipe import Recipe

__all__ = ["Augmenter", "CreateAugmenter"]

#: What ``mean=True`` and ``std=True`` stand for: those of ImageNet, in grey levels of R, G and B.
IMAGENET_MEAN = (123.68, 116.28, 103.53)
IMAGENET_STD = (58.395, 57.12, 57.375)

#: Share of the area, and range of width / height, of a random crop that is resized.
LEAST_AREA = 0.08
LEAST_RATIO, LARGEST_RATIO = 3 / 4, 4 / 3


@dataclass(frozen=True, kw_only=True)
class Augmenter(Recipe):
    """What `CreateAugmenter` returns: a `Recipe` whose steps are those of MXNet's `mx.image`.

    Compared with the steps of `ImageRecordIter`, an image that is too small is cropped to the
    proportions of the result and then grown; the aspect ratio of a random area is uniform in its
    logarithm; and colours are changed in float, without rounding and without limits.

    Parameters
    ----------
    hue : float
        Largest turn of the hue, as a share of half the colour circle.
    rand_gray : float
        Probability, 0 to 1, to turn grey; the image keeps three channels.
    **more
        As for `Recipe`.
    """

    hue: float = 0.0
    rand_gray: float = 0.0

    crops_first: ClassVar[bool] = True
    log_ratio: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "hue", real("hue", self.hue, 0))
        object.__setattr__(self, "rand_gray", real("rand_gray", self.rand_gray, 0, 1))
        for name in ("hue", "rand_gray"):
            if self.channels != 3 and getattr(self, name):
                raise ValueError(f"{name} needs RGB images: data_shape with 3 channels")

    @property
    def coloured(self) -> bool:
        """Whether any colour changes, beside normalisation."""
        return any(
            (self.brightness, self.contrast, self.saturation)
            + (self.hue, self.pca_noise, self.rand_gray)
        )

    def __repr__(self) -> str:
        changed = (
            f"{field.name}={getattr(self, field.name)!r}"
            for field in fields(self)
            if getattr(self, field.name) != field.default
        )
        return f"Augmenter({', '.join(changed)})"


def CreateAugmenter(
    data_shape: Sequence[int],
    resize: int = 0,
    rand_crop: bool = False,
    rand_resize: bool = False,
    rand_mirror: bool = False,
    mean: Any = None,
    std: Any = None,
    brightness: float = 0,
    contrast: float = 0,
    saturation: float = 0,
    hue: float = 0,
    pca_noise: float = 0,
    rand_gray: float = 0,
    inter_method: int = 2,
    *,
    scaled_decode: bool = True,
) -> Augmenter:
    """What happens to the images of an `ImageIter`, under MXNet's names and with its defaults.

    The steps follow each other in this order: resize, crop, mirror, brightness / contrast /
    saturation in random order, hue, noise, grey, mean and standard deviation.  Colours are changed
    in float: values may leave the range from 0 to 255, as in MXNet.

    Parameters
    ----------
    data_shape : tuple of int
        (channels, height, width) of the result; 1, 3 or 4 channels.
    resize : int
        Short side after a first resize, in pixels; 0 leaves the image as it is.
    rand_crop : bool
        Crop at a random place instead of the centre.
    rand_resize : bool
        Crop a random area of 0.08 to 1 of the image with a width of 3/4 to 4/3 of the height, and
        resize it to `data_shape`; needs `rand_crop`.
    rand_mirror : bool
        Mirror horizontally with probability one half.
    mean, std : array_like of 1 or 3 numbers, or True, optional
        Subtracted from and divided into the values of R, G and B (0 to 255); True for those of
        ImageNet.
    brightness, contrast, saturation : float
        Each is changed by a factor drawn from ``[1 - x, 1 + x]``.
    hue : float
        The hue is turned by an angle drawn from plus/minus this many half turns.
    pca_noise : float
        Standard deviation of the noise along the principal colours of ImageNet.
    rand_gray : float
        Probability to turn an image grey, 0 to 1.
    inter_method : int
        Interpolation: 0 nearest, 1 bilinear, 2 cubic, 3 area, 4 Lanczos, 9 cubic when both sides
        grow, area when both shrink, bilinear otherwise, 10 one of 0 to 4 at random for every image.
    scaled_decode : bool
        As for `Recipe`; False decodes every JPEG in full, as MXNet does.

    Returns
    -------
    Augmenter
        A description, immutable and comparable, to be passed as ``aug_list`` of `ImageIter`.  It is
        not a list of functions.

    Raises
    ------
    TypeError, ValueError
        For a value that is not what the parameter can be; the message names it.

    Examples
    --------
    >>> CreateAugmenter((3, 32, 32), resize=36, rand_mirror=True, std=True).std
    (58.395, 57.12, 57.375, 1.0)
    """
    rand_crop, rand_resize = boolean("rand_crop", rand_crop), boolean("rand_resize", rand_resize)
    if rand_resize and not rand_crop:
        raise ValueError("rand_resize=True needs rand_crop=True")
    area: dict[str, Any] = {}
    if rand_resize:
        area = {
            "random_resized_crop": True,
            "min_random_area": LEAST_AREA,
            "min_aspect_ratio": LEAST_RATIO,
            "max_aspect_ratio": LARGEST_RATIO,
        }
    return Augmenter(
        data_shape=data_shape,  # type: ignore[arg-type]  # checked there
        resize=integer("resize", resize, -1) or -1,
        rand_crop=rand_crop and not rand_resize,
        rand_mirror=rand_mirror,
        brightness=brightness,
        contrast=contrast,
        saturation=saturation,
        hue=hue,
        pca_noise=pca_noise,
        rand_gray=rand_gray,
        inter_method=inter_method,
        scaled_decode=scaled_decode,
        **area,
        **_per_channel("mean", mean, IMAGENET_MEAN),
        **_per_channel("std", std, IMAGENET_STD),
    )


def _per_channel(name: str, value: Any, of_imagenet: tuple[float, float, float]) -> dict[str, Any]:
    """The parameters `name_r`, `name_g` and `name_b` of a recipe."""
    if value is None or value is False:
        return {}
    try:
        numbers = np.asarray(of_imagenet if value is True else value, np.float64)
    except (TypeError, ValueError):
        numbers = np.zeros(0)
    if numbers.ndim > 1 or numbers.size not in (1, 3):
        raise ValueError(f"{name}={value!r}: expected True, None, or 1 or 3 numbers")
    red, green, blue = np.broadcast_to(numbers.ravel(), 3).tolist()
    return {f"{name}_r": red, f"{name}_g": green, f"{name}_b": blue}
