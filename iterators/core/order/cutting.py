"""The one rule by which positions are cut into batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

__all__ = ["Tail", "bounds", "count_batches", "pieces", "runs"]

#: Treatment of a last, short batch: filled from the start, left short, or not delivered.
Tail = Literal["wrap", "pad", "drop"]


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
