"""Samples of a data set as one batch, in threads: what torch's `DataLoader` does in processes."""

from __future__ import annotations

import contextlib
import ctypes
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.utils.data._utils.collate import collate, collate_tensor_fn, default_collate_fn_map

__all__ = ["can_pin", "collated", "default_collate", "pinned", "use_one_core"]


def default_collate(samples: list[Any]) -> Any:
    """Collate samples as torch does; NumPy stacks tensors in a third of the time."""
    functions = default_collate_fn_map
    if functions[torch.Tensor] is collate_tensor_fn:  # which users may replace
        functions = {**functions, torch.Tensor: _stacked}
    return collate(samples, collate_fn_map=functions)


def _stacked(tensors: list[torch.Tensor], **functions: Any) -> torch.Tensor:
    """Stack tensors; those that NumPy cannot stack, or that differ, by torch, with its errors."""
    kinds = {(type(tensor), tensor.dtype, tensor.shape) for tensor in tensors}
    # Other classes than Tensor say themselves what becomes of them, as torchvision's images do.
    if len(kinds) == 1 and (
        type(tensors[0]) is torch.Tensor or type(torch.stack(tensors[:1])) is torch.Tensor
    ):
        try:
            arrays = [tensor.numpy() for tensor in tensors]
            batch = np.empty((len(arrays), *arrays[0].shape), arrays[0].dtype)
            return torch.from_numpy(np.stack(arrays, out=batch))
        except (RuntimeError, TypeError):  # bfloat16, a gradient, a GPU
            pass
    return collate_tensor_fn(tensors, **functions)


def use_one_core() -> None:
    """Have torch use the calling thread alone, as a worker process of `DataLoader` does.

    `torch.set_num_threads` would change the threads of the user as well, OpenMP's own function does
    not.  Threads of OpenMP that wait for a core take most of the time of small tensors.
    """
    torch.get_num_threads()  # the first call sets the number of this thread
    # Without effect where there is no OpenMP, or each library has names of its own.
    with contextlib.suppress(AttributeError, TypeError):
        ctypes.CDLL(None).omp_set_num_threads(1)


def can_pin() -> bool:
    """Return whether memory can be page-locked; warn if not, as DataLoader does."""
    if not torch.cuda.is_available():
        warnings.warn(
            "pin_memory=True has no effect: there is no CUDA device", UserWarning, stacklevel=3
        )
    return torch.cuda.is_available()


def pinned(value: Any) -> Any:
    """Return a tensor of host memory in page-locked memory, and anything else as it is."""
    on_host = isinstance(value, torch.Tensor) and value.device.type == "cpu"
    return value.pin_memory() if on_host else value


def collated(
    parts: tuple[Any, ...], labelled: bool, collate_fn: Callable[[list[Any]], Any] | None
) -> Any:
    """Return images, views and labels as they are, or as `collate_fn` makes them."""
    if collate_fn is None:
        return parts if len(parts) > 1 else parts[0]
    if labelled:
        parts = (*parts[:-1], parts[-1].tolist() if parts[-1].ndim == 1 else parts[-1])
    if isinstance(parts[0], dict):  # of patches: a dict for each image
        images = zip(*parts[0].values(), strict=True)
        parts = ([dict(zip(parts[0], image, strict=True)) for image in images], *parts[1:])
    samples: list[Any] = list(zip(*parts, strict=True))
    return collate_fn(samples if len(parts) > 1 else [sample for (sample,) in samples])
