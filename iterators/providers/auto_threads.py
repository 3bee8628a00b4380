"""``preprocess_threads="auto"``: as many threads as the loop can use.

An engine has a thread for every processor that the process may use, and `AutoThreads` before it
says how many of them work.  Which thread makes an image is of no matter to the image.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from recordio.keywords.checks import integer
from recordio.ordered import default_threads

from .engine import Engine

AUTO = "auto"
MOST_THREADS = 1 << 10
#: Seconds and batches between two changes: shorter ones tell little.
LEAST_SECONDS, LEAST_BATCHES = 0.5, 4
#: A loop that waits for a larger share of its time gets more threads.
MOST_WAIT = 0.05
#: Threads that are kept by those that were busy.
SPARE = 1.25


def check_threads(name: str, value: Any) -> int | str:
    """Return a number of threads, or "auto"."""
    return AUTO if value == AUTO else integer(name, value, low=1, high=MOST_THREADS)


def thread_count(threads: int | str) -> int:
    """Return the threads that an engine has."""
    return min(default_threads(), MOST_THREADS) if isinstance(threads, str) else threads


def next_count(now: int, most: int, waited: float, busy: float) -> int:
    """Return how many threads should work, by the share of waiting and how many were busy.

    >>> next_count(2, 8, waited=0.4, busy=2.0), next_count(8, 8, waited=0.0, busy=2.1)
    (4, 3)
    """
    if waited > MOST_WAIT:
        return min(2 * now, most)
    return min(max(math.ceil(SPARE * busy), 1), now)


class AutoThreads:
    """An engine of which as many threads work as the loop can use."""

    def __init__(self, engine: Any, most: int) -> None:
        self._engine, self._most = engine, most
        self._now = most
        self._begun: float | None = None
        self._waited, self._batches, self._busy = 0.0, 0, 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def collect(self) -> tuple[Any, Any, np.ndarray, Sequence[tuple[int, Exception]]]:
        """Wait for the oldest batch, and see whether there are too few threads, or too many."""
        begin = time.perf_counter()
        made = self._engine.collect()
        end = time.perf_counter()
        if self._begun is None:  # the first batch is always waited for
            self._begun, self._busy = end, self._engine.stats()["working_seconds"]
            return made
        self._waited += end - begin
        self._batches += 1
        if self._batches >= LEAST_BATCHES and end - self._begun >= LEAST_SECONDS:
            self._adapt(end)
        return made

    def _adapt(self, now: float) -> None:
        """Change the number of threads by what has passed since the last time."""
        assert self._begun is not None
        busy, seconds = self._engine.stats()["working_seconds"], now - self._begun
        shares = self._waited / seconds, (busy - self._busy) / seconds
        threads = next_count(self._now, self._most, *shares)
        if threads != self._now:
            self._now = threads
            self._engine.use_threads(threads)
        self._begun, self._waited, self._batches, self._busy = now, 0.0, 0, busy


def adapting(engine: Engine, threads: int | str) -> Engine:
    """Return the engine, with an `AutoThreads` before it if that is asked for."""
    if threads != AUTO:
        return engine
    made: Any = AutoThreads(engine, int(engine.stats()["threads"]))
    return made
