"""C declarations of records as views of mapped files."""

from libc.stdint cimport uint8_t

from recordio.frames.frame cimport Frame
from recordio.bytes.mapping cimport map_guard

cdef extern from "recordio/frames/views.h":
    void prefetch "recordio_prefetch"(const void* address) noexcept nogil
    int pause_collector "recordio_pause_collector"()
    void resume_collector "recordio_resume_collector"(int was)
    bint UNMAP_ON_CLOSE "RECORDIO_UNMAP_ON_CLOSE"

# The payload of a located record, copied.
cdef bytes payload_bytes(const uint8_t* base, const Frame* frame)

# The payload of a located record as a read-only memoryview; `view` is the whole file at `base`.
cdef object payload_view(object view, const uint8_t* base, const Frame* frame)

# The same, confirmed after it was made: `status` says what locating said, and then what is true.
cdef object confirmed_view(
    object view, const uint8_t* base, map_guard* guard, Frame* frame, int* status
)
