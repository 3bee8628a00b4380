"""One reading of indices, judged by what lists do."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iterators.core.indexing import (
    compose_rows,
    examples_at,
    resolve_index,
    resolve_rows,
    rows_as_index,
)
from iterators.testing.strategies import slices

torch = pytest.importorskip("torch")

SLICES = slices()


def as_list(rows):
    return list(map(int, rows))


@given(st.integers(0, 12), SLICES)
def test_slices_mean_what_they_mean_for_lists(length, index):
    assert resolve_index(index, length) == range(length)[index]
    assert list(resolve_rows(index, length)) == list(range(length))[index]


@given(st.integers(1, 12), st.data())
def test_integers_and_lists_of_them_mean_what_they_mean_for_lists(length, data):
    rows = data.draw(st.lists(st.integers(-length, length - 1)))
    expected = [list(range(length))[i] for i in rows]
    for index in (
        rows,
        np.array(rows, np.int64),
        np.array(rows, np.int8),
        torch.tensor(rows).int(),
    ):
        assert as_list(resolve_rows(index, length)) == expected
    for i, row in zip(rows, expected, strict=True):
        assert resolve_rows(i, length) == resolve_rows(np.int32(i), length) == row


@given(st.lists(st.booleans(), min_size=1, max_size=12))
def test_masks_choose_the_rows_where_they_are_true(mask):
    expected = [i for i, wanted in enumerate(mask) if wanted]
    for index in (mask, list(np.array(mask)), np.array(mask), torch.tensor(mask)):
        assert as_list(resolve_index(index, len(mask))) == expected
        assert as_list(resolve_rows(index, len(mask))) == expected
        for length in (len(mask) - 1, len(mask) + 1):
            with pytest.raises(ValueError, match="mask"):
                resolve_index(index, length)


def test_integers_are_passed_on_as_they_are():
    big = np.int64(-7)
    assert resolve_index(big, 3) is big
    index = [5, -9, np.int8(3)]
    assert resolve_index(index, 3) is index
    assert resolve_index(range(4, 0, -1), 2) == range(4, 0, -1)


def test_an_empty_list_is_no_mask():
    assert resolve_index([], 5) == []
    assert len(resolve_rows([], 5)) == len(resolve_rows(np.array([]), 5)) == 0
    with pytest.raises(ValueError, match="mask"):
        resolve_index(np.array([], bool), 5)


def test_a_list_of_booleans_and_integers_is_read_as_integers():
    assert as_list(resolve_rows([True, 0, 2], 5)) == [1, 0, 2]


@pytest.mark.parametrize(
    "index",
    [
        1.0,
        "1",
        None,
        (0, 1),
        [0.0],
        ["a"],
        [[0]],
        [None],
        [np.array([1])],
        np.array([1.5]),
        np.zeros((2, 2), int),
        np.array(3),
        np.array(["a"]),
        np.array([None]),
        {0},
        np.float64(1),
        np.bool_(True),
        torch.tensor([0.5]),
        object(),
    ],
)
@pytest.mark.parametrize("resolve", [resolve_index, resolve_rows])
def test_everything_else_is_a_type_error(index, resolve):
    with pytest.raises(TypeError):
        resolve(index, 5)


@pytest.mark.parametrize(
    "index",
    [
        5,
        -6,
        [5],
        [-6, 0],
        range(3, 7),
        range(-6, 3),
        np.array([0, 5]),
        np.array([2**63], np.uint64),
        np.array([2**64 - 1], np.uint64),
        [2**70],
        2**70,
        [-(2**63)],
    ],
)
def test_rows_out_of_range_are_index_errors(index):
    with pytest.raises(IndexError, match="out of range"):
        resolve_rows(index, 5)


def test_a_step_of_zero_is_a_value_error():
    with pytest.raises(ValueError):
        resolve_index(slice(None, None, 0), 5)


def test_a_resolved_array_is_not_the_users():
    index = np.array([-1, 0])
    resolve_rows(index, 3)
    assert index.tolist() == [-1, 0]


@given(st.integers(0, 12), SLICES, st.data())
def test_rows_of_rows_are_the_rows_of_a_list_of_a_list(length, first, data):
    outer = data.draw(
        st.sampled_from(
            [resolve_rows(first, length), np.array(list(range(length))[first], np.int64)]
        )
    )
    second = data.draw(SLICES)
    places = data.draw(st.lists(st.integers(0, len(outer) - 1)) if len(outer) else st.just([]))
    for inner in (resolve_rows(second, len(outer)), np.array(places, np.int64)):
        found = compose_rows(outer, inner)
        assert as_list(found) == [as_list(outer)[i] for i in as_list(inner)]
        if isinstance(outer, range) and isinstance(inner, range):
            assert isinstance(found, range)


@given(st.integers(0, 12), SLICES)
def test_rows_become_an_index_for_lists(length, index):
    everything = list(range(length))
    rows = resolve_rows(index, length)
    assert everything[rows_as_index(rows)] == everything[index]
    assert rows_as_index(np.array([2, 0])) == [2, 0]


def test_examples_are_read_at_once_where_the_dataset_can():
    class Fast:
        def __getitems__(self, indices):
            return ["at once", list(indices)]

    assert examples_at(Fast(), [1, 2]) == ["at once", [1, 2]]
    assert examples_at("abc", [2, 2, -1]) == ["c", "c", "c"]
