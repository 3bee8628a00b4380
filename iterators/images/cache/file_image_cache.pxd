from libc.stdint cimport int64_t, uint8_t, uint64_t

from recordio.bytes.mapping cimport map_guard

from iterators.images.cache.image_cache cimport ImageCache


# Images in a file, which other processes use at the same time and later.
cdef class FileImageCache(ImageCache):
    cdef readonly str path
    cdef int file
    cdef const uint8_t* base            # of the mapping
    cdef map_guard* guard
    cdef int64_t used_offset             # where things lie in the file
    cdef int64_t table_offset
    cdef int64_t data_offset
    cdef int64_t settled                # bytes of the data that are in use for certain

    cdef int read_words(self, int64_t number, uint64_t* found) noexcept nogil
