"""Names of `mx.nd`: `NDArray` and the functions that data code calls.

Everything else of `mx.nd` computes models: use NumPy or torch.
"""

from typing import Any

from ..context import Context as Context
from ..context import cpu as cpu
from ..context import gpu as gpu
from . import functions, image, random, sparse
from .array import NDArray
from .functions import *  # noqa: F403
from .sparse import csr_matrix

__all__ = [
    "NDArray",
    "csr_matrix",
    "image",
    "random",
    "sparse",
]
__all__ += functions.__all__


def __getattr__(name: str) -> Any:
    """Refuse a name of MXNet that is not here, and say what there is."""
    raise AttributeError(
        f"mx.nd.{name} is not in iterators.compat.mxnet, which has arrays for data and no "
        "operators of models: use NumPy (arrays here are NumPy arrays) or torch"
    )
