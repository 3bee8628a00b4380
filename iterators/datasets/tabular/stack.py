"""Tables one below another and side by side.

They refer to their members and read only those with a part of the request.
"""

from __future__ import annotations

from collections.abc import Container
from itertools import accumulate, count, pairwise
from typing import Any

import numpy as np

from ...core.backend import backend_of, is_tensor
from ...core.indexing import resolve_rows, rows_as_index
from .columns import TableColumns

__all__ = ["Concatenation", "GeneratedKey", "Join"]


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
        wanted = _given(datasets[0].keys)
        for i, dataset in enumerate(datasets):
            if _given(dataset.keys) != wanted:
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


def _given(keys: tuple[str, ...]) -> list[str | None]:
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
        """Names of the columns."""
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
        wanted = [self._positions[i] for i in key_indices]
        result: list[Any] = [None] * len(wanted)
        for member in sorted({member for member, _ in wanted}):
            slots = [slot for slot, position in enumerate(wanted) if position[0] == member]
            own = tuple(wanted[slot][1] for slot in slots)
            columns = self._datasets[member].get_examples(indices, own)
            for slot, column in zip(slots, columns, strict=True):
                result[slot] = column
        return tuple(result)
