"""`Kind`: element type, library and device that are requested of a view.

A request has a kind besides the order of axes.  This module parses kinds and carries arrays from
one to another; it never looks at axes.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

from recordio.extras import need

from ..core.backend import backend_of, is_sparse, is_tensor
from ..core.dtypes import parse_type


class Kind(NamedTuple):
    """Element type, device and library of an array."""

    #: Canonical name, such as "float32".
    dtype: str
    #: None for arrays in host memory that are not torch's.
    device: str | None
    #: Name of the backend: "numpy", "scipy sparse" or "torch".
    library: str


def kind_of(x: Any) -> Kind:
    """Return the kind of an array."""
    backend = backend_of(x)
    return Kind(backend.dtype(x), str(x.device) if is_tensor(x) else None, backend.name)


def _is_torch_dtype(spec: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(spec, torch.dtype)


def requested_kind(spec: Any, base: Kind) -> Kind:
    """Return the kind that a request means for a base array of kind `base`.

    None is the kind of the base.  A name of an element type (``"float32"``, ``"float"``,
    ``"torch.FloatTensor"``, ``numpy.float32``) keeps library and device.  A `torch.dtype` and
    everything that names a device (``"float16@cuda:1"``, ``"cuda"``, ``"cuda:0"``, ``"@cpu"``) mean
    a torch tensor; ``"cuda"`` alone is float32, ``"@cuda"`` keeps the element type.
    """
    if spec is None:
        return base
    if isinstance(spec, str):
        if spec.startswith("@"):
            spec = base.dtype + spec
        elif spec.startswith("cuda:"):
            spec = f"cuda@{spec}"
    dtype, device = parse_type(spec)
    if device is not None:
        return Kind(dtype, _device_name(device), "torch")
    if _is_torch_dtype(spec):
        return Kind(dtype, base.device or "cpu", "torch")
    return base._replace(dtype=dtype)


def _device_name(text: str) -> str:
    """Return torch's spelling of a device, so that equal devices compare equal."""
    torch = need("torch", f"a device such as {text!r}")
    try:
        device = torch.device(text)
    except RuntimeError as error:
        raise ValueError(f"{text!r} is not a device that torch knows") from error
    if device.type == "cuda" and device.index is None and torch.cuda.is_available():
        device = torch.device("cuda", torch.cuda.current_device())
    return str(device)


def moved(x: Any, kind: Kind) -> Any:
    """Return `x` in the library and on the device of `kind`, its element type untouched.

    Tensors and arrays on the host share memory where they can.  Sparse to another library, or the
    other way round, is a TypeError: that would be a decision about memory which the caller takes.
    """
    here = kind_of(x)
    if here.library == kind.library:
        return x if here.device == kind.device else _move(x, kind)
    if is_sparse(x) or kind.library not in ("numpy", "torch"):
        raise TypeError(
            f"{here.library} data are not made into {kind.library} data implicitly: "
            "call toarray() or scipy.sparse.csr_matrix() on them first"
        )
    if kind.library == "torch":
        import torch

        # Torch has no read-only tensors and no negative strides.
        shareable = x.flags.writeable and all(step >= 0 for step in x.strides)
        return _move(torch.from_numpy(x if shareable else x.copy()), kind)
    if here.dtype == "bfloat16":
        x = x.float()
    return x.detach().cpu().numpy()


def _move(x: Any, kind: Kind) -> Any:
    try:
        return x.to(kind.device)
    except (RuntimeError, AssertionError) as error:
        # Torch asserts that it was built with CUDA.
        raise ValueError(f"torch cannot reach the device {kind.device!r}: {error}") from error


def convert(x: Any, kind: Kind) -> Any:
    """Return `x` as that kind: itself if nothing is to be done, else a new array or a window."""
    x = moved(x, kind)
    return backend_of(x).cast(x, kind.dtype)
