"""The engine that makes batches ahead: order, depth, failures and ends."""

import gc
import multiprocessing
import os
import threading
import weakref

import numpy as np
import pytest

from iterators.core.prefetch import Prefetcher


def echo(records, epoch):
    return [records], [], epoch, []


@pytest.mark.parametrize("threads", [0, 1, 2, 5])
def test_batches_come_in_the_order_of_submission(threads):
    turn = [threading.Event() for _ in range(4)]

    def backwards(number, epoch):
        if threads >= 4 and number < 3:
            turn[number + 1].wait(10)  # the later batch is finished first
        turn[number].set()
        return number, [], epoch, []

    engine = Prefetcher(backwards, depth=4, threads=threads)
    for number in range(4):
        engine.submit(number, epoch=7)
    assert engine.pending == 4
    assert [engine.collect() for _ in range(4)] == [(n, [], 7, []) for n in range(4)]
    assert engine.pending == 0
    assert engine.stats()["batches"] == 4
    engine.close()


def test_one_thread_never_makes_two_batches_at_once():
    inside = threading.Lock()
    order = []

    def produce(number, epoch):
        assert inside.acquire(blocking=False)
        order.append(number)
        inside.release()
        return echo(number, epoch)

    engine = Prefetcher(produce, depth=3, threads=1)
    for number in range(3):
        engine.submit(number, 0)
    for number in range(3, 200):
        assert engine.collect()[3] == []
        engine.submit(number, 0)
    engine.cancel()
    assert order == sorted(order)
    engine.close()


@pytest.mark.parametrize("threads", [0, 1, 3])
def test_no_more_than_depth_batches_are_under_way(threads):
    engine = Prefetcher(echo, depth=2, threads=threads)
    engine.submit(1, 0)
    engine.submit(2, 0)
    with pytest.raises(RuntimeError, match="2 batches are under way"):
        engine.submit(3, 0)
    engine.collect()
    engine.submit(3, 0)
    engine.close()


@pytest.mark.parametrize("threads", [0, 1, 3])
def test_an_exception_is_the_failure_of_its_batch_and_of_no_other(threads):
    def produce(number, epoch):
        if number == 1:
            raise OSError("the disk is gone")
        return echo(number, epoch)

    engine = Prefetcher(produce, depth=3, threads=threads)
    for number in range(3):
        engine.submit(number, 0)
    assert engine.collect()[0] == [0]
    data, _, _, ((slot, error),) = engine.collect()
    assert (data, slot, str(error)) == (None, 0, "the disk is gone")
    assert engine.collect()[0] == [2]
    engine.close()


@pytest.mark.parametrize("threads", [0, 1, 3])
def test_collecting_nothing_is_an_error(threads):
    engine = Prefetcher(echo, depth=1, threads=threads)
    with pytest.raises(RuntimeError, match="no batch"):
        engine.collect()
    engine.close()


@pytest.mark.parametrize("threads", [0, 1, 3])
def test_cancelled_batches_are_forgotten(threads):
    engine = Prefetcher(echo, depth=3, threads=threads)
    for number in range(3):
        engine.submit(number, 0)
    engine.cancel()
    assert engine.pending == 0
    engine.submit(9, 0)
    assert engine.collect()[0] == [9]
    engine.close()


def test_closing_waits_for_the_running_call_and_then_finishes_once():
    begun, events = threading.Event(), []

    def produce(number, epoch):
        begun.set()
        events.append("made")
        return echo(number, epoch)

    engine = Prefetcher(produce, depth=2, finish=lambda: events.append("finished"))
    engine.submit(0, 0)
    begun.wait(10)
    engine.close()
    engine.close()
    assert events == ["made", "finished"]
    with pytest.raises(ValueError, match="closed"):
        engine.submit(0, 0)
    with pytest.raises(ValueError, match="closed"):
        engine.collect()
    assert not any(thread.is_alive() for thread in engine._threads)


def test_closing_from_another_thread_ends_a_wait():
    begun, let_go = threading.Event(), threading.Event()

    def produce(number, epoch):
        begun.set()
        let_go.wait(10)
        return echo(number, epoch)

    engine = Prefetcher(produce, depth=1)
    engine.submit(0, 0)
    begun.wait(10)
    closer = threading.Thread(target=engine.close)
    errors = []

    def consume():
        try:
            engine.collect()
        except ValueError as error:
            errors.append(str(error))

    consumer = threading.Thread(target=consume)
    consumer.start()
    closer.start()
    consumer.join(10)
    let_go.set()
    closer.join(10)
    assert "closed" in errors[0]


def test_a_collected_batch_is_not_kept_alive():
    engine = Prefetcher(lambda records, epoch: ([np.zeros(3)], [], None, []), depth=2, threads=2)
    engine.submit(0, 0)
    data = engine.collect()[0]
    reference = weakref.ref(data[0])
    del data
    engine.submit(0, 0)
    engine.collect()
    gc.collect()
    assert reference() is None
    engine.close()


def use_in_child(engine, results):
    for use in (engine.collect, engine.cancel, lambda: engine.submit(0, 0)):
        try:
            use()
        except RuntimeError as error:
            results.put(str(error))
    engine.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("threads", [0, 1])
def test_a_forked_child_is_told(threads):
    engine = Prefetcher(echo, depth=2, threads=threads)
    engine.submit(5, 0)
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    child = context.Process(target=use_in_child, args=(engine, results))
    child.start()
    for _ in range(3):
        assert "process that created it" in results.get(timeout=30)
    child.join(30)
    assert child.exitcode == 0
    assert engine.collect()[0] == [5]
    engine.close()


@pytest.mark.parametrize("threads", [0, 2])
@pytest.mark.parametrize("when", ["before", "behind"])
def test_a_batch_whose_collection_was_interrupted_is_collected_again(monkeypatch, threads, when):
    begun, go_on = threading.Barrier(threads + 1), threading.Event()

    def produce(number, epoch):
        if number < 0:  # keeps a thread from the batches that are collected
            begun.wait(10)
            go_on.wait(10)
        return echo(number, epoch)

    engine = Prefetcher(produce, depth=2 + threads, threads=threads)
    make, interrupts = engine._make, []

    def interrupted(job):
        if threading.current_thread() is threading.main_thread() and not interrupts:
            interrupts.append(job.records)
            if when == "behind":
                make(job)
            raise KeyboardInterrupt
        make(job)

    monkeypatch.setattr(engine, "_make", interrupted)
    for _ in range(threads):
        engine.submit(-1, 0)
    if threads:
        begun.wait(10)
        engine._jobs.clear()  # the next batch is the oldest, and nobody has begun it
    for number in range(2):
        engine.submit(number, 0)
    with pytest.raises(KeyboardInterrupt):
        engine.collect()
    assert engine.pending == 2
    assert [engine.collect()[0] for _ in range(2)] == [[0], [1]]
    assert interrupts == [0]
    go_on.set()
    engine.cancel()
    engine.close()


def test_an_interrupted_collection_can_be_cancelled(monkeypatch):
    engine = Prefetcher(echo, depth=1, threads=0)
    make = engine._make

    def interrupted(job):
        raise KeyboardInterrupt

    monkeypatch.setattr(engine, "_make", interrupted)
    engine.submit(1, 0)
    with pytest.raises(KeyboardInterrupt):
        engine.collect()
    engine.cancel()
    assert engine.pending == 0
    monkeypatch.setattr(engine, "_make", make)
    engine.submit(2, 0)
    assert engine.collect()[0] == [2]
    engine.close()


@pytest.mark.parametrize("threads", [1, 3])
def test_closing_in_a_thread_that_holds_the_lock_ends_all_threads(threads):
    """Garbage can be collected anywhere, so a finalizer may close the engine in its own threads."""
    finished, ended = [], threading.Event()

    def produce(records, epoch):
        with engine._lock:
            engine.close()
        return echo(records, epoch)

    def finish():
        finished.append(threading.current_thread())
        ended.set()

    engine = Prefetcher(produce, depth=2, threads=threads, finish=finish)
    workers = list(engine._threads)
    engine.submit(0, 0)
    assert ended.wait(60)
    engine.close()
    assert finished and finished[0] in workers and len(finished) == 1
    assert not any(worker.is_alive() for worker in workers)
    with pytest.raises(ValueError, match="closed"):
        engine.collect()


@pytest.mark.parametrize("threads", [1, 2])
def test_a_thread_without_memory_between_two_steps_keeps_nobody_waiting(threads, monkeypatch):
    def no_memory():
        raise MemoryError

    ended = threading.Event()

    class Watched(Prefetcher):
        def _work_on(self):
            super()._work_on()
            ended.set()

    engine = Watched(echo, depth=4, threads=threads)
    monkeypatch.setattr("iterators.core.prefetch.time.perf_counter", no_memory)
    engine.submit(0, epoch=0)
    assert ended.wait(10)
    monkeypatch.undo()
    with pytest.raises(MemoryError):
        engine.collect()
    engine.cancel()
    engine.close()
