"""What other modules need of the JPEG decoder: `decoder.h` says what it means."""

from libc.stdint cimport int64_t


cdef extern from "iterators/images/codecs/jpeg/decoder.h" nogil:
    enum:
        JPEG_NUM_LIMITS

    ctypedef struct jpeg_limits:
        int64_t most[JPEG_NUM_LIMITS]

    cdef enum jpeg_status:
        JPEG_OK
        JPEG_NOT_JPEG
        JPEG_CORRUPT
        JPEG_TRUNCATED
        JPEG_TOO_LARGE
        JPEG_TOO_MANY_SCANS
        JPEG_NO_MEMORY
        JPEG_UNSUPPORTED
        JPEG_BAD_ARGUMENT
        JPEG_UNAVAILABLE


# The default limits except for those that are given by name.
cdef int load_limits(jpeg_limits* target, dict limits) except -1
