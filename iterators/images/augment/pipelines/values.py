"""Values of the pixels in a pipeline: their type, unit, normalisation, and what erases them."""

from __future__ import annotations

from typing import Any

from .parts import Part, number

_CHANNELS = ("r", "g", "b", "a")
IN_FRONT = "put it in front of what makes tensors of images, ToImage or ToTensor for example"


class Values:
    """Values of the pixels at a point of a pipeline, as far as they are known, and keywords."""

    def __init__(self, channels: int) -> None:
        self.keywords: dict[str, Any] = {}
        self._channels = channels
        self._tensor = False  # pixels are those of a tensor, no more of an image of Pillow
        self._unit: float | None = None  # what 1.0 is in grey levels; None while they are integers
        self._normal: tuple[list[float], list[float]] | None = None
        self._erased: Part | None = None
        self._drawn = False  # what is erased is filled with normal numbers, as they are drawn

    @property
    def is_tensor(self) -> bool:
        """True once values are no integers any more."""
        return self._unit is not None

    @property
    def has_tensors(self) -> bool:
        """True once images are tensors, of whatever type."""
        return self._tensor

    def level(self, part: Part, value: Any) -> int:
        """Return a grey level of a number in the unit of the values."""
        level = number(value or 0) * (self._unit or 1)
        if abs(level - round(level)) > 1e-6 or not 0 <= round(level) <= 255:
            raise part.error(f"fills with {value!r}, which is no grey level: give a whole one")
        return round(level)

    def threshold(self, value: Any) -> float:
        """Return a limit in grey levels."""
        return _round(number(value) * (self._unit or 1))

    def to_tensor(self) -> None:
        """Make tensors of images, which later transforms treat by another arithmetic."""
        self._tensor = True

    def resamples(self, part: Part, name: str, antialias: Any) -> None:
        """Refuse to resample tensors in a way that images have nothing for."""
        if not self._tensor:
            return
        if name not in ("bilinear", "bicubic"):
            raise part.error(
                f"resamples tensors by {name!r}, for which torch picks other pixels: {IN_FRONT}"
            )
        if not antialias:
            raise part.error(
                f"has antialias={antialias!r}, and images are always smoothed as they shrink: give "
                f"antialias=True, or {IN_FRONT}"
            )

    def to_unit(self, unit: float = 255.0) -> None:
        """Make numbers of floats, 1.0 standing for so many grey levels."""
        if self._unit is None:
            self._unit = unit

    def to_integers(self, part: Part, image: bool = False) -> None:
        """Make numbers integers again, of a tensor or of an `image`."""
        if self._normal is not None or self._unit == 1:
            raise part.error("makes normalised values integers: drop it")
        self._unit = None
        self._tensor = self._tensor and not image

    def element_type(self, part: Part, name: str) -> None:
        """Deliver floats of another type."""
        if name not in ("float32", "float16", "bfloat16"):
            raise part.error(
                f"makes {name}: only float32, float16, bfloat16 and uint8 are supported"
            )
        if name != "float32":
            self.keywords["dtype"] = name

    def normalise(self, part: Part, mean: Any, std: Any, unit: float | None = None) -> None:
        """Subtract means and divide by deviations, in the unit of the values."""
        if self._normal is not None:
            raise part.error("is the second of its kind: keep one")
        if self._drawn and self._erased is not None:
            raise self._erased.error(f"draws numbers that {part} changes: move it behind that")
        if unit is None and self._unit is None:
            raise part.error("gets integers: put ToTensor or ToDtype(float32) in front of it")
        means, stds = _listed(mean), _listed(std)
        count = max(len(means), len(stds))
        if count not in (1, self._channels) or any(
            n not in (1, count) for n in (len(means), len(stds))
        ):
            raise part.error(
                f"has {len(means)} means and {len(stds)} deviations for "
                f"{self._channels} channels: give as many"
            )
        if min(stds) <= 0:
            raise part.error("divides by 0: give deviations above 0")
        self._unit = unit or self._unit
        self._normal = _spread(means, self._channels), _spread(stds, self._channels)

    def erase(self, part: Part, p: float, value: Any, **values: Any) -> None:
        """Erase rectangles, filled with a word or with a number in the unit of the values."""
        if p == 0:
            return
        if self._erased is not None:
            raise part.error("is the second of its kind: keep one")
        if isinstance(value, str) and not self.is_tensor:
            raise part.error("draws normal numbers among integers: put it behind ToTensor")
        self._drawn = isinstance(value, str)
        if not isinstance(value, str):
            levels = self._levels(_listed(value))
            if self._normal is not None and set(_listed(value)) == {0.0}:
                value = "mean"
            elif len(set(levels)) > 1 or not 0 <= levels[0] <= 255:
                raise part.error("fills channels with different levels: give one, or 'random'")
            else:
                value = levels[0]
        self.keywords |= {"random_erasing": p, "erasing_value": value, **values}
        self._erased = part

    def _levels(self, values: list[float]) -> list[float]:
        values = _spread(values, self._channels)
        mean, std = self._normal or ([0.0], [1.0])
        pairs = zip(values, _spread(mean, len(values)), _spread(std, len(values)), strict=True)
        return [_round((value * s + m) * (self._unit or 1)) for value, m, s in pairs]

    def normalisation(self) -> dict[str, float]:
        """Return means and deviations in grey levels, which keywords have."""
        unit = self._unit or 1.0
        if self._normal is None:
            return {} if unit == 1 else {"scale": 1 / unit}
        means, stds = ([_round(value * unit) for value in values] for values in self._normal)
        keywords = {f"mean_{c}": v for c, v in zip(_CHANNELS, means, strict=False) if v}
        return keywords | {f"std_{c}": v for c, v in zip(_CHANNELS, stds, strict=False) if v != 1}


def _listed(value: Any) -> list[float]:
    value = value.tolist() if hasattr(value, "tolist") and not hasattr(value, "dtype") else value
    try:
        return [number(item) for item in value]
    except TypeError:
        return [number(value)]


def _spread(values: list[float], count: int) -> list[float]:
    return values * count if len(values) == 1 else values


def _round(value: float) -> float:
    """Return a number without the last digits that a product has too many."""
    return float(f"{value:.10g}")
