"""Labels of detection: the width of the longest one."""

import numpy as np

from iterators.images.augment.det_geometry import Longest, longest_listed


def test_the_longest_label_of_a_list():
    values = np.array([2, 5, 7, 0.0, 0.25, 0.5, 1.0], np.float32)
    found = longest_listed(np.array([0, 7]), values, 100)
    assert found == Longest(longest=7, too_long=-1, values=0)
