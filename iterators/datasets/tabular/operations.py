"""Operations on tables: rows and columns of one, columns computed of others, several as one.

Each passes everything on to the tables that it refers to, except for what it changes.  No data is
copied, rows of rows are merged into one index, and members are read for their part of a request.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Container
from itertools import accumulate, count, pairwise
from typing import Any

import numpy as np

from ...core.backend import backend_of, is_tensor
from ...core.indexing import Rows, compose_rows, resolve_rows, rows_as_index


class TableColumns:
    """Passes everything on to the table `dataset`; an operation overrides what it changes."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self.dataset.keys

    @property
    def mode(self) -> Any:
        """Form of an example."""
        return self.dataset.mode

    def get_examples(self, indices: Any, key_indices: Any) -> tuple[Any, ...]:
        """Return columns of some rows."""
        return self.dataset.get_examples(indices, key_indices)

    def convert(self, data: Any) -> Any:
        """Make arrays of columns, as the table does."""
        return self.dataset.convert(data)


class WithMode(TableColumns):
    """A table with another mode."""

    def __init__(self, dataset: Any, mode: Any) -> None:
        super().__init__(dataset)
        self._mode = mode

    @property
    def mode(self) -> Any:
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
        numbers = resolve_rows(rows, len(dataset))
        if isinstance(numbers, int):
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
            numbers = compose_rows(dataset._rows, numbers)
            columns = dataset._pick(columns)
            dataset = dataset.dataset
        super().__init__(dataset)
        self._rows: Rows = numbers
        self._columns: tuple[int, ...] | None = columns

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def keys(self) -> tuple[str, ...]:
        names = self.dataset.keys
        return names if self._columns is None else tuple(names[i] for i in self._columns)

    @property
    def mode(self) -> Any:
        if not self._has_mode:
            return None
        mode = self._parent.mode
        return tuple if self._chosen and mode is None else mode

    def _pick(self, key_indices: Any) -> tuple[int, ...] | None:
        if self._columns is None or key_indices is None:
            return self._columns if key_indices is None else key_indices
        return tuple(self._columns[i] for i in key_indices)

    def get_examples(self, indices: Any, key_indices: Any) -> tuple[Any, ...]:
        rows = self._rows
        if indices is not None:
            rows = compose_rows(rows, resolve_rows(indices, len(rows)))
        everything = isinstance(rows, range) and rows == range(len(self.dataset))
        index = None if everything else rows_as_index(rows)
        return self.dataset.get_examples(index, self._pick(key_indices))


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


UNKNOWN = object()


class Computed(TableColumns):
    """A table whose columns a function computes; the form of its result decides the mode."""

    def __init__(
        self, dataset: Any, keys: str | tuple[str, ...], function: Callable[..., Any]
    ) -> None:
        super().__init__(dataset)
        self._single = isinstance(keys, str)
        self._keys = (keys,) if isinstance(keys, str) else tuple(keys)
        self._function = function
        self._mode: Any = UNKNOWN

    @property
    def keys(self) -> tuple[str, ...]:
        return self._keys

    @property
    def mode(self) -> Any:
        """Form of the function's result; the first row is computed once to find it.

        A table without rows has no first row; then it is None for a single key that was given
        without a tuple, else tuple.
        """
        if self._mode is UNKNOWN:
            if not len(self):
                return None if self._single else tuple
            self.get_examples([0], None)
        return self._mode

    def _call(self, mode: Any, columns: Any) -> Any:
        """Call the function and look at what it returned; a tuple with one entry for every key."""
        if mode is dict:
            result = self._function(**dict(zip(self.dataset.keys, columns, strict=True)))
        else:
            result = self._function(*columns)
        form = next((kind for kind in (tuple, dict) if isinstance(result, kind)), None)
        if self._mode is UNKNOWN:
            self._mode = form
        elif self._mode is not form:
            raise ValueError(
                f"the transform returned {_name(form)}, after it had returned {_name(self._mode)}"
            )
        if form is dict:
            if missing := [key for key in self._keys if key not in result]:
                raise ValueError(f"the transform returned no {', '.join(map(repr, missing))}")
            return tuple(result[key] for key in self._keys)
        values = result if form is tuple else (result,)
        if len(values) != len(self._keys):
            raise ValueError(
                f"the transform returned {len(values)} values for the keys {self._keys}"
            )
        return values

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_mode": () if self._mode is UNKNOWN else self._mode}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        if self._mode == ():
            self._mode = UNKNOWN


class Transform(Computed):
    """Rows made from rows, one by one; they are made whichever columns are wanted."""

    def get_examples(self, indices: Any, key_indices: Any) -> tuple[Any, ...]:
        mode = self.dataset.mode
        numbers = range(len(self._keys)) if key_indices is None else key_indices
        columns: tuple[list[Any], ...] = tuple([] for _ in numbers)
        for row in zip(*self.dataset.get_examples(indices, None), strict=True):
            values = self._call(mode, row)
            for column, i in zip(columns, numbers, strict=True):
                column.append(values[i])
        return columns


class TransformBatch(Computed):
    """Columns made from blocks of columns."""

    def get_examples(self, indices: Any, key_indices: Any) -> tuple[Any, ...]:
        source = self.dataset.get_examples(indices, None)
        if indices is None:
            count = len(self.dataset)
        elif isinstance(indices, slice):
            count = len(range(*indices.indices(len(self.dataset))))
        else:
            count = len(indices)
        columns = self._call(self.dataset.mode, source)
        for key, column in zip(self._keys, columns, strict=True):
            if len(column) != count:
                raise ValueError(
                    f"the transform returned {len(column)} rows of {key!r} for a block of {count}"
                )
        return columns if key_indices is None else tuple(columns[i] for i in key_indices)


def _name(mode: Any) -> str:
    return "a bare value" if mode is None else f"a {mode.__name__}"


class GeneratedKey(str):
    """A generated name of a column: no two columns share one, and none means anything."""

    __slots__ = ()
    _numbers = count()

    @classmethod
    def new(cls, taken: Container[str] = ()) -> GeneratedKey:
        """Return the next name that is not taken."""
        while (key := cls(f"_{next(cls._numbers)}")) in taken:
            pass
        return key


class Concatenation(TableColumns):
    """The rows of several tables with the same keys; keys and mode are those of the first."""

    def __init__(self, *datasets: Any) -> None:
        names = _key_names(datasets[0].keys)
        for i, dataset in enumerate(datasets):
            if _key_names(dataset.keys) != names:
                raise ValueError(
                    f"table {i} has the keys {dataset.keys}, but table 0 has {datasets[0].keys}"
                )
        super().__init__(datasets[0])
        self._datasets = datasets
        self._starts = [0, *accumulate(map(len, datasets))]

    def __len__(self) -> int:
        return self._starts[-1]

    def get_examples(self, indices: Any, key_indices: Any) -> tuple[Any, ...]:
        """Return columns of some rows; every table that has some of them is read once."""
        if indices is None:
            parts = [dataset.get_examples(None, key_indices) for dataset in self._datasets]
            return _below(parts)
        rows = resolve_rows(indices, len(self))
        rows = np.arange(rows.start, rows.stop, rows.step) if isinstance(rows, range) else rows
        parts, positions = [], []
        for dataset, (start, stop) in zip(self._datasets, pairwise(self._starts), strict=True):
            here = np.flatnonzero((rows >= start) & (rows < stop))
            if len(here):
                positions.append(here)
                parts.append(dataset.get_examples(_as_index(rows[here] - start), key_indices))
        if not parts:
            return self._datasets[0].get_examples([], key_indices)
        columns = _below(parts)
        back = np.concatenate(positions)
        if bool((back[1:] > back[:-1]).all()):
            return columns
        order = np.argsort(back)
        return tuple(
            column[order] if hasattr(column, "shape") else [column[i] for i in order]
            for column in columns
        )


def _key_names(keys: tuple[str, ...]) -> list[str | None]:
    """Return the keys that users gave; None for the others, which cannot be compared."""
    return [None if isinstance(key, GeneratedKey) else key for key in keys]


def _as_index(rows: np.ndarray) -> Any:
    """Return evenly spaced rows as a slice, which costs readers nothing; others as a list."""
    step = int(rows[1] - rows[0]) if len(rows) > 1 else 1
    if step and bool((np.diff(rows) == step).all()):
        return rows_as_index(range(int(rows[0]), int(rows[-1]) + step, step))
    return rows_as_index(rows)


def _below(parts: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Put columns one below another: an array if all parts are arrays of like rows, else a list."""
    if len(parts) == 1:
        return parts[0]
    return tuple(_joined(pieces) for pieces in zip(*parts, strict=True))


def _joined(pieces: tuple[Any, ...]) -> Any:
    arrays = all(isinstance(piece, np.ndarray) for piece in pieces)
    if arrays or all(is_tensor(piece) for piece in pieces):
        first = pieces[0]
        if all(p.dtype == first.dtype and p.shape[1:] == first.shape[1:] for p in pieces):
            return backend_of(first).concatenate(pieces, 0)
    return [item for piece in pieces for item in piece]


class Join(TableColumns):
    """The columns of several tables with the same number of rows; the first converts."""

    def __init__(self, *datasets: Any) -> None:
        keys: list[str] = []
        for i, dataset in enumerate(datasets):
            if len(dataset) != len(datasets[0]):
                raise ValueError(
                    f"table {i} has {len(dataset)} rows, but table 0 has {len(datasets[0])}"
                )
            for key in dataset.keys:
                if key in keys:
                    raise ValueError(f"table {i} has the key {key!r}, as a table before it")
                keys.append(key)
        super().__init__(datasets[0])
        self._datasets = datasets
        self._keys = tuple(keys)
        self._positions = [
            (member, i) for member, dataset in enumerate(datasets) for i in range(len(dataset.keys))
        ]

    @property
    def keys(self) -> tuple[str, ...]:
        return self._keys

    @property
    def mode(self) -> Any:
        """The mode of the first table that has one, else tuple."""
        return next((d.mode for d in self._datasets if d.mode is not None), tuple)

    def get_examples(self, indices: Any, key_indices: Any) -> tuple[Any, ...]:
        """Return columns of some rows; only tables with one of the columns are read, once each."""
        if key_indices is None:
            return tuple(
                column
                for dataset in self._datasets
                for column in dataset.get_examples(indices, None)
            )
        places = [self._positions[i] for i in key_indices]
        result: list[Any] = [None] * len(places)
        for member in sorted({member for member, _ in places}):
            slots = [slot for slot, position in enumerate(places) if position[0] == member]
            own = tuple(places[slot][1] for slot in slots)
            columns = self._datasets[member].get_examples(indices, own)
            for slot, column in zip(slots, columns, strict=True):
                result[slot] = column
        return tuple(result)
