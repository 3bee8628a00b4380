"""The keywords of geometry that MXNet does not have: torchvision's warps, borders and flips.

`GeometryOptions` describes possible changes and their ranges; `program` and `geometry` draw.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from recordio.kernels.operations import METHODS
from recordio.keywords.checks import choice, real
from recordio.keywords.options import Options, Rule, option, optional

from .ranges import chance, ends, listed, shares
from .steps import CORNERS, LEAN, ROTATION

#: In the order of `geometry.Padding`.
PADDING_MODES = ("constant", "edge", "reflect", "symmetric")
#: In the order of `geometry.Position`.
CROP_POSITIONS = (
    "center", "top_left", "top_right", "bottom_left", "bottom_right", "center_floor",
)  # fmt: skip

#: Largest angle in degrees, whole turns included, and the largest shear, which 90 would not end.
MAX_DEGREES = 1_000_000
MAX_SHEAR = 89

#: Parts of `affine`, and what stands for those that are not given.
_AFFINE = {"degrees": 0, "translate": None, "scale": None, "shear": None}


def _symmetric(name: str, value: Any, most: float) -> tuple[float, float]:
    """Return the ends of a range; one number d, not negative, stands for -d to d."""
    items = listed(name, value, (1, 2), "a number, or the two ends of a range")
    if len(items) == 2:
        return ends(name, items, -most, most)
    width = real(name, items[0], 0, most)
    return -width, width


def _shear(name: str, value: Any) -> tuple[float, ...]:
    """Return the ranges along x and along y; the second is 0 if it is not given."""
    items = listed(name, value, (1, 2, 4), "a number, or 2 or 4 ends of ranges")
    along_y = items[2:] or (0, 0)
    return _symmetric(name, items[:2], MAX_SHEAR) + _symmetric(name, along_y, MAX_SHEAR)


def _scale(name: str, value: Any) -> tuple[float, float]:
    return ends(name, listed(name, value, (2,), "the two ends of a range"), 1e-3, 1e3)


def _affine(name: str, value: Any) -> dict[str, tuple[float, ...] | None]:
    """Return all parts of an affine map, in full."""
    if not isinstance(value, Mapping):
        raise TypeError(f"{name}={value!r}: expected a dict with some of {', '.join(_AFFINE)}")
    unknown = sorted(set(value) - set(_AFFINE), key=str)
    if unknown:
        raise ValueError(f"{name} has no part {unknown[0]!r}: its parts are {', '.join(_AFFINE)}")
    parts = {**_AFFINE, **value}
    checks: dict[str, Callable[[str, Any], Any]] = {
        "degrees": partial(_symmetric, most=MAX_DEGREES),
        "translate": optional(shares),
        "scale": optional(_scale),
        "shear": optional(_shear),
    }
    return {part: check(f"{name}[{part!r}]", parts[part]) for part, check in checks.items()}


_NOT_CENTRAL = "rand_crop random_resized_crop crop_x_start crop_y_start"

RULES = (
    Rule(
        "max_rotate_angle rotate rotate_list max_shear_ratio min_random_scale max_random_scale "
        "min_img_size max_img_size",
        lambda v: v.moves,
        "contradicts rotation, affine and perspective, which are torchvision's in the place of "
        "MXNet's warp: drop the one or the other",
        refused=True,
    ),
    Rule(
        "max_aspect_ratio min_aspect_ratio",
        lambda v: v.moves and not v.random_resized_crop,
        "stretches in MXNet's warp, which rotation, affine and perspective replace: drop it",
        refused=True,
    ),
    Rule(
        "warp_interpolation",
        lambda v: not v.moves,
        "has no effect without rotation, affine or perspective",
        refused=True,
    ),
    Rule("perspective_p", lambda v: not v.perspective, "has no effect without perspective", True),
    Rule(
        "padding_mode",
        lambda v: not (v.pad or v.pad_if_needed),
        "has no effect without pad or pad_if_needed",
        refused=True,
    ),
    Rule("mirror_p", lambda v: not v.rand_mirror, "has no effect without rand_mirror", True),
    Rule(
        _NOT_CENTRAL,
        lambda v: v.crop_position is not None,
        "contradicts crop_position, which decides the crop: drop one of them",
        refused=True,
    ),
)


@dataclass(frozen=True, kw_only=True, repr=False)
class GeometryOptions(Options):
    """Options of torchvision's geometry: warps as Pillow carries them out, borders and flips."""

    rotation: float | Sequence[float] | None = option(
        None,
        "float or tuple of float",
        """Turn by an angle drawn from this range, in degrees counter-clockwise; a number d stands
        for ``(-d, d)``: torchvision's `RandomRotation`.""",
        optional(partial(_symmetric, most=MAX_DEGREES)),
    )
    affine: Mapping[str, Any] | None = option(
        None,
        "dict",
        """torchvision's `RandomAffine`: "degrees", a number or a range; "translate", the largest
        shifts as shares of width and height; "scale", a range; "shear", a number, a range or two
        ranges in degrees below 90.""",
        optional(_affine),
    )
    perspective: float = option(
        0.0,
        "float",
        """Move the corners inwards by up to this share of half a side, 0 to 1: torchvision's
        `RandomPerspective`.""",
        chance,
    )
    perspective_p: float = option(0.5, "float", "Probability of `perspective`, 0 to 1.", chance)
    warp_interpolation: str = option(
        "nearest",
        "str",
        """Interpolation of `rotation`, `affine` and `perspective`: "nearest", "bilinear" or
        "bicubic"; the pixels are Pillow's.""",
        partial(choice, allowed=METHODS),
    )
    padding_mode: str = option(
        "constant",
        "str",
        """Content of the border that `pad` adds: "constant" for `fill_value`, "edge" for the last
        pixels, "reflect" and "symmetric" for the mirrored image without and with these.""",
        partial(choice, allowed=PADDING_MODES),
    )
    mirror_p: float = option(0.5, "float", "Probability of `rand_mirror`, 0 to 1.", chance)
    flip_p: float = option(
        0.0, "float", "Probability of mirroring the image vertically, 0 to 1.", chance
    )
    crop_position: str | None = option(
        None,
        "str",
        """Position of the crop in the mirrored and flipped image: "center", "top_left",
        "top_right", "bottom_left", "bottom_right", or "center_floor": at the centre with half
        pixels cut off, as in image processors, where torchvision rounds.""",
        optional(partial(choice, allowed=CROP_POSITIONS)),
    )

    rules: ClassVar[tuple[Rule, ...]] = RULES

    @property
    def moves(self) -> bool:
        """True if images may be turned, moved or seen in perspective as torchvision does it."""
        return bool(self.rotation or self.affine or self.perspective)

    def warp_steps(self) -> tuple[dict[str, Any], ...]:
        """Return the program that the keywords of `moves` are, for the whole image."""
        turn = {"op": "rotate", "degrees": self.rotation}
        parts = {name: part for name, part in (self.affine or {}).items() if part is not None}
        tilt = {"op": "perspective", "distortion_scale": self.perspective, "p": self.perspective_p}
        rows = (
            (self.rotation, turn, (0, 0), (ROTATION, 0)),
            (self.affine, {"op": "affine", **parts}, (0, 0), (ROTATION, 1)),
            (self.perspective, tilt, (LEAN, 3), (CORNERS, 0)),
        )
        return tuple(
            {**step, "interpolation": self.warp_interpolation, "words": (chance, values, 0)}
            for option, step, chance, values in rows
            if option
        )
