"""Names of `mx.context`: contexts, the devices of arrays; here always the host."""

from __future__ import annotations

import threading
from typing import Any

from recordio.keywords.checks import choice, integer

from .base import MXNetError

__all__ = [
    "Context",
    "cpu",
    "cpu_pinned",
    "current_context",
    "gpu",
    "host",
    "num_gpus",
]

KINDS = ("cpu", "gpu", "cpu_pinned", "cpu_shared")


class _Current(threading.local):
    context: Context | None = None


_current = _Current()


class Context:
    """A kind of memory and a number, as scripts of MXNet pass them around.

    Parameters
    ----------
    device_type : {"cpu", "gpu", "cpu_pinned", "cpu_shared"} or Context
    device_id : int

    Examples
    --------
    >>> cpu(), gpu(1), cpu() == Context("cpu"), num_gpus()
    (cpu(0), gpu(1), True, 0)
    >>> with gpu(0):
    ...     current_context()
    gpu(0)
    """

    def __init__(self, device_type: Any, device_id: int = 0) -> None:
        if isinstance(device_type, Context):
            device_type, device_id = device_type.device_type, device_type.device_id
        self.device_type: str = choice("device_type", device_type, KINDS)
        self.device_id: int = integer("device_id", device_id, low=0)
        self._before: list[Context | None] = []

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Context) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash((self.device_type, self.device_id))

    def __repr__(self) -> str:
        return f"{self.device_type}({self.device_id})"

    def __enter__(self) -> Context:
        self._before.append(_current.context)
        _current.context = self
        return self

    def __exit__(self, *exception: object) -> None:
        _current.context = self._before.pop()

    def empty_cache(self) -> None:
        """Do nothing: memory of batches is freed when it is no longer referenced."""


def cpu(device_id: int = 0) -> Context:
    """Return the context of host memory."""
    return Context("cpu", device_id)


def cpu_pinned(device_id: int = 0) -> Context:
    """Return the context that MXNet has for page-locked memory; here it is host memory, too."""
    return Context("cpu_pinned", device_id)


def gpu(device_id: int = 0) -> Context:
    """Return the context of a GPU, which no array of this package can have."""
    return Context("gpu", device_id)


def current_context() -> Context:
    """Return the context of the innermost ``with``, else that of host memory."""
    return _current.context or cpu()


def num_gpus() -> int:
    """Return 0: there is none for arrays of this package, as in a build of MXNet without CUDA."""
    return 0


def host(ctx: Any) -> None:
    """Refuse a context that is no host memory; None stands for the current one."""
    context = current_context() if ctx is None else ctx
    if context.device_type == "gpu":
        raise MXNetError(
            f"arrays of iterators.compat.mxnet are NumPy arrays in host memory, not on {context}: "
            f"pass device='cuda:{context.device_id}' to an iterator of this package, or "
            f"torch.from_numpy(array.asnumpy()).to('cuda:{context.device_id}')"
        )
