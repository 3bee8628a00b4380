"""C declarations of the parser of ``tf.train.Example``."""

from libc.stdint cimport int64_t, uint8_t, uint64_t

# One field of a message: bytes lie at [begin, end) of the data, and numbers are `value`.
ctypedef struct Field:
    uint64_t number
    int kind
    uint64_t value
    int64_t begin
    int64_t end

# Read the field at `at` and move behind it; END at the end, and below zero what is wrong.
cdef int next_field(
    const uint8_t* data, int64_t* at, int64_t end, Field* field
) noexcept nogil
