"""Rows that are handed out before their number is known become one array without gaps."""

import numpy as np

from recordio.text.growing_array import Table


def test_rows_that_are_left_out_leave_no_gap():
    table = Table(2, np.dtype("uint8"), 0)
    for value in range(3):
        array, row = table.reserve(2, 8)
        array[row : row + 2] = value
    table.leave_out(array, row + 1, 1)
    assert table.finish().tolist() == [[0, 0], [0, 0], [1, 1], [1, 1], [2, 2]]
