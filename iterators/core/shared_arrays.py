"""Arrays that lie side by side in memory made for it, joined to one array without a copy.

Examples that arrive from another process are neighbouring views of one piece of memory; stacking
them then needs no copy.  Only `JoinableMemory` is treated so: examples that happen to be rows of
somebody's array are not, because a batch must not alias a data set.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


class JoinableMemory(np.ndarray):
    """Memory whose arrays may be joined: ``np.frombuffer(...).view(JoinableMemory)``."""


def joined(column: Sequence[np.ndarray]) -> np.ndarray | None:
    """Join arrays to one with a new first axis, over the same memory; None if that cannot be."""
    first = column[0]
    base: Any = first.base
    if type(base) is not np.ndarray or type(base.base) is not memoryview:
        return None
    if type(base.base.obj) is not JoinableMemory or base.dtype != first.dtype or not first.size:
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
    offset = (start - address(base)) // first.itemsize
    return base[offset : offset + len(column) * size].reshape(len(column), *shape)


def address(array: np.ndarray) -> int:
    """Return the address of the first element."""
    return array.__array_interface__["data"][0]
