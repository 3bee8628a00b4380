"""What every provider is: an iterable of batches with MXNet's protocol, epochs, and exact positions.

`AbstractDataProvider` turns an order of records and an *engine* that produces arrays for them into
epochs of `DataBatch`.  It owns the position, keeps the engine busy ahead of the consumer, and answers
the protocols of MXNet and MXNet.jl.  It does not know where samples come from.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from ..core.batch import DataBatch, DataDesc
from ..core.device import Placement
from ..core.order import BatchPlan

__all__ = ["AbstractDataProvider", "Engine"]


class Engine(Protocol):
    """Produces arrays for batches of records, in the order of submission, ahead of the consumer."""

    depth: int

    def submit(self, records: np.ndarray, epoch: int) -> None:
        """Start work on a batch."""

    def collect(self) -> tuple[Any, Any, np.ndarray, list[tuple[int, Exception]]]:
        """Wait for the oldest batch: data, label, sample ids, failed slots with their errors."""

    def cancel(self) -> None:
        """Forget all batches under way."""

    def close(self) -> None:
        """Stop; idempotent."""


@dataclass(frozen=True)
class Position:
    """Where a run is: the next batch to deliver."""

    epoch: int = 0
    number: int = 0
    #: Places of the epoch taken before batch 0, by this part and all others.
    done: int = 0


@dataclass
class _Request:
    position: Position
    pad: int


class AbstractDataProvider:
    """Base class of all providers.

    Parameters
    ----------
    plan : BatchPlan
        Which records make up which batch.
    engine : Engine
        What turns records into arrays.
    data_desc, label_desc : list of DataDesc
        The arrays of a batch.
    placement : Placement
        Where the arrays go.
    epoch : int
        Number of the first epoch.

    Notes
    -----
    ``for batch in provider`` runs one epoch; iterating again runs the next one, and a loop that was
    left early is followed by a new epoch.  Only one loop can use a provider at a time: an older loop
    that goes on after a newer one has begun gets a RuntimeError.
    """

    def __init__(
        self,
        plan: BatchPlan,
        engine: Engine,
        data_desc: list[DataDesc],
        label_desc: list[DataDesc],
        placement: Placement,
        epoch: int = 0,
    ) -> None:
        self._plan = plan
        self._engine = engine
        self._data_desc = data_desc
        self._label_desc = label_desc
        self._placement = placement
        self._position = Position(epoch)
        self._delivered = False  # anything of this epoch since it began or was resumed
        self._requests: deque[_Request] = deque()
        self._current: DataBatch | None = None
        self._loop: object | None = None
        self._finalizer = weakref.finalize(self, engine.close)

    # -- what there is --------------------------------------------------------------------------

    @property
    def provide_data(self) -> list[DataDesc]:
        """Name, shape, dtype and layout of the data arrays of a batch."""
        return self._data_desc

    @property
    def provide_label(self) -> list[DataDesc]:
        """The same for the label arrays; empty without labels."""
        return self._label_desc

    @property
    def batch_size(self) -> int:
        """Samples in a batch, padding included."""
        return self._plan.batch_size

    def get_batch_size(self) -> int:
        """`batch_size`, under the name of MXNet.jl."""
        return self.batch_size

    @property
    def num_samples(self) -> int:
        """Samples of this part in an epoch."""
        return self._plan.order.count()

    @property
    def epoch(self) -> int:
        """Number of the running epoch."""
        return self._position.epoch

    def __len__(self) -> int:
        """Number of batches of a whole epoch."""
        return self._plan.batches()

    # -- iteration ------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[DataBatch]:
        if self._delivered:
            self.reset()
        loop = self._loop = object()
        return self._run_epoch(loop)

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
            yield batch

    def next(self) -> DataBatch:
        """The next batch of the epoch.

        Raises
        ------
        StopIteration
            When the epoch is over, again and again until `reset`.
        RecordIOError
            If a record of the batch cannot be used.  The next call goes on behind the batch.
        """
        position = self._position
        if position.number >= self._plan.batches(position.done):
            self._current = None
            raise StopIteration
        self._keep_busy()
        request = self._requests.popleft()
        try:
            arrays, label, ids, failures = self._engine.collect()
        except BaseException:
            self._requests.appendleft(request)
            raise
        self._position = replace(position, number=position.number + 1)
        self._delivered = True
        self._keep_busy()
        self._current = None
        if failures:
            raise failures[0][1]
        self._current = self._batch(arrays, label, ids, request.pad)
        return self._current

    def __next__(self) -> DataBatch:
        return self.next()

    def _batch(self, data: Any, label: Any, ids: np.ndarray, pad: int) -> DataBatch:
        placed = self._placement.place([data, label] if self._label_desc else [data])
        return DataBatch(
            placed[:1],
            placed[1:],
            pad=pad,
            index=ids,
            provide_data=self._data_desc,
            provide_label=self._label_desc,
        )

    def _keep_busy(self) -> None:
        """Submit batches ahead of the consumer, across the end of the epoch."""
        if not len(self):
            return
        following = self._settle(self._position)
        if self._requests and self._requests[0].position != following:
            self._engine.cancel()  # the position was moved by reset() or a restored state
            self._requests.clear()
        if self._requests:
            last = self._requests[-1].position
            following = self._settle(replace(last, number=last.number + 1))
        while len(self._requests) < self._engine.depth:
            rows, pad = self._plan.rows(following.epoch, following.number, following.done)
            self._engine.submit(rows, following.epoch)
            self._requests.append(_Request(following, pad))
            following = self._settle(replace(following, number=following.number + 1))

    def _settle(self, position: Position) -> Position:
        """The same position, or the start of the next epoch if it is the end of one."""
        if position.number < self._plan.batches(position.done):
            return position
        return Position(position.epoch + 1)

    def reset(self) -> None:
        """Make sure that the next batch is the first of an epoch.

        At the start of an epoch this does nothing, so that ``it.reset(); for batch in it:`` loses no
        epoch; anywhere else the next epoch begins.
        """
        self._loop = None
        self._current = None
        self._delivered = False
        if self._position.number or self._position.done or not len(self):
            self._position = Position(self._position.epoch + 1)

    # -- MXNet's low-level protocol -------------------------------------------------------------

    def iter_next(self) -> bool:
        """Advance to the next batch; False at the end of the epoch."""
        try:
            self.next()
        except StopIteration:
            return False
        return True

    @property
    def current(self) -> DataBatch:
        """The batch that `iter_next` or `next` advanced to."""
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

    # -- the protocol of MXNet.jl ---------------------------------------------------------------

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

    # -- life -----------------------------------------------------------------------------------

    def close(self) -> None:
        """Stop the background work and free its memory; batches handed out stay valid.  Idempotent."""
        self._finalizer()

    def __enter__(self):
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
