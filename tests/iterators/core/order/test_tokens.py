"""Batches of as many patches each: sizes are timm's, and every record comes once for any parts."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iterators.core.order import DealtOrder, ShuffledOrder, TokenPlan, naflex_size
from iterators.core.order.image_shapes import (
    aspect_classes,
    by_class,
    count_steps,
    draw,
    patch_sizes,
)

LENGTHS = (128, 256, 576, 784, 1024)


def plans(parts, count=1000, tokens=4096, lengths=LENGTHS, tail="wrap", seed=0):
    return [
        TokenPlan(
            order=DealtOrder(ShuffledOrder(count, seed), parts, part),
            batch_size=tokens // min(lengths), tail=tail, patch=16, lengths=lengths,
            tokens=tokens, seed=seed,
        )
        for part in range(parts)
    ]  # fmt: skip


def taken(all_parts, epoch, done=0, steps=10**9):
    seen, lengths, first = Counter(), [], all_parts[0]
    for _ in range(steps):
        left = first.batches(done, epoch)
        assert all(plan.batches(done, epoch) == left for plan in all_parts)
        assert first.is_over(done, epoch) == (not left)
        if not left:
            break
        (length,) = {plan.length(epoch, 0, done) for plan in all_parts}
        lengths.append(length)
        for plan in all_parts:
            rows, pad = plan.rows(epoch, 0, done)
            slots = plan.slots(epoch, 0, done)
            assert slots * length <= plan.tokens or slots == 1
            assert len(plan.draws(0, done, epoch)) == len(rows)
            seen.update(rows[: slots - pad].tolist())
        (done,) = {plan.behind(epoch, done) for plan in all_parts}
        assert first.batches(done, epoch) == left - 1
    return seen, lengths, done


@pytest.mark.parametrize("tail", ["wrap", "pad"])
@pytest.mark.parametrize("parts", [1, 2, 7, 64])
def test_every_record_comes_once_and_all_parts_take_as_many_steps(parts, tail):
    found = plans(parts, tail=tail)
    for epoch in (0, 3):
        seen, lengths, _ = taken(found, epoch)
        assert seen == Counter(range(1000))
        assert set(lengths) <= set(LENGTHS) and len(lengths) == found[0].batches(0, epoch)
    assert sum(plan.count() for plan in found) == 1000


@settings(max_examples=50)
@given(st.integers(1, 200), st.integers(1, 8), st.integers(1, 8), st.integers(0, 3), st.data())
def test_any_number_of_parts_goes_on(count, parts, others, epoch, data):
    before = plans(parts, count)
    steps = data.draw(st.integers(0, before[0].batches(0, epoch)))
    seen, _, done = taken(before, epoch, steps=steps)
    rest, _, _ = taken(plans(others, count), epoch, done)
    assert seen + rest == Counter(range(count))


@pytest.mark.parametrize("parts", [1, 3, 64])
def test_a_short_last_batch_is_dropped(parts):
    found = plans(parts, tail="drop")
    for epoch in range(4):
        seen, lengths, done = taken(found, epoch)
        assert max(seen.values(), default=1) == 1 and len(lengths) == found[0].batches(0, epoch)
        assert sum(seen.values()) == done == sum(plan.count(epoch) for plan in found) <= 1000
        assert done == sum(found[0].images(length) for length in lengths) * parts
        length = found[0].length(epoch, 0, done)
        assert done + found[0].images(length) * parts > 1000


def test_64_parts_are_followed_by_7():
    seen, _, done = taken(plans(64, 3000), 1, steps=2)
    rest, _, _ = taken(plans(7, 3000), 1, done)
    assert seen + rest == Counter(range(3000))


def test_all_lengths_are_drawn_as_often():
    _, lengths, _ = taken(plans(1, 20000), 0)
    counts = Counter(lengths)
    expected = len(lengths) / len(LENGTHS)
    assert all(abs(counts[length] - expected) < 6 * expected**0.5 for length in LENGTHS)
    assert taken(plans(1, 20000), 1)[1] != lengths


# ---- sizes


def test_sizes_are_those_of_timm():
    known = json.loads((Path(__file__).parent / "naflex_sizes.json").read_text())
    sizes = np.array(known["sizes"], np.uint32)
    assert len(known["found"]) == 21
    for patch, length, wanted in known["found"]:
        assert patch_sizes(sizes, patch, length).tolist() == wanted
        assert list(naflex_size(*known["sizes"][0], patch, length)) == wanted[0]


@given(
    st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1), st.integers(1, 64), st.integers(1, 9999)
)
def test_no_image_has_more_patches_than_wanted(width, height, patch, length):
    ((down, across),) = patch_sizes(np.array([[width, height]], np.uint32), patch, length)
    assert down > 0 and across > 0 and down % patch == across % patch == 0
    assert down // patch * (across // patch) <= length


def test_arguments_out_of_range():
    sizes = np.ones((2, 2), np.uint32)
    for wrong in ((sizes, 0, 5), (sizes, 5, 0), (np.ones((2, 3), np.uint32), 5, 5)):
        with pytest.raises(ValueError, match="at least|two numbers"):
            patch_sizes(*wrong)
    with pytest.raises(ValueError, match="two numbers"):
        aspect_classes(np.ones((2, 3), np.uint32), np.ones(1))
    with pytest.raises(ValueError, match="255"):
        aspect_classes(sizes, np.ones(256))
    with pytest.raises(ValueError, match="not below 2"):
        by_class(np.array([0, 1, 2], np.uint8), 2)
    with pytest.raises(ValueError, match="1 to 256"):
        by_class(np.array([0], np.uint8), 257)
    with pytest.raises(ValueError, match="at least one position"):
        count_steps(0, 0, 5, np.array([1, 0]))


@settings(max_examples=50)
@given(st.lists(st.floats(1e-4, 1e4), min_size=0, max_size=30), st.integers(0, 2**32 - 1))
def test_aspects_are_compared_exactly(edges, seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 3000, (500, 2), dtype=np.uint32)
    sizes[:5] = [[1, 2**32 - 1], [2**32 - 1, 1], [0, 5], [5, 0], [7, 7]]
    ratios = sizes[:, 0] / np.maximum(sizes[:, 1], 1)
    ratios[2:4] = 1
    table = np.sort([*edges, *ratios[10:20], *np.nextafter(ratios[20:30], 0)])
    found = aspect_classes(sizes, table)
    assert found.tolist() == np.searchsorted(table, ratios, side="left").tolist()


@given(st.lists(st.integers(0, 4), max_size=50))
def test_by_class_is_a_stable_sort(classes):
    records, starts = by_class(np.array(classes, np.uint8), 5)
    assert records.tolist() == np.argsort(classes, kind="stable").tolist()
    assert (
        np.diff(starts).tolist() == np.bincount(classes, minlength=5).tolist() if classes else True
    )


@given(st.integers(0, 2**63), st.integers(0, 100), st.integers(0, 300))
def test_steps_are_those_that_are_drawn(key, done, end):
    sizes = np.array([3, 1, 8])
    steps, at = 0, done
    while at < end:
        at, steps = at + int(sizes[draw(key, at, 3)]), steps + 1
    assert count_steps(key, done, end, sizes) == (steps, at)
    at = done
    while at + int(sizes[draw(key, at, 3)]) <= end:
        at += int(sizes[draw(key, at, 3)])
    assert count_steps(key, done, end, sizes, True) == (steps - (at < end), at)
