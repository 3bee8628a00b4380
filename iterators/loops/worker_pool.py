"""Worker processes and the tasks under way in them, for the process that started them.

Everything happens in the thread that calls: there is no thread of its own, so that forking is safe
and nothing competes for the GIL.  A pool knows tickets, not batches.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import time
import warnings
import weakref
from collections import deque
from multiprocessing import connection as connections
from multiprocessing.context import BaseContext
from typing import Any

import numpy as np

from ..core.shared_arrays import JoinableMemory
from .packing import receive, unpack
from .worker import Answer, DatasetParcel, Failure, Task, WorkerError, work

#: Tasks that a worker is given at once: one to do and one to go on with.
MOST_TASKS = 2
#: A longer message is sent only to a worker that waits for it: a pipe may be full.
LONG_MESSAGE = 4096
#: Seconds that a worker has to end by itself, and then by SIGTERM, before it is killed.
GRACE = 0.5


class WorkerDiedError(RuntimeError):
    """A worker process ended while it was needed: killed, out of memory, or crashed."""


class WorkerTraceback(Exception):
    """The traceback of an exception in a worker: the cause of the one that is raised here."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f'in a worker process:\n"""\n{self.text}"""'


class Slot:
    """Memory of a worker that is mapped here."""

    def __init__(self, mapping: Any, number: int, given_back: deque[int]) -> None:
        self.mapping = mapping
        self.number = number
        self.given_back = given_back
        self.guard: weakref.ref[np.ndarray] | None = None

    def view(self) -> memoryview:
        """Return the memory; when nothing refers to it any more, its number comes to `given_back`.

        Every array made of it keeps the array here alive.
        """
        array: Any = np.frombuffer(self.mapping, np.uint8).view(JoinableMemory)
        number, given_back = self.number, self.given_back
        # Runs in any thread, wherever the last reference goes: it only makes a note.
        self.guard = weakref.ref(array, lambda _: given_back.append(number))
        return memoryview(array)


class WorkerHandle:
    """A worker process and its state on this side."""

    def __init__(self, process: Any, connection: Any, kept_slots: int) -> None:
        self.kept_slots = kept_slots
        self.process = process
        self.connection = connection
        self.sent: int = 0
        self.tasks: deque[tuple[int, bytes]] = deque()  # under way, in their order
        self.slots: dict[int, Slot] = {}
        self.given_back: deque[int] = deque()
        self.kept: set[int] = set()  # slots that the worker may use

    def send(self, ticket: int, indices: bytes) -> None:
        """Give the worker a task, and with it the slots that came back."""
        free, drop = [], []
        while self.given_back:
            number = self.given_back.popleft()
            if len(self.kept) < self.kept_slots:
                self.kept.add(number)
                free.append(number)
            elif self.slots.pop(number, None) is not None:
                drop.append(number)
        task = Task(ticket, indices, tuple(free), tuple(drop))
        self.sent += 1
        self.connection.send_bytes(pickle.dumps(task, 5))

    def receive(self) -> tuple[Answer, memoryview]:
        """Return the next answer and its shared memory."""
        answer: Answer = pickle.loads(self.connection.recv_bytes())
        self.tasks.popleft()
        for number in answer.dropped:
            self.kept.discard(number)
            del self.slots[number]
        shared = memoryview(b"")
        if answer.slot is not None:
            if answer.new is not None:
                mapping = receive(self.connection, *answer.new)
                self.slots[answer.slot] = Slot(mapping, answer.slot, self.given_back)
            self.kept.discard(answer.slot)
            shared = self.slots[answer.slot].view()
        return answer, shared


class WorkerPool:
    """Processes that fetch examples of a data set, inherited by forked ones, pickled for others.

    `shared` is bytes of shared memory for each example, None for as many as are needed.  A worker
    is replaced after `most_tasks` and keeps `kept_slots` slots to which nobody refers.  `entropy`
    and the number of a worker determine the generators that a data set finds there.
    """

    def __init__(
        self,
        dataset: Any,
        processes: int,
        context: BaseContext,
        shared: int | None,
        most_tasks: int | None,
        kept_slots: int,
        entropy: tuple[int, ...],
    ) -> None:
        self.owner: int = os.getpid()
        self._parcel = DatasetParcel(dataset)
        self._context = context
        self._shared = shared
        self._most_tasks = most_tasks
        self._kept_slots = kept_slots
        self._entropy = entropy
        self._started = 0
        self._ticket = 0
        self._waiting: deque[tuple[int, bytes]] = deque()
        self._answers: dict[int, tuple[Answer, memoryview] | WorkerDiedError] = {}
        self._idle_death: WorkerDiedError | None = None
        self._open_tickets: set[int] = set()
        self._warned = False
        self._workers: list[WorkerHandle] = []
        self._retired: list[Any] = []
        self.finalizer: weakref.finalize[..., WorkerPool] = weakref.finalize(
            self, stop, self._workers, self._retired, self.owner
        )
        try:
            for _ in range(processes):
                self._workers.append(self._new_worker())
        except BaseException:
            self.close()
            raise

    def _new_worker(self) -> WorkerHandle:
        here, there = self._context.Pipe(duplex=True)
        inherited = []
        if self._context.get_start_method() == "fork":
            inherited = [here, *(worker.connection for worker in self._workers)]
        process = self._context.Process(  # type: ignore[attr-defined]
            target=work,
            args=(there, inherited, self._parcel, self._shared, (*self._entropy, self._started)),
            daemon=True,
            name=f"MultiprocessIterator-{self._started}",
        )
        self._started += 1
        try:
            process.start()
        except BaseException:
            here.close()
            raise
        finally:
            there.close()
        return WorkerHandle(process, here, self._kept_slots)

    @property
    def pids(self) -> list[int]:
        """Process ids of the workers."""
        return [worker.process.pid for worker in self._workers]

    def submit(self, indices: list[int], epochs: list[int] | None = None) -> int:
        """Have examples fetched, each of an epoch; returns a ticket to collect them with."""
        self._ticket += 1
        self._open_tickets.add(self._ticket)
        asked = np.array([indices, epochs or [0] * len(indices)], np.int64)
        self._waiting.append((self._ticket, asked.tobytes()))
        self._hand_out()
        return self._ticket

    def collect(self, ticket: int, timeout: float | None, on_timeout: Any) -> list[Any]:
        """Wait for the examples of a ticket; `on_timeout` is called once after `timeout` seconds.

        An exception of the data set has the traceback in the worker as its cause.  A
        WorkerDiedError tells that the worker with these examples, or an idle one, ended.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while ticket not in self._answers:
            if self._idle_death is not None:
                raise self._idle_death
            left = None if deadline is None else max(deadline - time.monotonic(), 0)
            if not self._receive(left) and left is not None:
                deadline = None
                on_timeout()
        self._open_tickets.discard(ticket)
        answered = self._answers.pop(ticket)
        if isinstance(answered, WorkerDiedError):
            raise answered
        answer, shared = answered
        if answer.failure is not None:
            raise_again(answer.failure)
        if answer.overflow and not self._warned:
            self._warned = True
            warnings.warn(
                f"{answer.overflow} bytes of a batch did not fit into shared memory and were "
                "copied through a pipe, which is slow: "
                + (
                    f"shared_mem={self._shared} bytes for each example is too little"
                    if self._shared is not None
                    else "the system has no more of it (see df /dev/shm)"
                ),
                UserWarning,
                stacklevel=5,
            )
        assert answer.packed is not None
        return unpack(answer.packed, shared, memoryview(answer.beside or b""))

    def cancel(self, tickets: list[int]) -> None:
        """Forget what was submitted; what has begun is fetched and thrown away."""
        self._open_tickets.difference_update(tickets)
        self._waiting = deque(item for item in self._waiting if item[0] in self._open_tickets)
        for ticket in tickets:
            self._answers.pop(ticket, None)

    def close(self) -> None:
        """End the workers.  Examples that were handed out stay valid.  Idempotent."""
        self._answers.clear()
        self.finalizer()

    def _hand_out(self) -> None:
        """Give waiting tasks to the workers that have least to do."""
        while self._waiting:
            able = [worker for worker in self._workers if self._takes(worker, self._waiting[0][1])]
            if not able:
                return
            worker = min(able, key=lambda worker: len(worker.tasks))
            ticket, indices = self._waiting.popleft()
            worker.tasks.append((ticket, indices))
            try:
                worker.send(ticket, indices)
            except OSError:
                self._bury(worker)

    def _takes(self, worker: WorkerHandle, message: bytes) -> bool:
        if self._most_tasks is not None and worker.sent >= self._most_tasks:
            return False
        return len(worker.tasks) < (1 if len(message) > LONG_MESSAGE else MOST_TASKS)

    def _receive(self, timeout: float | None) -> bool:
        """Take in answers; False if none came in time."""
        by_source: dict[Any, WorkerHandle] = {}
        for worker in self._workers:
            by_source[worker.connection] = worker
            by_source[worker.process.sentinel] = worker
        ready = {
            id(by_source[source]): by_source[source]
            for source in connections.wait(list(by_source), timeout)
        }
        for worker in ready.values():
            try:
                if not worker.connection.poll():  # it is the process that is ready: to be buried
                    self._bury(worker)
                    continue
                answer, shared = worker.receive()
            except (EOFError, OSError):
                self._bury(worker)
                continue
            if answer.ticket in self._open_tickets:
                self._answers[answer.ticket] = answer, shared
            self._replace_if_used_up(worker)
        self._hand_out()
        return bool(ready)

    def _replace_if_used_up(self, worker: WorkerHandle) -> None:
        if worker.sent != self._most_tasks or worker.tasks:
            return
        self._workers.remove(worker)
        worker.connection.close()
        self._retired[:] = [process for process in self._retired if process.is_alive()]
        self._retired.append(worker.process)
        self._workers.append(self._new_worker())

    def _bury(self, worker: WorkerHandle) -> None:
        """Replace a worker that died; what it was at has failed, what it had not begun has not."""
        error = self._died(worker)
        self._workers.remove(worker)
        worker.connection.close()
        if worker.tasks:
            ticket, _ = worker.tasks.popleft()
            self._answers[ticket] = error
            self._waiting.extendleft(reversed(worker.tasks))
        else:
            self._idle_death = error
        self._workers.append(self._new_worker())

    def _died(self, worker: WorkerHandle) -> WorkerDiedError:
        worker.process.join(GRACE)
        code, pid = worker.process.exitcode, worker.process.pid
        if code is not None and code < 0:
            with contextlib.suppress(ValueError):
                code = signal.Signals(-code).name
            reason = f"was ended by {code}"
            if code == "SIGKILL":
                reason += ", by the system if it was out of memory"
        else:
            reason = f"ended with status {code}"
            if not worker.slots and self._context.get_start_method() != "fork":
                reason += (
                    "; if it could not start, see what it printed, and keep what the main module "
                    'does below `if __name__ == "__main__":`'
                )
        return WorkerDiedError(f"worker process {pid} of MultiprocessIterator {reason}")


def raise_again(failure: Failure) -> None:
    """Raise an exception of a worker here."""
    cause = WorkerTraceback(failure.text)
    if failure.pickled is not None:
        try:
            error = pickle.loads(failure.pickled)
        except Exception:  # its class is not what it is in the worker
            error = None
        if isinstance(error, Exception):
            raise error from cause
    raise WorkerError(f"{failure.text.strip().splitlines()[-1]}, in a worker process") from cause


def stop(workers: list[WorkerHandle], retired: list[Any], owner: int) -> None:
    """End worker processes: by closing their connections, or else by force."""
    if os.getpid() != owner:
        return  # a forked child: the workers are not its own
    processes = [*retired, *(worker.process for worker in workers)]
    for worker in workers:
        worker.connection.close()
    for action in (None, "terminate", "kill"):
        if action is not None:
            for process in processes:
                getattr(process, action)()
        deadline = time.monotonic() + GRACE
        for process in processes:
            process.join(max(deadline - time.monotonic(), 0) if action != "kill" else None)
        processes = [process for process in processes if process.exitcode is None]
        if not processes:
            break
    workers.clear()
    retired.clear()
