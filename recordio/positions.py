"""What may stand for the positions of many records.

Nothing here knows how many records there are, or where.
"""

from __future__ import annotations

import numpy as np

__all__ = ["as_positions"]


def as_positions(positions):
    """Positions as a contiguous int64 array; only integers are taken.

    Parameters
    ----------
    positions : sequence or array of int, shape (n,)

    Returns
    -------
    numpy.ndarray of int64

    Raises
    ------
    TypeError
        If they are no sequence of integers.
    IndexError
        If one is too large for any file.

    Examples
    --------
    >>> as_positions([2, -1]), as_positions(range(3))
    (array([ 2, -1]), array([0, 1, 2]))
    """
    if isinstance(positions, range):
        return np.arange(positions.start, positions.stop, positions.step, np.int64)
    array = np.asarray(positions)
    if array.ndim != 1:
        raise TypeError(f"positions must be a sequence of integers, not {type(positions).__name__}")
    if array.size == 0:
        return np.empty(0, np.int64)
    if array.dtype.kind not in "iu":
        raise TypeError(f"positions must be integers, not {array.dtype}")
    if array.dtype == np.uint64 and array.max() > np.iinfo(np.int64).max:
        raise IndexError(f"position {array.max()} is greater than any record file has records")
    return np.ascontiguousarray(array, np.int64)
