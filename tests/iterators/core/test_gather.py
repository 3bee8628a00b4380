"""Rows gathered into batches: those of NumPy, and numbers that are refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iterators.core.gather import gather_rows, gather_scaled


@given(st.data())
def test_rows_are_those_of_numpy(data):
    count, width = (
        data.draw(st.integers(1, 40)),
        data.draw(st.sampled_from([0, 1, 3, 64, 300, 700])),
    )
    table = np.random.default_rng(0).integers(0, 256, (count, width), np.uint8)
    if data.draw(st.booleans()):
        table = np.repeat(table, 2, axis=0)[::-2]  # rows apart, backwards
    rows = np.array(data.draw(st.lists(st.integers(0, count - 1), max_size=60)), np.int64)
    target = np.full((len(rows) + 1, width), 7, np.uint8)
    gather_rows(table, rows, target)
    assert np.array_equal(target[:-1], table[rows])
    assert (target[-1] == 7).all()
    scaled = np.full((len(rows) + 1, width), 7, np.float32)
    for vectors in (True, False):
        for factor in (1 / 256, 0.1):
            gather_scaled(table, rows, factor, scaled, vectors)
            assert np.array_equal(scaled[:-1], table[rows] * np.float32(factor))
            assert (scaled[-1] == 7).all()


@pytest.mark.parametrize("row", [-1, 5, 2**62, -(2**63)])
def test_rows_that_do_not_exist_are_refused_before_anything_is_written(row):
    table, target = np.ones((5, 4), np.uint8), np.zeros((2, 4), np.uint8)
    with pytest.raises(IndexError, match=f"row {row} of 5"):
        gather_rows(table, np.array([0, row]), target)
    assert not target.any()
    with pytest.raises(IndexError):
        gather_scaled(table, np.array([row]), 1.0, np.zeros((2, 4), np.float32))


def test_shapes_that_do_not_fit_are_refused():
    table = np.ones((5, 4), np.uint8)
    with pytest.raises(ValueError, match="do not fit"):
        gather_rows(table, np.arange(3), np.zeros((2, 4), np.uint8))
    with pytest.raises(ValueError, match="do not fit"):
        gather_rows(table, np.arange(2), np.zeros((2, 3), np.uint8))
    with pytest.raises(ValueError, match="side by side"):
        gather_rows(np.asfortranarray(table), np.arange(2), np.zeros((2, 4), np.uint8))
