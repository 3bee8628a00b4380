"""Orders over several packs: shares, turns and positions."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iterators.core.order import (
    ClassOrder,
    DealtOrder,
    MixedOrder,
    PlainOrder,
    ShuffledOrder,
    WeightedOrder,
)
from iterators.core.order.alternation import BLOCK, Alternation
from iterators.core.order.mixed import whole_weights

weights = st.lists(st.integers(1, 10_000), min_size=1, max_size=7)
sizes = st.integers(1, 400)


def shares_of(numbers):
    return [Fraction(number, sum(numbers)) for number in numbers]


@st.composite
def mixtures(draw):
    numbers = draw(weights)
    orders = [ShuffledOrder(draw(sizes), seed=i) for i in range(len(numbers))]
    return MixedOrder(orders, shares_of(numbers), draw(st.integers(1, 3000)), draw(sizes)), numbers


def packs_of(order, records):
    return np.searchsorted(order._starts, records, side="right") - 1


# -- shares ----------------------------------------------------------------------------------------


@given(mixtures(), st.integers(0, 3))
def test_every_pack_has_its_share_of_every_start_of_an_epoch_to_within_one(mixture, epoch):
    order, numbers = mixture
    packs = packs_of(order, order.at(epoch, np.arange(order.size)))
    positions = np.arange(1, order.size + 1)
    for pack, number in enumerate(numbers):
        wanted = positions * number / sum(numbers)
        assert np.abs(np.cumsum(packs == pack) - wanted).max() <= 1 + 1e-9


@given(mixtures(), st.integers(0, 3), st.data())
def test_positions_can_be_asked_for_in_any_order(mixture, epoch, data):
    order, _ = mixture
    everything = order.at(epoch, np.arange(order.size))
    positions = np.array(data.draw(st.lists(st.integers(0, order.size - 1), max_size=20)), np.int64)
    another = MixedOrder(order._orders, [Fraction(int(w)) for w in order._alternation.weights],
                         order.size, order._seed)  # fmt: skip
    assert another.at(epoch, positions).tolist() == everything[positions].tolist()


@given(mixtures())
def test_all_of_a_pack_is_seen_before_any_of_it_comes_again(mixture):
    order, numbers = mixture
    seen = np.concatenate([order.at(epoch, np.arange(order.size)) for epoch in range(4)])
    packs = packs_of(order, seen)
    for pack in range(len(numbers)):
        mine, size = seen[packs == pack], order._orders[pack].size
        for start in range(0, len(mine), size):
            turn = mine[start : start + size]
            assert len(set(turn.tolist())) == len(turn)


def test_packs_alternate_without_a_period():
    order = MixedOrder([PlainOrder(10_000), PlainOrder(10_000)], shares_of([1, 1]), 20_000)
    packs = (order.at(0, np.arange(20_000)) >= 10_000) - 0.5
    likeness = [(packs[:-lag] * packs[lag:]).mean() * 4 for lag in range(1, 40)]
    # Neighbours differ more often than not, because shares are exact; nothing comes back.
    assert -0.35 < likeness[0] < -0.1
    assert np.abs(likeness[5:]).max() < 0.05
    assert not (packs[:512] == packs[512:1024]).all()


def test_epochs_and_seeds_alternate_differently():
    def packs(epoch, seed):
        order = MixedOrder([PlainOrder(50), PlainOrder(50)], shares_of([2, 3]), 100, seed)
        return tuple((order.at(epoch, np.arange(100)) >= 50).tolist())

    assert len({packs(epoch, seed) for epoch in range(3) for seed in range(3)}) == 9


@given(weights, st.lists(st.integers(0, 200_000), min_size=1, max_size=4))
def test_a_schedule_can_be_entered_anywhere(numbers, positions):
    total = sum(numbers)
    turns = Alternation(np.array(numbers))
    for position in positions:
        counts = turns.counts(position)
        assert counts.sum() == position
        assert np.abs(counts - position * np.array(numbers) / total).max() < 1
        packs, before = turns.block(position // BLOCK, key=position)
        assert before.tolist() == Alternation(np.array(numbers)).counts(
            position // BLOCK * BLOCK
        ).tolist()  # fmt: skip
        again, _ = turns.block(position // BLOCK, key=position)
        assert packs.tolist() == again.tolist()


def test_long_schedules_are_entered_beyond_what_is_remembered():
    numbers = np.array([123_457, 87_641, 3])
    one, other = Alternation(numbers), Alternation(numbers)
    for position in (200_000, 70_000, 210_000, 1, 65_536, 131_072, 211_101):
        assert one.counts(position).tolist() == other.counts(position).tolist()
        other = Alternation(numbers)


@pytest.mark.parametrize("numbers", [[], [0, 3], [1 << 30, 1]])
def test_impossible_weights(numbers):
    with pytest.raises(ValueError, match="weights"):
        Alternation(np.array(numbers, np.int64))


def test_a_tiny_share_is_refused():
    with pytest.raises(ValueError, match="too small"):
        MixedOrder([PlainOrder(1)] * 2, [Fraction(1, 1 << 40), Fraction(1)], 10)


def test_shares_that_are_no_small_fractions_are_kept():
    shares = [Fraction("0.123456789012345"), Fraction("0.876543210987655")]
    order = MixedOrder([PlainOrder(10), PlainOrder(10)], shares, 100_000)
    assert order.counts.tolist() == [12_346, 87_654]


def test_weighted_packs_keep_their_weights():
    inside = WeightedOrder([0.0, 1.0, 3.0], seed=3)
    order = MixedOrder([inside, PlainOrder(5)], shares_of([3, 1]), 4000)
    found = np.bincount(order.at(0, np.arange(4000)), minlength=8)
    assert found[0] == 0
    assert found[3:].tolist() == [200] * 5
    assert 2.5 < found[2] / found[1] < 3.6


# -- classes in turn -------------------------------------------------------------------------------


@st.composite
def classed(draw):
    counts = draw(st.lists(st.integers(1, 30), min_size=1, max_size=40))
    labels = np.repeat(np.arange(len(counts)), counts).astype(np.float32)
    np.random.default_rng(draw(sizes)).shuffle(labels)
    images, classes = draw(st.integers(1, 6)), draw(st.integers(1, len(counts)))
    size = draw(st.integers(1, 20)) * images * classes
    return labels, ClassOrder(labels, images, classes, size, seed=draw(sizes)), images, classes


@given(classed(), st.integers(0, 3))
def test_a_batch_has_different_classes_and_as_many_images_of_each(case, epoch):
    labels, order, images, classes = case
    sizes = np.bincount(labels.astype(int))
    for batch in order.at(epoch, np.arange(order.size)).reshape(-1, classes, images):
        found = labels[batch]
        assert (found == found[:, :1]).all()
        assert len(set(found[:, 0].tolist())) == classes
        for row, label in zip(batch, found[:, 0], strict=True):
            assert len(set(row.tolist())) == min(images, sizes[int(label)])


@given(classed())
def test_classes_and_images_come_in_turns(case):
    labels, order, images, classes = case
    positions = [order.at(epoch, np.arange(order.size)) for epoch in range(5)]
    records = np.concatenate(positions)
    visited = labels[records[::images]]
    count = int(labels.max()) + 1
    for start in range(0, len(visited), count):
        turn = visited[start : start + count].tolist()
        assert len(set(turn)) == len(turn)
    for label in range(count):
        mine = records[labels[records] == label]
        size = int((labels == label).sum())
        for start in range(0, len(mine), size):
            turn = mine[start : start + size].tolist()
            assert len(set(turn)) == len(turn)


@given(classed(), st.data())
def test_positions_of_classes_can_be_asked_for_in_any_order(case, data):
    _, order, _, _ = case
    everything = order.at(2, np.arange(order.size))
    positions = np.array(data.draw(st.lists(st.integers(0, order.size - 1), max_size=9)), np.int64)
    assert order.at(2, positions).tolist() == everything[positions].tolist()


def test_many_classes_are_permuted_again_in_every_turn():
    labels = np.arange(1000) % 250
    order = ClassOrder(labels, images=2, classes=50, size=500)
    turns = [labels[order.at(epoch, np.arange(500))[::2]].tolist() for epoch in range(3)]
    assert all(sorted(turn) == list(range(250)) for turn in turns)
    neighbours = [set(pairwise(turn)) for turn in turns]
    assert len(neighbours[0] & neighbours[1]) < 10


def test_records_without_a_class_are_left_out():
    order = ClassOrder(np.array([0, np.nan, 1, 1, np.nan, 0]), images=2, classes=2)
    assert order.size == 4
    assert sorted(order.at(0, np.arange(4)).tolist()) == [0, 2, 3, 5]


@given(classed(), st.integers(1, 5), st.integers(1, 5), st.integers(0, 4))
def test_batches_are_dealt_whole_and_another_number_of_parts_carries_on(case, n, m, taken):
    _, order, _, _ = case
    unit = order.batch
    everything = order.at(1, np.arange(order.size)).reshape(-1, unit).tolist()
    before = [DealtOrder(order, n, k, unit=unit) for k in range(n)]
    taken = min(taken, *(part.count() // unit for part in before))
    done = taken * n * unit
    found = [part.take(1, 0, taken * unit) for part in before]
    after = [DealtOrder(order, m, k, unit=unit) for k in range(m)]
    found += [part.take(1, 0, part.count(done), done) for part in after]
    assert sorted(np.concatenate(found).reshape(-1, unit).tolist()) == sorted(everything)
    first = before[0].take(1, 0, before[0].count()).reshape(-1, unit).tolist()
    assert first == everything[::n]


@given(classed(), st.integers(1, 5))
def test_even_parts_have_as_many_batches(case, n):
    _, order, _, _ = case
    parts = [DealtOrder(order, n, k, even=True, unit=order.batch) for k in range(n)]
    batches = -(-order.size // order.batch // n)
    for part in parts:
        assert part.count() == batches * order.batch
        assert len(part.take(0, 0, part.count())) == part.count()


@pytest.mark.parametrize(
    ("labels", "images", "classes", "message"),
    [([0, 0, 1, 1], 2, 3, "2 classes"), ([0, 1], 4, 2, "no batch of 8")],
)
def test_too_little_for_a_batch(labels, images, classes, message):
    with pytest.raises(ValueError, match=message):
        ClassOrder(np.array(labels, float), images, classes)


def test_shares_as_whole_numbers():
    assert whole_weights([Fraction("0.7"), Fraction("0.3")]).tolist() == [7, 3]
