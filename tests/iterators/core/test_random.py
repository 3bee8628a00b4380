"""Random numbers of a key and a position: Philox, permutations and draws."""

import math
from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from iterators.core.random import derive_key, permute, philox


def p_value(counts, expected):
    """Chance of counts at least as uneven as these if all were equally likely."""
    statistic = ((np.asarray(counts) - expected) ** 2 / expected).sum()
    return chi2.sf(statistic, np.size(counts) - 1)


@pytest.mark.parametrize(
    ("key", "counter", "words"),
    [  # the authors' known-answer tests for philox4x32-10
        (0, (0, 0, 0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        (
            0xFFFFFFFFFFFFFFFF,
            (0xFFFFFFFF,) * 4,
            (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD),
        ),
        (
            0x299F31D0_A4093822,
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_philox_gives_the_published_answers(key, counter, words):
    assert philox(key, counter) == words


@given(st.integers(1, 3000), st.integers(0, 2**64 - 1))
def test_every_value_comes_exactly_once(n, key):
    assert np.array_equal(np.sort(permute(key, n, np.arange(n))), np.arange(n))


@pytest.mark.parametrize("n", [4096, 4097, 100_000])
def test_large_ranges_are_permuted_too(n):
    assert np.array_equal(np.sort(permute(3, n, np.arange(n))), np.arange(n))


def test_positions_are_evaluated_one_by_one():
    whole = permute(9, 10**6, np.arange(1000))
    assert np.array_equal(permute(9, 10**6, [5, 999, 0]), whole[[5, 999, 0]])


def test_a_range_beyond_memory_needs_none():
    positions = np.array([0, 1, 2**60])
    values = permute(1, 2**61, positions)
    assert len(set(values.tolist())) == 3
    assert (values >= 0).all()
    assert (values < 2**61).all()


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
def test_all_orders_of_a_few_items_are_equally_likely(n):
    trials = 200 * math.factorial(n)
    orders = Counter(tuple(permute(derive_key(2, k), n, range(n)).tolist()) for k in range(trials))
    counts = [orders[order] for order in permutations(range(n))]
    assert p_value(counts, 200) > 1e-4


@pytest.mark.parametrize("n", [7, 16, 33, 100])
def test_positions_and_neighbours_are_uniform(n):
    trials = 6000
    at, after = np.zeros((n, n)), np.zeros((n, n))
    for k in range(trials):
        order = permute(derive_key(4, k), n, np.arange(n))
        at[np.arange(n), order] += 1
        after[order[:-1], order[1:]] += 1
    assert p_value(at, trials / n) > 1e-4
    off_diagonal = after[~np.eye(n, dtype=bool)]
    assert p_value(off_diagonal, trials / n) > 1e-4


def test_bad_ranges_and_positions_are_refused():
    with pytest.raises(ValueError, match="2\\*\\*62"):
        permute(0, 0, [0])
    with pytest.raises(IndexError, match="\\[0, 5\\)"):
        permute(0, 5, [5])
    with pytest.raises(IndexError):
        permute(0, 5, [-1])


def test_keys_of_different_purposes_differ():
    keys = {
        derive_key(seed, purpose, epoch)
        for seed in range(10)
        for purpose in range(10)
        for epoch in range(10)
    }
    assert len(keys) == 1000
    assert derive_key(1, 0) != derive_key(1, 0, 0)
