"""``provider.iterator(...)``: Pylearn2's dataset iterator over the batches of a provider.

`iterate_samples` serves every mode where single samples can be asked for, and keeps the engine of
the provider busy ahead of the consumer; `iterate_batches` passes on the batches of a provider that
has an order of its own only.  Drawing rows and converting arrays is the work of others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from recordio.errors import RecordIOError

from ..core.backend import backend_of
from ..core.batch import DataDesc
from ..core.finite_iterator import DATASET_SEED, FiniteDatasetIterator, flat_parts
from ..core.order.modes import (
    EvenSequencesSubsetIterator,
    SequentialSubsetIterator,
    SubsetIterator,
    generator,
    resolve_iterator_class,
)
from .batch_form import BatchForm, SpecBatch, with_arrays

__all__ = ["iterate_batches", "iterate_samples"]

#: Modes of providers whose batches come in an order of their own.
OWN_MODES = ("sequential", "even_sequential")


class _Request:
    """What every batch is to look like: the arrays of the provider, or parts of a request.

    Parameters
    ----------
    data_specs : (Space, source) or None
    data, label : sequence of DataDesc
        The arrays before any conversion.
    form : BatchForm, optional
        What is wanted without `data_specs`.
    """

    def __init__(
        self,
        data_specs: Any,
        data: Sequence[Any],
        label: Sequence[Any],
        form: BatchForm | None = None,
    ) -> None:
        self._descriptions = [*data, *label]
        self.form = form
        if data_specs is not None:
            flat_parts(data_specs)
            names = ([desc[0] for desc in part] for part in (data, label))
            self.form = BatchForm(data_specs, *names)
            self.form.bind(data, label)

    def samples(
        self, data: Sequence[Any], label: Sequence[Any], count: int
    ) -> tuple[list[Any], list[Any]]:
        """The first samples of all arrays."""
        arrays = [
            _first(array, desc, count)
            for array, desc in zip([*data, *label], self._descriptions, strict=True)
        ]
        return arrays[: len(data)], arrays[len(data) :]

    def parts(
        self, data: Sequence[Any], label: Sequence[Any], count: int, place: Any, finish: Any
    ) -> tuple[Any, ...]:
        """The parts of a batch, without padding."""
        data, label = self.samples(data, label, count)
        if self.form is None:
            placed = place([*data, *label])
            return (*finish(placed[: len(data)]), *placed[len(data) :])
        nested = self.form.nest(self.form.parts(data, label, count, place, finish)[0])
        return nested if isinstance(nested, tuple) else (nested,)


def _first(array: Any, desc: Any, count: int) -> Any:
    """The first samples of an array."""
    axis = DataDesc.get_batch_axis(getattr(desc, "layout", None))
    axis = axis if 0 <= axis < len(array.shape) else 0
    if array.shape[axis] == count:
        return array
    return backend_of(array).narrow(array, axis, 0, count)


# -- samples by number ------------------------------------------------------------------------


class _Reader:
    """Batches of chosen samples from the engine of a provider, made ahead of the consumer."""

    def __init__(
        self,
        provider: Any,
        rows: Iterator[Any],
        request: _Request,
        *,
        stored: bool,
        repeats: bool,
    ) -> None:
        self._provider = provider
        # A sample that may come again has other random numbers when it does, by when it comes.
        self._repeats = repeats
        self._asked = 0
        self._rows = rows
        self._request = request
        self._waiting: deque[tuple[np.ndarray, np.ndarray]] = deque()  # samples and their draws
        self._over = False
        with provider._turns.lock:
            provider._begin()
            provider._delivered = True
            provider._engine.cancel()
            provider._requests.clear()
            provider._loop = self
            self._epoch = provider.epoch
        order = provider._plan.order
        self._records = order.take(self._epoch, 0, order.count())
        self._draws = order.draws(0, order.count())
        if stored:  # in the order of the file or the array
            self._records = np.sort(self._records)

    def __call__(self) -> tuple[Any, ...]:
        provider = self._provider
        if self._over:
            raise StopIteration
        with provider._turns.lock:
            if provider._loop is not self or provider._requests:
                raise RuntimeError(
                    "this provider is used by another loop that began later; nested or parallel "
                    "loops need a provider each"
                )
            self._ask_ahead()
            if not self._waiting:
                self._over = True
                raise StopIteration
            data, label, ids, failures = provider._engine.collect()
            rows, draws = self._waiting.popleft()
            self._ask_ahead()
            for slot, error in failures:
                self._replace(rows[slot], draws[slot], slot, error, data, label, ids)
            provider._samples += len(rows)
        return self._request.parts(
            *provider._arrays(data, label), len(rows), provider._placement.place, provider._finish
        )

    def _ask_ahead(self) -> None:
        engine = self._provider._engine
        if engine.pending != len(self._waiting):
            # An interrupt (Ctrl-C) came between a step of the engine and ours: make them again.
            engine.cancel()
            for chosen, draws in self._waiting:
                engine.submit(self._records[chosen], self._epoch, draws)
        while len(self._waiting) < engine.depth:
            rows = next(self._rows, None)
            if rows is None:
                return
            chosen = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
            draws = self._draws[chosen]
            if self._repeats:
                draws = np.arange(self._asked, self._asked + len(chosen))
            self._asked += len(chosen)
            self._waiting.append((chosen, draws))
            engine.submit(self._records[chosen], self._epoch, draws)

    def _replace(
        self, row: int, draw: int, slot: int, error: Exception, data: Any, label: Any, ids: Any
    ) -> None:
        """Fill a slot with the next good sample, as in a loop over the provider."""
        engine, skipped = self._provider._engine, self._provider._skipped
        if data is None or skipped.on_error == "raise" or not isinstance(error, RecordIOError):
            raise error
        skipped.add(error)
        for record in np.roll(self._records, -int(row) - 1):
            try:
                engine.retry(int(record), self._epoch, int(draw), data, label, ids, slot)
                return
            except RecordIOError as another:
                skipped.add(another)
        raise error


def iterate_samples(
    provider: Any,
    mode: Any,
    batch_size: int | None,
    num_batches: int | None,
    rng: Any,
    data_specs: Any,
    return_tuple: bool,
) -> FiniteDatasetIterator:
    """The iterator of a provider that can be asked for any of its samples."""
    kind: Any = SequentialSubsetIterator if mode is None else resolve_iterator_class(mode)
    if issubclass(kind, EvenSequencesSubsetIterator):
        raise ValueError(
            "mode='even_sequences' needs sequences of different lengths: the samples of a provider "
            "have one shape"
        )
    data, label = provider._stored
    request = _Request(data_specs, data, label, provider._form)
    order = provider._plan.order
    if batch_size is None and num_batches is None:
        batch_size = provider.batch_size
    stochastic = getattr(kind, "stochastic", False)
    if stochastic:
        if rng is None and provider._rng is None:
            provider._rng = generator(None, DATASET_SEED)
        rng = provider._rng if rng is None else generator(rng)
    subsets: SubsetIterator = kind(order.count(), batch_size, num_batches, rng)
    if (subsets.batch_size or 0) > provider.batch_size:
        raise ValueError(
            f"batch_size={subsets.batch_size}: this provider was made with "
            f"batch_size={provider.batch_size}, and its batches have room for no more"
        )
    stored = mode is not None
    reader = _Reader(provider, iter(subsets), request, stored=stored, repeats=stochastic)
    return FiniteDatasetIterator(subsets, reader, return_tuple)


# -- batches as they come ---------------------------------------------------------------------


class _OwnOrder(SubsetIterator):
    """The batches of a provider, counted: what it cannot tell is worked out from its length."""

    def __init__(self, provider: Any, even: bool, num_batches: int | None) -> None:
        self._provider = provider
        self._even = even
        self._asked = num_batches

    @property
    def batch_size(self) -> int:
        """Samples of a full batch."""
        return self._provider.batch_size

    @property
    def num_batches(self) -> int:
        """Batches of an epoch; a TypeError if the provider does not know."""
        return len(self._provider) if self._asked is None else self._asked

    @property
    def num_examples(self) -> int:
        """Samples of an epoch at most, of which a short last batch may lack some."""
        return self.batch_size * self.num_batches

    @property
    def uneven(self) -> bool:
        """Whether the last batch may be shorter than the others."""
        return not self._even


def iterate_batches(
    provider: Any,
    mode: Any,
    batch_size: int | None,
    num_batches: int | None,
    rng: Any,
    data_specs: Any,
    return_tuple: bool,
) -> FiniteDatasetIterator:
    """The iterator of a provider whose batches come in an order and a size of their own."""
    if mode not in (None, *OWN_MODES):
        raise ValueError(
            f"mode={mode!r}: the batches of this {type(provider).__name__} come in an order of "
            f"their own; expected {' or '.join(map(repr, OWN_MODES))}"
        )
    if batch_size not in (None, provider.batch_size):
        raise ValueError(
            f"batch_size={batch_size}: the batches of this {type(provider).__name__} have "
            f"{provider.batch_size} samples"
        )
    if rng is not None:
        raise ValueError(f"mode={mode!r} draws nothing: leave out rng")
    if num_batches is not None and num_batches < 1:
        raise ValueError(f"num_batches={num_batches}: expected at least 1")
    request = _Request(data_specs, provider.provide_data, provider.provide_label)
    even = mode == "even_sequential"
    subsets = _OwnOrder(provider, even, num_batches)
    batches = _parts(provider, request, even, num_batches)
    read: Callable[[], tuple[Any, ...]] = batches.__next__
    return FiniteDatasetIterator(subsets, read, return_tuple)


def _parts(
    provider: Any, request: _Request, even: bool, num_batches: int | None
) -> Iterator[tuple[Any, ...]]:
    given = 0
    for batch in provider:
        if even and batch.count < provider.batch_size:
            continue
        if given == num_batches:
            return
        given += 1
        if request.form is None and isinstance(batch, SpecBatch):
            yield tuple(with_arrays(batch, *request.samples(batch.data, batch.label, batch.count)))
        else:
            yield request.parts(batch.data, batch.label, batch.count, list, list)
        if given == num_batches:
            return
