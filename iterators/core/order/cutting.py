"""Where a batch begins and ends: the one rule by which places are cut into batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

__all__ = ["Tail", "bounds", "count_batches", "pieces", "runs"]

#: What becomes of a last, short batch: filled from the start, left short, or not delivered.
Tail = Literal["wrap", "pad", "drop"]


def count_batches(count: int, batch_size: int, tail: Tail = "pad") -> int:
    """Number of batches that `count` places make.

    Examples
    --------
    >>> count_batches(10, 4), count_batches(10, 4, "drop")
    (3, 2)
    """
    return count // batch_size if tail == "drop" else -(-count // batch_size)


def bounds(number: int, batch_size: int, count: int) -> tuple[int, int]:
    """Places ``[begin, end)`` of batch `number`; the last one of `count` places may be short.

    Examples
    --------
    >>> bounds(2, batch_size=4, count=10)
    (8, 10)
    """
    begin = number * batch_size
    return begin, min(begin + batch_size, count)


def pieces(rows: Any, batch_size: int) -> Iterator[Any]:
    """An array of rows, batch by batch.

    Examples
    --------
    >>> list(pieces("abcde", 2))
    ['ab', 'cd', 'e']
    """
    for number in range(count_batches(len(rows), batch_size)):
        yield rows[slice(*bounds(number, batch_size, len(rows)))]


def runs(begin: int, end: int, size: int) -> Iterator[tuple[int, int, int]]:
    """Places ``[begin, end)`` of epochs of `size` without end, cut where an epoch ends.

    Yields
    ------
    epoch, start, stop : int
        Places ``[start, stop)`` of an epoch; epoch 0 is the one that place 0 is in.

    Examples
    --------
    >>> list(runs(-2, 7, size=5))
    [(-1, 3, 5), (0, 0, 5), (1, 0, 2)]
    """
    while begin < end:
        epoch, start = divmod(begin, size)
        stop = min(start + end - begin, size)
        yield epoch, start, stop
        begin += stop - start
