"""Named parts of the data of a sample: their names, and the fields that an index leaves.

A field is a *selector*, applied to the data of the sample, a *group* of fields, or a sample of its
own.
"""

from __future__ import annotations

import keyword
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np


class Selector:
    """An index expression; its first part is about the axis of the fields."""

    __slots__ = ("first", "rest")

    def __init__(self, index: Any) -> None:
        parts = index if isinstance(index, tuple) else (index,)
        self.first: Any = parts[0] if parts else slice(None)
        self.rest: tuple[Any, ...] = tuple(parts[1:])

    @property
    def index(self) -> tuple[Any, ...]:
        """The whole expression."""
        return (self.first, *self.rest)

    def within(self, start: int, stop: float, length: int | None) -> Selector | None:
        """Return the selector for elements from `start` to `stop`; None if others are selected."""
        positions = _positions(self.first, length)
        if positions is None or not all(start <= position < stop for position in positions):
            return None
        moved: Any
        if isinstance(positions, range):
            end = positions.stop - start
            # A range that goes down to the first element ends "before" it, which slices write None.
            moved = slice(positions.start - start, end if end >= 0 else None, positions.step)
        elif isinstance(self.first, list):
            moved = [position - start for position in positions]
        else:
            moved = positions[0] - start
        return Selector((moved, *self.rest))


class Group:
    """Fields under a common name, themselves about the data of the sample."""

    __slots__ = ("parts",)

    def __init__(self, parts: dict[str, Any]) -> None:
        self.parts: Any = parts

    @property
    def selects(self) -> bool:
        """Return whether there are selectors only."""
        return all(selects(part) for part in self.parts.values())

    def within(self, start: int, stop: float, length: int | None) -> Group | None:
        """Return the group for elements from `start` to `stop`; None if a part selects others."""
        if not self.selects:
            return None
        moved = {name: part.within(start, stop, length) for name, part in self.parts.items()}
        return None if None in moved.values() else Group(moved)


def selects(field: Any) -> bool:
    """Return whether a field is a selector or a group of nothing else."""
    return isinstance(field, Selector) or (isinstance(field, Group) and field.selects)


def declared(
    fields: Mapping[str, Any], has_data: bool, stored: Callable[..., Any]
) -> dict[str, Any]:
    """Return the fields that a user declares, their names checked.

    `has_data` tells that there is something to select from; `stored` makes a sample of data of its
    own, and of fields with ``stored(fields=...)``.
    """
    entries: dict[str, Any] = {}
    for name, field in fields.items():
        check_name(name, entries)
        if isinstance(field, Mapping):
            if not field:
                raise ValueError(f"field {name!r} is a mapping without fields")
            parts = declared(field, has_data, stored)
            entries[name] = Group(parts) if has_data else stored(fields=parts)
        elif has_data and is_selector(field):
            entries[name] = Selector(field)
        else:
            entries[name] = stored(field)
    return entries


def is_selector(value: Any) -> bool:
    """Return whether a value given for a field of stored data selects from them.

    Arrays, tensors and samples are data of their own; numbers, slices, lists and tuples select.
    """
    return value is Ellipsis or isinstance(value, (int, np.integer, slice, list, tuple))


def check_name(name: Any, taken: Iterable[str] = ()) -> str:
    """Return the name of a field, which can follow a dot, begins with a letter and is not taken."""
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
        raise ValueError(f"the name of a field must be a Python name, not {name!r}")
    if name.startswith("_"):
        raise ValueError(f"field {name!r}: names that begin with an underscore are methods")
    if name in taken:
        raise ValueError(f"there are two fields called {name!r}")
    return name


def on_axis(index: Any, axis: int, axes: int | None) -> Any:
    """Return the part of an index expression that is about an axis; a full slice if there is none.

    None where the axes of the result are not those of the data any more: for new axes, masks of
    several axes, and an ellipsis in data whose number of axes is not known.
    """
    parts = list(index) if isinstance(index, tuple) else [index]
    if any(part is None or isinstance(part, (bool, np.bool_)) for part in parts):
        return None
    if any(np.ndim(part) > 1 for part in parts if isinstance(part, (list, np.ndarray))):
        return None
    dots = [i for i, part in enumerate(parts) if part is Ellipsis]
    if dots and dots[0] <= axis:
        if axes is None:
            return slice(None) if dots[0] == len(parts) - 1 else None
        parts[dots[0] : dots[0] + 1] = [slice(None)] * max(axes - len(parts) + 1, 0)
    return parts[axis] if axis < len(parts) else slice(None)


def remaining(
    fields: dict[str, Any], part: Any, length: int | None
) -> dict[str, Selector | Group]:  # fmt: skip
    """Return the fields that lie completely inside `part` of their axis, counted from its start.

    `part` is the index of that axis: only slices of step 1 keep fields.  Fields with data of their
    own are left out.
    """
    if not isinstance(part, slice) or part.step not in (None, 1):
        return {}
    start, stop = part.start or 0, float("inf") if part.stop is None else part.stop
    if length is not None:
        start, stop, _ = part.indices(length)
    elif start < 0 or stop < 0:
        return {}
    kept = {}
    for name, field in fields.items():
        moved = field.within(start, stop, length) if selects(field) else None
        if moved is not None:
            kept[name] = moved
    return kept


def _positions(first: Any, length: int | None) -> Any:
    """Return the positions that a selector's first part chooses of its axis, if they are known."""
    if isinstance(first, (int, np.integer)):
        numbers = [int(first)]
    elif isinstance(first, list):
        numbers = [int(position) for position in first] if _integers(first) else [-1]
    elif isinstance(first, slice):
        if length is not None:
            return range(*first.indices(length))
        is_bounded = first.stop is not None and min(first.start or 0, first.stop) >= 0
        if not is_bounded or (first.step or 1) < 1:
            return None
        return range(first.start or 0, first.stop, first.step or 1)
    else:
        return range(length) if length is not None else None
    if length is not None:
        numbers = [position + length if position < 0 else position for position in numbers]
    return numbers if min(numbers, default=0) >= 0 else None


def _integers(positions: list[Any]) -> bool:
    return all(isinstance(each, (int, np.integer)) and each is not True for each in positions)
