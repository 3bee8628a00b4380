"""Tables with a row for each record: put in the order of the file, and compared with others."""

from __future__ import annotations

import numpy as np


def rows_of(numbers: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Find the last row of a table with each of some numbers; -1 where there is none.

    >>> rows_of(np.array([7, 5, 6]), np.array([5, 6, 5])).tolist()
    [-1, 2, 1]
    """
    order = np.argsort(table, kind="stable")
    positions = np.searchsorted(table, numbers, "right", order) - 1
    rows = np.append(order, -1)[positions]  # a number of -1 finds the last
    return np.where(np.append(table, 0)[rows] == numbers, rows, -1)


def in_file_order(offsets: np.ndarray) -> np.ndarray:
    """Return ascending offsets; the same array if they are already."""
    if len(offsets) < 2 or bool((offsets[1:] > offsets[:-1]).all()):
        return offsets
    return np.sort(offsets)
