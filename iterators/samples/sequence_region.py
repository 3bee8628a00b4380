"""Regions of lists and of everything else that takes an index: record files, rows on a server.

Rows are chosen by number and read one at a time, when they are needed; a part of a row is again a
region.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..core.backend import is_tensor
from ..core.indexing import examples_at
from .array_region import ArrayRegion
from .region import Endless, FailedRegion, ReadOnlyError, Region, is_index_list, select_rows


class Rows(list[Any]):
    """Rows that belong together: several values that are read of them make one array."""


def region_of(data: Any) -> Region:
    """Return all of some data: an array, anything with ``__getitem__``, or a single value.

    Data without ``__len__`` have no end.
    """
    if (isinstance(data, np.ndarray) and data.ndim) or is_tensor(data):
        return ArrayRegion(data)
    if hasattr(data, "__getitem__") and not isinstance(data, (str, bytes, np.ndarray, np.generic)):
        return (_StackedRegion if isinstance(data, Rows) else SequenceRegion)(data)
    return _Value(data)


def stacked(rows: list[Any]) -> Any:
    """Stack rows of equal arrays, of numbers, or of lists of numbers; return others as they are."""
    if rows and all(is_tensor(row) and row.shape == rows[0].shape for row in rows):
        import torch

        return torch.stack(rows)
    # A tuple is a record, whose entries are no numbers of one kind.
    if not rows or any(isinstance(row, tuple) or is_tensor(row) for row in rows):
        return rows
    try:
        array = np.array(rows)
    except ValueError:  # of different shapes
        return rows
    return array if array.dtype.kind in "biufc" else rows


class SequenceRegion(Region):
    """Some rows of a sequence, and the index expressions that are applied to each, one by one.

    `data` takes numbers in ``__getitem__``; a number as `rows` stands for that row itself.
    """

    def __init__(self, data: Any, rows: Any = None, steps: tuple[Any, ...] = ()) -> None:
        self._data = data
        self._rows = rows
        self._steps = steps

    @property
    def storage(self) -> Any:
        return self._data

    @property
    def rows(self) -> Any:
        """Numbers of the rows; asks the data for their length, if nobody has chosen yet."""
        if self._rows is None:
            self._rows = range(len(self._data)) if hasattr(self._data, "__len__") else Endless()
        return self._rows

    # -- selecting --------------------------------------------------------------------------------

    def select(self, index: Any, rowwise: bool = False) -> Region:
        if isinstance(self.rows, int):
            if isinstance(index, tuple) and len(index) == 1:
                (index,) = index
            return type(self)(self._data, self._rows, (*self._steps, index))
        rest: tuple[Any, ...] = ()
        if isinstance(index, tuple):
            if not rowwise and len(index) > 1:
                raise TypeError(f"a {type(self._data).__name__} takes no tuple of indices: {index}")
            index, *inner = index
            rest = (inner[0] if len(inner) == 1 else tuple(inner),) if inner else ()
        if index is Ellipsis:
            index = slice(None)
        try:
            rows = select_rows(self.rows, index)
        except IndexError as error:
            if is_index_list(index) or isinstance(index, slice):
                return FailedRegion(error, self._data)
            raise
        except AttributeError:
            raise TypeError(
                f"rows are chosen by numbers, slices, lists and masks, not by {index!r}"
            ) from None
        return type(self)(self._data, rows, (*self._steps, *rest))

    # -- facts ------------------------------------------------------------------------------------

    def length(self) -> float:
        if isinstance(self.rows, int):
            return self._row(self.rows).length()
        return math.inf if isinstance(self.rows, Endless) else len(self.rows)

    def shape(self) -> tuple[int, ...]:
        try:
            numbers = np.asarray(self.read())
        except ValueError:
            raise ValueError("the elements differ in length: they have no common shape") from None
        if numbers.dtype.kind not in "biufc":
            raise TypeError("only numbers have a shape")
        return numbers.shape

    def axis_length(self, axis: int) -> int | None:
        if axis or isinstance(self.rows, (int, Endless)):
            return None
        return len(self.rows)

    def same_as(self, other: Region) -> bool:
        return (
            isinstance(other, SequenceRegion)
            and self._data is other._data
            and type(self.rows) is type(other.rows)
            and bool(np.all(self.rows == other.rows))
            and repr(self._steps) == repr(other._steps)
        )

    # -- data -------------------------------------------------------------------------------------

    def read(self) -> Any:
        if isinstance(self.rows, int):
            return self._row(self.rows).read()
        if isinstance(self.rows, Endless):
            raise TypeError("data without an end cannot be read as a whole: choose rows")
        whole = range(len(self._data)) if type(self._data) in (list, tuple) else None
        if not self._steps and isinstance(self.rows, range) and self.rows == whole:
            return self._data
        return [self._part(row).read() for row in examples_at(self._data, self._numbers())]

    def write(self, value: Any) -> None:
        if isinstance(self.rows, Endless):
            raise TypeError("data without an end cannot be written as a whole: choose rows")
        if isinstance(self.rows, int):
            self._write_row(self.rows, value)
            return
        numbers = self._numbers()
        values = _spread(value, len(numbers))
        for number, element in zip(numbers, values, strict=True):
            self._write_row(number, element)

    def _numbers(self) -> list[int]:
        return [int(number) for number in self.rows]

    def _row(self, number: int) -> Region:
        return self._part(self._data[number])

    def _part(self, row: Any) -> Region:
        """Return what the steps leave of a row."""
        region = region_of(row)
        for step in self._steps:
            region = region.select(step)
        return region

    def _write_row(self, number: int, value: Any) -> None:
        row = self._data[number] if self._steps else None
        if self._steps and not isinstance(row, (str, bytes)) and hasattr(row, "__setitem__"):
            self._row(number).write(value)
        elif not self._steps and hasattr(self._data, "__setitem__"):
            self._data[number] = value
        else:
            raise ReadOnlyError(f"a {type(row or self._data).__name__} cannot be written")


class _StackedRegion(SequenceRegion):
    """Some rows of `Rows`, and the index expressions that are applied to each."""

    def read(self) -> Any:
        values = super().read()
        return values if isinstance(self.rows, int) else stacked(list(values))


class _Value(Region):
    """A single value, which has no parts."""

    def __init__(self, value: Any) -> None:
        self._value = value

    @property
    def storage(self) -> Any:
        return self._value

    def read(self) -> Any:
        return self._value[()] if isinstance(self._value, np.ndarray) else self._value

    def write(self, value: Any) -> None:
        if not isinstance(self._value, np.ndarray):
            raise ReadOnlyError(f"a single {type(self._value).__name__} cannot be written")
        self._value[...] = value

    def select(self, index: Any, rowwise: bool = False) -> Region:
        if index == () or index is Ellipsis:
            return self
        return region_of(self._value[index])  # fails, or not, as the value does

    def length(self) -> float:
        return len(self._value)

    def shape(self) -> tuple[int, ...]:
        if isinstance(self._value, (str, bytes)):
            raise TypeError("only numbers have a shape")
        return np.shape(self._value)

    def axis_length(self, axis: int) -> int | None:
        return None

    def same_as(self, other: Region) -> bool:
        return isinstance(other, _Value) and self._value is other._value


def _spread(value: Any, count: int) -> list[Any]:
    """Return one element of `value` for each of `count` rows."""
    if not hasattr(value, "__len__") or isinstance(value, (str, bytes)) or np.ndim(value) == 0:
        return [value] * count
    if len(value) == count:
        return list(value)
    if len(value) == 1:
        return [value[0]] * count
    raise ValueError(f"{len(value)} values do not fit {count} rows")
