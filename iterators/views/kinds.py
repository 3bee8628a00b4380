"""What kind of array is asked for: element type, library and device.

A `Kind` is what a view is asked for besides the order of axes.  This module parses such requests
and carries arrays from one kind to another; it never looks at axes.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

from recordio.extras import need

from ..core.backend import backend_of, is_sparse, is_tensor
from ..core.dtypes import parse_type

__all__ = ["Kind", "convert", "kind_of", "place", "requested_kind"]


class Kind(NamedTuple):
    """Element type, device and library of an array.

    Parameters
    ----------
    dtype : str
        Canonical name, such as ``"float32"``.
    device : str or None
        None for arrays in host memory that are not torch's.
    library : str
        Name of the backend: "numpy", "scipy sparse" or "torch".
    """

    dtype: str
    device: str | None
    library: str


def kind_of(x: Any) -> Kind:
    """The kind of an array.

    Raises
    ------
    TypeError
        If `x` is not an array.

    Examples
    --------
    >>> import numpy as np
    >>> kind_of(np.zeros(3))
    Kind(dtype='float64', device=None, library='numpy')
    """
    backend = backend_of(x)
    return Kind(backend.dtype(x), str(x.device) if is_tensor(x) else None, backend.name)


def _is_torch_dtype(spec: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(spec, torch.dtype)


def requested_kind(spec: Any, base: Kind) -> Kind:
    """The kind that a request means for a base array of kind `base`.

    Parameters
    ----------
    spec : None, str, numpy.dtype, type or torch.dtype
        None for the kind of the base.  A name of an element type (``"float32"``, ``"float"``,
        ``"torch.FloatTensor"``, ``numpy.float32``) keeps library and device.  A `torch.dtype` and
        everything that names a device (``"float16@cuda:1"``, ``"cuda"``, ``"cuda:0"``,
        ``"@cpu"``) ask for a torch tensor; ``"cuda"`` alone is float32, ``"@cuda"`` keeps the
        element type.
    base : Kind
        Of the array that is converted.

    Raises
    ------
    ValueError
        If the text is not understood or torch does not know the device.
    TypeError
        If `spec` is an object that is not an element type.

    Examples
    --------
    >>> import numpy as np
    >>> base = kind_of(np.zeros(3))
    >>> requested_kind("float", base).dtype, requested_kind("float16@cpu", base).library
    ('float32', 'torch')
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
    """The way torch spells the device of its tensors, so that equal places compare equal."""
    torch = need("torch", f"a device such as {text!r}")
    try:
        device = torch.device(text)
    except RuntimeError as error:
        raise ValueError(f"{text!r} is not a device that torch knows") from error
    if device.type == "cuda" and device.index is None and torch.cuda.is_available():
        device = torch.device("cuda", torch.cuda.current_device())
    return str(device)


def place(x: Any, kind: Kind) -> Any:
    """`x` in the library and on the device of `kind`, its element type untouched.

    Tensors and arrays on the host share memory where they can.

    Raises
    ------
    TypeError
        If `x` is sparse and another library is asked for, or the other way round: that would be a
        decision about memory which the caller has to take.
    ValueError
        If torch cannot reach the device.
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
    """`x` as that kind: itself if nothing is to be done, else an array of its own or a window.

    Examples
    --------
    >>> import numpy as np
    >>> convert(np.arange(3), Kind("float32", None, "numpy"))
    array([0., 1., 2.], dtype=float32)
    """
    x = place(x, kind)
    return backend_of(x).cast(x, kind.dtype)
