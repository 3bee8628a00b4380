"""Data that can only be read from the beginning: no index, no length, no writing."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar

from .dataset import Dataset
from .fields import Selector, check_name, is_selector
from .sample import NOTHING, Sample
from .sequence_region import Rows, region_of, stacked


class StreamDataset:
    """Rows from an iterable, lazily; every loop begins again.

    Parameters
    ----------
    iterable_factory : callable
        Called without arguments for every loop; returns an iterable of rows.
    fields : mapping of str to object, optional
        Parts of every row: ints, slices, lists of ints, tuples that begin with one of them.
    meta : mapping, optional
        Facts about a row.

    Notes
    -----
    Several rows together - minibatches, `_take`, `_materialize` - are one array, and so are their
    fields, wherever they are arrays of one shape, numbers or lists of numbers.  Rows such as
    ``(image, label)`` stay a list, and each of their fields is an array.

    Examples
    --------
    >>> stream = StreamDataset(lambda: iter([[1, 2, 9], [3, 4, 8], [5, 6, 7]]),
    ...                        fields={"input": slice(0, 2), "target": 2})
    >>> [row.target() for row in stream], [row() for row in stream.input]
    ([9, 8, 7], [[1, 2], [3, 4], [5, 6]])
    >>> [batch.target() for batch in stream._minibatches(2)]
    [array([9, 8]), array([7])]
    >>> [batch() for batch in stream.target._minibatches(2)]
    [array([9, 8]), array([7])]
    >>> stream._take(2)[1].input()
    array([3, 4])
    """

    __slots__ = ("_entries", "_factory", "_own_meta", "_step")
    _entries: dict[str, Selector]
    _factory: Callable[[], Iterable[Any]]
    _own_meta: dict[str, Any]
    _step: tuple | None
    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    def __init__(
        self,
        iterable_factory: Callable[[], Iterable[Any]],
        fields: Mapping[str, Any] | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        if not callable(iterable_factory):
            raise TypeError("a stream needs a function that returns a new iterable for every loop")
        entries: dict[str, Selector] = {}
        for name, index in dict(fields or {}).items():
            if not is_selector(index):
                raise TypeError(
                    f"field {name!r}: a field of a stream selects from its rows by an int, a "
                    f"slice, a list of ints or a tuple, not by a {type(index).__name__}"
                )
            entries[check_name(name, entries)] = Selector(index)
        object.__setattr__(self, "_factory", iterable_factory)
        object.__setattr__(self, "_entries", entries)
        object.__setattr__(self, "_own_meta", dict(meta or NOTHING))
        object.__setattr__(self, "_step", None)

    def __iter__(self) -> Iterator[Sample]:
        indices = {name: field.index for name, field in self._entries.items()}
        for row in self._rows():
            yield Sample(row, indices, self._own_meta)

    def __getattr__(self, name: str) -> StreamDataset:
        if name.startswith("_"):
            raise AttributeError(f"StreamDataset has no method {name}")
        if name not in self._entries:
            names = ", ".join(self._entries) or "none"
            raise AttributeError(f"no field {name!r}; the fields are: {names}")
        field = StreamDataset(self._rows)
        object.__setattr__(field, "_step", self._entries[name].index)
        return field

    def __setattr__(self, name: str, value: Any) -> None:
        raise TypeError("a stream cannot be written; write to the result of `_materialize()`")

    def __getitem__(self, index: Any) -> Any:
        raise TypeError("a stream cannot be indexed; index the result of `_materialize()`")

    def __len__(self) -> int:
        raise TypeError("the length of a stream is not known before its end")

    def __bool__(self) -> bool:
        return True

    def __call__(self) -> Any:
        """Refused: a TypeError."""
        raise TypeError("a stream cannot be read as a whole; `_materialize()()` does")

    def __repr__(self) -> str:
        named = f", fields {', '.join(self._entries)}" if self._entries else ""
        return f"<StreamDataset{named}>"

    @property
    def _fields(self) -> tuple[str, ...]:
        """Names of the fields."""
        return tuple(self._entries)

    @property
    def _meta(self) -> Mapping[str, Any]:
        """Facts about a row."""
        return dict(self._own_meta)

    def _iter_fields(self) -> Iterator[tuple[str, StreamDataset]]:
        """Yield pairs of name and stream."""
        for name in self._entries:
            yield name, getattr(self, name)

    def _length(self) -> None:
        """Return None: the length of a stream is unknown."""

    def _write(self, value: Any) -> None:
        """Refused: a TypeError."""
        raise TypeError("a stream cannot be written; write to the result of `_materialize()`")

    def _take(self, n: int) -> Dataset:
        """Return the first `n` rows, or all if there are fewer, as a `Dataset`."""
        if n < 0:
            raise ValueError(f"n must not be negative: {n}")
        return self._dataset(list(itertools.islice(self._rows(), n)))

    def _materialize(self) -> Dataset:
        """Return all rows in memory, as a `Dataset` that can be indexed and written."""
        return self._dataset(list(self._rows()))

    def _minibatches(self, batch_size: int, drop_last: bool = False) -> StreamDataset:
        """Return the stream of data sets of `batch_size` rows; the last is shorter or left out."""
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, not {batch_size}")
        return _StreamMinibatches(self, batch_size, drop_last)

    def _rows(self) -> Iterator[Any]:
        for row in self._factory():
            yield row if self._step is None else region_of(row).select(self._step).read()

    def _dataset(self, rows: list[Any]) -> Dataset:
        indices = {name: field.index for name, field in self._entries.items()}
        together = stacked(rows)
        return Dataset(Rows(rows) if together is rows else together, indices, self._own_meta)


class _StreamMinibatches(StreamDataset):
    """Minibatches of a stream; each is a `Dataset`."""

    __slots__ = ("_drop_last", "_size", "_source")
    _drop_last: bool
    _size: int
    _source: StreamDataset

    def __init__(self, source: StreamDataset, size: int, drop_last: bool) -> None:
        super().__init__(source._factory)
        object.__setattr__(self, "_source", source)
        object.__setattr__(self, "_entries", source._entries)
        object.__setattr__(self, "_size", size)
        object.__setattr__(self, "_drop_last", drop_last)

    def __iter__(self) -> Iterator[Any]:
        rows = self._source._rows()
        while batch := list(itertools.islice(rows, self._size)):
            if len(batch) < self._size and self._drop_last:
                return
            yield self._source._dataset(batch)

    def __getattr__(self, name: str) -> StreamDataset:
        return getattr(self._source, name)._minibatches(self._size, self._drop_last)

    def _take(self, n: int) -> Any:
        """Return the first `n` minibatches, as a list."""
        return list(itertools.islice(iter(self), n))

    def _materialize(self) -> Any:
        """Return the minibatches of all rows in memory."""
        return self._source._materialize()._minibatches(self._size, self._drop_last)

    def _minibatches(self, batch_size: int, drop_last: bool = False) -> StreamDataset:
        raise TypeError("these are minibatches already")
