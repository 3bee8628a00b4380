"""Batches in the order of axes of ``layout=``, if the rows have another order.

`Axes` checks the two orders and applies the plan between them in both directions.  It neither
gathers rows nor knows what the axes mean.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core.layout import LayoutError, plan

#: How the axes of a batch are called by their number, if nobody says otherwise.
KNOWN_AXES = {1: "N", 2: "NC", 4: "NCHW"}


class Axes:
    """The axes of a batch as it is gathered, and as it is delivered.

    `own` has one letter for every axis of the rows as they are, the first being N; by default that
    of `KNOWN_AXES`.  `layout` has them in the order of the batch.  Errors call the array `name`.
    """

    def __init__(
        self, name: str, count: int, own: str | None = None, layout: str | None = None
    ) -> None:
        if own is not None and (len(own) != count or own[0] != "N" or not _distinct(own)):
            raise ValueError(
                f"data_layout={own!r}: {name} has {count} axes, so it needs {count} different "
                "letters, the first being N"
            )
        self.own: str | None = own or KNOWN_AXES.get(count)
        if layout is not None and self.own is None:
            raise ValueError(
                f"layout={layout!r}: {name} has {count} axes, and only those of 1, 2 or 4 axes "
                "have names unless data_layout gives them"
            )
        if layout is not None and sorted(layout) != sorted(self.own or ""):
            raise ValueError(f"layout={layout!r}: {name} has the axes {self.own!r}, in any order")
        self.layout: str | None = layout or self.own
        #: Whether batches are delivered as they are gathered.
        self.same: bool = self.own == self.layout
        self._order = tuple(range(count))
        if not self.same:
            assert self.own is not None
            assert self.layout is not None
            self._order = tuple(self.own.index(letter) for letter in self.layout)
            self._there = plan(self.own, self.layout)
            self._back = plan(self.layout, self.own)

    def shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Shape of the delivered batch for that of the gathered one."""
        return tuple(shape[axis] for axis in self._order)

    def convert(self, batch: np.ndarray) -> np.ndarray:
        """The batch to deliver, contiguous."""
        return batch if self.same else self._there(batch, contiguous=True)

    def rows(self, batch: np.ndarray) -> np.ndarray:
        """A view of a delivered batch with the rows along axis 0."""
        return batch if self.same else self._back(batch)


def _distinct(letters: str) -> bool:
    try:
        plan(letters, letters)
    except LayoutError:
        return False
    return True
