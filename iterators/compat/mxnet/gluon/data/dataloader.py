"""Names of `mx.gluon.data.dataloader`: `DataLoader`, over the workers of `iterators.loops`."""

from __future__ import annotations

import multiprocessing
import pickle
import sys
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing
from operator import getitem
from typing import Any

from recordio.keywords.checks import integer, real

from .....core.example_random import drawing_for, in_epoch
from .....core.indexing import by_position
from .....core.prefetch import Prefetcher
from .....core.random import derive_key
from .....loops.worker_pool import WorkerPool
from ...random import seed_number
from .batchify import default_batchify_fn
from .sampler import BatchSampler, RandomSampler, SequentialSampler

__all__ = ["DataLoader", "default_batchify_fn", "default_mp_batchify_fn"]

default_mp_batchify_fn = default_batchify_fn

#: Tells random numbers of loaders from others of the same seed.
PURPOSE = 0x6C6F6164
EPOCH_BITS = 20


class _Batches:
    """A data set whose requests are batches: an epoch, a position in it, and indices of samples."""

    def __init__(self, dataset: Any, batchify: Callable[[Any], Any], key: int) -> None:
        self._dataset, self._batchify, self._key = dataset, batchify, key

    def batch(self, indices: Any, epoch: int, first: int) -> Any:
        """Return the batch of some samples, the first of which has a position in its epoch."""
        samples = []
        for position, index in enumerate(indices, first):
            with drawing_for(self._key, epoch, position):
                samples.append(in_epoch(epoch, getitem, self._dataset, index))
        return self._batchify(samples)

    def __getitems__(self, request: list[int]) -> list[Any]:
        """Answer the request of a worker: a batch, in a list as long as the request."""
        epoch, first, *indices = request
        return [self.batch(indices, epoch, first), *[None] * (len(request) - 1)]


class DataLoader:
    """Batches of a data set, with the parameters of `mx.gluon.data.DataLoader`.

    Parameters
    ----------
    dataset : sequence
        Samples at indices; NumPy arrays and NDArrays will do.
    batch_size : int
        Samples in a batch, at least 1; required without `batch_sampler`.
    shuffle : bool
        Draw a new order for every epoch from NumPy's global generator.
    sampler : iterable of int, optional
        An order of indices, in place of `shuffle`.
    last_batch : {"keep", "discard", "rollover"}
        Deliver a short last batch, leave it out, or put its samples first in the next epoch.
    batch_sampler : iterable of list of int, optional
        Indices of each batch, in place of the four parameters above.
    batchify_fn : callable, optional
        Makes a batch from a list of samples; called in the workers, if there are any.
    num_workers : int
        Processes, or threads with `thread_pool`.
    pin_memory : bool
        Without effect, with a warning: arrays are in ordinary memory.
    pin_device_id : int
        Belongs to `pin_memory`.
    prefetch : int, optional
        Batches under way; by default two for each worker.
    thread_pool : bool
        Use threads as workers instead of processes.
    timeout : float
        Seconds of waiting for a batch before a TimeoutError.
    auto_reload : bool
        Without effect: an epoch begins with its loop.

    Notes
    -----
    Random numbers of `mx.gluon.data.vision.transforms` and `mx.image` depend on `mx.random.seed`,
    the epoch of the loader and the position of a sample, and not on the workers.

    Examples
    --------
    >>> loader = DataLoader([(i, -i) for i in range(5)], batch_size=2, last_batch="discard")
    >>> [(data.asnumpy().tolist(), label.asnumpy().tolist()) for data, label in loader]
    [([0, 1], [0, -1]), ([2, 3], [-2, -3])]
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = None,
        shuffle: bool = False,
        sampler: Any = None,
        last_batch: str | None = None,
        batch_sampler: Any = None,
        batchify_fn: Callable[[Any], Any] | None = None,
        num_workers: int = 0,
        pin_memory: bool = False,
        pin_device_id: int = 0,
        prefetch: int | None = None,
        thread_pool: bool = False,
        timeout: float = 120,
        auto_reload: bool = False,
    ) -> None:
        if pin_memory:
            warnings.warn(
                "pin_memory=True has no effect: arrays are in ordinary memory", stacklevel=2
            )
        if batch_sampler is None:
            if batch_size is None:
                raise ValueError("give batch_size, or a batch_sampler")
            if sampler is not None and shuffle:
                raise ValueError("shuffle is for loaders without a sampler: drop one of them")
            if sampler is None:
                sampler = (RandomSampler if shuffle else SequentialSampler)(len(dataset))
            batch_sampler = BatchSampler(sampler, batch_size, last_batch or "keep")
        elif batch_size is not None or shuffle or sampler is not None or last_batch is not None:
            raise ValueError(
                "batch_sampler takes the place of batch_size, shuffle, sampler and last_batch: "
                "drop these"
            )
        self._dataset, self._batch_sampler = by_position(dataset), batch_sampler
        self._pin_memory = pin_memory
        self._batchify_fn = batchify_fn or default_batchify_fn
        self._workers = max(0, num_workers)
        self._ahead = 2 * self._workers
        if prefetch is not None:
            self._ahead = integer("prefetch", prefetch, low=0)
        self._threads = thread_pool
        self._timeout = real("timeout", timeout, low=0)
        self._epoch = 0

    def __len__(self) -> int:
        return len(self._batch_sampler)

    def __iter__(self) -> Iterator[Any]:
        epoch, self._epoch = self._epoch, (self._epoch + 1) % (1 << EPOCH_BITS)
        batches = _Batches(self._dataset, self._batchify_fn, derive_key(seed_number(), PURPOSE))
        if not self._workers:
            return (batches.batch(*request) for request in self._requests(epoch))
        if self._threads:
            return self._by_threads(batches, epoch)
        return self._by_processes(batches, epoch)

    def _requests(self, epoch: int) -> Iterator[tuple[list[Any], int, int]]:
        first = 0
        for indices in self._batch_sampler:
            yield indices, epoch, first
            first += len(indices)

    def _by_threads(self, batches: _Batches, epoch: int) -> Iterator[Any]:
        engine = Prefetcher(
            lambda request, _: (batches.batch(*request), None, None, []),
            depth=self._ahead + 1,
            threads=self._workers,
            name="DataLoader",
        )

        def collect(_: Any) -> Any:
            batch, _, _, failures = engine.collect()
            for _, error in failures:
                raise error
            return batch

        with closing(engine):
            yield from self._in_order(epoch, lambda request: engine.submit(request, 0), collect)

    def _by_processes(self, batches: _Batches, epoch: int) -> Iterator[Any]:
        pool = WorkerPool(
            batches,
            self._workers,
            _worker_context(),
            None,
            None,
            2 + -(-(self._ahead + 1) // self._workers),
            (seed_number(), epoch),
        )

        def submit(request: Any) -> int:
            indices, *position = request
            return pool.submit([*position, *map(int, indices)])

        def late() -> None:
            raise TimeoutError(
                f"a batch has not come for {self._timeout:g} seconds: the data set is slow, a "
                "worker hangs, or timeout is too short"
            )

        with closing(pool):
            yield from self._in_order(
                epoch, submit, lambda ticket: pool.collect(ticket, self._timeout, late)[0]
            )

    def _in_order(
        self, epoch: int, submit: Callable[[Any], Any], collect: Callable[[Any], Any]
    ) -> Iterator[Any]:
        """Keep batches under way, and yield them in their order."""
        under_way: deque[Any] = deque()
        for request in self._requests(epoch):
            under_way.append(submit(request))
            if len(under_way) > self._ahead:
                yield collect(under_way.popleft())
        while under_way:
            yield collect(under_way.popleft())


def _worker_context() -> Any:
    """Return the context of workers; it forks where Python since 3.14 begins with a fork server.

    Scripts for MXNet are written for forks: loops at the top of the main module, any function.
    """
    method = multiprocessing.get_start_method()
    forks = sys.platform == "linux" and method == "forkserver"
    return multiprocessing.get_context("fork" if forks else method)


class _MultiWorkerIter:
    """Batches from the pool of a loader that derives from `DataLoader`, as those of gluon-cv do.

    Such a loader overrides `_push_next`, and these are the names that it uses there.  Its function
    gets indices, `batchify_fn` and the data set, and returns a batch, pickled if it is a process's.
    """

    def __init__(
        self,
        worker_pool: Any,
        batchify_fn: Callable[[Any], Any],
        batch_sampler: Any,
        pin_memory: bool = False,
        pin_device_id: int = 0,
        worker_fn: Any = None,
        prefetch: int = 0,
        dataset: Any = None,
        data_loader: Any = None,
        timeout: float = 120,
    ) -> None:
        self._worker_pool, self._worker_fn, self._dataset = worker_pool, worker_fn, dataset
        self._batchify_fn, self._batch_sampler = batchify_fn, batch_sampler
        self._iter, self._timeout = iter(batch_sampler), timeout
        self._data_buffer: dict[int, Any] = {}
        self._sent_idx = self._rcvd_idx = 0
        for _ in range(prefetch):
            self._push_next()

    def _push_next(self) -> None:
        indices = next(self._iter, None)
        if indices is not None:
            values = indices, self._batchify_fn, self._dataset
            self._data_buffer[self._sent_idx] = self._worker_pool.apply_async(
                self._worker_fn, values
            )
            self._sent_idx += 1

    def __len__(self) -> int:
        return len(self._batch_sampler)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        self._push_next()
        if not self._data_buffer:
            raise StopIteration
        batch = self._data_buffer.pop(self._rcvd_idx).get(self._timeout)
        self._rcvd_idx += 1
        return batch if self._dataset is not None else pickle.loads(batch)

    next = __next__
