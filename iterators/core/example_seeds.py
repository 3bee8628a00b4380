"""Seeds of single examples for functions that draw from the generators of the whole process.

Those are the generators of `random`, `numpy.random` and torch, which all threads share.
Only the thread of the loop may seed them, and leaves them as they were for the program around it.
"""

from __future__ import annotations

import pickle
import random
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np


class _AtHand(threading.local):
    seeds: Callable[[], Sequence[int]] | None = None


_at_hand = _AtHand()


def seed_generators(seed: int) -> None:
    """Begin all three generators anew, from 64 bits."""
    random.seed(seed)
    np.random.seed([seed & 0xFFFFFFFF, seed >> 32])
    torch: Any = sys.modules.get("torch")
    if torch is not None:
        torch.default_generator.manual_seed(seed)  # that of the CPU alone


def generator_states() -> tuple[Any, Any, Any]:
    """Return the states of all three generators; None for that of torch where it is not loaded."""
    torch: Any = sys.modules.get("torch")
    bits = np.random.get_bit_generator()  # type: ignore[attr-defined]
    return (
        random.getstate(),
        # The old form takes half of the time, and only the usual generator has one.
        np.random.get_state(isinstance(bits, np.random.MT19937)),  # type: ignore[call-overload]
        None if torch is None else torch.get_rng_state(),
    )


@contextmanager
def kept_generators() -> Iterator[None]:
    """Leave the generators as they were before."""
    states = generator_states()
    try:
        yield
    finally:
        set_states(states)


def set_states(states: tuple[Any, Any, Any]) -> None:
    """Have the generators go on from these states."""
    python, numpy, tensors = states
    random.setstate(python)
    np.random.set_state(numpy)
    if tensors is not None:
        sys.modules["torch"].set_rng_state(tensors)


def same_states(some: tuple[Any, Any, Any], others: tuple[Any, Any, Any]) -> bool:
    """Return whether nothing was drawn between two states of the generators."""
    (python, numpy, tensors), (python_later, numpy_later, tensors_later) = some, others
    return (
        python == python_later
        and pickle.dumps(numpy) == pickle.dumps(numpy_later)
        and (tensors is tensors_later or bool(tensors.equal(tensors_later)))
    )


def draws_globally(make: Callable[[], Any]) -> bool:
    """Return whether a function draws from these generators, which stay as they were.

    One that fails does so again where it is needed.
    """
    with kept_generators():
        before = generator_states()
        with suppress(Exception):
            make()
        return not same_states(before, generator_states())


@contextmanager
def seeding_batches(seeds: Callable[[], Sequence[int]]) -> Iterator[None]:
    """Say how to find the seeds of the images of the batch that this thread finishes."""
    before, _at_hand.seeds = _at_hand.seeds, seeds
    try:
        yield
    finally:
        _at_hand.seeds = before


def seeds_at_hand() -> Sequence[int] | None:
    """Return the seeds of the images of the batch at hand; None where nobody gives them."""
    return None if _at_hand.seeds is None else _at_hand.seeds()
