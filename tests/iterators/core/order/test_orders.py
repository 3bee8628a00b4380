"""Orders of samples in epochs: parts, seeds, and what goes on with other parts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iterators.core.order import (
    BatchPlan,
    BlockOrder,
    DealtOrder,
    RollOverPlan,
    SequentialOrder,
    ShuffledOrder,
    WeightedOrder,
)

sizes = st.integers(1, 60)
parts = st.integers(1, 7)


def shuffled_parts(size, n, seed=0, even=False):
    whole = ShuffledOrder(size, seed)
    return [DealtOrder(whole, n, k, even) for k in range(n)]


@given(sizes, parts, st.integers(0, 5), st.integers(0, 3))
def test_parts_are_disjoint_and_together_the_epoch(size, n, seed, epoch):
    taken = [part.take(epoch, 0, part.count()) for part in shuffled_parts(size, n, seed=seed)]
    assert sorted(np.concatenate(taken).tolist()) == list(range(size))


@given(sizes, parts, parts, st.integers(0, 10))
def test_another_number_of_parts_carries_on_where_the_first_stopped(size, n, m, rounds):
    before = shuffled_parts(size, n)
    rounds = min(rounds, min(part.count() for part in before))
    taken = [part.take(0, 0, rounds) for part in before]
    done = rounds * n
    rest = [part.take(0, 0, part.count(done), done) for part in shuffled_parts(size, m)]
    assert sorted(np.concatenate(taken + rest).tolist()) == list(range(size))


@given(sizes, parts)
def test_even_parts_have_the_same_count_and_cover_everything(size, n):
    even = shuffled_parts(size, n, even=True)
    assert {part.count() for part in even} == {-(-size // n)}
    taken = np.concatenate([part.take(2, 0, part.count()) for part in even])
    assert set(taken.tolist()) == set(range(size))


def test_epochs_and_seeds_give_different_orders():
    orders = {
        tuple(ShuffledOrder(50, seed).at(epoch, np.arange(50)))
        for seed in range(4)
        for epoch in range(4)
    }
    assert len(orders) == 16


@given(sizes, st.integers(1, 80), st.sampled_from(["wrap", "pad", "drop"]), st.booleans())
def test_batches_hold_every_sample_once_and_say_what_is_padding(size, batch_size, tail, shuffle):
    order = DealtOrder(ShuffledOrder(size)) if shuffle else SequentialOrder(0, size)
    plan = BatchPlan(order, batch_size, tail)
    whole = order.take(1, 0, size)
    seen = []
    for number in range(len(plan)):
        rows, pad = plan.rows(1, number)
        real = rows[: batch_size - pad]
        seen.extend(real.tolist())
        assert (pad == 0) or number == len(plan) - 1
        if tail == "wrap":
            assert len(rows) == batch_size
            assert rows[batch_size - pad :].tolist() == np.resize(whole, pad).tolist()
        else:
            assert len(rows) == batch_size - pad
    assert seen == whole[: len(seen)].tolist()
    assert len(seen) == (size // batch_size * batch_size if tail == "drop" else size)


def test_a_resumed_epoch_is_padded_from_its_own_start():
    order = DealtOrder(ShuffledOrder(10, seed=3))
    whole = order.take(0, 0, 10)
    rows, pad = BatchPlan(order, 4).rows(0, 1, done=4)
    assert pad == 2
    assert rows.tolist() == whole[[8, 9, 0, 1]].tolist()


def test_an_empty_part_has_no_batches():
    assert len(BatchPlan(SequentialOrder(5, 5), 4)) == 0
    assert len(BatchPlan(DealtOrder(ShuffledOrder(2), 3, 2), 4)) == 0


@pytest.mark.parametrize("size", [10**7, 10**12])
def test_orders_take_no_memory(size):
    part = DealtOrder(ShuffledOrder(size), 1000, 999)
    assert part.take(0, part.count() - 2, part.count()).shape == (2,)


def test_even_sequential_parts_go_on_behind_their_last_record():
    order = SequentialOrder(8, 10, positions=4, size=10)
    assert order.take(0, 0, order.count()).tolist() == [8, 9, 0, 1]
    assert SequentialOrder(10, 10, positions=2, size=10).take(0, 0, 2).tolist() == [0, 1]


@given(st.lists(st.integers(1, 9), min_size=1, max_size=12), st.booleans(), st.integers(0, 3))
def test_blocks_stay_together_and_cover_everything(lengths, shuffle, epoch):
    edges = np.concatenate([[0], np.cumsum(lengths)])
    order = BlockOrder(edges, 5, shuffle, 6)
    records = order.at(epoch, np.arange(order.size))
    assert sorted(records.tolist()) == list(range(order.size))
    blocks = np.searchsorted(edges, records, side="right")
    assert (np.diff(blocks) != 0).sum() == len(lengths) - 1
    if not shuffle:
        assert (np.diff(records)[np.diff(blocks) == 0] == 1).all()
    assert np.array_equal(order.at(epoch, np.arange(order.size)[::-1]), records[::-1])


def test_weights_are_the_frequencies():
    weights = np.array([1, 0, 2, 5, 0.5])
    order = WeightedOrder(weights, seed=1)
    drawn = np.concatenate([order.at(epoch, np.arange(5)) for epoch in range(20_000)])
    counts = np.bincount(drawn, minlength=5)
    expected = weights / weights.sum() * 100_000
    assert counts[1] == 0
    assert (((counts - expected) ** 2)[expected > 0] / expected[expected > 0]).sum() < 25


@pytest.mark.parametrize("weights", [[], [0, 0], [1, -1], [1, np.nan], [[1, 2]], [np.inf, 1]])
def test_weights_that_make_no_sense_are_refused(weights):
    with pytest.raises(ValueError, match="weight"):
        WeightedOrder(weights)


@given(st.integers(1, 20), st.integers(1, 9), st.data())
def test_a_position_of_a_rolling_epoch_has_the_record_of_its_batch(size, batch_size, data):
    plan = RollOverPlan(DealtOrder(ShuffledOrder(size, 3)), batch_size)
    done = -data.draw(st.integers(0, batch_size - 1))
    epoch = 10
    for number in range(plan.batches(done)):
        rows, _ = plan.rows(epoch, number, done)
        positions = range(number * batch_size, (number + 1) * batch_size)
        assert [plan.record(epoch, position, done) for position in positions] == rows.tolist()
        assert not plan.is_over(done + number * batch_size)
    assert plan.is_over(done + plan.batches(done) * batch_size)
    assert plan.record(epoch, size - done, done) == plan.record(epoch, 0)


# -- occurrences -----------------------------------------------------------------------------------


@pytest.mark.parametrize("tail", ["wrap", "pad", "drop"])
@pytest.mark.parametrize(
    "order", [SequentialOrder(2, 9), DealtOrder(ShuffledOrder(9), 2, 1, even=True)]
)
def test_orders_without_repetitions_have_one_occurrence(order, tail):
    plan = BatchPlan(order, 4, tail)
    for number in range(len(plan)):
        rows, _ = plan.rows(0, number)
        assert plan.draws(number).tolist() == [0] * len(rows)


@given(
    size=st.integers(1, 40), parts=st.integers(1, 5), batch=st.integers(1, 7), data=st.data()
)  # fmt: skip
def test_occurrences_of_a_weighted_epoch_are_its_positions_for_any_world(size, parts, batch, data):
    """Resumed anywhere and dealt to any number of parts, a position keeps record and number."""
    whole = WeightedOrder(np.arange(1, size + 1), seed=3)
    expected = whole.at(1, np.arange(size))
    done = data.draw(st.integers(0, size - 1))
    seen = []
    for part in range(parts):
        plan = BatchPlan(DealtOrder(whole, parts, part), batch, "pad")
        for number in range(plan.batches(done)):
            records, _ = plan.rows(1, number, done)
            draws = plan.draws(number, done)
            assert expected[draws].tolist() == records.tolist()
            seen += draws.tolist()
    assert sorted(seen) == list(range(done, size))


def test_padding_of_a_weighted_epoch_repeats_its_start():
    plan = BatchPlan(DealtOrder(WeightedOrder(np.ones(5))), 4)
    assert plan.draws(1).tolist() == [4, 0, 1, 2]
    assert plan.draws(0, done=3).tolist() == [3, 4, 0, 1]


def test_what_was_carried_over_is_drawn_anew():
    plan = RollOverPlan(SequentialOrder(0, 5), 3)
    assert plan.rows(1, 0, -2)[0].tolist() == [3, 4, 0]
    assert plan.draws(0, -2).tolist() == [5, 5, 0]
    plan = RollOverPlan(DealtOrder(WeightedOrder(np.ones(5))), 3)
    assert plan.draws(0, -2).tolist() == [8, 9, 0]


def test_both_ways_to_count_the_pad_of_a_batch_with_old_positions():
    order = SequentialOrder(0, 5)
    for pads_new, pads in ((False, [2, 0]), (True, [1, 0])):
        plan = RollOverPlan(order, 3, pads_new=pads_new)
        assert [plan.rows(1, number, -2)[1] for number in range(2)] == pads


@given(st.lists(st.integers(1, 9), min_size=1, max_size=12), st.integers(2, 5), st.integers(0, 3))
def test_blocks_together_are_shuffled_as_one(lengths, together, epoch):
    edges = np.concatenate([[0], np.cumsum(lengths)])
    order = BlockOrder(edges, 5, True, 6, together)
    records = order.at(epoch, np.arange(order.size))
    assert sorted(records.tolist()) == list(range(order.size))
    plain = BlockOrder(edges, 5).at(epoch, np.arange(order.size))
    blocks = np.searchsorted(edges, plain, side="right")
    runs = (np.cumsum(np.diff(blocks, prepend=blocks[0]) != 0)) // together
    for run in np.unique(runs):
        assert sorted(records[runs == run]) == sorted(plain[runs == run])
    assert np.array_equal(order.at(epoch, np.arange(order.size)[::-1]), records[::-1])
