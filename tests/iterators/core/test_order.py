import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iterators.core.order import BatchPlan, SequentialOrder, ShuffledOrder

sizes = st.integers(1, 60)
parts = st.integers(1, 7)


def shuffled_parts(size, n, **settings):
    return [ShuffledOrder(size, num_parts=n, part_index=k, **settings) for k in range(n)]


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
        tuple(ShuffledOrder(50, seed=seed).take(epoch, 0, 50)) for seed in range(4) for epoch in range(4)
    }
    assert len(orders) == 16


@given(sizes, st.integers(1, 80), st.sampled_from(["wrap", "pad", "drop"]), st.booleans())
def test_batches_hold_every_sample_once_and_say_what_is_padding(size, batch_size, tail, shuffle):
    order = ShuffledOrder(size) if shuffle else SequentialOrder(0, size)
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
    order = ShuffledOrder(10, seed=3)
    whole = order.take(0, 0, 10)
    rows, pad = BatchPlan(order, 4).rows(0, 1, done=4)
    assert pad == 2
    assert rows.tolist() == whole[[8, 9, 0, 1]].tolist()


def test_an_empty_part_has_no_batches():
    assert len(BatchPlan(SequentialOrder(5, 5), 4)) == 0
    assert len(BatchPlan(ShuffledOrder(2, num_parts=3, part_index=2), 4)) == 0


@pytest.mark.parametrize("size", [10**7, 10**12])
def test_orders_take_no_memory(size):
    part = ShuffledOrder(size, num_parts=1000, part_index=999)
    assert part.take(0, part.count() - 2, part.count()).shape == (2,)
