"""Where a run is: the position that every order, loop, sampler and provider keeps and saves.

A state is a position under the names of its owner; this module knows what such numbers may be.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from recordio.keywords.checks import entries, integer

__all__ = ["Position"]


class Position(NamedTuple):
    """The place that comes next.

    Parameters
    ----------
    epoch : int
        Completed epochs, sweeps or turns.
    place : int
        Places taken in the running one; below 0 if some of the epochs before are still to come.

    Examples
    --------
    >>> Position.saved({"turn": 3, "start": 8}, place="start", epoch="turn")
    Position(epoch=3, place=8)
    """

    epoch: int = 0
    place: int = 0

    @classmethod
    def saved(
        cls,
        state: Any,
        *,
        epoch: str = "epoch",
        place: str,
        low: int = 0,
        high: float = math.inf,
        last_epoch: float = math.inf,
    ) -> Position:
        """The position in a state that has it under these names, with the place in ``[low, high]``.

        Raises
        ------
        ValueError
            If there is no such position.
        """
        entries(state, place, epoch)
        return cls(
            integer(epoch, state[epoch], low=0, high=last_epoch),
            integer(place, state[place], low=low, high=high),
        )
