"""Parts of datasets: the values of Chainer and the laws that they follow."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iterators import (
    SubDataset,
    get_cross_validation_datasets,
    get_cross_validation_datasets_random,
    split_dataset,
    split_dataset_n,
    split_dataset_n_random,
    split_dataset_random,
)
from iterators.testing.strategies import slices

SLICES = slices()


@given(st.integers(0, 10), st.data())
def test_a_part_is_a_slice_of_the_order(n, data):
    start = data.draw(st.integers(0, n))
    finish = data.draw(st.integers(start, n))
    order = data.draw(st.none() | st.permutations(range(n)))
    base = [f"example {i}" for i in range(n)]
    part = SubDataset(base, start, finish, order)
    expected = [base[i] for i in (range(n) if order is None else order)][start:finish]
    assert len(part) == len(expected)
    assert list(part) == expected
    index = data.draw(SLICES)
    assert part[index] == expected[index]
    for i in range(-len(part), len(part)):
        assert part[i] == expected[i]
    places = data.draw(
        st.lists(st.integers(-len(part), len(part) - 1)) if len(part) else st.just([])
    )
    assert part[places] == [expected[i] for i in places]
    for i in (len(part), -len(part) - 1):
        with pytest.raises(IndexError, match="out of range"):
            part[i]


@pytest.mark.parametrize(
    ("start", "finish", "order"), [(-1, 2, None), (0, 4, None), (2, 1, None), (0, 3, [0, 1])]
)
def test_parts_that_do_not_fit_are_errors(start, finish, order):
    with pytest.raises(ValueError):
        SubDataset([1, 2, 3], start, finish, order)


def test_a_part_refers_to_the_order_and_the_base():
    base, order = [1, 2, 3], [2, 1, 0]
    part = SubDataset(base, 0, 3, order)
    order[0] = 0
    base[0] = 9
    assert part[:] == [9, 2, 9]


@given(st.integers(0, 12), st.data())
def test_two_parts_are_the_whole(n, data):
    at = data.draw(st.integers(0, n))
    order = data.draw(st.none() | st.permutations(range(n)))
    first, second = split_dataset(range(n), at, order)
    assert len(first) == at
    assert first[:] + second[:] == list(order or range(n))


def test_where_to_cut_is_checked():
    assert len(split_dataset([1, 2], np.int64(1))[0]) == 1
    for at in (1.0, "1", None):
        with pytest.raises(TypeError):
            split_dataset([1, 2], at)
    for at in (-1, 3):
        with pytest.raises(ValueError, match=f"split_at={at}: expected 0 to 2"):
            split_dataset([1, 2], at)
        with pytest.raises(ValueError, match=f"first_size={at}: expected 0 to 2"):
            split_dataset_random([1, 2], at)
    with pytest.raises(TypeError, match="first_size=1.0: expected an integer"):
        split_dataset_random([1, 2], 1.0)


def test_random_splits_have_the_documented_values():
    first, second = split_dataset_random(range(10), 4, seed=0)
    assert first[:] == [2, 8, 4, 9]
    assert second[:] == [1, 6, 7, 3, 0, 5]
    first, second = split_dataset_random(range(50), 25)
    assert sorted(first[:] + second[:]) == list(range(50))


@given(st.integers(0, 20), st.integers(1, 6), st.integers(0, 3))
def test_equal_parts_drop_the_remainder(n, k, seed):
    parts = split_dataset_n(range(n), k)
    assert [part[:] for part in parts] == [
        list(range(i * (n // k), (i + 1) * (n // k))) for i in range(k)
    ]
    shuffled = split_dataset_n_random(range(n), k, seed=seed)
    order = np.random.RandomState(seed).permutation(n)
    assert sum((part[:] for part in shuffled), []) == order[: n // k * k].tolist()
    with pytest.raises(ValueError):
        split_dataset_n(range(n), 0)


def test_cross_validation_has_the_documented_values():
    folds = get_cross_validation_datasets(range(7), 3)
    assert [test[:] for _, test in folds] == [[4, 5, 6], [2, 3], [0, 1]]
    assert [train[:] for train, _ in folds] == [[0, 1, 2, 3], [4, 5, 6, 0, 1], [2, 3, 4, 5, 6]]


@given(st.integers(1, 15), st.data())
def test_cross_validation_follows_chainers_rotation(n, data):
    k = data.draw(st.integers(1, n))
    order = list(data.draw(st.permutations(range(n))))
    borders = [n * i // k for i in range(k + 1)]
    folds = get_cross_validation_datasets(range(n), k, order)
    for i, (train, test) in zip(reversed(range(k)), folds, strict=True):
        size = borders[i + 1] - borders[i]
        assert train[:] == order[: n - size]
        assert test[:] == order[n - size :]
        order = order[n - size :] + order[: n - size]
    assert sorted(i for _, test in folds for i in test) == list(range(n))


def test_random_cross_validation_shuffles_by_the_seed():
    order = np.random.RandomState(3).permutation(8)
    expected = get_cross_validation_datasets(range(8), 3, order)
    found = get_cross_validation_datasets_random(range(8), 3, seed=3)
    assert [(a[:], b[:]) for a, b in found] == [(a[:], b[:]) for a, b in expected]


def test_folds_are_checked():
    for k in (0, 4):
        with pytest.raises(ValueError, match="n_folds"):
            get_cross_validation_datasets(range(3), k)
    with pytest.raises(ValueError, match="order"):
        get_cross_validation_datasets(range(3), 2, [0, 1])
    with pytest.raises(TypeError, match="n_folds"):
        get_cross_validation_datasets(range(3))
    with pytest.warns(DeprecationWarning, match="n_folds"):
        assert len(get_cross_validation_datasets(range(3), n_fold=2)) == 2
    with pytest.warns(DeprecationWarning, match="n_folds"):
        assert len(get_cross_validation_datasets_random(range(3), n_fold=2)) == 2


def test_folds_share_one_order():
    folds = get_cross_validation_datasets(range(1000), 1000)
    orders = [part._order for fold in folds for part in fold]
    assert all(order.base is orders[0].base for order in orders)
