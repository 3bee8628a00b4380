"""The augmentation recipe: what may happen to an image between its record and its place in a batch.

A `Recipe` is the validated set of MXNet's image parameters.  It draws nothing itself: the numbers for
one image follow from (seed, epoch, record) in `geometry`, so that they do not depend on threads or
on what was drawn before.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from ..core.parameters import boolean, choice, integer, integers, real

__all__ = ["Recipe"]

#: 0 nearest, 1 bilinear, 2 cubic, 3 area, 4 Lanczos, 9 by direction (cubic up, area down).
INTER_METHODS = (0, 1, 2, 3, 4, 9)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Geometry, colour and normalisation parameters, under MXNet's names and with its defaults.

    Parameters
    ----------
    data_shape : tuple of int
        (channels, height, width) of the result; 1, 3 or 4 channels.
    resize : int
        Short side after a first resize, in pixels; -1 leaves the image as it is.
    rand_crop : bool
        Crop at a random place instead of the centre.
    crop_x_start, crop_y_start : int
        Place of the crop in pixels, overriding centre and random; -1 for off.
    random_resized_crop : bool
        Crop a random area and aspect ratio, then resize to `data_shape`.
    min_random_area, max_random_area : float
        Range of the crop's share of the image's area, in (0, 1].
    min_aspect_ratio, max_aspect_ratio : float
        Range of width / height of the crop; without `min_aspect_ratio` it is
        ``[1 - max_aspect_ratio, 1 + max_aspect_ratio]``.
    mirror : bool
        Always mirror horizontally.
    rand_mirror : bool
        Mirror with probability one half.
    mean_r, mean_g, mean_b, mean_a : float
        Subtracted from every pixel value (0 to 255); `mean_r` serves a single channel.
    std_r, std_g, std_b, std_a : float
        Divides what is left.
    scale : float
        Multiplies the result.
    inter_method : int
        Interpolation: 0 nearest, 1 bilinear, 2 cubic, 3 area, 4 Lanczos, 9 cubic when both sides grow,
        area when both shrink, bilinear otherwise.

    Examples
    --------
    >>> Recipe(data_shape=(3, 224, 224), random_resized_crop=True, min_random_area=0.08).channels
    3
    """

    data_shape: tuple[int, int, int]
    resize: int = -1
    rand_crop: bool = False
    crop_x_start: int = -1
    crop_y_start: int = -1
    random_resized_crop: bool = False
    min_random_area: float = 1.0
    max_random_area: float = 1.0
    min_aspect_ratio: float | None = None
    max_aspect_ratio: float = 0.0
    mirror: bool = False
    rand_mirror: bool = False
    mean_r: float = 0.0
    mean_g: float = 0.0
    mean_b: float = 0.0
    mean_a: float = 0.0
    std_r: float = 1.0
    std_g: float = 1.0
    std_b: float = 1.0
    std_a: float = 1.0
    scale: float = 1.0
    inter_method: int = 1

    def __post_init__(self) -> None:
        for field in fields(self):
            check = _CHECKS.get(field.name, _CHECKS.get(str(field.type)))
            object.__setattr__(self, field.name, check(field.name, getattr(self, field.name)))
        choice("data_shape[0]", self.channels, (1, 3, 4))
        self._check_crop()

    def _check_crop(self) -> None:
        if not self.random_resized_crop:
            return
        if self.rand_crop:
            raise ValueError("random_resized_crop=True already crops at random: drop rand_crop")
        if self.crop_x_start != -1 or self.crop_y_start != -1:
            raise ValueError("crop_x_start and crop_y_start have no meaning with random_resized_crop")
        if not 0 < self.min_random_area <= self.max_random_area:
            raise ValueError(
                f"min_random_area={self.min_random_area}, max_random_area={self.max_random_area}: "
                "expected 0 < min <= max <= 1"
            )
        low, high = self.aspect_range
        if not 0 < low <= high:
            raise ValueError(
                f"the aspect ratios of the crop range from {low:g} to {high:g}: expected 0 < min <= "
                "max (without min_aspect_ratio the range is 1 - max_aspect_ratio to 1 + "
                "max_aspect_ratio)"
            )

    @property
    def channels(self) -> int:
        """1 for grey, 3 for RGB, 4 for RGBA."""
        return self.data_shape[0]

    @property
    def aspect_range(self) -> tuple[float, float]:
        """Lowest and highest aspect ratio."""
        if self.min_aspect_ratio is None:
            return 1 - self.max_aspect_ratio, 1 + self.max_aspect_ratio
        return self.min_aspect_ratio, self.max_aspect_ratio

    @property
    def mean(self) -> tuple[float, float, float, float]:
        """Means in the order R, G, B, A."""
        return self.mean_r, self.mean_g, self.mean_b, self.mean_a

    @property
    def std(self) -> tuple[float, float, float, float]:
        """Standard deviations in the order R, G, B, A."""
        return self.std_r, self.std_g, self.std_b, self.std_a


def _off_or_positive(name: str, value: Any) -> int:
    number = integer(name, value)
    if number != -1 and number < 1:
        raise ValueError(f"{name}={value!r}: expected a number of pixels of at least 1, or -1 for off")
    return number


def _off_or_position(name: str, value: Any) -> int:
    return integer(name, value, low=-1)


def _area(name: str, value: Any) -> float:
    return real(name, value, 0, 1)


def _divisor(name: str, value: Any) -> float:
    number = real(name, value)
    if number == 0:
        raise ValueError(f"{name}=0: the pixel values are divided by it")
    return number


# By name where a parameter has a range of its own, else by type.
_CHECKS: dict[str, Any] = {
    "data_shape": lambda name, value: integers(name, value, length=3),
    "resize": _off_or_positive,
    "crop_x_start": _off_or_position,
    "crop_y_start": _off_or_position,
    "min_random_area": _area,
    "max_random_area": _area,
    "min_aspect_ratio": lambda name, value: None if value is None else real(name, value, 0),
    "max_aspect_ratio": lambda name, value: real(name, value, 0),
    "std_r": _divisor,
    "std_g": _divisor,
    "std_b": _divisor,
    "std_a": _divisor,
    "inter_method": lambda name, value: choice(name, integer(name, value), INTER_METHODS),
    "bool": boolean,
    "int": integer,
    "float": real,
}
