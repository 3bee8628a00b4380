"""``provider.iterator(...)``: Pylearn2's dataset iterator over the batches of a provider.

A provider that can give `Samples` has every mode; of one that has an order of its own only, the
batches are passed on.  Drawing rows and converting arrays is the work of others.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.backend import backend_of
from ..core.batch import DataDesc
from ..core.order import BatchPlan
from ..spaces.finite_iterator import FiniteDatasetIterator
from ..spaces.modes import (
    EvenSequencesSubsetIterator,
    SequentialSubsetIterator,
    SubsetIterator,
    generator,
    resolve_iterator_class,
)
from .batch_form import BatchForm, Transfer
from .engine import ChosenBatch
from .form_batches import FormBatch, with_arrays

#: Modes of providers whose batches come in an order of their own.
OWN_MODES = ("sequential", "even_sequential")


class _Request:
    """Form of every batch: the arrays of the provider, or parts of a request."""

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
            names = ([desc[0] for desc in part] for part in (data, label))
            self.form = BatchForm(data_specs, *names)
            self.form.bind(data, label)

    def samples(
        self, data: Sequence[Any], label: Sequence[Any], count: int
    ) -> tuple[list[Any], list[Any]]:
        """The first samples of all arrays."""
        arrays = [
            first_samples(array, desc, count)
            for array, desc in zip([*data, *label], self._descriptions, strict=True)
        ]
        return arrays[: len(data)], arrays[len(data) :]

    def parts(
        self, data: Sequence[Any], label: Sequence[Any], count: int, to_device: Any, finish: Any
    ) -> tuple[Any, ...]:
        """The parts of a batch, without padding."""
        data, label = self.samples(data, label, count)
        if self.form is None:
            placed = to_device([*data, *label])
            return (*finish(placed[: len(data)]), *placed[len(data) :])
        return _flat(self.form.nest(self.form.parts(data, label, count, to_device, finish)[0]))


def _flat(asked: Any) -> tuple[Any, ...]:
    """Make a tuple of the parts asked for, from which a single part is unwrapped."""
    return asked if isinstance(asked, tuple) else (asked,)


def first_samples(array: Any, desc: Any, count: int) -> Any:
    """Return the first samples of an array, along the batch axis of its description."""
    axis = DataDesc.get_batch_axis(getattr(desc, "layout", None))
    axis = axis if 0 <= axis < len(array.shape) else 0
    if array.shape[axis] == count:
        return array
    return backend_of(array).narrow(array, axis, 0, count)


# -- samples by number ------------------------------------------------------------------------


@dataclass(frozen=True)
class Samples:
    """All that is asked of a provider whose samples can be taken in any order."""

    #: The data and label arrays of a batch before any conversion.
    stored: tuple[Sequence[DataDesc], Sequence[DataDesc]]
    #: What the provider itself was asked for.
    form: BatchForm | None
    #: Moves arrays to where they are wanted, and what is left to do with the data there.
    to_device: Transfer
    finish: Transfer
    #: Random numbers that go on from iterator to iterator.
    rng: Any
    #: ``read(rows, batch_size, in_file_order, draws, shaped)`` begins an epoch beside all others.
    #: `rows` are the positions of the samples of each batch, at most `batch_size` of them, in the
    #: order in which they are stored or in that of the epoch; with `draws`, not None, a sample that
    #: comes again has other random numbers.  If they are `shaped`, `rows` are `ChosenBatch`.  The
    #: result gives data, label and samples of the next batch.
    read: Callable[..., Callable[[], tuple[list[Any], list[Any], ChosenBatch]]]
    #: What the epochs of the provider itself are cut by.
    plan: BatchPlan
    #: Names of the fields that are lists, which `read` puts beside the samples of a batch.
    lists: tuple[str, ...] = ()


def _chosen(
    provider: Any,
    samples: Samples,
    mode: Any,
    batch_size: int | None,
    num_batches: int | None,
    rng: Any,
    data_specs: Any,
) -> tuple[SubsetIterator, Callable[[], tuple[Any, ...]]]:
    """Find the batches of a provider with any order, and how to get the next."""
    kind: Any = SequentialSubsetIterator if mode is None else resolve_iterator_class(mode)
    if issubclass(kind, EvenSequencesSubsetIterator):
        raise ValueError(
            "mode='even_sequences' needs sequences of different lengths: the samples of a provider "
            "have one shape"
        )
    if samples.lists:
        raise ValueError(
            f"field {samples.lists[0]!r} is a list, and batches of chosen samples consist of "
            "arrays: iterate over an ImageRecordIter, or drop the field"
        )
    request = _Request(data_specs, *samples.stored, samples.form)
    if batch_size is None and num_batches is None:
        batch_size = provider.batch_size
    stochastic = getattr(kind, "stochastic", False)
    if stochastic:
        rng = samples.rng if rng is None else generator(rng)
    subsets: SubsetIterator = kind(provider.num_samples, batch_size, num_batches, rng)
    size = subsets.batch_size or provider.batch_size
    draws = itertools.count() if stochastic else None
    read = samples.read(iter(subsets), size, mode is not None, draws)

    def parts() -> tuple[Any, ...]:
        data, label, batch = read()
        return request.parts(data, label, len(batch.rows), samples.to_device, samples.finish)

    return subsets, parts


def chosen_batches(
    provider: Any, batches: Iterator[ChosenBatch], largest: int, draws: Iterator[int] | None
) -> Iterator[tuple[tuple[Any, ...], int]]:
    """Yield batches of samples in the order of the file, with what is `done`.

    A batch has data, fields that are lists, then labels.

    The epoch is that of the provider's next `iterator`; see `Samples.read`.
    """
    samples: Samples = provider._provider_samples()
    request = _Request(None, *samples.stored, samples.form)
    shaped = samples.plan.shaped
    read = samples.read(batches, largest, True, draws, shaped)
    while True:
        try:
            data, label, batch = read()
        except StopIteration:
            return
        if not shaped:  # else it has as many slots as samples
            data, label = request.samples(data, label, len(batch.rows))
        placed = samples.to_device([*data, *label])
        images = samples.finish(placed[: len(data)])
        yield (*images, *batch.lists, *placed[len(data) :]), batch.done


def plan_of(provider: Any) -> BatchPlan:
    """Return what the epochs of a provider with samples by number are cut by."""
    plan: BatchPlan = provider._plan
    return plan


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
        """True if the last batch may be shorter than the others."""
        return not self._even


def _batches(
    provider: Any,
    mode: Any,
    batch_size: int | None,
    num_batches: int | None,
    rng: Any,
    data_specs: Any,
) -> tuple[SubsetIterator, Callable[[], tuple[Any, ...]]]:
    """Find the batches of a provider with an order of its own, and how to get the next."""
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
    request = _Request(data_specs, provider.provide_data, provider.provide_label or ())
    even = mode == "even_sequential"
    subsets = _OwnOrder(provider, even, num_batches)
    batches = _parts(provider, request, even, num_batches)
    return subsets, batches.__next__


def _parts(
    provider: Any, request: _Request, even: bool, num_batches: int | None
) -> Iterator[tuple[Any, ...]]:
    count = 0
    for batch in provider:
        if even and batch.count < provider.batch_size:
            continue
        if count == num_batches:
            return
        count += 1
        if request.form is None and isinstance(batch, FormBatch):
            whole = request.samples(batch.data, batch.label, batch.count)
            yield _flat(with_arrays(batch, *whole).asked)
        else:
            yield request.parts(batch.data, batch.label, batch.count, list, list)
        if count == num_batches:
            return


class DatasetProtocol:
    """Pylearn2's dataset iterator, for a class that can be iterated over."""

    def _provider_samples(self) -> Samples | None:
        """Return what is needed to take samples in any order, if the class can do that."""
        return None

    def iterator(
        self: Any,
        mode: Any = None,
        batch_size: int | None = None,
        num_batches: int | None = None,
        rng: Any = None,
        data_specs: Any = None,
        return_tuple: bool = False,
    ) -> FiniteDatasetIterator:
        """Return the batches of one epoch in any form, by Pylearn2's rules.

        Every call begins an epoch of its own, beside the loop over the provider and other
        iterators, whose positions do not change: one may monitor the data that the other trains on.
        The first call has the provider's first epoch, each later one the next; `set_epoch` chooses
        the epoch.

        Providers around other iterators have nothing but their one loop.  There, the iterator is
        that loop, which ends an older one.

        Parameters
        ----------
        mode : str or class, optional
            None for the order of the provider.  Otherwise the samples of this part are taken in the
            order in which they are stored, and the mode chooses those of each batch: all modes of
            `DenseDesignMatrix.iterator` but "even_sequences".  Providers around other iterators
            have their batches as they come: "sequential", or "even_sequential" for those without
            padding.
        batch_size, num_batches : int, optional
            As for `DenseDesignMatrix.iterator`; by default the batches of the provider.
        rng : seed or generator, optional
            By default one generator for all iterators of the provider.
        data_specs : (Space, source), optional
            By default the `data_specs` of the provider, or all data and label arrays.
        return_tuple : bool
            Give a tuple for a single source as well.

        Returns
        -------
        FiniteDatasetIterator
            Of arrays or tuples of them, the last one short instead of padded.

        Raises
        ------
        ValueError
            For a mode, a size or a source that this provider does not have, and more batches than
            there are samples for.

        Examples
        --------
        >>> import numpy as np
        >>> from iterators import ArrayDataProvider, ResizeIter
        >>> provider = ResizeIter(ArrayDataProvider(np.arange(3), batch_size=2), 3)
        >>> [batch.tolist() for batch in provider.iterator("even_sequential")]
        [[0, 1], [0, 1]]
        """
        asked = mode, batch_size, num_batches, rng, data_specs
        samples = self._provider_samples()
        arguments = _batches(self, *asked) if samples is None else _chosen(self, samples, *asked)
        return FiniteDatasetIterator(*arguments, return_tuple)
