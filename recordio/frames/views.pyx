"""Records as views of the memory that holds them, without a copy where that is possible."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport uint8_t

from recordio.frames.frame cimport FRAME_HEAD, FRAME_OK, Frame, frame_confirm, frame_join
from recordio.bytes.mapping cimport map_guard

cdef extern from "recordio/frames/views.h":
    object part_of_view "recordio_part"(object whole, Py_ssize_t start, Py_ssize_t length)


cdef bytes payload_bytes(const uint8_t* base, const Frame* frame):
    joined = PyBytes_FromStringAndSize(NULL, frame.length)
    cdef uint8_t* out = <uint8_t*>PyBytes_AS_STRING(joined)
    with nogil:
        frame_join(base, frame, out)
    return joined


cdef object payload_view(object view, const uint8_t* base, const Frame* frame):
    if frame.parts == 1:
        return part_of_view(view, frame.offset + FRAME_HEAD, frame.length)
    return memoryview(payload_bytes(base, frame))


cdef object confirmed_view(
    object view, const uint8_t* base, map_guard* guard, Frame* frame, int* status
):
    payload = payload_view(view, base, frame) if status[0] == FRAME_OK else None
    status[0] = frame_confirm(guard, status[0], frame)
    return payload
