"""Random numbers for functions that are called with an example and nothing else.

A function such as ``augment(image)`` cannot be handed a generator.  What calls it for one example
after the other says with `drawing_for` which example that is, and the function asks
`example_random`.  The numbers depend on the example alone, never on who drew before or on the
thread.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from .random import derive_key

__all__ = ["drawing_for", "example_normal", "example_random", "example_uniform"]


class _AtHand(threading.local):
    generator: random.Random | None = None


_at_hand = _AtHand()


@contextmanager
def drawing_for(key: int, *example: int) -> Iterator[None]:
    """Have `example_random` draw for one example in this thread.

    Parameters
    ----------
    key : int
        64 bits, from a seed.
    *example : int
        What tells the example from others: its number, epoch and occurrence.

    Examples
    --------
    >>> found = []
    >>> for example in (7, 8, 7):
    ...     with drawing_for(1, example):
    ...         found.append(example_random().random())
    >>> found[0] == found[2] != found[1]
    True
    """
    before = _at_hand.generator
    _at_hand.generator = random.Random(derive_key(key, *example))
    try:
        yield
    finally:
        _at_hand.generator = before


def example_random() -> random.Random:
    """The generator of the example at hand; elsewhere Python's own, which ``random.seed`` seeds.

    Returns
    -------
    random.Random
        Or the module `random`, which has the same functions.  To be used at once, not kept.

    Examples
    --------
    >>> example_random().uniform(2, 3) < 3
    True
    """
    return _at_hand.generator or random  # type: ignore[return-value]


def example_normal(deviation: float, count: int) -> np.ndarray:
    """Normal numbers around 0 for the example at hand; elsewhere from NumPy's global generator."""
    generator = _at_hand.generator
    if generator is None:
        return np.random.normal(0, deviation, count)  # what MXNet draws from
    return np.array([generator.gauss(0, deviation) for _ in range(count)])


def example_uniform(low: float, high: float, count: int) -> np.ndarray:
    """The same, evenly between two bounds."""
    generator = _at_hand.generator
    if generator is None:
        return np.random.uniform(low, high, count)
    return np.array([generator.uniform(low, high) for _ in range(count)])
