"""Epochs of batches from an order of records: exact positions, prefetching, parts and states.

`PlannedProvider` turns a plan, which says what records make up which batch, and an *engine* that
produces arrays for them into epochs of `DataBatch`.  It owns the position and keeps the engine busy
ahead of the consumer.  It does not know where samples come from.
"""

from __future__ import annotations

import functools
import logging
import os
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from recordio.errors import RecordIOError, RemoteFileError
from recordio.keywords.checks import checked_state, integer

from ..core.batch import DataBatch, DataDesc
from ..core.device import Placement
from ..core.fork_safe_lock import ForkSafeLock
from ..core.order import BatchPlan
from ..core.order.cutting import Position
from ..core.prefetch import Prefetcher
from ..spaces.finite_iterator import DATASET_SEED
from ..spaces.modes import generator
from .abstract import AbstractDataProvider, shown_arrays
from .batch_form import BatchForm
from .engine import ChosenBatch, ChosenSamples, ClosedEngine, Engine, MakeEngine, SkippedSamples
from .sample_iterator import Samples

STATE_VERSION = 1
LAST_EPOCH = (1 << 32) - 1  # 32 bits of the random numbers' counter are the epoch's; then 0 again

logger: logging.Logger = logging.getLogger("iterators")


@dataclass(slots=True)
class _Request:
    position: Position
    behind: Position
    rows: np.ndarray
    pad: int
    draws: np.ndarray
    #: Sizes and number of slots, nothing where all batches are alike.
    shape: tuple[Any, ...]


class FullBatch(DataBatch):
    """A batch of samples only, whatever `pad` says."""

    @property
    def count(self) -> int:
        """Number of samples."""
        return self._size()


class PlannedProvider(AbstractDataProvider):
    """Base class of the providers that know their samples: files and arrays.

    A `plan` says which records make up which batch, and the `engine` of the loop makes arrays of
    them, which `data_desc` and `label_desc` describe and `placement` brings to their device; an
    iterator with batches of another size has an engine from `make_engine`.  The batches have the
    `form` that was asked for, if any.  `skipped` are records already known to be of no use, and a
    saved state must agree with `settings`.

    Notes
    -----
    `next` may be called by several threads; each batch goes to one of them.
    """

    _provider_keeps_notes = True

    def __init__(
        self,
        plan: BatchPlan,
        engine: Engine,
        make_engine: MakeEngine,
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
        check: Callable[[], None] = lambda: None,
    ) -> None:
        # First, and the threads last, so that nothing that comes in between leaves any behind.
        self._finalizer = weakref.finalize(self, engine.close)
        if plan.empty and plan.order.count():
            raise ValueError(
                f"batch_size={plan.batch_size}: there are only {plan.order.count()} samples (in "
                "this part), and a short batch is dropped, so that every epoch would be empty: "
                "make it smaller, or keep short batches"
            )
        self._plan = plan
        self._empty = plan.empty
        #: Whether `pad` counts samples of the epoch before, which are no padding.
        self._rolls_over = plan.least_done < 0
        if self._rolls_over:
            self.batch_type: type[DataBatch] = FullBatch
        self._engine: Engine = engine
        self._make_engine: MakeEngine | None = make_engine
        self._form = form
        self._describe(data_desc, label_desc)
        if form is not None:
            self.batch_type = form.batch_type
        self._placement = placement
        self._to_device = self._provider_times.timing("upload", placement.place)
        # Of the whole epoch: the positions that all parts have taken.
        self._position = Position(integer("epoch", epoch, low=0, high=LAST_EPOCH))
        self._loaded: Position | None = None  # of a state, until the first batch moves on
        self._provider_asked = False  # asked for anything since the epoch began or was resumed
        self._requests: deque[_Request] = deque()
        self._process = os.getpid()
        self._access = ForkSafeLock()  # for position, requests and engine
        self._iterator_epoch = self._position.epoch  # of the next iterator
        self._iterators: weakref.WeakSet[ChosenSamples] = weakref.WeakSet()
        self._inside = False
        # Asked for when a batch is submitted, and again when it is delivered.
        self._any_left = functools.lru_cache(maxsize=64)(plan.any_left)
        self._skipped = SkippedSamples(on_error, error_budget, plan.order.count(), check)
        for error in skipped:
            self._skipped.add(error)
        # The positions where the last search for a good record began and ended, and its epoch.
        self._searched = (-1, 0, 0)
        self._settings = {name: str(value) for name, value in (settings or {}).items()}
        self._verbose = verbose
        self._samples = self._filled = 0
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
        return self._plan.count(self.epoch)

    @property
    def epoch(self) -> int:
        """Number of the running epoch."""
        return self._position.epoch

    @property
    def skipped(self) -> list[tuple[int | None, str]]:
        """(id, reason) of every record that was replaced, in the order of their discovery."""
        return list(self._skipped.records.values())

    def _describe(self, data: list[DataDesc], label: list[DataDesc]) -> None:
        """Note what the engine makes; what is handed out may have another form."""
        self._stored = data, label
        provided = (data, label) if self._form is None else self._form.bind(data, label)
        self.provide_data: Sequence[DataDesc] = provided[0]
        self.provide_label: Sequence[DataDesc] = provided[1]

    def _shown(self) -> list[str]:
        counts = {"samples": self.num_samples, "batches": len(self), "epoch": self.epoch}
        return [*(f"{name}={n}" for name, n in counts.items()), *shown_arrays(self)]

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {', '.join(self._shown())}>"

    def __len__(self) -> int:
        """Number of batches of a whole epoch; of the running one, if samples roll over."""
        left_over = -self._position.done % self.batch_size if self._rolls_over else 0
        return self._plan.batches(-left_over, self._position.epoch)

    def stats(self) -> dict[str, float]:
        """Counters since the provider was made.

        Returns
        -------
        dict
            `samples` delivered, padding not counted; `wait_seconds`, the time that the consumer
            waited for data; `busy_seconds`, the time that it spent between two batches; with
            buckets `filled`, positions of batches that were filled, and `carried_over`, the samples
            of all parts that are left for the next epoch; and the counters of the engine.
        """
        return {
            "samples": self._samples,
            "wait_seconds": self._waited,
            "busy_seconds": self._busy,
            **({"filled": self._filled} if self._plan.fills else {}),
            **self._plan.counts(self.epoch),
            **self._engine.stats(),
        }

    def _provider_counters(self) -> dict[str, float]:
        return self._engine.stats()

    # -- iteration ------------------------------------------------------------------------------

    def next(self) -> DataBatch:
        """Return the next batch of the epoch.

        Raises
        ------
        StopIteration
            At the end of the epoch, at every call until `reset`.
        RecordIOError
            If a record of the batch cannot be used.  The next call continues after this batch.
        """
        with self._access.lock:
            if self._inside:  # the lock lets the same thread in again
                raise RuntimeError("next() was called by a signal handler that interrupted next()")
            try:
                self._inside = True
                return self._next()
            finally:
                self._inside = False

    def _next(self) -> DataBatch:
        if self._process != os.getpid():  # a forked child, which freeing a CUDA tensor would end
            raise RuntimeError(Prefetcher.foreign)
        self._provider_current = None
        position = self._position
        if not self._any_left(position.done, position.epoch):
            self._provider_asked = True  # the rest may be empty; a new loop means the next epoch
            raise StopIteration
        asked = time.perf_counter()
        if not self._provider_asked:
            self._provider_times.begin(self._engine.stats())
        self._provider_times.ask()
        self._keep_busy(position)
        begin = time.perf_counter()
        data, label, ids, failures = self._engine.collect()
        waited = time.perf_counter() - begin
        request = self._requests.popleft()
        following = request.behind
        try:
            self._keep_busy(following)
            for slot, error in failures:
                draw = int(request.draws[slot])
                arrays = data, label, ids
                row = self._replace(request, slot, draw, error, arrays)
                request.rows = _with(request.rows, slot, row)
            batch = self._batch(data, label, ids, request.pad)
            batch.source = self._sources(request.rows, len(ids))
            if request.shape:
                batch.bucket_key = _common_size(*request.shape)
        except RemoteFileError:
            raise  # the same batch is made when the server answers again
        except Exception:
            self._move(following)
            raise
        # An interrupt before this line costs no batch: it is made again.
        self._move(following)
        self._provider_current = batch
        slots = request.shape[1] if request.shape else self._plan.batch_size
        self._filled += request.pad
        samples = slots - (0 if self._rolls_over else request.pad)
        self._provider_times.deliver(samples, waited)
        self._count(samples, asked)
        return batch

    def _move(self, position: Position) -> None:
        self._position = position
        self._provider_asked = True

    def _replace(
        self, request: _Request, slot: int, draw: int, error: Exception, arrays: tuple[Any, ...]
    ) -> int:
        """Fill a slot with the next good record of the epoch; the slot keeps its draw number."""
        plan, (epoch, done) = self._plan, request.position

        # Each slot may have a size of its own.
        own_size = bool(request.shape) and np.ndim(request.shape[0]) == 2

        def refill(records: Iterable[int]) -> int:
            candidates = (
                (record, *(plan.sizes(epoch, 0, done, np.array([record]))[:1] if own_size else ()))
                for record in records
            )
            return self._skipped.refill(error, self._engine, candidates, epoch, draw, arrays, slot)

        if not plan.one_row:
            begin = slot + 1
            end = begin + plan.others(epoch, done)
            begin += refill(plan.record(epoch, at, done) for at in range(begin, end))
            return plan.record(epoch, begin, done)
        stride, order = plan.order.stride, plan.order
        first = done + (slot + 1) * stride
        last = max(slot + 1, order.count(done)) + order.count()
        searched_epoch, begin, stop = self._searched
        if searched_epoch != epoch or not begin <= first <= stop:
            begin = stop = first
        # All positions from `begin` to `found` are known to be bad, so that long runs of bad
        # records are gone through once and not again for every one of them.
        positions = range(stop, done + last * stride, stride)
        stop += stride * refill(plan.record(epoch, (at - done) // stride, done) for at in positions)
        self._searched = (epoch, begin, stop)
        return plan.record(epoch, (stop - done) // stride, done)

    def _sources(self, rows: np.ndarray, slots: int) -> np.ndarray | None:
        """Return the packs of the records of a batch, if there may be several."""
        return None

    def _count(self, samples: int, asked: float) -> None:
        now = time.perf_counter()
        if self._returned is not None:
            self._busy += asked - self._returned
        self._waited += now - asked
        self._samples += samples
        self._returned = now
        if self._any_left(self._position.done, self._position.epoch):
            return
        self._provider_times.finish(self._engine.stats())
        if self._verbose:
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
            if self._rolls_over:
                pad = 0  # MXNet's number is for who knows MXNet's batches
            to_device, finish = self._to_device, self._finish
            count = self.batch_size - pad
            return self._form.batch(data, label, count, to_device, finish, pad=pad, index=ids)
        placed = self._to_device([*data, *label])
        return self.batch_type(
            self._finish(placed[: len(data)]),
            placed[len(data) :],
            pad=pad,
            index=ids,
            provide_data=self.provide_data,
            provide_label=self.provide_label,
        )

    def _arrays(self, data: Any, label: Any) -> tuple[list[Any], list[Any]]:
        """Return what the engine made, as one array for each description."""
        data = data if isinstance(data, list) else [data]
        if not self._stored[1]:
            return data, []
        return data, label if isinstance(label, list) else [label]

    def _lists(self, data: Any) -> list[list[Any]]:
        """Return what the engine made that is no array: a value for each sample."""
        return []

    def _finish(self, data: Sequence[Any]) -> list[Any]:
        """Do with data arrays what is left to do where they are wanted."""
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
        while len(self._requests) < depth:
            if self._requests:
                following = self._settle(self._requests[-1].behind)
            request = self._request(following)
            self._engine.submit(request.rows, following.epoch, request.draws, *request.shape)
            self._requests.append(request)

    def _request(self, position: Position) -> _Request:
        """Find the samples of the batch at a position, and its shape, if it has one of its own."""
        plan, (epoch, done) = self._plan, position
        rows, pad = plan.rows(epoch, 0, done)
        shape: tuple[Any, ...] = ()
        if plan.shaped:
            sizes, length = plan.sizes(epoch, 0, done, rows), plan.length(epoch, 0, done)
            shape = (sizes, plan.slots(epoch, 0, done), *([length] if length else []))
        behind = Position(epoch, plan.behind(epoch, done))
        return _Request(position, behind, rows, pad, plan.draws(0, done, epoch), shape)

    def _settle(self, position: Position) -> Position:
        """Return the position, or, behind the last batch of an epoch, the start of the next one."""
        while not self._any_left(position.done, position.epoch):
            position = self._end(position)
            if self._empty:
                break
        return position

    def _end(self, position: Position) -> Position:
        """Return the start of the next epoch when this one is at its end."""
        return Position((position.epoch + 1) & LAST_EPOCH, self._plan.rolled_over(position.done))

    def reset(self) -> None:
        """Make sure that the next batch is the first of an epoch.

        At the start of an epoch this does nothing, so that ``it.reset(); for batch in it:`` loses
        no epoch; anywhere else the next epoch begins.
        """
        self._skipped.check()
        with self._access.lock:
            position, asked = self._position, self._provider_asked
            if asked or position.done > 0:
                over = not self._any_left(position.done, position.epoch)
                following = Position((position.epoch + 1) & LAST_EPOCH)
                position = self._end(position) if over else following
            self._go_to(position)

    def set_epoch(self, epoch: int) -> None:
        """Make the next batch the first of that epoch, and the next `iterator` go through it.

        After a state of that same epoch was loaded, the rest of the epoch is still delivered.
        With ``last_batch_handle="roll_over"`` the epoch begins without samples left over from
        before.
        """
        position = Position(integer("epoch", epoch, low=0, high=LAST_EPOCH))
        with self._access.lock:
            here = self._loaded == self._position and self._position.epoch == position.epoch
            if not here:
                self._go_to(position)
            self._iterator_epoch = position.epoch

    def _go_to(self, position: Position) -> None:
        """Begin at a position."""
        self._position = position
        self._loaded = None
        self._searched = (-1, 0, 0)
        self._provider_asked = False
        self._provider_current = None
        self._provider_loop = None

    def _provider_samples(self) -> Samples:
        another = self._placement.another().place
        to_device, finish = self._provider_times.timing("upload", another), self._finish
        return Samples(
            self._stored, self._form, to_device, finish, self._rng, self._read_samples, self._plan
        )

    @functools.cached_property
    def _rng(self) -> Any:
        """Random numbers of all iterators of the provider."""
        return generator(None, DATASET_SEED)

    def _read_samples(
        self,
        rows: Iterator[Any],
        batch_size: int,
        in_file_order: bool,
        draws: Iterator[int] | None,
        shaped: bool = False,
    ) -> Callable[[], tuple[list[Any], list[Any], ChosenBatch]]:
        """Begin an epoch of chosen samples; see `Samples.read`."""
        with self._access.lock:
            if self._make_engine is None:
                raise ValueError("the provider is closed")
            if self._process != os.getpid():
                raise RuntimeError(Prefetcher.foreign)
            if self._plan.shaped and not shaped:
                raise ValueError(
                    "iterator() makes batches of one shape, and this provider has several: loop "
                    "over the provider, or make one with a single data_shape"
                )
            # No more samples ahead than the loop has, which may be under way as well.
            most = self._engine.depth
            depth = min(max(most * self.batch_size // batch_size, 1), most)
            engine = self._make_engine(batch_size, depth)
            epoch, order = self._iterator_epoch, self._plan.order
            times = self._provider_times
            chosen = ChosenSamples(
                engine, self._skipped, order, epoch, rows, in_file_order, draws, times
            )
            self._iterator_epoch = (epoch + 1) & LAST_EPOCH
            self._iterators.add(chosen)

        def read() -> tuple[list[Any], list[Any], ChosenBatch]:
            data, label, batch = chosen.collect()
            with self._access.lock:
                self._samples += len(batch.rows)
            lists = tuple(values[: len(batch.rows)] for values in self._lists(data))
            return *self._arrays(data, label), batch._replace(lists=lists)

        return read

    # -- state ----------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return the position of the run, from which another process can continue exactly.

        Returns
        -------
        dict
            Integers and strings only, a few hundred bytes whatever the size of the data.  Only what
            was delivered counts, not what was prefetched.  A part that has delivered its share
            keeps its last position as long as other parts may have batches left, so that the state
            of any part serves all.
        """
        epoch, done = self._position
        while self._plan.is_over(done, epoch):
            epoch, done = (epoch + 1) & LAST_EPOCH, self._plan.rolled_over(done)
            if self._plan.empty:
                break
        return {
            "version": STATE_VERSION,
            "epoch": epoch,
            "done": done,
            **self._plan.state(),
            "settings": dict(self._settings),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a saved state; the next loop delivers the rest of that epoch.

        Raises
        ------
        ValueError
            If the state belongs to other data or other settings; the difference is named.
        """
        checked_state(state)
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
            state, done="done", low=self._plan.least_done, last_epoch=LAST_EPOCH
        )
        plan = self._plan.resumed(state)
        with self._access.lock:
            if plan is not self._plan:
                self._plan = plan
                self._any_left = functools.lru_cache(maxsize=64)(plan.any_left)
                self._engine.cancel()
                self._requests.clear()
            self._go_to(position)
            self._loaded = position if position.done > 0 else None
            self._iterator_epoch = position.epoch

    # -- life -----------------------------------------------------------------------------------

    def close(self) -> None:
        """Stop the background work; batches handed out stay valid.  Idempotent."""
        self._make_engine = None  # it may hold much that is freed now, and so may the check
        self._skipped.check = lambda: None
        for chosen in list(self._iterators):
            chosen.close()
        self._finalizer()
        self._engine = ClosedEngine(self._engine)

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(
            f"{type(self).__name__} cannot be pickled or copied, it has threads of its own: make "
            "it where it is used, and hand over state_dict() to go on where this one is"
        )


def _common_size(sizes: Any, *_: int) -> tuple[int, int] | None:
    """Return height and width of a batch that has them for itself."""
    return tuple(sizes) if np.ndim(sizes) == 1 else None


def _with(rows: np.ndarray, slot: int, record: int) -> np.ndarray:
    """Rows with another record in one slot; they may be shared."""
    changed = rows.copy()
    changed[slot] = record
    return changed


class RollingProvider(PlannedProvider):
    """Base class of the providers with ``last_batch_handle="roll_over"``."""

    def hard_reset(self) -> None:
        """Begin a new epoch without the samples that the last one left over."""
        with self._access.lock:
            self.reset()
            self._position = Position(self._position.epoch, max(self._position.done, 0))
