"""Threads that carry out requests to servers, many at once.

A `Job` is one request for neighbouring blocks of a mirror.  Jobs are begun in the order in which
they were asked for, except urgent ones, and so that the bytes under way stay bounded.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TypeVar

#: Requests and bytes under way at once.
MOST_REQUESTS = 64
MOST_BYTES = 1 << 26
#: Seconds between two looks for Ctrl-C while waiting.
SIGNAL_SECONDS = 0.05

Answer = TypeVar("Answer")

FORKED = (
    "a forked process cannot fetch through what its parent opened: open the file in the process "
    "that reads it, or start workers with the method 'spawn'"
)


class Job:
    """One request for the blocks ``[first, last)`` of a mirror.

    A thread has taken it if it is `begun`, and it is over if it is `done`, with an `error` if it
    failed.  `waiters` counts who waits for it; a job that nobody wants any more is not begun.
    """

    __slots__ = ("begun", "done", "error", "first", "last", "nbytes", "run", "waiters")

    def __init__(self, first: int, last: int, nbytes: int, run: Callable[[Job], None]) -> None:
        self.first: int = first
        self.last: int = last
        self.nbytes: int = nbytes
        self.run: Callable[[Job], None] = run
        self.begun: bool = False
        self.done: bool = False
        self.waiters: int = 1
        self.error: BaseException | None = None

    @property
    def alive(self) -> bool:
        """True while somebody who needs its blocks may wait for it."""
        return not self.done and (self.begun or self.waiters > 0)


class Fetcher:
    """The threads of a process that carry out jobs.

    >>> fetcher, job = Fetcher(), Job(0, 1, 10, lambda job: None)
    >>> fetcher.submit([job])
    >>> fetcher.wait_for([job])
    >>> job.done
    True
    """

    def __init__(self) -> None:
        self.process: int = os.getpid()
        #: Guards all jobs, and is notified when one is over.
        lock = threading.RLock()
        self.changed: threading.Condition = threading.Condition(lock)
        self._queue: deque[Job] = deque()
        self._work = threading.Condition(lock)
        self._threads = self._idle = self._bytes = 0

    def submit(self, jobs: list[Job], urgent: bool = False) -> None:
        """Begin jobs after all others, or before."""
        if self.process != os.getpid():
            raise RuntimeError(FORKED)
        with self.changed:
            waiting = len(self._queue) + len(jobs)
            self._start(min(waiting - self._idle, MOST_REQUESTS - self._threads))
            if urgent:
                self._queue.extendleft(reversed(jobs))
            else:
                self._queue.extend(jobs)
            self._work.notify(len(jobs))

    def _start(self, count: int) -> None:
        """Start threads; fewer where the system gives no more, if there is one at all."""
        for _ in range(count):
            thread = threading.Thread(target=self._serve, daemon=True, name="remote-fetch")
            try:
                thread.start()
            except RuntimeError:
                if not self._threads:
                    raise
                return
            self._threads += 1

    def hurry(self, jobs: list[Job]) -> None:
        """Begin those of some jobs that were not begun before all others."""
        with self.changed:
            waiting = set(map(id, self._queue))
            moved = [job for job in jobs if id(job) in waiting]
            if moved and len(moved) < len(waiting):
                chosen = set(map(id, moved))
                rest = [job for job in self._queue if id(job) not in chosen]
                self._queue.clear()
                self._queue.extend(moved + rest)

    def wait_for(self, jobs: list[Job]) -> None:
        """Wait until all of some jobs are over, or one has failed; Ctrl-C works meanwhile."""
        if self.process != os.getpid():
            raise RuntimeError(FORKED)
        with self.changed:
            while not over(jobs):
                self.changed.wait(SIGNAL_SECONDS)

    def _serve(self) -> None:
        while True:  # and keep no job while waiting for the next, nor its mirror
            self._carry_out(self._take())

    def _carry_out(self, job: Job) -> None:
        try:
            job.run(job)
        except BaseException as error:  # a panic of a library is no Exception, and is waited for
            job.error = error
        with self.changed:
            del job.run  # and with it the mirror, which is free when whoever waits goes on
            job.done = True
            self._bytes -= job.nbytes
            self.changed.notify_all()

    def _take(self) -> Job:
        with self.changed:
            self._idle += 1
            while (job := self._next()) is None:  # and keep none, see above
                (self.changed if self._queue else self._work).wait()
            self._idle -= 1
            return job

    def _next(self) -> Job | None:
        """Take the job that comes next, if it may be begun."""
        while self._queue and not self._queue[0].waiters:
            dropped = self._queue.popleft()
            dropped.done, dropped.error = True, Unwanted()
        if not self._queue or (self._bytes and self._bytes + self._queue[0].nbytes > MOST_BYTES):
            return None
        job = self._queue.popleft()
        job.begun = True
        self._bytes += job.nbytes
        return job


def over(jobs: list[Job]) -> bool:
    """Tell whether waiting for all of some jobs is at an end: they are done, or one has failed."""
    return all(job.done for job in jobs) or any(job.error is not None for job in jobs)


class Unwanted(Exception):
    """An error for jobs that nobody wants any more."""


_fetcher: Fetcher | None = None
# Taken again by the thread that has it when garbage is collected just then, and with it a mirror.
_fetcher_lock = threading.RLock()


def fetcher() -> Fetcher:
    """Return the threads of this process."""
    global _fetcher
    with _fetcher_lock:
        if _fetcher is None or _fetcher.process != os.getpid():
            _fetcher = Fetcher()
        return _fetcher


with contextlib.suppress(AttributeError):  # Windows has no fork
    os.register_at_fork(after_in_child=_fetcher_lock._at_fork_reinit)  # type: ignore[attr-defined]


def in_background(function: Callable[[], Answer]) -> Answer:
    """Call a function in a thread of its own, so that Ctrl-C ends the wait for its result.

    >>> in_background(lambda: 7 // 3)
    2
    """
    answer: Future[Answer] = Future()
    threading.Thread(
        target=_serve, args=(function, answer), name="remote-request", daemon=True
    ).start()
    while not wait([answer], SIGNAL_SECONDS).done:
        pass
    try:
        return answer.result()
    finally:
        del answer  # or an error would keep this frame, and with it itself and all callers


def _serve(function: Callable[[], Answer], answer: Future[Answer]) -> None:
    try:
        answer.set_result(function())
    except BaseException as error:
        answer.set_exception(error)
    finally:
        del answer
