"""dp's samplers: the rows that come next in a set which begins again at its end, cycle by cycle.

Every function is a pure step from one position to rows and the position behind them; each
function says what the position counts.
"""

from __future__ import annotations

import itertools

import numpy as np

from ..core.order.cutting import Position, pieces, runs
from ..core.order.epochs import ShuffledOrder, WeightedOrder


def in_turn(
    at: Position, size: int, batch_size: int, seed: int | None = None
) -> tuple[np.ndarray, Position]:
    """Return rows one after another, or permuted by a seed; the last of a cycle may be short."""
    done = at.done if at.done < size else 0
    _, start, stop = next(runs(done, done + batch_size, size))
    rows = np.arange(start, stop)
    if seed is not None:
        rows = ShuffledOrder(size, seed).at(at.epoch, rows)
    return rows, Position(at.epoch + stop // size, stop % size)


def drawn(
    at: Position, weights: np.ndarray, batch_size: int, seed: int
) -> tuple[np.ndarray, Position]:
    """Return rows drawn with replacement: one sequence without an end."""
    stop = at.done + batch_size
    rows = WeightedOrder(weights, seed).at(at.epoch, np.arange(at.done, stop))
    return rows, Position(at.epoch, stop)


def streams(
    at: Position, size: int, batch_size: int, stride: int
) -> tuple[np.ndarray, int, Position]:
    """Return the first rows of the next step of `batch_size` streams side by side, and its number.

    The position counts steps of `stride` words; `size` words are at least one step for every
    stream.
    """
    length = size // batch_size
    steps = length // stride
    step = at.done if at.done < steps else 0
    rows = np.arange(batch_size) * length + step * stride
    return rows, step, Position(at.epoch + (step + 1) // steps, (step + 1) % steps)


def sentences(cycle: int, lengths: np.ndarray, batch_size: int, seed: int) -> list[np.ndarray]:
    """Return sentences that are read side by side, in the order of a cycle."""
    count = len(lengths)
    order = ShuffledOrder(count, seed).at(cycle, np.arange(count))
    found = np.unique(lengths)
    # Apart from the order of sentences also where there are as many lengths.
    positions = ShuffledOrder(len(found), ~seed).at(cycle, np.arange(len(found)))
    alike = (order[lengths[order] == length] for length in found[positions])
    return list(itertools.chain(*(pieces(rows, batch_size) for rows in alike)))
