"""The keywords of today's recipes: policies, photometric changes, erasing, faces.

`PolicyOptions` is the part of a recipe that is not MXNet's, and `ChangeOptions` the share of it
that images with boxes have as well.  They describe possible changes and their ranges; drawing is
the work of `program` and `pixel_changes`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from recordio.keywords.checks import boolean, integer, real
from recordio.keywords.options import Options, Rule, option, optional

from .policies import POLICY_CHECKS, Policy, policy_of
from .ranges import chance, interval, listed
from .steps import PHOTOMETRIC, PUBLIC, STEPS, check_for, steps_of

#: Fillings of erased rectangles, beside a grey level.
ERASING_VALUES = ("mean", "colour", "pixel")

#: Most rectangles that are erased in an image: each has random numbers of its own.
MOST_RECTANGLES = 16

#: The names of `steps`, without those that hold further ones.
OPERATIONS = ", ".join(f'"{name}"' for name in PUBLIC if "of" not in STEPS[name].parameters)

#: Blocks of random numbers of the photometric keywords: whether each happens, factors, order.
CHANCES, FACTORS, ORDER, SIGMAS = range(PHOTOMETRIC, PHOTOMETRIC + 4)

#: Largest standard deviation of a blur, in pixels.
LARGEST_SIGMA = 1000


def _jitter(name: str, value: Any) -> tuple[tuple[float, float], ...]:
    """Return ranges of brightness, contrast, saturation and hue; a number is the first three."""
    items = listed(name, value)
    if len(items) == 1 and not isinstance(items[0], (tuple, list)):
        items *= 3
    if items and len(items) not in (3, 4):
        raise ValueError(f"{name}={value!r}: expected 1, 3 or 4 numbers or ranges")
    ranges = [_jitter_range(name, item, hue=i == 3) for i, item in enumerate(items)]
    ranges += [(0.0, 0.0)] * (4 - len(ranges))
    still = [(1.0, 1.0)] * 3 + [(0.0, 0.0)]
    return tuple(ranges) if items and ranges != still else ()


def _jitter_range(name: str, value: Any, hue: bool) -> tuple[float, float]:
    low, high = (-0.5, 0.5) if hue else (0.0, 1e3)
    if isinstance(value, (tuple, list)):
        return interval(name, value, low, high)
    width = real(name, value, 0, high)
    return (-width, width) if hue else (max(0.0, 1 - width), 1 + width)


def _erasing_value(name: str, value: Any) -> str | float:
    try:
        return real(name, value, 0, 255)
    except (TypeError, ValueError):
        pass
    if value in ERASING_VALUES:
        return str(value)
    names = ", ".join(map(repr, ERASING_VALUES))
    raise ValueError(f"{name}={value!r}: expected a grey level from 0 to 255, or one of {names}")


def _needs(names: str, other: str) -> Rule:
    text = f"has no effect without {other}"
    return Rule(names, lambda v: not getattr(v, other), text, refused=True)


#: Keywords that change colours alone.
_COLOURS = "random_grayscale color_jitter three_augment"

CHANGE_RULES = (
    _needs(
        "num_ops magnitude magnitude_std increasing augment_table augment_interpolation "
        "augment_fill",
        "auto_augment",
    ),
    _needs("erasing_area erasing_ratio erasing_count erasing_value", "random_erasing"),
    _needs("color_jitter_prob", "color_jitter"),
    Rule(
        "blur_sigma",
        lambda v: not v.gaussian_blur and not v.three_augment,
        "has no effect without gaussian_blur or three_augment",
        refused=True,
    ),
    Rule(
        "solarize_threshold",
        lambda v: not v.solarize_p and not v.three_augment,
        "has no effect without solarize_p or three_augment",
        refused=True,
    ),
    Rule(
        _COLOURS,
        lambda v: v.channels == 1,
        "needs RGB images: data_shape with 3 channels",
        refused=True,
    ),
)

RULES = (
    *CHANGE_RULES,
    _needs("low_resolution_side", "low_resolution"),
    _needs("crop_on_fill_area", "crop_on_fill"),
)


def _likely(
    step: dict[str, Any], chance: float, word: int, values: int = 0
) -> tuple[dict[str, Any], ...]:
    """Return a step that happens with a probability, which this word of `CHANCES` decides."""
    return ({**step, "p": chance, "words": ((CHANCES, word), (values, 0), ORDER)},) * bool(chance)


@dataclass(frozen=True, kw_only=True, repr=False)
class ChangeOptions(Options):
    """Options of torchvision's and timm's recipes for images of every kind."""

    auto_augment: str | None = option(
        None,
        "str",
        """Operations drawn for every image: "randaugment", "trivialaugment", "autoaugment" (the
        policy for ImageNet), "autoaugment-cifar10", "autoaugment-svhn" or "augmix", or a string of
        timm's such as "rand-m9-mstd0.5-inc1", "augmix-m5-w4-d2" or "original-mstd0.5".""",
        optional(POLICY_CHECKS["auto_augment"]),
    )
    num_ops: int | None = option(
        None,
        "int",
        'With "randaugment": number of operations on an image, 0 to 16; 2 if not given.',
        optional(POLICY_CHECKS["num_ops"]),
    )
    magnitude: float | None = option(
        None,
        "float",
        """Strength of "randaugment", 0 to 30 (9 if not given; in timm's tables 0 to 10, and 10), or
        severity of "augmix", 1 to 10 (3).""",
        optional(POLICY_CHECKS["magnitude"]),
    )
    magnitude_std: float = option(
        0.0,
        "float",
        """Standard deviation of the strength, with timm's tables; above 100 it is drawn from 0 to
        `magnitude`.""",
        POLICY_CHECKS["magnitude_std"],
    )
    increasing: bool = option(
        False,
        "bool",
        """With timm's tables, use the variant in which all operations grow stronger with the
        magnitude.""",
        boolean,
    )
    augment_table: str = option(
        "torchvision",
        "str",
        'The library whose operations and strengths the names stand for: "torchvision" or "timm".',
        POLICY_CHECKS["augment_table"],
    )
    augment_interpolation: str | None = option(
        None,
        "str",
        """Interpolation of shears, shifts and rotations: "nearest", "bilinear", "bicubic", or
        "random" for one of the last two. By default that of the library: "nearest" ("bilinear" for
        AugMix) for torchvision, "random" for timm.""",
        optional(POLICY_CHECKS["augment_interpolation"]),
    )
    augment_fill: int | Sequence[int] | None = option(
        None,
        "int or tuple of int",
        """Grey levels, 0 to 255, of the areas that shears, shifts and rotations leave empty; by
        default `fill_value` if given, otherwise 0 with torchvision's tables and 128
        with timm's.""",
        optional(POLICY_CHECKS["augment_fill"]),
    )
    steps: Sequence[str | Mapping[str, Any]] = option(
        (),
        "sequence of str or dict",
        f"""Operations on the finished crop, in this order, after those of all other keywords. Each
        is a dictionary with "op", its parameters, and its probability "p" (1): {OPERATIONS}, and
        "apply", "choice" and "order" with further steps in "of". A name alone is an operation with
        its defaults.""",
        steps_of,
    )
    three_augment: bool = option(
        False,
        "bool",
        "Grey, solarize or blur every image, one of the three at random, as in DeiT III.",
        boolean,
    )
    color_jitter: float | Sequence[float | Sequence[float]] = option(
        (),
        "tuple of float",
        """Change brightness, contrast, saturation and hue like torchvision, in random order: by
        factors from ``[max(0, 1 - x), 1 + x]``, and the hue by up to x turns of the colour circle,
        x at most 0.5. A range may replace an x; a single number stands for the first three.""",
        _jitter,
    )
    color_jitter_prob: float = option(
        1.0, "float", "Probability of `color_jitter`, 0 to 1.", chance
    )
    random_grayscale: float = option(
        0.0, "float", "Probability of turning the image grey, 0 to 1; its channels stay.", chance
    )
    gaussian_blur: float = option(0.0, "float", "Probability of a Gaussian blur, 0 to 1.", chance)
    blur_sigma: float | Sequence[float] = option(
        (0.1, 2.0),
        "tuple of float",
        "Range of the standard deviation of blurs in pixels, 0 to 1000.",
        partial(interval, low=0, high=LARGEST_SIGMA),
    )
    solarize_p: float = option(
        0.0,
        "float",
        "Probability of inverting the values from `solarize_threshold` on, 0 to 1.",
        chance,
    )
    solarize_threshold: float = option(
        STEPS["solarize"].parameters["threshold"].default,
        "float",
        "Values of at least this are inverted; 0 to 256.",
        STEPS["solarize"].parameters["threshold"].check,
    )
    random_erasing: float = option(
        0.0,
        "float",
        """Probability, 0 to 1, of erasing rectangles in the finished, normalised image.""",
        chance,
    )
    erasing_area: float | Sequence[float] = option(
        (0.02, 0.33),
        "tuple of float",
        "Range of the share of the image's area that all rectangles have together.",
        partial(interval, low=0, high=1),
    )
    erasing_ratio: float | Sequence[float] = option(
        (0.3, 3.3),
        "tuple of float",
        "Range of height / width of a rectangle, drawn uniformly in its logarithm.",
        partial(interval, low=1e-3, high=1e3),
    )
    erasing_count: int | Sequence[int] = option(
        (1, 1),
        "int or tuple of int",
        "Rectangles of an image, 1 to 16.",
        partial(interval, low=1, high=MOST_RECTANGLES, check=integer),
    )
    erasing_value: str | float = option(
        "mean",
        "str or float",
        """Content of the rectangles: a grey level from 0 to 255; "mean", which is 0 after
        normalisation; "colour", one normally distributed number for every channel of a rectangle,
        or "pixel", one for every value, both after normalisation. For integer pixels, which are
        not normalised, the normalisation of ImageNet is assumed.""",
        _erasing_value,
    )
    rules: ClassVar[tuple[Rule, ...]] = CHANGE_RULES
    #: True if steps may not move pixels, because boxes would stay.
    has_boxes: ClassVar[bool] = False

    def check_changes(self, shape: tuple[int, int, int]) -> None:
        """Refuse a policy that does not exist, and steps that images of this shape cannot have."""
        self.policy()
        check_for(self.steps, shape, self.has_boxes)  # type: ignore[arg-type]

    def photometric_steps(self) -> tuple[dict[str, Any], ...]:
        """Return the program that the photometric keywords are, in their order."""
        solarize = {"op": "solarize", "threshold": self.solarize_threshold}
        blur = {"op": "blur", "sigma": self.blur_sigma}
        ranges = zip(STEPS["color_jitter"].draws, self.color_jitter, strict=False)  # type: ignore[arg-type]
        jitter = self.color_jitter_prob if self.color_jitter else 0.0
        three = ({"op": "grayscale"}, solarize, {**blur, "words": ((0, 0), (SIGMAS, 1), 0)})
        one = {"op": "choice", "of": three, "words": ((SIGMAS, 2), (0, 0), 0)}
        return (
            *([one] if self.three_augment else []),
            *_likely({"op": "color_jitter", **dict(ranges)}, jitter, 0, FACTORS),
            *_likely({"op": "grayscale"}, self.random_grayscale, 1),
            *_likely(blur, self.gaussian_blur, 2, SIGMAS),
            *_likely(solarize, self.solarize_p, 3),
        )

    def policy(self) -> Policy | None:
        """Policy of `auto_augment`; None without one."""
        if self.auto_augment is None:
            return None
        fill: Any = self.augment_fill
        if fill is None and self.differs("fill_value"):
            fill = (self.values("fill_value")["fill_value"],) * 3
        return policy_of(
            self.auto_augment,
            self.augment_table,
            interpolation=self.augment_interpolation,
            fill=fill,
            **self.values("num_ops", "magnitude", "magnitude_std", "increasing"),
        )


@dataclass(frozen=True, kw_only=True, repr=False)
class PolicyOptions(ChangeOptions):
    """Options of torchvision's, timm's and face recognition's recipes that MXNet does not have."""

    low_resolution: float = option(
        0.0,
        "float",
        """Probability of shrinking the image and enlarging it again, with one of five
        interpolations each way.""",
        chance,
    )
    low_resolution_side: float | Sequence[float] = option(
        (0.2, 1.0),
        "tuple of float",
        "Range of the side of the shrunk image, as a share of the original side.",
        partial(interval, low=0.01, high=1),
    )
    crop_on_fill: float = option(
        0.0,
        "float",
        "Probability that only a random part of the image stays, and the rest becomes black.",
        chance,
    )
    crop_on_fill_area: float | Sequence[float] = option(
        (0.2, 1.0),
        "tuple of float",
        "Range of that part's share of the area; its width is 3/4 to 4/3 of its height.",
        partial(interval, low=0, high=1),
    )

    rules: ClassVar[tuple[Rule, ...]] = RULES
