"""What every provider is: an iterable of batches that also speaks MXNet's and MXNet.jl's protocols.

`AbstractDataProvider` says what a loop over batches does and answers both protocols in terms of
`next` and `reset`.  It makes no batches and keeps no position.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..core.batch import DataBatch, DataDesc
from ..core.finite_iterator import FiniteDatasetIterator
from ..views.batch_views import view_batch
from ..views.sets import Batch
from .protocol import load_arrays
from .sample_iterator import iterate_batches

__all__ = ["AbstractDataProvider"]


class AbstractDataProvider:
    """Base class of all providers.

    A class of your own needs `provide_data`, `provide_label`, `next` and `reset`; everything else
    follows from them.

    Notes
    -----
    ``for batch in provider`` runs one epoch; iterating again runs the next one, and a loop that was
    left early is followed by a new epoch.  Only one loop can use a provider at a time: an older
    loop that goes on after a newer one has begun gets a RuntimeError.

    Examples
    --------
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
    """

    #: Class of the batches.
    batch_type: type[DataBatch] = DataBatch

    _loop: object | None = None
    _current: DataBatch | None = None

    # -- what a class of its own defines ----------------------------------------------------------

    #: Name, shape, dtype and layout of the data arrays of a batch.
    provide_data: Sequence[DataDesc]
    #: The same for the label arrays; empty without labels.
    provide_label: Sequence[DataDesc]

    def next(self) -> DataBatch:
        """The next batch of the epoch; StopIteration when it is over, until `reset`."""
        raise TypeError(f"{type(self).__name__} does not define next()")

    def reset(self) -> None:
        """Make sure that the next batch is the first of an epoch."""
        raise TypeError(f"{type(self).__name__} does not define reset()")

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
        desc = self.provide_data[0]
        return desc.shape[DataDesc.get_batch_axis(desc.layout)]

    def get_batch_size(self) -> int:
        """`batch_size`, under the name of MXNet.jl."""
        return self.batch_size

    def __iter__(self) -> Iterator[DataBatch]:
        self._begin()
        loop = self._loop = object()
        return self._run_epoch(loop)

    def _begin(self) -> None:
        """Go to where a new loop starts."""
        self.reset()

    def eachbatch(self) -> Iterator[DataBatch]:
        """Batches of one epoch (MXNet.jl's name for iterating over the provider)."""
        return iter(self)

    def _run_epoch(self, loop: object) -> Iterator[DataBatch]:
        while True:
            if self._loop is not loop:
                raise RuntimeError(
                    "this provider is used by another loop that began later; nested or parallel "
                    "loops need a provider each"
                )
            try:
                batch = self.next()
            except StopIteration:
                return
            self._current = batch
            yield batch

    def __next__(self) -> DataBatch:
        return self.next()

    def __enter__(self):
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def iterator(
        self,
        mode: Any = None,
        batch_size: int | None = None,
        num_batches: int | None = None,
        rng: Any = None,
        data_specs: Any = None,
        return_tuple: bool = False,
    ) -> FiniteDatasetIterator:
        """Batches of one epoch in any form, by Pylearn2's rules.

        Parameters
        ----------
        mode : {None, "sequential", "even_sequential"}
            The batches as they come; "even" leaves out those with padding.
        batch_size : int, optional
            That of the provider, if it is given.
        num_batches : int, optional
            How many at most.
        rng : None
            Nothing is drawn here.
        data_specs : (Space, source), optional
            Flat; by default what the provider was asked for when it was made, or all data and
            label arrays.
        return_tuple : bool
            Give a tuple for a single source as well.

        Returns
        -------
        FiniteDatasetIterator
            Of arrays or tuples of them, the last one short instead of padded.

        Raises
        ------
        ValueError
            For a mode or a size that this provider does not have, and a source that does not exist.

        Examples
        --------
        >>> from iterators import ArrayDataProvider, ResizeIter
        >>> provider = ResizeIter(ArrayDataProvider(np.arange(3), batch_size=2), 3)
        >>> [batch.tolist() for batch in provider.iterator("even_sequential")]
        [[0, 1], [0, 1]]
        """
        return iterate_batches(self, mode, batch_size, num_batches, rng, data_specs, return_tuple)

    # -- MXNet's low-level protocol ---------------------------------------------------------------

    def iter_next(self) -> bool:
        """Advance to the next batch; False at the end of the epoch."""
        self._current = None
        try:
            self._current = self.next()
        except StopIteration:
            return False
        return True

    @property
    def current(self) -> DataBatch:
        """The batch that `iter_next` or the loop advanced to."""
        if self._current is None:
            raise RuntimeError("there is no current batch: call iter_next() or next() first")
        return self._current

    def getdata(self) -> Any:
        """Data array of the current batch."""
        return self.current.data[0]

    def getlabel(self) -> Any:
        """Label array of the current batch; None without labels."""
        return self.current.label[0] if self.current.label else None

    def getpad(self) -> int:
        """Padding of the current batch."""
        return self.current.pad

    def getindex(self) -> np.ndarray:
        """Sample ids of the current batch."""
        return self.current.index

    # -- the protocol of MXNet.jl -----------------------------------------------------------------

    def count_samples(self, batch: DataBatch) -> int:
        """Samples of the batch that are not padding."""
        return batch.count

    def get_data(self, batch: DataBatch) -> list[Any]:
        """Data arrays of the batch, in the order of `provide_data`."""
        return batch.data

    def get_label(self, batch: DataBatch) -> list[Any]:
        """Label arrays of the batch, in the order of `provide_label`."""
        return batch.label

    def get(self, batch: DataBatch, name: str) -> Any:
        """The array of the batch that has this name; KeyError if none has."""
        return batch[name]

    def view(self, batch: DataBatch) -> Batch:
        """Views over the arrays of the batch, not copied; see `iterators.views.view_batch`."""
        return view_batch(batch)

    def load_data(self, batch: DataBatch, targets: Sequence[Any]) -> None:
        """Copy data arrays of the batch into `targets`, see `iterators.providers.protocol`."""
        load_arrays(self.get_data(batch), self.provide_data, targets)

    def load_label(self, batch: DataBatch, targets: Sequence[Any]) -> None:
        """Copy label arrays of the batch into `targets`, see `iterators.providers.protocol`."""
        load_arrays(self.get_label(batch), self.provide_label, targets)
