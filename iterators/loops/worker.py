"""A worker process of `MultiprocessIterator`: indices in, packed examples out.

A worker answers the messages of its connection in their order and ends when the connection or the
process at the other end does.  It knows neither batches nor positions.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import random
import signal
import sys
import traceback
from multiprocessing import parent_process, reduction
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import numpy as np

from .iterator import fetch
from .packing import Packed, Segment, pack

#: Seconds between two looks whether the parent process is still there.
LOOK = 1.0
#: Examples with less memory than this travel with their description.
LEAST_SHARED = 1 << 14
#: Freed blocks up to this size move the thresholds of glibc's malloc (DEFAULT_MMAP_THRESHOLD_MAX).
MOST_FOR_THRESHOLDS = (1 << 25) - (1 << 16)


class WorkerError(RuntimeError):
    """An exception of a worker process that cannot be sent to this one; its text is here."""


class Task(NamedTuple):
    """Fetch examples."""

    ticket: int
    indices: bytes  # int64, and behind them the epoch of each
    #: Slots that nobody refers to any more; of these, those to give back.
    free: tuple[int, ...]
    drop: tuple[int, ...]


class Failure(NamedTuple):
    """An exception: pickled if it can be, and as text."""

    pickled: bytes | None
    text: str


class Answer(NamedTuple):
    """Examples or a failure.

    `slot` is the number of their memory, `new` the size and name of that slot if the receiver does
    not have it yet, and `beside` the memory that is in no slot.
    """

    ticket: int
    packed: Packed | None = None
    failure: Failure | None = None
    slot: int | None = None
    new: tuple[int, str | None] | None = None
    beside: bytearray | None = None
    #: Bytes that should have gone to shared memory and did not fit.
    overflow: int = 0
    #: Slots that were given back, because they had become too small.
    dropped: tuple[int, ...] = ()


class DatasetParcel:
    """A data set on its way to a worker, opened there, so that its errors can be sent back.

    A forked worker has the data set itself.
    """

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        self._pickled: bytes | None = None

    def __getstate__(self) -> bytes:
        try:
            return bytes(reduction.ForkingPickler.dumps(self._dataset))
        except (AttributeError, TypeError, pickle.PicklingError) as error:
            raise TypeError(
                f"{type(self._dataset).__name__} cannot be sent to worker processes ({error}): "
                "define its functions with def at the top of a module, in place of a lambda or a "
                "function inside another, or start the processes by fork"
            ) from error

    def __setstate__(self, pickled: bytes) -> None:
        self._dataset, self._pickled = None, pickled

    def open(self) -> Any:
        """Return the data set; raises what unpickling it raises."""
        if self._pickled is not None:
            self._dataset, self._pickled = pickle.loads(self._pickled), None
        return self._dataset


class Worker:
    """The state of a worker: its data set and its slots."""

    def __init__(self, connection: Connection, parcel: DatasetParcel, shared: int | None) -> None:
        self.connection = connection
        self.shared = shared  # bytes of shared memory for each example
        self.slots: dict[int, Segment] = {}
        self.free: list[int] = []
        self.dropped: list[int] = []
        self.count: int = 0
        self.broken: Failure | None = None
        try:
            self.dataset: Any = parcel.open()
        except BaseException as error:  # told with the first answer
            self.broken = failure(error)

    def answer(self, task: Task) -> None:
        """Fetch, pack and send."""
        for slot in task.drop:
            self.slots.pop(slot).close()
        self.free += task.free
        segment = None
        if self.broken:
            answer = Answer(task.ticket, failure=self.broken)
        else:
            try:
                both = np.frombuffer(task.indices, np.int64).tolist()
                asked = both[: len(both) // 2], both[len(both) // 2 :]
                examples = fetch(self.dataset, *asked)
                answer, segment = self.packed(task.ticket, examples)
            except BaseException as error:
                answer = Answer(task.ticket, failure=failure(error))
        self.connection.send_bytes(pickle.dumps(answer, 5))
        if segment is not None:
            segment.send(self.connection)

    def packed(self, ticket: int, examples: list[Any]) -> tuple[Answer, Segment | None]:
        """Return the answer with its memory written, and the slot's memory if the slot is new."""
        limit = None if self.shared is None else self.shared * len(examples)
        packed, plan = pack(examples, limit)
        if plan.sizes[True] + plan.sizes[False] < LEAST_SHARED and self.shared is None:
            packed, plan = pack(examples, 0)
        overflow = plan.sizes[False] if limit is not None else 0
        slot, new, segment = None, None, None
        if plan.sizes[True]:
            try:
                slot, new, segment = self.slot(plan.sizes[True])
            except OSError:  # no shared memory left
                packed, plan = pack(examples, 0)
                overflow = plan.sizes[False]
        beside = bytearray(plan.sizes[False])
        shared = memoryview(b"") if slot is None else self.slots[slot].memory
        plan.write(shared, memoryview(beside))
        dropped, self.dropped = tuple(self.dropped), []
        return Answer(ticket, packed, None, slot, new, beside, overflow, dropped), segment

    def slot(self, nbytes: int) -> tuple[int, tuple[int, str | None] | None, Segment | None]:
        """Return a slot of at least that size to which nobody refers."""
        fitting = [slot for slot in self.free if self.slots[slot].nbytes >= nbytes]
        if fitting:
            slot = min(fitting, key=lambda slot: self.slots[slot].nbytes)
            self.free.remove(slot)
            return slot, None, None
        for slot in self.free:
            self.slots.pop(slot).close()
        self.dropped, self.free = self.free, []
        segment = Segment(nbytes + nbytes // 8)  # examples of other sizes may come
        # The examples of a batch are freed together.  glibc keeps twice the largest block that was
        # freed so far (mallopt(3)) and returns the rest to the system, which has to clear every
        # page again for the next batch: two thirds of a worker's time.  So free one of this size.
        np.empty(min(segment.nbytes, MOST_FOR_THRESHOLDS), np.uint8)
        slot, self.count = self.count, self.count + 1
        self.slots[slot] = segment
        return slot, (segment.nbytes, segment.name), segment


def failure(error: BaseException) -> Failure:
    """Put an exception in a form that can be sent."""
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    pickled = None
    # Leaving the process (SystemExit, KeyboardInterrupt) was meant for this one.
    if isinstance(error, Exception):
        with contextlib.suppress(Exception):
            pickled = pickle.dumps(error)
            if type(pickle.loads(pickled)) is not type(error):
                pickled = None
    return Failure(pickled, text)


def seed_generators(entropy: tuple[int, ...]) -> None:
    """Give the generators that a data set may use in this process states of their own."""
    words = np.random.SeedSequence(entropy).generate_state(4)
    np.random.seed(words[:3])
    random.seed(words.tobytes())
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(int(words[3]))


def work(
    connection: Connection,
    inherited: list[Connection],
    parcel: DatasetParcel,
    shared: int | None,
    entropy: tuple[int, ...],
) -> None:
    """Run a worker process: `Task` in, `Answer` out.

    `inherited` are the ends of connections that belong to the parent process and that forking
    copied; `shared` is bytes of shared memory for each example; `entropy` determines the generators
    of NumPy, ``random`` and torch.
    """
    for end in inherited:
        end.close()
    # Ctrl-C goes to all processes of a terminal; the parent decides what becomes of it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    seed_generators(entropy)
    parent, above = parent_process(), os.getppid()
    worker = Worker(connection, parcel, shared)
    with contextlib.suppress(EOFError, OSError):
        while True:
            while not connection.poll(LOOK):
                # Relatives may hold copies of the other end, so that its closing is not told.
                if os.getppid() != above or (parent is not None and not parent.is_alive()):
                    return
            worker.answer(pickle.loads(connection.recv_bytes()))
