"""Names of `mx.random`: one seed, and arrays of random numbers that follow from it.

The transforms of `mx.gluon.data.vision` draw from here; augmenters of `mx.image` draw from Python's
generator, as in MXNet.  For an example of a `DataLoader` both depend on that seed, the epoch and
the position of the example alone.
"""

from __future__ import annotations

import random as python_random
from typing import Any

import numpy as np

from ...core.dtypes import numpy_dtype
from ...core.example_random import example_random
from .context import host
from .ndarray.array import NDArray, as_nd, size_of

__all__ = ["normal", "randint", "randn", "seed", "shuffle", "uniform"]


class _Generators:
    """The generators behind one seed; MXNet begins with 0 as well."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.numpy = np.random.default_rng(number)
        self.python = python_random.Random(number)


_state = _Generators(0)


def seed(seed_state: int, ctx: Any = "all") -> None:
    """Begin anew with a seed; contexts have no generators of their own."""
    global _state
    _state = _Generators(int(seed_state))


def seed_number() -> int:
    """Return the seed that was last given."""
    return _state.number


def drawn(low: float, high: float) -> float:
    """Draw a number between two, for the example at hand or from the generator of the seed."""
    return _at_hand().uniform(low, high)


def chance(p: float) -> bool:
    """Draw whether something with a probability happens."""
    return _at_hand().random() < p


def gaussian(deviation: float, count: int) -> np.ndarray:
    """Draw around 0."""
    generator = _at_hand()
    return np.array([generator.gauss(0, deviation) for _ in range(count)])


def shuffled(things: Any) -> list[Any]:
    """Return things in random order."""
    return _at_hand().sample(list(things), len(things))


def _at_hand() -> Any:
    generator = example_random()
    return _state.python if generator is python_random else generator  # type: ignore[comparison-overlap]


def uniform(
    low: Any = 0, high: Any = 1, shape: Any = 1, dtype: Any = "float32", ctx: Any = None
) -> NDArray:
    """Draw evenly between two bounds."""
    host(ctx)
    return _typed(_state.numpy.uniform(low, high, size_of(shape)), dtype)


def normal(
    loc: Any = 0, scale: Any = 1, shape: Any = 1, dtype: Any = "float32", ctx: Any = None
) -> NDArray:
    """Draw from a normal distribution."""
    host(ctx)
    return _typed(_state.numpy.normal(loc, scale, size_of(shape)), dtype)


def randn(*shape: int, **keywords: Any) -> NDArray:
    """Draw from a normal distribution, the shape being given as arguments."""
    return normal(shape=shape or 1, **keywords)


def randint(low: int, high: int, shape: Any = 1, dtype: Any = "int32", ctx: Any = None) -> NDArray:
    """Draw whole numbers from `low` to before `high`."""
    host(ctx)
    return _typed(_state.numpy.integers(low, high, size_of(shape)), dtype)


def shuffle(data: Any) -> NDArray:
    """Return a copy whose first axis is in random order."""
    return as_nd(_state.numpy.permutation(np.asarray(data)))


def _typed(values: np.ndarray, dtype: Any) -> NDArray:
    return as_nd(values.astype(numpy_dtype(dtype)))
