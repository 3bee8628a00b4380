"""The base of the iterators that fetch in the background: it keeps batches under way, in order.

Planning, errors and interrupts are dealt with here; threads and processes are not known.
"""

from __future__ import annotations

import itertools
from typing import Any

from .iterator import DatasetIterator, Planned

__all__ = ["PrefetchingIterator", "shares"]


class PrefetchingIterator(DatasetIterator):
    """Base class of the iterators that fetch in the background, `_ahead` batches ahead.

    A subclass starts a batch and waits for it; batches, their order and the handling of errors are
    the same for all.
    """

    #: Batches under way while the consumer works on another one.
    _ahead = 1
    #: Errors of the machinery, not of the data set: the batch is made again by the next call.
    _failures: tuple[type[Exception], ...] = ()
    #: False inside `next`, and after one that was interrupted anywhere (Ctrl-C).
    _in_order = True

    def __next__(self) -> list[Any]:
        with self._access.lock:
            return self._next_in_order()

    def _next_in_order(self) -> list[Any]:
        if not self._in_order:
            self._abandon()
        self._in_order = False
        try:
            examples = self._next()
        except self._failures:
            raise
        except Exception:
            self._in_order = True
            raise
        self._in_order = True
        return examples

    def _next(self) -> list[Any]:
        self._plan_ahead()
        if not self._planned:
            raise self._stop()
        self._prepare()
        for planned in self._planned:
            if planned.parts is None:
                self._start(planned)
        try:
            results = self._await(self._planned[0])
        except self._failures:
            raise
        except Exception:
            self._delivered()  # the next call goes on behind this batch
            raise
        self._delivered()
        examples = results[0]
        for more in results[1:]:
            examples += more
        return examples

    def _plan_ahead(self) -> None:
        while len(self._planned) <= self._ahead:
            try:
                if self._plan() is None:
                    return
            except Exception:
                if not self._planned:
                    raise
                return  # raised when it is the turn of that batch

    def _prepare(self) -> None:
        """Make sure that batches can be started."""

    def _start(self, planned: Planned) -> None:
        """Begin to fetch a batch and set its `parts`."""
        raise TypeError(f"{type(self).__name__} does not define _start()")

    def _await(self, planned: Planned) -> list[list[Any]]:
        """Wait for the examples of each part; raises what fetching raised."""
        raise TypeError(f"{type(self).__name__} does not define _await()")

    def _abandon(self) -> None:
        for planned in self._planned:
            planned.parts = None
        self._in_order = True


def shares(indices: list[int], count: int) -> list[list[int]]:
    """Cut the indices into at most `count` runs of nearly equal length."""
    count = max(min(count, len(indices)), 1)
    edges = [len(indices) * i // count for i in range(count + 1)]
    return [indices[a:b] for a, b in itertools.pairwise(edges)]
