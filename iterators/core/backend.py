"""The few array operations that conversions need, once for each array library.

NumPy arrays, scipy sparse matrices and torch tensors; scipy and torch are used only where they are
imported already, as they are wherever one of their arrays exists.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from recordio.extras import need

from .dtypes import dtype_name, is_float, is_number, numpy_dtype, plain_bits, torch_dtype
from .transpose import copy_transposed


def is_tensor(x: Any) -> bool:
    """Return whether `x` is a torch tensor; never imports torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def is_sparse(x: Any) -> bool:
    """Return whether `x` is a scipy sparse matrix or array; never imports scipy."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and sparse.issparse(x)


def is_stored_sparse(x: Any) -> bool:
    """Return whether an array of any library stores only its non-zero elements."""
    return is_sparse(x) or (is_tensor(x) and not _is_strided(x))


def backend_of(x: Any) -> Backend:
    """Return the operations for the library that `x` belongs to; a TypeError for other objects."""
    if isinstance(x, np.ndarray):
        return NUMPY
    if is_tensor(x):
        return TORCH
    if is_sparse(x):
        return SPARSE
    raise TypeError(
        f"expected a numpy array, a scipy sparse matrix or a torch tensor, not {type(x).__name__}"
    )


def merges_in_place(
    shape: Sequence[int], strides: Sequence[int], groups: Sequence[Sequence[int]]
) -> bool:
    """Return whether groups of neighbouring axes can become one axis each without a copy."""
    if 0 in shape:
        return True
    for group in groups:
        long = [axis for axis in group if shape[axis] > 1]
        for outer, inner in itertools.pairwise(long):
            if strides[outer] != strides[inner] * shape[inner]:
                return False
    return True


class Backend:
    """Operations of one library; every method gives a view where the library can."""

    name: str

    def dtype(self, x: Any) -> str:
        """Return the name of the element type."""
        return dtype_name(x.dtype)

    def strides(self, x: Any) -> Sequence[int]:
        """Return the distance of neighbours along each axis, in any unit."""
        raise LookupError(f"{self.name} arrays have no strides")

    def permute(self, x: Any, order: Sequence[int]) -> Any:
        """Put axes in another order."""
        return x.transpose(tuple(order))

    def reshape(self, x: Any, shape: Sequence[int]) -> Any:
        """Change the shape, with the same elements in C order."""
        return x.reshape(tuple(shape))

    def take(self, x: Any, axis: int, index: int) -> Any:
        """Take one position of an axis, which disappears."""
        return x[(slice(None),) * axis + (index,)]

    def narrow(self, x: Any, axis: int, start: int, stop: int) -> Any:
        """Return positions ``[start, stop)`` of an axis."""
        return x[(slice(None),) * axis + (slice(start, stop),)]

    def pad(self, x: Any, axis: int, index: int, size: int) -> Any:
        """Add an axis that is zero except at `index`: the opposite of `take`."""
        shape = list(x.shape)
        shape.insert(axis, 1)
        middle = self.reshape(x, shape)
        shape[axis] = index
        before = self.zeros(shape, like=x)
        shape[axis] = size - index - 1
        return self.concatenate([before, middle, self.zeros(shape, like=x)], axis)

    def cast(self, x: Any, dtype: Any) -> Any:
        """Change the element type; `x` itself when it has that type already."""
        return x if dtype is None else x.astype(numpy_dtype(dtype_name(dtype)), copy=False)

    def contiguous(self, x: Any, dtype: Any = None) -> Any:
        """Return a C-contiguous array of the type: `x` itself or one copy."""
        raise LookupError(f"{self.name} arrays have no memory order")

    def zeros(self, shape: Sequence[int], dtype: Any = None, like: Any = None) -> Any:
        """Return zeros of a type, by default that of `like`, on its device."""
        raise LookupError(f"{self.name} has no zeros")

    def concatenate(self, parts: Sequence[Any], axis: int) -> Any:
        """Join the parts along an axis in a new array."""
        raise LookupError(f"{self.name} arrays cannot be joined")

    def mark(self, out: Any, labels: Any) -> None:
        """Set ``out[..., label]`` to one for every label; `out` has one axis more."""
        raise LookupError(f"{self.name} arrays cannot be marked")

    def dense(self, x: Any) -> Any:
        """Return `x` with every element stored; `x` itself when it is like that."""
        return x

    def sparse(self, x: Any) -> Any:
        """Return `x` in compressed rows; `x` itself when it is sparse already."""
        return x


class NumpyBackend(Backend):
    """Operations on `numpy.ndarray`."""

    name = "numpy"

    def strides(self, x: np.ndarray) -> Sequence[int]:
        """Return the strides in bytes."""
        return x.strides

    def contiguous(self, x: np.ndarray, dtype: Any = None) -> np.ndarray:
        """Return a C-contiguous array of the type: `x` itself or one copy."""
        target = x.dtype if dtype is None else numpy_dtype(dtype_name(dtype))
        if x.flags.c_contiguous and x.dtype == target:
            return x
        result = np.empty(x.shape, target)
        # The kernel moves bytes, which must mean the same and hold no references.
        same = x.dtype == target and is_number(target)
        if not same or not copy_transposed(plain_bits(result), plain_bits(x)):
            result[...] = x
        return result

    def zeros(self, shape: Sequence[int], dtype: Any = None, like: Any = None) -> np.ndarray:
        """Return zeros of a type, by default that of `like`."""
        return np.zeros(
            tuple(shape), like.dtype if dtype is None else numpy_dtype(dtype_name(dtype))
        )

    def pad(self, x: np.ndarray, axis: int, index: int, size: int) -> np.ndarray:
        """Add an axis that is zero except at `index`: the opposite of `take`."""
        result = self.zeros([*x.shape[:axis], size, *x.shape[axis:]], like=x)
        self.take(result, axis, index)[...] = x
        return result

    def concatenate(self, parts: Sequence[np.ndarray], axis: int) -> np.ndarray:
        """Join the parts along an axis in a new array."""
        return np.concatenate(parts, axis)

    def mark(self, out: np.ndarray, labels: np.ndarray) -> None:
        """Set ``out[..., label]`` to one for every label."""
        np.put_along_axis(out, labels[..., None], 1, axis=-1)

    def sparse(self, x: np.ndarray) -> Any:
        """Return `x` as a scipy CSR matrix; floats of 16 bits, which scipy has not, as float32."""
        sparse = need("scipy.sparse", "sparse batches")
        short = is_float(x.dtype) and x.itemsize < 4
        return sparse.csr_matrix(x.astype(np.float32) if short else x)


class SparseBackend(Backend):
    """Operations on scipy sparse matrices and arrays, which have two axes."""

    name = "scipy sparse"

    def cast(self, x: Any, dtype: Any) -> Any:
        """Return another element type; `x` itself when it has that type already."""
        return x if dtype is None or self.dtype(x) == dtype_name(dtype) else x.astype(dtype)

    def permute(self, x: Any, order: Sequence[int]) -> Any:
        """Return the matrix or its transpose, sharing the values."""
        return x if tuple(order) == (0, 1) else x.T

    def narrow(self, x: Any, axis: int, start: int, stop: int) -> Any:
        """Return rows or columns ``[start, stop)``, in a format that can be sliced."""
        return (x.tocsr()[start:stop]) if axis == 0 else (x.tocsr()[:, start:stop])

    def concatenate(self, parts: Sequence[Any], axis: int) -> Any:
        """Put matrices side by side or one below another, as CSR."""
        import scipy.sparse

        join = scipy.sparse.hstack if axis == 1 else scipy.sparse.vstack
        return join(parts, format="csr")

    def like(self, x: Any, other: Any) -> Any:
        """Return a CSR matrix as scipy's array or matrix class, whichever `other` is."""
        import scipy.sparse

        is_array = isinstance(other, scipy.sparse.sparray)
        return scipy.sparse.csr_array(x) if is_array else x

    def dense(self, x: Any) -> np.ndarray:
        """Return `x` as a NumPy array."""
        return x.toarray()


class TorchBackend(Backend):
    """Operations on `torch.Tensor`, all but `mark` differentiable."""

    name = "torch"

    def strides(self, x: Any) -> Sequence[int]:
        """Return the strides in elements."""
        return x.stride()

    def permute(self, x: Any, order: Sequence[int]) -> Any:
        """Put axes in another order, as a view."""
        return x.permute(tuple(order))

    def narrow(self, x: Any, axis: int, start: int, stop: int) -> Any:
        """Return positions ``[start, stop)`` of an axis, as a view; of sparse tensors a copy."""
        if _is_strided(x):
            return x.narrow(axis, start, stop - start)
        import torch

        if x.layout == torch.sparse_coo:
            return x.narrow_copy(axis, start, stop - start)
        if axis != 0 or x.layout != torch.sparse_csr:
            raise TypeError("columns of a compressed sparse tensor: call to_dense() first")
        rows = x.crow_indices()[start : stop + 1]
        kept = slice(int(rows[0]), int(rows[-1]))
        return torch.sparse_csr_tensor(
            rows - rows[0],
            x.col_indices()[kept],
            x.values()[kept],
            size=(stop - start, *x.shape[1:]),
            check_invariants=False,
        )

    def cast(self, x: Any, dtype: Any) -> Any:
        """Change the element type; `x` itself when it has that type already."""
        return x if dtype is None else x.to(torch_dtype(dtype))

    def contiguous(self, x: Any, dtype: Any = None) -> Any:
        """Return a C-contiguous tensor of the type: `x` itself or one copy."""
        import torch

        target = x.dtype if dtype is None else torch_dtype(dtype)
        if target == x.dtype:
            return x.contiguous()
        return x.to(target, memory_format=torch.contiguous_format)

    def zeros(self, shape: Sequence[int], dtype: Any = None, like: Any = None) -> Any:
        """Return zeros of a type, by default that of `like`, on its device."""
        import torch

        target = torch_dtype(dtype) if dtype is not None else like.dtype
        device = None if like is None else like.device
        return torch.zeros(tuple(shape), dtype=target, device=device)

    def concatenate(self, parts: Sequence[Any], axis: int) -> Any:
        """Join the parts along an axis in a new tensor."""
        import torch

        return torch.cat(list(parts), axis)

    def mark(self, out: Any, labels: Any) -> None:
        """Set ``out[..., label]`` to one for every label."""
        out.scatter_(-1, labels.long().unsqueeze(-1), 1)

    def dense(self, x: Any) -> Any:
        """Return `x` as a strided tensor."""
        return x if _is_strided(x) else x.to_dense()

    def sparse(self, x: Any) -> Any:
        """Return `x` as a sparse CSR tensor."""
        return x.to_sparse_csr() if _is_strided(x) else x


def _is_strided(tensor: Any) -> bool:
    import torch

    return tensor.layout == torch.strided


NUMPY = NumpyBackend()
SPARSE = SparseBackend()
TORCH = TorchBackend()
