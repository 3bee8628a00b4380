"""Pairs of hashes that are near, and the groups they make."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordio.operations import near
from recordio.operations.near import groups_of, near_pairs


@pytest.mark.parametrize("distance", range(near.MOST_DISTANCE + 1))
def test_the_pairs_are_those_of_comparing_all(distance, monkeypatch):
    monkeypatch.setattr(near, "MOST_PAIRS", 100)
    rng = np.random.default_rng(distance)
    hashes = rng.integers(0, 2**64, 300, np.uint64)
    copies = hashes.copy()
    for _ in range(distance):
        copies ^= np.uint64(1) << rng.integers(0, 64, 300).astype(np.uint64)
    hashes = np.unique(np.concatenate([hashes, copies]))
    expected = np.bitwise_count(hashes[:, None] ^ hashes) <= distance
    found = np.eye(len(hashes), dtype=bool)
    for pairs in near_pairs(hashes, distance):
        found[pairs[:, 0], pairs[:, 1]] = found[pairs[:, 1], pairs[:, 0]] = True
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("count", [0, 1])
def test_few_hashes(count):
    assert list(near_pairs(np.arange(count, dtype=np.uint64), 3)) == []


@given(
    st.integers(1, 12).flatmap(
        lambda count: st.tuples(
            st.just(count),
            st.lists(
                st.lists(
                    st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)), min_size=1
                ),
                max_size=4,
            ),
        )
    )
)
def test_groups_are_what_pairs_connect(drawn):
    count, pairs = drawn
    group = list(range(count))
    for one, other in (pair for some in pairs for pair in some):
        low, high = sorted((group[one], group[other]))
        group = [low if name == high else name for name in group]
    assert groups_of(count, iter([np.array(some) for some in pairs])).tolist() == group
