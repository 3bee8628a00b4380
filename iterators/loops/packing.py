"""Lists of examples on their way between processes: a description and shared memory, never a copy.

Arrays of one kind that stand at one position of every example - the images, the labels - are laid
side by side, so that what crosses between processes is one description for all of them, and the
examples that come out are neighbouring views.  Everything else is pickled, with the memory of large
arrays kept apart.

A worker creates a segment and hands it over through its connection.  Where the system has file
descriptors, the segment has no name from the start (Linux) or loses it before anybody hears of it
(macOS), so that the memory is gone when the last process that maps it is, however it ended. Windows
keeps a name as long as somebody has it open.
"""

from __future__ import annotations

import mmap
import os
import pickle
import socket
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.shared_memory import SharedMemory
from typing import Any, NamedTuple

import numpy as np

ALIGNMENT = 64
#: Buffers below this are pickled with the rest.
LEAST_BUFFER = 1024


class MemoryPiece(NamedTuple):
    """A piece of memory: in which of the two it lies, and at what offset."""

    shared: bool
    offset: int
    nbytes: int


class PackedColumn(NamedTuple):
    """The values at one position of every example, as one array."""

    piece: MemoryPiece
    dtype: np.dtype
    examples: int
    #: Shape of one example; None for NumPy scalars, which have a shape () and no memory.
    shape: tuple[int, ...] | None


class Packed(NamedTuple):
    """A list of examples without its memory.

    `form` says what an example is: the number of entries of a tuple, the keys of a dictionary, or
    None for anything else.  `columns` has a `PackedColumn`, or None for what is in `pickled`.
    """

    form: int | tuple[Any, ...] | None
    columns: list[PackedColumn | None]
    pickled: bytes
    buffers: list[MemoryPiece]


class MemoryPlan:
    """The pieces of memory that will be needed, and what is to be written there."""

    def __init__(self, limit: int | None) -> None:
        self.limit = limit
        self.sizes: dict[bool, int] = {True: 0, False: 0}
        self.writes: list[tuple[MemoryPiece, Callable[[memoryview], None]]] = []

    def add(self, nbytes: int, write: Callable[[memoryview], None]) -> MemoryPiece:
        """Add a piece: in shared memory, or beside it when that is full."""
        shared = self.limit is None or self.sizes[True] + nbytes <= self.limit
        piece = MemoryPiece(shared, self.sizes[shared], nbytes)
        self.sizes[shared] += -(-nbytes // ALIGNMENT) * ALIGNMENT
        self.writes.append((piece, write))
        return piece

    def write(self, shared: memoryview, beside: memoryview) -> None:
        """Fill the memory."""
        for piece, write in self.writes:
            memory = shared if piece.shared else beside
            write(memory[piece.offset : piece.offset + piece.nbytes])


def pack(examples: list[Any], limit: int | None = None) -> tuple[Packed, MemoryPlan]:
    """Describe examples, at least one, and plan where their memory goes.

    What does not fit into `limit` bytes of shared memory goes beside it.
    """
    form, rows = columns_of(examples)
    plan = MemoryPlan(limit)
    columns = [stack(row, plan) for row in rows]
    rest = [row for row, column in zip(rows, columns, strict=True) if column is None]
    buffers: list[MemoryPiece] = []

    def keep_apart(buffer: pickle.PickleBuffer) -> bool:
        try:
            raw = buffer.raw()
        except BufferError:  # not contiguous
            return True
        if raw.nbytes < LEAST_BUFFER or raw.readonly:
            return True

        def write(memory: memoryview) -> None:
            memory[:] = raw

        buffers.append(plan.add(raw.nbytes, write))
        return False

    pickled = pickle.dumps(rest, 5, buffer_callback=keep_apart) if rest else b""
    return Packed(form, columns, pickled, buffers), plan


def unpack(packed: Packed, shared: memoryview, beside: memoryview) -> list[Any]:
    """Return the examples, whose arrays refer to the memory."""

    def memory(piece: MemoryPiece) -> memoryview:
        return (shared if piece.shared else beside)[piece.offset : piece.offset + piece.nbytes]

    rest: list[Any] = []
    if packed.pickled:
        rest = pickle.loads(packed.pickled, buffers=[memory(piece) for piece in packed.buffers])
    left = iter(rest)
    rows = [
        next(left) if column is None else unstack(column, memory(column.piece))
        for column in packed.columns
    ]
    if packed.form is None:
        return rows[0]
    if isinstance(packed.form, int):
        return list(zip(*rows, strict=True))
    keys = packed.form
    return [dict(zip(keys, values, strict=True)) for values in zip(*rows, strict=True)]


def columns_of(examples: list[Any]) -> tuple[int | tuple[Any, ...] | None, list[list[Any]]]:
    """Return examples of one form as columns; other examples as one column of everything."""
    first = examples[0]
    if type(first) is tuple and first:
        if all(type(example) is tuple and len(example) == len(first) for example in examples):
            return len(first), [list(row) for row in zip(*examples, strict=True)]
    elif type(first) is dict and first:
        keys = tuple(first)
        if all(type(example) is dict and tuple(example) == keys for example in examples):
            return keys, [[example[key] for example in examples] for key in keys]
    return None, [examples]


def stack(row: list[Any], plan: MemoryPlan) -> PackedColumn | None:
    """Plan to lay the entries of a column side by side; None if they are not of one kind."""
    first, kind = row[0], type(row[0])
    scalar = isinstance(first, np.generic)
    if not (kind is np.ndarray or scalar) or first.dtype.hasobject:
        return None
    shape, dtype = first.shape, first.dtype
    if any(type(x) is not kind or x.shape != shape or x.dtype != dtype for x in row):
        return None
    nbytes = first.nbytes * len(row)

    def write(memory: memoryview) -> None:
        target = view(memory, dtype, (len(row), *shape))
        if first.nbytes < LEAST_BUFFER:
            target[...] = row
        else:
            for slot, entry in zip(target, row, strict=True):
                slot[...] = entry

    return PackedColumn(plan.add(nbytes, write), dtype, len(row), None if scalar else shape)


def unstack(column: PackedColumn, memory: memoryview) -> list[Any]:
    """Return the entries of a column."""
    array = view(memory, column.dtype, (column.examples, *(column.shape or ())))
    if column.shape == ():
        return [array[i, ...] for i in range(column.examples)]
    return list(array)


def view(memory: memoryview, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    """Return an array over memory of exactly its size."""
    if not memory.nbytes:
        return np.empty(shape, dtype)
    return np.frombuffer(memory, dtype).reshape(shape)


PAGE = mmap.PAGESIZE
HAS_DESCRIPTORS = sys.platform != "win32"


class Segment:
    """Shared memory of the process that creates it, rounded up to whole pages."""

    def __init__(self, nbytes: int) -> None:
        self.nbytes: int = max(-(-nbytes // PAGE), 1) * PAGE
        self.name: str | None = None
        self._descriptor = -1
        self._owner: SharedMemory | None = None
        if not HAS_DESCRIPTORS:
            self._owner = SharedMemory(create=True, size=self.nbytes)
            self.name = self._owner.name
            self._mapping = mmap.mmap(-1, self.nbytes, tagname=self.name)  # type: ignore[call-arg]
        else:
            self._descriptor = anonymous(self.nbytes)
            try:
                self._mapping = mmap.mmap(self._descriptor, self.nbytes)
            except BaseException:
                os.close(self._descriptor)
                raise
        self.memory: memoryview = memoryview(self._mapping)

    def send(self, connection: Connection) -> None:
        """Hand the memory over, after the message that tells the other process to `receive`."""
        if self._descriptor >= 0:
            with _socket_of(connection) as channel:
                socket.send_fds(channel, [b"."], [self._descriptor])
            os.close(self._descriptor)
            self._descriptor = -1

    def close(self) -> None:
        """Unmap the memory here; the other process keeps it."""
        self.memory.release()
        self._mapping.close()
        if self._descriptor >= 0:
            os.close(self._descriptor)
        if self._owner is not None:
            self._owner.close()


def anonymous(nbytes: int) -> int:
    """Return the descriptor of new shared memory without a name."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("iterators", os.MFD_CLOEXEC)
        try:
            os.ftruncate(descriptor, nbytes)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor
    named: Any = SharedMemory(create=True, size=nbytes)
    try:
        descriptor = os.dup(named._fd)
    finally:
        named.close()
        named.unlink()
    try:
        if hasattr(os, "posix_fallocate"):
            # A full /dev/shm is to be an error here, not a signal when the memory is written.
            os.posix_fallocate(descriptor, 0, nbytes)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def receive(connection: Connection, nbytes: int, name: str | None) -> mmap.mmap:
    """Map the memory that the process at the other end of the connection hands over.

    The memory is unmapped when nothing refers to it any more.
    """
    if name is not None:
        return mmap.mmap(-1, nbytes, tagname=name)  # type: ignore[call-arg]
    with _socket_of(connection) as channel:
        _, descriptors, _, _ = socket.recv_fds(channel, 1, 1)
    if not descriptors:
        raise EOFError
    try:
        return mmap.mmap(descriptors[0], nbytes)
    finally:
        os.close(descriptors[0])


def _socket_of(connection: Connection) -> socket.socket:
    """Return the socket of a connection, to pass descriptors through.

    Not by `multiprocessing.reduction`: on macOS, and everywhere since Python 3.14, it waits for a
    byte in reply, and would take that of the next request.
    """
    return socket.fromfd(connection.fileno(), socket.AF_UNIX, socket.SOCK_STREAM)
