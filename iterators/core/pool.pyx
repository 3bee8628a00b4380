# build: small
"""Memory for batches that is used again only when nobody refers to it any more.

A `BufferPool` hands out blocks.  Each exports the buffer protocol and becomes the base
of the array that is handed out, so every view of that array, every torch tensor and every DLPack
capsule made from it keeps the block alive; only when the last of them is gone does the memory go
back to the pool.  A batch that somebody holds can therefore never be overwritten.
"""

cimport cython
from cpython.buffer cimport PyBUF_WRITABLE, PyBuffer_FillInfo, PyObject_GetBuffer, PyBuffer_Release

import numpy as np

__all__ = ["BufferPool"]


cdef enum:
    CACHE_LINE = 64


def aligned_memory(nbytes):
    """Return uninitialised memory that begins at a cache line."""
    memory = np.empty(nbytes + CACHE_LINE, np.uint8)
    start = -memory.ctypes.data % CACHE_LINE
    return memory[start:start + nbytes]


@cython.final
@cython.no_gc_clear
cdef class Block:
    """Memory of a pool, which gets it back when the last reference to it is gone."""

    cdef object pool
    cdef object memory
    cdef Py_buffer view
    cdef Py_ssize_t nbytes      # of the memory, from its start

    def __cinit__(self, BufferPool pool, memory, Py_ssize_t nbytes):
        PyObject_GetBuffer(memory, &self.view, PyBUF_WRITABLE)
        self.pool = pool
        self.memory = memory
        self.nbytes = nbytes

    def __dealloc__(self):
        cdef Py_ssize_t size = self.view.len
        PyBuffer_Release(&self.view)
        (<BufferPool> self.pool).put(size, self.memory)

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        PyBuffer_FillInfo(buffer, self, self.view.buf, self.nbytes, 0, flags)


# A garbage collector that meets the pool before the blocks must leave it able to take them back.
@cython.final
@cython.no_gc_clear
cdef class BufferPool:
    """Hands out blocks of memory and recycles those that nobody refers to.

    `nbytes` is the size of a block if nothing else is said.  It keeps the free blocks that came
    last, as much memory as `keep` of the largest take, and gives others back to the system.
    ``allocate(nbytes)`` returns an object with a writable buffer of that size, for memory of a
    special kind (page-locked, for example); by default it is ``numpy.empty``.
    """

    cdef list free
    cdef object allocate
    cdef readonly Py_ssize_t nbytes
    cdef readonly Py_ssize_t keep
    cdef Py_ssize_t largest     # that anybody took

    def __init__(self, nbytes, keep, allocate=None):
        try:
            np.empty(nbytes, np.uint8)      # given back untouched
        except (MemoryError, OverflowError, ValueError):
            raise MemoryError(
                f"a batch takes {nbytes:,} bytes, more than this system can give: make batch_size "
                "smaller") from None
        self.free = []
        self.nbytes = nbytes
        self.keep, self.largest = keep, 0
        self.allocate = allocate or aligned_memory

    def take(self, nbytes=None):
        """Return a block that nobody else holds; its contents are undefined."""
        cdef Py_ssize_t room = self.nbytes if nbytes is None else nbytes
        cdef Py_ssize_t i, size, smallest = 2 * room + CACHE_LINE, place = -1
        memory = None
        with cython.critical_section(self):     # without the GIL another thread may call put()
            for i in range(len(self.free)):
                size = self.free[i][0]
                if room <= size < smallest:
                    smallest, place = size, i
            self.largest = max(self.largest, room)
            if place >= 0:
                _, memory = self.free.pop(place)
        if memory is None:
            # The largest size, a half, a quarter ... of it: where sizes vary, most blocks can take
            # the place of each other.
            size = self.largest
            while size // 2 >= max(room, CACHE_LINE):
                size //= 2
            memory = self.allocate(size)
        return Block(self, memory, room)

    cdef void put(self, Py_ssize_t size, memory) noexcept:
        cdef Py_ssize_t room
        with cython.critical_section(self):
            room = self.keep * self.largest - size
            while self.free and sum([held for held, _ in self.free]) > room:
                del self.free[0]
            if room >= 0:
                self.free.append((size, memory))
