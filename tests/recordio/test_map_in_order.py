"""`map_in_order`: the order, limits, errors and ends of work in threads."""

import gc
import threading

import pytest

from recordio import ordered
from recordio.ordered import map_in_order


def pool_threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("recordio-")]


@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 1000])
def test_results_come_in_order(threads, count):
    expected = [n * n for n in range(count)]
    assert list(map_in_order(lambda n: n * n, range(count), threads)) == expected
    assert list(map_in_order(lambda n: n * n, iter(range(count)), threads)) == expected


def test_of_what_is_no_sequence_little_is_read_ahead():
    taken = []
    results = map_in_order(lambda n: n, (taken.append(n) or n for n in range(1000)), 2)
    assert next(results) == 0
    assert len(taken) <= 2 * 2 + 2
    results.close()


@pytest.mark.parametrize("limit", [0, 1, 5000])
@pytest.mark.parametrize("size", [0, 1000, 1 << 20])
def test_any_limit_on_pending_bytes_gives_all_results(limit, size):
    parts = map_in_order(lambda n: n, range(300), 4, size=lambda result: size, pending_bytes=limit)
    assert list(parts) == list(range(300))


def test_pending_results_stay_bounded_while_nobody_consumes():
    size = 1 << 20
    done = []
    blocks = ordered._Blocks(done.append, range(2000), 2, lambda result: size, 8 * size)
    poll = threading.Event()
    while len(blocks._changed._waiters) < 2:  # until both wait for room
        assert len(pool_threads()) == 2
        poll.wait(0.001)
    assert 8 <= len(done) <= 8 + 2
    blocks.close()
    assert pool_threads() == []


def test_a_slow_first_item_does_not_block():
    others = threading.Barrier(2)

    def work(number):
        if number in (0, 900):
            others.wait(timeout=60)  # item 0 ends only after the other thread got as far as 900
        return number

    assert list(map_in_order(work, range(1000), 2)) == list(range(1000))


def test_a_few_items_are_shared_by_all_threads():
    together = threading.Barrier(4)
    parts = map_in_order(lambda number: together.wait(timeout=60) >= 0, range(4), 4)
    assert list(parts) == [True] * 4


def test_an_error_reaches_the_consumer_and_ends_the_threads():
    def work(number):
        if number == 100:
            raise LookupError("no")
        return number

    with pytest.raises(LookupError, match="no"):
        list(map_in_order(work, range(10_000), 3))
    assert pool_threads() == []


def test_closing_early_ends_the_threads():
    parts = map_in_order(lambda n: n, range(100_000), 3)
    assert next(parts) == 0
    parts.close()
    assert pool_threads() == []


def test_dropping_the_generator_ends_the_threads():
    parts = map_in_order(lambda n: n, range(100_000), 3)
    next(parts)
    del parts
    gc.collect()
    assert pool_threads() == []


def test_a_cancelled_run_raises_and_ends_the_threads():
    release = threading.Event()

    def cancelled():
        release.set()
        return True

    with pytest.raises(KeyboardInterrupt):
        list(map_in_order(lambda n: release.wait(60), range(100), 2, cancelled=cancelled))
    assert pool_threads() == []
