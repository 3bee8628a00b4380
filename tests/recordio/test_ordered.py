"""Results come in the order of the work, and an error in the place of its result."""

import subprocess
import sys

import pytest

from recordio import ordered
from recordio.ordered import OrderedWork


class Chunk:
    def __init__(self, number):
        self.number, self.buffer = number, None


def work_on(count, work):
    chunks = iter([Chunk(number) for number in range(count)])
    return OrderedWork(lambda buffer: next(chunks, None), work, threads=2, ahead=2, name="test")


def test_results_in_the_order_of_the_chunks():
    work = work_on(5, lambda chunk: chunk.number)
    try:
        assert list(work) == [0, 1, 2, 3, 4]
    finally:
        work.close()


def test_an_error_comes_behind_the_results_before_it():
    def divide(chunk):
        return 6 // (2 - chunk.number)

    work = work_on(5, divide)
    try:
        assert [next(work), next(work)] == [3, 6]
        with pytest.raises(ZeroDivisionError):
            next(work)
    finally:
        work.close()


@pytest.mark.parametrize("number", range(4))
def test_a_thread_without_memory_between_two_steps_keeps_nobody_waiting(number):
    """Its chunk is read and is never worked on; the others' threads go on."""

    class Starved(OrderedWork):
        calls = 0

        def _next_chunk(self, buffer):
            found = super()._next_chunk(buffer)
            with self._lock:
                self.calls += 1
                if self.calls == number + 1:
                    raise MemoryError
            return found

    chunks = iter([Chunk(number) for number in range(3)])
    work = Starved(
        lambda buffer: next(chunks, None), lambda chunk: chunk.number, threads=2, ahead=2
    )
    try:
        with pytest.raises(MemoryError):
            for _ in range(4):
                next(work)
    finally:
        work.close()


@pytest.mark.parametrize(
    ("work", "last_work", "printed"),
    [
        ("time.sleep(0.5); print('ended')", 60, "begun\nended\n"),
        ("time.sleep(600)", 0.1, "begun\n"),
    ],
)
def test_the_process_ends_after_the_work_that_is_going_on(work, last_work, printed):
    """A thread in C++ code would abort it; one that hangs is left behind."""
    program = f"""
import threading, time
from recordio import ordered

ordered.LAST_WORK = {last_work}
begun = threading.Event()

def work(chunk):
    print("begun", flush=True)
    begun.set()
    {work}

chunks = iter([0])
alive = ordered.OrderedWork(lambda _: next(chunks, None), work, threads=1, ahead=1)
begun.wait()
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (0, printed), done.stderr


@pytest.mark.parametrize(
    ("files", "groups", "expected"),
    [
        ({}, "0::/", 8),
        ({"cpu.max": "max 100000"}, "0::/", 8),
        ({"cpu.max": "250000 100000"}, "0::/", 3),
        ({"jobs/mine/cpu.max": "50000 100000"}, "0::/jobs/mine", 1),
        ({"jobs/cpu.max": "200000 100000", "jobs/mine/cpu.max": "max 100000"}, "0::/jobs/mine", 2),
        (
            {"cpu/own/cpu.cfs_quota_us": "400000", "cpu/own/cpu.cfs_period_us": "100000"},
            "7:memory:/other\n3:cpu,cpuacct:/own",
            4,
        ),
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, "3:cpu:/", 8),
        ({"cpu.max": "nonsense"}, "0::/", 8),
    ],
)
def test_threads_are_those_that_the_process_may_use(tmp_path, monkeypatch, files, groups, expected):
    for name, text in files.items():
        (tmp_path / "fs" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "fs" / name).write_text(text)
    (tmp_path / "own").write_text(f"{groups}\n")
    monkeypatch.setattr(ordered, "CGROUPS", str(tmp_path / "fs"))
    monkeypatch.setattr(ordered, "OWN_GROUPS", str(tmp_path / "own"))
    monkeypatch.setattr(ordered.os, "process_cpu_count", lambda: 8, raising=False)
    monkeypatch.setattr(ordered.os, "sched_getaffinity", lambda _: set(range(16)), raising=False)
    assert ordered.default_threads() == expected
