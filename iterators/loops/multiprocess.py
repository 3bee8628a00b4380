"""`MultiprocessIterator`: the examples of the next batches are fetched by processes.

For data sets that are written in Python and need the processor.  The memory of arrays is shared
with the processes, so that nothing is copied on the way.
"""

from __future__ import annotations

import multiprocessing
import os
import warnings
import zlib
from typing import Any

import numpy as np

from recordio.keywords.checks import integer, real

from .iterator import Planned, PrefetchingIterator, shares
from .worker_pool import WorkerDiedError, WorkerPool


class TimeoutWarning(RuntimeWarning):
    """A batch did not come within `dataset_timeout` seconds; it is still waited for."""


class MultiprocessIterator(PrefetchingIterator):
    """Iterate over a data set with processes (Chainer's ``MultiprocessIterator``).

    Parameters
    ----------
    dataset, batch_size, repeat, shuffle
        As for `SerialIterator`, whose batches these are.
    n_processes : int, optional
        Number of worker processes; by default as many as there are processors.
    n_prefetch : int
        Batches under way while the consumer works on another one, at least 1.  If there are fewer
        of them than processes, the processes share the examples of a batch.
    shared_mem : int, optional
        Bytes of shared memory for each example; arrays that do not fit go through a pipe, with a
        UserWarning.  0 for none.  By default as much as the examples need.
    order_sampler : callable, optional
        As for `SerialIterator`.
    dataset_timeout : float, optional
        Seconds of waiting for a batch before a `TimeoutWarning`; None for never.
    maxtasksperchild : int, optional
        Shares of a batch after which a worker process is replaced by a new one, so that memory that
        its data set has gathered is freed.
    context : str or multiprocessing context, optional
        How processes are started: "fork", "spawn", "forkserver", or a context.  Default: that of
        `multiprocessing`.

    Notes
    -----
    The processes start with the first batch.  Each inherits or unpickles the data set once, and
    draws from NumPy's, Python's and torch's global generators differently from the others.

    An exception in the data set is raised by the call that would have returned that batch, with the
    worker's traceback as its cause; the next call continues after that batch.  When a worker is
    killed, `WorkerDiedError` is raised; the next call starts new processes and makes the same batch
    again.

    The memory of the arrays of a batch is reused once none of them is referenced: to keep one
    example for long, copy it.

    Raises
    ------
    WorkerDiedError
        From ``next``, if a worker process has ended.

    Examples
    --------
    >>> with MultiprocessIterator(range(5), 2, shuffle=False, n_processes=1) as batches:
    ...     next(batches), next(batches), next(batches)
    ([0, 1], [2, 3], [4, 0])
    """

    TimeoutWarning = TimeoutWarning

    _failures = (WorkerDiedError,)
    _pool: WorkerPool | None = None
    _finalized = False

    def __init__(
        self,
        dataset: Any,
        batch_size: int,
        repeat: bool = True,
        shuffle: bool | None = None,
        n_processes: int | None = None,
        n_prefetch: int = 1,
        shared_mem: int | None = None,
        order_sampler: Any = None,
        dataset_timeout: float | None = 30.0,
        maxtasksperchild: int | None = None,
        *,
        context: Any = None,
    ) -> None:
        if n_processes is None:
            n_processes = os.cpu_count() or 1
        self.n_processes: int = integer("n_processes", n_processes, low=1)
        self.n_prefetch: int
        self.n_prefetch = self._ahead = integer("n_prefetch", n_prefetch, low=1)
        if shared_mem is not None:
            shared_mem = integer("shared_mem", shared_mem, low=0)
        self.shared_mem = shared_mem
        if dataset_timeout is not None:
            dataset_timeout = real("dataset_timeout", dataset_timeout, low=0)
        self.dataset_timeout = dataset_timeout
        if maxtasksperchild is not None:
            maxtasksperchild = integer("maxtasksperchild", maxtasksperchild, low=1)
        self.maxtasksperchild = maxtasksperchild
        if context is None or isinstance(context, str):
            context = multiprocessing.get_context(context)
        self.context: Any = context
        super().__init__(dataset, batch_size, repeat, shuffle, order_sampler)

    def __next__(self) -> list[Any]:
        if self._finalized:
            raise ValueError("the iterator is finalized: its processes have ended")
        return super().__next__()

    def _prepare(self) -> None:
        if self._pool is not None:
            if self._pool.owner == os.getpid():
                return
            super()._abandon()  # under way in the processes of the parent
        self._pool = WorkerPool(
            self.dataset,
            self.n_processes,
            self.context,
            self.shared_mem,
            self.maxtasksperchild,
            2 + -(-(self.n_prefetch + 1) * self._sharing() // self.n_processes),
            self._entropy(),
        )

    def _sharing(self) -> int:
        """Return the number of processes that share the examples of a batch: all have work."""
        return -(-self.n_processes // self.n_prefetch)

    def _entropy(self) -> tuple[int, ...]:
        """Return the seeds of the workers' generators, which follow from this process' generator.

        Nothing is drawn from it, so that orders do not depend on where examples are fetched.
        """
        state = np.random.get_state(legacy=False)["state"]
        check = (
            zlib.crc32(state["key"].tobytes())
            if "key" in state
            else zlib.crc32(repr(state).encode())
        )
        return check, self.epoch, self.current_position

    def _start(self, planned: Planned) -> None:
        assert self._pool is not None
        planned.parts = []
        parts = [shares(items, self._sharing()) for items in (planned.indices, planned.epochs)]
        for part in zip(*parts, strict=True):
            planned.parts.append(self._pool.submit(*part))

    def _await(self, planned: Planned) -> list[list[Any]]:
        assert self._pool is not None
        assert planned.parts is not None
        results, failed = [], None
        for ticket in planned.parts:
            try:
                results.append(self._pool.collect(ticket, self.dataset_timeout, self._late))
            except WorkerDiedError:
                raise
            except Exception as error:
                failed = failed or error
        if failed is not None:
            raise failed
        return results

    def _late(self) -> None:
        warnings.warn(
            f"a batch has not come for {self.dataset_timeout:g} seconds and is still waited for: "
            "the data set is slow, or a worker process hangs",
            TimeoutWarning,
            stacklevel=6,
        )

    def _abandon(self) -> None:
        if self._pool is not None and self._pool.owner == os.getpid():
            if self._in_order:
                self._pool.cancel([t for planned in self._planned for t in planned.parts or ()])
            else:  # interrupted, perhaps in the middle of a message, or a worker died
                self._pool.close()
                self._pool = None
        super()._abandon()

    def reset(self) -> None:
        """Start again at epoch 0, in a fresh order; not possible once finalized.

        Raises
        ------
        NotImplementedError
            After `finalize`, as in Chainer.
        """
        if self._finalized:
            raise NotImplementedError("reset() after finalize(): make a new iterator")
        super().reset()

    def finalize(self) -> None:
        """End the processes; batches that were handed out stay valid."""
        self._finalized = True
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()

    def __getstate__(self) -> dict[str, Any]:
        """Return the state of every iterator, without processes."""
        state = super().__getstate__()
        state.update(_pool=None, _finalized=False, context=self.context.get_start_method())
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.context = multiprocessing.get_context(state["context"])
