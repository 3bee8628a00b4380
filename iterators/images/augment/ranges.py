"""Checks of keywords that are ranges of numbers, or shares of an image's sides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from recordio.keywords.checks import real


def chance(name: str, value: Any) -> float:
    """Return a probability."""
    return real(name, value, 0, 1)


def listed(
    name: str, value: Any, counts: Sequence[int] = (), expected: str = ""
) -> tuple[Any, ...]:
    """Return what is given as a sequence, as text with commas, or alone; as many as `counts`."""
    if isinstance(value, str):
        value = [item for item in value.strip("()[] ").split(",") if item.strip()]
    try:
        items = tuple(value)
    except TypeError:
        items = (value,)
    if counts and len(items) not in counts:
        raise ValueError(f"{name}={value!r:.80}: expected {expected}")
    return items


def ends(
    name: str, value: Sequence[Any], low: float, high: float, check: Callable[..., Any] = real
) -> tuple[Any, Any]:
    """Return the two ends of a range, in ascending order."""
    first, last = (check(name, item, low, high) for item in value)
    if first > last:
        raise ValueError(f"{name}={value!r:.80}: {first:g} is above {last:g}")
    return first, last


def interval(
    name: str, value: Any, low: float, high: float, check: Callable[..., Any] = real
) -> tuple[Any, Any]:
    """Return the ends of a range; one number stands for both."""
    items = listed(name, value, (1, 2), "a number, or the ends of a range")
    return ends(name, (items[0], items[-1]), low, high, check)


def shares(name: str, value: Any) -> tuple[float, ...]:
    """Return a share of the width and one of the height."""
    items = listed(name, value, (2,), "shares of the width and the height, each 0 to 1")
    return tuple(chance(name, item) for item in items)
