"""Chainer's sweeps: where a run over a data set is, and what the next batch takes from it.

`advance` is the one rule of the iterators of `iterators.loops`: a pure step from one position to
the next, except that an order sampler is asked for the order of a new sweep.
"""

from __future__ import annotations

from collections.abc import Callable, Sized
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .cutting import runs
from .position import Position

__all__ = ["NO_DETAIL", "Sweep", "advance", "checked_order", "first_sweep"]

#: What `previous_epoch_detail` is stored as before the first batch.
NO_DETAIL = -1.0

Sampler = Callable[[np.ndarray, int], Any]


@dataclass(frozen=True)
class Sweep:
    """Where a run is after a batch.

    Parameters
    ----------
    position : Position
        Completed sweeps, and examples taken in the running one.
    is_new_epoch : bool
        Whether the latest batch completed one.
    previous_epoch_detail : float
        `detail` before the latest batch; -1 before the first one.
    order : numpy.ndarray of int64, optional
        The running sweep, read-only; without it the sweep is the data set as it is.
    sampler_state : object
        State of the order sampler behind the latest order that it gave; None if it has none.
    """

    position: Position = field(default_factory=Position)
    is_new_epoch: bool = False
    previous_epoch_detail: float = NO_DETAIL
    order: np.ndarray | None = None
    sampler_state: Any = None

    def size(self, length: int) -> int:
        """Examples of a sweep over a data set of `length` examples."""
        return length if self.order is None else len(self.order)

    def detail(self, length: int) -> float:
        """Completed sweeps, the running one in part."""
        (epoch, place), size = self.position, self.size(length)
        return epoch + place / size if size else float(epoch)

    def saved(self) -> dict[str, Any]:
        """The numbers of a saved state, under Chainer's names."""
        return {
            "current_position": self.position.place,
            "epoch": self.position.epoch,
            "is_new_epoch": self.is_new_epoch,
            "previous_epoch_detail": self.previous_epoch_detail,
        }


def checked_order(order: Any, size: int | None = None) -> np.ndarray:
    """What an order sampler returned, as a read-only array of int64."""
    array = np.array(order)
    if array.ndim != 1 or not (array.dtype.kind in "iu" or array.size == 0):
        raise TypeError(
            f"an order sampler must return a one-dimensional array of integers, not shape "
            f"{array.shape} of {array.dtype}"
        )
    if size is not None and len(array) != size:
        raise ValueError(
            f"the order sampler returned {len(array)} places after an order of {size}: the size of "
            "a sweep cannot change"
        )
    array = array.astype(np.int64, copy=False)
    array.flags.writeable = False
    return array


def sampler_state(sampler: Sampler) -> Any:
    """State of an order sampler; None if it does not tell."""
    state_dict = getattr(sampler, "state_dict", None)
    return None if state_dict is None else state_dict()


def first_sweep(dataset: Sized, sampler: Sampler | None, epoch: int = 0) -> Sweep:
    """The start of a run over a data set; the order sampler is asked for the first order."""
    at = Position(epoch)
    if sampler is None:
        return Sweep(at)
    order = checked_order(sampler(np.arange(len(dataset)), 0))
    return Sweep(at, order=order, sampler_state=sampler_state(sampler))


def advance(
    sweep: Sweep, length: int, batch_size: int, repeat: bool, sampler: Sampler | None
) -> tuple[list[int], Sweep] | None:
    """Indices of the next batch, and where the run is behind it.

    Parameters
    ----------
    sweep : Sweep
    length : int
        Examples of the data set.
    batch_size : int
        At least 1.
    repeat : bool
        Fill a batch from the next sweep when one ends; else stop after the first sweep.
    sampler : callable, optional
        Called with the running order and the place in it when a sweep ends.

    Returns
    -------
    tuple of list of int and Sweep, or None
        None when `repeat` is false and the sweep is over.

    Raises
    ------
    ValueError
        If there is nothing to repeat, or the sampler changes the size of a sweep.

    Examples
    --------
    >>> sweep = Sweep(Position(epoch=0, place=4))
    >>> indices, sweep = advance(sweep, 5, batch_size=2, repeat=True, sampler=None)
    >>> indices, sweep.position, sweep.is_new_epoch
    ([4, 0], Position(epoch=1, place=1), True)
    """
    epoch, place = sweep.position
    if not repeat and epoch > 0:
        return None
    size = sweep.size(length)
    if size == 0:
        if repeat:
            raise ValueError("the data set is empty: there is nothing to repeat")
        return None
    order, state = sweep.order, sweep.sampler_state
    indices: list[int] = []
    for _, start, stop in runs(place, place + batch_size, size):
        indices += range(start, stop) if order is None else order[start:stop].tolist()
        place = stop % size
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
    at = Position(epoch, place)
    return indices, Sweep(at, is_new_epoch, sweep.detail(length), order, state)
