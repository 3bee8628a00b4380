"""`CreateAugmenter` and `CreateDetAugmenter`: MXNet's usual steps from a few parameters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, overload

import numpy as np

from recordio.keywords.options import Options, accepts, described, option

from ..images.augment.augmenter import Augmenter, AugmenterOptions, described_augmenter
from ..images.augment.policy_options import PolicyOptions
from ..images.augment.ranges import chance
from .augmenters import (
    CastAug,
    CenterCropAug,
    ColorJitterAug,
    ColorNormalizeAug,
    ForceResizeAug,
    HorizontalFlipAug,
    HueJitterAug,
    ImageAugmenter,
    LightingAug,
    RandomCropAug,
    RandomGrayAug,
    RandomSizedCropAug,
    ResizeAug,
)
from .detection import (
    CreateMultiRandCropAugmenter,
    DetAugmenter,
    DetBorrowAug,
    DetHorizontalFlipAug,
    DetRandomPadAug,
    DetRandomSelectAug,
)

#: The principal colours of ImageNet, in columns, and how much its images vary along each.
IMAGENET_VALUES = np.array([55.46, 4.794, 1.148])
IMAGENET_VECTORS = np.array(
    [[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140], [-0.5836, -0.6948, 0.4203]]
)


class DescribedSteps(Augmenter, Sequence[ImageAugmenter]):
    """The steps of `CreateAugmenter`, as augmenters and as a description.

    As a description, it is passed to `ImageIter`, whose image stage carries out the steps.  As a
    sequence, it holds the same steps in Python, to be called one by one or put into a list with
    others: ``[*steps, my_own]``.

    Raises
    ------
    ValueError
        If it is used as a sequence but has steps that MXNet lacks: only the image stage has these.
    """

    @cached_property
    def _steps(self) -> tuple[ImageAugmenter, ...]:
        for name in (*(item.name for item in fields(PolicyOptions)), "background", "max_side"):
            if self.differs(name):
                raise ValueError(
                    f"{name} is a step of the image stage, which cannot be called in Python: "
                    "pass what CreateAugmenter returns as aug_list itself, not as part of a list"
                )
        method, (_, height, width) = self.inter_method, self.data_shape
        steps: list[ImageAugmenter] = []
        side, _ = self.first_resize
        if side > 0:
            steps.append(ResizeAug(side, method))
        size = (width, height)
        if self.random_resized_crop:
            ratio = (self.min_aspect_ratio or 1.0, self.max_aspect_ratio)
            steps.append(RandomSizedCropAug(size, self.min_random_area, ratio, method))
        else:
            steps.append((RandomCropAug if self.rand_crop else CenterCropAug)(size, method))
        if self.rand_mirror:
            steps.append(HorizontalFlipAug(0.5))
        return (*steps, CastAug(), *_colour_steps(self))

    @overload
    def __getitem__(self, position: int) -> ImageAugmenter: ...
    @overload
    def __getitem__(self, position: slice) -> tuple[ImageAugmenter, ...]: ...
    def __getitem__(self, position: Any) -> Any:
        return self._steps[position]

    def __len__(self) -> int:
        return len(self._steps)

    def __iter__(self) -> Iterator[ImageAugmenter]:
        return iter(self._steps)


@accepts(AugmenterOptions)
def CreateAugmenter(*values: Any, **keywords: Any) -> DescribedSteps:
    """Describe the steps for the images of an `ImageIter`, with MXNet's names and defaults.

    The steps follow each other in this order: resize, crop, those from `crop_on_fill` to
    `steps` in the order of `Recipe`, mirror, brightness / contrast / saturation in random
    order, hue, noise, grey, mean and standard deviation, `random_erasing`.  From brightness on
    colours are changed in float: values may leave the range from 0 to 255, as in MXNet.

    Parameters
    ----------
    {parameters}

    Returns
    -------
    DescribedSteps
        A description, immutable and comparable, to be passed as ``aug_list`` of `ImageIter`; and a
        sequence of the same steps as callables.

    Raises
    ------
    TypeError, ValueError
        For an invalid value; the message names the parameter.

    Examples
    --------
    >>> steps = CreateAugmenter((3, 32, 32), resize=36, rand_mirror=True)
    >>> for step in steps:
    ...     print(step)
    ResizeAug(size=36, interp=2)
    CenterCropAug(size=(32, 32), interp=2)
    HorizontalFlipAug(p=0.5)
    CastAug(type='float32')
    """
    return DescribedSteps(**described_augmenter(*values, **keywords).changed())


@dataclass(frozen=True, kw_only=True)
class DetAugmenterOptions(Options):
    """The parameters of `CreateDetAugmenter`; the augmenters that it makes check most of them."""

    positional = (
        "data_shape resize rand_crop rand_pad rand_gray rand_mirror mean std brightness contrast "
        "saturation pca_noise hue inter_method min_object_covered aspect_ratio_range area_range "
        "min_eject_coverage max_attempts pad_val"
    )

    data_shape: Any = option(
        kind="tuple of int", text="(channels, height, width) of the result; 3 channels."
    )
    resize: int = described(AugmenterOptions, "resize")
    rand_crop: float = option(0.0, "float", "Probability of a `DetRandomCropAug`, 0 to 1.", chance)
    rand_pad: float = option(0.0, "float", "Probability of a `DetRandomPadAug`, 0 to 1.", chance)
    rand_gray: float = described(AugmenterOptions, "rand_gray")
    rand_mirror: bool = described(AugmenterOptions, "rand_mirror")
    mean: Any = described(AugmenterOptions, "mean")
    std: Any = option(None, "array_like", ...)
    brightness: float = described(AugmenterOptions, "brightness")
    contrast: float = option(0.0, "float", ...)
    saturation: float = option(0.0, "float", ...)
    pca_noise: float = described(AugmenterOptions, "pca_noise")
    hue: float = described(AugmenterOptions, "hue")
    inter_method: int = described(AugmenterOptions, "inter_method")
    min_object_covered: Any = option(
        0.1,
        "float or list of float",
        """A crop shows more than this share of every object that it touches. A list of values, for
        this or the next four keywords, makes a `DetRandomCropAug` for each, one of which is
        chosen.""",
    )
    aspect_ratio_range: Any = option(
        (0.75, 1.33),
        "(float, float) or list of (float, float)",
        "Range of width / height of the crop, and of the image with its border.",
    )
    area_range: Any = option(
        (0.05, 3.0),
        "(float, float) or list of (float, float)",
        """Range of the area of the crop as a share of the image. An upper end above 1 is for the
        border: with it, the image has 1 to `area_range[1]` times its area.""",
    )
    min_eject_coverage: Any = option(
        0.3,
        "float or list of float",
        "Objects of which a crop shows no more than this share are dropped.",
    )
    max_attempts: Any = option(
        50,
        "int or list of int",
        "Crops and borders that are tried before the image is left unchanged.",
    )
    pad_val: Any = option(
        (127, 127, 127), "float or sequence of float", "Colour of the border, in grey levels."
    )


@accepts(DetAugmenterOptions)
def CreateDetAugmenter(*values: Any, **keywords: Any) -> list[DetAugmenter]:
    """Make the steps of an `ImageDetIter`: resize, crop, mirror, border, final size, colours.

    Parameters
    ----------
    {parameters}

    Returns
    -------
    list of DetAugmenter
        It may be changed, and is passed as ``aug_list`` of `ImageDetIter`.

    Raises
    ------
    TypeError, ValueError
        For an invalid value, and for a list where `rand_pad` needs a single value.

    Examples
    --------
    >>> steps = CreateDetAugmenter((3, 30, 40), rand_crop=0.5, rand_mirror=True)
    >>> image, objects = np.zeros((50, 60, 3), np.uint8), np.array([[7, 0.2, 0.2, 0.6, 0.8]])
    >>> for step in steps:
    ...     image, objects = step(image, objects)
    >>> image.shape
    (30, 40, 3)
    """
    options = DetAugmenterOptions.of("CreateDetAugmenter", keywords, values)
    colours = described_augmenter(
        **options.values("data_shape", "mean", "std", "brightness", "contrast", "saturation"),
        **options.values("hue", "pca_noise", "rand_gray", "inter_method"),
    )
    method, tried = colours.inter_method, options.max_attempts
    steps: list[DetAugmenter] = []
    if options.resize > 0:
        steps.append(DetBorrowAug(ResizeAug(options.resize, method)))
    if options.rand_crop > 0:
        crop = CreateMultiRandCropAugmenter(
            skip_prob=1 - options.rand_crop,
            **options.values("min_object_covered", "aspect_ratio_range", "area_range"),
            **options.values("min_eject_coverage", "max_attempts"),
        )
        steps.append(crop)
    if options.rand_mirror:
        steps.append(DetHorizontalFlipAug(0.5))
    if options.rand_pad > 0:
        for name in ("aspect_ratio_range", "area_range", "max_attempts"):
            if isinstance(getattr(options, name), list):
                raise ValueError(f"{name}: with rand_pad it cannot be a list")
        area = (1.0, options.area_range[1])
        border = DetRandomPadAug(options.aspect_ratio_range, area, tried, options.pad_val)
        steps.append(DetRandomSelectAug([border], 1 - options.rand_pad))
    _, height, width = colours.data_shape
    rest = [ForceResizeAug((width, height), method), CastAug(), *_colour_steps(colours)]
    return [*steps, *(DetBorrowAug(step) for step in rest)]


def _colour_steps(recipe: Augmenter) -> list[ImageAugmenter]:
    """Make the augmenters for the changes of colour and the normalisation of a description."""
    steps: list[ImageAugmenter] = []
    if recipe.brightness or recipe.contrast or recipe.saturation:
        steps.append(ColorJitterAug(recipe.brightness, recipe.contrast, recipe.saturation))
    if recipe.hue:
        steps.append(HueJitterAug(recipe.hue))
    if recipe.pca_noise:
        steps.append(LightingAug(recipe.pca_noise, IMAGENET_VALUES, IMAGENET_VECTORS))
    if recipe.rand_gray:
        steps.append(RandomGrayAug(recipe.rand_gray))
    mean, std = (np.array(each[: recipe.channels]) for each in (recipe.mean, recipe.std))
    if mean.any() or (std != 1).any():
        mean_and_std = mean if mean.any() else None, std if (std != 1).any() else None
        steps.append(ColorNormalizeAug(*mean_and_std))
    return steps
