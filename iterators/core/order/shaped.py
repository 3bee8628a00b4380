"""Batches of many shapes: one that is drawn for each batch, or that of every image."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ..random import derive_key
from .cutting import Tail
from .plans import BatchPlan

__all__ = ["DrawnShapePlan", "ImageSizePlan"]

#: "shape": keeps the key of shapes apart from those of orders and augmentation.
SHAPE_KEY = 0x7368617065


@dataclass(frozen=True)
class DrawnShapePlan(BatchPlan):
    """An epoch cut into batches, for each of which one height and width is drawn.

    The draw depends on `seed`, the epoch and the number of the batch in it, which all parts count
    alike.

    >>> from iterators.core.order import SequentialOrder
    >>> plan = DrawnShapePlan(SequentialOrder(0, 10), 2, shapes=((32, 32), (48, 48)))
    >>> [plan.sizes(0, number, 0, None)[0] for number in range(5)]
    [32, 48, 32, 32, 48]
    """

    shaped: ClassVar[bool] = True
    shapes: tuple[tuple[int, int], ...] = ()
    seed: int = 0

    def sizes(self, epoch: int, number: int, done: int, rows: np.ndarray) -> tuple[int, int]:
        """Return height and width of all images of a batch."""
        step = done // (self.batch_size * self.order.stride) + number
        return self.shapes[derive_key(self.seed, SHAPE_KEY, epoch, step) % len(self.shapes)]


@dataclass(frozen=True, eq=False)
class ImageSizePlan(BatchPlan):
    """An epoch cut into batches of images that have a size each; a short batch is no longer.

    `image_sizes` are height and width of every record.
    """

    shaped: ClassVar[bool] = True
    image_sizes: np.ndarray | None = None

    def over(self, order: Any, tail: Tail, chosen: np.ndarray | None = None) -> ImageSizePlan:
        """Return a plan for another order; see `BatchPlan.over`."""
        assert self.image_sizes is not None
        sizes = self.image_sizes if chosen is None else self.image_sizes[chosen]
        return replace(self, order=order, tail=tail, image_sizes=sizes)

    def rows(self, epoch: int, number: int, done: int = 0) -> tuple[np.ndarray, int]:
        """Return record numbers of one batch and how many of its positions are padding."""
        rows, pad = super().rows(epoch, number, done)
        return rows, pad if self.tail == "wrap" else 0

    def sizes(self, epoch: int, number: int, done: int, rows: np.ndarray) -> np.ndarray:
        """Return height and width of every image of a batch."""
        assert self.image_sizes is not None
        return self.image_sizes[rows]

    def slots(self, epoch: int, number: int, done: int) -> int:
        """Return the number of images of a batch."""
        return min(self.batch_size, len(super().rows(epoch, number, done)[0]))
