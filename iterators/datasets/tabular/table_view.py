"""Views of a table: some rows, some columns, another mode, another converter.

No data is copied; rows of rows are merged into one index when the view is made.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from ...core.indexing import Rows, compose_rows, resolve_rows, rows_as_index
from .columns import TableColumns

__all__ = ["Slice", "WithConverter", "WithMode"]


class WithMode(TableColumns):
    """A table with another mode."""

    def __init__(self, dataset: Any, mode: Any) -> None:
        super().__init__(dataset)
        self._mode = mode

    @property
    def mode(self) -> Any:
        """Form of an example."""
        return self._mode


class WithConverter(TableColumns):
    """A table with another converter."""

    def __init__(self, dataset: Any, converter: Callable[..., Any]) -> None:
        super().__init__(dataset)
        self._converter = converter

    def convert(self, data: Any) -> Any:
        """Pass the columns to the converter."""
        if isinstance(data, tuple):
            return self._converter(*data)
        return self._converter(**data) if isinstance(data, dict) else self._converter(data)


class Slice(TableColumns):
    """Some rows and columns of a table."""

    def __init__(self, dataset: Any, rows: Any, keys: Any = None) -> None:
        found = resolve_rows(rows, len(dataset))
        if isinstance(found, int):
            raise TypeError(f"slice[{rows!r}]: expected a slice, a list or an array of rows")
        columns = None
        if isinstance(keys, tuple):
            columns = tuple(_number_of(key, dataset.keys) for key in keys)
        elif keys is not None:
            columns = (_number_of(keys, dataset.keys),)
        # A computed table may have to read a row to know its mode: ask it when that is wanted.
        self._parent = dataset
        self._has_mode = keys is None or isinstance(keys, tuple)
        self._chosen = keys is not None
        if isinstance(dataset, Slice):
            found = compose_rows(dataset._rows, found)
            columns = dataset._pick(columns)
            dataset = dataset.dataset
        super().__init__(dataset)
        self._rows: Rows = found
        self._columns: tuple[int, ...] | None = columns

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the columns."""
        names = self.dataset.keys
        return names if self._columns is None else tuple(names[i] for i in self._columns)

    @property
    def mode(self) -> Any:
        """Form of an example."""
        if not self._has_mode:
            return None
        mode = self._parent.mode
        return tuple if self._chosen and mode is None else mode

    def _pick(self, key_indices: Any) -> tuple[int, ...] | None:
        if self._columns is None or key_indices is None:
            return self._columns if key_indices is None else key_indices
        return tuple(self._columns[i] for i in key_indices)

    def get_examples(self, indices: Any, key_indices: Any) -> tuple[Any, ...]:
        """Return columns of some rows."""
        rows = self._rows
        if indices is not None:
            rows = compose_rows(rows, resolve_rows(indices, len(rows)))
        everything = isinstance(rows, range) and rows == range(len(self.dataset))
        wanted = None if everything else rows_as_index(rows)
        return self.dataset.get_examples(wanted, self._pick(key_indices))


def _number_of(key: Any, names: tuple[str, ...]) -> int:
    if isinstance(key, str):
        if key not in names:
            raise KeyError(f"there is no column {key!r}; this table has {', '.join(names)}")
        return names.index(key)
    try:
        number = operator.index(key)
    except TypeError:
        raise TypeError(f"a key is a name or a number, not {type(key).__name__}") from None
    if not -len(names) <= number < len(names):
        raise IndexError(f"there is no column {number}; this table has {len(names)}")
    return number % len(names)
