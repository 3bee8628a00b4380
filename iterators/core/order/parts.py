"""The share of a part in every epoch, and the order that a provider's options describe."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np

from recordio.partition import balanced_part, part_by_count

from .epochs import BlockOrder, EpochOrder, ShuffledOrder, WeightedOrder

#: ``rule(count, num_parts, part_index)`` -> the records of a part when nothing is shuffled.
PartRule = Callable[[int, int, int], range]


class Order(Protocol):
    """Order of an epoch for one part."""

    @property
    def stride(self) -> int:
        """Positions of the whole epoch that go by when this part takes one."""

    def count(self, done: int = 0) -> int:
        """Return the number of positions of this part behind the first `done` of the epoch."""

    def most(self, done: int = 0) -> int:
        """Return the number of positions of the part that has most of them."""

    def take(self, epoch: int, begin: int, end: int, done: int = 0) -> np.ndarray:
        """Return int64 record numbers at positions ``[begin, end)`` of this part, after `done`."""

    def draws(self, begin: int, end: int, done: int = 0) -> np.ndarray:
        """Return numbers that tell the occurrences of a record in an epoch apart; int64.

        They are 0 where every record occurs once.
        """

    def described(self) -> str:
        """Describe all but the seed that must stay the same for a saved position to stay valid."""


@functools.lru_cache(maxsize=16)
def zeros(count: int) -> np.ndarray:
    """Return zeros that all batches of a size share."""
    zeros = np.zeros(count, np.int64)
    zeros.flags.writeable = False
    return zeros


@dataclass(frozen=True)
class SequentialOrder:
    """Records ``[first, last)`` as they lie in the file, the same in every epoch.

    Parameters
    ----------
    first, last : int
        The block of records that belongs to this part.
    positions : int, optional
        Length of an epoch, if not ``last - first``: more than that continue behind `last` and then
        from record 0 of `size`.
    size : int, optional
        Number of records of all parts; needed with `positions`.

    Examples
    --------
    >>> SequentialOrder(4, 10).take(epoch=0, begin=1, end=3)
    array([5, 6])
    """

    first: int
    last: int
    positions: int | None = None
    size: int | None = None
    stride = 1

    def count(self, done: int = 0) -> int:
        """Return the number of positions that come after the first `done`."""
        return max((self.last - self.first if self.positions is None else self.positions) - done, 0)

    def most(self, done: int = 0) -> int:
        """Return `count`: every part has positions of its own, and a state of its own."""
        return self.count(done)

    def take(self, epoch: int, begin: int, end: int, done: int = 0) -> np.ndarray:
        """Return record numbers at positions ``[begin, end)``, counted from `done`."""
        start = self.first + done
        records = np.arange(start + begin, start + end, dtype=np.int64)
        return records if self.size is None else records % self.size

    def draws(self, begin: int, end: int, done: int = 0) -> np.ndarray:
        """Return zeros: what comes again for want of positions does so unchanged."""
        return zeros(end - begin)

    def described(self) -> str:
        """Describe the range of the records."""
        return f"{self.first} to {self.last}"


@dataclass(frozen=True)
class DealtOrder:
    """The positions of an epoch dealt out to parts like cards.

    Part ``k`` of ``n`` has the positions ``k, k + n, k + 2n, ...`` of the one global order.  Parts
    are therefore disjoint and together the whole epoch; and when every part has taken ``m``
    positions, the first ``m * n`` positions of the epoch are done, so that any other number of
    parts can carry on.

    Parameters
    ----------
    whole : EpochOrder
        What is dealt out.
    num_parts, part_index : int
        Which part this is.
    even : bool
        Give every part as many positions as the first; those missing at the end are taken from the
        start of the same epoch.
    unit : int
        Neighbouring positions that are dealt together, for orders whose batches belong together;
        the size of the epoch is a multiple of it.

    Examples
    --------
    >>> parts = [DealtOrder(ShuffledOrder(10), num_parts=3, part_index=k) for k in range(3)]
    >>> [part.count() for part in parts]
    [4, 3, 3]
    >>> sorted(np.concatenate([p.take(0, 0, p.count()) for p in parts]).tolist())
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    """

    whole: EpochOrder
    num_parts: int = 1
    part_index: int = 0
    even: bool = False
    unit: int = 1

    @property
    def stride(self) -> int:
        """Positions of the whole epoch that go by when every part takes one."""
        return self.num_parts

    def count(self, done: int = 0) -> int:
        """Return the number of positions of this part among ``[done, size)`` of the epoch."""
        return self._share(done, 0 if self.even else self.part_index)

    def most(self, done: int = 0) -> int:
        """Return the number of positions of part 0 among ``[done, size)`` of the epoch."""
        return self._share(done, 0)

    def _share(self, done: int, part: int) -> int:
        """Return the number of positions of a part among ``[done, size)`` of the epoch."""
        units = (self.whole.size - done) // self.unit
        return max(-((part - units) // self.num_parts), 0) * self.unit

    def take(self, epoch: int, begin: int, end: int, done: int = 0) -> np.ndarray:
        """Return record numbers at positions ``[begin, end)`` of this part, counted from `done`."""
        return self.whole.at(epoch, self._positions(begin, end, done))

    def draws(self, begin: int, end: int, done: int = 0) -> np.ndarray:
        """Return the positions of the whole epoch if its records may repeat, else zeros.

        A position is the same whatever the number of parts and wherever the epoch was resumed.
        """
        if self.whole.repeats:
            return self._positions(begin, end, done)
        return zeros(end - begin)

    def described(self) -> str:
        """Describe the order that is dealt out; the number of parts may change."""
        return self.whole.described()

    def _positions(self, begin: int, end: int, done: int) -> np.ndarray:
        step, unit = self.num_parts, self.unit
        if unit == 1:
            start = begin * step + done + self.part_index
            positions = np.arange(start, start + (end - begin) * step, step, dtype=np.int64)
        else:
            units, inside = np.divmod(np.arange(begin, end, dtype=np.int64), unit)
            positions = (units * step + self.part_index) * unit + inside + done
        if len(positions) and positions[-1] >= self.whole.size:  # with `even`
            positions %= self.whole.size
        return positions


def make_order(
    count: int,
    rule: PartRule = part_by_count,
    *,
    shuffle: bool = False,
    seed: int = 0,
    num_parts: int = 1,
    part_index: int = 0,
    even: bool | Literal["balanced"] = False,
    weights: Any = None,
    blocks: tuple[np.ndarray, int] | tuple[np.ndarray, int, int] | None = None,
    whole: EpochOrder | None = None,
    unit: int = 1,
) -> Order:
    """Make the order of `count` records of all parts, as one part sees it.

    Parameters
    ----------
    count : int
        Number of records.
    rule : callable, optional
        Says which records a part has if all come as they lie in the file, unless that contradicts
        `even`.
    shuffle, seed, num_parts, part_index, even
        As for the providers.
    weights : array_like of float, optional
        How often each record is drawn, one for every record.
    blocks : tuple of numpy.ndarray and int, optional
        Edges and seed of a `BlockOrder`.
    whole : EpochOrder, optional
        What to deal out instead of all these.
    unit : int
        Its positions that are dealt together.

    Raises
    ------
    ValueError
        If there is no such part, or these cannot be combined.

    Examples
    --------
    >>> make_order(5, num_parts=2, part_index=1)
    SequentialOrder(first=3, last=5, positions=None, size=None)
    """
    if part_index >= num_parts:
        raise ValueError(f"part_index={part_index}: expected a number below num_parts={num_parts}")
    if whole is None:
        whole = make_epoch_order(count, shuffle=shuffle, seed=seed, weights=weights, blocks=blocks)
    if whole is not None:
        return DealtOrder(whole, num_parts, part_index, even is True, unit)
    positions = -(-count // num_parts)
    # Blocks of as many bytes have any number of records, and some rules leave records out.
    if even == "balanced" or (
        even and max(len(rule(count, num_parts, k)) for k in range(num_parts)) != positions
    ):
        rule = balanced_part
    mine = rule(count, num_parts, part_index)
    if even is not True:
        return SequentialOrder(mine.start, mine.stop)
    return SequentialOrder(mine.start, mine.stop, positions, count)


def make_epoch_order(
    count: int,
    *,
    shuffle: bool = False,
    seed: int = 0,
    weights: Any = None,
    blocks: tuple[np.ndarray, int] | tuple[np.ndarray, int, int] | None = None,
) -> EpochOrder | None:
    """Make the order of a whole epoch, or None if the records come as they lie in the file.

    The parameters are those of `make_order`.
    """
    if weights is not None:
        table = as_weights(weights)
        if table.shape != (count,):
            raise ValueError(
                f"weights has shape {table.shape}: expected one weight for each of {count} "
                "records, or a mapping from labels to weights"
            )
        return WeightedOrder(table, seed)
    if blocks is not None:
        edges, block_seed, *together = blocks
        return BlockOrder(edges, block_seed, shuffle, seed, *together)
    return ShuffledOrder(count, seed) if shuffle else None


def as_weights(weights: Any) -> np.ndarray:
    """Return numbers that can be weights; a ValueError says what was expected."""
    try:
        return np.asarray(weights, np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"weights={weights!r}: expected one number for each record, or a mapping from labels "
            "to numbers"
        ) from None
