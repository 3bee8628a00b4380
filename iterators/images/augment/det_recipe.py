"""The detection recipe: the possible changes of an image and the boxes on it.

A `DetRecipe` is the validated set of MXNet's parameters for detection images.  It draws nothing
itself; the numbers for one image follow from (seed, epoch, record) in `det_geometry` and
`pixel_changes`, and in the modules that `policy_options` names.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from recordio.frames.encoder import MAX_RECORD_LENGTH
from recordio.kernels.operations import MOVING
from recordio.keywords.checks import choice, integer, real
from recordio.keywords.options import Rule, accepts, option

from .policy_options import ChangeOptions
from .ranges import chance, interval, listed
from .recipe import MAX_SHIFT, PLAIN, BaseRecipe
from .rules import DET_RULES

#: Most crop samplers; the drawing keeps their parameters in a fixed space.
MAX_SAMPLERS = 64
#: Most trials of a sampler: each has random numbers of its own.
MAX_TRIALS = (1 << 20) - 1
#: Values that the longest record has room for.
MOST_LABELS = (MAX_RECORD_LENGTH + 1) // 4

EMIT_MODES = ("center", "overlap")
RESIZE_MODES = ("force", "shrink", "fit")

#: Limits of a crop: each has a ``min_crop_...`` and a ``max_crop_...``, one number per sampler.
CROP_LIMITS = ("scales", "aspect_ratios", "overlaps", "sample_coverages", "object_coverages")


def _sequence(name: str, value: Any, check: Callable[[str, Any], Any]) -> tuple[Any, ...]:
    items = listed(name, value)
    if not items:
        raise ValueError(f"{name}={value!r}: expected at least one number")
    return tuple(check(name, item) for item in items)


def _shares(name: str, value: Any) -> tuple[float, ...]:
    return _sequence(name, value, chance)


def _ratios(name: str, value: Any) -> tuple[float, ...]:
    return _sequence(name, value, _not_negative)


def _trials(name: str, value: Any) -> tuple[int, ...]:
    return _sequence(name, value, lambda name, item: integer(name, item, 0, MAX_TRIALS))


def _not_negative(name: str, value: Any) -> float:
    return real(name, value, 0)


def _label_width(name: str, value: Any) -> int:
    return integer(name, value, high=MOST_LABELS)


@accepts()
@dataclass(frozen=True, kw_only=True, repr=False)
class DetRecipe(ChangeOptions, BaseRecipe):
    """Geometry, colour, label and normalisation parameters, under MXNet's names with its defaults.

    The steps follow each other in this order: mosaic, resize, colour, mirror, pad, crop, resize to
    the canvas, `auto_augment`, the keywords of `photometric_steps` in their order, `steps`,
    normalisation, `random_erasing`.  The canvas has the size of `data_shape`; an image that does
    not fill it lies at its top left and the rest is 0 before normalisation.  MXNet's colours are
    changed where fewest pixels are: after the last resize, or before the border is added, which
    keeps `fill_value`.
    """

    label_pad_width: int = option(
        0,
        "int",
        """Number of values of a raw label for which a row of the label array has room; 0 or less
        for the longest label of all records.""",
        _label_width,
    )
    max_label_width: int = option(
        1 << 14,
        "int",
        """Largest number of values of a raw label, if `label_pad_width` is not given: by default
        16,384, or 3,276 objects of 5 values; 0 or less for any number. The limit keeps a damaged
        label from lengthening the rows of all others.""",
        _label_width,
    )
    label_pad_value: float = option(-1.0, "float", "Value that fills the rest of a row.", real)
    rand_crop_prob: float = option(
        0.0, "float", "Probability of a crop, up to 1; 0 or less for none.", partial(real, high=1)
    )
    num_crop_sampler: int = option(
        1,
        "int",
        """Number of crop samplers, at most 64; they are tried in random order until one succeeds. 0
        or less for none. Each parameter of the samplers takes one value for each of them, or one
        for all.""",
        partial(integer, high=MAX_SAMPLERS),
    )
    min_crop_scales: tuple[float, ...] = option(
        (0.0,),
        "sequence of float",
        """Range of the square root of the crop's share of the area, in [0, 1]; the upper end is
        above the lower.""",
        _shares,
    )
    max_crop_scales: tuple[float, ...] = option((1.0,), "sequence of float", ..., _shares)
    min_crop_aspect_ratios: tuple[float, ...] = option(
        (1.0,), "sequence of float", "Range of width / height of the crop.", _ratios
    )
    max_crop_aspect_ratios: tuple[float, ...] = option((1.0,), "sequence of float", ..., _ratios)
    min_crop_overlaps: tuple[float, ...] = option(
        (0.0,),
        "sequence of float",
        """At least one object must have an intersection over union with the crop in this range.""",
        _shares,
    )
    max_crop_overlaps: tuple[float, ...] = option((1.0,), "sequence of float", ..., _shares)
    min_crop_sample_coverages: tuple[float, ...] = option(
        (0.0,),
        "sequence of float",
        "The same for the share of the crop that the object covers.",
        _shares,
    )
    max_crop_sample_coverages: tuple[float, ...] = option((1.0,), "sequence of float", ..., _shares)
    min_crop_object_coverages: tuple[float, ...] = option(
        (0.0,),
        "sequence of float",
        "The same for the share of the object that the crop covers.",
        _shares,
    )
    max_crop_object_coverages: tuple[float, ...] = option((1.0,), "sequence of float", ..., _shares)
    max_crop_trials: tuple[int, ...] = option(
        (25,), "sequence of int", "Trials of each sampler.", _trials
    )
    crop_emit_mode: str = option(
        "center",
        '{"center", "overlap"}',
        """Keep the objects whose centre is in the crop, or those of which more than
        `emit_overlap_thresh` is in it; the same for shears, shifts, rotations and mosaics. A crop
        that keeps no object is not successful.""",
        partial(choice, allowed=EMIT_MODES),
    )
    emit_overlap_thresh: float = option(
        0.3,
        "float",
        """Share of an object's area for ``crop_emit_mode="overlap"``, at least 0.""",
        partial(real, low=0),
    )
    rand_pad_prob: float = option(0.0, "float", "Probability of a border, 0 to 1.", chance)
    max_pad_scale: float = option(
        1.0,
        "float",
        """Largest size of image and border together, relative to the image; 1 or less for no
        border.""",
        partial(real, low=0, high=1e3),
    )
    max_random_hue: int = option(
        0,
        "int",
        """Largest change of hue (whose range is 0 to 180), saturation and lightness (0 to 255), up
        to 1000; values outside the range are set to its limit. RGB only.""",
        partial(integer, low=0, high=MAX_SHIFT),
    )
    max_random_saturation: int = option(0, "int", ..., partial(integer, low=0, high=MAX_SHIFT))
    max_random_illumination: int = option(0, "int", ..., partial(integer, low=0, high=MAX_SHIFT))
    max_random_contrast: float = option(
        0.0,
        "float",
        """Values are multiplied by a factor drawn from ``[1 - x, 1 + x]``.""",
        partial(real, low=0),
    )
    random_hue_prob: float = option(
        0.0, "float", "Probability of each of these changes, 0 to 1.", chance
    )
    random_saturation_prob: float = option(0.0, "float", ..., chance)
    random_illumination_prob: float = option(0.0, "float", ..., chance)
    random_contrast_prob: float = option(0.0, "float", ..., chance)
    rand_mirror_prob: float = option(
        0.0, "float", "Probability of mirroring horizontally, 0 to 1.", chance
    )
    fill_value: int = option(
        127,
        "int",
        "Grey level, 0 to 255, of the border and of mosaics; alpha is 0 there.",
        partial(integer, low=0, high=255),
    )
    resize_mode: str = option(
        "force",
        '{"force", "shrink", "fit"}',
        """Resize to exactly `data_shape`; shrink larger images and keep the ratio of the sides; or
        make every image as large as fits with that ratio.""",
        partial(choice, allowed=RESIZE_MODES),
    )
    mosaic: float = option(
        0.0,
        "float",
        """Probability, 0 to 1, of combining an image with three others, drawn from all records of
        its pack. They meet at a point of an area twice as wide and high as `data_shape`, each as
        large as fits into `data_shape`, and the area is then treated as one image. If a row has no
        room for all objects, some are left out, those of the last image first.""",
        chance,
    )
    mosaic_center: float | tuple[float, float] = option(
        (0.5, 1.5),
        "tuple of float",
        """Range of that point, 0 to 2 times the width and the height of `data_shape`.""",
        partial(interval, low=0, high=2),
    )
    mean_r: float = option(
        0.0,
        "float",
        """Subtracted from the pixel values if any of them is above 0; otherwise ignored, as in
        MXNet.""",
        real,
    )
    mean_g: float = option(0.0, "float", ..., real)
    mean_b: float = option(0.0, "float", ..., real)
    mean_a: float = option(0.0, "float", ..., real)
    std_r: float = option(
        0.0,
        "float",
        "Divides the values after subtraction of the mean; 0 for off.",
        _not_negative,
    )
    std_g: float = option(0.0, "float", ..., _not_negative)
    std_b: float = option(0.0, "float", ..., _not_negative)
    std_a: float = option(0.0, "float", ..., _not_negative)

    rules: ClassVar[tuple[Rule, ...]] = (*DET_RULES, *ChangeOptions.rules)
    has_boxes: ClassVar[bool] = True

    def _check(self) -> None:
        self.check_changes(self.data_shape)
        if self.num_crop_sampler > 0:
            self._check_samplers()

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

    def plain(self) -> DetRecipe:
        """Return the recipe with nothing random in it and without normalisation."""
        return DetRecipe(**self.values(*PLAIN, "resize_mode"))

    def differs(self, name: str) -> bool:
        """Return whether a value differs from its default, even one that samplers repeat."""
        if name in SAMPLER_DEFAULTS:
            return set(getattr(self, name)) != {SAMPLER_DEFAULTS[name]}
        return super().differs(name)

    @property
    def moves_boxes(self) -> bool:
        """True if boxes may be moved by operations of a policy."""
        policy = self.policy()
        return policy is not None and any(
            choice.scale.operation in MOVING for choice in policy.choices
        )

    @property
    def label_limit(self) -> tuple[str, int]:
        """The parameter that limits the values of a raw label, and that number."""
        for name in ("label_pad_width", "max_label_width"):
            if getattr(self, name) > 0:
                return name, getattr(self, name)
        return "max_label_width", MOST_LABELS

    @property
    def mean_rgb_overrides_file(self) -> bool:
        """True if the means per channel are subtracted, and used instead of a mean image."""
        return max(self.mean_r, self.mean_g, self.mean_b, self.mean_a) > 0

    @property
    def mean(self) -> tuple[float, ...]:
        """Means that are subtracted, in the order R, G, B, A."""
        if not self.mean_rgb_overrides_file:
            return (0.0,) * 4
        return self.mean_r, self.mean_g, self.mean_b, self.mean_a

    @property
    def std(self) -> tuple[float, ...]:
        """Divisors of the values, in the order R, G, B, A; 1 where off."""
        return tuple(s if s > 0 else 1.0 for s in (self.std_r, self.std_g, self.std_b, self.std_a))


#: Defaults of the parameters with one value for each sampler.
SAMPLER_DEFAULTS: dict[str, float] = {
    f"{end}_crop_{limit}": getattr(DetRecipe, f"{end}_crop_{limit}")[0]
    for limit in CROP_LIMITS
    for end in ("min", "max")
} | {"max_crop_trials": DetRecipe.max_crop_trials[0]}
