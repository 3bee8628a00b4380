"""Which record comes when: orders over records, and the cutting of an epoch into batches.

An order is a pure function from the places of an epoch to record numbers; it stores nothing but a
few integers, whatever the number of records.  The position of a run is kept by whoever draws from
it. Nothing here reads data.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import ClassVar, Literal, Protocol

import numpy as np

from .random import derive_key, permute, uniform

__all__ = [
    "BatchPlan",
    "BlockOrder",
    "DealtOrder",
    "EpochOrder",
    "Order",
    "RollOverPlan",
    "SequentialOrder",
    "ShuffledOrder",
    "WeightedOrder",
]

# Keys of orders, apart from one another and from those of augmentation.
SHUFFLE_KEY = 0x6F72646572  # "order"
BLOCK_KEY = 0x626C6F636B  # "block"
WEIGHT_KEY = 0x776569676874  # "weight"

Tail = Literal["wrap", "pad", "drop"]


class EpochOrder(Protocol):
    """What a whole epoch looks like: a pure function of epoch and place."""

    @property
    def size(self) -> int:
        """Places of an epoch."""

    @property
    def repeats(self) -> bool:
        """Whether a record may come more than once in an epoch."""

    def at(self, epoch: int, places: np.ndarray) -> np.ndarray:
        """Record numbers at `places`, each in ``[0, size)``."""


@dataclass(frozen=True)
class ShuffledOrder:
    """A new permutation of all records in every epoch.

    Parameters
    ----------
    size : int
        Number of records, at least 1.
    seed : int
        The permutation depends on the seed and the epoch only.

    Examples
    --------
    >>> sorted(ShuffledOrder(5).at(epoch=3, places=np.arange(5)).tolist())
    [0, 1, 2, 3, 4]
    """

    size: int
    seed: int = 0
    repeats: ClassVar[bool] = False

    def at(self, epoch: int, places: np.ndarray) -> np.ndarray:
        """Record numbers at `places` of the epoch."""
        return permute(derive_key(self.seed, SHUFFLE_KEY, epoch), self.size, places)


@dataclass(frozen=True)
class BlockOrder:
    """Blocks of neighbouring records in random order, for disks that are slow to seek.

    Parameters
    ----------
    edges : numpy.ndarray of int64
        Where the blocks begin and end: block ``i`` is ``[edges[i], edges[i + 1])``; no block is
        empty.
    block_seed : int
        Determines the order of the blocks.
    shuffle : bool
        Shuffle the records inside each block as well.
    seed : int
        Determines that.

    Examples
    --------
    >>> records = BlockOrder(np.array([0, 2, 4, 6])).at(0, np.arange(6))
    >>> (records[1::2] - records[::2]).tolist(), sorted(records.tolist())
    ([1, 1, 1], [0, 1, 2, 3, 4, 5])
    """

    edges: np.ndarray
    block_seed: int = 0
    shuffle: bool = False
    seed: int = 0
    repeats: ClassVar[bool] = False

    @property
    def size(self) -> int:
        """Number of records."""
        return int(self.edges[-1])

    def at(self, epoch: int, places: np.ndarray) -> np.ndarray:
        """Record numbers at `places` of the epoch."""
        count = len(self.edges) - 1
        blocks = permute(derive_key(self.block_seed, BLOCK_KEY, epoch), count, np.arange(count))
        lengths = np.diff(self.edges)
        ends = np.cumsum(lengths[blocks])
        turn = np.searchsorted(ends, places, side="right")
        records = np.empty(len(places), np.int64)
        for i in np.unique(turn):
            block, mine = int(blocks[i]), turn == i
            inside = places[mine] - (ends[i] - lengths[block])
            if self.shuffle:
                key = derive_key(self.seed, SHUFFLE_KEY, epoch, block)
                inside = permute(key, int(lengths[block]), inside)
            records[mine] = self.edges[block] + inside
        return records


@dataclass(frozen=True)
class WeightedOrder:
    """Records drawn with replacement, each as often as its weight says.

    Parameters
    ----------
    weights : array_like of float
        One per record, not negative, not all zero.
    seed : int
        Every place of every epoch is drawn on its own, from the seed, the epoch and the place.

    Examples
    --------
    >>> order = WeightedOrder([1.0, 0.0, 3.0])
    >>> np.bincount(order.at(0, np.arange(3)), minlength=3)[1]
    np.int64(0)
    """

    weights: np.ndarray
    seed: int = 0
    _cumulated: np.ndarray = field(init=False, repr=False, compare=False)
    repeats: ClassVar[bool] = True

    def __post_init__(self) -> None:
        weights = np.asarray(self.weights, np.float64)
        if weights.ndim != 1 or not np.isfinite(weights).all() or (weights < 0).any():
            raise ValueError("weights must be finite numbers of at least 0, one for every record")
        with np.errstate(over="ignore"):
            cumulated = np.cumsum(weights)
        if not len(cumulated) or not cumulated[-1] > 0:
            raise ValueError("at least one weight must be above 0")
        if not np.isfinite(cumulated[-1]):
            raise ValueError("weights must have a finite sum")
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "_cumulated", cumulated)

    @property
    def size(self) -> int:
        """Places of an epoch: as many as there are records."""
        return len(self._cumulated)

    def at(self, epoch: int, places: np.ndarray) -> np.ndarray:
        """Record numbers at `places` of the epoch."""
        numbers = uniform(derive_key(self.seed, WEIGHT_KEY, epoch), places)
        return np.searchsorted(self._cumulated, numbers * self._cumulated[-1], side="right")


class Order(Protocol):
    """What an epoch looks like to one part."""

    @property
    def stride(self) -> int:
        """Places of the whole epoch that go by when this part takes one."""

    def count(self, done: int = 0) -> int:
        """Number of places of this part when the first `done` places of the epoch are taken."""

    def most(self, done: int = 0) -> int:
        """The same for the part that has most of them."""

    def take(self, epoch: int, begin: int, end: int, done: int = 0) -> np.ndarray:
        """Record numbers at places ``[begin, end)`` of this part, counted from `done`; int64."""

    def draws(self, begin: int, end: int, done: int = 0) -> np.ndarray:
        """What tells the occurrences of a record in an epoch apart; int64, 0 where there is one."""


@functools.lru_cache(maxsize=16)
def _zeros(count: int) -> np.ndarray:
    """Zeros that all batches of a size share."""
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
    places : int, optional
        Length of an epoch, if not ``last - first``: more than that continue behind `last` and then
        from record 0 of `size`.
    size : int, optional
        Number of records of all parts; needed with `places`.

    Examples
    --------
    >>> SequentialOrder(4, 10).take(epoch=0, begin=1, end=3)
    array([5, 6])
    """

    first: int
    last: int
    places: int | None = None
    size: int | None = None
    stride = 1

    def count(self, done: int = 0) -> int:
        """Number of places that come after the first `done`."""
        return max((self.last - self.first if self.places is None else self.places) - done, 0)

    def most(self, done: int = 0) -> int:
        """As `count`: every part has places of its own, and a state of its own."""
        return self.count(done)

    def take(self, epoch: int, begin: int, end: int, done: int = 0) -> np.ndarray:
        """Record numbers at places ``[begin, end)``, counted from `done`."""
        start = self.first + done
        records = np.arange(start + begin, start + end, dtype=np.int64)
        return records if self.size is None else records % self.size

    def draws(self, begin: int, end: int, done: int = 0) -> np.ndarray:
        """Zeros: what comes again for want of places does so unchanged."""
        return _zeros(end - begin)


@dataclass(frozen=True)
class DealtOrder:
    """The places of an epoch dealt out to parts like cards.

    Part ``k`` of ``n`` has the places ``k, k + n, k + 2n, ...`` of the one global order.  Parts are
    therefore disjoint and together the whole epoch; and when every part has taken ``m`` places, the
    first ``m * n`` places of the epoch are done, so that any other number of parts can carry on.

    Parameters
    ----------
    whole : EpochOrder
        What is dealt out.
    num_parts, part_index : int
        Which part this is.
    even : bool
        Give every part ``ceil(size / num_parts)`` places; those missing at the end are taken from
        the start of the same epoch.

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

    @property
    def stride(self) -> int:
        """Places of the whole epoch that go by when every part takes one."""
        return self.num_parts

    def count(self, done: int = 0) -> int:
        """Number of places of this part among the places ``[done, size)`` of the epoch."""
        ahead = 0 if self.even else self.part_index
        return max(-((done + ahead - self.whole.size) // self.num_parts), 0)

    def most(self, done: int = 0) -> int:
        """Number of places of part 0 among the places ``[done, size)`` of the epoch."""
        return max(-((done - self.whole.size) // self.num_parts), 0)

    def take(self, epoch: int, begin: int, end: int, done: int = 0) -> np.ndarray:
        """Record numbers at places ``[begin, end)`` of this part, counted from `done`."""
        return self.whole.at(epoch, self._places(begin, end, done))

    def draws(self, begin: int, end: int, done: int = 0) -> np.ndarray:
        """The places of the whole epoch if its records may repeat, else zeros.

        A place is the same whatever the number of parts and wherever the epoch was resumed.
        """
        if self.whole.repeats:
            return self._places(begin, end, done)
        return _zeros(end - begin)

    def _places(self, begin: int, end: int, done: int) -> np.ndarray:
        step = self.num_parts
        start = begin * step + done + self.part_index
        places = np.arange(start, start + (end - begin) * step, step, dtype=np.int64)
        if len(places) and places[-1] >= self.whole.size:  # with `even`
            places %= self.whole.size
        return places


@dataclass(frozen=True)
class BatchPlan:
    """An epoch cut into batches of one size.

    Parameters
    ----------
    order : Order
        What is cut.
    batch_size : int
        Samples in a batch, at least 1.
    tail : {"wrap", "pad", "drop"}
        What becomes of a last, short batch: filled from the start of the same epoch, as often as
        needed; left short, for the caller to pad; or not delivered.

    Examples
    --------
    >>> plan = BatchPlan(SequentialOrder(0, 10), batch_size=4, tail="wrap")
    >>> len(plan), plan.rows(epoch=0, number=2)
    (3, (array([8, 9, 0, 1]), 2))
    """

    order: Order
    batch_size: int
    tail: Tail = "wrap"
    #: The least that `done` may be.
    first_done: ClassVar[int] = 0

    def __len__(self) -> int:
        return self.batches()

    @property
    def empty(self) -> bool:
        """Whether no epoch ever has a batch."""
        return not self.batches()

    def carried(self, done: int = 0) -> int:
        """The `done` of the epoch after one that began with `done` and was completed."""
        return 0

    def batches(self, done: int = 0) -> int:
        """Number of batches left when the first `done` places of the epoch are taken."""
        return self._batches(self.order.count(done))

    def is_over(self, done: int) -> bool:
        """Whether no part has a batch left when the first `done` places of the epoch are taken."""
        return self._batches(self.order.most(done)) == 0

    def _batches(self, count: int) -> int:
        return count // self.batch_size if self.tail == "drop" else -(-count // self.batch_size)

    def record(self, epoch: int, place: int, done: int = 0) -> int:
        """Record number at one place, counted from `done`; behind the end from the epoch's start.

        An epoch that was resumed at `done` has the same records behind its end as one that was not.
        """
        behind = place - self.order.count(done)
        if behind >= 0:
            place, done = behind % self.order.count(), 0
        (number,) = self.order.take(epoch, place, place + 1, done)
        return int(number)

    def rows(self, epoch: int, number: int, done: int = 0) -> tuple[np.ndarray, int]:
        """Record numbers of one batch and how many of its places are padding.

        Parameters
        ----------
        epoch, number : int
            Batch `number` of the epoch, both counted from 0.
        done : int
            Places of the epoch that were taken before batch 0.

        Returns
        -------
        rows : numpy.ndarray of int64
            `batch_size` record numbers; fewer in a last batch with ``tail="pad"``.
        pad : int
            Places of the batch that hold no sample of their own.
        """
        pieces, pad = self._pieces(number, done)
        rows = [self.order.take(epoch + ago, *places) for ago, *places in pieces]
        return rows[0] if len(rows) == 1 else np.concatenate(rows), pad

    def draws(self, number: int, done: int = 0) -> np.ndarray:
        """What tells the occurrences of a record apart, for every row of a batch.

        The random numbers of a sample depend on its record, its epoch and this number: 0 for orders
        without repetitions.  Padding is drawn as in its own place of the epoch; what was carried
        over from an epoch before is drawn anew.

        Returns
        -------
        numpy.ndarray of int64
            As many as `rows` has records.
        """
        pieces, _ = self._pieces(number, done)
        if len(pieces) == 1 and not pieces[0][0]:
            return self.order.draws(*pieces[0][1:])
        # Behind the numbers of all places of this epoch.
        return np.concatenate(
            [self.order.draws(*places) - ago * self.order.count() for ago, *places in pieces]
        )

    def _pieces(self, number: int, done: int) -> tuple[list[tuple[int, int, int, int]], int]:
        """Runs of places that make up a batch, as (epochs ago, begin, end, done), and its pad."""
        begin = number * self.batch_size
        end = min(begin + self.batch_size, self.order.count(done))
        pieces = [(0, begin, end, done)]
        pad = left = begin + self.batch_size - end
        while left and self.tail == "wrap":
            # The epoch's own start, which lies before `done` when the run was resumed.
            end = min(left, self.order.count())
            pieces.append((0, 0, end, 0))
            left -= end
        return pieces, pad


@dataclass(frozen=True)
class RollOverPlan(BatchPlan):
    """Batches that are always full: what is left of an epoch comes first in the next one.

    An epoch that begins with ``done=-c`` has the last ``c`` places of the epochs before it in front
    (the rule of MXNet's ``NDArrayIter(last_batch_handle="roll_over")``).  For orders with one part.

    Parameters
    ----------
    order, batch_size, tail
        As for `BatchPlan`; `tail` has no meaning.
    pads_new : bool
        What the pad of a batch with places from the epochs before counts: those places, as MXNet's
        NDArrayIter does, or the other ones, as its ImageIter does.

    Examples
    --------
    >>> plan = RollOverPlan(SequentialOrder(0, 5), batch_size=3)
    >>> len(plan), plan.carried(0)
    (1, -2)
    >>> plan.batches(-2), plan.rows(epoch=1, number=0, done=-2)
    (2, (array([3, 4, 0]), 2))
    """

    pads_new: bool = False

    @property
    def first_done(self) -> int:  # type: ignore[override]
        """The least that `done` may be."""
        return 1 - self.batch_size

    @property
    def empty(self) -> bool:
        """Whether no epoch ever has a batch."""
        return not self.order.count()

    def batches(self, done: int = 0) -> int:
        """Number of batches left when the first `done` places of the epoch are taken."""
        return max(self.order.count() - done, 0) // self.batch_size

    def is_over(self, done: int) -> bool:
        """Whether no batch is left when the first `done` places of the epoch are taken."""
        return not self.batches(done)

    def record(self, epoch: int, place: int, done: int = 0) -> int:
        """Record number at one place; places count from `done`, behind the end from the start."""
        ago, place = divmod(place + done, self.order.count())
        (number,) = self.order.take(epoch + min(ago, 0), place, place + 1)
        return int(number)

    def carried(self, done: int = 0) -> int:
        """Minus the number of places that are left for the epoch after this one."""
        return -(max(self.order.count() - done, 0) % self.batch_size)

    def _pieces(self, number: int, done: int) -> tuple[list[tuple[int, int, int, int]], int]:
        """Runs of places of this epoch and those before; the pad is what came from those before."""
        count = self.order.count()
        begin = number * self.batch_size + done
        end = begin + self.batch_size
        pieces = []
        while begin < end:
            ago, start = divmod(begin, count)
            stop = min(start + end - begin, count)
            pieces.append((ago, start, stop, 0))
            begin += stop - start
        carried = max(-done, 0) if number == 0 else 0
        return pieces, self.batch_size - carried if carried and self.pads_new else carried
