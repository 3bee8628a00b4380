"""Batches of samples that a data set makes itself, in Python, and where their time goes."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from ..loops.batch_fetcher import BatchFetcher
from ..providers.advice import advised
from ..providers.report import EpochReport, EpochTimes
from .collating import default_collate, use_one_core
from .loader_epochs import LoaderBatch

__all__ = ["PythonBatches"]


class PythonBatches:
    """Makes the batches of a data set by its ``__getitem__``, in threads or in that of the loop."""

    def __init__(self, dataset: Any, threads: int, ahead: int) -> None:
        self._dataset, self._threads, self._ahead = dataset, threads, ahead
        #: What the loop waits for.
        self.times: EpochTimes = EpochTimes()
        self._counters: Callable[[], dict[str, float]] = dict

    def fetched(
        self,
        batches: Iterator[LoaderBatch],
        largest: int,
        collate_fn: Callable[[list[Any]], Any] | None,
    ) -> Iterator[tuple[Any, int]]:
        """Yield an epoch: every batch with the positions that are done behind it."""
        threads = self._threads
        # Small batches: as many as the threads can work on at once.
        ahead = max(self._ahead, -(-threads // max(largest, 1))) if threads else 1
        fetcher = BatchFetcher(
            self._dataset,
            collate_fn or default_collate,
            threads=threads,
            ahead=ahead,
            name="image-loader",
            begin=use_one_core,
        )
        waiting: deque[LoaderBatch] = deque()
        self.times.begin(fetcher.stats())
        self._counters = fetcher.stats
        try:
            while True:
                self.times.ask()
                while len(waiting) < ahead and (found := next(batches, None)) is not None:
                    fetcher.submit(found.rows.tolist())
                    waiting.append(found)
                if not waiting:
                    return
                begin = time.perf_counter()
                batch = fetcher.collect()
                found = waiting.popleft()
                self.times.deliver(len(found.rows), time.perf_counter() - begin)
                yield batch, found.done
        finally:
            fetcher.close()
            self.times.finish(fetcher.stats())

    def report(self, advise: bool) -> EpochReport:
        """Return where the time of the last epoch went, or of the running one so far."""
        found = self.times.report(self._counters())
        name = f"{type(self._dataset).__name__}.__getitem__"
        return advised(found, python=name, threads="num_workers") if advise else found
