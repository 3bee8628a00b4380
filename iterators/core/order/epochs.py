"""Orders of a whole epoch: the file, permutations, blocks and weights.

An order is a pure function from the positions of an epoch to record numbers; it stores a few
integers, or what its weights and blocks take, whatever the number of records.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

import numpy as np

from ..random import derive_key, permute, uniform

# Keys of orders, apart from one another and from those of augmentation.
SHUFFLE_KEY = 0x6F72646572  # "order"
BLOCK_KEY = 0x626C6F636B  # "block"
WEIGHT_KEY = 0x776569676874  # "weight"


class EpochOrder(Protocol):
    """Order of a whole epoch: a pure function of epoch and position."""

    @property
    def size(self) -> int:
        """Positions of an epoch."""

    @property
    def repeats(self) -> bool:
        """True if a record may come more than once in an epoch."""

    def at(self, epoch: int, positions: np.ndarray) -> np.ndarray:
        """Return record numbers at `positions`, each in ``[0, size)``."""

    def described(self) -> str:
        """Describe all but the seed that must stay the same for a saved position to stay valid."""


def check_of(*arrays: np.ndarray) -> str:
    """Return a short text that tells these arrays from others."""
    check = 0
    for array in arrays:
        check = zlib.crc32(np.ascontiguousarray(array).data, check)
    return f"{check:08x}"


@dataclass(frozen=True)
class PlainOrder:
    """Records as they lie in the file, the same in every epoch.

    Parameters
    ----------
    size : int
        Number of records, at least 1.

    Examples
    --------
    >>> PlainOrder(5).at(epoch=3, positions=np.arange(2, 5))
    array([2, 3, 4])
    """

    size: int
    repeats: ClassVar[bool] = False

    def at(self, epoch: int, positions: np.ndarray) -> np.ndarray:
        """Return the `positions` themselves."""
        return np.array(positions, np.int64)

    def described(self) -> str:
        """Say that nothing is shuffled."""
        return "in order"


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
    >>> sorted(ShuffledOrder(5).at(epoch=3, positions=np.arange(5)).tolist())
    [0, 1, 2, 3, 4]
    """

    size: int
    seed: int = 0
    repeats: ClassVar[bool] = False

    def at(self, epoch: int, positions: np.ndarray) -> np.ndarray:
        """Return record numbers at `positions` of the epoch."""
        return permute(derive_key(self.seed, SHUFFLE_KEY, epoch), self.size, positions)

    def described(self) -> str:
        """Say that it is a permutation."""
        return "shuffled"


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
    together : int
        Shuffle the records of so many blocks, as they follow one another, as if they were one.

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
    together: int = 1
    _lengths: np.ndarray = field(init=False, repr=False, compare=False)
    # The blocks of the epoch that was asked for last, in its order, and where each ends there.
    _arranged: tuple[int, np.ndarray, np.ndarray] | None = field(
        default=None, init=False, repr=False, compare=False
    )
    repeats: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "_lengths", np.diff(self.edges))

    @property
    def size(self) -> int:
        """Number of records."""
        return int(self.edges[-1])

    def at(self, epoch: int, positions: np.ndarray) -> np.ndarray:
        """Return record numbers at `positions` of the epoch."""
        blocks, ends = self._blocks(epoch)
        if self.shuffle and self.together > 1:
            positions = self._mixed(epoch, positions, ends)
        visit = np.searchsorted(ends, positions, side="right")
        records = np.empty(len(positions), np.int64)
        for i in np.unique(visit):
            block, mine = int(blocks[i]), visit == i
            inside = positions[mine] - (ends[i] - self._lengths[block])
            if self.shuffle and self.together == 1:
                key = derive_key(self.seed, SHUFFLE_KEY, epoch, block)
                inside = permute(key, int(self._lengths[block]), inside)
            records[mine] = self.edges[block] + inside
        return records

    def _mixed(self, epoch: int, positions: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """Exchange positions within each run of blocks that are shuffled together."""
        stops = np.append(ends[self.together - 1 : -1 : self.together], ends[-1])
        runs = np.searchsorted(stops, positions, side="right")
        mixed = np.empty(len(positions), np.int64)
        for run in np.unique(runs).tolist():
            mine, first = runs == run, int(stops[run - 1]) if run else 0
            key = derive_key(self.seed, SHUFFLE_KEY, epoch, run)
            mixed[mine] = first + permute(key, int(stops[run]) - first, positions[mine] - first)
        return mixed

    def _blocks(self, epoch: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the blocks in the order of an epoch, and the positions where they end."""
        arrangement = self._arranged
        if arrangement is None or arrangement[0] != epoch:
            count = len(self._lengths)
            key = derive_key(self.block_seed, BLOCK_KEY, epoch)
            blocks = permute(key, count, np.arange(count))
            arrangement = epoch, blocks, np.cumsum(self._lengths[blocks])
            object.__setattr__(self, "_arranged", arrangement)
        return arrangement[1:]

    def described(self) -> str:
        """Describe the edges of the blocks and the seeds of their order."""
        together = f", {self.together} together" if self.together > 1 else ""
        text = f"blocks {check_of(self.edges)}, seed {self.block_seed}, shuffle {self.shuffle}"
        return text + together


@dataclass(frozen=True)
class WeightedOrder:
    """Records drawn with replacement, each as often as its weight says.

    Parameters
    ----------
    weights : array_like of float
        One per record, not negative, not all zero.
    seed : int
        Every position of every epoch is drawn on its own, from the seed, the epoch and the
        position.

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
        """Positions of an epoch: as many as there are records."""
        return len(self._cumulated)

    def at(self, epoch: int, positions: np.ndarray) -> np.ndarray:
        """Return record numbers at `positions` of the epoch."""
        numbers = uniform(derive_key(self.seed, WEIGHT_KEY, epoch), positions)
        return np.searchsorted(self._cumulated, numbers * self._cumulated[-1], side="right")

    def described(self) -> str:
        """Describe the weights by a checksum."""
        return f"weights {check_of(self.weights)}"
