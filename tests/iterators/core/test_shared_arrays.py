"""Neighbouring arrays in shared memory that become one."""

import numpy as np

from iterators.core.shared_arrays import JoinableMemory, joined


def test_neighbours_in_joinable_memory_become_one_array():
    memory = np.zeros(24, np.uint8).view(JoinableMemory)
    rows = list(np.frombuffer(memoryview(memory), np.float64).reshape(3, 1))
    array = joined(rows)
    assert array.shape == (3, 1)
    assert np.shares_memory(array, memory)
    assert joined(rows[::2]) is None  # not neighbours
    assert joined(list(np.zeros((3, 1)))) is None  # not joinable
