"""Which rows make up which batch."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iterators import ClassView, DataView
from iterators.views import DataSet, DataSource, RandomSampler, Sampler, ShuffleSampler


def numbers(n):
    return DataSet("train", DataView("bf", np.arange(n)[:, None]), ClassView("b", np.arange(n)))


def rows(sampler, data):
    found = []
    for batch, _, _ in sampler.sample_epoch(data):
        assert batch.indices.tolist() == batch.inputs.input.ravel().tolist()
        assert batch.indices.tolist() == batch.targets.input.tolist()
        assert batch.n_sample == len(batch.indices)
        found.append(batch.indices.tolist())
    return found


def test_a_last_single_row_is_not_skipped():
    assert rows(Sampler(2), numbers(5)) == [[0, 1], [2, 3], [4]]


def test_a_short_epoch_goes_on_where_the_last_one_stopped():
    sampler, data = Sampler(2, epoch_size=4), numbers(7)
    assert rows(sampler, data) == [[0, 1], [2, 3]]
    assert rows(sampler, data) == [[4, 5], [6], [0, 1]]
    assert rows(sampler, data) == [[2, 3], [4, 5]]


def test_a_long_epoch_begins_the_set_again():
    assert rows(Sampler(3, epoch_size=7), numbers(4)) == [[0, 1, 2], [3], [0, 1, 2]]


def test_seen_is_counted_up_to_the_size_of_the_epoch():
    draws = Sampler(3, epoch_size=7).sample_epoch(numbers(30))
    assert [(seen, size) for _, seen, size in draws] == [(3, 7), (6, 7), (7, 7)]
    assert draws() is None


def test_where_a_batch_comes_from():
    batch, seen, size = Sampler(4).sample_epoch(numbers(6))()
    assert (batch.batch_iter, batch.batch_size, batch.epoch_size) == (4, 4, 6)
    assert (seen, size) == (4, 6)


@pytest.mark.parametrize("kind", [Sampler, ShuffleSampler, RandomSampler])
def test_the_memory_of_the_last_batch_is_used_again(kind):
    draws = kind(2).sample_epoch(numbers(6))
    batch, _, _ = draws()
    memory = batch.inputs.input
    again, _, _ = draws(batch)
    assert again is batch
    assert again.inputs.input is memory
    assert again.indices.tolist() == memory.ravel().tolist()


@given(n=st.integers(1, 40), size=st.integers(1, 50), epochs=st.integers(1, 3))
def test_every_epoch_of_either_sampler_is_the_whole_set(n, size, epochs):
    shuffled, plain = ShuffleSampler(size), Sampler(size)
    for _ in range(epochs):
        assert sum(rows(plain, numbers(n)), []) == list(range(n))
        assert sorted(sum(rows(shuffled, numbers(n)), [])) == list(range(n))


def test_orders_change_with_every_epoch_and_follow_from_the_seed():
    data = numbers(50)
    one, two, other = ShuffleSampler(7), ShuffleSampler(7), ShuffleSampler(7, random_seed=1)
    first = [rows(one, data) for _ in range(3)]
    assert first == [rows(two, data) for _ in range(3)]
    assert first[0] != first[1] != first[2] != first[0]
    assert first[0] != rows(other, data)


def test_a_new_order_when_the_set_begins_again():
    found = sum(rows(ShuffleSampler(5, epoch_size=40), numbers(20)), [])
    assert sorted(found[:20]) == sorted(found[20:]) == list(range(20))
    assert found[:20] != found[20:]


def test_a_short_shuffled_epoch_keeps_its_position_and_gets_a_new_order():
    data, sampler = numbers(20), ShuffleSampler(5, epoch_size=10)
    whole = ShuffleSampler(5)
    first = rows(whole, data)
    second = rows(whole, data)
    assert rows(sampler, data) == first[:2]
    assert rows(sampler, data) == second[2:]


def test_the_global_generator_is_not_touched():
    np.random.seed(3)
    before = np.random.get_state()[1].tolist()
    rows(ShuffleSampler(5), numbers(20))
    assert np.random.get_state()[1].tolist() == before


def test_random_rows_in_full_batches():
    sampler, data = RandomSampler(4), numbers(10)
    found = [rows(sampler, data) for _ in range(30)]
    assert all([len(batch) for batch in epoch] == [4, 4, 4] for epoch in found)
    assert found[0] != found[1]
    assert {row for epoch in found for batch in epoch for row in batch} == set(range(10))
    assert found == [rows(again, data) for again in [RandomSampler(4)] for _ in range(30)]


@pytest.mark.parametrize("kind", [Sampler, ShuffleSampler, RandomSampler])
def test_going_on_from_a_saved_position(kind):
    data = numbers(23)
    sampler = kind(4, epoch_size=10)
    rows(sampler, data)
    again = kind(4, epoch_size=10)
    again.load_state_dict(sampler.state_dict())
    assert rows(again, data) == rows(sampler, data)


@pytest.mark.parametrize("kind", [Sampler, ShuffleSampler, RandomSampler])
def test_going_on_with_any_turn(kind):
    data, sampler, again = numbers(9), kind(4), kind(4)
    again.set_epoch(0)
    first = rows(sampler, data)
    assert rows(again, data) == first
    sampler.set_epoch(3)
    again.load_state_dict({"start": 0, "turn": 3})
    assert rows(again, data) == rows(sampler, data)


def test_hook_and_sources_and_views():
    seen = []

    def hook(batch):
        seen.append(batch)
        batch.inputs.replace("bf", batch.inputs.forward_get("bf") * 2)
        return batch

    sampler = Sampler(2, ppf=hook, gc_freq=1)
    source = DataSource(numbers(2))
    ((batch, _, _),) = sampler.sample_epoch(source)
    assert batch.inputs.input.ravel().tolist() == [0, 2]
    assert seen == [batch]
    ((batch, _, _),) = Sampler(9).sample_epoch(DataView("bf", np.zeros((3, 1))))
    assert batch.targets is None
    assert batch.which_set == "train"


def test_an_empty_set_has_no_batches():
    for kind in (Sampler, ShuffleSampler, RandomSampler):
        assert list(kind(2, epoch_size=4).sample_epoch(numbers(0))) == []


def test_what_is_refused():
    for wrong in ({"batch_size": 0}, {"batch_size": 4, "epoch_size": 3}, {"gc_freq": -2}):
        with pytest.raises(ValueError):
            Sampler(**wrong)
    with pytest.raises(TypeError):
        Sampler(batch_size=None)
    for wrong in (np.zeros((3, 2)), DataSource(), DataSet()):
        with pytest.raises(TypeError):
            Sampler(2).sample_epoch(wrong)
