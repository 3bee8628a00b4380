from libc.stdint cimport int64_t

from iterators.images.image_cache cimport ImageCache


# A cache, and what the images in it are.
cdef class CachedImages:
    cdef readonly ImageCache cache
    cdef int resize         # short side of the images; -1: as decoded
    cdef int inter_method
    cdef int64_t hits       # samples made from cached images
    cdef int64_t misses

    # Whether the image of a record is there, and sound: it will not be decoded.
    cdef bint has(self, int64_t number) noexcept nogil
