"""Tables whose columns are computed from those of another table, when they are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .columns import TableColumns

__all__ = ["Transform", "TransformBatch"]

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
        """Names of the columns."""
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
        found = next((kind for kind in (tuple, dict) if isinstance(result, kind)), None)
        if self._mode is UNKNOWN:
            self._mode = found
        elif self._mode is not found:
            raise ValueError(
                f"the transform returned {_name(found)}, after it had returned {_name(self._mode)}"
            )
        if found is dict:
            if missing := [key for key in self._keys if key not in result]:
                raise ValueError(f"the transform returned no {', '.join(map(repr, missing))}")
            return tuple(result[key] for key in self._keys)
        values = result if found is tuple else (result,)
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
        """Return columns of some rows."""
        mode = self.dataset.mode
        wanted = range(len(self._keys)) if key_indices is None else key_indices
        columns: tuple[list[Any], ...] = tuple([] for _ in wanted)
        for row in zip(*self.dataset.get_examples(indices, None), strict=True):
            values = self._call(mode, row)
            for column, i in zip(columns, wanted, strict=True):
                column.append(values[i])
        return columns


class TransformBatch(Computed):
    """Columns made from blocks of columns."""

    def get_examples(self, indices: Any, key_indices: Any) -> tuple[Any, ...]:
        """Return columns of some rows."""
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
