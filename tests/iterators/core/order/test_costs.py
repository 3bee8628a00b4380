"""Batches of at most so much cost: what every part has, and how others go on."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from iterators.core.order import CostPlan, DealtOrder, PlainOrder, ShuffledOrder


def plan_of(costs, most, parts=1, part=0, tail="wrap", batch_size=1000, seed=None):
    whole = PlainOrder(len(costs)) if seed is None else ShuffledOrder(len(costs), seed)
    return CostPlan(
        order=DealtOrder(whole, parts, part),
        batch_size=batch_size,
        tail=tail,
        costs=np.array(costs, np.int64),
        most=most,
    )


costs_of = st.lists(st.integers(1, 50), min_size=1, max_size=60)


@given(costs_of, st.integers(1, 120), st.integers(1, 4), st.integers(1, 9), st.integers(0, 3))
def test_every_image_comes_once_and_no_batch_costs_more_than_the_budget(
    costs, most, parts, batch_size, epoch
):
    plans = [plan_of(costs, most, parts, k, batch_size=batch_size, seed=5) for k in range(parts)]
    assert len({plan.batches(0, epoch) for plan in plans}) == 1
    seen, done = [], 0
    while plans[0].any_left(done, epoch):
        for plan in plans:
            rows, pad = plan.rows(epoch, 0, done)
            assert 1 <= len(rows) <= batch_size and pad in (0, len(rows))
            assert sum(costs[row] for row in rows) <= most or len(rows) == 1
            assert plan.slots(epoch, 0, done) == len(rows) == len(plan.draws(0, done, epoch))
            if not pad:
                seen += rows.tolist()
        assert len({plan.behind(epoch, done) for plan in plans}) == 1
        done = plans[0].behind(epoch, done)
    assert sorted(seen) == list(range(len(costs)))
    assert sum(plan.count(epoch) for plan in plans) == len(costs)
    assert all(plan.is_over(done, epoch) for plan in plans)


@given(costs_of, st.integers(1, 120), st.lists(st.integers(1, 4), min_size=1, max_size=20))
def test_any_number_of_parts_goes_on_where_others_stopped(costs, most, parts):
    seen, done = [], 0
    for number in [*parts, *[1] * 60]:
        plans = [plan_of(costs, most, number, k, seed=2) for k in range(number)]
        if not plans[0].any_left(done, 1):
            break
        for plan in plans:
            rows, pad = plan.rows(1, 0, done)
            seen += [] if pad else rows.tolist()
        done = plans[0].behind(1, done)
    assert sorted(seen) == list(range(len(costs)))


@given(costs_of, st.integers(1, 120), st.integers(1, 4))
def test_dropped_steps_are_those_where_some_part_has_nothing(costs, most, parts):
    plans = [plan_of(costs, most, parts, k, "drop") for k in range(parts)]
    whole = plan_of(costs, most)
    assert {plan.batches() for plan in plans} == {len(whole) // parts}
    assert all(plan.rows(0, n)[1] == 0 for plan in plans for n in range(len(plan)))
    assert all(plan.empty == (len(whole) < parts) for plan in plans)


@given(costs_of, st.integers(50, 120), st.integers(0, 3))
def test_another_image_fits_into_the_place_of_any(costs, most, epoch):
    plan, done = plan_of(costs, most, seed=3), 0
    while plan.any_left(done, epoch):
        rows, _ = plan.rows(epoch, 0, done)
        total, count = sum(costs[row] for row in rows), plan.others(epoch, done)
        for at in range(count):
            other = plan.record(epoch, at, done)
            assert all(total - costs[row] + costs[other] <= most for row in rows)
        assert count >= 1
        done = plan.behind(epoch, done)


def test_batches_of_chosen_records_have_their_costs():
    whole = plan_of([5, 1, 1, 5], 6)
    chosen = np.array([1, 2])
    plan = whole.over(DealtOrder(PlainOrder(2)), "pad", chosen)
    assert len(plan) == 1 and plan.rows(0, 0)[0].tolist() == [0, 1]


def test_a_full_batch_has_as_much_as_the_next_image_allows():
    plan = plan_of([4, 4, 2, 9, 30, 1], 10)
    sizes = [plan.rows(0, number)[0].tolist() for number in range(len(plan))]
    assert sizes == [[0, 1, 2], [3], [4], [5]]


def test_plans_with_other_costs_are_described_otherwise():
    assert plan_of([1, 2], 3).described() != plan_of([2, 1], 3).described()
