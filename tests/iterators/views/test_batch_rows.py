"""Rows of batches by number: checks, and whose memory they share."""

import numpy as np
import pytest

from iterators.views.batch_rows import row_numbers, row_range, take, window
from iterators.views.view import is_array


def test_row_numbers_are_checked():
    assert row_numbers([2, 0, -1], 3).tolist() == [2, 0, 2]
    assert row_numbers([True, False, True], 3).tolist() == [0, 2]
    assert row_range(1, 3, 3) == (1, 3)
    with pytest.raises(IndexError):
        row_range(1, 4, 3)


def test_a_window_shares_memory_and_taken_rows_do_not():
    x = np.arange(6).reshape(3, 2)
    assert np.shares_memory(window(x, 0, 1, 3), x)
    rows = take(x, 0, np.array([2, 2]))
    assert rows.tolist() == [[4, 5], [4, 5]]
    assert not np.shares_memory(rows, x)


def test_arrays_and_names_of_types():
    assert is_array(np.zeros(2))
    assert not is_array("float")
    assert not is_array(np.float32)
