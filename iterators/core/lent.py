"""Arrays that lie side by side in lent memory, seen as one array.

Examples that arrive from another process are neighbouring views of one piece of memory; stacking
them then needs no copy.  Only memory that was lent for this purpose is treated so: examples that
happen to be rows of somebody's array are not, because a batch must not alias a data set.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["LentArray", "joined"]


class LentArray(np.ndarray):
    """Memory whose arrays may be joined; make it with ``np.frombuffer(...).view(LentArray)``."""


def joined(column: Sequence[np.ndarray]) -> np.ndarray | None:
    """Join arrays to one with a new first axis, over the same memory; None if that cannot be."""
    first = column[0]
    base: Any = first.base
    if type(base) is not np.ndarray or type(base.base) is not memoryview:
        return None
    if type(base.base.obj) is not LentArray or base.dtype != first.dtype or not first.size:
        return None
    shape, size, start = first.shape, first.size, address(first)
    for number, array in enumerate(column):
        if (
            type(array) is not np.ndarray
            or array.base is not base
            or array.shape != shape
            or not array.flags.c_contiguous
            or address(array) != start + number * first.nbytes
        ):
            return None
    place = (start - address(base)) // first.itemsize
    return base[place : place + len(column) * size].reshape(len(column), *shape)


def address(array: np.ndarray) -> int:
    """Return the address of the first element."""
    return array.__array_interface__["data"][0]
