"""Iteration modes: which rows make up which batch, and when there are none to be had."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iterators.spaces.modes import (
    MODES,
    EvenSequencesSubsetIterator,
    SequentialSubsetIterator,
    alike,
    as_even,
    generator,
    has_uniform_batch_size,
    is_stochastic,
    resolve_iterator_class,
)

SEQUENTIAL = ["sequential", "shuffled_sequential", "batchwise_shuffled_sequential"]
EVEN = [f"even_{mode}" for mode in SEQUENTIAL]


def rows(batch):
    return np.arange(1000)[batch].tolist()


def sizes(mode, size, batch_size=None, num_batches=None):
    return [len(rows(batch)) for batch in MODES[mode](size, batch_size, num_batches)]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"batch_size": 3}, [3, 3, 3, 1]),
        ({"batch_size": 3, "num_batches": 2}, [3, 3]),
        ({"num_batches": 4}, [3, 3, 3, 1]),
        ({"num_batches": 3}, [4, 4, 2]),
        ({"batch_size": 20}, [10]),
    ],
)
def test_ten_examples(arguments, expected):
    assert sizes("sequential", 10, **arguments) == expected
    assert sizes("shuffled_sequential", 10, **arguments) == expected
    assert sorted(sizes("batchwise_shuffled_sequential", 10, **arguments)) == sorted(expected)


@pytest.mark.parametrize("mode", EVEN)
def test_ten_examples_evenly(mode):
    assert sizes(mode, 10, 3) == [3, 3, 3]
    assert sizes(mode, 10, None, 4) == [2, 2, 2, 2]
    assert sizes(mode, 2, 3) == []
    with pytest.raises(ValueError):
        MODES[mode](10, 3, 4)
    with pytest.raises(ValueError):
        MODES[mode](3, None, 4)


@pytest.mark.parametrize("mode", SEQUENTIAL)
def test_too_many_batches(mode):
    with pytest.raises(ValueError, match="10 examples"):
        MODES[mode](10, 3, 5)


@pytest.mark.parametrize("mode", SEQUENTIAL + EVEN)
def test_either_number_is_needed(mode):
    for arguments in ((), (0,), (None, 0)):
        with pytest.raises(ValueError):
            MODES[mode](10, *arguments)


@pytest.mark.parametrize("mode", SEQUENTIAL)
@given(st.integers(1, 60), st.integers(1, 70), st.booleans())
def test_every_row_comes_once(mode, size, number, by_count):
    arguments = {"num_batches": number} if by_count else {"batch_size": number}
    iterator = MODES[mode](size, **arguments)
    batches = [rows(batch) for batch in iterator]
    assert sorted(sum(batches, [])) == list(range(size))
    assert all(batches), "no batch is empty"
    assert iterator.num_examples == size
    assert iterator.uneven == (iterator.batch_size * iterator.num_batches > size)
    assert type(iterator.num_batches) is int


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "even_sequences"])
def test_equal_seeds_give_equal_orders(mode):
    def run(rng):
        arguments = {} if rng is None else {"rng": rng}
        return [rows(batch) for batch in MODES[mode](20, 4, 5, **arguments)]

    if not is_stochastic(mode):
        with pytest.raises(ValueError, match="leave out rng"):
            run(3)
        return
    assert run(None) == run(42) != run(7)
    assert run(7) == run(np.random.RandomState(7))
    assert run(np.random.default_rng(7)) == run(np.random.default_rng(7))


def test_random_modes():
    for mode in ("random_slice", "random_uniform"):
        for arguments in ((3,), (None, 3), ()):
            with pytest.raises(ValueError, match="both"):
                MODES[mode](10, *arguments)
        assert sizes(mode, 10, 4, 50) == [4] * 50
        iterator = MODES[mode](10, 4, 50)
        assert iterator.num_examples == 200 and not iterator.uneven
    with pytest.raises(ValueError, match="10 examples"):
        MODES["random_slice"](10, 11, 1)
    assert sizes("random_uniform", 10, 11, 1) == [11]
    starts = {batch.start for batch in MODES["random_slice"](10, 8, 200)}
    assert starts == {0, 1, 2}
    drawn = np.concatenate(list(MODES["random_uniform"](10, 8, 100)))
    assert set(drawn.tolist()) == set(range(10))


LENGTHS = st.lists(st.integers(0, 4), min_size=1, max_size=30)


@given(LENGTHS, st.integers(1, 6))
def test_even_sequences(lengths, batch_size):
    data = [[0] * length for length in lengths]
    iterator = EvenSequencesSubsetIterator(data, batch_size, rng=1)
    for _ in range(2):  # it can be iterated again
        batches = [batch.tolist() for batch in iterator]
        assert sorted(sum(batches, [])) == list(range(len(data)))
        assert all(len({lengths[row] for row in batch}) == 1 for batch in batches)
        assert max(map(len, batches)) <= batch_size
        assert len(batches) == iterator.num_batches


def test_even_sequences_takes_no_number_of_batches():
    for arguments in ((5, 1), ([[1]],), ([[1]], 1, 1)):
        with pytest.raises(ValueError):
            EvenSequencesSubsetIterator(*arguments)


def test_flags():
    fancy = {mode for mode in MODES if MODES[mode].fancy}
    assert fancy == {
        "shuffled_sequential",
        "even_shuffled_sequential",
        "random_uniform",
        "even_sequences",
    }
    assert {mode for mode in MODES if not is_stochastic(mode)} == {"sequential", "even_sequential"}
    assert {mode for mode in MODES if has_uniform_batch_size(mode)} == {
        "random_slice",
        "random_uniform",
        *EVEN,
    }


def test_modes_by_name_or_class():
    kind = as_even(MODES["sequential"])
    assert resolve_iterator_class(kind) is kind
    assert resolve_iterator_class(None) is MODES["sequential"]
    with pytest.raises(ValueError, match="random_slice"):
        resolve_iterator_class("random")


def test_an_even_version_of_any_iterator_leaves_out_short_batches():
    class Halves(SequentialSubsetIterator):
        def _epoch(self):
            return iter([slice(0, 2), np.array([2]), slice(3, 5)])

    assert list(as_even(Halves)(5, batch_size=2)) == [slice(0, 2), slice(3, 5)]


def test_the_generator_of_a_seed():
    assert generator(5).randint(100) == generator(5).randint(100)


def test_batches_of_sequences_of_one_length():
    found = alike(np.arange(4), np.array([2, 1, 1, 1]), np.array([1, 2]), batch_size=2)
    assert [[rows.tolist() for rows in batches] for batches in found] == [[[1, 2], [3]], [[0]]]
