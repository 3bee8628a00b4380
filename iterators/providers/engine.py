"""Engines, which make the batches of a provider, and the replacement of unusable records.

`PlannedProvider` says which records make up a batch; an `Engine` makes the arrays, and neither
knows how the other does it.  `ChosenSamples` are batches that somebody else puts together.
"""

from __future__ import annotations

import contextlib
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from recordio.errors import ErrorBudgetError, RecordIOError, RemoteFileError
from recordio.keywords.checks import choice, integer, real

from ..core.fork_safe_lock import ForkSafeLock
from ..core.order import Order
from .report import EpochTimes


class Engine(Protocol):
    """Produces arrays for batches of records, in the order of submission, ahead of the consumer.

    `data` and `label` are what it makes of a batch: one array, or a list of one for each
    description of the provider.  A batch that cannot be made at all has ``data=None`` and one
    failure.

    An engine of batches of many shapes takes ``sizes, slots`` behind the arguments of `submit`:
    the height and width of all images or an array of those of every slot, and the number of slots;
    and behind those of `retry` the size of a record, where every slot has one of its own.
    """

    depth: int

    def start(self) -> None:
        """Start the threads, once there is somebody to stop them; idempotent."""

    @property
    def pending(self) -> int:
        """Number of batches submitted and not yet collected."""

    def needed(self, records: np.ndarray, epoch: int, draws: np.ndarray) -> np.ndarray:
        """The records that a batch of these is made of, which may be more."""

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


#: ``make(batch_size, depth)``: an engine for batches of that size, `depth` of them under way.
MakeEngine = Callable[[int, int], Engine]


@contextlib.contextmanager
def engine_apart(make: MakeEngine | None, batch_size: int) -> Iterator[Engine]:
    """Start an engine beside that of the loop, and close it; None is what a closed provider has."""
    if make is None:
        raise ValueError("the provider is closed")
    engine = make(batch_size, 1)
    engine.start()
    try:
        yield engine
    finally:
        engine.close()


def made(
    engine: Engine, records: Any, epoch: int, draws: Any, *shape: Any
) -> tuple[Any, Any, np.ndarray]:
    """Make one batch: data, label and sample ids; the first record that cannot be used raises."""
    engine.submit(np.asarray(records, np.int64), epoch, np.asarray(draws, np.int64), *shape)
    data, label, ids, failures = engine.collect()
    for _, error in failures:
        raise error
    return data, label, ids


class ClosedEngine:
    """The counters of an engine that was closed, and nothing else that it held."""

    def __init__(self, engine: Engine) -> None:
        self.depth: int = engine.depth
        self.pending: int = 0
        self._stats = engine.stats()

    def stats(self) -> dict[str, float]:
        """The counters as they were in the end."""
        return self._stats

    def cancel(self) -> None:
        """Nothing is under way."""

    start: Callable[..., None] = cancel
    close: Callable[..., None] = cancel

    def submit(self, *request: Any, **keywords: Any) -> Any:
        """Refuse."""
        raise ValueError("the provider is closed")

    needed: Callable[..., Any] = submit
    collect: Callable[..., Any] = submit
    retry: Callable[..., Any] = submit
    reform: Callable[..., Any] = submit


class SkippedSamples:
    """Records that could not be used, once each, and the budget for them."""

    def __init__(
        self,
        on_error: str,
        budget: float | None,
        num_samples: int,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        #: Raises an error if the files are not those that were opened: what they hold is not known.
        self.check = check
        self.on_error: Any = choice("on_error", on_error, ("raise", "skip"))
        # By file and position in it: the positions of several files are counted apart.
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
        """Count an error; raises when there are more than the budget allows, or a server failed."""
        if isinstance(error, RemoteFileError):
            raise error  # nothing is known about the record
        name = error.record_id if error.record_id is not None else error.record
        self.records.setdefault((error.path, error.record), (name, str(error)))
        if self.limit is not None and len(self.records) > self.limit:
            raise ErrorBudgetError(
                f"{len(self.records)} records could not be used, which is more than the "
                f"error_budget allows ({self.limit:g}); the last one: {error}"
            ) from error

    def refill(
        self,
        error: Exception,
        engine: Engine,
        records: Iterable[tuple[Any, ...]],
        epoch: int,
        draw: int,
        arrays: tuple[Any, Any, Any],
        slot: int,
    ) -> int:
        """Fill the slot of a failed record with the first good one; returns how many were bad.

        Each of the `records` is ``(number,)``, with its size behind it where each has its own.
        """
        if isinstance(error, RecordIOError):
            self.check()
        if arrays[0] is None or self.on_error == "raise" or not isinstance(error, RecordIOError):
            if isinstance(error, RecordIOError) and not isinstance(error, RemoteFileError):
                error.reason += '; on_error="skip" puts the next good record in its place'
            raise error
        self.add(error)
        for bad, (record, *size) in enumerate(records):
            try:
                engine.retry(int(record), epoch, draw, *arrays, slot, *size)
                return bad
            except RecordIOError as another:
                self.add(another)
        raise error


class ChosenBatch(NamedTuple):
    """The samples of a batch that somebody chose, and its shape, if batches have one each."""

    #: Their numbers: positions in the file or in the epoch.
    rows: np.ndarray
    #: Numbers that tell occurrences of a sample apart; None for those that are usual.
    draws: np.ndarray | None = None
    #: What `Engine.submit` takes behind the draws.
    shape: tuple[Any, ...] = ()
    #: Numbers of what may take the place of the sample in a slot, as `refill` takes records; None
    #: for the samples that follow.
    others: Callable[[int], Iterable[tuple[Any, ...]]] | None = None
    #: Positions of the epoch that are done behind it, where somebody counts them.
    done: int = 0
    #: Fields that are no arrays, a list of the values of all samples each; when it is made.
    lists: tuple[list[Any], ...] = ()


class ChosenSamples:
    """Batches of chosen samples of one epoch, made ahead of the consumer by an engine of their own.

    `rows` gives the positions of the samples of each batch, or `ChosenBatch`, in the file or array
    if `in_file_order`, else in the epoch.  With `draws` a sample that comes again has other
    random numbers: those of the number that is taken for it from there.  The
    engine is closed after the last batch, and when nobody refers to this object any more.  Threads
    may share it: every batch goes to one of them.  `times` counts what they wait for.
    """

    def __init__(
        self,
        engine: Engine,
        skipped: SkippedSamples,
        order: Order,
        epoch: int,
        rows: Iterator[Any],
        in_file_order: bool,
        draws: Iterator[int] | None,
        times: EpochTimes,
    ) -> None:
        self._finalizer = weakref.finalize(self, engine.close)
        self._engine: Engine = engine
        self._times = times
        times.begin(engine.stats())
        self._skipped = skipped
        self._epoch = epoch
        self._rows = rows
        self._next_draws = draws
        records = order.take(epoch, 0, order.count())
        self._records = np.sort(records) if in_file_order else records
        self._draws = order.draws(0, order.count())
        self._over = False
        #: The samples of each batch under way.
        self._waiting: deque[ChosenBatch] = deque()
        self._access = ForkSafeLock()

    def collect(self) -> tuple[Any, Any, ChosenBatch]:
        """Data, label and samples of the next batch; StopIteration when there is none."""
        with self._access.lock:
            self._times.ask()
            if not self._over:
                self._ask_ahead()
                self._over = not self._waiting
            if self._over:
                self.close()
                raise StopIteration
            begin = time.perf_counter()
            data, label, ids, failures = self._engine.collect()
            waited = time.perf_counter() - begin
            chosen = self._waiting.popleft()
            self._ask_ahead()
            for slot, error in failures:
                others = self._others(chosen, slot)
                arrays, draw = (data, label, ids), int(chosen.draws[slot])  # type: ignore[index]
                self._skipped.refill(error, self._engine, others, self._epoch, draw, arrays, slot)
            self._times.deliver(len(chosen.rows), waited)
            return data, label, chosen

    def close(self) -> None:
        """Stop the engine; idempotent."""
        if self._finalizer.alive:
            self._finalizer()
            self._engine = ClosedEngine(self._engine)
            self._times.finish(self._engine.stats())

    def _ask_ahead(self) -> None:
        engine = self._engine
        if engine.pending != len(self._waiting):
            # An interrupt (Ctrl-C) came between a step of the engine and ours: make them again.
            engine.cancel()
            for chosen in self._waiting:
                self._submit(chosen)
        while len(self._waiting) < engine.depth:
            part = next(self._rows, None)
            if part is None:
                return
            if isinstance(part, slice):
                part = np.arange(part.start, part.stop)
            chosen = part if isinstance(part, ChosenBatch) else ChosenBatch(part)
            if chosen.draws is None:
                chosen = chosen._replace(draws=self._drawn(chosen.rows))
            self._waiting.append(chosen)
            self._submit(chosen)

    def _submit(self, chosen: ChosenBatch) -> None:
        records = self._records[chosen.rows]
        self._engine.submit(records, self._epoch, chosen.draws, *chosen.shape)  # type: ignore[arg-type]

    def _others(self, chosen: ChosenBatch, slot: int) -> Iterable[tuple[Any, ...]]:
        """Return what may take the place of the sample in a slot: records, and their sizes."""
        if chosen.others is not None:
            return ((self._records[at], *size) for at, *size in chosen.others(slot))
        first, count = int(chosen.rows[slot]) + 1, len(self._records)
        return ((self._records[at % count],) for at in range(first, first + count))

    def _drawn(self, rows: np.ndarray) -> np.ndarray:
        if self._next_draws is None:
            return self._draws[rows]
        return np.fromiter(self._next_draws, np.int64, len(rows))
