"""Providers: iterables of batches, whatever makes them.

`AbstractDataProvider` says what a loop over batches does, in terms of `next` and `reset`.  It makes
no batches and keeps no position.  What older systems ask of their iterators is answered by the
mix-ins that it is made of.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self

from ..core.batch import DataBatch, DataDesc, shape_text
from .protocol import AbstractDataProviderState, MXNetJlProtocol, MXNetProtocol, named
from .report import EpochReport, EpochTimes
from .sample_iterator import DatasetProtocol
from .show import pictures

DataBatch.pictures = staticmethod(pictures)


class AbstractDataProvider(MXNetProtocol, MXNetJlProtocol, DatasetProtocol):
    """Base class of all providers.

    A class of your own needs `provide_data`, `provide_label` and either `next` and `reset`, or
    `eachbatch`, which gives the batches of one epoch and may be a generator.  Everything else
    follows from them.

    Notes
    -----
    ``for batch in provider`` runs one epoch; iterating again runs the next one, and a loop that was
    left early is followed by a new epoch.  Only one loop can use a provider at a time: an older
    loop that goes on after a newer one has begun gets a RuntimeError.

    Arrays of a batch that has no `provide_data` and no `provide_label` are found by the names of
    its provider.  The first batch is compared with what the provider announces: a ValueError names
    an array that is missing, unexpected or of another shape.  Batches with a `bucket_key` may
    differ.

    A class of your own that has states defines `state_dict` and `load_state_dict` as well; a loop
    after `load_state_dict` continues from that state, without a `reset`.

    Examples
    --------
    >>> import numpy as np
    >>> class Zeros(AbstractDataProvider):
    ...     provide_data, provide_label, left = [DataDesc("data", (4, 2))], [], 3
    ...     def reset(self):
    ...         self.left = 3
    ...     def next(self):
    ...         if not self.left:
    ...             raise StopIteration
    ...         self.left -= 1
    ...         return DataBatch([np.zeros((4, 2))], provide_data=self.provide_data)
    >>> provider = Zeros()
    >>> provider.batch_size, len(list(provider)), len(list(provider))
    (4, 3, 3)
    >>> class Ones(AbstractDataProvider):
    ...     provide_data, provide_label = [DataDesc("data", (4, 2))], []
    ...     def eachbatch(self):
    ...         for _ in range(3):
    ...             yield DataBatch([np.ones((4, 2))], provide_data=self.provide_data)
    >>> len(list(Ones())), Ones().next().data[0].shape
    (3, (4, 2))
    """

    #: Class of the batches.
    batch_type: type[DataBatch] = DataBatch

    _provider_loop: object | None = None
    #: Batches of the running epoch, where `eachbatch` makes them.
    _provider_batches: Iterator[DataBatch] | None = None
    #: Whether anything was asked for since the epoch began or was resumed, as far as is known. None
    #: for what may be in use by others or not ready: only a call of `reset` resets it, no loop.
    _provider_asked: bool | None = True
    #: Whether the class itself keeps that up to date; for others its methods do when they return.
    _provider_keeps_notes = False
    #: Whether a batch was compared with what is announced.
    _provider_checked = False

    @functools.cached_property
    def _provider_times(self) -> EpochTimes:
        """Times that `report` shows."""
        return EpochTimes()

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if cls._provider_keeps_notes:
            return
        for name in ("next", "iter_next", "reset", "set_epoch", "load_state_dict", "eachbatch"):
            method = getattr(cls, name)
            inherited = method is getattr(AbstractDataProvider, name)
            if not inherited and not hasattr(method, "_provider_notes"):
                noting = _describing if name == "eachbatch" else _noting
                setattr(cls, name, noting(method, name))

    # -- what a class of its own defines ----------------------------------------------------------

    #: Name, shape, dtype and layout of the data arrays of a batch.
    provide_data: Sequence[DataDesc]
    #: The same for the label arrays; empty without labels.
    provide_label: Sequence[DataDesc]

    def next(self) -> DataBatch:
        """Return the next batch of the epoch; after the last, StopIteration until `reset`."""
        times = self._provider_times
        if self._provider_batches is None:
            _needs_eachbatch(type(self), "next")
            self._provider_batches = iter(self.eachbatch())
            times.begin(self._provider_counters())
        times.ask()
        self._provider_asked = True
        batch = next(self._provider_batches)
        times.make(sample_count(batch))
        return batch

    def reset(self) -> None:
        """Make sure that the next batch is the first of an epoch."""
        _needs_eachbatch(type(self), "reset")
        self._provider_batches = self._provider_current = self._provider_loop = None

    def set_epoch(self, epoch: int) -> None:
        """Make the next batch the first of that epoch, as if all epochs before it had been run.

        Raises
        ------
        TypeError
            If the batches of an epoch do not follow from its number.
        """
        raise TypeError(f"{type(self).__name__} cannot begin with a given epoch")

    def state_dict(self) -> dict[str, Any]:
        """Return the position of the run, from which another process can continue exactly."""
        raise TypeError(f"{type(self).__name__} has no state that could be saved")

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a saved state; the next loop delivers the rest of that epoch."""
        raise TypeError(f"{type(self).__name__} has no state that could be loaded")

    def report(self, advise: bool = True) -> EpochReport:
        """Return where the time of the last epoch went, or of the running one so far.

        Parameters
        ----------
        advise : bool
            Also look for the change that promises most, and for the rate that it will have.  A
            provider of images tries changes on some of its images, for less than two seconds.

        Returns
        -------
        EpochReport
            Print it; before the first batch it has 0 images.  Its `prometheus` has the same
            numbers for a monitoring system.
        """
        report = self._provider_times.report(self._provider_counters())
        return self._provider_advice(report) if advise and report.images else report

    def _provider_counters(self) -> dict[str, float]:
        """Return the counters of what makes the batches; see `EpochTimes`."""
        return {}

    def _provider_advice(self, report: EpochReport) -> EpochReport:
        """Return a report with advice."""
        return report

    def close(self) -> None:
        """Stop the background work; batches handed out stay valid.  Idempotent."""

    # -- a loop over batches ----------------------------------------------------------------------

    @property
    def batch_size(self) -> int:
        """Samples in a batch, padding included."""
        return described_size([*self.provide_data, *(self.provide_label or ())])

    def __iter__(self) -> AbstractDataProviderState:
        if self._provider_asked:
            self.reset()
        return AbstractDataProviderState(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {', '.join(shown_arrays(self))}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _noting(method: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The method, which notes whether anything was asked for since the epoch began."""
    asked = name in ("next", "iter_next")

    @functools.wraps(method)
    def noting(self: AbstractDataProvider, *arguments: Any, **keywords: Any) -> Any:
        own = name == "next" and type(self).next is noting  # no call of super()
        times = self._provider_times
        if own:
            if not (self._provider_asked and times.begun):
                times.begin(self._provider_counters())
            times.ask()
        try:
            result = method(self, *arguments, **keywords)
            if own:
                _describe(self, result)
                times.make(sample_count(result))
        except BaseException:  # a batch may be lost; a reset that failed is none
            if asked:
                self._provider_asked = True
            raise
        self._provider_asked = asked
        if not asked:
            self._provider_batches = None  # the generator of the epoch that was left
        return result

    noting._provider_notes = True  # type: ignore[attr-defined]
    return noting


def sample_count(batch: Any) -> int:
    """Return the samples of a batch that are no padding; 1 for what does not say."""
    try:
        return int(batch.count)
    except (AttributeError, TypeError, ValueError, IndexError):
        return 1


def _describing(method: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The method `eachbatch`, whose batches are described."""

    @functools.wraps(method)
    def describing(self: AbstractDataProvider) -> Any:
        batches = method(self)
        if type(self).eachbatch is not describing or getattr(batches, "provider", None) is self:
            return batches  # for a method that calls this one, or of a loop that describes them
        return (_describe(self, batch) for batch in batches)

    describing._provider_notes = True  # type: ignore[attr-defined]
    return describing


def _describe(provider: AbstractDataProvider, batch: Any) -> Any:
    """Name the arrays of a batch, and compare the first one with what was announced."""
    if isinstance(batch, DataBatch):
        if batch.provide_data is None or batch.provide_label is None:
            named(provider, batch)
        if not provider._provider_checked and batch.bucket_key is None:
            check_announced(provider, batch.data, batch.label)
    provider._provider_checked = True
    return batch


def check_announced(provider: Any, data: Sequence[Any], label: Sequence[Any]) -> None:
    """Compare arrays with what a provider announces; None, 0 and -1 fit any length.

    Element types are not compared: a plain pair says none, and MXNet's iterators convert.
    """
    kind = type(provider).__name__
    for part, arrays in (("provide_data", data), ("provide_label", label)):
        announced = getattr(provider, part, None) or ()
        if announced and len(announced) != len(arrays):
            names = ", ".join(str(desc[0]) for desc in announced)
            raise ValueError(
                f"{kind} announces {len(announced)} arrays in {part} ({names}), and its first "
                f"batch has {len(arrays)}"
            )
        for desc, array in zip(announced, arrays, strict=False):
            shape = getattr(array, "shape", None)
            if shape is not None and not _fits(tuple(shape), tuple(desc[1])):
                raise ValueError(
                    f"{kind} announces {shape_text(desc[0], desc[1])}, and in its first batch that "
                    f"is {tuple(shape)}: correct {part}, or pad the batch and say so in its pad"
                )


def _fits(shape: tuple[int, ...], announced: tuple[Any, ...]) -> bool:
    pairs = zip(shape, announced, strict=False)
    return len(shape) == len(announced) and all(not m or m in (-1, n) for n, m in pairs)


def _needs_eachbatch(kind: type[AbstractDataProvider], missing: str) -> None:
    """Raise unless `eachbatch` is what makes the batches."""
    base = AbstractDataProvider
    if kind.eachbatch is base.eachbatch or kind.next is not base.next:
        raise TypeError(f"{kind.__name__} defines neither {missing}() nor eachbatch() alone")


def shown_arrays(provider: AbstractDataProvider) -> list[str]:
    """Describe the arrays of a batch for `repr`."""
    described = (*getattr(provider, "provide_data", ()), *getattr(provider, "provide_label", ()))
    return [shape_text(desc[0], desc[1], getattr(desc, "dtype", None)) for desc in described]


def described_size(descriptions: Sequence[Any]) -> int:
    """Return how many samples a batch has whose first array is described so."""
    if not descriptions:
        raise TypeError("the size of a batch is unknown: provide_data describes no array")
    desc = descriptions[0]
    return desc[1][DataDesc.get_batch_axis(getattr(desc, "layout", None))]
