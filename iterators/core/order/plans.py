"""Batches of an epoch of a part: of one size, carried over into the next, of many shapes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ..random import derive_key
from .cutting import Tail, bounds, count_batches, runs
from .parts import Order

#: "shape": keeps the key of shapes apart from those of orders and augmentation.
SHAPE_KEY = 0x7368617065


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
    >>> from iterators.core.order import SequentialOrder
    >>> plan = BatchPlan(SequentialOrder(0, 10), batch_size=4, tail="wrap")
    >>> len(plan), plan.rows(epoch=0, number=2)
    (3, (array([8, 9, 0, 1]), 2))
    """

    order: Order
    batch_size: int
    tail: Tail = "wrap"
    #: The least that `done` may be.
    least_done: ClassVar[int] = 0
    #: Batches are filled at many positions of an epoch, which is counted.
    fills: ClassVar[bool] = False
    #: The positions of an epoch are one row of records, of which a batch has neighbours.
    one_row: ClassVar[bool] = True
    #: Batches have a shape each.
    shaped: ClassVar[bool] = False

    def __len__(self) -> int:
        return self.batches()

    @property
    def empty(self) -> bool:
        """True if no epoch ever has a batch."""
        return not self.batches()

    def rolled_over(self, done: int = 0) -> int:
        """Return the `done` of the epoch after one that began with `done` and was completed."""
        return 0

    def count(self, epoch: int = 0) -> int:
        """Return the number of samples of this part in an epoch."""
        return self.order.count()

    def batches(self, done: int = 0, epoch: int = 0) -> int:
        """Return the number of batches left behind the first `done` positions of the epoch."""
        return self._batches(self.order.count(done))

    def any_left(self, done: int = 0, epoch: int = 0) -> bool:
        """Return whether a batch is left behind the first `done` positions of an epoch."""
        return self.batches(done, epoch) > 0

    def behind(self, epoch: int, done: int) -> int:
        """Return the `done` behind the batch that begins there: positions that all parts take."""
        return done + self._positions_taken

    @cached_property
    def _positions_taken(self) -> int:
        return self.batch_size * self.order.stride

    def over(self, order: Any, tail: Tail, chosen: np.ndarray | None = None) -> BatchPlan:
        """Return a plan that cuts an order of the same records, or of those `chosen`, as this does.

        A last batch has as many slots as the part with most images of it.
        """
        return replace(self, order=order, tail=tail)

    def sizes(self, epoch: int, number: int, done: int, rows: np.ndarray) -> Any:
        """Return height and width of the images of a batch, or of each of its slots.

        Returns
        -------
        None, (int, int) or numpy.ndarray of int32 (slots, 2)
            None where all batches have the shape of the provider.  An array has as many rows as
            the batch has slots; a batch with one size has `slots`.
        """
        return None

    def slots(self, epoch: int, number: int, done: int) -> int:
        """Return the number of slots of a batch: at least its records, at most `batch_size`."""
        return self.batch_size

    def length(self, epoch: int, number: int, done: int) -> int:
        """Return the number of patches of a slot; 0 where images are not cut into patches."""
        return 0

    def is_over(self, done: int, epoch: int = 0) -> bool:
        """Return whether no part has a batch left behind `done` positions of the epoch."""
        return self._batches(self.order.most(done)) == 0

    def _done(self, epoch: int, number: int, done: int) -> int:
        """Go to batch `number` behind some positions."""
        for _ in range(number):
            done = self.behind(epoch, done)
        return done

    def _batches(self, count: int) -> int:
        return count_batches(count, self.batch_size, self.tail)

    def record(self, epoch: int, position: int, done: int = 0) -> int:
        """Return the record number at a position after `done`; behind the end from the start.

        An epoch that was resumed at `done` has the same records behind its end as one that was not.
        """
        behind = position - self.order.count(done)
        if behind >= 0:
            position, done = behind % self.order.count(), 0
        (number,) = self.order.take(epoch, position, position + 1, done)
        return int(number)

    def rows(self, epoch: int, number: int, done: int = 0) -> tuple[np.ndarray, int]:
        """Return record numbers of one batch and how many of its positions are padding.

        Parameters
        ----------
        epoch, number : int
            Batch `number` of the epoch, both counted from 0.
        done : int
            Positions of the epoch that were taken before batch 0.

        Returns
        -------
        rows : numpy.ndarray of int64
            `batch_size` record numbers; fewer in a last batch with ``tail="pad"``.
        pad : int
            Positions of the batch that hold no sample of their own.
        """
        pieces, pad = self._pieces(number, done)
        rows = [self.order.take(epoch + ago, *positions) for ago, *positions in pieces]
        return rows[0] if len(rows) == 1 else np.concatenate(rows), pad

    def draws(self, number: int, done: int = 0, epoch: int = 0) -> np.ndarray:
        """Return numbers that tell the occurrences of a record apart, for every row of a batch.

        The random numbers of a sample depend on its record, its epoch and this number: 0 for orders
        without repetitions.  Padding is drawn as in its own position of the epoch; what was rolled
        over from an epoch before is drawn again.

        Returns
        -------
        numpy.ndarray of int64
            As many as `rows` has records.
        """
        pieces, _ = self._pieces(number, done)
        if len(pieces) == 1 and not pieces[0][0]:
            return self.order.draws(*pieces[0][1:])
        # Behind the numbers of all positions of this epoch.
        return np.concatenate(
            [self.order.draws(*positions) - ago * self.order.count() for ago, *positions in pieces]
        )

    def others(self, epoch: int, done: int) -> int:
        """Return how many records may take the place of one in a batch."""
        return self.order.count()

    def counts(self, epoch: int) -> dict[str, float]:
        """Return counters of an epoch."""
        return {}

    def state(self) -> dict[str, int]:
        """Return what belongs to a saved position besides it: whole numbers."""
        return {}

    def resumed(self, state: Mapping[str, Any]) -> BatchPlan:
        """Return the plan that goes on where a saved state says."""
        return self

    def _pieces(self, number: int, done: int) -> tuple[list[tuple[int, int, int, int]], int]:
        """Return runs of positions of a batch, as (epochs ago, begin, end, done), and its pad."""
        begin, end = bounds(number, self.batch_size, self.order.count(done))
        pieces = [(0, begin, end, done)]
        pad = begin + self.batch_size - end
        if pad and self.tail == "wrap":
            # The epoch's own start, which lies before `done` when the run was resumed.
            again = runs(0, pad, self.order.count())
            pieces += [(0, start, stop, 0) for _, start, stop in again]
        return pieces, pad


@dataclass(frozen=True)
class RollOverPlan(BatchPlan):
    """Batches that are always full: what is left of an epoch comes first in the next one.

    An epoch that begins with ``done=-c`` has the last ``c`` positions of the epochs before it in
    front (the rule of MXNet's ``NDArrayIter(last_batch_handle="roll_over")``).  For orders with one
    part.

    Parameters
    ----------
    order, batch_size, tail
        As for `BatchPlan`; `tail` has no meaning.
    pads_new : bool
        What the pad of a batch with positions from the epochs before counts: those positions, as
        MXNet's NDArrayIter does, or the other ones, as its ImageIter does.

    Examples
    --------
    >>> from iterators.core.order import SequentialOrder
    >>> plan = RollOverPlan(SequentialOrder(0, 5), batch_size=3)
    >>> len(plan), plan.rolled_over(0)
    (1, -2)
    >>> plan.batches(-2), plan.rows(epoch=1, number=0, done=-2)
    (2, (array([3, 4, 0]), 2))
    """

    pads_new: bool = False

    @property
    def least_done(self) -> int:  # type: ignore[override]
        """The least that `done` may be."""
        return 1 - self.batch_size

    @property
    def empty(self) -> bool:
        """True if no epoch ever has a batch."""
        return not self.order.count()

    def batches(self, done: int = 0, epoch: int = 0) -> int:
        """Return the number of batches left behind the first `done` positions of the epoch."""
        return max(self.order.count() - done, 0) // self.batch_size

    def is_over(self, done: int, epoch: int = 0) -> bool:
        """Return whether no batch is left behind the first `done` positions of the epoch."""
        return not self.batches(done)

    def record(self, epoch: int, position: int, done: int = 0) -> int:
        """Return the record number at a position after `done`; behind the end from the start."""
        ago, position = divmod(position + done, self.order.count())
        (number,) = self.order.take(epoch + min(ago, 0), position, position + 1)
        return int(number)

    def rolled_over(self, done: int = 0) -> int:
        """Minus the number of positions that are left for the epoch after this one."""
        return -(max(self.order.count() - done, 0) % self.batch_size)

    def _pieces(self, number: int, done: int) -> tuple[list[tuple[int, int, int, int]], int]:
        """Return runs of positions of this epoch and earlier ones, which the pad counts."""
        begin = number * self.batch_size + done
        spans = runs(begin, begin + self.batch_size, self.order.count())
        pieces = [(ago, start, stop, 0) for ago, start, stop in spans]
        rolled = max(-done, 0) if number == 0 else 0
        return pieces, self.batch_size - rolled if rolled and self.pads_new else rolled


@dataclass(frozen=True)
class DrawnShapePlan(BatchPlan):
    """An epoch cut into batches, for each of which one height and width is drawn.

    The draw depends on `seed`, the epoch and the number of the batch in it, which all parts count
    alike.

    >>> from iterators.core.order import SequentialOrder
    >>> plan = DrawnShapePlan(SequentialOrder(0, 10), 2, shapes=((32, 32), (48, 48)))
    >>> [plan.sizes(0, number, 0, None)[0] for number in range(5)]
    [32, 48, 32, 32, 48]
    """

    shaped: ClassVar[bool] = True
    shapes: tuple[tuple[int, int], ...] = ()
    seed: int = 0

    def sizes(self, epoch: int, number: int, done: int, rows: np.ndarray) -> tuple[int, int]:
        """Return height and width of all images of a batch."""
        step = done // (self.batch_size * self.order.stride) + number
        return self.shapes[derive_key(self.seed, SHAPE_KEY, epoch, step) % len(self.shapes)]


@dataclass(frozen=True, eq=False)
class ImageSizePlan(BatchPlan):
    """An epoch cut into batches of images that have a size each; a short batch is no longer.

    `image_sizes` are height and width of every record.
    """

    shaped: ClassVar[bool] = True
    image_sizes: np.ndarray | None = None

    def over(self, order: Any, tail: Tail, chosen: np.ndarray | None = None) -> ImageSizePlan:
        """Return a plan for another order; see `BatchPlan.over`."""
        assert self.image_sizes is not None
        sizes = self.image_sizes if chosen is None else self.image_sizes[chosen]
        return replace(self, order=order, tail=tail, image_sizes=sizes)

    def rows(self, epoch: int, number: int, done: int = 0) -> tuple[np.ndarray, int]:
        """Return record numbers of one batch and how many of its positions are padding."""
        rows, pad = super().rows(epoch, number, done)
        return rows, pad if self.tail == "wrap" else 0

    def sizes(self, epoch: int, number: int, done: int, rows: np.ndarray) -> np.ndarray:
        """Return height and width of every image of a batch."""
        assert self.image_sizes is not None
        return self.image_sizes[rows]

    def slots(self, epoch: int, number: int, done: int) -> int:
        """Return the number of images of a batch."""
        return min(self.batch_size, len(super().rows(epoch, number, done)[0]))
