"""Batches within a budget of patches or tiles, whose number differs from image to image.

The one order of all parts is cut into batches, each as full as the next image allows, and the parts
take turns.  Where a batch ends follows from (epoch, positions done), so that any number of parts
can go on where others stopped.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from .cutting import Tail
from .epochs import check_of
from .parts import DealtOrder
from .plans import BatchPlan


@dataclass(frozen=True, eq=False, kw_only=True)
class CostPlan(BatchPlan):
    """An epoch cut into batches whose images cost no more than a budget.

    All parts have as many batches.  A part for which none is left at the last step repeats one, all
    of it padding, or with ``tail="drop"`` that step is left out.

    Parameters
    ----------
    order : DealtOrder
        What is cut.
    batch_size : int
        The most images that a batch has.
    tail : {"wrap", "pad", "drop"}
        Whether the last step is left out if some part has nothing to do.
    costs : numpy.ndarray of int64
        Of every record, at least 1.
    most : int
        The budget; an image that costs more is a batch by itself.

    Examples
    --------
    >>> from iterators.core.order import PlainOrder
    >>> plan = CostPlan(order=DealtOrder(PlainOrder(4)), batch_size=9, tail="wrap",
    ...                 costs=np.array([3, 4, 5, 1]), most=7)
    >>> len(plan), plan.rows(epoch=0, number=0), plan.rows(epoch=0, number=1)
    (2, (array([0, 1]), 0), (array([2, 3]), 0))
    """

    fills: ClassVar[bool] = True
    one_row: ClassVar[bool] = False
    shaped: ClassVar[bool] = True
    order: DealtOrder
    costs: np.ndarray
    most: int
    #: Where the batches of the epochs that were asked for last begin, and the end.
    _starts_by_epoch: dict[int, np.ndarray] = field(init=False, repr=False, default_factory=dict)

    @property
    def empty(self) -> bool:
        """True if no epoch ever has a batch."""
        return not self.any_left()

    def count(self, epoch: int = 0) -> int:
        """Return the number of images of this part in an epoch, padding left out."""
        starts = self._starts(epoch)
        whole = len(starts) - 1
        taken = whole - whole % self._parts if self.tail == "drop" else whole
        return int(np.diff(starts)[self.order.part_index : taken : self._parts].sum())

    def batches(self, done: int = 0, epoch: int = 0) -> int:
        """Return the number of batches left behind the first `done` positions of an epoch."""
        starts = self._starts(epoch)
        left = len(starts) - 1 - _batch_at(starts, done)
        return left // self._parts if self.tail == "drop" else -(-left // self._parts)

    def any_left(self, done: int = 0, epoch: int = 0) -> bool:
        """Return whether a batch is left behind the first `done` positions of an epoch."""
        return self.batches(done, epoch) > 0

    def is_over(self, done: int, epoch: int = 0) -> bool:
        """Return whether no part has a batch left: all have as many."""
        return not self.any_left(done, epoch)

    def behind(self, epoch: int, done: int) -> int:
        """Return the `done` behind the batches that begin there."""
        starts = self._starts(epoch)
        return int(starts[min(_batch_at(starts, done) + self._parts, len(starts) - 1)])

    def over(self, order: Any, tail: Tail, chosen: np.ndarray | None = None) -> CostPlan:
        """Return a plan for another `DealtOrder`; see `BatchPlan.over`."""
        costs = self.costs if chosen is None else self.costs[chosen]
        return replace(self, order=order, tail=tail, costs=costs)

    def rows(self, epoch: int, number: int, done: int = 0) -> tuple[np.ndarray, int]:
        """Return record numbers of one batch and how many of its positions are padding."""
        positions, pad = self._positions(epoch, number, done)
        return self.order.whole.at(epoch, positions), pad

    def draws(self, number: int, done: int = 0, epoch: int = 0) -> np.ndarray:
        """Return numbers that tell the occurrences of a record apart; see `BatchPlan.draws`."""
        positions, _ = self._positions(epoch, number, done)
        return positions if self.order.whole.repeats else np.zeros(len(positions), np.int64)

    def slots(self, epoch: int, number: int, done: int) -> int:
        """Return the number of slots of a batch: of its images."""
        return len(self._positions(epoch, number, done)[0])

    def record(self, epoch: int, position: int, done: int = 0) -> int:
        """Return another record for the batch that begins at `done`, by its position.

        Every one is cheap enough for the place of any image of the batch.
        """
        records = self._cheap(epoch, done)
        return int(records[position % len(records)])

    def others(self, epoch: int, done: int) -> int:
        """Return how many records may take the place of one in a batch."""
        return len(self._cheap(epoch, done))

    def described(self) -> str:
        """Describe what must stay the same for a saved position to stay valid."""
        return f"cost {self.most} of a batch, {self.batch_size} images; {check_of(self.costs)}"

    @property
    def _parts(self) -> int:
        return self.order.num_parts

    def _positions(self, epoch: int, number: int, done: int) -> tuple[np.ndarray, int]:
        """Return the positions of a batch of this part, and how many of them are padding."""
        starts = self._starts(epoch)
        batch = _batch_at(starts, self._done(epoch, number, done)) + self.order.part_index
        own, batch = batch < len(starts) - 1, batch % (len(starts) - 1)
        positions = np.arange(starts[batch], starts[batch + 1])
        return positions, 0 if own else len(positions)

    def _starts(self, epoch: int) -> np.ndarray:
        starts = self._starts_by_epoch.get(epoch)
        if starts is None:
            for old in list(self._starts_by_epoch)[:-2]:  # other threads may change it
                self._starts_by_epoch.pop(old, None)
            size = self.order.whole.size
            starts = self._starts_by_epoch[epoch] = np.fromiter(self._cuts(epoch, size), np.int64)
        return starts

    def _cuts(self, epoch: int, size: int) -> Iterator[int]:
        """Yield where batches begin, and the end."""
        costs = self.costs[self.order.whole.at(epoch, np.arange(size))]
        sums = np.concatenate([[0], np.cumsum(costs, dtype=np.int64)])
        ends = np.searchsorted(sums, sums[:-1] + self.most, side="right") - 1
        begins = np.arange(size)
        ends = np.clip(ends, begins + 1, begins + self.batch_size)
        at = 0
        while at < size:
            yield at
            at = int(ends[at])
        yield size

    def _cheap(self, epoch: int, done: int) -> np.ndarray:
        """Find the records that may take the place of any image of a batch, those behind first."""
        positions, _ = self._positions(epoch, 0, done)
        size = self.order.whole.size
        costs = self.costs[self.order.whole.at(epoch, positions)]
        room = max(self.most - int(costs.sum()), 0) + int(costs.min())
        numbers = self.order.whole.at(epoch, (positions[-1] + 1 + np.arange(size)) % size)
        return numbers[self.costs[numbers] <= room]


def _batch_at(starts: np.ndarray, done: int) -> int:
    """Return the number of the batch that begins at a position; behind the end that of all."""
    return min(int(np.searchsorted(starts, done, side="right")), len(starts)) - 1
