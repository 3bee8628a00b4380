"""`Position`, how far a run is, and the one rule by which positions are cut into batches.

A state is a position under the names of its owner; this module knows what such numbers may be.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from recordio.keywords.checks import checked_state, integer

#: Treatment of a last, short batch: filled from the start, left short, or not delivered.
Tail = Literal["wrap", "pad", "drop"]


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
        checked_state(state, done, epoch)
        return cls(
            integer(epoch, state[epoch], low=0, high=last_epoch),
            integer(done, state[done], low=low, high=high),
        )


def count_batches(count: int, batch_size: int, tail: Tail = "pad") -> int:
    """Return the number of batches that `count` positions make."""
    return count // batch_size if tail == "drop" else -(-count // batch_size)


def bounds(number: int, batch_size: int, count: int) -> tuple[int, int]:
    """Return positions ``[begin, end)`` of batch `number`; the last batch may be short."""
    begin = number * batch_size
    return begin, min(begin + batch_size, count)


def pieces(rows: Any, batch_size: int) -> Iterator[Any]:
    """Yield an array of rows batch by batch."""
    for number in range(count_batches(len(rows), batch_size)):
        yield rows[slice(*bounds(number, batch_size, len(rows)))]


def runs(begin: int, end: int, size: int) -> Iterator[tuple[int, int, int]]:
    """Yield ``(epoch, start, stop)`` for positions ``[begin, end)``, cut at the ends of epochs.

    Epochs of `size` positions go on without end; epoch 0 is that of position 0; `begin` may be
    negative.
    """
    while begin < end:
        epoch, start = divmod(begin, size)
        stop = min(start + end - begin, size)
        yield epoch, start, stop
        begin += stop - start
