"""Names of `mx.gluon.data.sampler`: orders of indices, and batches of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np

from recordio.keywords.checks import choice, integer

__all__ = [
    "BatchSampler",
    "FilterSampler",
    "IntervalSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
]


class GluonSampler:
    """Base class: indices in an order, and how many there are."""

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__} does not define __iter__")

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} does not define __len__")


class SequentialSampler(GluonSampler):
    """The numbers from `start` on.

    Examples
    --------
    >>> list(SequentialSampler(3, start=2))
    [2, 3, 4]
    """

    def __init__(self, length: int, start: int = 0) -> None:
        self._range = range(start, start + integer("length", length, low=0))

    def __iter__(self) -> Iterator[int]:
        return iter(self._range)

    def __len__(self) -> int:
        return len(self._range)


class GluonRandomSampler(GluonSampler):
    """The numbers below `length` in an order that NumPy's global generator draws, as in MXNet."""

    def __init__(self, length: int) -> None:
        self._length = integer("length", length, low=0)

    def __iter__(self) -> Iterator[int]:
        indices = np.arange(self._length)
        np.random.shuffle(indices)
        return iter(indices.tolist())

    def __len__(self) -> int:
        return self._length


class FilterSampler(GluonSampler):
    """The indices of the samples for which a function is true; it is called for all of them now."""

    def __init__(self, fn: Callable[[Any], Any], dataset: Any) -> None:
        self._indices = [i for i in range(len(dataset)) if fn(dataset[i])]

    def __iter__(self) -> Iterator[int]:
        return iter(self._indices)

    def __len__(self) -> int:
        return len(self._indices)


class IntervalSampler(GluonSampler):
    """Every `interval`-th number; then, with `rollover`, those that were left out.

    Examples
    --------
    >>> list(IntervalSampler(7, 3)), list(IntervalSampler(7, 3, rollover=False))
    ([0, 3, 6, 1, 4, 2, 5], [0, 3, 6])
    """

    def __init__(self, length: int, interval: int, rollover: bool = True) -> None:
        self._length = integer("length", length, low=0)
        self._interval = integer("interval", interval, low=1, high=max(length, 1))
        self._rollover = rollover

    def __iter__(self) -> Iterator[int]:
        for start in range(self._interval if self._rollover else 1):
            yield from range(start, self._length, self._interval)

    def __len__(self) -> int:
        return self._length if self._rollover else -(-self._length // self._interval)


class BatchSampler(GluonSampler):
    """Lists of `batch_size` indices of another sampler.

    Examples
    --------
    >>> keep = BatchSampler(SequentialSampler(5), 2)
    >>> list(keep), len(keep)
    ([[0, 1], [2, 3], [4]], 3)
    >>> rollover = BatchSampler(SequentialSampler(5), 2, "rollover")
    >>> len(rollover), list(rollover), len(rollover), list(rollover)
    (2, [[0, 1], [2, 3]], 3, [[4, 0], [1, 2], [3, 4]])
    """

    def __init__(self, sampler: Any, batch_size: int, last_batch: str = "keep") -> None:
        self._sampler = sampler
        self._size = integer("batch_size", batch_size, low=1)
        self._last = choice("last_batch", last_batch, ("keep", "discard", "rollover"))
        self._left: list[Any] = []

    def __iter__(self) -> Iterator[list[Any]]:
        batch, self._left = self._left, []
        for index in self._sampler:
            batch.append(index)
            if len(batch) == self._size:
                yield batch
                batch = []
        if batch and self._last == "keep":
            yield batch
        elif self._last == "rollover":
            self._left = batch

    def __len__(self) -> int:
        count = len(self._sampler) + len(self._left)
        return -(-count // self._size) if self._last == "keep" else count // self._size


Sampler: TypeAlias = GluonSampler
RandomSampler: TypeAlias = GluonRandomSampler
