"""Worker processes: errors, deaths, shared memory, start methods, forks and ends."""

import contextlib
import faulthandler
import gc
import multiprocessing
import os
import platform
import select
import signal
import subprocess
import sys
import textwrap
import warnings
from multiprocessing import shared_memory

import numpy as np
import pytest

from iterators import MultiprocessIterator, SerialIterator, concat_examples
from iterators.core.shared_arrays import joined
from iterators.loops import WorkerDiedError, WorkerError, packing

#: Newer versions of Python warn when a process that has threads is forked.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")

METHODS = multiprocessing.get_all_start_methods()


@pytest.fixture(autouse=True)
def nothing_is_left_behind():
    yield
    gc.collect()
    assert multiprocessing.active_children() == []


class Arrays:
    """Examples of every sort, of different sizes; any process makes the same."""

    def __init__(self, count=23, side=40):
        self.count, self.side = count, side

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        image = np.full((3, self.side, self.side), i, np.float32)
        return image, np.int32(i), np.array(i, np.int8), np.arange(i % 4), {"name": str(i)}


def same(found, wanted):
    assert type(found) is type(wanted)
    if isinstance(found, (tuple, list)):
        assert len(found) == len(wanted)
        for a, b in zip(found, wanted, strict=True):
            same(a, b)
    elif isinstance(found, dict):
        assert list(found) == list(wanted)
        same(list(found.values()), list(wanted.values()))
    elif isinstance(found, np.ndarray):
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        assert found.flags.writeable
        np.testing.assert_array_equal(found, wanted)
    else:
        assert found == wanted


@pytest.mark.parametrize("method", METHODS)
def test_examples_arrive_as_they_were_made(method):
    wanted = list(SerialIterator(Arrays(), 5, repeat=False, shuffle=False))
    with MultiprocessIterator(
        Arrays(), 5, repeat=False, shuffle=False, n_processes=2, n_prefetch=3, context=method
    ) as batches:
        same(list(batches), wanted)


class Bare:
    """Examples of one chosen sort."""

    def __init__(self, example):
        self.example = example

    def __len__(self):
        return 6

    def __getitem__(self, i):
        return self.example


@pytest.mark.parametrize(
    "example",
    [
        np.zeros((40, 40)),
        np.zeros((40, 40)).T[::2],
        np.zeros((100, 0, 3)),
        np.array(["a", "b"], object),
        np.array([(1, 2.5)] * 900, "i4,f8"),
        np.arange(2000).astype("datetime64[s]"),
        np.arange(2000, dtype=">i4"),
        np.float16(2.5),
        {"x": np.ones(5000), "y": [np.ones(3000)]},
        [np.ones(5000), 1],
        (),
        {},
        None,
        b"x" * 100_000,
        "text",
        (np.ones(5000), (np.ones(3), np.ones(4000, np.uint8))),
    ],
    ids=lambda example: type(example).__name__,
)
@pytest.mark.parametrize("shared_mem", [None, 0])
def test_every_sort_of_example(example, shared_mem):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with MultiprocessIterator(
            Bare(example), 4, shuffle=False, n_processes=1, shared_mem=shared_mem
        ) as batches:
            for _ in range(2):
                same(next(batches), [example] * 4)


class Ragged:
    """Arrays whose sizes change from example to example."""

    def __len__(self):
        return 40

    def __getitem__(self, i):
        return np.full(i * 997 % 50_000, i)


def test_sizes_may_change_from_batch_to_batch():
    wanted = list(SerialIterator(Ragged(), 3, repeat=False, shuffle=False))
    with MultiprocessIterator(Ragged(), 3, repeat=False, shuffle=False, n_processes=2) as batches:
        same(list(batches), wanted)


@pytest.mark.parametrize("shared_mem", [0, 1000, 15_000, 10**6])
def test_too_little_shared_memory_is_a_warning_and_the_data_are_intact(shared_mem):
    wanted = list(SerialIterator(Arrays(), 5, repeat=False, shuffle=False))
    with MultiprocessIterator(
        Arrays(), 5, repeat=False, shuffle=False, n_processes=2, shared_mem=shared_mem
    ) as batches:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            same(list(batches), wanted)
    messages = [str(warning.message) for warning in caught if warning.category is UserWarning]
    assert len(messages) == (0 if shared_mem == 10**6 else 1)
    assert all("did not fit into shared memory" in message for message in messages)


def no_more_memory(*_):
    raise OSError(28, "No space left on device")


@pytest.mark.skipif("fork" not in METHODS, reason="needs fork")
def test_no_shared_memory_at_all_is_a_warning(monkeypatch):
    monkeypatch.setattr(packing, "anonymous", no_more_memory)
    with MultiprocessIterator(Arrays(), 5, shuffle=False, n_processes=1, context="fork") as batches:
        with pytest.warns(UserWarning, match="df /dev/shm"):
            same(next(batches), next(SerialIterator(Arrays(), 5, shuffle=False)))


@pytest.mark.skipif("fork" not in METHODS, reason="needs fork")
def test_shared_memory_that_had_a_name_has_lost_it(monkeypatch, tmp_path):
    monkeypatch.delattr(os, "memfd_create", raising=False)
    names = tmp_path / "names"

    class Noted(shared_memory.SharedMemory):
        """The names that workers, which are forked, give to their memory."""

        def __init__(self, *args, **keywords):
            super().__init__(*args, **keywords)
            with open(names, "a") as file:
                print(self.name, file=file)

    monkeypatch.setattr(packing, "SharedMemory", Noted)
    with MultiprocessIterator(Arrays(), 5, shuffle=False, n_processes=2, context="fork") as batches:
        plain = SerialIterator(Arrays(), 5, shuffle=False)
        for _ in range(6):
            same(next(batches), next(plain))
    assert names.read_text()
    for name in names.read_text().split():
        with pytest.raises(FileNotFoundError):
            shared_memory.SharedMemory(name)


def test_a_batch_is_not_overwritten_while_anything_of_it_is_held():
    dataset = Arrays(30)
    with MultiprocessIterator(dataset, 3, shuffle=False, n_processes=2, n_prefetch=2) as batches:
        held = []
        for number in range(60):
            batch = next(batches)
            first = number * 3 % 30
            if number % 3 == 0:
                held.append((first, batch[0][0]))  # one array of the batch
            elif number % 3 == 1:
                held.append((first + 2, memoryview(batch[2][0])[1:]))
            for index, array in held:
                assert np.all(np.asarray(array) == index)
            if len(held) > 12:
                del held[::2]
    del batches
    gc.collect()
    for index, array in held:  # valid when the processes are long gone
        assert np.all(np.asarray(array) == index)


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="counts descriptors and maps of Linux")
def test_memory_is_used_again():
    def maps():
        with open("/proc/self/maps") as lines:
            return sum("memfd:iterators" in line for line in lines)

    with MultiprocessIterator(Arrays(), 5, n_processes=2, n_prefetch=2) as batches:
        for _ in range(100):
            next(batches)
        assert maps() <= 8
        held = [next(batches) for _ in range(40)]
        assert maps() >= 20
        del held
        for _ in range(60):
            next(batches)
        assert maps() <= 12
        descriptors = len(os.listdir("/proc/self/fd"))
        for _ in range(50):
            next(batches)
        assert len(os.listdir("/proc/self/fd")) <= descriptors
    del batches
    gc.collect()
    assert maps() == 0


class Faults:
    """Examples of 100 kB made anew, with the page faults of their process so far."""

    def __len__(self):
        return 3200

    def __getitem__(self, i):
        import resource  # there is none on Windows

        return np.full(25_000, i, np.float32), resource.getrusage(resource.RUSAGE_SELF).ru_minflt


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="how glibc's malloc keeps memory")
def test_workers_take_the_memory_of_examples_again():
    # Spawned, so that the worker has not inherited what malloc learnt in the tests before.
    with MultiprocessIterator(
        Faults(), 32, shuffle=False, n_processes=1, n_prefetch=2, context="spawn"
    ) as batches:
        seen = [next(batches)[-1][1] for _ in range(40)]
    assert seen[39] - seen[19] < 20 * 32  # 24 for each example when its memory is given back


def test_examples_of_a_batch_lie_side_by_side_and_can_be_joined_without_a_copy():
    with MultiprocessIterator(Arrays(), 5, shuffle=False, n_processes=1, n_prefetch=1) as batches:
        images, labels, indices, ragged, _ = zip(*next(batches), strict=True)
        assert np.shares_memory(concat_examples(images), images[0])
        assert not np.shares_memory(concat_examples(list(np.zeros((3, 2)))), images[0])
        rows = np.zeros((3, 2))
        assert not np.shares_memory(concat_examples(list(rows)), rows)  # somebody's array
        together = joined(images)
        assert np.shares_memory(together, images[0])
        np.testing.assert_array_equal(together, np.stack(images))
        np.testing.assert_array_equal(joined(indices), np.arange(5))
        assert joined(images[::2]) is None
        assert joined(images[::-1]) is None
        assert joined(ragged) is None
        assert np.array_equal(joined(images[1:3]), np.stack(images[1:3]))
        assert joined([image.T for image in images]) is None
        assert joined([image[0] for image in images]) is None
        views = joined([images[0].view(np.int32), images[1].view(np.int32)])
        assert views is None
        del images, indices, ragged
        for _ in range(20):
            next(batches)
        assert together[:, 0, 0, 0].tolist() == [0, 1, 2, 3, 4]  # keeps the memory


# -- errors ----------------------------------------------------------------------------------------


class OwnError(Exception):
    def __init__(self, number, place):
        super().__init__(f"{number} at {place}")
        self.number = number

    def __reduce__(self):
        return OwnError, (self.number, "place")


class Unsendable(Exception):
    def __init__(self, number, place):
        super().__init__("needs two arguments")


class Raising:
    def __init__(self, error, *arguments):
        self.error, self.arguments = error, arguments

    def __len__(self):
        return 4

    def __getitem__(self, i):
        if i == 3:

            def deeply():
                raise self.error(*self.arguments)

            deeply()
        return i


@pytest.mark.parametrize("method", METHODS)
def test_an_exception_keeps_its_type_and_tells_where_it_was_raised(method):
    with MultiprocessIterator(
        Raising(OwnError, 7, "x"), 2, shuffle=False, n_processes=2, context=method
    ) as batches:
        assert next(batches) == [0, 1]
        with pytest.raises(OwnError, match="7 at") as caught:
            next(batches)
        assert caught.value.number == 7
        cause = str(caught.value.__cause__)
        assert "in deeply" in cause and "test_multiprocess.py" in cause


@pytest.mark.parametrize("error", [(Unsendable, 1, 2), (SystemExit, 3), (KeyboardInterrupt,)])
def test_an_exception_that_cannot_be_sent_is_told_in_words(error):
    with MultiprocessIterator(Raising(*error), 2, shuffle=False, n_processes=1) as batches:
        next(batches)
        with pytest.raises(WorkerError, match=error[0].__name__) as caught:
            next(batches)
        assert "in deeply" in str(caught.value.__cause__)
        assert next(batches) == [0, 1]


class Broken:
    """Cannot be unpickled."""

    def __len__(self):
        return 4

    def __getitem__(self, i):
        return i

    def __setstate__(self, state):
        raise ZeroDivisionError("on arrival")

    def __getstate__(self):
        return {"some": "thing"}


def test_a_data_set_that_does_not_arrive():
    with MultiprocessIterator(Broken(), 2, n_processes=1, context="spawn") as batches:
        with pytest.raises(ZeroDivisionError, match="on arrival"):
            next(batches)


def test_a_data_set_that_cannot_be_sent():
    with MultiprocessIterator([lambda: 1], 1, n_processes=1, context="spawn") as batches:
        with pytest.raises(TypeError, match=r"list cannot be sent.*(lambda|local object).*by fork"):
            next(batches)


# -- deaths ----------------------------------------------------------------------------------------


class Deadly:
    """Kills the worker, once or always, for one example."""

    def __init__(self, how, flag=None):
        self.how, self.flag = how, flag

    def __len__(self):
        return 8

    def __getitem__(self, i):
        if i == 5 and not (self.flag and os.path.exists(self.flag)):
            if self.flag:
                open(self.flag, "w").close()
            if self.how == "exit":
                os._exit(7)
            faulthandler.disable()  # no report of what is meant to happen
            os.kill(os.getpid(), self.how)
        return i


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
@pytest.mark.parametrize(
    ("how", "method"),
    [
        (signal.SIGKILL, "fork"),
        (signal.SIGKILL, "spawn"),
        (signal.SIGSEGV, "fork"),
        ("exit", "fork"),
    ],
)
def test_a_worker_that_dies_is_an_error_and_the_batch_can_be_made_again(how, method, tmp_path):
    with MultiprocessIterator(
        Deadly(how, str(tmp_path / "flag")), 2, shuffle=False, n_processes=2, context=method
    ) as batches:
        found = [next(batches), next(batches)]
        text = "status 7" if how == "exit" else how.name
        with pytest.raises(WorkerDiedError, match=text):
            next(batches)
        assert batches.current_position == 4
        found += [next(batches), next(batches)]
        assert found == [[0, 1], [2, 3], [4, 5], [6, 7]]


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
def test_an_idle_worker_that_is_killed_is_an_error_too():
    with MultiprocessIterator(range(9), 2, shuffle=False, n_processes=2) as batches:
        next(batches)
        for pid in batches._pool.pids:
            os.kill(pid, signal.SIGKILL)
        with pytest.raises(WorkerDiedError, match="SIGKILL"):
            for _ in range(4):
                next(batches)
        assert len(next(batches)) == 2


class Endless:
    """Waits for ever, for one example."""

    def __len__(self):
        return 4

    def __getitem__(self, i):
        while i == 3:
            signal.pause()
        return i


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
def test_waiting_too_long_is_a_warning_and_then_goes_on():
    with MultiprocessIterator(
        Endless(), 2, shuffle=False, n_processes=1, dataset_timeout=0.05
    ) as batches:
        with warnings.catch_warnings():  # a process that is not forked may take longer to begin
            warnings.simplefilter("ignore", MultiprocessIterator.TimeoutWarning)
            assert next(batches) == [0, 1]
        with pytest.warns(MultiprocessIterator.TimeoutWarning, match="0.05 seconds"):
            pool = batches._pool
            late = batches._late
            # Whoever hears the warning kills the process that hangs.
            batches._late = lambda: (late(), os.kill(pool.pids[0], signal.SIGKILL))
            with pytest.raises(WorkerDiedError):
                next(batches)


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
def test_a_worker_that_hangs_does_not_hold_up_the_end():
    batches = MultiprocessIterator(Endless(), 2, shuffle=False, n_processes=1)
    next(batches)
    assert len(multiprocessing.active_children()) == len(batches._pool.pids) == 1
    batches.finalize()
    assert multiprocessing.active_children() == []


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
@pytest.mark.parametrize("turn", range(1, 9))
def test_an_interrupt_in_the_consumer_costs_no_batch(turn, monkeypatch):
    wanted = SerialIterator(range(20), 3, shuffle=False)
    with MultiprocessIterator(range(20), 3, shuffle=False, n_processes=2) as batches:
        found = [next(batches)]
        calls = []
        wait = multiprocessing.connection.wait

        def interrupted(*arguments):
            calls.append(1)
            if len(calls) == turn:
                raise KeyboardInterrupt
            return wait(*arguments)

        monkeypatch.setattr(multiprocessing.connection, "wait", interrupted)
        while len(found) < 12:
            try:
                found.append(next(batches))
            except KeyboardInterrupt:
                assert batches.current_position == 3 * len(found) % 20
        assert len(calls) >= turn
        assert found == [next(wanted) for _ in range(12)]


# -- processes -------------------------------------------------------------------------------------


class Pids:
    def __len__(self):
        return 12

    def __getitem__(self, i):
        return os.getpid()


def test_workers_are_replaced_after_their_tasks():
    with MultiprocessIterator(
        Pids(), 2, shuffle=False, n_processes=2, n_prefetch=2, maxtasksperchild=3
    ) as batches:
        pids = [pid for _ in range(24) for pid in next(batches)]
    assert len(set(pids)) >= 8
    assert max(pids.count(pid) for pid in pids) <= 6


def test_workers_live_as_long_as_the_iterator_otherwise():
    with MultiprocessIterator(Pids(), 2, n_processes=2, n_prefetch=2) as batches:
        pids = {pid for _ in range(24) for pid in next(batches)}
        assert pids <= set(batches._pool.pids) and os.getpid() not in pids


class Draws:
    def __len__(self):
        return 8

    def __getitem__(self, i):
        import random

        return os.getpid(), np.random.random(), random.random()


def test_workers_draw_differently_from_one_another():
    with MultiprocessIterator(Draws(), 8, n_processes=4) as batches:
        batch = next(batches)
    assert len({pid for pid, *_ in batch}) > 1
    for column in (1, 2):
        assert len({example[column] for example in batch}) == 8


def test_long_batches_and_long_answers_do_not_lock_up():
    class Texts:
        def __len__(self):
            return 3000

        def __getitem__(self, i):
            return "x" * 500

    with MultiprocessIterator(
        Texts(), 2500, n_processes=2, n_prefetch=4, context="fork" if "fork" in METHODS else None
    ) as batches:
        for _ in range(8):
            assert len(next(batches)) == 2500


@pytest.mark.skipif("fork" not in METHODS, reason="needs fork")
def test_a_forked_child_goes_on_with_processes_of_its_own():
    wanted = SerialIterator(range(20), 3, shuffle=False)
    with MultiprocessIterator(
        range(20), 3, shuffle=False, n_processes=2, context="fork"
    ) as batches:
        found = [next(batches)]
        reader, writer = multiprocessing.Pipe()

        def child():
            writer.send([next(batches) for _ in range(3)])
            batches.finalize()

        process = multiprocessing.get_context("fork").Process(target=child)
        process.start()
        there = reader.recv()
        process.join()
        assert process.exitcode == 0
        found += [next(batches) for _ in range(3)]
        assert found == [next(wanted) for _ in range(4)]
        assert there == found[1:]


SCRIPT = """
    import os, signal, sys
    import numpy as np
    from iterators import MultiprocessIterator

    class Large:
        def __len__(self):
            return 100
        def __getitem__(self, i):
            return np.full(50_000, i)

    if __name__ == "__main__":
        batches = MultiprocessIterator(
            Large(), 4, n_processes=2, n_prefetch=4, context=sys.argv[1])
        for _ in range(10):
            batch = next(batches)
        print(*batches._pool.pids, flush=True)
        sys.argv[2] == "kill" and os.kill(os.getpid(), signal.SIGKILL)
        sys.argv[2] == "raise" and 1 / 0
"""


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs pidfd_open")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("end", ["kill", "raise", "return"])
def test_nothing_is_left_however_the_program_ends(method, end, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(SCRIPT))
    child = subprocess.run(
        [sys.executable, str(program), method, end], capture_output=True, text=True, timeout=60
    )  # returns when the last process that holds the pipes has ended
    assert child.returncode == {"kill": -signal.SIGKILL, "raise": 1, "return": 0}[end]
    assert "leaked" not in child.stderr and "Exception ignored" not in child.stderr
    assert ("ZeroDivisionError" in child.stderr) == (end == "raise")
    pids = child.stdout.split()
    assert len(pids) == 2
    for pid in map(int, pids):
        with contextlib.suppress(ProcessLookupError):
            descriptor = os.pidfd_open(pid)
            assert select.select([descriptor], [], [], 10)[0], "a worker is still there"
            os.close(descriptor)


def test_dropping_an_iterator_ends_its_processes():
    batches = MultiprocessIterator(Arrays(), 4, n_processes=2)
    batch = next(batches)
    processes = multiprocessing.active_children()
    assert len(processes) == 2
    del batches
    gc.collect()
    assert multiprocessing.active_children() == []
    assert batch[0][0].shape == (3, 40, 40)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_processes": 0}, "n_processes"),
        ({"n_prefetch": 0}, "n_prefetch"),
        ({"shared_mem": -1}, "shared_mem"),
        ({"dataset_timeout": -1}, "dataset_timeout"),
        ({"maxtasksperchild": 0}, "maxtasksperchild"),
        ({"context": "teleport"}, "teleport"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        MultiprocessIterator([1], 1, **arguments)
