"""Rows of a batch: gathered, cut out, copied; along any axis, for every array library.

Row numbers are checked here once.  Nothing in this module changes the order of axes.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ..core.backend import backend_of, is_sparse, is_tensor

#: Size of the pieces in which rows are copied where NumPy cannot copy them directly.
GATHERED_BYTES = 1 << 18


def row_numbers(ids: Any, size: int) -> np.ndarray:
    """Return row numbers as int64, checked to be in ``[-size, size)`` and counted from 0.

    Repeats are allowed; truth values, one for every row, are a mask.
    """
    numbers = np.asarray(ids.detach().cpu() if is_tensor(ids) else ids)
    if numbers.ndim != 1:
        raise TypeError(f"row numbers must be a flat sequence, not {numbers.ndim}-dimensional")
    if numbers.dtype == bool:
        if len(numbers) != size:
            raise IndexError(f"a mask of {len(numbers)} for {size} rows")
        return np.flatnonzero(numbers)
    if numbers.size and numbers.dtype.kind not in "iu":
        raise TypeError(f"row numbers must be integers, not {numbers.dtype}")
    numbers = numbers.astype(np.int64)
    wrong = (numbers < -size) | (numbers >= size)
    if wrong.any():
        raise IndexError(f"row {numbers[wrong][0]} of {size} rows does not exist")
    return np.where(numbers < 0, numbers + size, numbers)


def row_range(start: Any, stop: Any, size: int) -> tuple[int, int]:
    """Return ``start, stop`` of a half-open range of rows, checked."""
    start, stop = operator.index(start), operator.index(stop)
    if not 0 <= start <= stop <= size:
        raise IndexError(f"rows {start} to {stop} of {size} rows do not exist")
    return start, stop


def window(x: Any, axis: int, start: int, stop: int) -> Any:
    """Return rows ``[start, stop)`` on the memory of `x`; a sparse matrix has to copy them."""
    return backend_of(x).narrow(x, axis, start, stop)


def copy(x: Any) -> Any:
    """Return the same elements in memory of their own, in C order; gradients flow through."""
    if is_tensor(x):
        import torch

        return x.clone(memory_format=torch.contiguous_format)
    return x.copy()


def _fits(memory: Any, x: Any, shape: tuple[int, ...]) -> bool:
    """Return whether `memory` can be overwritten with an array like `x` of that shape."""
    if memory is None or type(memory) is not type(x) or is_sparse(x):
        return False
    if tuple(memory.shape) != shape or memory.dtype != x.dtype:
        return False
    if is_tensor(x):
        storage = memory.untyped_storage().data_ptr(), x.untyped_storage().data_ptr()
        graph = memory.requires_grad or x.requires_grad
        return memory.device == x.device and storage[0] != storage[1] and not graph
    return memory.flags.writeable and not np.may_share_memory(memory, x)


def take(x: Any, axis: int, rows: np.ndarray | slice, memory: Any = None) -> Any:
    """Copy the rows, into `memory` if that fits and is not the memory of `x`.

    `rows` are checked row numbers, along the axis that counts the rows.
    """
    if isinstance(rows, slice):
        piece = window(x, axis, rows.start, rows.stop)
        if not _fits(memory, x, tuple(piece.shape)):
            return copy(piece)
        assign(memory, piece)
        return memory
    shape = list(x.shape)
    shape[axis] = len(rows)
    if not _fits(memory, x, tuple(shape)):
        memory = None
    if is_tensor(x):
        import torch

        index = torch.from_numpy(rows).to(x.device)
        return torch.index_select(x, axis, index, out=memory)
    if is_sparse(x):
        return x.tocsr()[rows] if axis == 0 else x.tocsc()[:, rows]
    if x.flags.c_contiguous:
        # mode="raise" would make take() go through a buffer when it is given memory.
        return np.take(x, rows, axis, out=memory, mode="clip")
    result = np.empty_like(x, order="C", shape=shape) if memory is None else memory
    _gather(x, axis, rows, result)
    return result


def _gather(x: np.ndarray, axis: int, rows: np.ndarray, target: np.ndarray) -> None:
    """Fill an array with rows of one that is not contiguous, of which take() would copy all."""
    before: tuple[Any, ...] = (slice(None),) * axis
    step = max(GATHERED_BYTES * len(rows) // max(target.nbytes, 1), 1)
    for start in range(0, len(rows), step):
        piece = slice(start, start + step)
        target[(*before, piece)] = x[(*before, rows[piece])]


def assign(memory: Any, x: Any) -> None:
    """Write `x` into existing memory of the same shape, which is no sparse matrix."""
    if tuple(memory.shape) != tuple(x.shape):
        raise ValueError(f"shape {tuple(x.shape)} does not fit into {tuple(memory.shape)}")
    if is_sparse(memory):
        raise TypeError("a sparse matrix cannot be overwritten in place")
    if is_tensor(memory):
        import torch

        with torch.no_grad():
            memory.copy_(x)
    else:
        memory[...] = x
