"""`Position`: how far a run is, as every order, loop, sampler and provider keeps it.

A state is a position under the names of its owner; this module knows what such numbers may be.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from recordio.keywords.checks import entries, integer

__all__ = ["Position"]


class Position(NamedTuple):
    """Completed epochs, sweeps or cycles, and the positions `done` in the running one.

    `done` is below 0 if some of the epochs before are still to come.
    """

    epoch: int = 0
    done: int = 0

    @classmethod
    def saved(
        cls,
        state: Any,
        *,
        epoch: str = "epoch",
        done: str,
        low: int = 0,
        high: float = math.inf,
        last_epoch: float = math.inf,
    ) -> Position:
        """Read the position under these names in a state; a ValueError if none is in range."""
        entries(state, done, epoch)
        return cls(
            integer(epoch, state[epoch], low=0, high=last_epoch),
            integer(done, state[done], low=low, high=high),
        )
