"""C declarations of the search for records at given positions."""

from libc.stdint cimport int64_t, uint8_t

from recordio.frames.frame cimport Frame
from recordio.bytes.mapping cimport map_guard

# `frame_scan` for an offset at which there must be a record.
cdef int locate_one(
    const uint8_t* base, int64_t size, int64_t offset, Frame* frame
) noexcept nogil

# Locate records at `count` wanted positions; FRAME_END stands for a position out of range.
# Anything but FRAME_OK belongs to the wanted position whose number is then left in `count`.
cdef int locate_many(
    const uint8_t* base,
    int64_t size,
    const int64_t* table,
    int64_t records,
    const int64_t* positions,
    int64_t* count,
    Frame* frames,
) noexcept nogil

# `frame_confirm` for `count` records that were found; in the same way.
cdef int confirm_many(map_guard* guard, Frame* frames, int64_t* count) noexcept nogil

# Number of the first offset that is not below `size`; -1 if there is none.
cdef int64_t first_outside(const int64_t[::1] offsets, int64_t size) noexcept nogil

# Positions as a contiguous int64 array; only integers are taken.
cdef object as_positions(positions)
