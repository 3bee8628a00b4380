"""What an index means: one reading of integers, slices, lists, arrays and masks for all datasets.

`resolve_index` says which rows an index asks for; it never touches the rows.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from .backend import is_tensor

__all__ = [
    "compose_rows",
    "examples_at",
    "resolve_index",
    "resolve_rows",
    "rows_as_index",
    "rows_as_slice",
]

#: Rows of a dataset, all of them in ``[0, length)``.
Rows = range | np.ndarray


def resolve_index(index: Any, length: int) -> Any:
    """Classify an index; integers in it are passed on unchanged and unchecked.

    Parameters
    ----------
    index : int, slice, range, list, 1-D array or tensor
        Integers may be Python's or NumPy's.  A list or array of booleans is a mask.
    length : int
        Number of rows, which slices and masks refer to.

    Returns
    -------
    int, range, list of int or numpy.ndarray, (k,)
        An integer is returned as it came, negative or not, and so are lists and integer arrays.  A
        slice becomes a range of rows, clipped as for lists; a mask becomes the list or array of the
        rows where it is true.

    Raises
    ------
    TypeError
        If it is anything else: a float, str, tuple, None, an array of floats or of several axes.
    ValueError
        If a mask does not have exactly `length` entries, or the step of a slice is zero.

    Notes
    -----
    A list that mixes booleans with integers is read as integers.  Chainer reads masks as the
    integers 0 and 1; that is the one difference.

    Examples
    --------
    >>> resolve_index(-1, 5), resolve_index(slice(3, None, -1), 5), resolve_index([4, -1], 5)
    (-1, range(3, -1, -1), [4, -1])
    >>> resolve_index([True, False, True], 3), resolve_index(np.array([False, True]), 2)
    ([0, 2], array([1]))
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
        raise TypeError(f"an array of {index.dtype} is no index: give integers or booleans")
    if isinstance(index, np.ndarray):
        raise TypeError(f"an array with {index.ndim} axes is no index: give one axis")
    return _as_integer(index)


@overload
def resolve_rows(index: int | np.integer, length: int) -> int: ...
@overload
def resolve_rows(index: Any, length: int) -> Any: ...


def resolve_rows(index: Any, length: int) -> Any:
    """Row numbers that an index asks for, negative ones counted from the end and all checked.

    Parameters
    ----------
    index : int, slice, range, list, 1-D array or tensor
        As for `resolve_index`.
    length : int
        Number of rows.

    Returns
    -------
    int, range or numpy.ndarray of int64, (k,)
        In ``[0, length)``.

    Raises
    ------
    IndexError
        If there is no such row.
    TypeError, ValueError
        As `resolve_index`.

    Examples
    --------
    >>> resolve_rows(-1, 5), resolve_rows(slice(1, 99), 5), resolve_rows([4, -1], 5)
    (4, range(1, 5), array([4, 4]))
    >>> resolve_rows([0, 5], 5)
    Traceback (most recent call last):
        ...
    IndexError: index 5 is out of range for 5 rows
    """
    found = resolve_index(index, length)
    if isinstance(found, (int, np.integer)):
        row = int(found)
        if not -length <= row < length:
            raise _out_of_range(row, length)
        return row + length if row < 0 else row
    if isinstance(found, range):
        if isinstance(index, slice):
            return found
        for end in (found[0], found[-1]) if len(found) else ():
            if not 0 <= end < length:
                break
        else:
            return found
    if isinstance(found, np.ndarray) and found.dtype == np.uint64:
        found = found.tolist()  # numbers from 2**63 on must not become negative ones
    try:
        rows = np.array(found, np.int64).reshape(-1)
    except OverflowError:
        raise _out_of_range(max(found, key=abs), length) from None
    outside = (rows < -length) | (rows >= length)
    if outside.any():
        raise _out_of_range(int(rows[outside][0]), length)
    rows[rows < 0] += length
    return rows


def compose_rows(rows: Rows, inner: Rows) -> Rows:
    """Rows of rows: ``compose_rows(a, b)[i] == a[b[i]]``, a range where both are ranges.

    Examples
    --------
    >>> compose_rows(range(10, 20), range(4, 0, -2)), compose_rows(range(10, 20), np.array([3, 3]))
    (range(14, 10, -2), array([13, 13]))
    """
    if isinstance(inner, range) and isinstance(rows, range):
        return rows[rows_as_slice(inner)] if len(inner) else range(0)
    if isinstance(inner, range):
        return rows[rows_as_slice(inner)]
    if isinstance(rows, range):
        return rows.start + rows.step * inner
    return rows[inner]


def rows_as_slice(rows: range) -> slice:
    """The slice that gives these rows of something with at least that many."""
    stop = rows.stop if rows.stop >= 0 else None
    return slice(rows.start, stop, rows.step) if len(rows) else slice(0, 0, 1)


def rows_as_index(rows: Rows) -> slice | list[int]:
    """Rows as a slice or a list of int, which is what lists and arrays can be asked with.

    Examples
    --------
    >>> rows_as_index(range(2, -1, -1)), rows_as_index(np.array([3, 1]))
    (slice(2, None, -1), [3, 1])
    """
    return rows_as_slice(rows) if isinstance(rows, range) else rows.tolist()


def examples_at(dataset: Any, indices: Sequence[int] | np.ndarray) -> list[Any]:
    """Several examples of any dataset, in one call where it offers ``__getitems__``.

    Parameters
    ----------
    dataset : sequence
        Anything that can be indexed with an integer.
    indices : sequence of int

    Returns
    -------
    list

    Examples
    --------
    >>> examples_at("abc", [2, 0])
    ['c', 'a']
    """
    several = getattr(dataset, "__getitems__", None)
    if several is not None:
        return several(indices)
    return [dataset[index] for index in indices]


def _mask(mask: np.ndarray, length: int) -> np.ndarray:
    if len(mask) != length:
        raise ValueError(f"a mask of {len(mask)} entries does not fit {length} rows")
    return np.flatnonzero(mask)


def _as_integer(item: Any) -> int:
    if isinstance(item, np.ndarray):
        raise TypeError("an array is no integer: give a 1-D array or a list of integers")
    try:
        return operator.index(item)
    except TypeError:
        raise TypeError(
            f"an index is an integer, a slice, a list or a 1-D array, not {type(item).__name__}"
        ) from None


def _out_of_range(row: int, length: int) -> IndexError:
    return IndexError(f"index {row} is out of range for {length} rows")
