"""Names of `mx.test_utils` that data code uses: comparisons, contexts, and random arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import random as mx_random
from .context import Context, cpu
from .context import current_context as default_context

__all__ = [
    "DummyIter",
    "almost_equal",
    "assert_almost_equal",
    "default_context",
    "list_gpus",
    "rand_ndarray",
    "rand_shape_2d",
    "rand_shape_3d",
    "rand_shape_nd",
    "same",
    "set_default_context",
]


def same(a: Any, b: Any) -> bool:
    """Return whether two arrays are equal."""
    return bool(np.array_equal(np.asarray(a), np.asarray(b)))


def almost_equal(
    a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-20, equal_nan: bool = False
) -> bool:
    """Return whether two arrays are equal but for a tolerance."""
    return bool(np.allclose(np.asarray(a), np.asarray(b), rtol, atol, equal_nan))


def assert_almost_equal(
    a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-20, equal_nan: bool = False
) -> None:
    """Raise an AssertionError with the largest differences, unless two arrays are almost equal."""
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol, atol, equal_nan)


def set_default_context(ctx: Context) -> None:
    """Make a context the current one of this thread."""
    ctx.__enter__()


def list_gpus() -> list[int]:
    """Return no numbers: arrays here are in host memory."""
    return []


def rand_shape_nd(num_dim: int, dim: int = 10) -> tuple[int, ...]:
    """Draw a shape, each length from 1 to `dim`."""
    return tuple(mx_random.randint(1, dim + 1, num_dim).asnumpy().tolist())


def rand_shape_2d(dim0: int = 10, dim1: int = 10) -> tuple[int, ...]:
    """Draw a shape of two axes."""
    return rand_shape_nd(1, dim0) + rand_shape_nd(1, dim1)


def rand_shape_3d(dim0: int = 10, dim1: int = 10, dim2: int = 10) -> tuple[int, ...]:
    """Draw a shape of three axes."""
    return rand_shape_2d(dim0, dim1) + rand_shape_nd(1, dim2)


def rand_ndarray(shape: Any, stype: str = "default", dtype: Any = "float32") -> Any:
    """Draw an array evenly between -1 and 1."""
    return mx_random.uniform(-1, 1, shape, dtype, cpu()).tostype(stype)


class DummyIter:
    """The first batch of an iterator, again and again, to measure what follows it."""

    def __init__(self, real_iter: Any) -> None:
        self.real_iter = real_iter
        self.provide_data: Any = real_iter.provide_data
        self.provide_label: Any = real_iter.provide_label
        self.batch_size: Any = real_iter.batch_size
        self.the_batch: Any = next(iter(real_iter))

    def __iter__(self) -> DummyIter:
        return self

    def next(self) -> Any:
        """Return the batch."""
        return self.the_batch

    __next__ = next

    def reset(self) -> None:
        """Return at once."""


def __getattr__(name: str) -> Any:
    """Refuse what downloads sets, and what tests operators."""
    if name.startswith(("get_mnist", "get_cifar", "download")):
        raise NotImplementedError(
            f"mx.test_utils.{name} is not here: nothing is downloaded. Fetch the files, then use "
            "mx.io.MNISTIter, mx.gluon.data.vision.MNIST(root) or CIFAR10(root)"
        )
    raise AttributeError(f"mx.test_utils.{name} is not in iterators.compat.mxnet")
