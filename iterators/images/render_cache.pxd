from libc.stdint cimport int64_t

from iterators.images.augment.geometry cimport FirstResize
from iterators.images.cache.image_cache cimport CachedImage, ImageCache


# A cache, and what the images in it are.
cdef class CachedImages:
    cdef readonly ImageCache cache
    cdef FirstResize resize  # of the images
    cdef int64_t hits       # samples made from cached images
    cdef int64_t misses

    # As that of the cache, but an image of sizes that this recipe does not give is refused.
    cdef int find(self, int64_t number, CachedImage* image) noexcept nogil
