"""C declarations of mapped files."""

from libc.stdint cimport int64_t, uint8_t

cdef extern from "recordio/bytes/map_guard.h" nogil:
    ctypedef struct map_guard:
        pass
    # The quick half of `map_lost`, without a call: true if nothing before `end` has been lost.
    bint map_is_whole(const map_guard* guard, int64_t end)

# Where the bytes of a memoryview begin; they stay there as long as the memoryview lives.
cdef const uint8_t* address_of(view) except? NULL

# Who watches over what a memoryview shows: NULL if that is no mapped file.  Lives as long as the
# memoryview.
cdef map_guard* guard_of(view)

# Whether any of the bytes [begin, end) of the file has been lost since it was mapped, so that zeros
# may have been read instead: ask after reading.  Once lost, bytes stay lost.
cdef bint map_lost(map_guard* guard, int64_t begin, int64_t end) noexcept nogil
