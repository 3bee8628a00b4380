"""Names of `mx.nd.sparse`: matrices in compressed rows, which are SciPy's."""

from __future__ import annotations

from typing import Any

from ..base import MXNetError
from .array import csr_class, csr_of

__all__ = ["csr_matrix", "csr_of"]


def csr_matrix(arg1: Any, shape: Any = None, ctx: Any = None, dtype: Any = None) -> Any:
    """Make a matrix from a dense one, or from ``(data, indices, indptr)``, as MXNet does."""
    if ctx is not None and ctx.device_type == "gpu":
        raise MXNetError("sparse arrays lie in host memory: drop ctx")
    return csr_class()(arg1, shape=shape, dtype=dtype)


def __getattr__(name: str) -> Any:
    """Return `CSRNDArray`, which needs SciPy."""
    if name == "CSRNDArray":
        return csr_class()
    raise AttributeError(f"mx.nd.sparse.{name} is not in iterators.compat.mxnet: use scipy.sparse")
