"""The detection recipe: what may happen to an image and the boxes on it.

A `DetRecipe` is the validated set of MXNet's parameters for detection images.  It draws nothing
itself; the numbers for one image follow from (seed, epoch, record) in `det_geometry` and
`det_jitter`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from ...core.parameters import boolean, choice, integer, integers, real
from .recipe import INTER_METHODS, MAX_PIXELS, off_or_positive

__all__ = ["DetRecipe"]

#: Most crop samplers; the drawing keeps their parameters in a fixed space.
MAX_SAMPLERS = 64
#: Most trials of a sampler: each has random numbers of its own.
MAX_TRIALS = (1 << 20) - 1
#: Values that the longest record has room for.
MOST_LABELS = (1 << 29) // 4

EMIT_MODES = ("center", "overlap")
RESIZE_MODES = ("force", "shrink", "fit")

#: Limits of a crop: each has a ``min_crop_...`` and a ``max_crop_...``, one number per sampler.
CROP_LIMITS = ("scales", "aspect_ratios", "overlaps", "sample_coverages", "object_coverages")


@dataclass(frozen=True, kw_only=True)
class DetRecipe:
    """Geometry, colour, label and normalisation parameters, under MXNet's names with its defaults.

    The steps follow each other in this order: resize, colour, mirror, pad, crop, resize to the
    canvas, normalisation.  The canvas has the size of `data_shape`; an image that does not fill it
    lies at its top left and the rest is 0 before normalisation.  Colours are changed where fewest
    pixels are: after the last resize, or before the border is added, which keeps `fill_value`.

    Parameters
    ----------
    data_shape : tuple of int
        (channels, height, width) of the canvas; 1, 3 or 4 channels.
    label_pad_width : int
        Values of a raw label that fit into a row of the label array; 0 or less for the longest
        label of all records.
    max_label_width : int
        Most values of a raw label where `label_pad_width` does not say: 16,384, hence 3,276 objects
        of 5 values, unless given; 0 or less for any number.  Damage that makes a label long would
        make the rows of all others as long.
    label_pad_value : float
        Fills what is left of a row.
    resize : int
        Short side after a first resize, in pixels; -1 leaves the image as it is.
    rand_crop_prob : float
        Probability of a crop, up to 1; 0 or less for none.
    num_crop_sampler : int
        Number of crop samplers, at most 64; they are tried in random order until one succeeds.  0
        or less for none.  The parameters of the samplers are one value each, or one for all.
    min_crop_scales, max_crop_scales : sequence of float
        Range of the square root of the crop's share of the area, in [0, 1], the upper end above the
        lower.
    min_crop_aspect_ratios, max_crop_aspect_ratios : sequence of float
        Range of width / height of the crop.
    min_crop_overlaps, max_crop_overlaps : sequence of float
        At least one object must have an intersection over union with the crop in this range.
    min_crop_sample_coverages, max_crop_sample_coverages : sequence of float
        The same for the share of the crop that the object covers.
    min_crop_object_coverages, max_crop_object_coverages : sequence of float
        The same for the share of the object that the crop covers.
    max_crop_trials : sequence of int
        Trials of each sampler.
    crop_emit_mode : {"center", "overlap"}
        Whether a crop keeps the objects whose centre it contains, or those of which it contains
        more than `emit_overlap_thresh`.  A crop that would keep none is no success.
    emit_overlap_thresh : float
        Share of the object's area, at least 0.
    rand_pad_prob : float
        Probability of a border, 0 to 1.
    max_pad_scale : float
        Largest size of image and border together, relative to the image; 1 or less for none.
    max_random_hue, max_random_saturation, max_random_illumination : int
        Largest change of hue (0 to 180), saturation and lightness (0 to 255); RGB only.
    max_random_contrast : float
        Values are multiplied by a factor drawn from ``[1 - x, 1 + x]``.
    random_hue_prob, random_saturation_prob, random_illumination_prob, random_contrast_prob : float
        Probability of each of these changes, 0 to 1.
    rand_mirror_prob : float
        Probability of mirroring horizontally, 0 to 1.
    fill_value : int
        Grey level, 0 to 255, of the border; alpha is 0 there.
    inter_method : int
        Interpolation: 0 nearest, 1 bilinear, 2 cubic, 3 area, 4 Lanczos, 9 cubic when both sides
        grow, area when both shrink, bilinear otherwise, 10 one of 0 to 4 at random for every image.
    resize_mode : {"force", "shrink", "fit"}
        Resize to exactly `data_shape`; shrink what is larger and keep the ratio of the sides; or
        make it as large as fits with that ratio.
    mean_r, mean_g, mean_b, mean_a : float
        Subtracted if any of them is above 0, otherwise ignored as in MXNet.
    std_r, std_g, std_b, std_a : float
        Divides what is left, where above 0.
    scale : float
        Multiplies the result.
    scaled_decode : bool
        Let the JPEG decoder give a smaller image where that is allowed; see `recipe.Recipe`.

    Examples
    --------
    >>> recipe = DetRecipe(
    ...     data_shape=(3, 300, 300), num_crop_sampler=2, min_crop_overlaps=(0.1, 0.5)
    ... )
    >>> recipe.min_crop_overlaps, recipe.max_crop_trials
    ((0.1, 0.5), (25, 25))
    """

    data_shape: tuple[int, int, int]
    label_pad_width: int = 0
    max_label_width: int = 1 << 14
    label_pad_value: float = -1.0
    resize: int = -1
    rand_crop_prob: float = 0.0
    num_crop_sampler: int = 1
    min_crop_scales: tuple[float, ...] = (0.0,)
    max_crop_scales: tuple[float, ...] = (1.0,)
    min_crop_aspect_ratios: tuple[float, ...] = (1.0,)
    max_crop_aspect_ratios: tuple[float, ...] = (1.0,)
    min_crop_overlaps: tuple[float, ...] = (0.0,)
    max_crop_overlaps: tuple[float, ...] = (1.0,)
    min_crop_sample_coverages: tuple[float, ...] = (0.0,)
    max_crop_sample_coverages: tuple[float, ...] = (1.0,)
    min_crop_object_coverages: tuple[float, ...] = (0.0,)
    max_crop_object_coverages: tuple[float, ...] = (1.0,)
    max_crop_trials: tuple[int, ...] = (25,)
    crop_emit_mode: str = "center"
    emit_overlap_thresh: float = 0.3
    rand_pad_prob: float = 0.0
    max_pad_scale: float = 1.0
    max_random_hue: int = 0
    random_hue_prob: float = 0.0
    max_random_saturation: int = 0
    random_saturation_prob: float = 0.0
    max_random_illumination: int = 0
    random_illumination_prob: float = 0.0
    max_random_contrast: float = 0.0
    random_contrast_prob: float = 0.0
    rand_mirror_prob: float = 0.0
    fill_value: int = 127
    inter_method: int = 1
    resize_mode: str = "force"
    mean_r: float = 0.0
    mean_g: float = 0.0
    mean_b: float = 0.0
    mean_a: float = 0.0
    std_r: float = 0.0
    std_g: float = 0.0
    std_b: float = 0.0
    std_a: float = 0.0
    scale: float = 1.0
    scaled_decode: bool = True

    def __post_init__(self) -> None:
        for field in fields(self):
            check = _CHECKS.get(field.name) or _CHECKS[str(field.type)]
            object.__setattr__(self, field.name, check(field.name, getattr(self, field.name)))
        choice("data_shape[0]", self.channels, (1, 3, 4))
        if self.num_crop_sampler > 0:
            self._check_samplers()
        if self.channels != 3:
            for name in ("max_random_hue", "max_random_saturation", "max_random_illumination"):
                if getattr(self, name):
                    raise ValueError(f"{name} needs RGB images: data_shape with 3 channels")

    def _check_samplers(self) -> None:
        count = self.num_crop_sampler
        names = [f"{end}_crop_{limit}" for limit in CROP_LIMITS for end in ("min", "max")]
        for name in [*names, "max_crop_trials"]:
            values = getattr(self, name)
            if len(values) not in (1, count):
                raise ValueError(
                    f"{name} holds {len(values)} values: expected 1, or one for each of the "
                    f"{count} samplers of num_crop_sampler"
                )
            object.__setattr__(self, name, values * count if len(values) == 1 else values)
        for limit in CROP_LIMITS:
            low, high = getattr(self, f"min_crop_{limit}"), getattr(self, f"max_crop_{limit}")
            for first, last in zip(low, high, strict=True):
                if first > last:
                    raise ValueError(
                        f"min_crop_{limit}={first:g} is above max_crop_{limit}={last:g}"
                    )
                if first == last and limit == "scales":
                    raise ValueError(f"max_crop_scales={last:g} must be above min_crop_scales")

    #: Parameters that act on normalised values only.
    float_only: ClassVar[frozenset[str]] = frozenset(("std_r", "std_g", "std_b", "std_a", "scale"))

    def plain(self) -> DetRecipe:
        """The recipe with nothing random in it and without normalisation."""
        return DetRecipe(
            data_shape=self.data_shape,
            resize=self.resize,
            resize_mode=self.resize_mode,
            inter_method=self.inter_method,
        )

    @property
    def label_limit(self) -> tuple[str, int]:
        """The parameter that says how many values a raw label may have, and that number."""
        for name in ("label_pad_width", "max_label_width"):
            if getattr(self, name) > 0:
                return name, getattr(self, name)
        return "max_label_width", MOST_LABELS

    @property
    def channels(self) -> int:
        """1 for grey, 3 for RGB, 4 for RGBA."""
        return self.data_shape[0]

    @property
    def means_win(self) -> bool:
        """Whether the means per channel are subtracted, and used instead of a mean image."""
        return max(self.mean_r, self.mean_g, self.mean_b, self.mean_a) > 0

    @property
    def mean(self) -> tuple[float, ...]:
        """Means that are subtracted, in the order R, G, B, A."""
        if not self.means_win:
            return (0.0,) * 4
        return self.mean_r, self.mean_g, self.mean_b, self.mean_a

    @property
    def std(self) -> tuple[float, ...]:
        """What the values are divided by, in the order R, G, B, A; 1 where off."""
        return tuple(s if s > 0 else 1.0 for s in (self.std_r, self.std_g, self.std_b, self.std_a))


def _sequence(name: str, value: Any, check: Callable[[str, Any], Any]) -> tuple[Any, ...]:
    if isinstance(value, str):
        value = [item for item in value.strip("()[] ").split(",") if item.strip()]
    items = tuple(value) if isinstance(value, Iterable) else (value,)
    if not items:
        raise ValueError(f"{name}={value!r}: expected at least one number")
    return tuple(check(name, item) for item in items)


def _shares(name: str, value: Any) -> tuple[float, ...]:
    return _sequence(name, value, lambda name, item: real(name, item, 0, 1))


def _ratios(name: str, value: Any) -> tuple[float, ...]:
    return _sequence(name, value, lambda name, item: real(name, item, 0))


def _trials(name: str, value: Any) -> tuple[int, ...]:
    return _sequence(name, value, lambda name, item: integer(name, item, 0, MAX_TRIALS))


def _probability(name: str, value: Any) -> float:
    return real(name, value, 0, 1)


def _label_width(name: str, value: Any) -> int:
    return integer(name, value, high=MOST_LABELS)


# By name where a parameter has a range of its own, else by type.
_CHECKS: dict[str, Any] = {
    "data_shape": lambda name, value: integers(name, value, 3, 1, MAX_PIXELS),
    "label_pad_width": _label_width,
    "max_label_width": _label_width,
    "resize": off_or_positive,
    "rand_crop_prob": lambda name, value: real(name, value, high=1),
    "num_crop_sampler": lambda name, value: integer(name, value, high=MAX_SAMPLERS),
    "min_crop_aspect_ratios": _ratios,
    "max_crop_aspect_ratios": _ratios,
    "max_crop_trials": _trials,
    "crop_emit_mode": lambda name, value: choice(name, value, EMIT_MODES),
    "emit_overlap_thresh": lambda name, value: real(name, value, 0),
    "max_pad_scale": lambda name, value: real(name, value, 0, 1e3),
    "max_random_hue": lambda name, value: integer(name, value, 0, 180),
    "max_random_saturation": lambda name, value: integer(name, value, 0, 255),
    "max_random_illumination": lambda name, value: integer(name, value, 0, 255),
    "max_random_contrast": lambda name, value: real(name, value, 0),
    "rand_pad_prob": _probability,
    "rand_mirror_prob": _probability,
    "random_hue_prob": _probability,
    "random_saturation_prob": _probability,
    "random_illumination_prob": _probability,
    "random_contrast_prob": _probability,
    "fill_value": lambda name, value: integer(name, value, 0, 255),
    "inter_method": lambda name, value: choice(name, integer(name, value), INTER_METHODS),
    "resize_mode": lambda name, value: choice(name, value, RESIZE_MODES),
    "tuple[float, ...]": _shares,
    "bool": boolean,
    "int": integer,
    "float": real,
}
