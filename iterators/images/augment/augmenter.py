"""`CreateAugmenter`: the image parameters of MXNet's `mx.image`, described for the image stage.

MXNet's function returns a list of callables; this one returns an `Augmenter`, a validated set of
parameters that the stage executes.  It never touches a pixel itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, ClassVar

import numpy as np

from recordio.keywords.checks import boolean, integer, real, unknown_keyword
from recordio.keywords.options import Rule, accepts, described, divided, option

from .policy_options import PolicyOptions
from .recipe import Recipe
from .rules import NEEDS_RGB

#: Values of ``mean=True`` and ``std=True``: those of ImageNet, in grey levels of R, G and B.
IMAGENET = {"mean": (123.68, 116.28, 103.53), "std": (58.395, 57.12, 57.375)}

#: Share of the area, and range of width / height, of a random crop that is resized.
LEAST_AREA = 0.08
LEAST_RATIO, LARGEST_RATIO = 3 / 4, 4 / 3

#: Keywords for the position of a recipe's crop.
CROPS = (
    *("rand_crop", "random_resized_crop", "min_random_area", "max_random_area"),
    *("crop_x_start", "crop_y_start", "crop_position", "min_crop_size", "max_crop_size"),
)
#: Keywords of a crop of a random area, else of a warp.
RATIOS = ("min_aspect_ratio", "max_aspect_ratio", "log_aspect_ratio")


@accepts()
@dataclass(frozen=True, kw_only=True, repr=False)
class Augmenter(Recipe):
    """The result of `CreateAugmenter`: a `Recipe` whose steps are those of MXNet's `mx.image`.

    Compared with the steps of `ImageRecordIter`, an image that is too small is cropped to the
    proportions of the result and then enlarged; the aspect ratio of a random area is uniform in its
    logarithm; and colours are changed in float, without rounding and without limits.

    Parameters
    ----------
    {parameters}
    """

    hue: float = option(
        0.0,
        "float",
        "Largest turn of the hue, as a share of half the colour circle.",
        partial(real, low=0),
    )
    rand_gray: float = option(
        0.0,
        "float",
        "Probability, 0 to 1, of turning the image grey; it keeps three channels.",
        partial(real, low=0, high=1),
    )

    #: `CreateAugmenter` has other parameters, none of which makes another one useless.
    rules: ClassVar[tuple[Rule, ...]] = (
        *(rule for rule in Recipe.rules if rule.refused),
        Rule(
            "resample",
            lambda v: True,
            "is for ImageRecordIter: the interpolation is inter_method here",
            refused=True,
        ),
        Rule(
            "resize",
            lambda v: isinstance(v.resize, (tuple, str)),
            "is for ImageRecordIter: here it is the short side in pixels",
            refused=True,
        ),
        Rule("hue rand_gray", lambda v: v.channels != 3, NEEDS_RGB, refused=True),
        Rule(
            "random_h random_s random_l max_random_contrast max_random_illumination",
            lambda v: True,
            "is a step of ImageRecordIter: hue, saturation, contrast and brightness are those here",
            refused=True,
        ),
    )
    crops_first: ClassVar[bool] = True
    log_ratio: ClassVar[bool] = True

    @property
    def coloured(self) -> bool:
        """True if a step other than normalisation changes colours."""
        return any(
            (self.brightness, self.contrast, self.saturation)
            + (self.hue, self.pca_noise, self.rand_gray)
        )


@dataclass(frozen=True, kw_only=True)
class AugmenterOptions(PolicyOptions):
    """The parameters of `CreateAugmenter`: MXNet's, many of which `Augmenter` checks, and more."""

    positional = (
        "data_shape resize rand_crop rand_resize rand_mirror mean std brightness contrast "
        "saturation hue pca_noise rand_gray inter_method"
    )

    data_shape: Any = option(
        kind="tuple of int",
        text="(channels, height, width) of the result; 1, 3 or 4 channels.",
    )
    resize: int = option(
        0,
        "int",
        "Short side after a first resize, in pixels; 0 leaves the size unchanged.",
        partial(integer, low=-1),
    )
    rand_crop: bool = option(
        False, "bool", "Crop at a random position instead of the centre.", boolean
    )
    rand_resize: bool = option(
        False,
        "bool",
        """Crop a random area of 0.08 to 1 of the image with a width of 3/4 to 4/3 of the height,
        and resize it to `data_shape`; needs `rand_crop`.""",
        boolean,
    )
    rand_mirror: bool = option(
        False, "bool", "Mirror horizontally with probability one half.", boolean
    )
    mean: Any = option(
        None,
        "array_like of 1 or 3 numbers, or True, optional",
        """Mean and standard deviation of R, G and B (0 to 255) with which the values are
        normalised; True for those of ImageNet.""",
    )
    std: Any = option(None, "array_like", ...)
    brightness: float = option(
        0.0,
        "float",
        """Brightness, contrast and saturation are each changed by a factor drawn from ``[1 - x, 1
        + x]``.""",
    )
    contrast: float = option(0.0, "float", ...)
    saturation: float = option(0.0, "float", ...)
    hue: float = option(
        0.0, "float", "The hue is turned by an angle drawn from plus or minus this many half turns."
    )
    pca_noise: float = option(
        0.0, "float", "Standard deviation of the noise along the principal colours of ImageNet."
    )
    rand_gray: float = option(0.0, "float", "Probability of turning an image grey, 0 to 1.")
    background: Any = described(Recipe, "background")
    max_side: int = described(Recipe, "max_side")
    inter_method: int = described(Recipe, "inter_method", default=2)
    scaled_decode: bool = described(Recipe, "scaled_decode")


def described_augmenter(*values: Any, **keywords: Any) -> Augmenter:
    """Return the `Augmenter` of what `CreateAugmenter` of `iterators` takes.

    >>> described_augmenter((3, 32, 32), resize=36, rand_mirror=True, std=True).std
    (58.395, 57.12, 57.375, 1.0)
    """
    (changes,) = divided("CreateAugmenter", keywords, AugmenterOptions, values=values)
    return augmenter_of({"inter_method": 2}, changes)


def augmenter_of(
    base: Mapping[str, Any], changes: Mapping[str, Any], owner: str = "CreateAugmenter"
) -> Augmenter:
    """Return the `Augmenter` of keywords of its own, changed by those of `CreateAugmenter`.

    `changes` wins over `base`; messages call the receiver of the keywords `owner`.
    """
    names = {item.name for item in fields(AugmenterOptions)}
    keywords = names | {item.name for item in fields(Augmenter)}
    for name in changes:
        if name not in keywords:
            raise unknown_keyword(owner, name, keywords)
    result = {**base, **{name: value for name, value in changes.items() if name not in names}}
    own = {name: value for name, value in changes.items() if name in names}
    options = AugmenterOptions(**{"data_shape": result.get("data_shape"), **own})
    own = options.values(*own)
    if "resize" in own:
        own["resize"] = own["resize"] or -1
    if "rand_crop" in own or "rand_resize" in own:
        crop = own.pop("rand_crop", result.get("rand_crop") or result.get("random_resized_crop"))
        own |= _crop(bool(crop), own.pop("rand_resize", False))
        gone = {*CROPS, *(RATIOS if result.get("random_resized_crop") else ())}
        result = {name: value for name, value in result.items() if name not in gone}
    for name in own.keys() & IMAGENET.keys():
        result = {key: value for key, value in result.items() if key[:-1] != f"{name}_"}
        own |= per_channel(name, own.pop(name))
    return Augmenter(**result | own)


def _crop(rand_crop: bool, rand_resize: bool) -> dict[str, Any]:
    """Return the position of the crop in the words of a recipe."""
    if not rand_resize:
        return {"rand_crop": rand_crop}
    if not rand_crop:
        raise ValueError("rand_resize=True needs rand_crop=True")
    return {
        "random_resized_crop": True,
        "min_random_area": LEAST_AREA,
        "min_aspect_ratio": LEAST_RATIO,
        "max_aspect_ratio": LARGEST_RATIO,
    }


def per_channel(name: str, value: Any) -> dict[str, Any]:
    """Return `name_r`, `name_g` and `name_b` of a recipe; `name` is "mean" or "std"."""
    if value is None or value is False:
        return {}
    try:
        numbers = np.asarray(IMAGENET[name] if value is True else value, np.float64)
    except (TypeError, ValueError):
        numbers = np.zeros(0)
    if numbers.ndim > 1 or numbers.size not in (1, 3):
        raise ValueError(f"{name}={value!r}: expected True, None, or 1 or 3 numbers")
    red, green, blue = np.broadcast_to(numbers.ravel(), 3).tolist()
    return {f"{name}_r": red, f"{name}_g": green, f"{name}_b": blue}
