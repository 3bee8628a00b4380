"""Batches of one shape each: whole epochs, even steps, exact resume, for any number of parts."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iterators.core.order import BucketPlan, Buckets, DealtOrder, Members, ShuffledOrder

SHAPES = ((512, 768), (640, 640), (768, 512), (1024, 384))


def image_sizes(count, seed=0):
    return np.exp(np.random.default_rng(seed).normal(6, 0.5, (count, 2))).astype(np.uint32)


def plans(buckets, parts, count=1000, most=4, members=None, **keywords):
    members = members or Members.of(buckets, [image_sizes(count)])
    keywords = {"seed": 0, **keywords}
    return [
        BucketPlan(
            order=DealtOrder(ShuffledOrder(len(members.records)), parts, part),
            batch_size=most, buckets=buckets, members=members, parts=parts, part=part, **keywords,
        )
        for part in range(parts)
    ]  # fmt: skip


def taken(all_parts, epoch, done=0, steps=10**9):
    """Go through an epoch on all parts: records, padding, steps, and the position at the end."""
    seen, pads, first = Counter(), 0, all_parts[0]
    for count in range(steps):
        left = first.batches(done, epoch)
        assert all(plan.batches(done, epoch) == left for plan in all_parts)
        assert all(plan.is_over(done, epoch) == (not left) for plan in all_parts)
        if not left:
            return seen, pads, count, done
        shapes = {plan.sizes(epoch, 0, done, None) for plan in all_parts}
        assert len(shapes) == 1 or not first.buckets.same_shape
        for plan in all_parts:
            rows, pad = plan.rows(epoch, 0, done)
            slots = plan.slots(epoch, 0, done)
            assert 1 <= slots <= plan.batch_size and rows.dtype == np.int64
            assert len(rows) == (slots if plan.tail == "wrap" else slots - pad)
            assert len(plan.draws(0, done, epoch)) == len(rows)
            mine = rows[: slots - pad]
            bucket = plan.bucket(epoch, 0, done)
            assert np.isin(rows, plan.members.of_bucket(bucket)).all()
            seen.update(mine.tolist())
            pads += pad
        (done,) = {plan.behind(epoch, done) for plan in all_parts}
        assert first.batches(done, epoch) == left - 1
    return seen, pads, steps, done


@pytest.mark.parametrize("tail", ["wrap", "pad"])
@pytest.mark.parametrize("same_shape", [True, False])
@pytest.mark.parametrize("parts", [1, 2, 7, 64])
def test_every_record_comes_once_and_all_parts_take_as_many_steps(parts, same_shape, tail):
    buckets = Buckets(SHAPES, same_shape=same_shape)
    found = plans(buckets, parts, tail=tail)
    for epoch in (0, 1, 5):
        seen, pads, steps, done = taken(found, epoch)
        assert seen == Counter(range(1000)) and done == 1000
        assert steps == len(found[0]) == found[0].batches(0, epoch)
        assert sum(plan.count(epoch) for plan in found) == 1000
        assert same_shape is False or pads + 1000 == steps * parts * 4


@settings(max_examples=40)
@given(
    st.integers(1, 300), st.integers(1, 9), st.integers(1, 9), st.integers(1, 9), st.booleans(),
    st.booleans(), st.integers(0, 3), st.data(),
)  # fmt: skip
def test_any_number_of_parts_goes_on(count, parts, others, most, same_shape, shuffle, epoch, data):
    buckets = Buckets(SHAPES, same_shape=same_shape)
    keywords = {"count": count, "most": most, "seed": 3 if shuffle else None}
    before = plans(buckets, parts, **keywords)
    steps = data.draw(st.integers(0, before[0].batches(0, epoch)))
    seen, _, _, done = taken(before, epoch, steps=steps)
    state = before[0].state()
    after = [plan.resumed(state) for plan in plans(buckets, others, **keywords)]
    middle = data.draw(st.integers(0, after[0].batches(done, epoch)))
    second, _, _, done = taken(after, epoch, done, middle)
    third, _, _, _ = taken([plan.resumed(after[0].state()) for plan in before], epoch, done)
    assert seen + second + third == Counter(range(count))
    # The next epoch is whole again.
    assert taken(after, epoch + 1)[0] == Counter(range(count))
    assert sum(plan.count(epoch) for plan in after) == count


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_64_parts_are_followed_by_7(steps):
    buckets = Buckets(SHAPES)
    before = plans(buckets, 64, 3000)
    seen, _, _, done = taken(before, 2, steps=steps)
    after = [plan.resumed(before[5].state()) for plan in plans(buckets, 7, 3000)]
    rest, _, _, _ = taken(after, 2, done)
    assert seen + rest == Counter(range(3000))
    # With as many parts as before the steps are those that were left.
    again = [plan.resumed(before[0].state()) for plan in plans(buckets, 64, 3000)]
    for plan, other in zip(before, again, strict=True):
        assert plan.rows(2, 0, done)[0].tolist() == other.rows(2, 0, done)[0].tolist()


@pytest.mark.parametrize("same_shape", [True, False])
@pytest.mark.parametrize("parts", [1, 2, 7, 64])
def test_an_order_of_others_has_short_batches_that_are_even(parts, same_shape):
    (whole,) = plans(Buckets(SHAPES, same_shape=same_shape), 1)
    chosen = np.arange(0, 1000, 2)
    for rows in (None, chosen):
        count = 1000 if rows is None else len(rows)
        found = [
            whole.over(DealtOrder(ShuffledOrder(count, 9), parts, part), "pad", rows)
            for part in range(parts)
        ]
        assert {plan.seed for plan in found} == {9}
        seen, counts, done, twice = Counter(), [0] * parts, 0, 0
        for _ in range(found[0].batches(0, 2)):
            sizes = set()
            for part, plan in enumerate(found):
                batch, pad = plan.rows(2, 0, done)
                assert len(batch) == plan.slots(2, 0, done) and pad <= (1 if same_shape else 4)
                members = whole.members.of_bucket(plan.bucket(2, 0, done))
                assert np.isin(batch if rows is None else chosen[batch], members).all()
                seen.update(batch.tolist())
                counts[part] += len(batch)
                twice += pad
                sizes.add(len(batch))
            assert 0 not in sizes and (len(sizes) == 1 or not same_shape)
            (done,) = {plan.behind(2, done) for plan in found}
        assert set(seen) == set(range(count)) and sum(seen.values()) == count + twice
        assert counts == [plan.count(2) for plan in found]
        assert found[0].is_over(done, 2) and not found[0].any_left(done, 2)


def test_without_its_number_of_parts_a_state_is_incomplete():
    (plan,) = plans(Buckets(SHAPES), 1)
    with pytest.raises(ValueError, match="incomplete"):
        plan.resumed({"epoch": 0, "done": 0})
    with pytest.raises((ValueError, TypeError)):
        plan.resumed({"together": 0})


@pytest.mark.parametrize("parts", [1, 3])
def test_what_is_left_is_carried_over(parts):
    found = plans(Buckets(SHAPES, carry_over=True), parts, count=101)
    total = Counter()
    for epoch in range(30):
        seen, pads, steps, _ = taken(found, epoch)
        assert pads == 0 and steps == found[0].batches(0, epoch)
        total += seen
        carried = found[0].carried(epoch)
        assert total.total() + carried == 101 * (epoch + 1)
        assert carried < 4 * parts * len(SHAPES)
        assert sum(plan.count(epoch) for plan in found) == seen.total()
    assert set(total) == set(range(101)) and max(total.values()) - min(total.values()) <= 2


def test_a_record_that_comes_twice_in_an_epoch_is_drawn_twice():
    (plan,) = plans(Buckets(SHAPES, carry_over=True), 1, count=23, most=7)
    for epoch in range(20):
        pairs, done = [], 0
        while plan.batches(done, epoch):
            rows, draws = plan.rows(epoch, 0, done)[0], plan.draws(0, done, epoch)
            pairs += zip(rows.tolist(), draws.tolist(), strict=True)
            done = plan.behind(epoch, done)
        assert len(set(pairs)) == len(pairs)


def test_epochs_are_shuffled_and_pure():
    (plan,), (other,) = plans(Buckets(SHAPES), 1), plans(Buckets(SHAPES), 1)

    def epoch(plan, number):
        return [plan.rows(number, i)[0].tolist() for i in range(20)]

    first = epoch(plan, 0)
    assert first == epoch(plan, 0) and epoch(plan, 1) != first != epoch(plan, 2)
    for number in (9, 3, 0, 4):  # in any order, behind others
        assert epoch(plan, number) == epoch(other, number)
    assert epoch(plans(Buckets(SHAPES), 1, seed=1)[0], 0) != first
    shapes = [plan.bucket(0, i, 0) for i in range(100)]
    assert len(set(shapes[:20])) > 1 and shapes != sorted(shapes)


def test_without_shuffle_buckets_come_one_after_the_other():
    (plan,) = plans(Buckets(SHAPES), 1, seed=None)
    buckets, rows = [], []
    for number in range(len(plan)):
        found, pad = plan.rows(7, number)
        buckets.append(plan.bucket(7, number, 0))
        rows += found[: len(found) - pad].tolist()
    assert buckets == sorted(buckets)
    assert rows == plan.members.records.tolist()


def test_a_batch_is_filled_from_its_bucket():
    (plan,) = plans(Buckets([(100, 100)]), 1, count=5, most=4)
    first, pad = plan.rows(0, 0)
    last, last_pad = plan.rows(0, 1)
    batches = sorted([(pad, first.tolist()), (last_pad, last.tolist())])
    assert [pad for pad, _ in batches] == [0, 3] and batches[1][1][1:] == batches[0][1][:3]
    (plan,) = plans(Buckets([(100, 100)]), 1, count=1, most=5)
    assert plan.rows(0, 0)[0].tolist() == [0] * 5


def test_others_take_the_place_of_a_record_in_its_bucket():
    (plan,) = plans(Buckets(SHAPES), 1, count=60)
    done = plan.behind(0, 0)
    mine = set(plan.members.of_bucket(plan.bucket(0, 0, done)).tolist())
    rows, pad = plan.rows(0, 0, done)
    found = [plan.record(0, 1 + i, done) for i in range(plan.others(0, done))]
    assert set(found[: len(mine) + len(rows) - 1]) == mine and set(found) == set(range(60))
    assert pad or found[:3] == rows[1:].tolist()


def test_batches_have_sizes_of_their_own():
    buckets = Buckets([(100, 200), (200, 200), (200, 100)], batch_size=[3, 1, 2])
    seen, _, _, _ = taken(plans(buckets, 2), 0)
    assert seen == Counter(range(1000))
    assert Buckets([(10, 20), (100, 100)], batch_pixels=1000).batch_sizes(64) == (5, 1)
    assert Buckets([(10, 20), (100, 100)], batch_pixels=10**6).batch_sizes(64) == (64, 64)
    assert Buckets(SHAPES, batch_size=3).batch_sizes(9) == (3,) * 4
    with pytest.raises(ValueError, match="batches of 3: batch_size=2 is the most"):
        buckets.batch_sizes(2)


# ---- which bucket


@settings(max_examples=200)
@given(st.integers(1, 5000), st.integers(1, 5000))
def test_an_image_goes_to_the_nearest_aspect(width, height):
    buckets = Buckets(pixels=1 << 20, step=64, ratio=4)
    (found,) = buckets.nearest(np.array([[width, height]], np.uint32))
    distances = [abs(np.log(w / h) - np.log(width / height)) for h, w in buckets.shapes]
    assert distances[found] <= min(distances) + 1e-9


def test_between_two_the_narrower_one():
    for shapes in ([(1, 2), (2, 1)], [(2, 1), (1, 2)]):
        buckets = Buckets(shapes)
        (found,) = buckets.nearest(np.array([[7, 7]], np.uint32))
        assert buckets.shapes[found] == (2, 1)


def test_of_one_aspect_the_largest_that_is_not_larger():
    buckets = Buckets([(64, 64), (256, 256), (128, 128), (100, 300)])
    sizes = [[300, 300], [255, 300], [128, 128], [70, 64], [20, 21], [900, 300], [0, 0], [5, 0]]
    found = buckets.nearest(np.array(sizes, np.uint32))
    assert found.tolist() == [1, 2, 2, 0, 0, 3, 0, 0]


def test_members():
    buckets = Buckets(SHAPES)
    sizes = image_sizes(500)
    whole = Members.of(buckets, [sizes])
    parts = Members.of(buckets, [sizes[:100], sizes[100:100], sizes[100:]])
    assert whole.records.tolist() == parts.records.tolist()
    classes = buckets.nearest(sizes)
    for number in range(len(SHAPES)):
        assert whole.of_bucket(number).tolist() == np.flatnonzero(classes == number).tolist()


def test_shapes_from_pixels():
    shapes = Buckets(pixels=1024 * 1024, step=64, ratio=2).shapes
    assert (1024, 1024) in shapes and len(set(shapes)) == len(shapes)
    assert {(w, h) for h, w in shapes} == set(shapes)
    for height, width in shapes:
        assert height % 64 == width % 64 == 0 and height * width <= 1 << 20
        assert max(height, width) <= 2 * min(height, width)
        assert height * width >= 0.8 * (1 << 20)
    assert Buckets(pixels=64, step=8, ratio=1).shapes == ((8, 8),)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({}, "either shapes"), ({"shapes": [(1, 1)], "pixels": 9}, "either shapes"),
        ({"shapes": []}, "expected a list"), ({"shapes": "ab"}, "expected a list"),
        ({"shapes": [(1, 2, 3)]}, "not \\(height"), ({"shapes": [3]}, "not \\(height"),
        ({"shapes": [(0, 2)]}, "buckets"), ({"shapes": [(2, 1 << 20)]}, "buckets"),
        ({"shapes": [(2, 2), (2, 2)]}, "twice"),
        ({"shapes": [(i + 1, 1) for i in range(257)]}, "more than 256"),
        ({"shapes": [(2, 2)], "batch_size": [1, 2]}, "2 numbers for 1"),
        ({"shapes": [(2, 2)], "batch_size": 1, "batch_pixels": 4}, "not both"),
        ({"shapes": [(2, 2)], "batch_size": 0}, "batch_size"),
        ({"shapes": [(2, 2)], "carry_over": "yes"}, "carry_over"),
        ({"pixels": 100, "step": 64}, "pixels"),
        ({"pixels": 64 * 128, "step": 64, "ratio": 1.5, }, None),
    ],
)  # fmt: skip
def test_what_has_no_meaning_is_refused(keywords, message):
    if message is None:
        assert Buckets(**keywords).shapes == ((64, 64),)
        return
    with pytest.raises((ValueError, TypeError), match=message):
        Buckets(**keywords)
