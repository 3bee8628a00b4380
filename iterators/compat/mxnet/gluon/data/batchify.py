"""Names of `mx.gluon.data.batchify`: samples joined to batches, one way for each of their items."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from .....core.collate import concat_examples
from .....core.dtypes import numpy_dtype
from ...ndarray.array import as_nd

__all__ = ["AsList", "Group", "Pad", "Stack", "Tuple", "default_batchify_fn"]


def default_batchify_fn(data: Sequence[Any]) -> Any:
    """Stack the samples of a batch; the items of tuples each for itself, as a list."""
    if isinstance(data[0], tuple):
        return [default_batchify_fn(items) for items in zip(*data, strict=True)]
    return as_nd(np.stack([np.asarray(item) for item in data]))


class Stack:
    """Stack arrays of one shape."""

    def __call__(self, data: Sequence[Any]) -> Any:
        """Return the batch of some samples."""
        return default_batchify_fn([np.asarray(item) for item in data])


class Pad:
    """Stack arrays of several shapes, filled up at the end of each axis.

    `axis` is of gluonnlp, where one axis is filled and all others agree: they are checked.
    """

    def __init__(
        self, axis: int | None = None, val: Any = 0, dtype: Any = None, pad_val: Any = None
    ) -> None:
        self._axis, self._value = axis, val if pad_val is None else pad_val
        self._dtype = None if dtype is None else numpy_dtype(dtype)

    def __call__(self, data: Sequence[Any]) -> Any:
        """Return the batch of some samples."""
        arrays = [np.asarray(item, self._dtype) for item in data]
        if self._axis is not None:
            shapes = {np.delete(array.shape, self._axis).tobytes() for array in arrays}
            if len(shapes) > 1:
                raise ValueError(f"axis={self._axis}: the samples differ along other axes, too")
        return as_nd(concat_examples(arrays, padding=self._value))


class Tuple:
    """Join each item of the samples in a way of its own.

    Examples
    --------
    >>> data, label = Tuple(Pad(val=-1), Stack())([([1, 2], 5), ([3], 6)])
    >>> data.asnumpy().tolist(), label.asnumpy().tolist()
    ([[1, 2], [3, -1]], [5, 6])
    """

    def __init__(self, fn: Any, *args: Any) -> None:
        self._functions = tuple(fn) if isinstance(fn, list | tuple) else (fn, *args)

    def __call__(self, data: Sequence[Any]) -> Any:
        """Return the batch of some samples."""
        columns = zip(*data, strict=True)
        return tuple(fn(items) for fn, items in zip(self._functions, columns, strict=True))


class AsList:
    """Leave the samples as a list."""

    def __call__(self, data: Sequence[Any]) -> list[Any]:
        """Return the batch of some samples."""
        return list(data)


Group: TypeAlias = Tuple
List: TypeAlias = AsList
