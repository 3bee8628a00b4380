"""Engines over records on servers: records are fetched ahead of the engine that reads them.

`FetchedAhead` stands before another engine.  A batch is handed to it when the blocks of its records
are there, and keeps them until the batch is collected; so many batches are asked for ahead that the
link is never idle.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from recordio.bytes.remote.block_table import BLOCK

from ..images.sources.fetched import STRIPE, PinnedRecords
from .engine import Engine
from .image_options import ImageRecordOptions

#: Bytes of records that are asked for ahead, and batches at most.
AHEAD_BYTES = 1 << 26
MOST_AHEAD = 64
#: Records smaller than this on average are fetched with their neighbours, by large requests.
SMALL_RECORD = 1 << 15


class FetchedSource(Protocol):
    """An `ImageSource` with files on servers, as far as it matters here."""

    name: str

    @property
    def is_remote(self) -> bool:
        """True for files on servers."""

    @property
    def fetched(self) -> Any:
        """Counters of what was read from there."""

    def __len__(self) -> int: ...

    def pin(self, records: np.ndarray, stripe: int = 1) -> PinnedRecords:
        """Keep records at hand until they are let go."""


class _Batch:
    """A batch that waits for its records."""

    __slots__ = ("draws", "epoch", "form", "pinned", "records")

    def __init__(
        self, records: np.ndarray, epoch: int, draws: np.ndarray, form: tuple[Any, ...]
    ) -> None:
        self.records, self.epoch, self.draws, self.form = records, epoch, draws, form
        self.pinned: PinnedRecords | None = None


class FetchedAhead:
    """An engine whose records are fetched before it reads them.

    `ahead` batches are asked for beyond those that the inner engine works on, `stripe` blocks at
    once where one is missing.  At most `most_pinned` bytes are kept from being given up, besides
    those of the oldest batch; None if nothing ever is.
    """

    def __init__(
        self,
        engine: Engine,
        source: FetchedSource,
        ahead: int,
        stripe: int = 1,
        most_pinned: int | None = None,
    ) -> None:
        self._engine, self._source, self._stripe = engine, source, stripe
        self._most_pinned = most_pinned
        self.depth: int = engine.depth + ahead
        self._waiting: deque[_Batch] = deque()
        self._inside: deque[PinnedRecords] = deque()  # of the batches that the engine works on
        self._closed = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)  # what one kind of engine has besides

    def start(self) -> None:
        """Start the threads of the engine; idempotent."""
        self._engine.start()

    @property
    def pending(self) -> int:
        """Number of batches submitted and not yet collected."""
        return len(self._waiting) + self._engine.pending

    def submit(self, records: np.ndarray, epoch: int, draws: np.ndarray, *form: Any) -> None:
        """Have the records of a batch fetched, and the batch made when they are there."""
        if self._closed:
            self._engine.submit(records, epoch, draws, *form)  # which says so
        self._waiting.append(_Batch(records, epoch, draws, form))
        self._ask()
        self._feed()

    def _ask(self) -> None:
        """Have the records of batches fetched, as many as may be pinned."""
        pinned = [*self._inside, *(batch.pinned for batch in self._waiting if batch.pinned)]
        nbytes = 0 if self._most_pinned is None else sum(one.nbytes for one in pinned)
        for batch in self._waiting:
            if batch.pinned is None:
                if self._most_pinned is not None and pinned and nbytes >= self._most_pinned:
                    return
                needed = self._engine.needed(batch.records, batch.epoch, batch.draws)
                batch.pinned = self._source.pin(needed, self._stripe)
                pinned.append(batch.pinned)
                nbytes += batch.pinned.nbytes

    def _feed(self) -> None:
        """Hand over the batches whose records are there."""
        while self._waiting and self._engine.pending < self._engine.depth:
            batch = self._waiting[0]
            if batch.pinned is None or not batch.pinned.ready:
                return
            try:
                batch.pinned.wait()
            except Exception:
                return  # raised when its turn comes
            self._engine.submit(batch.records, batch.epoch, batch.draws, *batch.form)
            self._inside.append(batch.pinned)
            self._waiting.popleft()

    def collect(self) -> tuple[Any, Any, np.ndarray, Sequence[tuple[int, Exception]]]:
        """Wait for the oldest batch; after a RemoteFileError the next call asks for it again."""
        self._ask()
        self._feed()
        if not self._engine.pending and self._waiting:
            try:
                pinned = self._waiting[0].pinned
                if pinned is not None:
                    pinned.wait()
            except Exception:
                self._give_up_waiting()
                raise
            self._feed()
        made = self._engine.collect()
        self._inside.popleft().release()
        self._ask()
        return made

    def _give_up_waiting(self) -> None:
        """Ask for nothing any more; what is waited for is asked for again by `collect`."""
        for batch in self._waiting:
            pinned, batch.pinned = batch.pinned, None
            if pinned is not None:
                pinned.release()

    def retry(
        self,
        record: int,
        epoch: int,
        draw: int,
        data: Any,
        label: Any,
        ids: Any,
        slot: int,
        *size: Any,
    ) -> None:
        """Put another record into a slot of a collected batch, which is fetched before."""
        needed = self._engine.needed(np.array([record]), epoch, np.array([draw]))
        with self._source.pin(needed):
            self._engine.retry(record, epoch, draw, data, label, ids, slot, *size)

    def stats(self) -> dict[str, float]:
        """Counters of the engine, and of the fetching since the files were opened."""
        fetched = self._source.fetched.counters()
        return {
            **self._engine.stats(),
            **{f"remote_{name}": value for name, value in fetched.items()},
        }

    def cancel(self) -> None:
        """Forget all batches under way."""
        self._engine.cancel()
        self._let_go()

    def close(self) -> None:
        """Stop; idempotent."""
        self._closed = True
        self._engine.close()
        self._let_go()

    def _let_go(self) -> None:
        self._give_up_waiting()
        self._waiting.clear()
        while self._inside:
            self._inside.popleft().release()


def fetched_ahead(
    engine: Engine, source: Any, batch_size: int, options: ImageRecordOptions
) -> Engine:
    """Return the engine, with a `FetchedAhead` before it if its records lie on servers."""
    if not source.is_remote:
        return engine
    files = source.fetched
    mean = max(files.size // max(len(source), 1), 1)
    ahead = min(max(AHEAD_BYTES // (batch_size * mean), 2), MOST_AHEAD)
    small = mean < SMALL_RECORD
    stripe = STRIPE if small else 1
    if not files.resident and is_scattered(options):
        stripe = 1
    most_pinned = None if files.resident else files.limit // 2
    return FetchedAhead(engine, source, ahead, stripe, most_pinned)


def is_scattered(options: ImageRecordOptions) -> bool:
    """Return whether neighbours in an epoch are no neighbours in the file."""
    if options.shuffle_chunk_size:
        return False
    drawn = options.weights is not None or options.images_per_class or options.classes_per_batch
    return bool(options.shuffle or drawn)


def warn_of_refetching(source: Any, options: ImageRecordOptions) -> None:
    """Say what it costs that records on servers do not fit into the cache."""
    files = source.fetched if source.is_remote else None
    if files is None or files.resident or not is_scattered(options):
        return
    mean = max(files.size // max(len(source), 1), 1)
    missing = 1 - min(files.limit / max(files.size, 1), 1)
    requests = int(missing * len(source))
    again = requests * (mean + BLOCK)
    warnings.warn(
        f"{source.name}: the record files have {files.size / 1e9:.2f} GB, and remote_cache_size "
        f"allows {files.limit / 1e9:.2f} GB: in this order every epoch makes about {requests} "
        f"requests for {again / 1e9:.2f} GB in all. A larger remote_cache_size avoids that, and so "
        "does shuffle_chunk_size, which fetches everything once an epoch",
        UserWarning,
        stacklevel=4,
    )
