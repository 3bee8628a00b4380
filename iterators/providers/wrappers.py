"""Providers made of other iterators: `ResizeIter` and `PrefetchingIter`.

They pass batches on.  Where a batch comes from, and in which order, is the business of the
iterators inside.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from recordio.keywords.checks import boolean, integer

from ..core.batch import DataBatch, DataDesc
from ..core.device import handing_over
from ..core.order.cutting import count_batches
from ..core.prefetch import Prefetcher
from .abstract import AbstractDataProvider
from .form_batches import FormBatch
from .mx_data_provider import MXDataProvider
from .pairing import Pairing, check_lengths
from .wrapper import Saved, Wrapper, described


class ResizeIter(Wrapper):
    """Another iterator, with a given number of batches in every epoch.

    Parameters
    ----------
    data_iter : AbstractDataProvider or MXNet iterator
        Source of the batches.  At its end it is reset and continues.
    size : int
        Batches in an epoch, at least 1.
    reset_internal : bool
        Begin every epoch with a reset of `data_iter`; otherwise it continues where it was.
    data_specs : (Space, source), optional
        What a batch must look like: exactly that form, which is a `DataBatch` as well.  A source is
        the name of an array, or "features" and "targets" where there is one.
    device : str or torch.device, optional
        Device of the arrays; by default they stay where they are.
    epoch : int
        Number of the first epoch.

    Raises
    ------
    ValueError
        When `data_iter` has no batch at all.

    Examples
    --------
    >>> import numpy as np
    >>> from iterators import ArrayDataProvider
    >>> inside = ArrayDataProvider(np.arange(3), batch_size=1)
    >>> provider = ResizeIter(inside, 5, reset_internal=False)
    >>> [[int(batch.data[0][0]) for batch in provider] for _ in range(2)]
    [[0, 1, 2, 0, 1], [2, 0, 1, 2, 0]]
    """

    def __init__(
        self,
        data_iter: Any,
        size: int,
        reset_internal: bool = True,
        *,
        data_specs: Any = None,
        device: Any = None,
        epoch: int = 0,
    ) -> None:
        super().__init__(device, epoch)
        self.data_iter: AbstractDataProvider = _provider(data_iter)
        self.size: int = integer("size", size, low=1)
        self.reset_internal: bool = boolean("reset_internal", reset_internal)
        self._around([self.data_iter])
        inside = self.data_iter
        self._describe(inside.provide_data, inside.provide_label, data_specs, inside.batch_size)
        if self._form is None:
            self.batch_type: type[DataBatch] = inside.batch_type

    def __len__(self) -> int:
        """Number of batches of an epoch."""
        return self.size

    def _restart(self) -> None:
        if self.reset_internal:
            self.data_iter.reset()

    def _set_inside(self, past: int) -> None:
        if not self.reset_internal:
            raise TypeError(
                "with reset_internal=False an epoch of ResizeIter goes on where the one before "
                "stopped: load a state to begin with another"
            )
        each = count_batches(self.size, len(self.data_iter))  # type: ignore[arg-type]
        self.data_iter.set_epoch(self._inside_first[0] + past * each)

    def _advance(self) -> DataBatch:
        if self._number == self.size:
            raise StopIteration
        try:
            batch = self.data_iter.next()
        except StopIteration:
            self.data_iter.reset()
            try:
                batch = self.data_iter.next()
            except StopIteration:
                raise ValueError("the iterator inside has no batch at all") from None
        return batch if self._device is None and self._form is None else self._batch(batch)

    def state_dict(self) -> dict[str, Any]:
        """The position of the run, that of the iterator inside included."""
        inside = Saved.of(self.data_iter)
        over = self._number == self.size
        return {**self._own_state([inside], over), "inside": inside.state}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a saved state."""
        position = self._checked_own_state(state, "inside", most=self.size - 1)
        self.data_iter.load_state_dict(state["inside"])
        self._resume(state, position)

    def close(self) -> None:
        """Close the iterator inside."""
        self.data_iter.close()


class PrefetchingIter(Wrapper):
    """Several iterators side by side, each read ahead by a thread, joined into one.

    Parameters
    ----------
    iters : iterator or list of iterators
        Providers or MXNet iterators with the same batch size, which must end together.  They belong
        to this provider from now on: nobody else may use them.
    rename_data, rename_label : list of dict, optional
        For every iterator, new names of its arrays: ``{old: new}``.
    prefetch_buffer : int
        Batches that each iterator may be ahead, at least 1.
    data_specs : (Space, source), optional
        What a batch must look like: exactly that form, which is a `DataBatch` as well.  A source is
        the name of an array, or "features" and "targets" where there is one.
    device : str or torch.device, optional
        Device of the arrays; by default they stay where they are.
    epoch : int
        Number of the first epoch.

    Raises
    ------
    ValueError
        If the batch sizes differ, or the numbers of batches where iterators say them, if two arrays
        have the same name, and while iterating when one iterator ends before another or their
        padding differs.

    Warns
    -----
    UserWarning
        Once, when the ids of the samples (`index` of a batch) agreed and no longer do, or an epoch
        has the same ids in different orders: after a record that one iterator skipped, for example.

    Notes
    -----
    An exception in an iterator is raised here, at the batch where it happened.  `index` is that of
    the first iterator.

    Examples
    --------
    >>> import numpy as np
    >>> from iterators import ArrayDataProvider
    >>> left, right = (ArrayDataProvider(np.arange(4) * k, batch_size=2) for k in (1, 10))
    >>> provider = PrefetchingIter([left, right], rename_data=[{}, {"data": "tens"}])
    >>> [(batch["data"].tolist(), batch["tens"].tolist()) for batch in provider]
    [([0, 1], [0, 10]), ([2, 3], [20, 30])]
    >>> provider.close()
    """

    _reads_ahead = True

    def __init__(
        self,
        iters: Any,
        rename_data: Sequence[Mapping[str, str]] | None = None,
        rename_label: Sequence[Mapping[str, str]] | None = None,
        *,
        prefetch_buffer: int = 1,
        data_specs: Any = None,
        device: Any = None,
        epoch: int = 0,
    ) -> None:
        super().__init__(device, epoch)
        self.iters: list[AbstractDataProvider] = [
            _provider(it) for it in (iters if isinstance(iters, (list, tuple)) else [iters])
        ]
        if not self.iters:
            raise ValueError("iters is empty: there is nothing to prefetch")
        self._depth = integer("prefetch_buffer", prefetch_buffer, low=1)
        data = _renamed("rename_data", self.iters, rename_data, "provide_data")
        label = _renamed("rename_label", self.iters, rename_label, "provide_label")
        names = [desc[0] for desc in (*data, *label)]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two arrays are called {name!r}: rename one of them")
        sizes = {it.batch_size for it in self.iters}
        if len(sizes) > 1:
            raise ValueError(f"the iterators have different batch sizes: {sorted(sizes)}")
        check_lengths(self.iters)
        self._pairing = Pairing()
        self._describe(data, label, data_specs, sizes.pop())
        if self._form is None:
            self.batch_type: type[DataBatch] = _joined([it.batch_type for it in self.iters])
        self._around(self.iters)
        self._states = [_state_of(it) for it in self.iters]
        self._engines = [
            Prefetcher(partial(_advance, it), self._depth, name="prefetching-iter")
            for it in self.iters
        ]
        self._finalizer = weakref.finalize(self, _close_all, self._engines, self.iters)

    def _advance(self) -> DataBatch:
        for engine in self._engines:
            while engine.pending < self._depth:
                engine.submit(None, 0)
        collected = [engine.collect() for engine in self._engines]
        errors = [failures[0][1] for _, _, _, failures in collected if failures]
        # Without a state nothing was asked of an iterator, or it was interrupted.
        pairs = zip(collected, self._states, strict=True)
        self._states = [state or before for (_, state, _, _), before in pairs]
        if not any(isinstance(error, StopIteration) for error in errors):
            for engine in self._engines:
                engine.submit(None, 0)
        for error in errors:
            if not isinstance(error, StopIteration):
                raise error
        for _, _, receive, failures in collected:
            if not failures:
                receive()
        batches = [batch for batch, _, _, failures in collected if not failures]
        if not batches:
            self._pairing.end_epoch()
            raise StopIteration
        if len(batches) < len(self.iters):
            ended = [str(i) for i, (_, _, _, failures) in enumerate(collected) if failures]
            raise ValueError(
                f"iterator {', '.join(ended)} of {len(self.iters)} ended after {self._number} "
                "batches, before the others"
            )
        if len({batch.pad for batch in batches}) > 1:
            raise ValueError(f"the batches are padded differently: {[b.pad for b in batches]}")
        self._pairing.compare(batches, self._number)
        if len(batches) == 1:
            return self._batch(batches[0])
        return self._batch(
            _joined([type(batch) for batch in batches])(
                [array for batch in batches for array in batch.data],
                [array for batch in batches for array in batch.label],
                pad=batches[0].pad,
                index=batches[0].index,
                provide_data=self._described,
            )
        )

    def _restart(self) -> None:
        # How far a thread has read ahead depends on its pace, and the next epoch of an iterator may
        # depend on where it was.  Within an epoch it goes back to the last delivered batch, or if
        # that is impossible on to the last one that was to be read, as MXNet's does.
        for engine, it, saved in zip(self._engines, self.iters, self._states, strict=True):
            if engine.pending and not self._over and saved.state is not None:
                engine.cancel()
                it.load_state_dict(saved.state)
            while engine.pending:
                engine.collect()
            it.reset()
        self._states = [_state_of(it) for it in self.iters]
        self._pairing.restart(whole=True)

    def stats(self) -> dict[str, float]:
        """Batches read, also ahead of the consumer, and the seconds that took, in all threads."""
        totals: dict[str, float] = {}
        for engine in self._engines:
            for name, value in engine.stats().items():
                totals[name] = totals.get(name, 0) + value
        return totals

    def state_dict(self) -> dict[str, Any]:
        """The position of the run, those of the iterators after the last delivered batch included.

        Raises
        ------
        TypeError
            If an iterator has no state.
        """
        for it, saved in zip(self.iters, self._states, strict=True):
            if saved.state is None:
                it.state_dict()  # says why there is none
        return {**self._own_state(self._states), "inside": [saved.state for saved in self._states]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a saved state."""
        position = self._checked_own_state(state, "inside")
        states = state["inside"]
        if not isinstance(states, Sequence) or len(states) != len(self.iters):
            count = len(states) if isinstance(states, Sequence) else "no"
            raise ValueError(f"the state is of {count} iterators, here are {len(self.iters)}")
        self._move_all(lambda it, inside: it.load_state_dict(inside), states)
        self._states = [_state_of(it) for it in self.iters]
        self._pairing.restart(whole=position.done == 0)
        self._resume(state, position)

    def _set_inside(self, past: int) -> None:
        self._move_all(lambda it, first: it.set_epoch(first + past), self._inside_first)
        self._states = [_state_of(it) for it in self.iters]
        self._pairing.restart(whole=True)

    def _move_all(self, move: Callable[[Any, Any], None], where: Sequence[Any]) -> None:
        """Have every iterator go somewhere, or none."""
        for engine in self._engines:
            engine.cancel()
        try:
            for it, position in zip(self.iters, where, strict=True):
                move(it, position)
        except BaseException:  # all go on behind what was delivered last
            for it, saved in zip(self.iters, self._states, strict=True):
                if saved.state is not None:
                    it.load_state_dict(saved.state)
            raise

    def close(self) -> None:
        """Stop the threads and close the iterators.  Idempotent."""
        self._finalizer()


def _advance(
    it: AbstractDataProvider, records: Any, epoch: int
) -> tuple[DataBatch | None, Any, Callable[[], None], list[Any]]:
    """The next batch of an iterator or why there is none, the state behind it, what receives it."""
    arrays: list[Any] = []
    try:
        batch, failures = it.next(), []
        arrays = [*batch.data, *(batch.label or ())]
    except Exception as error:
        batch, failures = None, [(0, error)]
    return batch, _state_of(it), handing_over(arrays), failures


def _joined(kinds: Sequence[type[DataBatch]]) -> type[DataBatch]:
    """Class of batches that are made of batches of these classes side by side."""
    first = kinds[0]
    if len(kinds) == 1:
        return first
    # Forms side by side are no form that anybody asked for.
    return DataBatch if len(set(kinds)) > 1 or issubclass(first, FormBatch) else first


def _close_all(engines: list[Prefetcher], iters: list[AbstractDataProvider]) -> None:
    for engine in engines:
        engine.close()
    for it in iters:
        it.close()


def _provider(it: Any) -> AbstractDataProvider:
    return it if isinstance(it, AbstractDataProvider) else MXDataProvider(it)


def _state_of(it: AbstractDataProvider) -> Saved:
    try:
        return Saved.of(it)
    except TypeError:
        return Saved(None, None)


def _renamed(
    argument: str,
    iters: Sequence[AbstractDataProvider],
    renames: Sequence[Mapping[str, str]] | None,
    attribute: str,
) -> list[DataDesc]:
    if renames is None:
        renames = [{}] * len(iters)
    if len(renames) != len(iters):
        raise ValueError(f"{argument} has {len(renames)} entries for {len(iters)} iterators")
    descriptions = []
    for it, names in zip(iters, renames, strict=True):
        descs = getattr(it, attribute) or ()
        array_names = [desc[0] for desc in descs]
        for name in names:
            if name not in array_names:
                raise ValueError(f"{argument}: there is no array {name!r}, only {array_names}")
        descriptions += [described(desc, names.get(desc[0], desc[0])) for desc in descs]
    return descriptions
