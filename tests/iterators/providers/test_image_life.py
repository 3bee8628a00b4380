"""Memory, threads, interrupts and ends of image providers."""

import copy
import gc
import multiprocessing
import pickle
import subprocess
import sys
import textwrap
import threading
import tracemalloc

import pytest

import recordio
from iterators import ImageRecordIter
from iterators.testing import encode, maker, noise, write_pack


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    kinds = (".jpg", ".png", ".bmp")
    contents = [encode(noise(seed=i), kinds[i % 3]) for i in range(50)]
    contents[31] = b"no image"
    return write_pack(tmp_path_factory.mktemp("life") / "small.rec", contents)


provider_of = maker(
    ImageRecordIter, data_shape=(3, 16, 16), batch_size=8, preprocess_threads=2, on_error="skip"
)


def contents(provider):
    return [(b.data[0].tobytes(), b.index.tolist()) for b in provider]


# -- memory ----------------------------------------------------------------------------------------


def test_thirty_epochs_leave_nothing_behind(pack):
    with provider_of(pack, shuffle=True, random_h=9, rand_crop=True) as provider:
        for _ in range(5):
            list(provider)
        gc.collect()
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(30):
            for _batch in provider:
                pass
        del _batch
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
    assert grown < 100_000  # 30 epochs are 6 MB of batches
    assert gc.garbage == []


def test_providers_made_and_dropped_leave_no_threads_and_no_memory(pack):
    script = """
        import gc, resource, sys, threading
        import iterators
        def turn(step):
            provider = iterators.ImageRecordIter(
                path_imgrec=sys.argv[1], data_shape=(3, 300, 300), batch_size=8, on_error="skip",
                preprocess_threads=3, shuffle=bool(step % 2))
            if step % 3:
                provider.next()
            if step % 4 == 0:
                provider.close()
            if step % 5 == 0:
                provider.cycle = provider
                gc.collect()  # Python 3.14 waits long before it looks for cycles
        for step in range(60):
            turn(step)
        gc.collect()
        first = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for step in range(200):
            turn(step)
        gc.collect()
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - first
        print(threading.active_count(), grown < 100_000, grown)  # a batch has 8.6 MB
    """
    pytest.importorskip("resource")
    child = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), str(pack)],
        capture_output=True, text=True, timeout=110,
    )  # fmt: skip
    assert child.stderr == ""
    assert child.stdout.startswith("1 True"), child.stdout


@pytest.mark.parametrize("arguments", [{"epoch": -1}, {"error_budget": -3}, {"epoch": 1 << 40}])
def test_a_refused_argument_leaves_no_threads(pack, arguments, new_threads):
    for _ in range(3):
        with pytest.raises(ValueError):
            provider_of(pack, **arguments)
    gc.collect()
    assert not new_threads()


def test_threads_that_cannot_be_started_stop_those_that_were(pack, monkeypatch, new_threads):
    start, turns = threading.Thread.start, []

    def failing(thread):
        turns.append(1)
        if len(turns) == 3:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", failing)
    with pytest.raises(RuntimeError, match="can't start"):
        provider_of(pack, preprocess_threads=4)
    monkeypatch.undo()
    gc.collect()
    assert not new_threads()


def test_the_collector_may_run_at_any_time(pack):
    thresholds = gc.get_threshold()
    gc.set_threshold(1, 1, 1)
    try:
        with provider_of(pack, shuffle=True) as provider:
            often = [contents(provider) for _ in range(2)]
    finally:
        gc.set_threshold(*thresholds)
    with provider_of(pack, shuffle=True) as provider:
        assert [contents(provider) for _ in range(2)] == often


# -- several threads -------------------------------------------------------------------------------


def test_threads_that_share_a_provider_get_every_batch_once(pack):
    with provider_of(pack, shuffle=True, batch_size=3) as provider:
        wanted = contents(provider)
    for _ in range(5):
        found, failures = [], []
        with provider_of(pack, shuffle=True, batch_size=3, prefetch_buffer=2) as provider:

            def consume():
                try:
                    while True:
                        batch = provider.next()
                        found.append((batch.data[0].tobytes(), batch.index.tolist()))
                except StopIteration:
                    pass
                except Exception as error:
                    failures.append(error)

            threads = [threading.Thread(target=consume) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert failures == []
        assert sorted(found) == sorted(wanted)


def test_resets_and_states_from_other_threads_break_nothing(pack):
    stop, failures = threading.Event(), []
    with provider_of(pack, shuffle=True, batch_size=3) as provider:
        state = provider.state_dict()

        def disturb(action):
            while not stop.is_set():
                try:
                    action()
                except Exception as error:
                    failures.append(error)
                    return

        actions = (
            provider.reset, provider.state_dict, provider.stats, lambda: provider.skipped,
            lambda: provider.load_state_dict(state),
        )  # fmt: skip
        threads = [threading.Thread(target=disturb, args=(action,)) for action in actions]
        for thread in threads:
            thread.start()
        for _ in range(60):
            try:
                batch = provider.next()
            except StopIteration:
                continue
            assert batch.data[0].shape == (3, 3, 16, 16)
        stop.set()
        for thread in threads:
            thread.join()
        assert failures == []
        provider.load_state_dict(state)
        assert len(list(provider)) == len(provider)


def test_closing_in_another_thread_ends_a_loop_with_an_error(pack):
    provider = provider_of(pack)
    started, caught = threading.Event(), []

    def consume():
        try:
            while True:
                for _batch in provider:
                    started.set()
        except (ValueError, RuntimeError) as error:
            caught.append(error)

    thread = threading.Thread(target=consume)
    thread.start()
    assert started.wait(60)
    provider.close()
    thread.join(60)
    assert not thread.is_alive()
    assert "closed" in str(caught[0])


# -- interrupts ------------------------------------------------------------------------------------


class Interrupting:
    """An engine that is interrupted before or behind one of its steps."""

    def __init__(self, engine, name, when, turn):
        self.engine, self.name, self.when, self.turn = engine, name, when, turn

    def __getattr__(self, name):
        step = getattr(self.engine, name)
        if name != self.name:
            return step

        def interrupted(*arguments):
            self.turn -= 1
            if self.turn == 0 and self.when == "before":
                raise KeyboardInterrupt
            result = step(*arguments)
            if self.turn == 0:
                raise KeyboardInterrupt
            return result

        return interrupted


@pytest.mark.parametrize("name", ["submit", "collect", "retry", "cancel"])
@pytest.mark.parametrize("when", ["before", "behind"])
@pytest.mark.parametrize("turn", [1, 2, 5])
def test_an_interrupt_at_any_step_costs_no_batch(pack, name, when, turn):
    def run(provider, interrupts):
        found = []
        for number in range(30):
            if number == 5:
                state = provider.state_dict()
            if number == 10 and name == "cancel":
                provider.load_state_dict(state)
            try:
                found.append((provider.next().index.tolist(), provider.current.data[0].tobytes()))
            except StopIteration:
                provider.reset()
            except KeyboardInterrupt:
                interrupts.append(number)
                found.append(None)
        return found

    with provider_of(pack, shuffle=True, prefetch_buffer=2) as provider:
        wanted = [batch for batch in run(provider, []) if batch]
    with provider_of(pack, shuffle=True, prefetch_buffer=2) as provider:
        provider._engine = Interrupting(provider._engine, name, when, turn)
        interrupts = []
        found = [batch for batch in run(provider, interrupts) if batch]
    assert len(interrupts) == (name != "cancel" or turn == 1)
    assert found == wanted[: len(found)]
    assert len(found) >= len(wanted) - 1


def test_a_signal_handler_may_ask_for_the_state(pack):
    script = """
        import json, signal, sys, iterators
        provider = iterators.ImageRecordIter(
            path_imgrec=sys.argv[1], data_shape=(3, 400, 400), batch_size=16, on_error="skip",
            preprocess_threads=1, prefetch_buffer=1)
        states, problems = [], []
        def handler(*_):
            states.append(json.dumps(provider.state_dict()))
            try:
                provider.next()
            except (RuntimeError, StopIteration) as error:
                problems.append(str(error))
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
        count = 0
        while len(states) < 20:
            for batch in provider:
                assert batch.data[0].shape == (16, 3, 400, 400)
        signal.setitimer(signal.ITIMER_REAL, 0)
        print(len(states) >= 20, any("signal handler" in text for text in problems))
    """
    if sys.platform == "win32":
        pytest.skip("needs SIGALRM")
    child = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), str(pack)],
        capture_output=True, text=True, timeout=110,
    )  # fmt: skip
    assert child.stderr == ""
    assert child.stdout == "True True\n"


# -- errors of threads, copies ---------------------------------------------------------------------


def test_an_error_of_the_decoder_itself_is_an_error_of_the_record(pack, monkeypatch):
    from recordio.formats import general as codec

    def broken(*arguments, **limits):
        raise ZeroDivisionError("inside the decoder")

    monkeypatch.setattr(codec, "decode_other", broken)
    with provider_of(pack, on_error="raise") as provider:
        with pytest.raises(recordio.RecordIOError, match="inside the decoder"):
            provider.next()

    def hungry(*arguments, **limits):
        raise MemoryError

    monkeypatch.setattr(codec, "decode_other", hungry)
    with provider_of(pack) as provider:  # no memory is nothing to skip
        with pytest.raises(MemoryError):
            provider.next()
    monkeypatch.undo()
    with provider_of(pack) as provider:
        assert len(list(provider)) == 7


@pytest.mark.parametrize(
    "action", [copy.copy, copy.deepcopy, pickle.dumps, lambda p: pickle.dumps(p, 0)]
)
def test_providers_cannot_be_copied_and_say_what_to_do(pack, action):
    with provider_of(pack) as provider:
        with pytest.raises(TypeError, match=r"ImageRecordIter cannot be pickled.*state_dict\(\)"):
            action(provider)
        assert len(list(provider)) == 7


def test_a_provider_is_not_sent_to_a_new_process(pack):
    context = multiprocessing.get_context("spawn")
    with provider_of(pack) as provider:
        with pytest.raises(TypeError, match="cannot be pickled"):
            context.Process(target=print, args=(provider,)).start()
