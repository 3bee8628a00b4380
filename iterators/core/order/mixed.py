"""Several packs as one: each with its share of every stretch of an epoch, and classes in turn.

Both are orders like those of `epochs`, so that parts, positions and states need nothing else.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar

import numpy as np

from ..fork_safe_lock import ForkSafeLock
from ..random import derive_key
from .alternation import BLOCK, Alternation
from .class_draw import draw_by_class
from .epochs import EpochOrder, check_of

MIX_KEY = 0x6D69786564  # "mixed"
CLASS_KEY = 0x636C6173736573  # "classes"
MOST_WEIGHT = 1 << 30


class MixedOrder:
    """Records of several packs, each with its share of every stretch of an epoch.

    Parameters
    ----------
    orders : sequence of EpochOrder
        What a cycle of each pack looks like.  One that is used up begins the next; one that is
        not goes on in the next epoch where it stopped.  Their records are numbered through.
    shares : sequence of Fraction
        Above 0; only their ratios count.  After n positions of an epoch every pack has given n
        times its share, to within one.
    size : int
        Positions of an epoch.
    seed : int
        Determines how the packs take turns.

    Raises
    ------
    ValueError
        If a share is below 2**-30 of all.

    Examples
    --------
    >>> from iterators.core.order import ShuffledOrder
    >>> packs = [ShuffledOrder(100), ShuffledOrder(10)]
    >>> order = MixedOrder(packs, [Fraction("0.7"), Fraction("0.3")], size=110)
    >>> (order.at(0, np.arange(110)) >= 100).sum()
    np.int64(33)
    """

    repeats: ClassVar[bool] = True

    def __init__(
        self, orders: Sequence[EpochOrder], shares: Sequence[Fraction], size: int, seed: int = 0
    ) -> None:
        self._orders = list(orders)
        self._size = size
        self._seed = seed
        self._starts = np.cumsum([0, *(order.size for order in orders)])
        self._access = ForkSafeLock()
        self._alternation = Alternation(whole_weights(shares))
        self._block = functools.lru_cache(maxsize=4)(self._make_block)

    @property
    def size(self) -> int:
        """Positions of an epoch."""
        return self._size

    @functools.cached_property
    def counts(self) -> np.ndarray:
        """Positions of an epoch that each pack has, int64."""
        with self._access.lock:
            return self._alternation.counts(self._size)

    def at(self, epoch: int, positions: np.ndarray) -> np.ndarray:
        """Return record numbers at `positions` of the epoch."""
        records = np.empty(len(positions), np.int64)
        numbers = positions // BLOCK
        for number in np.unique(numbers).tolist():
            here = numbers == number
            records[here] = self._block(epoch, number)[positions[here] - number * BLOCK]
        return records

    def _make_block(self, epoch: int, number: int) -> np.ndarray:
        """Return the record numbers of a block of positions."""
        key = derive_key(self._seed, MIX_KEY, epoch)
        size = min(BLOCK, self._size - number * BLOCK)
        with self._access.lock:  # it notes where it was
            packs, before = self._alternation.block(number, key, size)
        records = np.empty(size, np.int64)
        for pack in np.unique(packs).tolist():
            mine = np.flatnonzero(packs == pack)
            own = before[pack] + np.arange(len(mine))
            records[mine] = self._starts[pack] + self._taken(pack, epoch, own)
        return records

    def _taken(self, pack: int, epoch: int, own: np.ndarray) -> np.ndarray:
        """Return the records of a pack at some of its own positions in an epoch."""
        order = self._orders[pack]
        if epoch:
            own = own + epoch * int(self.counts[pack])
        cycles, positions = np.divmod(own, order.size)
        records = np.empty(len(own), np.int64)
        for cycle in np.unique(cycles).tolist():
            mine = cycles == cycle
            records[mine] = order.at(cycle, positions[mine])
        return records

    def described(self) -> str:
        """Describe shares, size of the epoch and the orders of the packs."""
        orders = ", ".join(f"{o.size} {o.described()}" for o in self._orders)
        # Saved states contain this text, so its words stay.
        return f"mixed {self._alternation.weights.tolist()} of {orders}, {self._size} places"


def whole_weights(shares: Sequence[Fraction]) -> np.ndarray:
    """Return shares as whole numbers, at most 2**30 in all; exact where that is possible."""
    total = sum(shares)
    parts = [share / total for share in shares]
    common = np.lcm.reduce(np.array([part.denominator for part in parts], object))
    if common > MOST_WEIGHT:
        common = MOST_WEIGHT
    edges = [round(sum(parts[:i], Fraction(0)) * common) for i in range(len(parts) + 1)]
    weights = np.diff(np.array(edges, np.int64))
    if (weights < 1).any():
        raise ValueError(
            f"a share of {float(min(parts)):g} is too small: expected at least 2**-30 of all"
        )
    return weights


class ClassOrder:
    """Records class by class: batches of some classes with the same number of images each.

    The classes come in cycles, each once a cycle, in another order every cycle; so do the images of
    each class.  Cycles go on from epoch to epoch.  A batch has no class twice, and a class no image
    twice in a batch, if there are enough.

    Parameters
    ----------
    labels : numpy.ndarray, (n,)
        The class of every record; NaN for those that are left out.
    images : int
        Images of a class in a batch.
    classes : int
        Classes of a batch.
    size : int, optional
        Positions of an epoch, rounded down to whole batches; as many as there are records if not
        given.
    seed : int
        Determines both permutations.

    Raises
    ------
    ValueError
        If there are fewer classes, or fewer positions than a batch has.

    Examples
    --------
    >>> labels = np.repeat(np.arange(10), 6)
    >>> order = ClassOrder(labels, images=3, classes=4)
    >>> order.size, [len(set(row)) for row in labels[order.at(0, np.arange(12))].reshape(4, 3)]
    (60, [1, 1, 1, 1])
    """

    repeats: ClassVar[bool] = True

    def __init__(
        self,
        labels: np.ndarray,
        images: int,
        classes: int,
        size: int | None = None,
        seed: int = 0,
    ) -> None:
        usable = np.flatnonzero(~np.isnan(labels))
        self._records = usable[np.argsort(labels[usable], kind="stable")]
        values, counts = np.unique(labels[usable], return_counts=True)
        if len(values) < classes:
            raise ValueError(
                f"there are {len(values)} classes, and a batch is to have {classes} different ones"
            )
        self._starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self._images, self._classes = images, classes
        whole = len(usable) if size is None else size
        self.batch: int = images * classes
        self._size = whole // self.batch * self.batch
        if not self._size:
            raise ValueError(
                f"an epoch of {whole} samples has no batch of {self.batch}: give a larger size of "
                "an epoch, or a smaller batch"
            )
        self._key = derive_key(seed, CLASS_KEY)

    @property
    def size(self) -> int:
        """Positions of an epoch."""
        return self._size

    def at(self, epoch: int, positions: np.ndarray) -> np.ndarray:
        """Return record numbers at `positions` of the epoch."""
        positions = positions + epoch * self._size
        return draw_by_class(
            self._key, self._starts, self._records, self._images, self._classes, positions
        )

    def described(self) -> str:
        """Describe the classes of the records, and the classes and images of a batch."""
        check = check_of(self._starts, self._records)
        # Saved states contain this text, so its words stay.
        return f"{self._images} of each of {self._classes} classes, {check}, {self._size} places"
