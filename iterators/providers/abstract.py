"""What every provider is: an iterable of batches.

`AbstractDataProvider` says what a loop over batches does, in terms of `next` and `reset`.  It makes
no batches and keeps no position.  What older systems ask of their iterators is answered by the
mix-ins that it is made of.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..core.batch import DataBatch, DataDesc, shown
from .protocol import AbstractDataProviderState, MXNetJlProtocol, MXNetProtocol
from .sample_iterator import DatasetProtocol

__all__ = ["AbstractDataProvider", "described_size"]


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

    _loop: object | None = None
    #: Batches of the running epoch, where `eachbatch` makes them.
    _epoch_batches: Iterator[DataBatch] | None = None
    #: Whether anything was asked for since the epoch began or was resumed, as far as is known.
    _delivered = True

    # -- what a class of its own defines ----------------------------------------------------------

    #: Name, shape, dtype and layout of the data arrays of a batch.
    provide_data: Sequence[DataDesc]
    #: The same for the label arrays; empty without labels.
    provide_label: Sequence[DataDesc]

    def next(self) -> DataBatch:
        """The next batch of the epoch; StopIteration when it is over, until `reset`."""
        if self._epoch_batches is None:
            self._needs_eachbatch("next")
            self._epoch_batches = iter(self.eachbatch())
        return next(self._epoch_batches)

    def reset(self) -> None:
        """Make sure that the next batch is the first of an epoch."""
        self._needs_eachbatch("reset")
        self._epoch_batches = self._current = self._loop = None

    def _needs_eachbatch(self, missing: str) -> None:
        """Raise unless `eachbatch` is what makes the batches."""
        kind, base = type(self), AbstractDataProvider
        if kind.eachbatch is base.eachbatch or kind.next is not base.next:
            raise TypeError(f"{kind.__name__} defines neither {missing}() nor eachbatch() alone")

    def set_epoch(self, epoch: int) -> None:
        """Make the next batch the first of that epoch, as if those before it had been gone through.

        Raises
        ------
        TypeError
            If what comes in an epoch does not follow from its number.
        """
        raise TypeError(f"{type(self).__name__} cannot begin with an epoch that it is told")

    def state_dict(self) -> dict[str, Any]:
        """The position of the run: what is needed to go on exactly here in another process."""
        raise TypeError(f"{type(self).__name__} has no state that could be saved")

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where a saved state says; the next loop delivers the rest of that epoch."""
        raise TypeError(f"{type(self).__name__} has no state that could be loaded")

    def close(self) -> None:
        """Stop the background work; batches handed out stay valid.  Idempotent."""

    # -- a loop over batches ----------------------------------------------------------------------

    @property
    def batch_size(self) -> int:
        """Samples in a batch, padding included."""
        return described_size([*self.provide_data, *(self.provide_label or ())])

    def __iter__(self) -> AbstractDataProviderState:
        self._begin()
        return AbstractDataProviderState(self)

    def _begin(self) -> None:
        """Go to where a new loop starts."""
        if self._delivered:
            self.reset()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {', '.join(self._shown())}>"

    def _shown(self) -> list[str]:
        """What `repr` says: what a batch looks like."""
        described = (*getattr(self, "provide_data", ()), *getattr(self, "provide_label", ()))
        return [shown(desc[0], desc[1], getattr(desc, "dtype", None)) for desc in described]

    def __enter__(self):
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def described_size(descriptions: Sequence[Any]) -> int:
    """Samples in a batch whose first array is described so, by a `DataDesc` or a plain pair.

    Raises
    ------
    TypeError
        If nothing is described.

    Examples
    --------
    >>> described_size([("data", (4, 2))])
    4
    """
    if not descriptions:
        raise TypeError("the size of a batch is unknown: provide_data describes no array")
    desc = descriptions[0]
    return desc[1][DataDesc.get_batch_axis(getattr(desc, "layout", None))]
