"""Records at given positions: many at once, each checked.

Works on bytes in memory and tables of offsets, like `recordio.frames.frame`; the reader has them.
"""

import numpy as np

from libc.stdint cimport INT64_MAX, int64_t, uint8_t

from recordio.frames.frame cimport (
    FRAME_BAD_OFFSET,
    FRAME_END,
    FRAME_LOST,
    FRAME_OK,
    Frame,
    frame_confirm,
    frame_scan,
)
from recordio.bytes.mapping cimport map_guard, map_is_whole
from recordio.frames.views cimport prefetch


cdef int locate_one(
    const uint8_t* base, int64_t size, int64_t offset, Frame* frame
) noexcept nogil:
    cdef int status = frame_scan(base, size, offset, frame)
    return FRAME_BAD_OFFSET if status == FRAME_END else status


cdef int locate_many(
    const uint8_t* base,
    int64_t size,
    const int64_t* table,
    int64_t records,
    const int64_t* positions,
    int64_t* count,
    Frame* frames,
) noexcept nogil:
    cdef int64_t i, position
    cdef int status
    # Each head is likely to miss the caches; ask for all of them before looking at the first.
    for i in range(count[0]):
        position = positions[i] + (records if positions[i] < 0 else 0)
        if position < 0 or position >= records:
            count[0] = i
            return FRAME_END
        frames[i].offset = table[position]
        prefetch(base + frames[i].offset)
    for i in range(count[0]):
        status = locate_one(base, size, frames[i].offset, &frames[i])
        if status != FRAME_OK:
            count[0] = i
            return status
    return FRAME_OK


cdef int confirm_many(map_guard* guard, Frame* frames, int64_t* count) noexcept nogil:
    cdef int64_t i, end = 0
    for i in range(count[0]):
        end = max(end, frames[i].end)
    if map_is_whole(guard, end):
        return FRAME_OK
    for i in range(count[0]):
        if frame_confirm(guard, FRAME_OK, &frames[i]) != FRAME_OK:
            count[0] = i
            return FRAME_LOST
    return FRAME_OK


cdef int64_t first_outside(const int64_t[::1] offsets, int64_t size) noexcept nogil:
    cdef int64_t i
    for i in range(offsets.shape[0]):
        if offsets[i] >= size:
            return i
    return -1


cdef object as_positions(positions):
    if isinstance(positions, range):
        return np.arange(positions.start, positions.stop, positions.step, np.int64)
    array = np.asarray(positions)
    if array.ndim != 1:
        raise TypeError(f"positions must be a sequence of integers, not {type(positions).__name__}")
    if array.size == 0:
        return np.empty(0, np.int64)
    if array.dtype.kind not in "iu":
        raise TypeError(f"positions must be integers, not {array.dtype}")
    if array.dtype == np.uint64 and array.max() > INT64_MAX:
        raise IndexError(f"position {array.max()} is greater than any record file has records")
    return np.ascontiguousarray(array, np.int64)
