"""C declarations of mapped files."""

from libc.stdint cimport int64_t, uint8_t

# Declared here and not included, so that modules elsewhere need no path to map_guard.h.
cdef extern from *:
    """
    typedef struct map_guard map_guard;
    """
    ctypedef struct map_guard:
        pass

# Where the bytes of a memoryview begin; they stay there as long as the memoryview lives.
cdef const uint8_t* address_of(view) except? NULL

# Who watches over what a memoryview shows: NULL if that is no mapped file.  Lives as long as the
# memoryview.
cdef map_guard* guard_of(view)

# Whether any of the bytes [begin, end) of the file has been lost since it was mapped, so that zeros
# may have been read instead: ask after reading.  Once lost, bytes stay lost.
cdef bint map_lost(map_guard* guard, int64_t begin, int64_t end) noexcept nogil
