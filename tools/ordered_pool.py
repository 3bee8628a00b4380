"""Apply a function to many items in threads and give the results in the order of the items.

The threads share this process, so they help only where the function releases the GIL.  How much may
wait for the consumer is limited in bytes.  Nothing here knows about images or files.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator, Sequence
from typing import Generic, TypeVar

__all__ = ["available_cores", "map_in_order"]

Item = TypeVar("Item")
Result = TypeVar("Result")

#: Items that a thread takes at once, at most: locking then costs nothing even for small files.
LARGEST_BLOCK = 16
#: Each thread gets at least this many blocks where there are enough items, to end at the same time.
BLOCKS_PER_THREAD = 8
#: A thread hands over what it has before its block is done when this many bytes have gathered.
HANDOVER_BYTES = 1 << 20
#: Every result costs at least this, so that small ones are limited in number too.
RESULT_OVERHEAD = 256
#: Seconds between two looks at `cancelled` while nothing is ready.
POLL_INTERVAL = 0.1


def available_cores() -> int:
    """Number of processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def map_in_order(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    threads: int,
    *,
    size: Callable[[Result], int] = lambda result: 0,
    pending_bytes: int = 128 << 20,
    cancelled: Callable[[], bool] = lambda: False,
) -> Generator[list[Result], None, None]:
    """Apply `function` to every item, in threads, and yield the results in order.

    Parameters
    ----------
    function : callable
        Called with one item at a time, in several threads.
    items : sequence
        The items.
    threads : int, at least 1
        Number of threads.
    size : callable, optional
        Bytes that a result holds.
    pending_bytes : int
        When finished results that are not consumed yet hold more, threads wait.  The one whose
        result is next in order never waits, so the limit can be exceeded but nothing can block.
    cancelled : callable, optional
        Asked between two lists; when true, `KeyboardInterrupt` is raised here.

    Yields
    ------
    list
        One or more results, following the ones before.

    Raises
    ------
    BaseException
        Whatever `function` raised; the threads have ended by then.  Closing the generator ends them
        too.

    Examples
    --------
    >>> [n for part in map_in_order(lambda n: n * n, range(6), threads=2) for n in part]
    [0, 1, 4, 9, 16, 25]
    """
    block = max(1, min(LARGEST_BLOCK, len(items) // (threads * BLOCKS_PER_THREAD)))
    pool: _Pool[Item, Result] = _Pool(function, items, size, pending_bytes, block)
    workers = [
        threading.Thread(target=pool.work, name=f"im2rec-{number}", daemon=True)
        for number in range(min(threads, len(items)))
    ]
    try:
        for worker in workers:
            worker.start()
        while True:
            if cancelled():
                raise KeyboardInterrupt
            part = pool.next_part(POLL_INTERVAL)
            if part is None:
                return
            if part:
                yield part
    finally:
        pool.stop()
        for worker in workers:
            if worker.ident is not None:
                worker.join()


class _Pool(Generic[Item, Result]):
    """The state that the threads share, guarded by one condition."""

    def __init__(
        self,
        function: Callable[[Item], Result],
        items: Sequence[Item],
        size: Callable[[Result], int],
        pending_bytes: int,
        block: int,
    ) -> None:
        self._block = block
        self._function = function
        self._items = items
        self._size = size
        self._limit = pending_bytes
        self._condition = threading.Condition()
        self._taken = 0  # items before this one belong to a thread
        self._delivered = 0  # items before this one are with the consumer
        self._parts: dict[int, tuple[list[Result], int]] = {}  # first item -> results, bytes
        self._pending = 0
        self._stopped = False
        self._error: BaseException | None = None

    def stop(self) -> None:
        with self._condition:
            self._stopped = True
            self._condition.notify_all()

    def next_part(self, timeout: float) -> list[Result] | None:
        """The next results; an empty list when none came in time; None at the end."""
        with self._condition:
            if self._delivered == len(self._items):
                return None
            if self._error is None and self._delivered not in self._parts:
                self._condition.wait(timeout)
            if self._error is not None:
                raise self._error
            if self._delivered not in self._parts:
                return []
            part, held = self._parts.pop(self._delivered)
            self._delivered += len(part)
            self._pending -= held
            self._condition.notify_all()
            return part

    def work(self) -> None:
        try:
            while (block := self._take_block()) is not None:
                if not self._work_on(block):
                    return
        except BaseException as error:  # it is raised again where the results are awaited
            with self._condition:
                self._error = self._error or error
                self._condition.notify_all()

    def _take_block(self) -> range | None:
        with self._condition:
            if not self._wait_for_room(None) or self._taken == len(self._items):
                return None
            first = self._taken
            self._taken = min(first + self._block, len(self._items))
            return range(first, self._taken)

    def _work_on(self, block: range) -> bool:
        """Compute the results of a block and hand them over; False when the pool was stopped."""
        first, held = block.start, 0
        part: list[Result] = []
        for number in block:
            if self._stopped:
                return False
            result = self._function(self._items[number])
            part.append(result)
            held += RESULT_OVERHEAD + self._size(result)
            if held < HANDOVER_BYTES and number + 1 < block.stop:
                continue
            with self._condition:
                self._parts[first] = part, held
                self._pending += held
                self._condition.notify_all()
                first, part, held = number + 1, [], 0
                if first < block.stop and not self._wait_for_room(first):
                    return False
        return True

    def _wait_for_room(self, position: int | None) -> bool:
        """Wait until results may be added; False when the pool was stopped.

        Nobody waits whose own next result, at `position` (None: the first item that no thread has
        taken), is the one that the consumer needs next.
        """
        while not self._stopped and self._pending > self._limit:
            if self._delivered == (self._taken if position is None else position):
                break
            self._condition.wait()
        return not self._stopped
