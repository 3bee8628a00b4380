"""Datasets side by side, as tuples or dicts of examples, and one after the other.

They hold references to their members and copy nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from ..core.indexing import examples_at
from .mixin import DatasetMixin

__all__ = ["ConcatenatedDataset", "DictDataset", "TupleDataset"]


class TupleDataset:
    """Datasets of equal length; an example is the tuple of theirs.

    Parameters
    ----------
    *datasets : sequence or array
        Anything with a length and integer indices.

    Raises
    ------
    ValueError
        If there is none, or the lengths differ.

    Notes
    -----
    A slice gives a list of tuples.  Every other index is passed on to the members, so that a list
    of integers gives a tuple of arrays where the members are arrays, and errors are theirs.

    Examples
    --------
    >>> data = TupleDataset(np.arange(4) * 10, ["a", "b", "c", "d"])
    >>> len(data), data[1] == (10, "b"), len(data[1:3])
    (4, True, 2)
    """

    def __init__(self, *datasets: Any) -> None:
        if not datasets:
            raise ValueError("a TupleDataset needs at least one dataset")
        self._length = len(datasets[0])
        for i, dataset in enumerate(datasets):
            if len(dataset) != self._length:
                raise ValueError(
                    f"dataset {i} has {len(dataset)} examples, but dataset 0 has {self._length}"
                )
        self._datasets = datasets

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: Any) -> Any:
        parts = [dataset[index] for dataset in self._datasets]
        if isinstance(index, slice):
            return list(zip(*parts, strict=True))
        return tuple(parts)

    def __getitems__(self, indices: Sequence[int] | np.ndarray) -> list[tuple[Any, ...]]:
        """Return several examples, as a list of tuples."""
        return list(zip(*(examples_at(part, indices) for part in self._datasets), strict=True))


class DictDataset:
    """Datasets of equal length by name; an example is the dict of theirs.

    Parameters
    ----------
    **datasets : sequence or array
        Anything with a length and integer indices.

    Raises
    ------
    ValueError
        If there is none, or the lengths differ.

    Notes
    -----
    A slice gives a list of dicts; every other index is passed on to the members.

    Examples
    --------
    >>> data = DictDataset(x=[1, 2, 3], y="abc")
    >>> data[-1], data[:1]
    ({'x': 3, 'y': 'c'}, [{'x': 1, 'y': 'a'}])
    """

    def __init__(self, **datasets: Any) -> None:
        if not datasets:
            raise ValueError("a DictDataset needs at least one dataset")
        first, dataset = next(iter(datasets.items()))
        self._length = len(dataset)
        for key, dataset in datasets.items():
            if len(dataset) != self._length:
                raise ValueError(
                    f"dataset {key!r} has {len(dataset)} examples, but dataset {first!r} has "
                    f"{self._length}"
                )
        self._datasets = datasets

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: Any) -> Any:
        parts = {key: dataset[index] for key, dataset in self._datasets.items()}
        return self._rows(parts.values()) if isinstance(index, slice) else parts

    def __getitems__(self, indices: Sequence[int] | np.ndarray) -> list[dict[str, Any]]:
        """Return several examples, as a list of dicts."""
        return self._rows(examples_at(part, indices) for part in self._datasets.values())

    def _rows(self, columns: Any) -> list[dict[str, Any]]:
        keys = self._datasets
        return [dict(zip(keys, row, strict=True)) for row in zip(*columns, strict=True)]


class ConcatenatedDataset(DatasetMixin):
    """The examples of several datasets, one dataset behind the other.

    Parameters
    ----------
    *datasets : sequence
        They may be empty, and there may be none.

    Notes
    -----
    Indices below 0 are out of range (rule of Chainer); slices may have negative bounds.

    Examples
    --------
    >>> data = ConcatenatedDataset([0, 1, 2], [], [3, 4])
    >>> len(data), data[3], data[-2:]
    (5, 3, [3, 4])
    """

    def __init__(self, *datasets: Any) -> None:
        self._datasets = datasets
        self._ends = list(accumulate(map(len, datasets)))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def get_example(self, i: Any) -> Any:
        """Return the example of the member that index `i` falls into."""
        member, position = self._locate(i)
        return self._datasets[member][position]

    def _locate(self, i: Any) -> tuple[int, int]:
        if not 0 <= i < len(self):
            raise IndexError(f"index {i} is out of range for {len(self)} examples")
        member = bisect_right(self._ends, i)
        return member, int(i) - (self._ends[member - 1] if member else 0)

    def __getitems__(self, indices: Sequence[int] | np.ndarray) -> list[Any]:
        """Return several examples; every member is read once."""
        asked: dict[int, tuple[list[int], list[int]]] = {}
        for slot, i in enumerate(indices):
            member, position = self._locate(i)
            slots, positions = asked.setdefault(member, ([], []))
            slots.append(slot)
            positions.append(position)
        result: list[Any] = [None] * len(indices)
        for member, (slots, positions) in asked.items():
            found = examples_at(self._datasets[member], positions)
            for slot, example in zip(slots, found, strict=True):
                result[slot] = example
        return result
