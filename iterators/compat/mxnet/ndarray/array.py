"""`NDArray`: a NumPy array with MXNet's methods, for scripts written for MXNet.

Only functions and iterators of `iterators.compat.mxnet` give these arrays; nothing else in this
package pays for them.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from recordio.extras import need
from recordio.keywords.checks import integer

from ....core.dtypes import numpy_dtype
from ..context import Context, cpu, host

__all__ = ["NDArray", "as_nd", "plain"]


class NDArray(np.ndarray):
    """A NumPy array with MXNet's methods: `asnumpy`, `asscalar`, `context`, `copyto` and so on.

    A single entry is an array of shape (1,), as in MXNet, never a NumPy scalar.  Arithmetic,
    comparisons and types are NumPy's.

    Examples
    --------
    >>> a = as_nd(np.arange(6, dtype=np.float32).reshape(2, 3))
    >>> a.sum()
    <BLANKLINE>
    [15.]
    <NDArray 1 @cpu(0)>
    >>> a[1, 2].asscalar(), type(a.asnumpy()).__name__, a.as_in_context(cpu()) is a
    (np.float32(5.0), 'ndarray', True)
    """

    def asnumpy(self) -> np.ndarray:
        """Return a copy as a plain NumPy array; ``np.asarray(a)`` is one that shares memory."""
        return np.array(self)

    def asscalar(self) -> Any:
        """Return the only entry as a NumPy scalar.

        Raises
        ------
        ValueError
            If there are more entries, or none.
        """
        if self.size != 1:
            raise ValueError(f"an array of shape {self.shape} is not a scalar")
        return plain(self).reshape(1)[0]

    @property
    def context(self) -> Context:
        """The context of the array: host memory."""
        return cpu()

    ctx = context

    @property
    def stype(self) -> str:
        """The way that the array is stored: "default", which is MXNet's word for dense."""
        return "default"

    def as_in_context(self, context: Any) -> NDArray:
        """Return the array itself, for a context of host memory."""
        host(context)
        return self

    as_in_ctx = as_in_context

    def as_nd_ndarray(self) -> NDArray:
        """Return the array itself."""
        return self

    def wait_to_read(self) -> None:
        """Return at once: nothing is computed in the background."""

    def copyto(self, other: Any) -> NDArray:
        """Copy to an array of the same shape, which is returned, or to a context."""
        if isinstance(other, Context):
            host(other)
            return self.copy()
        other[...] = self
        return other

    def tostype(self, stype: str) -> Any:
        """Return the array itself for "default", and a `CSRNDArray` for "csr"."""
        if stype == "default":
            return self
        if stype != "csr":
            raise ValueError(f"stype={stype!r}: expected 'default' or 'csr'")
        return as_nd(need("scipy.sparse", "tostype('csr')").csr_array(plain(self)))

    def astype(self, dtype: Any, copy: bool = True) -> NDArray:  # type: ignore[override]
        """Return the array with another element type."""
        return as_nd(plain(self).astype(numpy_dtype(dtype), copy=copy))

    def expand_dims(self, axis: int) -> NDArray:
        """Return a view with another axis of length 1."""
        return as_nd(np.expand_dims(plain(self), axis))

    def flatten(self) -> NDArray:  # type: ignore[override]
        """Return a view of two axes, the first one and all others together, as MXNet does."""
        return as_nd(plain(self).reshape(len(self), -1))

    def reshape(self, *shape: Any, **keywords: Any) -> NDArray:  # type: ignore[override]
        """Return a view of another shape; 0 stands for the length of that axis, -1 for the rest."""
        if "shape" in keywords:
            shape = (keywords.pop("shape"),)
        if keywords:
            raise ValueError(f"reshape: {min(keywords)} is not known here; write out the shape")
        lengths = shape[0] if len(shape) == 1 and np.ndim(shape[0]) else shape
        if any(length < -1 for length in lengths):
            raise ValueError(f"reshape{tuple(lengths)}: codes below -1 are not known here")
        filled = [length or self.shape[axis] for axis, length in enumerate(lengths)]
        return as_nd(plain(self).reshape(filled))

    def transpose(self, *axes: Any, **keywords: Any) -> NDArray:  # type: ignore[override]
        """Return a view with its axes in another order, by default the opposite one."""
        return as_nd(plain(self).transpose(*([keywords["axes"]] if keywords else axes)))

    def flip(self, axis: Any) -> NDArray:
        """Return a copy in which an axis runs the other way."""
        return as_nd(np.flip(plain(self), axis).copy())

    def slice_axis(self, axis: int, begin: int, end: int | None) -> NDArray:
        """Return the part from `begin` to before `end` of an axis, as a view."""
        index: list[Any] = [slice(None)] * self.ndim
        index[axis] = slice(begin, end)
        return self[tuple(index)]

    def broadcast_to(self, shape: Any) -> NDArray:
        """Return a copy of another shape, axes of length 1 repeated."""
        return as_nd(np.broadcast_to(plain(self), shape).copy())

    def clip(self, a_min: Any, a_max: Any) -> NDArray:  # type: ignore[override]
        """Return a copy with entries limited to a range."""
        return as_nd(np.clip(plain(self), a_min, a_max))

    def tile(self, reps: Any) -> NDArray:
        """Return the array repeated as a whole."""
        return as_nd(np.tile(plain(self), reps))

    def norm(self) -> NDArray:
        """Return the root of the sum of all squares."""
        return as_nd(np.asarray(np.linalg.norm(plain(self).ravel()), self.dtype))

    def argmax(self, axis: int | None = None, keepdims: bool = False) -> NDArray:  # type: ignore[override]
        """Return positions of the largest entries, as float32, which MXNet gives."""
        return as_nd(np.asarray(np.argmax(plain(self), axis, keepdims=keepdims), np.float32))

    def argmin(self, axis: int | None = None, keepdims: bool = False) -> NDArray:  # type: ignore[override]
        """Return positions of the smallest entries, as float32, which MXNet gives."""
        return as_nd(np.asarray(np.argmin(plain(self), axis, keepdims=keepdims), np.float32))

    # -- what NumPy would give as a scalar is an array of one entry --------------------------------

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return as_nd(array)

    def __getitem__(self, key: Any) -> Any:
        values = super().__getitem__(_index(key))
        return values if isinstance(values, NDArray) else as_nd(np.asarray(values))

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(_index(key), value)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> bool:
        return bool(plain(self).reshape(()) if self.size == 1 else plain(self))

    def __float__(self) -> float:
        return float(self.asscalar())

    def __int__(self) -> int:
        return int(self.asscalar())

    def __index__(self) -> int:
        return integer("an index", self.asscalar().item())

    def __repr__(self) -> str:
        shape = "x".join(map(str, self.shape))
        return f"\n{plain(self)}\n<NDArray {shape} @{self.context}>"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(self.asscalar(), spec) if spec else str(self)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return as_nd, (plain(self),)  # whose memory the pickle protocol keeps apart


def plain(array: np.ndarray) -> np.ndarray:
    """Return the array as NumPy's own class, over the same memory."""
    return array.view(np.ndarray)


def as_nd(value: Any) -> Any:
    """Return arrays as `NDArray`, over the same memory, also inside a list or a tuple.

    A sparse matrix becomes a `CSRNDArray`; anything else is returned as it is.
    """
    if isinstance(value, np.ndarray):
        return (value if value.ndim else value.reshape(1)).view(NDArray)
    if type(value) in (list, tuple):
        return type(value)(map(as_nd, value))
    if hasattr(value, "tocsr"):
        return csr_of(value)
    return value


@functools.cache
def csr_class() -> Any:
    """Return the class `CSRNDArray`, made when SciPy is first needed."""
    sparse = need("scipy.sparse", "sparse arrays")

    class CSRNDArray(sparse.csr_array):  # type: ignore[misc, name-defined]
        """A matrix of SciPy with MXNet's `asnumpy`, `asscipy` and `tostype`."""

        stype: ClassVar[str] = "csr"

        def asnumpy(self) -> np.ndarray:
            """Return the matrix as a dense NumPy array."""
            return self.toarray()

        def asscipy(self) -> Any:
            """Return the matrix as SciPy's own class."""
            return sparse.csr_matrix(self)

        def wait_to_read(self) -> None:
            """Return at once."""

        def tostype(self, stype: str) -> Any:
            """Return the matrix itself for "csr", and a dense array for "default"."""
            return self if stype == "csr" else as_nd(self.toarray())

    return CSRNDArray


def csr_of(value: Any) -> Any:
    """Return a sparse matrix of SciPy as a `CSRNDArray`."""
    kind = csr_class()
    return value if isinstance(value, kind) else kind(value)


def _index(key: Any) -> Any:
    """Return an index for NumPy: MXNet has numbers of entries in arrays of floats."""
    if isinstance(key, tuple):
        return tuple(map(_index, key))
    if isinstance(key, NDArray):
        return plain(key) if key.dtype == bool else plain(key).astype(np.int64)
    return key


def size_of(shape: Any) -> tuple[int, ...]:
    """Return a shape as a tuple; MXNet takes a number for an array of one axis."""
    return tuple(shape) if np.ndim(shape) else (int(shape),)
