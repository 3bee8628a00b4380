"""Files as memory, and records as views of that memory.

Maps are read-only.  Nothing here looks for records; `recordio.frames` does.
"""

import mmap
import os

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint8_t

from recordio.frames cimport FRAME_HEAD, Frame, frame_join

__all__ = ["map_file"]

cdef extern from "views.h":
    object part_of_view "recordio_part"(object whole, Py_ssize_t start, Py_ssize_t length)


def map_file(path):
    """Map a whole file into memory, read-only.

    Parameters
    ----------
    path : str or os.PathLike
        The file; it may be empty.

    Returns
    -------
    memoryview
        Its bytes.  The map lasts as long as this or any view of it; the file is not kept locked,
        and if it shrinks meanwhile, touching the missing pages ends the process.

    Raises
    ------
    OSError
        If the file cannot be opened or mapped.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "a")
    >>> _ = path.write_bytes(b"abc")
    >>> bytes(map_file(path)[1:])
    b'bc'
    """
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            return memoryview(b"")      # an empty file cannot be mapped
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


cdef const uint8_t* address_of(view) except? NULL:
    cdef Py_buffer buffer
    PyObject_GetBuffer(view, &buffer, PyBUF_SIMPLE)
    cdef const uint8_t* base = <const uint8_t*>buffer.buf
    PyBuffer_Release(&buffer)
    return base


cdef object payload_view(object view, const uint8_t* base, const Frame* frame):
    cdef int64_t start = frame.offset + FRAME_HEAD
    if frame.parts == 1:
        return part_of_view(view, start, frame.length)
    joined = PyBytes_FromStringAndSize(NULL, frame.length)
    cdef uint8_t* out = <uint8_t*>PyBytes_AS_STRING(joined)
    with nogil:
        frame_join(base, frame, out)
    return memoryview(joined)
