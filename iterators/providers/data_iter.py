"""`DataIter`: the base class that iterators written for MXNet derive from.

It answers what such a class does not define itself.  It makes no batches.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.batch import DataBatch
from ..core.parameters import integer
from .abstract import AbstractDataProvider

__all__ = ["DataIter", "batch_of_parts", "listed"]


class DataIter(AbstractDataProvider):
    """Base class in place of MXNet's ``mx.io.DataIter``.

    A class of your own describes its batches in `provide_data` and `provide_label`, by `DataDesc`
    or by plain pairs of a name and a shape, and makes them in one of two ways: it defines `next`,
    or `iter_next` and `getdata`, with `getlabel`, `getpad` and `getindex` where there is more than
    data.  `reset` is its own as well, if there is something to begin with again.

    Parameters
    ----------
    batch_size : int
        Samples in a batch; it can be set later.  0 for what `provide_data` says.

    Notes
    -----
    As with all providers a loop begins with `reset`, also the first one, and everything else works
    on it: `ResizeIter`, `PrefetchingIter`, `iterator`, `view`.

    Examples
    --------
    >>> class Countdown(DataIter):
    ...     provide_data, provide_label, left = [("data", (2, 3))], [], 2
    ...     def __init__(self):
    ...         super().__init__(batch_size=2)
    ...     def reset(self):
    ...         self.left = 2
    ...     def iter_next(self):
    ...         self.left -= 1
    ...         return self.left >= 0
    ...     def getdata(self):
    ...         return [np.full((2, 3), self.left)]
    >>> [batch.data[0].max() for batch in Countdown()]
    [np.int64(1), np.int64(0)]
    """

    _size = 0

    def __init__(self, batch_size: int = 0) -> None:
        self.batch_size = batch_size

    @property
    def batch_size(self) -> int:
        """Samples in a batch, padding included."""
        return self._size or super().batch_size

    @batch_size.setter
    def batch_size(self, value: int) -> None:
        self._size = integer("batch_size", value, low=0)

    @property
    def _has_parts(self) -> bool:
        """Whether the class makes the arrays of a batch one by one."""
        return type(self).iter_next is not DataIter.iter_next

    def next(self) -> DataBatch:
        """The next batch of the epoch; StopIteration when it is over."""
        if not self._has_parts:
            return super().next()
        self._current = None
        self._current = batch = batch_of_parts(self)
        return batch

    def reset(self) -> None:
        """Nothing, unless `eachbatch` makes the batches or the class has a `reset` of its own."""
        self._epoch_batches = self._current = self._loop = None

    def getlabel(self) -> Any:
        """Label array of the current batch; None without labels."""
        return super().getlabel() if self._current is not None or not self._has_parts else None

    def getpad(self) -> int:
        """Padding of the current batch; 0 for a class that knows none."""
        return super().getpad() if self._current is not None or not self._has_parts else 0

    def getindex(self) -> Any:
        """Sample ids of the current batch; None for a class that knows none."""
        return super().getindex() if self._current is not None or not self._has_parts else None


def batch_of_parts(it: Any) -> DataBatch:
    """The next batch of an object with `iter_next`, `getdata`, `getlabel`, `getpad`.

    `getindex` is optional.

    Raises
    ------
    StopIteration
        When the epoch is over.
    """
    if not it.iter_next():
        raise StopIteration
    index = it.getindex() if hasattr(it, "getindex") else None
    return DataBatch(
        listed(it.getdata()),
        listed(it.getlabel()),
        pad=it.getpad() or 0,
        index=None if index is None else np.array(index, np.uint64),
        provide_data=it.provide_data,
        provide_label=it.provide_label,
    )


def listed(arrays: Any) -> list[Any]:
    """Arrays as a list: one may stand for itself, and None for none.

    Examples
    --------
    >>> listed(None), listed((1, 2)), listed(3)
    ([], [1, 2], [3])
    """
    if arrays is None:
        return []
    return list(arrays) if isinstance(arrays, (list, tuple)) else [arrays]
