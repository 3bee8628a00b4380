"""One prefetcher for everything that Python or NumPy calls produce.

A `Prefetcher` is an engine: batches are submitted in order, made by background threads, and
collected in the same order.  It does not know what it makes; it never makes more than `depth`
batches ahead.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from recordio.ordered import SIGNAL_INTERVAL, Workers


class _Job:
    """One batch on its way; `result` and `error` are guarded by the prefetcher's lock."""

    __slots__ = ("done", "epoch", "error", "inline", "records", "result")

    def __init__(self, records: Any, epoch: int) -> None:
        self.records = records
        self.epoch = epoch
        self.result: Any = None
        self.error: BaseException | None = None
        self.done = False
        self.inline = False  # made by whoever collects it, not by a thread


class Prefetcher(Workers):
    """Background threads that call a function for one batch after the other.

    ``produce(records, epoch)`` returns ``(data, label, ids, failures)``, see
    `iterators.providers.planned.Engine`; an exception of its is the failure of that batch alone.
    With 1 thread the calls come in the order of submission, never two at once; more threads help
    only where the work releases the GIL.  With 0 there is no background: `collect` makes the batch,
    for work that costs less than handing it to another thread.
    ``replace(record, data, label, ids, slot)`` runs in the thread that collects: it puts another
    record into a slot that failed, or raises its error.  Each thread calls `begin` first; `finish`
    is called once, after the last call of `produce`.  In a forked child, where the threads do not
    exist, every use is a RuntimeError.
    """

    foreign = "a provider works only in the process that created it: create one after the fork"

    def __init__(
        self,
        produce: Callable[[Any, int], tuple[Any, Any, Any, list[Any]]],
        depth: int,
        *,
        threads: int = 1,
        replace: Callable[[int, Any, Any, Any, int], None] | None = None,
        begin: Callable[[], None] | None = None,
        finish: Callable[[], None] | None = None,
        name: str = "prefetch",
    ) -> None:
        super().__init__(threads, name, finish, begin)
        self.depth = depth
        self._produce = produce
        self._replace = replace
        self._work_came = threading.Condition(self._lock)
        self._idle = 0  # threads that wait for work
        self._jobs: deque[_Job] = deque()  # submitted and not collected
        self._waiting: deque[_Job] = deque()  # of those, not begun
        self._working = 0  # threads that make a batch
        self._in_use = max(threads, 1)  # threads that may
        self._batches = 0
        self._seconds = 0.0

    @property
    def pending(self) -> int:
        """Number of batches submitted and not yet collected."""
        return len(self._jobs)

    def needed(self, records: Any, epoch: int, draws: Any) -> Any:
        """Return the records that a batch is made of: these."""
        return records

    def submit(self, records: Any, epoch: int, draws: Any = None) -> None:
        """Start work on a batch and return at once; a RuntimeError if `depth` are under way.

        `draws` is for engines that draw random numbers; here a record is always the same.
        """
        self._check_usable()
        self.start()
        with self._lock:
            if len(self._jobs) == self.depth:
                raise RuntimeError(f"{self.depth} batches are under way already: collect one first")
            job = _Job(records, epoch)
            self._jobs.append(job)
            self._waiting.append(job)
            if self._idle:
                self._work_came.notify()

    def collect(self) -> tuple[Any, Any, Any, list[Any]]:
        """Wait for the oldest batch and return what `produce` returned for it.

        If that call raised, the result is ``(None, None, None, [(0, error)])``.
        """
        self._check_usable()
        with self._lock:
            if not self._jobs:
                raise RuntimeError("no batch is under way")
            job = self._jobs[0]
            # Nobody has begun it: making it here is quicker than waiting for a thread.
            if self._waiting and self._waiting[0] is job and len(self._threads) != 1:
                job.inline = True
                self._waiting.popleft()
            # Not done although it was begun here: an interrupt (Ctrl-C) came in between.
            mine = job.inline and not job.done
        if mine:
            self._make(job)
        with self._lock:
            while not (job.done or self._stopping or self._failure):
                self._changed.wait(SIGNAL_INTERVAL)
            if self._stopping:
                raise ValueError("the provider was closed while a batch was awaited")
            if self._failure and not job.done:
                raise self._failure
            self._jobs.popleft()
        if job.error is not None:
            return None, None, None, [(0, job.error)]
        return job.result

    def retry(
        self, record: int, epoch: int, draw: int, data: Any, label: Any, ids: Any, slot: int
    ) -> None:
        """Put another record into a slot of a collected batch."""
        if self._replace is None:
            raise TypeError("this prefetcher makes whole batches")
        self._replace(record, data, label, ids, slot)

    def stats(self) -> dict[str, float]:
        """Return the batches made, also ahead of the consumer, and their seconds in all threads."""
        return {
            "batches": self._batches,
            "produce_seconds": self._seconds,
            "threads": min(len(self._threads), self._in_use),
            "working_seconds": self._seconds,
            self._phase: self._seconds,
        }

    #: The counter of `stats` that has all time of `produce`; subclasses have their own.
    _phase = "read_seconds"

    def use_threads(self, count: int) -> None:
        """Have only so many of the threads work, from their next batches on."""
        with self._lock:
            self._in_use = count
            self._work_came.notify_all()

    def cancel(self) -> None:
        """Forget all batches under way; waits only for the calls that are running."""
        self._check_usable()
        with self._lock:
            self._waiting.clear()
            while self._working and not self._failure:
                self._changed.wait(SIGNAL_INTERVAL)
            self._jobs.clear()

    def _drop(self) -> None:
        self._waiting.clear()
        self._jobs.clear()
        self._work_came.notify_all()

    def _check_usable(self) -> None:
        self._check_owner()
        if self._stopping:
            raise ValueError("the provider is closed")

    def _serve(self) -> None:
        while True:
            with self._lock:
                self._idle += 1
                while not self._stopping and (not self._waiting or self._working >= self._in_use):
                    self._work_came.wait()
                self._idle -= 1
                if self._stopping:
                    return
                job = self._waiting.popleft()
                self._working += 1
            self._make(job)
            with self._lock:
                self._working -= 1
                self._changed.notify_all()
                if self._waiting:
                    self._work_came.notify()
            del job  # an idle thread must not keep a batch alive that its consumer has dropped

    def _make(self, job: _Job) -> None:
        start = time.perf_counter()
        try:
            result, error = self._produce(job.records, job.epoch), None
        except BaseException as raised:  # it is raised again where the batch is awaited
            result, error = None, raised
        with self._lock:
            job.result, job.error, job.done = result, error, True
            self._batches += 1
            self._seconds += time.perf_counter() - start
            self._changed.notify_all()
