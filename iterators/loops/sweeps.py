"""Chainer's sweeps: the position of a run over a data set, and the indices of its next batch.

`advance` is the one rule of the iterators of `iterators.loops`: a pure step from one position to
the next, except that an order sampler is asked for the order of a new sweep.
"""

from __future__ import annotations

from collections.abc import Callable, Sized
from typing import Any, NamedTuple

import numpy as np

from ..core.order.cutting import Position, runs

#: Stored `previous_epoch_detail` before the first batch.
NO_DETAIL = -1.0

Sampler = Callable[[np.ndarray, int], Any]


class Sweep(NamedTuple):
    """Position of a run after a batch.

    Without `order`, which is read-only, the sweep is the data set as it is.  `sampler_state` is
    the state behind the latest order of the sampler; None if it has none.
    """

    position: Position = Position()
    is_new_epoch: bool = False
    previous_epoch_detail: float = NO_DETAIL
    order: np.ndarray | None = None
    sampler_state: Any = None

    def size(self, length: int) -> int:
        """Return examples of a sweep over a data set of `length` examples."""
        return length if self.order is None else len(self.order)

    def detail(self, length: int) -> float:
        """Completed sweeps, the running one in part."""
        (epoch, position), size = self.position, self.size(length)
        return epoch + position / size if size else float(epoch)

    def saved(self) -> dict[str, Any]:
        """Return the numbers of a saved state, under Chainer's names."""
        return {
            "current_position": self.position.done,
            "epoch": self.position.epoch,
            "is_new_epoch": self.is_new_epoch,
            "previous_epoch_detail": self.previous_epoch_detail,
        }


def checked_order(order: Any, size: int | None = None) -> np.ndarray:
    """Return the answer of an order sampler as a read-only array of int64."""
    array = np.array(order)
    if array.ndim != 1 or not (array.dtype.kind in "iu" or array.size == 0):
        raise TypeError(
            f"an order sampler must return a one-dimensional array of integers, not shape "
            f"{array.shape} of {array.dtype}"
        )
    if size is not None and len(array) != size:
        raise ValueError(
            f"the order sampler returned {len(array)} positions after an order of {size}: the size "
            "of a sweep cannot change"
        )
    array = array.astype(np.int64, copy=False)
    array.flags.writeable = False
    return array


def sampler_state(sampler: Sampler) -> Any:
    """Return the state of an order sampler; None if it does not tell."""
    state_dict = getattr(sampler, "state_dict", None)
    return None if state_dict is None else state_dict()


def first_sweep(dataset: Sized, sampler: Sampler | None, epoch: int = 0) -> Sweep:
    """Begin a run over a data set; the order sampler gives the first order."""
    at = Position(epoch)
    if sampler is None:
        return Sweep(at)
    order = checked_order(sampler(np.arange(len(dataset)), 0))
    return Sweep(at, order=order, sampler_state=sampler_state(sampler))


def advance(
    sweep: Sweep, length: int, batch_size: int, repeat: bool, sampler: Sampler | None
) -> tuple[list[int], Sweep] | None:
    """Return the indices of the next batch and the position behind it; None behind the last one.

    `repeat` fills a batch from the next sweep when one ends; without it the run is over after one
    sweep.  The sampler is called with the running order and the position in it when a sweep ends.
    """
    epoch, position = sweep.position
    if not repeat and epoch > 0:
        return None
    size = sweep.size(length)
    if size == 0:
        if repeat:
            raise ValueError("the data set is empty: there is nothing to repeat")
        return None
    order, state = sweep.order, sweep.sampler_state
    indices: list[int] = []
    for _, start, stop in runs(position, position + batch_size, size):
        indices += range(start, stop) if order is None else order[start:stop].tolist()
        position = stop % size
        if stop < size:
            break
        if order is not None and sampler is not None:
            # A copy, because a sampler may shuffle what it is given in place.
            order = checked_order(sampler(order.copy(), start), size)
        epoch += 1
        if not repeat:
            break
    is_new_epoch = epoch > sweep.position.epoch
    if is_new_epoch and order is not None and sampler is not None:
        state = sampler_state(sampler)
    at = Position(epoch, position)
    return indices, Sweep(at, is_new_epoch, sweep.detail(length), order, state)
