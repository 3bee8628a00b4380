"""Declarations of the limits for the JPEG decoders; `jpeg_limits.h` explains them."""

from libc.stdint cimport int64_t


cdef extern from "recordio/formats/jpeg_limits.h" nogil:
    enum:
        JPEG_NUM_LIMITS

    ctypedef struct jpeg_limits:
        int64_t most[JPEG_NUM_LIMITS]


# The default limits except for those that are given by name.
cdef int load_limits(jpeg_limits* target, dict limits) except -1
