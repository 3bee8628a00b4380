"""Random numbers for functions that are called with an example and nothing else.

A function such as ``augment(image)`` cannot be handed a generator.  Its caller names the example
with `drawing_for`, and the function draws from `example_random`.  The numbers depend on the example
alone, never on earlier draws or on the thread.

In the same way loops name the epoch with `in_epoch` to data sets inside of any others, whose
images differ from epoch to epoch.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from .random import derive_key


class _AtHand(threading.local):
    generator: random.Random | None = None
    epoch: int | None = None


_at_hand = _AtHand()


@contextmanager
def drawing_for(key: int, *example: int) -> Iterator[None]:
    """Have `example_random` draw for one example in this thread.

    `key` has 64 bits, from a seed; `example` tells the example from others by number, epoch and
    occurrence.
    """
    before = _at_hand.generator
    _at_hand.generator = random.Random(derive_key(key, *example))
    try:
        yield
    finally:
        _at_hand.generator = before


def in_epoch(epoch: int | None, make: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function while data sets make the examples of an epoch in this thread."""
    before, _at_hand.epoch = _at_hand.epoch, epoch
    try:
        return make(*arguments)
    finally:
        _at_hand.epoch = before


def epoch_at_hand() -> int | None:
    """Return the epoch whose examples are made in this thread; None where nobody counts them."""
    return _at_hand.epoch


def example_random() -> random.Random:
    """Return the generator of the current example; elsewhere Python's, seeded by ``random.seed``.

    Returns
    -------
    random.Random
        Or the module `random`, which has the same functions.  Use it at once, and do not keep it.

    Examples
    --------
    >>> example_random().uniform(2, 3) < 3
    True
    """
    return _at_hand.generator or random  # type: ignore[return-value]


def example_normal(deviation: float, count: int) -> np.ndarray:
    """Draw around 0 for the example at hand; elsewhere from NumPy's global generator."""
    generator = _at_hand.generator
    if generator is None:
        return np.random.normal(0, deviation, count)  # what MXNet draws from
    return np.array([generator.gauss(0, deviation) for _ in range(count)])


def example_uniform(low: float, high: float, count: int) -> np.ndarray:
    """Draw evenly between two bounds for the example at hand; elsewhere as `example_normal`."""
    generator = _at_hand.generator
    if generator is None:
        return np.random.uniform(low, high, count)
    return np.array([generator.uniform(low, high) for _ in range(count)])
