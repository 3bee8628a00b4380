"""Chainer's protocol of iterators over a data set, and states to resume from.

`Iterator` is the protocol.  `DatasetIterator` keeps the position of a run, plans the batches ahead
of it and saves and loads it; its subclasses define how the examples of a planned batch are fetched:
`SerialIterator` in the caller's thread, those of `PrefetchingIterator` in the background.
"""

from __future__ import annotations

import contextlib
import copy
import itertools
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Self

import numpy as np

from recordio.keywords.checks import boolean, checked_state, integer, real

from ..core.example_random import in_epoch
from ..core.fork_safe_lock import ForkSafeLock
from ..core.indexing import by_position
from ..core.order.cutting import Position
from .sweep_orders import ShuffleOrderSampler
from .sweeps import NO_DETAIL, Sweep, advance, checked_order, first_sweep


class Iterator:
    """Base class of iterators over batches; a batch is a list of examples.

    A subclass needs ``__next__``, and those of the other attributes that its users read:
    `batch_size`, `epoch` (completed sweeps), `epoch_detail` (the running one in part),
    `previous_epoch_detail` (that before the latest batch, None before the first) and `is_new_epoch`
    (whether the latest batch completed a sweep).

    Examples
    --------
    >>> class Countdown(Iterator):
    ...     left = 2
    ...     def __next__(self):
    ...         if not self.left:
    ...             raise StopIteration
    ...         self.left -= 1
    ...         return [self.left]
    >>> with Countdown() as batches:
    ...     list(batches)
    [[1], [0]]
    """

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> list[Any]:
        raise TypeError(f"{type(self).__name__} does not define __next__()")

    def next(self) -> list[Any]:
        """Return the next batch: the name of ``__next__`` in Python 2, kept for old scripts."""
        return self.__next__()

    def finalize(self) -> None:
        """Release threads, processes and memory.  May be called repeatedly."""

    def close(self) -> None:
        """Close the iterator: another name of `finalize`."""
        self.finalize()

    def serialize(self, serializer: Any) -> None:
        """Save or load what iteration changes, see `iterators.loops.serializers`."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.finalize()

    def __del__(self) -> None:
        self.finalize()


@dataclass(eq=False)
class Planned:
    """A batch that is to come: its indices, and the position behind it.

    `epochs` has the epoch of each index.  `drawn_from` is the state of NumPy's global generator
    before the order sampler drew from it for this batch, None if it did not.  `parts` belongs to
    the iterators that fetch in the background: the work under way for the batch, or None.
    """

    indices: list[int]
    after: Sweep
    epochs: list[int]
    drawn_from: Any = None
    parts: list[Any] | None = None


class DatasetIterator(Iterator):
    """Base class of the iterators over a data set: order of the examples, and states.

    `SerialIterator` describes the parameters.  An iterator has one consumer: `next` is not for
    several threads at once.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int,
        repeat: bool = True,
        shuffle: bool | None = None,
        order_sampler: Any = None,
    ) -> None:
        self.dataset = by_position(dataset)
        self.batch_size: int = integer("batch_size", batch_size, low=1)
        self.repeat: bool = boolean("repeat", repeat)
        if shuffle is not None and order_sampler is not None:
            raise ValueError("give shuffle or order_sampler, not both: the sampler is the order")
        if order_sampler is None and (shuffle is None or boolean("shuffle", shuffle)):
            order_sampler = ShuffleOrderSampler()
        if order_sampler is not None and not callable(order_sampler):
            raise TypeError(f"order_sampler={order_sampler!r} cannot be called")
        self.order_sampler = order_sampler
        self._access = ForkSafeLock()
        self._planned: deque[Planned] = deque()
        self._sweep = first_sweep(self.dataset, order_sampler)

    # -- where it is ------------------------------------------------------------------------------

    @property
    def epoch(self) -> int:
        """Completed sweeps."""
        return self._sweep.position.epoch

    @property
    def current_position(self) -> int:
        """Examples taken in the running sweep."""
        return self._sweep.position.done

    @property
    def is_new_epoch(self) -> bool:
        """True if the latest batch completed a sweep."""
        return self._sweep.is_new_epoch

    @property
    def epoch_detail(self) -> float:
        """Completed sweeps, the running one in part."""
        return self._sweep.detail(len(self.dataset))

    @property
    def previous_epoch_detail(self) -> float | None:
        """`epoch_detail` before the latest batch; None before the first."""
        detail = self._sweep.previous_epoch_detail
        return None if detail < 0 else detail

    # -- planning ---------------------------------------------------------------------------------

    def _plan(self) -> Planned | None:
        """Plan one more batch, behind those that are planned; None at the end."""
        last = self._planned[-1].after if self._planned else self._sweep
        length, before = len(self.dataset), None
        (epoch, done), size = last.position, last.size(length)
        # Only where a sweep ends, because NumPy takes its time for this.
        if done + self.batch_size >= size and self._draws_globally:
            before = self.order_sampler.state_dict()
        step = advance(last, length, self.batch_size, self.repeat, self.order_sampler)
        if step is None:
            return None
        drawn = step[1].sampler_state is not last.sampler_state
        count = len(step[0])
        if done + count <= size:
            epochs = [epoch] * count
        else:
            epochs = [epoch + (done + slot) // size for slot in range(count)]
        self._planned.append(Planned(*step, epochs, drawn_from=before if drawn else None))
        return self._planned[-1]

    @property
    def _draws_globally(self) -> bool:
        return getattr(self.order_sampler, "uses_global_generator", False)

    def _sampler_state(self) -> Any:
        """Return the state of the order sampler as if nothing were planned; None if it has none."""
        if not self._draws_globally:
            return self._sweep.sampler_state
        for planned in self._planned:
            if planned.drawn_from is not None:
                return planned.drawn_from
        return self.order_sampler.state_dict()  # others draw from it too: it has moved

    def _stop(self) -> StopIteration:
        detail = self._sweep.detail(len(self.dataset))
        self._sweep = self._sweep._replace(previous_epoch_detail=detail)
        return StopIteration()

    def _delivered(self) -> None:
        """Move behind the batch that was planned first."""
        self._sweep = self._planned.popleft().after

    def _abandon(self) -> None:
        """Stop what is under way for planned batches; they have to be started again."""

    def _forget_plans(self) -> None:
        """Drop what is planned; the order sampler goes back to where it was on delivery."""
        self._abandon()
        drawn = any(
            planned.after.sampler_state is not self._sweep.sampler_state
            for planned in self._planned
        )
        self._planned.clear()
        if drawn and not self._draws_globally:
            self.order_sampler.load_state_dict(self._sweep.sampler_state)

    def reset(self) -> None:
        """Start again at epoch 0, in a fresh order."""
        with self._access.lock:
            self._forget_plans()
            self._sweep = first_sweep(self.dataset, self.order_sampler)

    def set_epoch(self, epoch: int) -> None:
        """Start again with that sweep; an iterator that does not repeat goes through it alone.

        Raises
        ------
        TypeError
            If nobody knows its order: the order sampler draws one after another, and has no
            ``set_epoch(epoch)`` as `SeededOrderSampler` has.
        """
        epoch, sampler = integer("epoch", epoch, low=0), self.order_sampler
        if sampler is not None and not hasattr(sampler, "set_epoch"):
            raise TypeError(
                f"{type(sampler).__name__} draws its orders one after another: use "
                "SeededOrderSampler to begin with any sweep"
            )
        with self._access.lock:
            self._forget_plans()
            if sampler is not None:
                sampler.set_epoch(epoch)
            self._sweep = first_sweep(self.dataset, sampler, epoch if self.repeat else 0)

    # -- states -----------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return all that is needed to go on exactly here, in this or another kind of iterator.

        Returns
        -------
        dict
            `current_position`, `epoch`, `is_new_epoch`, `previous_epoch_detail` (-1 for none), the
            `order` of the running sweep if there is one, and as `rng` the state of the order
            sampler if it has one.  Only delivered batches count.
        """
        with self._access.lock:
            sweep, sampler = self._sweep, copy.deepcopy(self._sampler_state())
        state = sweep.saved()
        if sweep.order is not None:
            state["order"] = sweep.order.copy()
        if sampler is not None:
            state["rng"] = sampler
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state.

        The order may be called `order` or `_order`; without one the present order is kept.  An
        iterator that has no order takes none, as in Chainer.

        Raises
        ------
        ValueError
            If the state is incomplete or belongs to a data set of another size.
        """
        checked_state(state, "current_position", "epoch")
        order = self._sweep.order
        saved = state["order"] if "order" in state else state.get("_order")
        if order is not None and saved is not None:
            if len(saved) != len(order):
                raise ValueError(
                    f"the state was saved with an order of {len(saved)} examples, here are "
                    f"{len(order)}"
                )
            order = checked_order(saved)
            length = len(self.dataset)
            if len(order) and not -length <= order.min() <= order.max() < length:
                raise ValueError(f"the saved order has positions outside the {length} examples")
        rng = state.get("rng")
        if rng is not None and self.order_sampler is not None:
            if not hasattr(self.order_sampler, "load_state_dict"):
                raise ValueError(
                    f"the state holds that of an order sampler, and "
                    f"{type(self.order_sampler).__name__} has no load_state_dict() to take it"
                )
        else:
            rng = None
        sweep = self._checked(state, order)
        with self._access.lock:
            self._forget_plans()
            if rng is not None:
                self.order_sampler.load_state_dict(rng)
                sweep = sweep._replace(sampler_state=copy.deepcopy(rng))
            self._sweep = sweep

    def _checked(self, state: Mapping[str, Any], order: np.ndarray | None) -> Sweep:
        """Return the position in a state, checked, with the present order sampler."""
        # numpy.savez makes arrays without axes of numbers.
        state = {
            name: value.item() if isinstance(value, np.ndarray) and not value.ndim else value
            for name, value in state.items()
        }
        length = len(self.dataset)
        size = length if order is None else len(order)
        at = Position.saved(state, done="current_position", high=max(size - 1, 0))
        sweep = Sweep(at, boolean("is_new_epoch", state.get("is_new_epoch", False)), order=order)
        detail = state.get("previous_epoch_detail")
        if detail is None:  # saved by a program that does not save it
            detail = NO_DETAIL
            if sweep.detail(length) > 0:
                detail = max(at.epoch + (at.done - self.batch_size) / size, 0.0)
        return sweep._replace(
            previous_epoch_detail=real("previous_epoch_detail", detail, low=NO_DETAIL),
            sampler_state=self._sweep.sampler_state,
        )

    def serialize(self, serializer: Any) -> None:
        """Save or load the position and the order, under Chainer's keys.

        The state of the order sampler's generator is not among them: `state_dict` has it.
        """
        old = self._sweep
        saved = old.saved()
        names = ("current_position", "epoch", "is_new_epoch")
        state = {name: serializer(name, saved[name]) for name in names}
        order = None
        if old.order is not None:
            order = old.order.copy()
            try:
                order = serializer("order", order)
            except KeyError:
                order = serializer("_order", order)
        with contextlib.suppress(KeyError):
            name = "previous_epoch_detail"
            state[name] = serializer(name, saved[name])
        if state == saved and (old.order is None or np.array_equal(np.asarray(order), old.order)):
            return  # saved, or nothing to change: what is under way stays
        order = None if order is None else checked_order(order)
        sweep = self._checked(state, order)
        with self._access.lock:
            self._forget_plans()
            self._sweep = sweep

    # -- copies -----------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        """Return the arguments of the constructor and the position; nothing that runs."""
        state = self.__dict__.copy()
        state["_access"], state["_planned"] = ForkSafeLock(), deque()
        at = self._sampler_state()
        if at is not None:
            # A sampler of its own, which has drawn what was delivered and not what is planned.
            state["order_sampler"] = copy.deepcopy(self.order_sampler)
            state["order_sampler"].load_state_dict(at)
            state["_sweep"] = self._sweep._replace(sampler_state=at)
        return state


def fetch(dataset: Any, indices: list[int], epochs: list[int] | None = None) -> list[Any]:
    """Read examples of a data set, one by one or, where it can, all at once.

    `epochs` has the epoch of each.  A StopIteration of the data set, which would end the loop in
    silence, becomes a RuntimeError.
    """
    if not epochs:
        return _fetch(dataset, indices)
    if epochs[0] == epochs[-1]:  # they never fall
        return in_epoch(epochs[0], _fetch, dataset, indices)
    examples: list[Any] = []
    for epoch, run in itertools.groupby(zip(epochs, indices, strict=True), itemgetter(0)):
        examples += in_epoch(epoch, _fetch, dataset, [index for _, index in run])
    return examples


def _fetch(dataset: Any, indices: list[int]) -> list[Any]:
    """Read examples of one epoch."""
    many = getattr(dataset, "__getitems__", None)
    try:
        if many is None:
            return [dataset[i] for i in indices]
        examples = list(many(indices))
    except StopIteration as error:
        raise RuntimeError("the data set raised StopIteration") from error
    if len(examples) != len(indices):
        raise ValueError(
            f"{type(dataset).__name__}.__getitems__() gave {len(examples)} examples for "
            f"{len(indices)} indices"
        )
    return examples


class SerialIterator(DatasetIterator):
    """Iterate over a data set in the caller's thread (Chainer's ``SerialIterator``).

    Parameters
    ----------
    dataset : object
        Anything with ``len(dataset)`` and ``dataset[i]``; ``dataset.__getitems__(indices)`` is used
        where there is one.
    batch_size : int
        Examples of a batch, at least 1.
    repeat : bool
        Go on for ever, filling a batch from the next sweep where one ends; else stop after one
        sweep, whose last batch may be short.
    shuffle : bool, optional
        False for the order of the data set, True or None for a random one from NumPy's global
        generator.
    order_sampler : callable, optional
        Gives the order of every sweep, see `OrderSampler`; then `shuffle` must be None.

    Notes
    -----
    An exception in the data set is raised by the call; the next call continues after that batch.

    Examples
    --------
    >>> batches = SerialIterator([1, 2, 3, 4, 5], batch_size=2, shuffle=False)
    >>> [next(batches) for _ in range(3)], batches.epoch, batches.epoch_detail
    ([[1, 2], [3, 4], [5, 1]], 1, 1.2)
    """

    def __next__(self) -> list[Any]:
        with self._access.lock:
            return self._next()

    def _next(self) -> list[Any]:
        # Planned before, if an interrupt (Ctrl-C) came in between.
        planned = self._planned[0] if self._planned else self._plan()
        if planned is None:
            raise self._stop()
        try:
            examples = fetch(self.dataset, planned.indices, planned.epochs)
        except Exception:
            self._delivered()
            raise
        self._delivered()
        return examples


class PrefetchingIterator(DatasetIterator):
    """Base class of the iterators that fetch in the background, `_ahead` batches ahead.

    A subclass starts a batch and waits for it; batches, their order and the handling of errors are
    the same for all.
    """

    #: Batches under way while the consumer works on another one.
    _ahead = 1
    #: Errors of the machinery, not of the data set: the batch is made again by the next call.
    _failures: tuple[type[Exception], ...] = ()
    #: False inside `next`, and after one that was interrupted anywhere (Ctrl-C).
    _in_order = True

    def __next__(self) -> list[Any]:
        with self._access.lock:
            return self._next_in_order()

    def _next_in_order(self) -> list[Any]:
        if not self._in_order:
            self._abandon()
        self._in_order = False
        try:
            examples = self._next()
        except self._failures:
            raise
        except Exception:
            self._in_order = True
            raise
        self._in_order = True
        return examples

    def _next(self) -> list[Any]:
        self._plan_ahead()
        if not self._planned:
            raise self._stop()
        self._prepare()
        for planned in self._planned:
            if planned.parts is None:
                self._start(planned)
        try:
            results = self._await(self._planned[0])
        except self._failures:
            raise
        except Exception:
            self._delivered()  # the next call goes on behind this batch
            raise
        self._delivered()
        examples = results[0]
        for more in results[1:]:
            examples += more
        return examples

    def _plan_ahead(self) -> None:
        while len(self._planned) <= self._ahead:
            try:
                if self._plan() is None:
                    return
            except Exception:
                if not self._planned:
                    raise
                return  # raised when it is the turn of that batch

    def _prepare(self) -> None:
        """Make sure that batches can be started."""

    def _start(self, planned: Planned) -> None:
        """Begin to fetch a batch and set its `parts`."""
        raise TypeError(f"{type(self).__name__} does not define _start()")

    def _await(self, planned: Planned) -> list[list[Any]]:
        """Wait for the examples of each part; raises what fetching raised."""
        raise TypeError(f"{type(self).__name__} does not define _await()")

    def _abandon(self) -> None:
        for planned in self._planned:
            planned.parts = None
        self._in_order = True


def shares(indices: list[int], count: int) -> list[list[int]]:
    """Cut the indices into at most `count` runs of nearly equal length."""
    count = max(min(count, len(indices)), 1)
    edges = [len(indices) * i // count for i in range(count + 1)]
    return [indices[a:b] for a, b in itertools.pairwise(edges)]
