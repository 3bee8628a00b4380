"""Batches of samples that a data set makes itself, in Python, and where their time goes.

A data set that draws from the generators of the process gets a seed for each sample in the thread
of the loop; other threads would share these generators with the program around the loop.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..core.example_seeds import draws_globally, kept_generators, seed_generators
from ..loops.batch_fetcher import BatchFetcher
from ..loops.iterator import fetch
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
        self._draws: bool | None = None  # from the generators of the process; not known

    def fetched(
        self,
        batches: Iterator[LoaderBatch],
        epoch: int,
        largest: int,
        collate_fn: Callable[[list[Any]], Any] | None,
        seeds: Callable[[np.ndarray], list[int]],
    ) -> Iterator[tuple[Any, int]]:
        """Yield an epoch: every batch with the positions that are done behind it.

        `seeds` gives those of the samples of each batch, in its turn.
        """
        threads, collate = self._threads, collate_fn or default_collate
        if self._draws is None and not threads:
            self._draws = len(self._dataset) > 0 and draws_globally(
                lambda: fetch(self._dataset, [0], [epoch])
            )
        if self._draws:
            yield from self._seeded(batches, epoch, collate, seeds)
            return
        # Small batches: as many as the threads can work on at once.
        ahead = max(self._ahead, -(-threads // max(largest, 1))) if threads else 1
        fetcher = BatchFetcher(
            self._dataset,
            collate,
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
                    fetcher.submit(found.rows.tolist(), [epoch] * len(found.rows))
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

    def _seeded(
        self,
        batches: Iterator[LoaderBatch],
        epoch: int,
        collate: Callable[[list[Any]], Any],
        seeds: Callable[[np.ndarray], list[int]],
    ) -> Iterator[tuple[Any, int]]:
        """Yield batches of samples with a seed each; the generators of the process stay."""
        self.times.begin({})
        try:
            for batch in batches:
                self.times.ask()
                samples: list[Any] = []
                with kept_generators():
                    for row, seed in zip(batch.rows.tolist(), seeds(batch.rows), strict=True):
                        seed_generators(seed)
                        samples += fetch(self._dataset, [row], [epoch])
                    found = collate(samples)
                self.times.make(len(samples))
                yield found, batch.done
        finally:
            self.times.finish({})

    def report(self, advise: bool) -> EpochReport:
        """Return where the time of the last epoch went, or of the running one so far."""
        found = self.times.report(self._counters())
        name = f"{type(self._dataset).__name__}.__getitem__"
        return advised(found, python=name, threads="num_workers") if advise else found
