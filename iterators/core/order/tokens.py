"""Batches of equal numbers of patches: a drawn sequence length sets the number of images.

The length is a pure function of (epoch, positions done), so that all parts have the same at each
step and any number of parts can go on where others stopped.  Every image keeps its aspect.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..random import derive_key
from .image_shapes import count_steps, draw, patch_sizes
from .parts import DealtOrder
from .plans import BatchPlan

LENGTH_KEY = 0x6C656E677468  # "length"


def naflex_size(width: int, height: int, patch: int, length: int) -> tuple[int, int]:
    """Find height and width of an image that is resized to at most `length` patches.

    They keep its aspect as well as multiples of `patch` can, and are those of timm's NaFlex loader.

    Parameters
    ----------
    width, height : int
        Pixels of the image, at least 1.
    patch : int
        Pixels of the sides of a patch.
    length : int
        Patches at most.

    Examples
    --------
    >>> naflex_size(640, 480, 16, 576)
    (336, 432)
    """
    sizes = np.array([[width, height]], np.uint32)
    down, across = patch_sizes(sizes, patch, length)[0].tolist()
    return down, across


@dataclass(frozen=True, eq=False, kw_only=True)
class TokenPlan(BatchPlan):
    """An epoch cut into batches of as many patches each.

    Parameters
    ----------
    order : DealtOrder
        What is cut.
    batch_size : int
        The most images that a batch has.
    tail : {"wrap", "pad", "drop"}
        As for `BatchPlan`, for the last batch of an epoch.
    patch : int
        Pixels of the sides of a patch.
    lengths : sequence of int
        Patches of an image at most; for each batch one is drawn.
    tokens : int
        Patches of a batch at most, unless one image has more.
    seed : int
        Determines the lengths.
    """

    fills: ClassVar[bool] = True
    shaped: ClassVar[bool] = True
    order: DealtOrder
    patch: int
    lengths: Sequence[int]
    tokens: int
    seed: int = 0

    def images(self, length: int) -> int:
        """Return the number of images in a batch of a sequence length."""
        return min(max(self.tokens // length, 1), self.batch_size)

    def length(self, epoch: int, number: int, done: int) -> int:
        """Return the sequence length of a batch."""
        return self._length(epoch, self._done(epoch, number, done))

    def count(self, epoch: int = 0) -> int:
        """Return the number of samples of this part in an epoch."""
        return self.order.count() - self.order.count(self._steps(0, epoch)[1])

    def batches(self, done: int = 0, epoch: int = 0) -> int:
        """Return the number of batches left behind the first `done` positions of an epoch."""
        return self._steps(done, epoch)[0]

    def any_left(self, done: int = 0, epoch: int = 0) -> bool:
        """Return whether a batch is left behind the first `done` positions of an epoch."""
        if self.tail == "drop":
            return self.behind(epoch, done) <= self.order.whole.size
        return done < self.order.whole.size

    def is_over(self, done: int, epoch: int = 0) -> bool:
        """Return whether no part has a batch left: all have as many."""
        return not self.any_left(done, epoch)

    def behind(self, epoch: int, done: int) -> int:
        """Return the `done` behind the batch that begins there."""
        return done + self.images(self._length(epoch, done)) * self.order.stride

    def rows(self, epoch: int, number: int, done: int = 0) -> tuple[np.ndarray, int]:
        """Return record numbers of one batch and how many of its positions are padding."""
        done = self._done(epoch, number, done)
        mine, fills = self._pieces_of(epoch, done)
        rows = self.order.take(epoch, 0, mine, done)
        pad = self.images(self._length(epoch, done)) - mine
        return np.concatenate([rows, self.order.whole.at(epoch, fills)]), pad

    def draws(self, number: int, done: int = 0, epoch: int = 0) -> np.ndarray:
        """Return numbers that tell the occurrences of a record apart; see `BatchPlan.draws`."""
        done = self._done(epoch, number, done)
        mine, fills = self._pieces_of(epoch, done)
        more = fills if self.order.whole.repeats else np.zeros(len(fills), np.int64)
        return np.concatenate([self.order.draws(0, mine, done), more])

    def slots(self, epoch: int, number: int, done: int) -> int:
        """Return the number of slots of a batch."""
        return self.images(self.length(epoch, number, done))

    def described(self) -> str:
        """Describe what must stay the same for a saved position to stay valid."""
        lengths = ", ".join(map(str, self.lengths))
        return f"patches of {self.patch}, {lengths} in an image, {self.tokens} in a batch"

    def _pieces_of(self, epoch: int, done: int) -> tuple[int, np.ndarray]:
        """Count this part's images of a batch, and find the positions that fill it."""
        size = self.images(self._length(epoch, done))
        mine = min(self.order.count(done), size)
        pad = size - mine if self.tail == "wrap" else 0
        # From the start of the same epoch, by each part from another position.
        order = self.order
        fills = np.arange(pad) * order.num_parts + order.part_index
        return mine, fills % order.whole.size

    def _steps(self, done: int, epoch: int) -> tuple[int, int]:
        """Count the batches behind some positions, and find where the last of them ends."""
        sizes = [self.images(length) * self.order.stride for length in self.lengths]
        end, drop = self.order.whole.size, self.tail == "drop"
        return count_steps(self._key(epoch), done, end, np.array(sizes, np.int64), drop)

    def _length(self, epoch: int, done: int) -> int:
        return self.lengths[draw(self._key(epoch), done, len(self.lengths))]

    def _key(self, epoch: int) -> int:
        return derive_key(self.seed, LENGTH_KEY, epoch)
