"""A sparse copy of an object on the local disk, filled block by block as its bytes are requested.

`Mirror.pin` fetches some of its blocks and keeps them there until the `Pin` is released.
Processes of one machine share the files.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import logging
import os
import time
import weakref
from collections.abc import Callable
from typing import Any, Protocol, cast

import numpy as np

from recordio.bytes.crc32c import crc32c
from recordio.bytes.mapping import map_file, part_of
from recordio.bytes.remote.block_table import ABSENT, BLOCK, CLAIM, USE, BlockTable, Pins
from recordio.bytes.remote.fetching import FORKED, Job, Unwanted, fetcher, over
from recordio.bytes.remote.objects import RangeFile, RemoteObject
from recordio.errors import RemoteFileError

#: Bytes of the largest request.
MOST_REQUEST = 1 << 23
#: Bytes after which what was written is made durable.
SYNC_BYTES = 1 << 28
#: Seconds between two looks at blocks that another process fetches: at first, and at most.
OTHER_SECONDS, MOST_OTHER_SECONDS = 0.01, 0.1
PUNCH_HOLE, KEEP_SIZE = 2, 1

logger: logging.Logger = logging.getLogger("recordio")


def blocks_of(begins: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """List the blocks in which ranges of bytes lie, ascending.

    >>> blocks_of(np.array([0, BLOCK - 1]), np.array([1, BLOCK + 1]))
    array([0, 1])
    """
    first = np.asarray(begins, np.int64) // BLOCK
    last = np.maximum(first, (np.asarray(ends, np.int64) - 1) // BLOCK)
    most = int((last - first).max(initial=0))
    blocks = [first]
    for more in range(1, most + 1):
        blocks.append(first[first + more <= last] + more)
    return np.unique(np.concatenate(blocks))


class _Files:
    """The open files of a mirror, and with them its locks.

    Marks belong to the very file that the blocks were written to: if one of both is gone or has
    another size, both are made anew, and who has the old ones open goes on with these.
    """

    def __init__(self, directory: str, size: int) -> None:
        path, marks = os.path.join(directory, "data"), os.path.join(directory, "blocks")
        marked = BlockTable.is_at(marks, size)
        if not (marked and _has_size(path, size)):
            if marked:
                logger.warning(
                    "%s: was removed, or is not as large as it was: the mirror is fetched again",
                    path,
                )
            for name in (marks, path):
                with contextlib.suppress(FileNotFoundError):
                    os.remove(name)
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
        self.descriptor = os.open(path, flags, 0o666)
        try:
            if os.fstat(self.descriptor).st_size != size:
                os.ftruncate(self.descriptor, size)
            self.table = BlockTable(marks, size)
            self.table.lock(USE, shared=True)
        except BaseException:
            os.close(self.descriptor)
            raise
        # Not when the process ends: threads may still write, and the system closes it then.
        weakref.finalize(self, _close, self.descriptor, self.table).atexit = False


def _has_size(path: str, size: int) -> bool:
    """Tell whether there is a file of some size."""
    try:
        return os.stat(path).st_size == size
    except FileNotFoundError:
        return False


def _close(descriptor: int, table: BlockTable) -> None:
    os.close(descriptor)
    table.close()


class Room(Protocol):
    """The folder of a mirror, as far as it matters to the mirror."""

    path: str
    limit: int

    def make_room(self, nbytes: int) -> None:
        """Give up what nobody needs now, until so many bytes more are within the limit."""

    def note_used(self, mirror: Mirror, blocks: np.ndarray) -> None:
        """Blocks were used, and are the last to make room."""


class Pin:
    """Blocks of a mirror that are there, or on their way, and stay until `release`."""

    def __init__(self, mirror: Mirror, blocks: np.ndarray, jobs: list[Job]) -> None:
        self._mirror, self._blocks, self._jobs = mirror, blocks, jobs

    @property
    def pinned(self) -> int:
        """Count the blocks that it keeps from being given up."""
        return len(self._blocks)

    @property
    def ready(self) -> bool:
        """True if all are there, or one could not be had: `wait` returns at once, or raises."""
        return over(self._jobs)

    def wait(self) -> None:
        """Wait until all blocks are there; the next `pin` requests those again that failed."""
        if not self.ready:
            begun = time.perf_counter()
            fetcher().hurry(self._jobs)
            fetcher().wait_for(self._jobs)
            with fetcher().changed:
                self._mirror.counters["wait_seconds"] += time.perf_counter() - begun
        for job in self._jobs:
            if job.error is not None:
                raise job.error

    def release(self) -> None:
        """Allow the blocks to be given up; idempotent."""
        blocks, self._blocks = self._blocks, self._blocks[:0]
        jobs, self._jobs = self._jobs, []
        self._mirror._release(blocks, jobs)

    def unpin(self) -> None:
        """Have them fetched all the same; they may be given up as soon as they are there."""
        blocks, self._blocks, self._jobs = self._blocks, self._blocks[:0], []
        self._mirror._release(blocks, [])

    def __enter__(self) -> Pin:
        try:
            self.wait()
        except BaseException:
            self.release()
            raise
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.release()


class Mirror:
    """The sparse copy of an object, as it was when it was opened; `view` is the mapped file.

    Bytes that were not fetched yet are zeros there.  `counters` has, since it was opened, the
    fetched `bytes` and `requests`, `retries`, `wait_seconds` of those who waited, blocks that were
    there when they were needed (`hits`) and that were not (`misses`), and blocks `evicted`.
    """

    def __init__(self, remote: RemoteObject, folder: Room, directory: str) -> None:
        self._remote = remote
        self.folder: Room = folder
        self.timeout: float = remote.access.timeout
        self.url: str = remote.url
        self.size: int = remote.version.size
        self.tag: str = remote.version.tag
        self.path: str = os.path.join(directory, "data")
        self.process: int = os.getpid()
        self.counters: dict[str, float] = dict.fromkeys(
            ("bytes", "requests", "retries", "wait_seconds", "hits", "misses", "evicted"), 0
        )
        self._jobs: dict[int, Job] = {}
        self._unsynced = 0
        self._files = _Files(directory, self.size)
        self.table: BlockTable = self._files.table
        self._descriptor = self._files.descriptor
        self._pins = Pins(self.table)
        # Blocks that were compared with their checksums, or written, by this process.
        self._compared = np.zeros(self.table.count, bool)
        self._warned = False
        self.view: memoryview = map_file(self.path)
        if self.size:
            # Views of records keep the locks, and so the blocks, when the mirror itself is gone.
            cast(Any, self.view.obj).keeper = self._files

    @property
    def complete(self) -> bool:
        """True if every block is there."""
        return bool(self.table.states.all())

    @property
    def kept_bytes(self) -> int:
        """Count the bytes of the blocks that are there."""
        return min(int(np.count_nonzero(self.table.states)) * BLOCK, self.size)

    @property
    def resident(self) -> bool:
        """True if all of it stays, so that blocks that came once are there while it is open.

        Otherwise blocks that nobody has pinned make room for others.
        """
        return self._pins.everywhere

    def stay(self) -> None:
        """Have all blocks stay from now on."""
        self._pins.pin_all()

    def pin(self, blocks: np.ndarray, stripe: int = 1, urgent: bool = False) -> Pin:
        """Keep ascending blocks until they are released, and fetch those that are not there.

        With a `stripe` all missing ones between two multiples of it come at once.  `urgent` ones
        come before those that wait.
        """
        if self.resident and not len(self.missing(blocks)):
            with fetcher().changed:
                self.counters["hits"] += len(blocks)
            return Pin(self, blocks[:0], [])
        if self.process != os.getpid():
            raise RuntimeError(FORKED)
        pinned = self._pins.add(blocks)
        try:
            self.missing(blocks)
            return Pin(self, pinned, self._jobs_for(blocks, stripe, urgent))
        except BaseException:
            self._pins.remove(pinned)
            raise

    def missing(self, blocks: np.ndarray) -> np.ndarray:
        """Choose the blocks that are not there as they were written; the caller pins them.

        Each is compared with its checksum when this process asks for it first, because what was
        written earlier may have changed on the disk.
        """
        unsure = blocks[~self._compared[blocks]]
        unsure = unsure[self.table.states[unsure] != ABSENT]
        if len(unsure) > 1 and hasattr(os, "posix_fadvise"):
            for block in unsure.tolist():  # the disk looks for all of them at once
                os.posix_fadvise(self._descriptor, block * BLOCK, BLOCK, os.POSIX_FADV_WILLNEED)
        damaged = [block for block in unsure.tolist() if not self._is_as_written(block)]
        for block in damaged:
            self.table.forget(block)
        self._compared[unsure] = True
        if damaged and not self._warned:
            self._warned = True
            logger.warning(
                "%s: bytes %d to %d are not as they were written, and are fetched again, as is all "
                "else that changed: the disk is failing, or another program writes there",
                self.path,
                damaged[0] * BLOCK,
                min((damaged[0] + 1) * BLOCK, self.size) - 1,
            )
        return self.table.missing(blocks)

    def _is_as_written(self, block: int) -> bool:
        """Compare the bytes of a block with their checksum."""
        begin = block * BLOCK
        try:
            data = os.pread(self._descriptor, min(BLOCK, self.size - begin), begin)
        except OSError:  # the disk cannot read it
            return False
        return crc32c(data) == self.table.checksums[block]

    def _jobs_for(self, blocks: np.ndarray, stripe: int, urgent: bool) -> list[Job]:
        """Make or find the jobs by which those of some blocks come that are not there."""
        with fetcher().changed:
            lacking = self.table.missing(blocks)
            self.counters["hits"] += len(blocks) - len(lacking)
            self.counters["misses"] += len(lacking)
            running = {id(j): j for b in lacking.tolist() if (j := self._job_of(b))}.values()
            begun = [
                Job(first, last, (last - first) * BLOCK, self._fetch)
                for first, last in self._runs(lacking, stripe)
            ]
            fetcher().submit(begun, urgent)
            for job in running:
                job.waiters += 1
            for job in begun:
                self._jobs.update(dict.fromkeys(range(job.first, job.last), job))
            return [*running, *begun]

    def pin_bytes(self, begin: int, end: int) -> Pin:
        """Pin a range of bytes, before all that was asked for earlier."""
        first, last = begin // BLOCK, -(-min(max(end, begin + 1), self.size) // BLOCK)
        return self.pin(np.arange(first, max(last, first)), urgent=True)

    def copied(self, begin: int, end: int) -> bytes:
        """Copy a range of bytes, which is fetched where it is not there."""
        with self.pin_bytes(begin, end):
            return bytes(part_of(self.view, begin, end))

    def as_file(self) -> RangeFile:
        """Return a file that fetches the ranges that are read."""
        return RangeFile(self.size, self.copied)

    def prefetch(self, begin: int, end: int) -> None:
        """Have a range of bytes fetched without waiting for it or keeping it."""
        self.pin(np.arange(begin // BLOCK, -(-min(end, self.size) // BLOCK))).unpin()

    def fetch_all(self, progress: Callable[[int], Any] | None = None) -> None:
        """Fetch all of the object; `progress` gets the bytes that came since its last call."""
        if self.complete and not self.resident:
            self.pin(np.arange(self.table.count)).release()  # which compares all of them
        if self.complete and self._compared.all():
            if progress is not None:
                progress(self.size)
            return
        if not self.resident:
            raise RemoteFileError(
                f"all of its {self.size} bytes are needed at once, and remote_cache_size allows "
                f"{self.folder.limit} for all mirrors in {self.folder.path}: allow more, or choose "
                "another remote_cache",
                path=self.url,
            )
        step = MOST_REQUEST // BLOCK
        ahead: list[tuple[int, Pin]] = []
        for first in range(0, self.table.count, step):
            blocks = np.arange(first, min(first + step, self.table.count))
            nbytes = min((first + len(blocks)) * BLOCK, self.size) - first * BLOCK
            ahead.append((nbytes, self.pin(blocks)))
            if len(ahead) > 16:
                _finish(*ahead.pop(0), progress)
        for nbytes, pin in ahead:
            _finish(nbytes, pin, progress)

    # -- what jobs do ---------------------------------------------------------------------------

    def _job_of(self, block: int) -> Job | None:
        """Find the job by which a block is on its way."""
        job = self._jobs.get(block)
        return job if job is not None and job.alive else None

    def _runs(self, lacking: np.ndarray, stripe: int) -> list[tuple[int, int]]:
        """Cut what is missing and not on its way into requests, as ranges of blocks."""
        runs: list[list[int]] = []
        most = MOST_REQUEST // BLOCK
        blocks: Any = lacking.tolist()
        if stripe > 1:
            starts = np.unique(lacking // stripe) * stripe
            positions = (starts[:, None] + np.arange(stripe)).ravel()
            blocks = self.table.missing(positions[positions < self.table.count]).tolist()
        for block in blocks:
            if self._job_of(block):
                continue
            follows = runs and runs[-1][1] == block and block - runs[-1][0] < most
            if follows and (stripe == 1 or block % stripe):
                runs[-1][1] = block + 1
            else:
                runs.append([block, block + 1])
        return [(first, last) for first, last in runs]

    def _fetch(self, job: Job) -> None:
        """Carry out a job, in a thread of its own."""
        table, first, last = self.table, job.first, job.last
        # No process gives up what is being written, or what lies between.
        pinned = self._pins.add(np.arange(first, last))
        try:
            claimed = self._claim(job)
            try:
                lacking = first + np.flatnonzero(table.states[first:last] == 0)
                if len(lacking):
                    patience = None if claimed else 0.0
                    self._fetch_blocks(job, int(lacking[0]), int(lacking[-1]) + 1, patience)
            finally:
                if claimed:
                    table.unlock(CLAIM + first, last - first)
        finally:
            with fetcher().changed:
                self._forget(job)
            self._pins.remove(pinned)

    def _claim(self, job: Job) -> bool:
        """Keep other processes from fetching the same; False if one does not come to an end."""
        begun, pause = time.monotonic(), OTHER_SECONDS
        while not self.table.lock(CLAIM + job.first, job.last - job.first):
            # Another process is at it; if it dies its locks end with it.
            if self.table.states[job.first : job.last].all():
                return False
            if time.monotonic() - begun > self.timeout:
                return False  # it may be stopped; writing the same twice does no harm
            self._check_wanted(job)
            time.sleep(pause)
            pause = min(2 * pause, MOST_OTHER_SECONDS)
        return True

    def _forget(self, job: Job) -> None:
        for block in range(job.first, job.last):
            if self._jobs.get(block) is job:
                del self._jobs[block]

    def _fetch_blocks(self, job: Job, first: int, last: int, patience: float | None) -> None:
        begin, end = first * BLOCK, min(last * BLOCK, self.size)
        self.folder.make_room(end - begin)
        note = functools.partial(self._note_failure, job)
        data = self._remote.fetch(begin, end, patience, note)
        try:
            written = 0
            while written < len(data):
                written += os.pwrite(self._descriptor, data[written:], begin + written)
        except OSError as error:
            raise self.cannot_be_written(error, begin) from error
        pieces = [data[i : i + BLOCK] for i in range(0, len(data), BLOCK)]
        self.table.mark(first, [crc32c(piece) for piece in pieces])
        self._compared[first:last] = True
        with fetcher().changed:
            self._count(end - begin)
            self._unsynced += end - begin
            due = self._unsynced >= SYNC_BYTES
            self._unsynced = 0 if due else self._unsynced
        if due:
            self.table.sync(lambda: os.fsync(self._descriptor))

    def read_apart(self, begin: int, end: int, job: Job) -> memoryview:
        """Read a range of bytes that is not kept, by one request of a job of the caller's."""
        self._check_wanted(job)
        note = functools.partial(self._note_failure, job)
        data = self._remote.fetch(begin, end, failed=note)
        with fetcher().changed:
            self._count(end - begin)
        return data

    def cannot_be_written(self, error: OSError, offset: int) -> RemoteFileError:
        """Make the error for bytes that came and have no room."""
        return RemoteFileError(
            f"its mirror cannot be written: {error.strerror}; free the disk, or choose another "
            f"remote_cache than {self.folder.path}",
            path=self.url,
            offset=offset,
        )

    def _count(self, nbytes: int) -> None:
        self.counters["requests"] += 1
        self.counters["bytes"] += nbytes

    def _note_failure(self, job: Job, error: Exception) -> None:
        with fetcher().changed:
            self.counters["retries"] += 1
        self._check_wanted(job)

    def _check_wanted(self, job: Job) -> None:
        """End a job that nobody wants any more, and that nobody can want from now on."""
        with fetcher().changed:
            if not job.waiters:
                self._forget(job)
                raise Unwanted

    def _release(self, blocks: np.ndarray, jobs: list[Job]) -> None:
        if not len(blocks) and not jobs:
            return
        if self.process != os.getpid():
            return
        with fetcher().changed:
            for job in jobs:
                job.waiters -= 1
            self._pins.remove(blocks)
            self.folder.note_used(self, blocks)

    def evict(self, block: int) -> bool:
        """Give up a block, and return True unless somebody has pinned it."""
        with fetcher().changed:
            if not self.table.states[block] or not self._pins.exclude(block):
                return False
            try:
                self.table.forget(block)
                _punch(self._descriptor, block * BLOCK, min(BLOCK, self.size - block * BLOCK))
                self.counters["evicted"] += 1
            finally:
                self._pins.include(block)
            return True


def _finish(nbytes: int, pin: Pin, progress: Callable[[int], Any] | None) -> None:
    with pin:
        if progress is not None:
            progress(nbytes)


def _punch(descriptor: int, begin: int, count: int) -> None:
    """Have a part of a file take no room on the disk any more; it reads as zeros then."""
    libc = ctypes.CDLL(None, use_errno=True)
    offset = ctypes.c_int64
    done = libc.fallocate64(descriptor, PUNCH_HOLE | KEEP_SIZE, offset(begin), offset(count))
    if done != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"a part of a mirror cannot be given up: {os.strerror(error)}")
