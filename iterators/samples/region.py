"""Parts of stored data, named without being read.

A *region* is the data of a sample: the whole of an array or a list, or the part of it that any
number of index expressions leave.  Selecting from a region gives a region and touches nothing;
only reading, writing and - where the data do not know it - asking for a shape do.  Regions know
nothing of fields.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ..core.indexing import compose_rows, resolve_rows


class ReadOnlyError(ValueError):
    """Something tried to write to data that cannot, or must not, be written."""


class Region(ABC):
    """Part of stored data."""

    @abstractmethod
    def read(self) -> Any:
        """Return the data; they may share memory with what is stored."""

    @abstractmethod
    def write(self, value: Any) -> None:
        """Store `value`, broadcast to the shape of the region as in an assignment of NumPy."""

    @abstractmethod
    def select(self, index: Any, rowwise: bool = False) -> Region:
        """Return the part of this region that an index expression names.

        `rowwise` applies where the data, such as a list, take no tuples: ``(rows, *rest)`` then
        means ``[row[rest] for row in data[rows]]``.
        """

    @abstractmethod
    def length(self) -> float:
        """Return the number of elements along the first axis; ``math.inf`` without an end."""

    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Return the length of every axis; an error if the elements are no numbers or not alike."""

    @abstractmethod
    def axis_length(self, axis: int) -> int | None:
        """Return the length of an axis; None if there is none or it takes reading the data."""

    @abstractmethod
    def same_as(self, other: Region) -> bool:
        """Return whether both name the same part of the same storage."""

    @property
    @abstractmethod
    def storage(self) -> Any:
        """The data that the region is part of."""


class FailedRegion(Region):
    """Result of an impossible selection: every use raises its error.

    Selecting must not read, and an index out of range is reported when the data are read.
    """

    def __init__(self, error: Exception, storage: Any) -> None:
        self._error = error
        self._storage = storage

    def _fail(self, *arguments: Any, **keywords: Any) -> Any:
        raise self._error

    read: Any = _fail
    write: Any = _fail
    length: Any = _fail
    shape: Any = _fail

    def select(self, index: Any, rowwise: bool = False) -> Region:
        return self

    def axis_length(self, axis: int) -> int | None:
        return None

    def same_as(self, other: Region) -> bool:
        return self is other

    @property
    def storage(self) -> Any:
        return self._storage


class Endless:
    """The numbers ``start, start + step, ...``: the rows of data without an end."""

    __slots__ = ("start", "step")

    def __init__(self, start: int = 0, step: int = 1) -> None:
        self.start: int = start
        self.step: int = step

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Endless) and (self.start, self.step) == (other.start, other.step)

    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._cut(index)
        if index < 0:
            raise IndexError(f"index {index}: data without an end have no last element")
        return self.start + self.step * index

    def _cut(self, index: slice) -> range | Endless:
        first = 0 if index.start is None else int(index.start)
        step = 1 if index.step is None else int(index.step)
        if first < 0 or (index.stop is not None and index.stop < 0) or step < 1:
            raise IndexError(
                f"slice {index.start}:{index.stop}:{index.step}: data without an end can be "
                "counted neither from their end nor backwards"
            )
        start, stride = self.start + self.step * first, self.step * step
        if index.stop is None:
            return Endless(start, stride)
        return range(start, self.start + self.step * max(int(index.stop), first), stride)


def is_index_list(index: Any) -> bool:
    """Return whether an index expression is a list of positions or a mask."""
    if isinstance(index, np.ndarray):
        return index.ndim > 0
    return isinstance(index, Sequence) and not isinstance(index, (str, bytes, tuple))


def rows_of(index: Any, length: float) -> np.ndarray:
    """Return the positions that a list of numbers, or a mask, names in `length` rows."""
    positions = np.asarray(index)
    if positions.size == 0 and positions.dtype != bool:
        positions = positions.astype(np.intp)
    if positions.ndim != 1 or positions.dtype.kind not in "biu":
        raise IndexError(
            f"a list of positions must be one row of integers or booleans, not {index!r}"
        )
    if positions.dtype == bool:
        if len(positions) != length:
            raise IndexError(f"the mask has {len(positions)} elements for {length} rows")
        return np.flatnonzero(positions)
    if length < math.inf:
        return resolve_rows(positions, int(length))
    if (positions < 0).any():
        raise IndexError("data without an end have no last element")
    return positions.astype(np.intp)


def select_rows(rows: Any, index: Any) -> Any:
    """Return some of the rows that a range, an array or `Endless` names: one number, or rows again.

    Costs nothing that grows with the data, only what a list of positions itself costs.
    """
    if is_index_list(index):
        if isinstance(rows, Endless):
            return rows.start + rows.step * rows_of(index, math.inf)
        return compose_rows(rows, rows_of(index, len(rows)))
    if not isinstance(index, slice):
        index = index.__index__()
        if not isinstance(rows, Endless) and not -len(rows) <= index < len(rows):
            raise IndexError(f"index {index} is out of range for {len(rows)} rows")
        return int(rows[index])
    return rows[index]
