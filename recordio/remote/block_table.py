"""Which blocks of a mirror are there, in a file that processes share, and locks on single blocks.

A block is marked when its bytes were written, so that a process that is killed leaves nothing that
looks whole and is not.  What a machine had not put on its disk when it failed is forgotten: marks
of an earlier boot count only if `sync` made them durable.

Locks belong to an open file and end with it, however its process ends.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import struct
from collections.abc import Callable

import numpy as np

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["BLOCK", "CLAIM", "HAS_LOCKS", "PIN", "USE", "BlockTable"]

#: Bytes of a block: what is marked, pinned and given up as one.
BLOCK = 1 << 18
#: States of a block.
ABSENT, WRITTEN, DURABLE = 0, 1, 2

_MAGIC = b"RMIRROR1"
_HEADER = struct.Struct("<8sqq16s")
_OFFSET = 64
_LOCK = struct.Struct("hh4xqqi4x")
HAS_LOCKS = hasattr(fcntl, "F_OFD_SETLK") if fcntl is not None else False
#: Where in the file the locks lie, far behind its end: blocks in use, blocks being fetched, and
#: one for everybody who has the mirror open.
PIN, CLAIM, USE = 1 << 40, 1 << 41, 1 << 42


class BlockTable:
    """The marks of the blocks of one mirror.

    Parameters
    ----------
    path : str
        The file; made if it is not there or not of this object.
    size : int
        Bytes of the object.

    Attributes
    ----------
    states : numpy.ndarray of uint8
        For each block 0, or more if it is there.

    Examples
    --------
    >>> import tempfile
    >>> table = BlockTable(f"{tempfile.mkdtemp()}/blocks", 3 * BLOCK)
    >>> table.mark(1, 2)
    >>> table.states.tolist(), table.missing(np.arange(3)).tolist()
    ([0, 1, 0], [0, 2])
    >>> table.close()
    """

    def __init__(self, path: str, size: int) -> None:
        self.count = -(-size // BLOCK)
        wanted = _HEADER.pack(_MAGIC, size, BLOCK, _boot())
        if not _matches(path, wanted, self.count):
            with open(f"{path}.new", "wb") as file:
                file.write(wanted.ljust(_OFFSET, b"\0"))
                file.truncate(_OFFSET + self.count)
            os.replace(f"{path}.new", path)
        self.descriptor = os.open(path, os.O_RDWR | getattr(os, "O_CLOEXEC", 0))
        self._map = mmap.mmap(self.descriptor, _OFFSET + self.count)
        self.states = np.frombuffer(self._map, np.uint8, self.count, _OFFSET)
        if self._map[: len(wanted)] != wanted:  # of an earlier boot
            self.states[self.states == WRITTEN] = ABSENT
            self._map[: len(wanted)] = wanted

    def close(self) -> None:
        """Let the file and all locks go."""
        if self.descriptor >= 0:
            descriptor, self.descriptor = self.descriptor, -1
            self.states = np.zeros(0, np.uint8)
            with contextlib.suppress(BufferError):  # somebody still looks at the states
                self._map.close()
            os.close(descriptor)

    def missing(self, blocks: np.ndarray) -> np.ndarray:
        """Those of some blocks that are not there."""
        return blocks[self.states[blocks] == ABSENT]

    def present(self) -> np.ndarray:
        """The blocks that are there."""
        # Compared first: other processes change the states meanwhile, which NumPy does not expect.
        return np.flatnonzero(self.states != ABSENT)

    def mark(self, first: int, last: int) -> None:
        """Blocks ``[first, last)`` were written."""
        self.states[first:last] = WRITTEN

    def forget(self, block: int) -> None:
        """A block is about to be given up."""
        self.states[block] = ABSENT

    def sync(self, flush: Callable[[], None]) -> None:
        """Make what is written durable; `flush` has the system put it on the disk."""
        written = np.flatnonzero(self.states == WRITTEN)
        flush()
        still = written[self.states[written] == WRITTEN]
        self.states[still] = DURABLE

    def lock(self, first: int, count: int = 1, shared: bool = False) -> bool:
        """Lock bytes of the file if no other open file has them locked; whether it did."""
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


def _matches(path: str, wanted: bytes, count: int) -> bool:
    """Whether a file is the table of this object, of any boot."""
    try:
        with open(path, "rb") as file:
            found = file.read(len(wanted))
            return found[:24] == wanted[:24] and file.seek(0, os.SEEK_END) == _OFFSET + count
    except OSError:
        return False


def _boot() -> bytes:
    """What tells this run of the machine from others; zeros where the system does not say."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return bytes.fromhex(file.read().strip().replace("-", ""))
    except (OSError, ValueError):
        return bytes(16)
