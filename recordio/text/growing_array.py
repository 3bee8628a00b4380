"""An array of rows that grows while it is filled, for text whose number of rows is not yet known.

Rows are handed out to be filled in any order and by any thread; nothing here fills them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Table:
    """Rows of an array that grows while they are filled.

    Rows lie in one array while it lasts; where the first guess was too small, in further ones, and
    nothing moves before all are filled.

    `stored_bytes` is the size of the text, to guess the number of rows from that of the first; 0 if
    it is not known.
    """

    def __init__(self, columns: int, dtype: np.dtype[Any], stored_bytes: int) -> None:
        self._columns = columns
        self._dtype = dtype
        self._stored_bytes = stored_bytes
        self._arrays: list[NDArray[Any]] = []
        self._used: list[int] = []  # rows handed out of each array
        self._gaps: dict[int, list[tuple[int, int]]] = {}  # id of an array: first row, rows
        self.reserved: int = 0  # rows handed out
        self._bytes = 0  # of the text that they come from

    def reserve(self, rows: int, length: int) -> tuple[NDArray[Any], int]:
        """Hand out rows for `length` bytes of text; one thread at a time may call it.

        It returns an array of shape ``(n, columns)`` and the first of the rows in it.
        """
        self.reserved += rows
        self._bytes += length
        if not self._arrays or len(self._arrays[-1]) - self._used[-1] < rows:
            # Memory that is never touched costs nothing, hence a little more than expected.
            rest = max(self._stored_bytes - self._bytes, 0)
            expected = int(1.03 * rest * self.reserved / self._bytes)
            if self._arrays:
                expected = max(expected, self.reserved)
            self._arrays.append(np.empty((rows + expected, self._columns), self._dtype))
            self._used.append(0)
        row = self._used[-1]
        self._used[-1] += rows
        return self._arrays[-1], row

    def leave_out(self, array: NDArray[Any], row: int, rows: int) -> None:
        """Note rows that were handed out and not filled; in the order in which they were."""
        self._gaps.setdefault(id(array), []).append((row, rows))

    def finish(self) -> NDArray[Any]:
        """Make one array of all rows; it is the end of the table.

        Nobody may use an array of `reserve` any more.
        """
        if not self._arrays:
            return np.empty((0, self._columns), self._dtype)
        used = [
            _close_gaps(array, count, self._gaps.get(id(array), ()))
            for array, count in zip(self._arrays, self._used, strict=True)
        ]
        first, *later_arrays = self._arrays
        self._arrays = []
        # Shrinks or grows in place where the system can, and few rows are in other arrays.
        first.resize((sum(used), self._columns), refcheck=False)
        row = used[0]
        later_arrays.reverse()
        for count in used[1:]:
            first[row : row + count] = later_arrays.pop()[:count]  # whose memory is free then
            row += count
        return first


def _close_gaps(array: NDArray[Any], used: int, gaps: Sequence[tuple[int, int]]) -> int:
    """Move rows together; returns how many are left."""
    left = gaps[0][0] if gaps else used
    for number, (row, rows) in enumerate(gaps):
        behind = row + rows
        stop = gaps[number + 1][0] if number + 1 < len(gaps) else used
        array[left : left + stop - behind] = array[behind:stop]
        left += stop - behind
    return left
