"""C declarations of the record frame, for the modules that read mapped files without the GIL."""

from libc.stdint cimport int64_t, uint8_t

from recordio.bytes.mapping cimport map_guard, map_is_whole

cdef enum:
    FRAME_HEAD = 8                  # bytes of the head of a part: magic word, flag and length
    MAX_RECORD = (1 << 29) - 1      # bytes of the longest payload the format can hold

cdef struct Frame:
    int64_t offset      # file offset of the first part's head
    int64_t end         # file offset just behind the padded last part; or where damage was noticed
    int64_t length      # payload bytes of the whole record, escaped magic words included
    int64_t parts       # 1: the payload lies contiguous at offset + FRAME_HEAD

cdef enum FrameStatus:
    FRAME_OK
    FRAME_END                   # offset is the end of the file: there is no further record
    FRAME_BAD_OFFSET            # negative, behind the end, or no multiple of 4
    FRAME_BAD_MAGIC             # no magic word where a head should be
    FRAME_ZEROS                 # zero bytes where a head should be
    FRAME_BAD_FLAG              # a flag that no writer uses (4 to 7)
    FRAME_ORPHAN_PART           # a continuation without a first part
    FRAME_UNFINISHED            # a new record begins before the last part of this one
    FRAME_TOO_LONG              # the parts add up to more than MAX_RECORD
    FRAME_SWALLOWED_HEAD        # an unescaped magic word inside, and no record at the end
    FRAME_TRUNCATED_HEAD        # the file ends inside a head
    FRAME_TRUNCATED_PAYLOAD     # the file ends inside a payload
    FRAME_TRUNCATED_PAD         # the file ends inside the pad bytes
    FRAME_MISSING_PART          # the file ends between two parts
    FRAME_LOST                  # the bytes were there when the file was mapped

# Locate the record at `offset` of the file of `size` bytes at `base`.  `frame` is always filled;
# after damage `frame.end` is the offset to name in `frame_error`.
cdef int frame_scan(
    const uint8_t* base, int64_t size, int64_t offset, Frame* frame
) noexcept nogil

# What a status is worth after reading: FRAME_LOST if bytes that it depends on have been lost from
# the map meanwhile, else the status.  With FRAME_OK the whole record must be there.
cdef inline int frame_confirm(map_guard* guard, int status, Frame* frame) noexcept nogil:
    if status == FRAME_OK and map_is_whole(guard, frame.end):
        return status
    return frame_doubt(guard, status, frame)

cdef int frame_doubt(map_guard* guard, int status, Frame* frame) noexcept nogil

# Copy bytes [start, start + count) of the payload, magic words put back.
cdef void frame_read(
    const uint8_t* base, const Frame* frame, int64_t start, int64_t count, uint8_t* out
) noexcept nogil

# Copy the whole payload: `frame.length` bytes.
cdef void frame_join(const uint8_t* base, const Frame* frame, uint8_t* out) noexcept nogil

# Locate up to `capacity` records from `offset` on and store where they begin.  FRAME_OK: the table
# is full, go on at `last.end`.  FRAME_END: the file is done.  Otherwise `last` tells where the
# damage is.
cdef int frames_index(
    const uint8_t* base,
    int64_t size,
    int64_t offset,
    int64_t* offsets,
    int64_t capacity,
    int64_t* count,
    Frame* last,
) noexcept nogil

# Whether a part of this record holds an aligned magic word, as writers leave it that do not escape.
# FRAME_SWALLOWED_HEAD if one does and neither another record nor the end of the file follows.
cdef int frame_check_payload(
    const uint8_t* base, int64_t size, Frame* frame, bint* unescaped
) noexcept nogil

# Offset of the next word at or behind `offset` that looks like the head of a first part; `size` if
# there is none.
cdef int64_t next_head(const uint8_t* base, int64_t size, int64_t offset) noexcept nogil

# The exception for a status that is neither FRAME_OK nor FRAME_END.
cdef object frame_error(int status, path, int64_t offset, record)
