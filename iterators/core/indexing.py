"""One reading of integers, slices, lists, arrays and masks as indices, for all datasets.

`resolve_index` gives the rows that an index means; it never touches the rows.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from .backend import is_tensor

#: Rows of a dataset, all of them in ``[0, length)``.
Rows = range | np.ndarray


def resolve_index(index: Any, length: int) -> Any:
    """Classify an index into `length` rows; integers in it are passed on unchanged and unchecked.

    An integer is returned as it came, negative or not, and so are lists and integer arrays.  A
    slice becomes a range of rows, clipped as for lists; a mask (booleans, of exactly `length`
    entries) becomes the list or array of the rows where it is true.  A list that mixes booleans
    with integers is read as integers.  Chainer reads masks as the integers 0 and 1; that is the one
    difference.
    """
    if isinstance(index, (int, np.integer)):
        return index
    if isinstance(index, slice):
        return range(*index.indices(length))
    if isinstance(index, range):
        return index
    if isinstance(index, list):
        if index and all(isinstance(item, (bool, np.bool_)) for item in index):
            return _mask(np.array(index, np.bool_), length).tolist()
        for item in index:
            if not isinstance(item, (int, np.integer)):
                _as_integer(item)
        return index
    if is_tensor(index):
        index = index.numpy(force=True)
    if isinstance(index, np.ndarray) and index.ndim == 1:
        if index.dtype == np.bool_:
            return _mask(index, length)
        if index.dtype.kind in "iu":
            return index
        if not index.size and index.dtype == np.float64:
            return index.astype(np.int64)  # what NumPy makes of an empty list
        raise TypeError(f"an array of {index.dtype} is not an index: give integers or booleans")
    if isinstance(index, np.ndarray):
        raise TypeError(f"an array with {index.ndim} axes is not an index: give one axis")
    return _as_integer(index)


@overload
def resolve_rows(index: int | np.integer, length: int) -> int: ...
@overload
def resolve_rows(index: Any, length: int) -> Any: ...


def resolve_rows(index: Any, length: int) -> Any:
    """Return the row numbers that an index means, checked, negative ones counted from the end."""
    numbers = resolve_index(index, length)
    if isinstance(numbers, (int, np.integer)):
        row = int(numbers)
        if not -length <= row < length:
            raise _out_of_range(row, length)
        return row + length if row < 0 else row
    if isinstance(numbers, range):
        if isinstance(index, slice):
            return numbers
        for end in (numbers[0], numbers[-1]) if len(numbers) else ():
            if not 0 <= end < length:
                break
        else:
            return numbers
    if isinstance(numbers, np.ndarray) and numbers.dtype == np.uint64:
        numbers = numbers.tolist()  # numbers from 2**63 on must not become negative ones
    try:
        rows = np.array(numbers, np.int64).reshape(-1)
    except OverflowError:
        raise _out_of_range(max(numbers, key=abs), length) from None
    outside = (rows < -length) | (rows >= length)
    if outside.any():
        raise _out_of_range(int(rows[outside][0]), length)
    rows[rows < 0] += length
    return rows


def compose_rows(rows: Rows, inner: Rows) -> Rows:
    """Return rows of rows: ``compose_rows(a, b)[i] == a[b[i]]``, a range where both are ranges."""
    if isinstance(inner, range) and isinstance(rows, range):
        return rows[rows_as_slice(inner)] if len(inner) else range(0)
    if isinstance(inner, range):
        return rows[rows_as_slice(inner)]
    if isinstance(rows, range):
        return rows.start + rows.step * inner
    return rows[inner]


def rows_as_slice(rows: range) -> slice:
    """Return the slice that gives these rows of something with at least that many."""
    stop = rows.stop if rows.stop >= 0 else None
    return slice(rows.start, stop, rows.step) if len(rows) else slice(0, 0, 1)


def rows_as_index(rows: Rows) -> slice | list[int]:
    """Return rows as a slice or a list of int, which lists and arrays take as an index."""
    return rows_as_slice(rows) if isinstance(rows, range) else rows.tolist()


def examples_at(dataset: Any, indices: Sequence[int] | np.ndarray) -> list[Any]:
    """Read several examples of any dataset, in one call where it offers ``__getitems__``."""
    several = getattr(dataset, "__getitems__", None)
    if several is not None:
        return several(indices)
    return [dataset[index] for index in indices]


def by_position(dataset: Any) -> Any:
    """Return a data set whose rows are found by position; a Series finds them by its own index.

    After a random split, that index has nothing to do with positions.
    """
    return dataset.to_numpy() if hasattr(dataset, "iloc") else dataset


def _mask(mask: np.ndarray, length: int) -> np.ndarray:
    if len(mask) != length:
        raise ValueError(f"a mask of {len(mask)} entries does not fit {length} rows")
    return np.flatnonzero(mask)


def _as_integer(item: Any) -> int:
    if isinstance(item, np.ndarray):
        raise TypeError("an array is not an integer: give a 1-D array or a list of integers")
    try:
        return operator.index(item)
    except TypeError:
        raise TypeError(
            f"an index is an integer, a slice, a list or a 1-D array, not {type(item).__name__}"
        ) from None


def _out_of_range(row: int, length: int) -> IndexError:
    return IndexError(f"index {row} is out of range for {length} rows")
