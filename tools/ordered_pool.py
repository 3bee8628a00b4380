"""Apply a function to many items in threads and give the results in the order of the items.

The threads share this process, so they help only where the function releases the GIL.  How much may
wait for the consumer is limited in bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Generic, TypeVar

from recordio.ordered import OrderedWork

__all__ = ["map_in_order"]

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


def map_in_order(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    threads: int,
    *,
    size: Callable[[Result], int] = lambda result: 0,
    pending_bytes: int = 128 << 20,
    cancelled: Callable[[], bool] = lambda: False,
) -> Generator[list[Result], None, None]:
    """Apply `function` to every item, in threads, and yield lists of results in order.

    Threads wait while finished results that are not consumed yet hold more than `pending_bytes` by
    `size`.  The one whose result is next in order never waits, so the limit can be exceeded but
    nothing can block.  `cancelled` is called between two lists and while waiting for one; when
    true, `KeyboardInterrupt` is raised here.

    An exception of `function` is raised behind the results of the items before it as far as they
    were handed over; the threads have ended by then.  Closing the generator ends them too.
    """
    if not items:
        return
    threads = min(threads, len(items))
    blocks = _Blocks(function, items, threads, size, pending_bytes, cancelled)
    try:
        blocks.look_up()
        for part in blocks:
            yield part
            blocks.look_up()
    finally:
        blocks.close()


class _Blocks(OrderedWork, Generic[Item, Result]):
    """Blocks of items, whose results are handed over in lists of limited size."""

    def __init__(
        self,
        function: Callable[[Item], Result],
        items: Sequence[Item],
        threads: int,
        size: Callable[[Result], int],
        pending_bytes: int,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> None:
        block = max(1, min(LARGEST_BLOCK, len(items) // (threads * BLOCKS_PER_THREAD)))
        blocks = (range(i, min(i + block, len(items))) for i in range(0, len(items), block))
        self._items = items
        self._size = size
        self._limit = pending_bytes
        self._cancelled = cancelled
        super().__init__(
            lambda _: next(blocks, None), function, threads=threads, ahead=1, name="im2rec"
        )

    def _parts(self, number: int, block: range) -> Iterator[tuple[list[Result], int, bool]]:
        part: list[Result] = []
        held = 0
        for item in block:
            if self._stopping:
                return
            part.append(self._work(self._items[item]))
            held += RESULT_OVERHEAD + self._size(part[-1])
            last = item == block[-1]
            if last or held >= HANDOVER_BYTES:
                yield part, held, last
                part, held = [], 0
                with self._lock:
                    if not last and not self._wait_for_room(number):
                        return

    def _has_room(self, number: int) -> bool:
        """Let the thread whose result is next in order go on, whatever waits already."""
        awaited = number == self._delivered and not self._results.get(number)
        return awaited or self._pending <= self._limit

    def look_up(self) -> None:
        """Raise KeyboardInterrupt when the run is to be cancelled."""
        if self._cancelled():
            raise KeyboardInterrupt

    _look_up = look_up
