"""Threads of requests whose jobs end in other ways than well: nobody waits for ever."""

import threading
import weakref

import numpy as np
import pytest

from recordio.bytes.remote import fetching
from recordio.bytes.remote.block_table import BLOCK, HAS_LOCKS, PIN, USE, BlockTable
from recordio.bytes.remote.fetching import Fetcher, Job
from recordio.bytes.remote.folder import open_mirror

DATA = np.random.default_rng(0).bytes(12 * BLOCK + 5)
needs_locks = pytest.mark.skipif(not HAS_LOCKS, reason="needs locks on parts of files")


class Panic(BaseException):
    """What a library in another language may raise."""


def failing(job):
    raise Panic


@pytest.fixture
def mirror(server, settings):
    """One that is bounded, where that can be."""
    server.objects["a.rec"] = DATA
    size = 6 * BLOCK if HAS_LOCKS else None
    return open_mirror(f"{server.url}/a.rec", settings(remote_cache_size=size))


@pytest.fixture
def other(mirror):
    """The marks and locks as another process sees them."""
    table = BlockTable(mirror.path.replace("data", "blocks"), mirror.size)
    yield table
    table.close()


def test_jobs_that_panic_are_over():
    fetcher, jobs = Fetcher(), [Job(0, 1, 10, failing), Job(0, 1, 10, lambda job: None)]
    fetcher.submit(jobs)
    for job in jobs:
        fetcher.wait_for([job])
    assert isinstance(jobs[0].error, Panic) and jobs[1].error is None


def test_the_first_failure_ends_a_wait():
    stopped = threading.Event()
    jobs = [Job(0, 1, 10, lambda job: stopped.wait()), Job(0, 1, 10, failing)]
    fetcher = Fetcher()
    fetcher.submit(jobs)
    fetcher.wait_for(jobs)
    assert not jobs[0].done
    stopped.set()
    fetcher.wait_for(jobs[:1])


def test_threads_that_wait_keep_no_job(monkeypatch):
    """Nor the mirror that it belongs to, which would stay open."""
    monkeypatch.setattr(fetching, "MOST_BYTES", 10)
    fetcher, gate = Fetcher(), threading.Event()

    class Run:
        def __call__(self, job):
            gate.wait(60)

    jobs = [Job(0, 1, 10, Run()) for _ in range(3)]
    alive = [weakref.ref(job.run) for job in jobs]
    fetcher.submit(jobs)  # two of three threads find that enough bytes are under way
    while fetcher._idle < 2:
        pass
    gate.set()
    for _ in range(3):
        fetcher.wait_for([jobs.pop()])
    while fetcher._idle < 3:
        pass
    assert [run() for run in alive] == [None] * 3


def test_no_thread_can_be_started(monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    fetcher, job = Fetcher(), Job(0, 1, 10, lambda job: None)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="new thread"):
            fetcher.submit([job])
    fetcher.submit([job])
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        more = [Job(0, 1, 10, lambda job: None) for _ in range(20)]
        fetcher.submit(more)  # those that there are do the work
    fetcher.wait_for([job, *more])


def test_a_request_that_is_given_up_is_not_joined(mirror, monkeypatch):
    """Blocks that are asked for again at the moment when their request ends come by another one."""
    begun, released, again = threading.Event(), threading.Event(), []
    read, forget = mirror._remote.read, mirror._pins.remove

    def fail_once(start, end):
        if not begun.is_set():
            begun.set()
            released.wait()
            raise OSError("broken")
        return read(start, end)

    unlock = mirror.table.unlock

    def ask_again(*arguments):
        if not again:
            again.append(mirror.pin(np.array([3])))
        unlock(*arguments)

    monkeypatch.setattr(mirror._remote, "read", fail_once)
    pin = mirror.pin(np.array([3]))
    assert begun.wait(60)
    pin.release()
    monkeypatch.setattr(mirror.table, "unlock", ask_again)
    asked = threading.Event()
    monkeypatch.setattr(mirror._pins, "remove", lambda blocks: (forget(blocks), asked.set()))
    released.set()
    assert asked.wait(60)
    with again[0]:
        assert mirror.view[3 * BLOCK : 4 * BLOCK] == DATA[3 * BLOCK : 4 * BLOCK]


@needs_locks
def test_what_is_being_written_is_given_up_by_nobody(mirror, other, monkeypatch):
    """Neither are blocks that come along with those that are held."""
    read, seen = mirror._remote.read, []

    def look(start, end):
        seen.extend(other.lock(PIN + block) for block in (3, 4, 5))
        return read(start, end)

    monkeypatch.setattr(mirror._remote, "read", look)
    pin = mirror.pin(np.array([3]), stripe=3)
    pin.unpin()
    mirror.pin(np.array([3])).wait()
    assert seen == [False] * 3
    assert mirror.view[3 * BLOCK : 6 * BLOCK] == DATA[3 * BLOCK : 6 * BLOCK]


@needs_locks
def test_what_was_held_before_all_of_it_stays_is_not_let_go(mirror, other):
    pin = mirror.pin(np.array([2]))
    pin.wait()
    mirror.stay()
    pin.release()
    assert not other.lock(PIN + 2) and not mirror.evict(2)
    assert not other.lock(USE)


def test_marks_are_looked_at_while_others_change_them(tmp_path):
    table = BlockTable(str(tmp_path / "blocks"), 100_000 * BLOCK)
    over = threading.Event()

    def change(states):
        while not over.is_set():
            states[::3] = 1
            states[::3] = 0

    thread = threading.Thread(target=change, args=(table.states,))
    thread.start()
    for _ in range(200):
        assert (table.present() % 3 == 0).all()
    over.set()
    thread.join()
    table.close()
