"""Batches from and to other libraries through DLPack, without a copy.

Structures are walked, arrays are handed over; nothing is converted or moved.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch.utils.dlpack import to_dlpack as capsule

from ..core.batch import DataBatch
from ..core.dtypes import plain_bits, tensor_over


def from_dlpack(batch: Any) -> Any:
    """Return the batch with torch tensors over the memory of its arrays.

    Parameters
    ----------
    batch : DataBatch, array, or list, tuple or dict of such
        Arrays are everything with ``__dlpack__`` (NumPy, CuPy, JAX, torch, ...) and DLPack
        capsules, which can be used once.  Anything else (numbers, None) stays what it is.

    Raises
    ------
    BufferError
        If an array cannot be handed over because it is read-only.

    Examples
    --------
    >>> array = np.arange(3)
    >>> tensor = from_dlpack({"x": [array]})["x"][0]
    >>> tensor[0] = 7
    >>> array
    array([7, 1, 2])
    """
    return mapped(batch, _tensor)


def to_dlpack(batch: Any, *, max_version: tuple[int, int] | None = None) -> Any:
    """Return the batch with DLPack capsules in place of its arrays.

    Libraries that support ``__dlpack__`` take the arrays of a batch as they are.  A capsule can be
    used once.

    Parameters
    ----------
    batch : DataBatch, array, or list, tuple or dict of such
        As for `from_dlpack`.
    max_version : tuple of int, optional
        The newest version of DLPack, major and minor, that the consumer knows.  From (1, 0) on
        capsules have a version and say whether their array is read-only.  An array of a library
        from before DLPack 1.0 gets a capsule without a version, as all do by default.

    Raises
    ------
    BufferError
        If an array is read-only, and a capsule without a version cannot say so.

    Examples
    --------
    >>> tensor = torch.ones(2)
    >>> same = torch.from_dlpack(to_dlpack([tensor])[0])
    >>> same.data_ptr() == tensor.data_ptr()
    True
    """
    return mapped(batch, partial(_capsule, max_version=max_version))


def mapped(batch: Any, function: Callable[[Any], Any]) -> Any:
    """Return a structure of the same form, with the function's results in place of its leaves."""
    if isinstance(batch, DataBatch):
        other = copy.copy(batch)
        other.data = [function(array) for array in batch.data]
        other.label = [function(array) for array in batch.label]
        return other
    if isinstance(batch, dict):
        return {key: mapped(value, function) for key, value in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(mapped(value, function) for value in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(mapped(value, function) for value in batch)
    return function(batch)


def _is_capsule(value: Any) -> bool:
    return type(value).__name__ == "PyCapsule"


def _tensor(value: Any) -> Any:
    if hasattr(value, "__dlpack__") or _is_capsule(value):
        if isinstance(value, np.ndarray) and not value.flags.writeable:
            raise BufferError("the array is read-only, and tensors never are: copy it first")
        if _is_packaged(value):
            return tensor_over(value)
        return value if isinstance(value, torch.Tensor) else torch.from_dlpack(value)
    return value


def _capsule(value: Any, max_version: tuple[int, int] | None) -> Any:
    if _is_packaged(value):
        value = _tensor(value)
    if not hasattr(value, "__dlpack__"):
        return value
    if max_version is not None:
        try:
            return value.__dlpack__(max_version=max_version)
        except TypeError:  # of a library from before DLPack 1.0, as its consumers do
            pass
    return capsule(value) if isinstance(value, torch.Tensor) else value.__dlpack__()


def _is_packaged(value: Any) -> bool:
    """Return whether NumPy has the type of an array from a package, and cannot hand it over."""
    return isinstance(value, np.ndarray) and plain_bits(value) is not value
