"""Fields of samples: selection, rows and stacks."""

import numpy as np

from iterators.samples.fields import is_selector
from iterators.samples.region import rows_of
from iterators.samples.sequence_region import stacked


def test_slices_and_lists_select_and_arrays_are_data():
    assert is_selector(slice(0, 3))
    assert is_selector([0, 2])
    assert not is_selector(np.zeros(3))


def test_rows_by_number_and_by_mask():
    assert rows_of([0, -1], 5).tolist() == [0, 4]
    assert rows_of([True, False, True], 3).tolist() == [0, 2]


def test_equal_rows_are_stacked_and_others_stay_a_list():
    assert stacked([np.zeros(2), np.ones(2)]).shape == (2, 2)
    assert stacked([1, 2]).tolist() == [1, 2]
    assert stacked([[1], [2, 3]]) == [[1], [2, 3]]
