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
    found = []
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
        found.append(copied)
    return found


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


def _difference(found: Any, wanted: Any, position: str) -> str | None:
    """Describe the first difference; None without one."""
    if isinstance(wanted, DataBatch) and isinstance(found, DataBatch):
        found, wanted = _fields(found), _fields(wanted)
    if isinstance(wanted, NUMBERS) and isinstance(found, NUMBERS):
        equal = found == wanted or (found != found and wanted != wanted)
        return None if equal else _differs(position, found, wanted)
    if type(found) is not type(wanted):
        return _differs(position, type(found).__name__, type(wanted).__name__)
    if isinstance(wanted, Mapping):
        if list(found) != list(wanted):
            return _differs(position, f"keys {list(found)}", list(wanted))
        return _first_of(found, wanted, wanted, position)
    if isinstance(wanted, (list, tuple)):
        if len(found) != len(wanted):
            return _differs(position, f"{len(found)} items", len(wanted))
        return _first_of(found, wanted, range(len(wanted)), position)
    if isinstance(wanted, np.ndarray) or is_tensor(wanted) or hasattr(wanted, "toarray"):
        if found.dtype != wanted.dtype or found.shape != wanted.shape:
            forms = [f"{array.dtype} {tuple(array.shape)}" for array in (found, wanted)]
            return _differs(position, *forms)
        return _first_element(_as_numpy(found), _as_numpy(wanted), position)
    return None if found == wanted else _differs(position, repr(found), repr(wanted))


def _fields(batch: DataBatch) -> dict[str, Any]:
    names = ("data", "label", "pad", "index", "source")
    return {name: getattr(batch, name, None) for name in names}


def _first_of(found: Any, wanted: Any, keys: Iterable[Any], position: str) -> str | None:
    differences = (_difference(found[key], wanted[key], f"{position}[{key!r}]") for key in keys)
    return next((text for text in differences if text is not None), None)


def _first_element(found: np.ndarray, wanted: np.ndarray, position: str) -> str | None:
    if found.dtype == object:
        return _difference(found.tolist(), wanted.tolist(), position)
    unequal = found != wanted
    if found.dtype.kind == "c" or is_float(found.dtype):
        unequal &= ~(np.isnan(found) & np.isnan(wanted))
    if not np.any(unequal):
        return None
    at = tuple(int(i) for i in np.argwhere(unequal)[0])
    where = position + (f"[{', '.join(map(str, at))}]" if at else "")
    return _differs(where, f"{found[at]} ({np.sum(unequal)} of {found.size} differ)", wanted[at])


def _differs(position: str, found: Any, wanted: Any) -> str:
    return f"{position + ': ' if position else ''}found {found}, wanted {wanted}"
