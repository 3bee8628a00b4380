"""`SerialIterator`: batches fetched where they are asked for, in the caller's thread.

It starts nothing in the background.
"""

from __future__ import annotations

from typing import Any

from .iterator import DatasetIterator, fetch

__all__ = ["SerialIterator"]


class SerialIterator(DatasetIterator):
    """Iterate over a data set in the caller's thread (Chainer's ``SerialIterator``).

    Parameters
    ----------
    dataset : object
        Anything with ``len(dataset)`` and ``dataset[i]``; ``dataset.__getitems__(indices)`` is used
        where there is one.
    batch_size : int
        Examples of a batch, at least 1.
    repeat : bool
        Go on for ever, filling a batch from the next sweep where one ends; else stop after one
        sweep, whose last batch may be short.
    shuffle : bool, optional
        False for the order of the data set, True or None for a random one from NumPy's global
        generator.
    order_sampler : callable, optional
        Gives the order of every sweep, see `OrderSampler`; then `shuffle` must be None.

    Notes
    -----
    An exception of the data set comes out of the call; the next call goes on behind that batch.

    Examples
    --------
    >>> batches = SerialIterator([1, 2, 3, 4, 5], batch_size=2, shuffle=False)
    >>> [next(batches) for _ in range(3)], batches.epoch, batches.epoch_detail
    ([[1, 2], [3, 4], [5, 1]], 1, 1.2)
    """

    def __next__(self) -> list[Any]:
        with self._access.lock:
            return self._next()

    def _next(self) -> list[Any]:
        # Planned before, if an interrupt (Ctrl-C) came in between.
        planned = self._planned[0] if self._planned else self._plan()
        if planned is None:
            raise self._stop()
        try:
            examples = fetch(self.dataset, planned.indices)
        except Exception:
            self._delivered()
            raise
        self._delivered()
        return examples
