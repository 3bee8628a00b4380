"""`MultithreadIterator`: the examples of the next batch are fetched by threads.

For data sets that wait or release the GIL: files, networks, decoders, NumPy on large arrays.
"""

from __future__ import annotations

import os
from typing import Any

from recordio.keywords.checks import integer

from .batch_fetcher import BatchFetcher
from .iterator import Planned, PrefetchingIterator


class MultithreadIterator(PrefetchingIterator):
    """Iterate over a data set with threads, one batch ahead (Chainer's ``MultithreadIterator``).

    Parameters
    ----------
    dataset, batch_size, repeat, shuffle, order_sampler
        As for `SerialIterator`, whose batches these are.  The data set is used by several threads
        at once.
    n_threads : int
        Number of threads, at least 1; they share the examples of every batch.

    Notes
    -----
    The threads start with the first batch.  An exception in the data set is raised by the call that
    would have returned that batch; the next call continues after it.  In a forked child the
    iterator starts threads of its own.

    Examples
    --------
    >>> with MultithreadIterator("abcde", 2, repeat=False, shuffle=False, n_threads=2) as batches:
    ...     list(batches)
    [['a', 'b'], ['c', 'd'], ['e']]
    """

    _fetcher: BatchFetcher | None = None
    _process = 0

    def __init__(
        self,
        dataset: Any,
        batch_size: int,
        repeat: bool = True,
        shuffle: bool | None = None,
        n_threads: int = 1,
        order_sampler: Any = None,
    ) -> None:
        self.n_threads: int = integer("n_threads", n_threads, low=1)
        super().__init__(dataset, batch_size, repeat, shuffle, order_sampler)

    def _prepare(self) -> None:
        if self._fetcher is not None and self._process == os.getpid():
            return
        self._process = os.getpid()
        self._fetcher = BatchFetcher(
            self.dataset,
            list,
            threads=self.n_threads,
            ahead=self._ahead + 1,
            name="MultithreadIterator",
        )
        for planned in self._planned:  # what the threads of the parent process had begun
            planned.parts = None

    def _start(self, planned: Planned) -> None:
        assert self._fetcher is not None
        self._fetcher.submit(planned.indices, planned.epochs)
        planned.parts = []  # the fetcher knows them

    def _await(self, planned: Planned) -> list[list[Any]]:
        assert self._fetcher is not None
        return [self._fetcher.collect()]

    def _abandon(self) -> None:
        if self._fetcher is not None and self._process == os.getpid():
            self._fetcher.cancel()
        super()._abandon()

    def finalize(self) -> None:
        """End the threads, waiting for what they fetch; the next batch starts new ones."""
        fetcher, self._fetcher = self._fetcher, None
        if fetcher is not None:
            fetcher.close()
            super()._abandon()

    def __getstate__(self) -> dict[str, Any]:
        """Return the state of every iterator, without threads."""
        return {**super().__getstate__(), "_fetcher": None}
