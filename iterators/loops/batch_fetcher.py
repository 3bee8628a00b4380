"""`BatchFetcher`: batches of a data set, made by threads that share the examples of each."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from ..core.prefetch import Prefetcher
from .iterator import fetch, shares


class _Batch:
    """A batch on its way; `examples`, by number of the share, are guarded by the fetcher's lock."""

    __slots__ = ("count", "examples", "result")

    def __init__(self, count: int) -> None:
        self.count = count  # shares
        self.examples: dict[int, list[Any]] = {}
        self.result: Any = None


class BatchFetcher:
    """Threads that fetch batches, one after the other, each of them a share of every batch.

    Batches are collected in the order in which they are submitted; at most `ahead` are under way.
    ``make(examples)`` makes the batch, in the thread that fetched the last of its shares.  Each
    thread calls `begin` first.  With 0 threads `collect` does all the work.
    """

    def __init__(
        self,
        dataset: Any,
        make: Callable[[list[Any]], Any],
        *,
        threads: int,
        ahead: int,
        name: str,
        begin: Callable[[], None] | None = None,
    ) -> None:
        self._dataset, self._make, self._parts = dataset, make, max(threads, 1)
        self._lock = threading.Lock()
        self._batches: deque[_Batch] = deque()
        self._engine = Prefetcher(
            self._produce, ahead * self._parts, threads=threads, begin=begin, name=name
        )

    def submit(self, indices: list[int], epochs: list[int]) -> None:
        """Start work on a batch and return at once; `epochs` has the epoch of each index."""
        parts = shares(indices, self._parts), shares(epochs, self._parts)
        batch = _Batch(len(parts[0]))
        self._batches.append(batch)
        for number, part in enumerate(zip(*parts, strict=True)):
            self._engine.submit((batch, number, *part), 0)

    def collect(self) -> Any:
        """Wait for the oldest batch; raises what the data set or `make` raised, for it alone."""
        batch, error = self._batches[0], None
        for _ in range(batch.count):
            *_, failures = self._engine.collect()
            for _, raised in failures:
                error = error or raised
        self._batches.popleft()
        if error is not None:
            try:
                raise error
            finally:  # its traceback has this frame, which would keep all of them
                del error, raised, failures
        return batch.result

    def stats(self) -> dict[str, float]:
        """Return what a `Prefetcher` counts; its time is that of the data set, in Python."""
        counts = self._engine.stats()
        return {"python_seconds": counts.pop("read_seconds"), **counts}

    def cancel(self) -> None:
        """Forget all batches under way; waits only for what is being fetched."""
        self._engine.cancel()
        self._batches.clear()

    def close(self) -> None:
        """End the threads, waiting for what they fetch."""
        self._engine.close()
        self._batches.clear()

    def _produce(
        self, share: tuple[_Batch, int, list[int], list[int]], _: int
    ) -> tuple[None, None, None, list[Any]]:
        """Fetch a share, and make the batch if it is the last one."""
        batch, number, indices, epochs = share
        examples = fetch(self._dataset, indices, epochs)
        with self._lock:
            batch.examples[number] = examples
            is_last = len(batch.examples) == batch.count
        if is_last:
            parts = (batch.examples.pop(i) for i in range(batch.count))
            batch.result = self._make([example for part in parts for example in part])
        return None, None, None, []
