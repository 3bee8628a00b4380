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
from contextlib import contextmanager
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


def _states() -> tuple[Any, Any, Any]:
    torch: Any = sys.modules.get("torch")
    return (
        random.getstate(),
        np.random.get_state(legacy=False),
        None if torch is None else torch.get_rng_state(),
    )


@contextmanager
def kept_generators() -> Iterator[None]:
    """Leave the generators as they were before."""
    python, numpy, tensors = _states()
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)
        if tensors is not None:
            sys.modules["torch"].set_rng_state(tensors)


def draws_globally(make: Callable[[], Any]) -> bool:
    """Return whether a function draws from these generators, which stay as they were.

    One that fails is of no account here: it fails again where it is needed.
    """
    with kept_generators():
        before = pickle.dumps(_states())
        try:
            make()
        except Exception:
            return False
        return pickle.dumps(_states()) != before


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
