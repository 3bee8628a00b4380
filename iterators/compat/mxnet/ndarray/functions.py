"""Functions of `mx.nd` that data code calls: arrays made, joined, cut and turned round."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....core.dtypes import numpy_dtype
from ..context import host
from .array import NDArray, as_nd, size_of

__all__ = [
    "abs",
    "arange",
    "argmax",
    "argmin",
    "array",
    "ceil",
    "clip",
    "concat",
    "concatenate",
    "dot",
    "empty",
    "exp",
    "expand_dims",
    "eye",
    "flip",
    "floor",
    "from_numpy",
    "full",
    "greater",
    "linspace",
    "log",
    "max",
    "maximum",
    "mean",
    "min",
    "minimum",
    "one_hot",
    "ones",
    "ones_like",
    "round",
    "sign",
    "slice_axis",
    "split",
    "sqrt",
    "square",
    "stack",
    "sum",
    "tile",
    "transpose",
    "waitall",
    "where",
    "zeros",
    "zeros_like",
]


def array(source_array: Any, ctx: Any = None, dtype: Any = None) -> NDArray:
    """Make an array: float32 unless `dtype` or an NDArray says otherwise."""
    host(ctx)
    if dtype is None:
        dtype = source_array.dtype if isinstance(source_array, NDArray) else np.float32
    return as_nd(np.array(source_array, numpy_dtype(dtype)))


def from_numpy(ndarray: np.ndarray, zero_copy: bool = True) -> NDArray:
    """Return a NumPy array as an NDArray of its type, over the same memory or a copy."""
    return as_nd(ndarray if zero_copy else ndarray.copy())


def zeros(shape: Any, ctx: Any = None, dtype: Any = None, stype: Any = None) -> NDArray:
    """Make an array of zeros."""
    host(ctx)
    return as_nd(np.zeros(size_of(shape), numpy_dtype(dtype or "float32"))).tostype(
        stype or "default"
    )


empty = zeros


def ones(shape: Any, ctx: Any = None, dtype: Any = None) -> NDArray:
    """Make an array of ones."""
    return full(shape, 1, ctx, dtype or "float32")


def full(shape: Any, val: Any, ctx: Any = None, dtype: Any = "float32") -> NDArray:
    """Make an array of one value."""
    host(ctx)
    return as_nd(np.full(size_of(shape), val, numpy_dtype(dtype)))


def arange(
    start: Any,
    stop: Any = None,
    step: Any = 1.0,
    repeat: int = 1,
    infer_range: Any = None,
    ctx: Any = None,
    dtype: Any = "float32",
) -> NDArray:
    """Make an array of numbers in equal steps, each of them `repeat` times."""
    if infer_range:
        raise ValueError("infer_range is of symbols: give stop")
    host(ctx)
    low, high = (0, start) if stop is None else (start, stop)
    return as_nd(np.repeat(np.arange(low, high, step), repeat).astype(numpy_dtype(dtype)))


def linspace(
    start: Any,
    stop: Any,
    num: int,
    endpoint: bool = True,
    ctx: Any = None,
    dtype: Any = "float32",
) -> NDArray:
    """Make an array of so many numbers between two."""
    host(ctx)
    return as_nd(np.linspace(start, stop, num, endpoint).astype(numpy_dtype(dtype)))


def eye(N: int, M: int = 0, k: int = 0, ctx: Any = None, dtype: Any = None) -> NDArray:
    """Make a matrix with ones on a diagonal."""
    host(ctx)
    return as_nd(np.eye(N, M or N, k, numpy_dtype(dtype or "float32")))


def zeros_like(data: Any) -> NDArray:
    """Make zeros of the shape and type of an array."""
    return as_nd(np.zeros_like(np.asarray(data)))


def ones_like(data: Any) -> NDArray:
    """Make ones of the shape and type of an array."""
    return as_nd(np.ones_like(np.asarray(data)))


def concat(*data: Any, dim: int = 1, out: Any = None) -> NDArray:
    """Join arrays along an axis, by default the second one, as in MXNet."""
    return as_nd(np.concatenate([np.asarray(a) for a in data], dim, out))


def concatenate(arrays: Any, axis: int = 0, always_copy: bool = True) -> NDArray:
    """Join the arrays of a list along an axis."""
    return as_nd(np.concatenate([np.asarray(a) for a in arrays], axis))


def stack(*data: Any, axis: int = 0, out: Any = None) -> NDArray:
    """Join arrays along a new axis."""
    return as_nd(np.stack([np.asarray(a) for a in data], axis, out))


def split(
    data: Any, num_outputs: int, axis: int = 1, squeeze_axis: bool = False
) -> NDArray | list[NDArray]:
    """Cut an array into equal parts along an axis, by default the second one, as in MXNet."""
    parts = np.split(np.asarray(data), num_outputs, axis)
    if squeeze_axis:
        parts = [np.squeeze(part, axis) for part in parts]
    return as_nd(parts) if num_outputs > 1 else as_nd(parts[0])


def transpose(data: Any, axes: Any = None) -> NDArray:
    """Return an array with its axes in another order."""
    return as_nd(np.transpose(np.asarray(data), axes or None))


def expand_dims(data: Any, axis: int) -> NDArray:
    """Return an array with another axis of length 1."""
    return as_nd(np.expand_dims(np.asarray(data), axis))


def flip(data: Any, axis: Any) -> NDArray:
    """Return a copy in which an axis runs the other way."""
    return as_nd(np.flip(np.asarray(data), axis).copy())


def slice_axis(data: Any, axis: int, begin: int, end: int | None) -> NDArray:
    """Return the part from `begin` to before `end` of an axis."""
    return as_nd(np.asarray(data)).slice_axis(axis, begin, end)


def clip(data: Any, a_min: Any, a_max: Any) -> NDArray:
    """Return a copy with entries limited to a range."""
    return as_nd(np.clip(np.asarray(data), a_min, a_max))


def tile(data: Any, reps: Any) -> NDArray:
    """Return an array repeated as a whole."""
    return as_nd(np.tile(np.asarray(data), reps))


def where(condition: Any, x: Any, y: Any) -> NDArray:
    """Choose between two arrays, entry by entry."""
    return as_nd(np.where(np.asarray(condition).astype(bool), np.asarray(x), np.asarray(y)))


def one_hot(
    indices: Any, depth: int, on_value: Any = 1.0, off_value: Any = 0.0, dtype: Any = "float32"
) -> NDArray:
    """Give every number a row that is `on_value` at its position; none outside the range."""
    chosen = np.asarray(indices)[..., None] == np.arange(depth)
    return as_nd(np.where(chosen, on_value, off_value).astype(numpy_dtype(dtype)))


def dot(lhs: Any, rhs: Any) -> NDArray:
    """Multiply the last axis of one array with the first of another, as in MXNet."""
    left, right = np.asarray(lhs), np.asarray(rhs)
    if right.ndim <= 2:  # for the three channels of an image, 20 times as fast as tensordot
        return as_nd(np.asarray(left @ right))
    return as_nd(np.asarray(np.tensordot(left, right, 1)))


def argmax(data: Any, axis: int | None = None, keepdims: bool = False) -> NDArray:
    """Return positions of the largest entries, as float32, which MXNet gives."""
    return as_nd(np.asarray(data)).argmax(axis, keepdims)


def argmin(data: Any, axis: int | None = None, keepdims: bool = False) -> NDArray:
    """Return positions of the smallest entries, as float32, which MXNet gives."""
    return as_nd(np.asarray(data)).argmin(axis, keepdims)


def waitall() -> None:
    """Return at once: nothing is computed in the background."""


def _by_numpy(function: Callable[..., Any]) -> Callable[..., NDArray]:
    """Return a function of NumPy under MXNet's name, for its own arrays."""

    def of_arrays(*arrays: Any) -> NDArray:
        return as_nd(np.asarray(function(*map(np.asarray, arrays))))

    of_arrays.__name__ = of_arrays.__qualname__ = function.__name__
    of_arrays.__doc__ = f"Return `numpy.{function.__name__}` of arrays, as an NDArray."
    return of_arrays


def _over_axes(function: Callable[..., Any]) -> Callable[..., NDArray]:
    """Return a function of NumPy that reduces axes under MXNet's name, for its own arrays."""

    def of_array(data: Any, axis: Any = None, keepdims: bool = False) -> NDArray:
        return as_nd(np.asarray(function(np.asarray(data), axis=axis, keepdims=keepdims)))

    of_array.__name__ = of_array.__qualname__ = function.__name__
    of_array.__doc__ = f"Return `numpy.{function.__name__}` over some axes, as an NDArray."
    return of_array


abs: Callable[..., NDArray] = _by_numpy(np.absolute)
ceil: Callable[..., NDArray] = _by_numpy(np.ceil)
exp: Callable[..., NDArray] = _by_numpy(np.exp)
floor: Callable[..., NDArray] = _by_numpy(np.floor)
greater: Callable[..., NDArray] = _by_numpy(np.greater)
log: Callable[..., NDArray] = _by_numpy(np.log)
max: Callable[..., NDArray] = _over_axes(np.max)
maximum: Callable[..., NDArray] = _by_numpy(np.maximum)
mean: Callable[..., NDArray] = _over_axes(np.mean)
min: Callable[..., NDArray] = _over_axes(np.min)
minimum: Callable[..., NDArray] = _by_numpy(np.minimum)
round: Callable[..., NDArray] = _by_numpy(np.round)
sign: Callable[..., NDArray] = _by_numpy(np.sign)
sqrt: Callable[..., NDArray] = _by_numpy(np.sqrt)
square: Callable[..., NDArray] = _by_numpy(np.square)
sum: Callable[..., NDArray] = _over_axes(np.sum)
