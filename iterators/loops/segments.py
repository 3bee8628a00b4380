"""Memory that two processes share, and that can never be left behind.

A worker creates a segment and hands it over through its connection.  Where the system has file
descriptors, the segment has no name from the start (Linux) or loses it before anybody hears of it
(macOS), so that the memory is gone when the last process that maps it is, however it ended. Windows
keeps a name as long as somebody has it open.
"""

from __future__ import annotations

import mmap
import os
import socket
import sys
from multiprocessing.connection import Connection
from multiprocessing.shared_memory import SharedMemory
from typing import Any

__all__ = ["Segment", "receive"]

PAGE = mmap.PAGESIZE
HAS_DESCRIPTORS = sys.platform != "win32"


class Segment:
    """Shared memory of the process that creates it, rounded up to whole pages."""

    def __init__(self, nbytes: int) -> None:
        self.nbytes = max(-(-nbytes // PAGE), 1) * PAGE
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
        self.memory = memoryview(self._mapping)

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
