"""Epochs of batches from an order of records: exact positions, prefetching, parts and states.

`PlannedProvider` turns a plan, which says what records make up which batch, and an *engine* that
produces arrays for them into epochs of `DataBatch`.  It owns the position and keeps the engine busy
ahead of the consumer.  It does not know where samples come from.
"""

from __future__ import annotations

import logging
import time
import weakref
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from recordio.errors import ErrorBudgetError, RecordIOError

from ..core.batch import DataBatch, DataDesc
from ..core.device import Placement
from ..core.finite_iterator import FiniteDatasetIterator
from ..core.order import BatchPlan
from ..core.order.position import Position
from ..core.parameters import choice, entries, integer, real
from ..core.spec import SpecError
from ..core.turns import Turns
from .abstract import AbstractDataProvider
from .batch_form import BatchForm, SpecBatch
from .sample_iterator import iterate_samples

__all__ = ["Engine", "PlannedProvider"]

STATE_VERSION = 1
LAST_EPOCH = (1 << 32) - 1  # 32 bits of the random numbers' counter are the epoch's; then 0 again

logger = logging.getLogger("iterators")


class Engine(Protocol):
    """Produces arrays for batches of records, in the order of submission, ahead of the consumer.

    `data` and `label` are what it makes of a batch: one array, or a list of one for each
    description of the provider.  A batch that cannot be made at all has ``data=None`` and one
    failure.
    """

    depth: int

    def start(self) -> None:
        """Start the threads, once there is somebody to stop them; idempotent."""

    @property
    def pending(self) -> int:
        """Number of batches submitted and not yet collected."""

    def submit(self, records: np.ndarray, epoch: int, draws: np.ndarray) -> None:
        """Start work on a batch; `draws` tells occurrences of a record in the epoch apart."""

    def collect(self) -> tuple[Any, Any, np.ndarray, Sequence[tuple[int, Exception]]]:
        """Wait for the oldest batch: data, label, sample ids, failed slots with their errors."""

    def retry(
        self, record: int, epoch: int, draw: int, data: Any, label: Any, ids: Any, slot: int
    ) -> None:
        """Put another record into a slot of a collected batch; raises what is wrong with it."""

    def stats(self) -> dict[str, float]:
        """Counters of the work done so far."""

    def cancel(self) -> None:
        """Forget all batches under way."""

    def close(self) -> None:
        """Stop; idempotent."""


@dataclass
class _Request:
    position: Position
    pad: int
    draws: np.ndarray


class _Skipped:
    """Records that could not be used, once each, and the budget for them."""

    def __init__(self, on_error: str, budget: float | None, num_samples: int) -> None:
        self.on_error = choice("on_error", on_error, ("raise", "skip"))
        # By file and place in it: the places of several files are counted apart.
        self.records: dict[tuple[str | None, int | None], tuple[int | None, str]] = {}
        self.limit: float | None = None
        if budget is None:
            return
        if on_error != "skip":
            raise ValueError(f"error_budget={budget!r} needs on_error='skip'")
        if isinstance(budget, float) and budget < 1:
            self.limit = real("error_budget", budget, 0, 1) * num_samples
        else:
            self.limit = integer("error_budget", budget, low=0)

    def add(self, error: RecordIOError) -> None:
        """Count an error; raises when there are more than the budget allows."""
        name = error.record_id if error.record_id is not None else error.record
        self.records.setdefault((error.path, error.record), (name, str(error)))
        if self.limit is not None and len(self.records) > self.limit:
            raise ErrorBudgetError(
                f"{len(self.records)} records could not be used, which is more than the "
                f"error_budget allows ({self.limit:g}); the last one: {error}"
            ) from error


class PlannedProvider(AbstractDataProvider):
    """Base class of the providers that know their samples: files and arrays.

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
    on_error : {"raise", "skip"}
        Whether a record that cannot be used raises, or is replaced by the next good one of the
        epoch and listed in `skipped`.
    error_budget : int or float, optional
        With "skip": how many different records may be skipped, as a number or, below 1, as a
        fraction of `num_samples`, before an `ErrorBudgetError` is raised.  None for any number.
    skipped : sequence of RecordIOError
        Records already known to be of no use.
    settings : mapping of str to object
        What a saved state must agree with to be loaded.
    verbose : bool
        Log a line at the end of every epoch.
    form : BatchForm, optional
        What batches must look like, if not like the arrays of the engine.

    Notes
    -----
    `next` may be called by several threads; each batch goes to one of them.
    """

    def __init__(
        self,
        plan: BatchPlan,
        engine: Engine,
        data_desc: list[DataDesc],
        label_desc: list[DataDesc],
        placement: Placement,
        epoch: int = 0,
        *,
        on_error: str = "raise",
        error_budget: float | None = None,
        skipped: Sequence[RecordIOError] = (),
        settings: Mapping[str, Any] | None = None,
        verbose: bool = False,
        form: BatchForm | None = None,
    ) -> None:
        # First, and the threads last, so that nothing that comes in between leaves any behind.
        self._finalizer = weakref.finalize(self, engine.close)
        self._plan = plan
        self._empty = plan.empty
        self._engine = engine
        self._form = form
        #: What the engine makes; what is handed out may have another form.
        self._stored = (data_desc, label_desc)
        self.provide_data, self.provide_label = data_desc, label_desc
        if form is not None:
            self.provide_data, self.provide_label = form.bind(data_desc, label_desc)
            if not form.has_data:
                raise SpecError("data_specs asks for labels alone: ask for the data as well")
            if not issubclass(self.batch_type, SpecBatch):
                self.batch_type = SpecBatch
        self._rng: Any = None
        self._placement = placement
        # Of the whole epoch: the places that all parts have taken.
        self._position = Position(integer("epoch", epoch, low=0, high=LAST_EPOCH))
        self._step = plan.batch_size * plan.order.stride  # places that a batch of every part takes
        self._delivered = False  # asked for anything since the epoch began or was resumed
        self._requests: deque[_Request] = deque()
        self._turns = Turns()  # for position, requests and engine
        self._inside = False
        self._batches_left = plan.batches  # from a place on
        self._current: DataBatch | None = None
        self._loop: object | None = None
        self._skipped = _Skipped(on_error, error_budget, plan.order.count())
        for error in skipped:
            self._skipped.add(error)
        # The places where the last search for a good record began and ended, and its epoch.
        self._searched = (-1, 0, 0)
        self._settings = {name: str(value) for name, value in (settings or {}).items()}
        self._verbose = verbose
        self._samples = 0
        self._waited = 0.0
        self._busy = 0.0
        self._returned: float | None = None
        engine.start()

    # -- what there is --------------------------------------------------------------------------

    @property
    def batch_size(self) -> int:
        """Samples in a batch, padding included."""
        return self._plan.batch_size

    @property
    def num_samples(self) -> int:
        """Samples of this part in an epoch."""
        return self._plan.order.count()

    @property
    def epoch(self) -> int:
        """Number of the running epoch."""
        return self._position.epoch

    @property
    def skipped(self) -> list[tuple[int | None, str]]:
        """Id and reason of every record that was replaced, in the order in which they were met."""
        return list(self._skipped.records.values())

    def __len__(self) -> int:
        """Number of batches of a whole epoch."""
        return self._plan.batches()

    def stats(self) -> dict[str, float]:
        """Counters since the provider was made.

        Returns
        -------
        dict
            `samples` delivered, padding not counted; `wait_seconds`, for which the consumer waited
            for data; `busy_seconds`, which it spent between two batches; and the counters of the
            engine.
        """
        return {
            "samples": self._samples,
            "wait_seconds": self._waited,
            "busy_seconds": self._busy,
            **self._engine.stats(),
        }

    # -- iteration ------------------------------------------------------------------------------

    def _begin(self) -> None:
        if self._delivered:
            self.reset()

    def next(self) -> DataBatch:
        """The next batch of the epoch.

        Raises
        ------
        StopIteration
            When the epoch is over, again and again until `reset`.
        RecordIOError
            If a record of the batch cannot be used.  The next call goes on behind the batch.
        """
        with self._turns.lock:
            if self._inside:  # the lock lets the same thread in again
                raise RuntimeError("next() was called by a signal handler that interrupted next()")
            try:
                self._inside = True
                return self._next()
            finally:
                self._inside = False

    def _next(self) -> DataBatch:
        position = self._position
        self._current = None
        if not self._batches_left(position.place):
            self._delivered = True  # the rest of an epoch may be empty; a new loop means the next
            raise StopIteration
        asked = time.perf_counter()
        self._keep_busy(position)
        data, label, ids, failures = self._engine.collect()
        request = self._requests.popleft()
        following = self._behind(position)
        try:
            self._keep_busy(following)
            for slot, error in failures:
                if data is None or self._skipped.on_error == "raise":
                    raise error
                self._replace(position, slot, int(request.draws[slot]), error, data, label, ids)
            batch = self._batch(data, label, ids, request.pad)
        except Exception:
            self._move(following)
            raise
        # An interrupt before this line costs no batch: it is made again.
        self._move(following)
        self._current = batch
        self._count(batch, asked)
        return batch

    def _move(self, position: Position) -> None:
        self._position = position
        self._delivered = True

    def _replace(
        self,
        position: Position,
        slot: int,
        draw: int,
        error: Exception,
        data: Any,
        label: Any,
        ids: Any,
    ) -> None:
        """Fill a slot with the next good record of the epoch; the slot keeps its draw number."""
        if not isinstance(error, RecordIOError):
            raise error
        self._skipped.add(error)
        (epoch, done), order = position, self._plan.order
        first = done + (slot + 1) * order.stride
        last = max(slot + 1, order.count(done)) + order.count()
        known, begin, found = self._searched
        if known != epoch or not begin <= first <= found:
            begin = found = first
        # All places from `begin` to `found` are known to be bad, so that long runs of bad records
        # are gone through once and not again for every one of them.
        for place in range(found, done + last * order.stride, order.stride):
            record = self._plan.record(epoch, (place - done) // order.stride, done)
            try:
                self._engine.retry(record, epoch, draw, data, label, ids, slot)
                self._searched = (epoch, begin, place)
                return
            except RecordIOError as another:
                self._skipped.add(another)
        raise error

    def _count(self, batch: DataBatch, asked: float) -> None:
        now = time.perf_counter()
        if self._returned is not None:
            self._busy += asked - self._returned
        self._waited += now - asked
        self._samples += batch.count
        self._returned = now
        if self._verbose and not self._batches_left(self._position.place):
            logger.info(
                "epoch %d: %d samples so far, waited %.1f s for data, %d records skipped",
                self.epoch,
                self._samples,
                self._waited,
                len(self._skipped.records),
            )

    def _batch(self, data: Any, label: Any, ids: np.ndarray, pad: int) -> DataBatch:
        data, label = self._arrays(data, label)
        if self._form is not None:
            kind: Any = self.batch_type
            good = self.batch_size if self._plan.first_done < 0 else self.batch_size - pad
            place, finish = self._placement.place, self._finish
            return self._form.batch(data, label, good, place, finish, kind, pad=pad, index=ids)
        placed = self._placement.place([*data, *label])
        return self.batch_type(
            self._finish(placed[: len(data)]),
            placed[len(data) :],
            pad=pad,
            index=ids,
            provide_data=self.provide_data,
            provide_label=self.provide_label,
        )

    def _arrays(self, data: Any, label: Any) -> tuple[list[Any], list[Any]]:
        """What the engine made, as one array for each description."""
        data = data if isinstance(data, list) else [data]
        if not self._stored[1]:
            return data, []
        return data, label if isinstance(label, list) else [label]

    def _finish(self, data: Sequence[Any]) -> list[Any]:
        """What is left to do with data arrays where they are wanted."""
        return list(data)

    def _keep_busy(self, position: Position) -> None:
        """Submit batches ahead of the consumer, from a position on and across epochs."""
        depth = self._engine.depth
        if len(self._requests) == self._engine.pending == depth:
            if self._requests[0].position == position:
                return
        elif self._empty:
            return
        following = self._settle(position)
        moved = self._requests and self._requests[0].position != following
        if moved or len(self._requests) != self._engine.pending:
            # reset() or a restored state moved the position, or an interrupt (Ctrl-C) came between
            # the engine's step and ours.
            self._engine.cancel()
            self._requests.clear()
        if self._requests:
            last = self._requests[-1].position
            following = self._settle(self._behind(last))
        while len(self._requests) < depth:
            epoch, done = following
            rows, pad = self._plan.rows(epoch, 0, done)
            draws = self._plan.draws(0, done)
            self._engine.submit(rows, epoch, draws)
            self._requests.append(_Request(following, pad, draws))
            following = self._settle(self._behind(following))

    def _behind(self, position: Position) -> Position:
        """Where the batch at a position ends, which may be behind the end of the epoch."""
        return Position(position.epoch, position.place + self._step)

    def _settle(self, position: Position) -> Position:
        """The same position, or, at the end of an epoch, the start of the next one with a batch."""
        while not self._batches_left(position.place):
            position = self._end(position)
            if self._empty:
                break
        return position

    def _end(self, position: Position) -> Position:
        """Where the next epoch starts when this one is at its end."""
        return Position((position.epoch + 1) & LAST_EPOCH, self._plan.carried(position.place))

    def reset(self) -> None:
        """Make sure that the next batch is the first of an epoch.

        At the start of an epoch this does nothing, so that ``it.reset(); for batch in it:`` loses
        no epoch; anywhere else the next epoch begins.
        """
        with self._turns.lock:
            position, asked = self._position, self._delivered
            if asked or position.place > 0:
                over = not self._batches_left(position.place)
                following = Position((position.epoch + 1) & LAST_EPOCH)
                position = self._end(position) if over else following
            self._go_to(position)

    def set_epoch(self, epoch: int) -> None:
        """Make the next batch the first of that epoch.

        With ``last_batch_handle="roll_over"`` the epoch has none of the samples before it.
        """
        with self._turns.lock:
            self._go_to(Position(integer("epoch", epoch, low=0, high=LAST_EPOCH)))

    def _go_to(self, position: Position) -> None:
        """Begin at a position."""
        self._position = position
        self._searched = (-1, 0, 0)
        self._delivered = False
        self._current = None
        self._loop = None

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

        Every call begins an epoch of the provider, and a later loop over it the next one.

        Parameters
        ----------
        mode : str or class, optional
            None for the order of the provider.  Otherwise the samples of this part are taken in the
            order in which they are stored, and the mode says which of them make up a batch: all of
            `DenseDesignMatrix.iterator` but "even_sequences".
        batch_size, num_batches : int, optional
            As there; by default the batches of the provider.  No batch can be larger than those.
        rng : seed or generator, optional
            By default one generator for all iterators of the provider.
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
            For a mode or source that does not exist, and more batches than there are samples for.
        """
        return iterate_samples(self, mode, batch_size, num_batches, rng, data_specs, return_tuple)

    # -- state ----------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """The position of the run: what is needed to go on exactly here in another process.

        Returns
        -------
        dict
            Integers and strings only, a few hundred bytes whatever the size of the data.  Only what
            was delivered counts, not what was prefetched.  A part that is through its share says
            where it stopped as long as other parts may have batches left, so that the state of any
            part serves all.
        """
        epoch, done = self._position
        while self._plan.is_over(done):
            epoch, done = (epoch + 1) & LAST_EPOCH, self._plan.carried(done)
            if self._plan.empty:
                break
        return {
            "version": STATE_VERSION,
            "epoch": epoch,
            "done": done,
            "settings": dict(self._settings),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where a saved state says; the next loop delivers the rest of that epoch.

        Raises
        ------
        ValueError
            If the state belongs to other data or other settings; the difference is named.
        """
        entries(state)
        if state.get("version") != STATE_VERSION:
            raise ValueError(
                f"the state has version {state.get('version')!r}, "
                f"this release reads {STATE_VERSION}"
            )
        saved = state.get("settings")
        if not isinstance(saved, Mapping) or not {"epoch", "done"} <= set(state):
            raise ValueError("the state is incomplete: it needs epoch, done and settings")
        for name in [*self._settings, *saved]:
            if saved.get(name) != self._settings.get(name):
                raise ValueError(
                    f"the state was saved with {name}={saved.get(name)}, this provider has "
                    f"{name}={self._settings.get(name)}"
                )
        position = Position.saved(
            state, place="done", low=self._plan.first_done, last_epoch=LAST_EPOCH
        )
        with self._turns.lock:
            self._go_to(position)

    # -- life -----------------------------------------------------------------------------------

    def close(self) -> None:
        """Stop the background work; batches handed out stay valid.  Idempotent."""
        self._finalizer()

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(
            f"{type(self).__name__} cannot be pickled or copied, it has threads of its own: make "
            "it where it is used, and hand over state_dict() to go on where this one is"
        )
