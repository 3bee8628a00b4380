"""Tables from lists, arrays and functions: `from_data`."""

from __future__ import annotations

from typing import Any

from ...core.indexing import by_position
from .dataset import DelegateDataset, TabularDataset
from .operations import GeneratedKey, Join


def from_data(data: Any, *, size: int | None = None) -> TabularDataset:
    """Make a table of lists, arrays and functions.

    Parameters
    ----------
    data : list, array, tuple or dict
        ==============================================  =====================================
        ``column``                                      one bare column with a generated key
        ``(key, column)``                               one bare column
        ``(key, function)``                             one column, computed
        ``((key, ...), function)``                      several columns, computed together
        tuple of the above                              their columns; examples are tuples
        dict of key to column or function, and of       the columns; examples are dicts
        tuple of keys to function
        ==============================================  =====================================

        A column is a list or an array.  A function takes the number of a row, as an int, and
        returns the value, or a tuple or dict with one for each key; it is called only for rows of
        which one of its columns is read.
    size : int, optional
        Number of rows; needed if there is no list and no array.

    Returns
    -------
    TabularDataset

    Raises
    ------
    ValueError
        For a function without a key, lengths that differ, and if the number of rows is not known.
    TypeError
        For anything else.

    Examples
    --------
    >>> from_data([1, 2, 3])[1], from_data(([1, 2], ("b", ["x", "y"])))[0]
    (2, (1, 'x'))
    >>> table = from_data({"x": [1, 2, 3], ("square", "cube"): lambda i: (i**2, i**3)})
    >>> table[2], table.keys
    ({'x': 3, 'square': 4, 'cube': 8}, ('x', 'square', 'cube'))
    >>> from_data(("square", lambda i: i * i), size=4).fetch()
    [0, 1, 4, 9]
    """
    if isinstance(data, dict):
        return _join(list(data.items()), size).asdict()
    if not isinstance(data, tuple) or _has_key(data):
        entry = data if isinstance(data, tuple) else (None, data)
        return _members([entry], size)[0]
    entries = [item if _has_key(item) else (None, item) for item in data]
    if not entries:
        raise ValueError("from_data needs at least one column")
    return _join(entries, size).astuple()


def _has_key(item: Any) -> bool:
    """Return whether this is ``(key, column or function)`` or ``((key, ...), function)``."""
    if not isinstance(item, tuple) or len(item) != 2:
        return False
    key = item[0]
    several = isinstance(key, tuple) and all(isinstance(name, str) for name in key)
    return isinstance(key, str) or (several and callable(item[1]))


def _join(entries: list[tuple[Any, Any]], size: int | None) -> TabularDataset:
    if not entries:
        raise ValueError("from_data needs at least one column")
    return DelegateDataset(Join(*_members(entries, size)))


def _members(entries: list[tuple[Any, Any]], size: int | None) -> list[TabularDataset]:
    taken = {name for key, _ in entries for name in (key if isinstance(key, tuple) else (key,))}
    for key, column in entries:
        if callable(column):
            if key is None:
                raise ValueError("a function needs a key: (key, function)")
            continue
        if not isinstance(column, list) and not hasattr(column, "__array__"):
            raise TypeError(
                f"a column is a list, an array or a function, not {type(column).__name__}"
            )
        if isinstance(key, tuple):
            raise ValueError(f"the keys {key} stand for one function, not for a list or array")
        if size is None:
            size = len(column)
        elif len(column) != size:
            raise ValueError(f"a column has {len(column)} rows instead of {size}")
    if size is None:
        raise ValueError("only functions are given: pass the number of rows as size=")
    members: list[TabularDataset] = []
    for key, column in entries:
        if callable(column):
            members.append(RowNumbers(size).transform(key, column))
            continue
        if key is None:
            key = GeneratedKey.new(taken)
        members.append(Column(key, column))
    return members


class Column(TabularDataset):
    """One list or array."""

    def __init__(self, key: str, column: Any) -> None:
        self._key = key
        self._column = by_position(column)

    def __len__(self) -> int:
        return len(self._column)

    @property
    def keys(self) -> tuple[str, ...]:
        """The one name."""
        return (self._key,)

    @property
    def mode(self) -> None:
        """Examples are bare values."""
        return None

    def get_examples(self, indices: Any, key_indices: Any) -> tuple[Any, ...]:
        """Return the column, once for every time that it is asked for."""
        column = self._column
        if indices is not None:
            if isinstance(indices, slice) or not isinstance(column, list):
                column = column[indices]
            else:
                column = [column[i] for i in indices]
        return (column,) * (1 if key_indices is None else len(key_indices))


class RowNumbers(TabularDataset):
    """The numbers of the rows."""

    def __init__(self, size: int) -> None:
        self._size = size

    def __len__(self) -> int:
        return self._size

    @property
    def keys(self) -> tuple[str, ...]:
        """The one name."""
        return ("row",)

    @property
    def mode(self) -> None:
        """Examples are bare numbers."""
        return None

    def get_examples(self, indices: Any, key_indices: Any) -> tuple[Any, ...]:
        """Return the numbers that are asked for."""
        if indices is None:
            return (range(self._size),)
        rows = range(self._size)[indices] if isinstance(indices, slice) else indices
        return (rows,)
