"""C declarations of the look-up of keys in an index."""

from libc.stdint cimport int64_t


cdef class KeyLookup:
    cdef const int64_t[::1] keys
    cdef const int64_t[::1] order
    cdef bint ascending

    # Position of a key, of the last one of several; -1 if there is none.
    cdef int64_t find(self, int64_t key) noexcept nogil
