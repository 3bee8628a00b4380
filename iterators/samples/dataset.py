"""`Dataset`: samples along the first axis, and `Minibatches` of its rows.

The methods of samples are here as functions too, for readers who dislike names with underscores.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..core.backend import is_tensor
from ..core.collate import HasParts
from ..core.order.cutting import count_batches
from .fields import on_axis, remaining, selects
from .region import Endless, is_index_list, select_rows
from .sample import NOTHING, Later, Sample, data_of, equal


class Dataset(Sample):
    """Samples along the first axis: a `Sample` whose fields are parts of every row.

    Parameters
    ----------
    data, fields, meta, readonly, primary, fields_meta
        As for `Sample`; selectors apply to the second axis, to every row.  Without `fields`, data
        that name the parts of their rows, such as an `ImageRecordDataset`, have these parts as
        fields, with the facts about each.

    Notes
    -----
    ``d[i]`` is a `Sample`; ``d[i:j]``, ``d[[3, 1]]`` and ``d[mask]`` are data sets of those rows,
    repeats allowed, and ``d[numpy.random.permutation(len(d))]`` is the shuffled one.  Row numbers
    and fields commute: ``d[i].name == d.name[i]``.

    Examples
    --------
    >>> d = Dataset(
    ...     np.array([[1, 2, 3, 9], [4, 5, 6, 8], [7, 8, 9, 7]]),
    ...     fields={"input": slice(0, 3), "target": 3},
    ... )
    >>> d[1].input(), d.target(), d.input._width()
    (array([4, 5, 6]), array([9, 8, 7]), 3)
    >>> d[[2, 0]].target(), d.input[:, 1]()
    (array([7, 9]), array([2, 5, 8]))
    >>> for batch in d._minibatches(2):
    ...     print(len(batch), batch.target())
    2 [9 8]
    1 [7]
    """

    __slots__ = ()
    _field_axis = 1

    def __init__(
        self,
        data: Any = None,
        fields: Mapping[str, Any] | None = None,
        meta: Mapping[str, Any] | None = None,
        readonly: bool = False,
        primary: str | None = None,
        *,
        fields_meta: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        if fields is None and isinstance(data, HasParts):
            parts = data.example_parts()
            fields = {name: place for name, (place, _) in parts.items()}
            own_facts = {name: facts for name, (_, facts) in parts.items()}
            fields_meta = {**own_facts, **(fields_meta or NOTHING)}
        super().__init__(data, fields, meta, readonly, primary, fields_meta=fields_meta)

    def __getitem__(self, index: Any) -> Any:
        if self._primary is not None:
            return self._chief[index]
        if self._region is None:
            return self._parts_at(index)
        region = self._region.select(index, rowwise=True)
        axes = self._axes()
        rows, columns = on_axis(index, 0, axes), on_axis(index, 1, axes)
        single = hasattr(rows, "__index__") and np.ndim(rows) == 0
        kind = Sample if single else Dataset
        if isinstance(index, tuple) and not (isinstance(columns, slice) and columns == slice(None)):
            fields = remaining(self._entries, columns, self._region.axis_length(1))
            kept = {name: meta for name, meta in self._fields_meta.items() if name in fields}
            return self._view(kind, region, fields, NOTHING, kept)
        # Fields with storage of their own are indexed when they are asked for: they may be shorter.
        later: dict[str, Any] = {
            name: field if selects(field) else Later(self, name, rows)
            for name, field in self._entries.items()
        }
        meta = NOTHING if isinstance(index, tuple) and len(index) > 2 else self._own_meta
        return self._view(kind, region, later, meta, self._fields_meta)

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        """Return the data of several rows, as torch's ``DataLoader`` asks for them."""
        return _apart(self[[int(index) for index in indices]](), len(indices))

    def _minibatches(self, batch_size: int, drop_last: bool = False) -> Any:
        """Return the rows as minibatches: a data set whose elements are `batch_size` rows each.

        Parameters
        ----------
        batch_size : int
            Rows of a minibatch, at least 1.
        drop_last : bool
            Leave out the last one if it has fewer rows.

        Returns
        -------
        Minibatches
            ``mb[j]`` is a view of ``d[j * batch_size:(j + 1) * batch_size]``; ``mb.name`` are
            minibatches of that field.

        Examples
        --------
        >>> mb = Dataset(np.arange(6).reshape(3, 2))._minibatches(2)
        >>> len(mb), mb[1]()
        (2, array([[4, 5]]))
        """
        return Minibatches(self, batch_size, drop_last)


class Minibatches(Dataset):
    """Minibatches of a data set; `Dataset._minibatches` makes it.

    ``mb()`` is a stacked array when all batches are full, otherwise a list of arrays.  `_shape` is
    that of full batches even if the last one is short; `_size` is the number of elements there are.

    Examples
    --------
    >>> d = Dataset(np.arange(12).reshape(6, 2), fields={"x": 0})
    >>> mb = d._minibatches(3)
    >>> mb._shape(), mb.x(), mb[1][2]()
    ((2, 3, 2), array([[ 0,  2,  4],
           [ 6,  8, 10]]), array([10, 11]))
    """

    __slots__ = ("_batch_size", "_batches", "_index", "_source")

    def __init__(self, source: Dataset, batch_size: int, drop_last: bool = False) -> None:
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, not {batch_size}")
        length = source._length()
        if length == math.inf:
            batches: Any = Endless()
        else:
            batches = range(count_batches(int(length), batch_size, "drop" if drop_last else "pad"))
        self._become(source, int(batch_size), batches, ())

    def _become(
        self, source: Dataset, batch_size: int, batches: Any, index: tuple[Any, ...]
    ) -> None:
        """Apply `index` to every batch from now on."""
        self._source = source
        self._batch_size = batch_size
        self._batches = batches
        self._index = index
        self._set(None, source._entries, source._own_meta, source._is_readonly, None,
                  source._fields_meta)  # fmt: skip

    def _like(self, source: Dataset, batches: Any, index: tuple[Any, ...]) -> Minibatches:
        view = Minibatches.__new__(Minibatches)
        view._become(source, self._batch_size, batches, index)
        return view

    def _batch(self, number: int) -> Any:
        start = number * self._batch_size
        batch = self._source[start : start + self._batch_size]
        return batch[self._index] if self._index else batch

    def __getitem__(self, index: Any) -> Any:
        rest: tuple[Any, ...] = ()
        if isinstance(index, tuple):
            index, *inner = index
            rest = tuple(inner)
        chosen = select_rows(self._batches, slice(None) if index is Ellipsis else index)
        if isinstance(index, slice) or index is Ellipsis or is_index_list(index):
            if rest and self._index:
                raise IndexError("minibatches can be indexed inside once: call them first")
            return self._like(self._source, chosen, rest or self._index)
        batch = self._batch(chosen)
        return batch[rest if len(rest) > 1 else rest[0]] if rest else batch

    def _length(self) -> float:
        return math.inf if isinstance(self._batches, Endless) else len(self._batches)

    def __iter__(self) -> Iterator[Any]:
        number = 0
        while number < self._length():
            yield self[number]
            number += 1

    def __call__(self) -> Any:
        """Return all batches: a stacked array, or a list where they differ in length."""
        if isinstance(self._batches, Endless):
            raise TypeError("data without an end cannot be read as a whole: choose minibatches")
        parts = [self._batch(int(number))() for number in self._batches]
        if not parts or len({np.shape(part) for part in parts}) > 1:
            return parts
        if is_tensor(parts[0]):
            import torch

            return torch.stack(parts)
        return np.stack(parts) if isinstance(parts[0], np.ndarray) else parts

    def _field(self, name: str) -> Any:
        self._entry(name)
        if self._index:
            raise AttributeError(f"field {name!r}: what is left of the batches has no fields")
        return self._like(self._source._field(name), self._batches, ())

    def _shape(self) -> tuple[int, ...]:
        """Return the length of every axis; a shorter last minibatch does not count."""
        if isinstance(self._batches, Endless):
            raise TypeError("data without an end have no shape")
        if not len(self._batches):
            return (0,)
        whole = next((n for n in self._batches if n != self._short), self._short)
        return (len(self._batches), *self._batch(int(whole))._shape())

    def _size(self) -> int:
        """Return the number of values in all minibatches, of which the last may be shorter."""
        self._shape()
        short = [n == self._short for n in self._batches]
        kinds = {bool(is_short): int(n) for is_short, n in zip(short, self._batches, strict=True)}
        return sum(short.count(kind) * self._batch(n)._size() for kind, n in kinds.items())

    @property
    def _short(self) -> int:
        """Number of the minibatch that is short, if there is one."""
        return int(self._source._length()) // self._batch_size

    def _write(self, value: Any) -> None:
        self._check_writable()
        value = data_of(value)
        if np.ndim(value) and len(value) != len(self) and len(value) != 1:
            raise ValueError(f"{len(value)} values do not fit {len(self)} minibatches")
        for position, batch in enumerate(self):
            batch._write(value[position % len(value)] if np.ndim(value) else value)

    def _update(self, operation: Any, value: Any) -> Any:
        for batch in self:
            batch._update(operation, value)
        return self

    def _set_field(self, name: str, sample: Any) -> None:
        raise TypeError("give the data set another field, before it is cut into minibatches")

    def _sees_the_same(self, other: Any) -> bool:
        return self is other or (
            isinstance(other, Minibatches)
            and self._source._sees_the_same(other._source)
            and self._batch_size == other._batch_size
            and np.array_equal(np.asarray(self._batches), np.asarray(other._batches))
            and equal(list(self._index), list(other._index))
        )

    def _readonly(self, flag: bool = True) -> Any:
        return self._like(self._source._readonly(flag), self._batches, self._index)

    def _described(self, meta: Mapping[str, Any]) -> Any:
        return self._like(self._source._described(meta), self._batches, self._index)

    def _copy(self) -> Any:
        return self._like(self._source._copy(), self._batches, self._index)

    @property
    def _deterministic(self) -> bool:
        return self._source._deterministic


def _apart(data: Any, count: int) -> list[Any]:
    """Return the data of each of so many rows; of fields, a dict for each row."""
    if not isinstance(data, Mapping):
        return list(data)
    columns = [_apart(column, count) for column in data.values()]
    return [dict(zip(data, row, strict=True)) for row in zip(*columns, strict=True)]


def fields(sample: Sample) -> dict[str, Sample]:
    """Return the fields of a sample by name.

    Examples
    --------
    >>> {name: part() for name, part in fields(Sample([1, 2], {"a": 0, "b": 1})).items()}
    {'a': 1, 'b': 2}
    """
    return dict(sample._iter_fields())


def fields_meta(sample: Sample) -> dict[str, Mapping[str, Any]]:
    """Return what is known of the fields of a sample, by name; nothing is read.

    Examples
    --------
    >>> d = Dataset({"x": [1, 2]}, fields_meta={"x": {"unit": "metre"}})
    >>> {name: dict(facts) for name, facts in fields_meta(d).items()}
    {'x': {'unit': 'metre'}}
    """
    return {name: field._meta for name, field in sample._iter_fields()}


def shape(sample: Sample) -> tuple[int, ...]:
    """Return the lengths of the axes of a sample's data.

    Examples
    --------
    >>> shape(Sample([[1, 2, 3], [4, 5, 6]]))
    (2, 3)
    """
    return sample._shape()


def minibatches(dataset: Dataset, batch_size: int, drop_last: bool = False) -> Any:
    """Return the rows of a data set, `batch_size` at a time.

    Examples
    --------
    >>> [batch() for batch in minibatches(Dataset([5, 6, 7]), 2)]
    [[5, 6], [7]]
    """
    return dataset._minibatches(batch_size, drop_last)
