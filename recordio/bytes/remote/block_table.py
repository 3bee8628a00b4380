"""Table of the blocks that a mirror has, in a file that processes share, and their pins.

A block is marked when its bytes were written, so that a process that is killed leaves nothing that
looks whole and is not.  What a machine had not put on its disk when it failed is forgotten: marks
of an earlier boot count only if `sync` made them durable.  With the mark stands the CRC-32C of the
bytes, so that a disk or a program that changed them later is noticed.

Locks belong to an open file and end with it, however its process ends.  A pin, by which a block
stays, is a shared one, so that no other process gives the block up.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import struct
import time
from collections.abc import Callable, Sequence

import numpy as np

from recordio.bytes.remote.fetching import fetcher

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

#: Bytes of a block: what is marked, pinned and given up as one.
BLOCK = 1 << 18
#: States of a block.
ABSENT, WRITTEN, DURABLE = 0, 1, 2

_MAGIC = b"RMIRROR2"
_HEADER = struct.Struct("<8sqq16s")
#: Where the checksums begin, each of four bytes; the states follow them.
_OFFSET, _CHECKSUM = 64, 4
_LOCK = struct.Struct("hh4xqqi4x")
HAS_LOCKS = hasattr(fcntl, "F_OFD_SETLK") if fcntl is not None else False
#: Where in the file the locks lie, far behind its end: blocks in use, blocks being fetched, and
#: one for everybody who has the mirror open.
PIN, CLAIM, USE = 1 << 40, 1 << 41, 1 << 42
#: Seconds between two looks at a block that another process gives up.
PAUSE = 0.01


class BlockTable:
    """The `states` of the blocks of one mirror, 0 for absent ones, and their `checksums`.

    A file that is missing, or of an object of another size, is made.

    >>> import tempfile
    >>> table = BlockTable(f"{tempfile.mkdtemp()}/blocks", 3 * BLOCK)
    >>> table.mark(1, [0x1234])
    >>> table.states.tolist(), table.missing(np.arange(3)).tolist()
    ([0, 1, 0], [0, 2])
    >>> table.close()
    """

    def __init__(self, path: str, size: int) -> None:
        self.count: int = -(-size // BLOCK)
        header = _header(size)
        states = _OFFSET + _CHECKSUM * self.count
        if not self.is_at(path, size):
            with open(f"{path}.new", "wb") as file:
                file.write(header.ljust(_OFFSET, b"\0"))
                file.truncate(states + self.count)
            os.replace(f"{path}.new", path)
        self.descriptor: int = os.open(path, os.O_RDWR | getattr(os, "O_CLOEXEC", 0))
        self._map = mmap.mmap(self.descriptor, states + self.count)
        self.checksums: np.ndarray = np.frombuffer(self._map, np.uint32, self.count, _OFFSET)
        self.states: np.ndarray = np.frombuffer(self._map, np.uint8, self.count, states)
        if self._map[: len(header)] != header:  # of an earlier boot
            self.states[self.states == WRITTEN] = ABSENT
            self._map[: len(header)] = header

    @staticmethod
    def is_at(path: str, size: int) -> bool:
        """Tell whether a file is the table of an object of some size, of any boot."""
        header, count = _header(size), -(-size // BLOCK)
        try:
            with open(path, "rb") as file:
                first_bytes = file.read(len(header))
                length = file.seek(0, os.SEEK_END)
        except OSError:
            return False
        return first_bytes[:24] == header[:24] and length == _OFFSET + (_CHECKSUM + 1) * count

    def close(self) -> None:
        """Let the file and all locks go."""
        if self.descriptor >= 0:
            descriptor, self.descriptor = self.descriptor, -1
            self.states, self.checksums = np.zeros(0, np.uint8), np.zeros(0, np.uint32)
            with contextlib.suppress(BufferError):  # somebody still looks at the states
                self._map.close()
            os.close(descriptor)

    def missing(self, blocks: np.ndarray) -> np.ndarray:
        """Choose those of some blocks that are not there."""
        return blocks[self.states[blocks] == ABSENT]

    def present(self) -> np.ndarray:
        """List the blocks that are there."""
        # Compared first: other processes change the states meanwhile, which NumPy does not expect.
        return np.flatnonzero(self.states != ABSENT)

    def mark(self, first: int, checksums: Sequence[int]) -> None:
        """Note that as many blocks were written as there are checksums, from the first one on."""
        last = first + len(checksums)
        self.checksums[first:last] = checksums
        self.states[first:last] = WRITTEN

    def forget(self, block: int) -> None:
        """Note that a block is about to be given up, or is not as it was written."""
        self.states[block] = ABSENT

    def sync(self, flush: Callable[[], None]) -> None:
        """Make what is written durable; `flush` has the system put it on the disk."""
        written = np.flatnonzero(self.states == WRITTEN)
        flush()
        still = written[self.states[written] == WRITTEN]
        self.states[still] = DURABLE

    def lock(self, first: int, count: int = 1, shared: bool = False) -> bool:
        """Lock bytes of the file; False if another open file has them locked."""
        if not HAS_LOCKS:
            return True
        kind = fcntl.F_RDLCK if shared else fcntl.F_WRLCK
        try:
            fcntl.fcntl(
                self.descriptor, fcntl.F_OFD_SETLK, _LOCK.pack(kind, os.SEEK_SET, first, count, 0)
            )
        except (BlockingIOError, PermissionError):
            return False
        return True

    def unlock(self, first: int, count: int = 1) -> None:
        """Give a lock back."""
        if HAS_LOCKS:
            request = _LOCK.pack(fcntl.F_UNLCK, os.SEEK_SET, first, count, 0)
            fcntl.fcntl(self.descriptor, fcntl.F_OFD_SETLK, request)


def _header(size: int) -> bytes:
    """Make the first bytes of a table."""
    return _HEADER.pack(_MAGIC, size, BLOCK, _boot())


def _boot() -> bytes:
    """Identify this run of the machine; zeros where the system does not say."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return bytes.fromhex(file.read().strip().replace("-", ""))
    except (OSError, ValueError):
        return bytes(16)


class Pins:
    """The pins of one mirror in this process, counted; `everywhere` if all blocks stay for good."""

    def __init__(self, table: BlockTable) -> None:
        self._table = table
        self._counts: dict[int, int] = {}
        self.everywhere: bool = False

    def pin_all(self) -> None:
        """Have all blocks stay from now on."""
        while True:
            with fetcher().changed:
                if self._table.lock(PIN, max(self._table.count, 1), shared=True):
                    self.everywhere = True
                    return
            time.sleep(PAUSE)

    def add(self, blocks: np.ndarray) -> np.ndarray:
        """Have some blocks stay; what is returned has to be given to `remove`."""
        if self.everywhere:
            return blocks[:0]
        done = 0
        try:
            for block in blocks.tolist():
                while not self._try(block):
                    time.sleep(PAUSE)  # it is being given up at this moment
                done += 1
        except BaseException:
            self.remove(blocks[:done])
            raise
        return blocks

    def _try(self, block: int) -> bool:
        with fetcher().changed:
            count = self._counts.get(block, 0)
            if count or self._table.lock(PIN + block, shared=True):
                self._counts[block] = count + 1
                return True
            return False

    def remove(self, blocks: np.ndarray) -> None:
        """Undo `add`."""
        with fetcher().changed:
            for block in blocks.tolist():
                count = self._counts[block] - 1
                if count:
                    self._counts[block] = count
                else:
                    del self._counts[block]
                    if not self.everywhere:  # otherwise all of them are locked for good
                        self._table.unlock(PIN + block)

    def exclude(self, block: int) -> bool:
        """Keep everybody from pinning a block until `include`; False if somebody has.

        The caller holds the lock of the fetcher.
        """
        return not self.everywhere and block not in self._counts and self._table.lock(PIN + block)

    def include(self, block: int) -> None:
        """Undo `exclude`."""
        self._table.unlock(PIN + block)
