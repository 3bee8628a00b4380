"""Work in the background by several threads, with results in the order of the work.

`Workers` is the life of such threads, from the start to the last of them; `OrderedWork` has them
read chunks of a source and work on them; `map_in_order` applies a function to items.  The work must
release the GIL to gain from it.  Nothing here knows what a chunk is, and no more than is allowed
waits for the consumer.
"""

from __future__ import annotations

import itertools
import math
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

#: Seconds between two looks for Ctrl-C while waiting, for systems where it does not end a wait.
SIGNAL_INTERVAL = 0.1
#: Seconds for which the end of the process waits for work that is going on.
LAST_WORK = 5.0
#: Items that a thread takes at once, at most: locking then costs nothing even for small files.
LARGEST_BLOCK = 16
#: Each thread gets at least this many blocks where there are enough items, to end at the same time.
BLOCKS_PER_THREAD = 8
#: A thread hands over what it has before its block is done when this many bytes have gathered.
HANDOVER_BYTES = 1 << 20
#: Every result costs at least this, so that small ones are limited in number too.
RESULT_OVERHEAD = 256
#: Where the system tells the limits of control groups, and those of this process.
CGROUPS, OWN_GROUPS = "/sys/fs/cgroup", "/proc/self/cgroup"

Item = TypeVar("Item")
Chunk = TypeVar("Chunk")
Result = TypeVar("Result")


def default_threads() -> int:
    """Return one thread for every processor that this process may use.

    Its affinity counts, ``PYTHON_CPU_COUNT``, and the quota of its control groups: a container with
    a quota of 2.5 processors gets 3.
    """
    usable = getattr(os, "process_cpu_count", os.cpu_count)() or 1
    if hasattr(os, "sched_getaffinity"):
        usable = min(usable, len(os.sched_getaffinity(0)))
    return max(math.ceil(min(usable, _processor_quota())), 1)


def _processor_quota() -> float:
    """Return the processors that the control groups of this process allow; infinity for all."""
    try:
        lines = Path(OWN_GROUPS).read_text().splitlines()
    except OSError:
        return math.inf
    quotas = [math.inf]
    for line in lines:
        _, controllers, name = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        for place in ("", "cpu", "cpu,cpuacct"):
            # Within a container its own group is the root, whatever its name outside.
            inner = Path(CGROUPS, place, name.lstrip("/"))
            quotas += [
                _quota_of(folder)
                for folder in (Path(CGROUPS, place), inner, *inner.parents)
                if folder.is_relative_to(CGROUPS)
            ]
    return min(quotas)


def _quota_of(group: Path) -> float:
    """Return the processors that one control group allows, of version 2 or 1."""
    for names in (("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us")):
        try:
            quota, period = " ".join((group / name).read_text() for name in names).split()
        except (OSError, ValueError):
            continue
        if quota != "max" and int(quota) > 0 and int(period) > 0:
            return int(quota) / int(period)
    return math.inf


class Workers:
    """Base class: threads that serve until there is nothing left to do or they are told to stop.

    A subclass defines the work of a thread in `_serve`, and keeps what the threads share under
    `_lock`.  An error that leaves `_serve`, such as a MemoryError between two steps, becomes
    `_failure`: whoever waits for a result raises it, since the thread may have owed that result.
    Each thread calls `begin` first.  `finish` is called once, when all threads were stopped and the
    last one has ended.

    The threads keep this object alive, so its user must `close` it; the end of the process does, as
    well.  In a forked child, where they do not exist, `close` does nothing.
    """

    #: Said to a forked child.
    foreign: ClassVar[str] = (
        "this was started by process {owner}; a forked process must start its own"
    )

    def __init__(
        self,
        threads: int,
        name: str,
        finish: Callable[[], object] | None = None,
        begin: Callable[[], object] | None = None,
    ) -> None:
        self._owner = os.getpid()
        # Reentrant: a thread that holds it can be made to collect garbage, and so to close us.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._stopping = False
        self._failure: BaseException | None = None
        self._begin, self._finish = begin, finish
        self._started = False
        self._alive = 0  # threads that run
        self._threads = [
            threading.Thread(target=self._work_on, daemon=True, name=f"{name}-{number}")
            for number in range(threads)
        ]

    def start(self) -> None:
        """Start the threads; idempotent."""
        if self._started:
            return
        for thread in self._threads:
            if thread.ident is None:
                thread.start()
        self._started = True
        # A thread that is still in C++ code (torch, OpenCV) when Python ends aborts the process.
        weakref.finalize(self, _close_at_end, weakref.ref(self))

    def close(self, timeout: float | None = None) -> None:
        """Stop the threads; waits for the work that is going on, for at most `timeout` seconds.

        Idempotent.  Called by one of the threads, it does not wait: they end after their present
        work.
        """
        if os.getpid() != self._owner:
            return  # in a forked child there are no threads, and the lock may be held for ever
        with self._lock:
            self._stopping = True
            self._drop()
            self._changed.notify_all()
        if threading.current_thread() in self._threads:
            return
        until = None if timeout is None else time.monotonic() + timeout
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(until and max(0.0, until - time.monotonic()))
        with self._lock:
            self._drop()
        if not self._alive:
            self._finished()

    def _check_owner(self) -> None:
        if os.getpid() != self._owner:
            raise RuntimeError(self.foreign.format(owner=self._owner))

    def _serve(self) -> None:
        """Do the work of one thread; every subclass defines it."""
        raise TypeError(f"{type(self).__name__} does not define _serve()")

    def _drop(self) -> None:
        """Forget the results that are no longer needed."""

    def _work_on(self) -> None:
        """Run `_serve` in a thread; the last thread to end calls `finish`."""
        with self._lock:
            self._alive += 1
        try:
            if self._begin is not None:
                self._begin()
            self._serve()
        except BaseException as error:
            self._failure = error
        finally:
            with self._lock:
                self._changed.notify_all()
                self._alive -= 1
                last = self._stopping and not self._alive
            if last:
                self._finished()

    def _finished(self) -> None:
        with self._lock:
            finish, self._finish = self._finish, None
        if finish is not None:
            finish()


def _close_at_end(reference: weakref.ref[Workers]) -> None:
    """Close workers that are left at the end of the process; those dropped before need nothing."""
    if (workers := reference()) is not None:
        workers.close(LAST_WORK)


class OrderedWork(Workers, Generic[Chunk, Result]):
    """Iterator over ``work(chunk)`` for every chunk that ``read`` returns.

    ``read(buffer)`` returns the next chunk, or None at the end; one thread at a time calls it.
    `buffer` is the ``chunk.buffer`` of the last chunk that the thread worked on, or None.  Many
    threads at a time call ``work(chunk)``.  At most `ahead` results, at least 1, wait for the
    consumer or are being made.

    An exception of `read` or `work` is raised in the place of its result: everything before it is
    delivered first, and nothing comes after it.  The threads end with the last chunk, with an
    exception, or with `close`, which every user must call (``finally``).
    """

    def __init__(
        self,
        read: Callable[[Any], Chunk | None],
        work: Callable[[Chunk], Result],
        *,
        threads: int,
        ahead: int,
        name: str = "recordio",
    ) -> None:
        super().__init__(threads, name)
        self._read = read
        self._work = work
        self._ahead = ahead
        self._reading = threading.Lock()
        # By number of the chunk, what waits for the consumer: (result, its size); and, once nothing
        # more is made of the chunk, the error that was raised, or None.
        self._results: dict[int, deque[tuple[Result, int]]] = {}
        self._done: dict[int, BaseException | None] = {}
        self._pending = 0  # size of all results that wait
        self._issued = 0  # chunks read
        self._delivered = 0  # chunks of which nothing more waits or is made
        self._ended = False  # no further chunk will be read
        try:
            self.start()
        except BaseException:
            self.close()
            raise

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Result:
        self._check_owner()
        with self._lock:
            while (outcome := self._next()) is None:
                self._changed.wait(SIGNAL_INTERVAL)
                self._look_up()
        if isinstance(outcome, BaseException):
            self.close()
            raise outcome
        return outcome[0]

    def _next(self) -> tuple[Result] | BaseException | None:
        """Return the next result or the error in its place; None if neither is there yet."""
        number = self._delivered
        if self._results.get(number):
            result, size = self._results[number].popleft()
            self._pending -= size
            self._go_on()
            return (result,)
        if number in self._done:
            return self._done[number]
        if self._stopping or (self._ended and number == self._issued and not self._failure):
            raise StopIteration
        return self._failure

    def _go_on(self) -> None:
        """Leave chunks behind of which nothing more waits or is made, up to an error."""
        number = self._delivered
        while not self._results.get(number) and self._done.get(number, self) is None:
            self._results.pop(number, None)
            del self._done[number]
            self._delivered = number = number + 1
        self._changed.notify_all()

    def _drop(self) -> None:
        self._results.clear()
        self._done.clear()

    # -- a subclass may change these --------------------------------------------------------------

    def _parts(self, number: int, chunk: Chunk) -> Iterator[tuple[Result, int, bool]]:
        """Yield the results of a chunk: each with its size, and True with the last one."""
        yield self._work(chunk), 0, True

    def _has_room(self, number: int) -> bool:
        """Return True if more may be made of a chunk; the awaited chunk always has room."""
        return number - self._delivered < self._ahead

    def _look_up(self) -> None:
        """Check now and then, while the consumer waits, that the work goes on; may raise."""

    # -- threads ----------------------------------------------------------------------------------

    def _serve(self) -> None:
        buffer = None
        while (task := self._next_chunk(buffer)) is not None:
            number, chunk, error = task
            if error is None:
                try:
                    for part in self._parts(number, chunk):
                        self._hand_over(number, *part)
                        del part
                    buffer = getattr(chunk, "buffer", None)
                except BaseException as raised:  # raised again where the result is awaited
                    error = raised
            if error is not None:
                with self._lock:
                    self._ended = True
                    self._done[number] = error
                    self._changed.notify_all()
            del task, chunk, error  # nothing may be kept alive while waiting for the next one

    def _hand_over(self, number: int, result: Result, size: int, last: bool) -> None:
        with self._lock:
            if self._stopping:
                return
            self._results.setdefault(number, deque()).append((result, size))
            self._pending += size
            if last:
                self._done[number] = None
            if number == self._delivered:
                self._changed.notify_all()

    def _wait_for_room(self, number: int) -> bool:
        """Wait until more of a chunk may be made; False when all has been stopped."""
        while not self._stopping and not self._has_room(number):
            self._changed.wait()
        return not self._stopping

    def _next_chunk(self, buffer: Any) -> tuple[int, Any, BaseException | None] | None:
        """Return number, chunk and reading error of the next chunk; None at the end."""
        chunk: Chunk | None = None
        error: BaseException | None = None
        with self._reading:
            with self._lock:
                if not self._wait_for_room(self._issued) or self._ended:
                    return None
            try:
                chunk = self._read(buffer)
            except BaseException as raised:
                error = raised
            with self._lock:
                self._ended = self._ended or error is not None or chunk is None
                if chunk is None and error is None:
                    self._changed.notify_all()
                    return None
                number = self._issued
                self._issued += 1
        return number, chunk, error


def each_number(count: int, work: Callable[[int], object], threads: int) -> None:
    """Call a function with every number below `count`, by threads of which the caller is one.

    No number is begun after a failure, and the error is that of the smallest number that failed.
    """
    numbers = itertools.count()
    failures: dict[int, BaseException] = {}

    def serve() -> None:
        while not failures and (number := next(numbers)) < count:
            try:
                work(number)
            except BaseException as error:
                failures[number] = error

    helpers = [threading.Thread(target=serve) for _ in range(min(threads, count) - 1)]
    for helper in helpers:
        helper.start()
    try:
        serve()
    except BaseException as error:  # Ctrl-C, between two numbers
        failures[-1] = error
    for helper in helpers:
        helper.join()
    if failures:
        raise failures[min(failures)]  # all numbers before it were begun, and have ended by now


def map_in_order(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    threads: int | None = None,
    *,
    size: Callable[[Result], int] = lambda result: 0,
    pending_bytes: int = 128 << 20,
    cancelled: Callable[[], bool] = lambda: False,
) -> Generator[Result, None, None]:
    """Apply a function to every item, in threads, and yield the results in order.

    Threads wait while finished results that are not consumed yet hold more than `pending_bytes` by
    `size`.  The one whose result is next in order never waits, so the limit can be exceeded but
    nothing can block.  Of a sequence a thread takes some items at a time; those of another iterable
    may be large, and few are read ahead.  `cancelled` is called now and then, and while waiting for
    a result; when true, `KeyboardInterrupt` is raised here.

    An exception of `function` is raised behind the results of the items before it as far as they
    were handed over; the threads have ended by then.  Closing the generator ends them too.
    """
    if isinstance(items, Sequence) and not items:
        return
    blocks = _Blocks(function, items, threads or default_threads(), size, pending_bytes, cancelled)
    try:
        blocks.look_up()
        for part in blocks:
            yield from part
            blocks.look_up()
    finally:
        blocks.close()


class _Blocks(OrderedWork[Any, Any]):
    """Blocks of items, whose results are handed over in lists of limited size."""

    def __init__(
        self,
        function: Callable[[Item], Result],
        items: Iterable[Item],
        threads: int,
        size: Callable[[Result], int],
        pending_bytes: int,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> None:
        block, self._most = 1, 2 * threads  # and how many blocks are read ahead
        if isinstance(items, Sequence):
            threads, self._most = min(threads, len(items)), len(items)
            block = max(1, min(LARGEST_BLOCK, len(items) // (threads * BLOCKS_PER_THREAD)))
        iterator = iter(items)
        self._size = size
        self._limit = pending_bytes
        self._cancelled = cancelled
        super().__init__(
            lambda _: list(itertools.islice(iterator, block)) or None,
            function,
            threads=threads,
            ahead=1,
        )

    def _parts(self, number: int, block: list[Any]) -> Iterator[tuple[list[Any], int, bool]]:
        part: list[Any] = []
        held = 0
        while block:
            if self._stopping:
                return
            part.append(self._work(block.pop(0)))
            held += RESULT_OVERHEAD + self._size(part[-1])
            if not block or held >= HANDOVER_BYTES:
                yield part, held, not block
                part, held = [], 0
                with self._lock:
                    if block and not self._wait_for_room(number):
                        return

    def _has_room(self, number: int) -> bool:
        """Let the thread whose result is next in order go on, whatever waits already."""
        awaited = number == self._delivered and not self._results.get(number)
        is_near = number - self._delivered < self._most
        return awaited or (is_near and self._pending <= self._limit)

    def look_up(self) -> None:
        """Raise KeyboardInterrupt when the run is to be cancelled."""
        if self._cancelled():
            raise KeyboardInterrupt

    _look_up = look_up
