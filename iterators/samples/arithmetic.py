"""In-place operations and equality of the data of samples, alike for arrays, tensors and lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..core.backend import is_tensor

__all__ = ["computed", "equal"]


def computed(operation: Callable[[Any, Any], Any], old: Any, value: Any) -> Any:
    """``old operation value`` in the type of `old`, as an in-place operation of NumPy gives it."""
    if is_tensor(old):
        import torch

        value = torch.as_tensor(value, device=old.device)
        new = operation(old, value)
        if not torch.can_cast(new.dtype, old.dtype):
            raise TypeError(f"a result of type {new.dtype} cannot be stored as {old.dtype}")
    else:
        array = np.asarray(old)
        # Python numbers take the type of the array, as they do in NumPy's own operations.
        new = np.asarray(operation(array, value))
        if not np.can_cast(new.dtype, array.dtype, "same_kind"):
            raise TypeError(f"a result of type {new.dtype} cannot be stored as {array.dtype}")
        if isinstance(old, list) or not isinstance(old, (np.ndarray, np.generic)):
            new = new.astype(array.dtype)
            return new.tolist() if new.shape == array.shape else _no_fit(new.shape, array.shape)
    if tuple(new.shape) != tuple(np.shape(old)):
        _no_fit(new.shape, np.shape(old))
    return new


def _no_fit(shape: Any, region: Any) -> Any:
    raise ValueError(f"values of shape {tuple(shape)} do not fit a region of shape {tuple(region)}")


def equal(one: Any, other: Any) -> bool:
    """Return whether two values hold equal data of one shape, whatever their types."""
    if isinstance(one, Mapping) or isinstance(other, Mapping):
        return (
            isinstance(one, Mapping)
            and isinstance(other, Mapping)
            and one.keys() == other.keys()
            and all(equal(part, other[name]) for name, part in one.items())
        )
    arrays = [_as_array(one), _as_array(other)]
    if None not in [kind for kind, _ in arrays]:
        return bool(np.array_equal(arrays[0][1], arrays[1][1]))
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(equal, one, other))
    return bool(np.all(one == other))


def _as_array(value: Any) -> tuple[str | None, Any]:
    """Return a value as an array if it is one; lists whose elements differ in length are none."""
    if is_tensor(value):
        value = value.detach().cpu().numpy()
    if isinstance(value, (list, tuple)):
        try:
            value = np.asarray(value)
        except ValueError:
            return None, value
        if value.dtype.kind not in "biufcSU":
            return None, value
    return ("array", value) if isinstance(value, (np.ndarray, np.generic)) else (None, value)
