"""Batches copied, taken apart into samples and compared, down to the elements of their arrays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from ..core.backend import is_tensor
from ..core.batch import DataBatch
from ..core.dtypes import array_over, is_float

NUMBERS = (int, float, complex, np.number, np.bool_)


def copies(batches: Iterable[Any]) -> list[DataBatch]:
    """Copy batches, so that they can be kept while their provider goes on.

    Parameters
    ----------
    batches : iterable of DataBatch
        For example a provider, of which one epoch is copied.

    Returns
    -------
    list of DataBatch
        With NumPy arrays, whatever the device.

    Examples
    --------
    >>> from iterators import ArrayDataProvider
    >>> provider = ArrayDataProvider(np.arange(4), batch_size=2)
    >>> [batch.data[0].tolist() for batch in copies(provider)]
    [[0, 1], [2, 3]]
    """
    result = []
    for batch in batches:
        copied = DataBatch(
            [_copy(array) for array in batch.data],
            [_copy(array) for array in batch.label or ()],
            batch.pad,
            None if batch.index is None else np.array(batch.index),
            provide_data=getattr(batch, "provide_data", None),
            provide_label=getattr(batch, "provide_label", None),
        )
        source = getattr(batch, "source", None)
        copied.source = None if source is None else np.array(source)
        result.append(copied)
    return result


def samples(batches: Iterable[Any]) -> Iterator[tuple[Any, Any, int | None]]:
    """Go through the samples of batches, without padding.

    Parameters
    ----------
    batches : iterable of DataBatch
        Such as a provider.  The batch axis of the arrays is their first one.

    Yields
    ------
    data, label, index
        Of the first array of data and the first of labels, None without labels; and the id, None
        without ids.

    Examples
    --------
    >>> from iterators import ArrayDataProvider
    >>> provider = ArrayDataProvider(np.arange(3) * 5, np.arange(3) % 2, batch_size=2)
    >>> [(int(data), int(label), index) for data, label, index in samples(provider)]
    [(0, 0, 0), (5, 1, 1), (10, 0, 2)]
    """
    for batch in batches:
        for slot in range(batch.count):
            label = batch.label[0][slot] if batch.label else None
            index = None if batch.index is None else int(batch.index[slot])
            yield batch.data[0][slot], label, index


def same(first: Any, second: Any) -> bool:
    """Return whether two objects are the same, down to the elements of their arrays.

    Parameters
    ----------
    first, second : object
        Batches, arrays, tensors, sparse matrices, spaces, numbers, strings; and lists, tuples,
        dicts of such.  Arrays are the same with the same type of elements, shape and elements;
        numbers with the same value.  NaN is the same as NaN.  Batches are compared by their arrays,
        ids, padding and sources.

    Returns
    -------
    bool

    Examples
    --------
    >>> same([np.arange(3), "a"], [np.arange(3), "a"]), same(np.arange(3), np.arange(3.0))
    (True, False)
    """
    return _difference(first, second, "") is None


def assert_same(found: Any, wanted: Any) -> None:
    """Check that two objects are the same by the rules of `same`.

    Parameters
    ----------
    found, wanted : object

    Raises
    ------
    AssertionError
        If they are not, with the first position at which they differ.

    Examples
    --------
    >>> assert_same([np.arange(3), [1]], [np.arange(3), [2]])
    Traceback (most recent call last):
        ...
    AssertionError: [1][0]: found 1, wanted 2
    """
    text = _difference(found, wanted, "")
    if text is not None:
        raise AssertionError(text)


def _copy(array: Any) -> Any:
    return array.copy() if hasattr(array, "tocsr") else np.array(_as_numpy(array))


def _as_numpy(array: Any) -> Any:
    if is_tensor(array):
        return array_over(array)
    return array.toarray() if hasattr(array, "toarray") else array


def _difference(actual: Any, expected: Any, position: str) -> str | None:
    """Describe the first difference; None without one."""
    if isinstance(expected, DataBatch) and isinstance(actual, DataBatch):
        actual, expected = _fields(actual), _fields(expected)
    if isinstance(expected, NUMBERS) and isinstance(actual, NUMBERS):
        equal = actual == expected or (actual != actual and expected != expected)
        return None if equal else _differs(position, actual, expected)
    if type(actual) is not type(expected):
        return _differs(position, type(actual).__name__, type(expected).__name__)
    if isinstance(expected, Mapping):
        if list(actual) != list(expected):
            return _differs(position, f"keys {list(actual)}", list(expected))
        return _first_of(actual, expected, expected, position)
    if isinstance(expected, (list, tuple)):
        if len(actual) != len(expected):
            return _differs(position, f"{len(actual)} items", len(expected))
        return _first_of(actual, expected, range(len(expected)), position)
    if isinstance(expected, np.ndarray) or is_tensor(expected) or hasattr(expected, "toarray"):
        if actual.dtype != expected.dtype or actual.shape != expected.shape:
            forms = [f"{array.dtype} {tuple(array.shape)}" for array in (actual, expected)]
            return _differs(position, *forms)
        return _first_element(_as_numpy(actual), _as_numpy(expected), position)
    return None if actual == expected else _differs(position, repr(actual), repr(expected))


def _fields(batch: DataBatch) -> dict[str, Any]:
    names = ("data", "label", "pad", "index", "source")
    return {name: getattr(batch, name, None) for name in names}


def _first_of(actual: Any, expected: Any, keys: Iterable[Any], position: str) -> str | None:
    differences = (_difference(actual[key], expected[key], f"{position}[{key!r}]") for key in keys)
    return next((text for text in differences if text is not None), None)


def _first_element(actual: np.ndarray, expected: np.ndarray, position: str) -> str | None:
    if actual.dtype == object:
        return _difference(actual.tolist(), expected.tolist(), position)
    unequal = actual != expected
    if actual.dtype.kind == "c" or is_float(actual.dtype):
        unequal &= ~(np.isnan(actual) & np.isnan(expected))
    if not np.any(unequal):
        return None
    at = tuple(int(i) for i in np.argwhere(unequal)[0])
    where = position + (f"[{', '.join(map(str, at))}]" if at else "")
    return _differs(
        where, f"{actual[at]} ({np.sum(unequal)} of {actual.size} differ)", expected[at]
    )


def _differs(position: str, actual: Any, expected: Any) -> str:
    return f"{position + ': ' if position else ''}found {actual}, wanted {expected}"
