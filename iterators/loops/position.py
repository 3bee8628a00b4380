"""Where a run over a data set is, and what the next batch takes from it.

`advance` is the one rule that all iterators of this package follow: a pure step from one position
to the next, except that an order sampler is asked for the order of a new sweep.  Nothing here reads
data, knows threads or keeps a position.
"""

from __future__ import annotations

from collections.abc import Callable, Sized
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["NO_DETAIL", "Position", "advance", "first_position"]

#: What `previous_epoch_detail` is stored as before the first batch.
NO_DETAIL = -1.0

Sampler = Callable[[np.ndarray, int], Any]


@dataclass(frozen=True)
class Position:
    """Where a run is after a batch.

    Parameters
    ----------
    current_position : int
        Examples taken in the running sweep.
    epoch : int
        Completed sweeps.
    is_new_epoch : bool
        Whether the latest batch completed one.
    previous_epoch_detail : float
        `detail` before the latest batch; -1 before the first one.
    order : numpy.ndarray of int64, optional
        The running sweep, read-only; without it the sweep is the data set as it is.
    sampler_state : object
        State of the order sampler behind the latest order that it gave; None if it has none.
    """

    current_position: int = 0
    epoch: int = 0
    is_new_epoch: bool = False
    previous_epoch_detail: float = NO_DETAIL
    order: np.ndarray | None = None
    sampler_state: Any = None

    def epoch_size(self, length: int) -> int:
        """Examples of a sweep over a data set of `length` examples."""
        return length if self.order is None else len(self.order)

    def detail(self, length: int) -> float:
        """Completed sweeps, the running one in part."""
        size = self.epoch_size(length)
        return self.epoch + self.current_position / size if size else float(self.epoch)


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


def first_position(dataset: Sized, sampler: Sampler | None) -> Position:
    """The start of a run over a data set; the order sampler is asked for the first order."""
    if sampler is None:
        return Position()
    order = checked_order(sampler(np.arange(len(dataset)), 0))
    return Position(order=order, sampler_state=sampler_state(sampler))


def advance(
    position: Position, length: int, batch_size: int, repeat: bool, sampler: Sampler | None
) -> tuple[list[int], Position] | None:
    """Indices of the next batch and the position behind it.

    Parameters
    ----------
    position : Position
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
    tuple of list of int and Position, or None
        None when `repeat` is false and the sweep is over.

    Raises
    ------
    ValueError
        If there is nothing to repeat, or the sampler changes the size of a sweep.

    Examples
    --------
    >>> indices, position = advance(Position(4), 5, batch_size=2, repeat=True, sampler=None)
    >>> indices, position.epoch, position.current_position, position.is_new_epoch
    ([4, 0], 1, 1, True)
    """
    if not repeat and position.epoch > 0:
        return None
    size = position.epoch_size(length)
    if size == 0:
        if repeat:
            raise ValueError("the data set is empty: there is nothing to repeat")
        return None
    start, order, state = position.current_position, position.order, position.sampler_state
    epoch, is_new_epoch = position.epoch, False
    indices: list[int] = []
    end = start + batch_size
    while end >= size:
        indices += places(order, start, size)
        if order is not None and sampler is not None:
            # A copy, because a sampler may shuffle what it is given in place.
            order = checked_order(sampler(order.copy(), start), size)
        epoch, is_new_epoch, start = epoch + 1, True, 0
        if not repeat:
            end = 0
            break
        end -= size
    indices += places(order, start, end)
    if is_new_epoch and order is not None and sampler is not None:
        state = sampler_state(sampler)
    return indices, Position(end, epoch, is_new_epoch, position.detail(length), order, state)


def places(order: np.ndarray | None, start: int, end: int) -> list[int]:
    """Indices at the places ``[start, end)`` of a sweep."""
    return list(range(start, end)) if order is None else order[start:end].tolist()
