"""Which record comes when: orders over records, and the cutting of an epoch into batches.

An order is a pure function from the places of an epoch to record numbers; it stores nothing but a few
integers, whatever the number of records.  The position of a run is kept by whoever draws from it.
Nothing here reads data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from .random import derive_key, permute

__all__ = ["BatchPlan", "Order", "SequentialOrder", "ShuffledOrder"]

ORDER_KEY = 0x6F72646572  # "order": keeps the keys of orders apart from those of augmentation

Tail = Literal["wrap", "pad", "drop"]


class Order(Protocol):
    """What an epoch of one part looks like."""

    def count(self, done: int = 0) -> int:
        """Number of places of this part when the first `done` places of the whole epoch are taken."""

    def take(self, epoch: int, begin: int, end: int, done: int = 0) -> np.ndarray:
        """Record numbers at places ``[begin, end)`` of this part, int64."""


@dataclass(frozen=True)
class SequentialOrder:
    """Records ``[first, last)`` as they lie in the file, the same in every epoch.

    Parameters
    ----------
    first, last : int
        The block of records that belongs to this part.

    Examples
    --------
    >>> SequentialOrder(4, 10).take(epoch=0, begin=1, end=3)
    array([5, 6])
    """

    first: int
    last: int

    def count(self, done: int = 0) -> int:
        """Number of records of the part that come after the first `done` of them."""
        return max(self.last - self.first - done, 0)

    def take(self, epoch: int, begin: int, end: int, done: int = 0) -> np.ndarray:
        """Record numbers at places ``[begin, end)``, counted from `done`."""
        start = self.first + done
        return np.arange(start + begin, start + end, dtype=np.int64)


@dataclass(frozen=True)
class ShuffledOrder:
    """A new permutation of all records in every epoch, dealt out to the parts like cards.

    Part ``k`` of ``n`` has the places ``k, k + n, k + 2n, ...`` of the one global permutation.  Parts
    are therefore disjoint and together the whole epoch; and when every part has delivered ``m``
    samples, the first ``m * n`` places of the permutation are done, so that any other number of parts
    can carry on from there.

    Parameters
    ----------
    size : int
        Number of records in the data set, at least 1.
    seed : int
        Permutations depend on the seed and the epoch only.
    num_parts, part_index : int
        Which part this is.
    even : bool
        Give every part ``ceil(size / num_parts)`` places; the places missing at the end are taken
        from the start of the same epoch.

    Examples
    --------
    >>> parts = [ShuffledOrder(10, seed=1, num_parts=3, part_index=k) for k in range(3)]
    >>> [part.count() for part in parts]
    [4, 3, 3]
    >>> sorted(np.concatenate([p.take(0, 0, p.count()) for p in parts]).tolist())
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    """

    size: int
    seed: int = 0
    num_parts: int = 1
    part_index: int = 0
    even: bool = False

    def count(self, done: int = 0) -> int:
        """Number of places of this part among the places ``[done, size)`` of the epoch."""
        ahead = 0 if self.even else self.part_index
        return max(-((done + ahead - self.size) // self.num_parts), 0)

    def take(self, epoch: int, begin: int, end: int, done: int = 0) -> np.ndarray:
        """Record numbers at places ``[begin, end)`` of this part, counted from `done`."""
        places = np.arange(begin, end, dtype=np.int64) * self.num_parts + (done + self.part_index)
        return permute(derive_key(self.seed, ORDER_KEY, epoch), self.size, places % self.size)


@dataclass(frozen=True)
class BatchPlan:
    """An epoch cut into batches of one size.

    Parameters
    ----------
    order : Order
        What is cut.
    batch_size : int
        Samples in a batch, at least 1.
    tail : {"wrap", "pad", "drop"}
        What becomes of a last, short batch: filled from the start of the same epoch, as often as
        needed; left short, for the caller to pad; or not delivered.

    Examples
    --------
    >>> plan = BatchPlan(SequentialOrder(0, 10), batch_size=4, tail="wrap")
    >>> len(plan), plan.rows(epoch=0, number=2)
    (3, (array([8, 9, 0, 1]), 2))
    """

    order: Order
    batch_size: int
    tail: Tail = "wrap"

    def __len__(self) -> int:
        return self.batches()

    def batches(self, done: int = 0) -> int:
        """Number of batches left when the first `done` places of the epoch are taken."""
        count = self.order.count(done)
        return count // self.batch_size if self.tail == "drop" else -(-count // self.batch_size)

    def rows(self, epoch: int, number: int, done: int = 0) -> tuple[np.ndarray, int]:
        """Record numbers of one batch and how many of its places are padding.

        Parameters
        ----------
        epoch, number : int
            Batch `number` of the epoch, both counted from 0.
        done : int
            Places of the epoch that were taken before batch 0.

        Returns
        -------
        rows : numpy.ndarray of int64
            `batch_size` record numbers; fewer in a last batch with ``tail="pad"``.
        pad : int
            Places of the batch that hold no sample of their own.
        """
        begin = number * self.batch_size
        count = self.order.count(done)
        end = min(begin + self.batch_size, count)
        rows = self.order.take(epoch, begin, end, done)
        pad = begin + self.batch_size - end
        if pad and self.tail == "wrap":
            # The epoch's own start, which lies before `done` when the run was resumed.
            whole = self.order.take(epoch, 0, min(pad, self.order.count()))
            rows = np.concatenate([rows, np.resize(whole, pad)])
        return rows, pad
