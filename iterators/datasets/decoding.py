"""Images of one request decoded by several threads, in the order in which they were requested."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing.process import parent_process
from typing import Any

from recordio.keywords.checks import integer
from recordio.keywords.options import Options, option, optional
from recordio.ordered import default_threads

from ..core.example_random import epoch_at_hand, in_epoch

#: Images decoded together before the next ones are begun, for each thread.
RUN = 4


@dataclass(frozen=True, kw_only=True)
class ThreadOptions(Options):
    """The keyword of data sets that make the images of a batch in threads."""

    threads: int | None = option(
        None,
        "int, optional",
        """How many images of one batch are made at a time, without the GIL.  By default as many as
        there are processor cores, but one in worker processes, which already share them.""",
        optional(partial(integer, low=1)),
    )


class DecodingThreads:
    """Threads that are started when they are needed, in every process its own.

    By default as many as there are processor cores, but one in worker processes, which already
    share them.
    """

    def __init__(self, threads: int | None = None) -> None:
        self._threads = threads
        self._pool: tuple[int, ThreadPoolExecutor | None] = (-1, None)

    def map(self, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        """Return a function of every item; called in this thread where one is enough."""
        if min(self._count(), -(-len(items) // RUN)) < 2:
            return [function(item) for item in items]
        runs = [items[start : start + RUN] for start in range(0, len(items), RUN)]
        epoch = epoch_at_hand()

        def results_of(run: Sequence[Any]) -> list[Any]:
            return [function(item) for item in run]

        parts = self._executor().map(partial(in_epoch, epoch, results_of), runs)
        return [result for run in parts for result in run]

    def _count(self) -> int:
        if self._threads is not None:
            return self._threads
        return 1 if parent_process() else default_threads()

    def _executor(self) -> ThreadPoolExecutor:
        owner, pool = self._pool
        if pool is None or owner != os.getpid():  # a forked child has the object, not the threads
            pool = ThreadPoolExecutor(self._count(), "ImageRecordDataset")
            self._pool = os.getpid(), pool
        return pool

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_pool": (-1, None)}
