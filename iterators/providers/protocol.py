"""The protocols of MXNet's and MXNet.jl's iterators: mix-ins of every provider, and functions.

The functions are MXNet.jl's: the provider first, then the batch.  They work on every provider here,
and on anything else that has the same methods.  They copy out of batches and never change one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..core.batch import DataBatch
from ..core.dtypes import array_over, tensor_over
from ..views.sets import Batch, view_batch


class AbstractDataProviderState:
    """A loop over one epoch of a provider: what ``iter(provider)`` gives, under MXNet.jl's name.

    Parameters
    ----------
    provider : AbstractDataProvider
        The provider to loop over; only its newest loop may go on.

    Attributes
    ----------
    provider : AbstractDataProvider

    Examples
    --------
    >>> from iterators import ArrayDataProvider
    >>> loop = iter(ArrayDataProvider(np.arange(4), batch_size=2))
    >>> loop.next().data[0].tolist(), loop.next().data[0].tolist(), next(loop, None)
    ([0, 1], [2, 3], None)
    >>> loop.reset()
    >>> loop.next().data[0].tolist(), loop.provider.epoch
    ([0, 1], 1)
    """

    def __init__(self, provider: Any) -> None:
        self.provider = provider
        self._over = False
        # A mark and not the loop itself: a cycle would keep a dropped provider alive for a while.
        self._mark = provider._provider_loop = object()

    def __iter__(self) -> AbstractDataProviderState:
        return self

    def __next__(self) -> DataBatch:
        provider = self.provider
        if provider._provider_loop is not self._mark:
            if self._over:
                raise StopIteration
            raise taken_over()
        try:
            batch = provider.next()
        except StopIteration:
            self._over = True
            raise
        provider._provider_current = batch
        return batch

    next = __next__

    def reset(self) -> None:
        """Begin with the next epoch, unless this one has not begun."""
        self.provider.reset()
        self._over, self.provider._provider_loop = False, self._mark


def taken_over() -> RuntimeError:
    """Return the error of an older loop that goes on."""
    return RuntimeError(
        "this provider is used by another loop that began later; nested or parallel loops need "
        "a provider each"
    )


class SlicedNDArray(NamedTuple):
    """Some samples of a batch, and the array that they are copied to by `load_data`.

    Examples
    --------
    >>> SlicedNDArray(slice(0, 2), np.zeros(2)).samples
    slice(0, 2, None)
    """

    #: Slots in the batch, counted from 0 without the end.
    samples: slice | range
    #: A NumPy array or a torch tensor on any device.
    array: Any


class _Current:
    """The batch that `iter_next` or the loop advanced to.

    No property: a class written for MXNet may keep a number of its own under the name `current`.
    """

    def __get__(self, provider: Any, owner: type[Any] | None = None) -> DataBatch:
        return self if provider is None else _current(provider)  # type: ignore[return-value]


def _current(provider: Any) -> DataBatch:
    if provider._provider_current is None:
        raise RuntimeError("there is no current batch: call iter_next() or next() first")
    return provider._provider_current


class MXNetProtocol:
    """MXNet's low-level protocol, for a class that has `next`.

    All private names that a provider inherits begin with ``_provider_``: classes written for MXNet
    have a `_current` and a `_size` of their own.
    """

    _provider_current: DataBatch | None = None
    current: ClassVar[_Current] = _Current()

    def __next__(self: Any) -> DataBatch:
        return self.next()

    def iter_next(self: Any) -> bool:
        """Advance to the next batch; False at the end of the epoch."""
        self._provider_current = None
        try:
            self._provider_current = self.next()
        except StopIteration:
            return False
        return True

    def getdata(self) -> Any:
        """Return the data array of the current batch; None without data."""
        data = _current(self).data
        return data[0] if data else None

    def getlabel(self) -> Any:
        """Return the label array of the current batch; None without labels."""
        label = _current(self).label
        return label[0] if label else None

    def getpad(self) -> int:
        """Return the padding of the current batch."""
        return _current(self).pad

    def getindex(self) -> np.ndarray:
        """Return the sample ids of the current batch."""
        return _current(self).index


class MXNetJlProtocol:
    """The methods of MXNet.jl, for a class that describes its batches."""

    def eltype(self: Any) -> type[DataBatch]:
        """`batch_type`, under the name of MXNet.jl."""
        return self.batch_type

    def get_batch_size(self: Any) -> int:
        """`batch_size`, under the name of MXNet.jl."""
        return self.batch_size

    def eachbatch(self: Any) -> Iterable[DataBatch]:
        """Return the batches of one epoch: the provider itself, unless a subclass makes them."""
        return self

    def count_samples(self, batch: DataBatch) -> int:
        """Return the number of samples of the batch that are not padding."""
        return batch.count

    def get_data(self, batch: DataBatch) -> list[Any]:
        """Return the data arrays of the batch, in the order of `provide_data`."""
        return batch.data

    def get_label(self, batch: DataBatch) -> list[Any]:
        """Return the label arrays of the batch, in the order of `provide_label`."""
        return batch.label

    def get(self, batch: DataBatch, name: str) -> Any:
        """Return the array of the batch with this name; KeyError if there is none.

        A batch without names has those of `provide_data` and `provide_label`.
        """
        return named(self, batch)[name]

    def view(self, batch: DataBatch) -> Batch:
        """Return views over the arrays, which are not copied; see `iterators.views.view_batch`."""
        return view_batch(batch)

    def load_data(self: Any, batch: DataBatch, targets: Sequence[Any]) -> None:
        """Copy data arrays of the batch into `targets`, see `iterators.providers.protocol`."""
        load_arrays("data", self.get_data(batch), self.provide_data, targets)

    def load_label(self: Any, batch: DataBatch, targets: Sequence[Any]) -> None:
        """Copy label arrays of the batch into `targets`, see `iterators.providers.protocol`."""
        load_arrays("label", self.get_label(batch), self.provide_label, targets)


def named(provider: Any, batch: Any) -> DataBatch:
    """Give a batch the names of its provider, if it has none of its own."""
    if not isinstance(batch, DataBatch):
        batch = DataBatch(list(batch.data), list(batch.label or ()), batch.pad or 0)
    for part in ("provide_data", "provide_label"):
        if getattr(batch, part) is None:
            setattr(batch, part, getattr(provider, part, None) or None)
    return batch


def eltype(provider: Any) -> type[Any]:
    """Class of the batches."""
    return provider.batch_type


def get_batch_size(provider: Any) -> int:
    """Samples in a batch, padding included."""
    return provider.batch_size


def provide_data(provider: Any) -> Sequence[Any]:
    """Name and shape of the data arrays of a batch."""
    return provider.provide_data


def provide_label(provider: Any) -> Sequence[Any]:
    """Name and shape of the label arrays of a batch; empty without labels."""
    return provider.provide_label


class _Epochs:
    """Batches of `eachbatch`: every loop is an epoch, also where a generator makes them."""

    def __init__(self, provider: Any) -> None:
        self.provider = provider

    def __iter__(self) -> Iterator[Any]:
        return iter(self.provider.eachbatch())


def eachbatch(provider: Any) -> Iterable[Any]:
    """Batches of one epoch; looped over again, those of the next one."""
    return _Epochs(provider)


def count_samples(provider: Any, batch: Any) -> int:
    """Return the number of samples of the batch that are not padding."""
    return provider.count_samples(batch)


def get_data(provider: Any, batch: Any) -> list[Any]:
    """Return the data arrays of the batch, in the order of `provide_data`."""
    return provider.get_data(batch)


def get_label(provider: Any, batch: Any) -> list[Any]:
    """Return the label arrays of the batch, in the order of `provide_label`."""
    return provider.get_label(batch)


def get(provider: Any, batch: Any, name: str) -> Any:
    """The array of the batch that has this name, data first; KeyError if none has."""
    return provider.get(batch, name)


def load_data(provider: Any, batch: Any, targets: Sequence[Any]) -> None:
    """Copy the data arrays of a batch, or slices of them, into arrays of the caller.

    Parameters
    ----------
    provider : AbstractDataProvider
    batch : DataBatch
    targets : sequence
        One entry for each array of `provide_data`: a destination for the whole array, or a list of
        pairs ``(samples, destination)`` such as `SlicedNDArray`, where `samples` is a slice or a
        range of slots in the batch; an empty list leaves the array out.  Destinations are NumPy
        arrays or torch tensors on any device, of the shape of what is copied.

    Raises
    ------
    ValueError
        If there are more or fewer entries than arrays, before anything is copied, or if shapes
        differ; an array is never broadcast.
    TypeError
        If an entry or a destination is of another kind.

    Examples
    --------
    >>> from iterators import ArrayDataProvider
    >>> provider = ArrayDataProvider(np.arange(8.0).reshape(4, 2), batch_size=4)
    >>> first, second = np.empty((3, 2)), np.empty((1, 2))
    >>> load_data(provider, next(iter(provider)), [[(slice(0, 3), first), (range(3, 4), second)]])
    >>> second
    array([[6., 7.]])
    """
    provider.load_data(batch, targets)


def load_label(provider: Any, batch: Any, targets: Sequence[Any]) -> None:
    """Copy the label arrays of a batch, or slices of them; as `load_data`."""
    provider.load_label(batch, targets)


def load_arrays(
    what: str, arrays: Sequence[Any], descriptions: Sequence[Any], targets: Sequence[Any]
) -> None:
    """Copy `arrays` into `targets`, whose form `load_data` describes."""
    if len(arrays) != len(descriptions):
        raise ValueError(
            f"the batch has {len(arrays)} {what} arrays, provide_{what} describes "
            f"{len(descriptions)}"
        )
    if len(targets) != len(arrays):
        names = ", ".join(str(desc[0]) for desc in descriptions) or "none"
        raise ValueError(
            f"{len(targets)} targets for {len(arrays)} {what} arrays ({names}): give one for each, "
            "[] for an array that is not wanted"
        )
    for array, desc, target in zip(arrays, descriptions, targets, strict=True):
        name, layout = desc[0], getattr(desc, "layout", None)
        axis = 0 if layout is None else max(layout.find("N"), 0)
        if not isinstance(target, (list, tuple)):
            _copy(name, array, target)
            continue
        for pair in target:
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise TypeError(
                    f"{name}: expected pairs (slice or range, destination), not {pair!r}"
                )
            samples, destination = pair
            if isinstance(samples, range):
                samples = _slice(name, samples)
            if not isinstance(samples, slice):
                raise TypeError(f"{name}: {samples!r} is neither a slice nor a range")
            _copy(name, array[(slice(None),) * axis + (samples,)], destination)


def _slice(name: str, samples: range) -> slice:
    if samples.step < 0 or samples.start < 0 or samples.stop < 0:
        raise ValueError(f"{name}: {samples!r} must count upwards from at least 0")
    return slice(samples.start, samples.stop, samples.step)


def _copy(name: str, source: Any, destination: Any) -> None:
    if hasattr(source, "toarray"):  # a sparse matrix
        source = source.toarray()
    if not hasattr(destination, "shape"):
        raise TypeError(f"{name}: {type(destination).__name__} is not an array that can be filled")
    if tuple(source.shape) != tuple(destination.shape):
        raise ValueError(
            f"{name}: {tuple(source.shape)} does not fit a destination of shape "
            f"{tuple(destination.shape)}"
        )
    if hasattr(destination, "copy_"):  # torch
        if isinstance(source, np.ndarray):
            source = tensor_over(np.ascontiguousarray(source))
        destination.copy_(source)
    else:
        if hasattr(source, "detach"):
            source = array_over(source)
        destination[...] = source
