# build: small map_guard.c
"""Files as read-only memory, and the parts of it that were lost since.

A file that becomes shorter while it is mapped, or whose disk fails, does not end the process: what
is lost reads as zeros, and whoever reads asks afterwards whether anything was.
"""

import mmap
import os

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_FillInfo, PyBuffer_Release, PyObject_GetBuffer
from libc.errno cimport errno
from libc.stdint cimport int64_t, uint8_t

from recordio.errors import TruncatedRecordError
from recordio.bytes.regular_files import open_regular

__all__ = ["LOST", "FileMap", "check_kept", "is_lost", "map_descriptor", "map_file", "part_of"]

cdef extern from "recordio/bytes/map_guard.h" nogil:
    bint MAP_IS_GUARDED
    map_guard* map_open(int file, int64_t size)
    void map_close(map_guard* guard)
    const uint8_t* map_base(const map_guard* guard)
    bint guard_lost "map_lost"(map_guard* guard, int64_t begin, int64_t end)

#: What is said of bytes that are gone.
LOST = (
    "the file became shorter after it was opened, or the disk failed; open it again when it is"
    " whole, and replace files instead of writing over them"
)


cdef class FileMap:
    """The bytes of a mapped file, which `memoryview` shows; `keeper` lives as long as the map."""

    cdef map_guard* guard
    cdef const uint8_t* base
    cdef Py_ssize_t size
    cdef object pages           # where nothing needs to be guarded, the map
    cdef readonly str path
    cdef public object keeper   # what has to live as long as the map does

    def __cinit__(self, int file, Py_ssize_t size, path):
        cdef int own, error
        self.guard, self.base, self.size, self.path = NULL, NULL, size, path
        if not MAP_IS_GUARDED:
            self.pages = mmap.mmap(file, size, access=mmap.ACCESS_READ)
            self.base = address_of(self.pages)
            return
        own = os.dup(file)
        self.guard = map_open(own, size)
        if self.guard == NULL:
            error = errno
            os.close(own)
            raise OSError(error, os.strerror(error), path)
        self.base = map_base(self.guard)

    def __dealloc__(self):
        map_close(self.guard)

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        PyBuffer_FillInfo(buffer, self, <void*>self.base, self.size, True, flags)


def map_file(path):
    """Map a whole file into memory, read-only; it may be empty.

    The map lasts as long as any view of it.  The file is not kept locked, and if it shrinks
    meanwhile, the missing bytes read as zeros and `is_lost` tells.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "a")
    >>> _ = path.write_bytes(b"abc")
    >>> bytes(map_file(path)[1:])
    b'bc'
    """
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        return map_descriptor(file.fileno(), size, os.fsdecode(path))


def map_descriptor(file, size, path):
    """Map the first bytes of an open file into memory, as `map_file` does."""
    if size == 0:
        return memoryview(b"")      # nothing cannot be mapped
    return memoryview(FileMap(file, size, path))


def part_of(view, begin, end):
    """Return a part of a view of a whole map, which threads may do at the same time.

    Slices of one view count each other, which CPython does without atomic numbers (gh-155606):
    without the GIL the view would seem to be released.  A view of the map has a count of its own.
    """
    return memoryview(view.obj)[begin:end]


def is_lost(view):
    """Return True if any of the bytes that a view of a mapped file shows have been lost.

    The file became shorter since it was mapped, or its disk failed.  What is lost may read as
    zeros, so ask after reading.  Bytes that were read while they were there also count as lost.

    Parameters
    ----------
    view : memoryview
        All or a part of what `map_file` returned, or a record of a `RecordReader`; nothing else is
        ever lost.

    Returns
    -------
    bool
        On Windows always False: files that are mapped cannot be truncated there.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "a")
    >>> _ = path.write_bytes(b"abcdef")
    >>> view = map_file(path)
    >>> _ = os.truncate(path, 4)
    >>> is_lost(view[:4]), is_lost(view[4:])    # doctest: +SKIP
    (False, True)
    """
    cdef map_guard* guard = guard_of(view)
    if guard == NULL:
        return False
    cdef int64_t begin = address_of(view) - map_base(guard)
    return map_lost(guard, begin, begin + <int64_t>view.nbytes)


def check_kept(view, *, path=None, offset=None, record=None):
    """Raise an error with a position if bytes of a view have been lost: after they were copied."""
    if is_lost(view):
        raise TruncatedRecordError(LOST, path=path, offset=offset, record=record)


cdef const uint8_t* address_of(view) except? NULL:
    cdef Py_buffer buffer
    PyObject_GetBuffer(view, &buffer, PyBUF_SIMPLE)
    cdef const uint8_t* base = <const uint8_t*>buffer.buf
    PyBuffer_Release(&buffer)
    return base


cdef map_guard* guard_of(view):
    if not isinstance(view, memoryview):
        return NULL
    owner = view.obj
    return (<FileMap>owner).guard if isinstance(owner, FileMap) else NULL


cdef bint map_lost(map_guard* guard, int64_t begin, int64_t end) noexcept nogil:
    return guard_lost(guard, begin, end)
