"""`DataIter`: the base class that iterators written for MXNet derive from.

It answers what such a class does not define itself.  It makes no batches.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from recordio.keywords.checks import integer

from ..core.batch import DataBatch
from .abstract import AbstractDataProvider


class DataIter(AbstractDataProvider):
    """Base class in place of MXNet's ``mx.io.DataIter``.

    A class of your own makes its batches in one of two ways: it defines `next`, or `iter_next` and
    `getdata`, with `getlabel`, `getpad` and `getindex` where there is more than data.  It describes
    them in `provide_data` and `provide_label`, by `DataDesc` or by plain pairs of a name and a
    shape; without descriptions arrays have no names.  It also defines `reset` if it can begin
    again.

    Parameters
    ----------
    batch_size : int
        Samples in a batch; it can be set later.  0 to take it from `provide_data`.

    Notes
    -----
    It can be used like any provider: with `ResizeIter`, `PrefetchingIter`, `iterator`, `view`.

    A loop begins with `reset`, as with all providers, if a batch was asked for since the iterator
    was made or reset; otherwise, as in MXNet, `reset` is not called: it may shuffle, or need a
    batch before it.  The methods `next`, `iter_next`, `reset`, `set_epoch` and `load_state_dict` of
    the class note this when they are called.

    The class may have any attributes; only names that begin with ``_provider_`` are reserved.

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

    #: MXNet's base class asks for no descriptions.
    provide_data: tuple[Any, ...]
    provide_label: tuple[Any, ...]
    provide_data = provide_label = ()

    _provider_asked = None
    _provider_size = 0

    def __init__(self, batch_size: int = 0) -> None:
        self.batch_size = batch_size

    @property
    def batch_size(self) -> int:
        """Samples in a batch, padding included."""
        return self._provider_size or super().batch_size

    @batch_size.setter
    def batch_size(self, value: int) -> None:
        self._provider_size = integer("batch_size", value, low=0)

    def next(self) -> DataBatch:
        """Return the next batch of the epoch; StopIteration at its end."""
        if not _has_parts(self):
            return super().next()
        self._provider_current = None
        self._provider_current = batch = batch_of_parts(self)
        return batch

    def reset(self) -> None:
        """Do nothing, unless `eachbatch` makes the batches or the class has its own `reset`."""
        self._provider_batches = self._provider_current = self._provider_loop = None

    def getlabel(self) -> Any:
        """Return the label array of the current batch; None without labels."""
        return None if _knows_none(self) else super().getlabel()

    def getpad(self) -> int:
        """Return the padding of the current batch: 0 unless the class defines it."""
        return 0 if _knows_none(self) else super().getpad()

    def getindex(self) -> Any:
        """Return the sample ids of the current batch: None unless the class defines them."""
        return None if _knows_none(self) else super().getindex()


def _has_parts(it: DataIter) -> bool:
    """Return whether the class makes the arrays of a batch one by one."""
    return type(it).iter_next is not DataIter.iter_next


def _knows_none(it: DataIter) -> bool:
    """Return whether a part that the class does not define is asked for while a batch is made."""
    return it._provider_current is None and _has_parts(it)


def batch_of_parts(it: Any) -> DataBatch:
    """Make a batch by `iter_next`, `getdata`, `getlabel`, `getpad` and perhaps `getindex`."""
    if not it.iter_next():
        raise StopIteration
    index = it.getindex() if hasattr(it, "getindex") else None
    return DataBatch(
        listed(it.getdata()),
        listed(it.getlabel()),
        pad=it.getpad() or 0,
        index=None if index is None else np.array(index, np.uint64),
        provide_data=it.provide_data or None,
        provide_label=it.provide_label or None,
    )


def listed(arrays: Any) -> list[Any]:
    """Return arrays as a list: one may stand for itself, and None for none."""
    if arrays is None:
        return []
    return list(arrays) if isinstance(arrays, (list, tuple)) else [arrays]
