"""Chainer's order samplers: the order in which an iterator goes through its data set, per sweep.

A sampler is called before every sweep and returns the whole order of it.  It sees no data and no
batches.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from recordio.keywords.checks import checked_state, integer

from ..core.order.epochs import ShuffledOrder


class OrderSampler:
    """Base class of order samplers; any callable of this form will do.

    A subclass that draws random numbers should also have ``state_dict()`` and
    ``load_state_dict(state)``: then a run that is resumed from the iterator's ``state_dict()``
    draws the same orders.  One whose orders follow from the number of the sweep may have
    ``set_epoch(epoch)``.

    Examples
    --------
    >>> class Reversed(OrderSampler):
    ...     def __call__(self, current_order, current_position):
    ...         return np.arange(len(current_order))[::-1]
    >>> Reversed()(np.arange(3), 0)
    array([2, 1, 0])
    """

    def __call__(self, current_order: np.ndarray, current_position: int) -> np.ndarray:
        """Return the order of the next sweep.

        Parameters
        ----------
        current_order : numpy.ndarray of int64, (n,)
            Order of the sweep that ends; before the first one ``arange(len(dataset))``.
        current_position : int
            Position in it at which its last batch begins; the examples from there on are in the
            same batch as the first ones of the new order.

        Returns
        -------
        numpy.ndarray of integers, (n,)
            The first order of all may have another length, which is then that of every sweep.
        """
        raise TypeError(f"{type(self).__name__} does not define __call__()")


class ShuffleOrderSampler(OrderSampler):
    """A random permutation for every sweep (``permutation(n)`` of a NumPy generator).

    Parameters
    ----------
    random_state : int, numpy.random.RandomState or numpy.random.Generator, optional
        Seed of a generator of its own, or the generator to use.  Without it NumPy's global
        generator is used, as in Chainer, until `load_state_dict` gives the sampler one of its own.

    Examples
    --------
    >>> ShuffleOrderSampler(0)(np.arange(5), 0)
    array([2, 0, 1, 3, 4])
    """

    def __init__(self, random_state: Any = None) -> None:
        if random_state is None or isinstance(
            random_state, (np.random.RandomState, np.random.Generator)
        ):
            self._random = random_state
        else:
            self._random = np.random.RandomState(
                integer("random_state", random_state, low=0, high=(1 << 32) - 1)
            )

    @property
    def uses_global_generator(self) -> bool:
        """True if orders come from NumPy's global generator."""
        return self._random is None

    def __call__(self, current_order: np.ndarray, current_position: int) -> np.ndarray:
        """Draw a permutation of ``len(current_order)`` positions."""
        random = np.random if self._random is None else self._random
        return random.permutation(len(current_order))

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the generator."""
        if isinstance(self._random, np.random.Generator):
            return {"kind": "Generator", "state": self._random.bit_generator.state}
        random = np.random if self._random is None else self._random
        return {"kind": "RandomState", "state": random.get_state(legacy=False)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on with a saved generator; NumPy's global one is left alone.

        Raises
        ------
        ValueError
            If that is no state of such a generator; then nothing has changed.
        """
        kind = "Generator" if isinstance(self._random, np.random.Generator) else "RandomState"
        saved = state.get("kind") if isinstance(state, Mapping) else state
        if saved != kind:
            raise ValueError(
                f"the saved state is that of a {saved!r}, this sampler draws from a {kind}"
            )
        if isinstance(self._random, np.random.Generator):
            bits = self._random.bit_generator
            bits.state = _checked_state(type(bits)(), state.get("state"))
            return
        checked = _checked_state(np.random.MT19937(), state.get("state"))
        if self._random is None:
            self._random = np.random.RandomState()
        self._random.set_state({"has_gauss": 0, "gauss": 0.0, **state["state"], **checked})


def _checked_state(trial: np.random.BitGenerator, state: Any) -> dict[str, Any]:
    """Return the state of a bit generator as NumPy gives it back, its positions checked."""
    try:
        trial.state = state
        inner = trial.state.get("state")
        positions = [(inner, "pos", 624), (trial.state, "buffer_pos", 4)]
        for holder, name, last in positions:
            if isinstance(holder, Mapping) and name in holder:
                integer(name, int(holder[name]), low=0, high=last)
        float(state.get("gauss", 0.0)), integer("has_gauss", state.get("has_gauss", 0), 0, 1)
    except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise ValueError(f"the saved state of the generator is damaged: {error}") from None
    return dict(trial.state)


class SeededOrderSampler(OrderSampler):
    """Permutations that follow from the seed and the number of the sweep alone.

    They are those of `iterators.core.order.ShuffledOrder`, so that an example is met in the same
    order as by the providers with the same seed.  The state is one integer.

    Parameters
    ----------
    seed : int

    Examples
    --------
    >>> first, second = SeededOrderSampler(1), SeededOrderSampler(1)
    >>> orders = [first(np.arange(4), 0) for _ in range(3)]
    >>> second.load_state_dict({"sweep": 2})
    >>> (second(np.arange(4), 0) == orders[2]).all()
    np.True_
    """

    def __init__(self, seed: int = 0) -> None:
        self.seed: int = integer("seed", seed, low=-(1 << 63), high=(1 << 64) - 1)
        self._sweep = 0

    def __call__(self, current_order: np.ndarray, current_position: int) -> np.ndarray:
        """Draw the permutation of the sweep whose turn it is."""
        size = len(current_order)
        positions = np.arange(size, dtype=np.int64)
        order = ShuffledOrder(size, self.seed).at(self._sweep, positions) if size else positions
        self._sweep += 1
        return order

    def set_epoch(self, epoch: int) -> None:
        """Set the number of the sweep of the next order."""
        self._sweep = integer("epoch", epoch, low=0)

    def state_dict(self) -> dict[str, int]:
        """Return the number of the next sweep."""
        return {"sweep": self._sweep}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on with a sweep."""
        self._sweep = integer("sweep", checked_state(state, "sweep")["sweep"], low=0)
