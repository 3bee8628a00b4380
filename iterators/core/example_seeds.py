"""Seeds of single examples for functions that draw from the generators of the whole process.

Those are the generators of `random`, `numpy.random` and torch, which all threads share.
Only the thread of the loop may seed them, and leaves them as they were for the program around it.
"""

from __future__ import annotations

import ctypes
import pickle
import random
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

#: The state of NumPy's usual generator: 624 words, and how many of them are used.
MT19937_BYTES = 625 * 4


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


def drawn_positions() -> tuple[Any, ...]:
    """Return what changes whenever a number is drawn, in a third of the time of the states."""
    bits: Any = np.random.get_bit_generator()  # type: ignore[attr-defined]
    torch: Any = sys.modules.get("torch")
    return (
        random.getstate(),
        ctypes.string_at(bits.ctypes.state_address, MT19937_BYTES)
        if type(bits) is np.random.MT19937
        else pickle.dumps(bits.state),  # one that the user has set
        None if torch is None else torch.get_rng_state().numpy().tobytes(),
    )


def go_back(positions: tuple[Any, ...]) -> None:
    """Undo what was drawn since, but for a normal deviate that NumPy keeps for the next call."""
    python, numpy, tensors = positions
    random.setstate(python)
    bits: Any = np.random.get_bit_generator()  # type: ignore[attr-defined]
    if type(bits) is np.random.MT19937:
        ctypes.memmove(bits.ctypes.state_address, numpy, MT19937_BYTES)
    else:
        bits.state = pickle.loads(numpy)
    if tensors is not None:
        torch: Any = sys.modules["torch"]
        torch.set_rng_state(torch.frombuffer(bytearray(tensors), dtype=torch.uint8))


def draws_globally(make: Callable[[], Any]) -> bool:
    """Return whether a function draws from these generators, which stay as they were.

    One that fails does so again where it is needed.
    """
    with kept_generators():
        before = drawn_positions()
        with suppress(Exception):
            make()
        return drawn_positions() != before


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
