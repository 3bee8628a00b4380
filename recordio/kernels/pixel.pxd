"""Declarations of `pixel.h`, pixels in memory, for Cython."""

cdef extern from "recordio/kernels/pixel.h":
    enum:
        PIXEL_SLACK         # bytes of memory that there must be behind the pixels
