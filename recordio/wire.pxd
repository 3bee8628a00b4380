"""C declarations of the walk over fields of protobuf messages."""

from libc.stdint cimport int64_t, uint8_t, uint64_t

cdef enum:
    FOUND = 0
    END = 1
    BAD_NUMBER = -1         # an integer that does not end, or has too many bits
    BAD_KIND = -2           # a wire type that does not exist, or a group without its beginning
    BAD_LENGTH = -3         # more bytes than there are
    BAD_GROUP = -4          # a group that does not end, or too many in one another

    VARINT = 0
    FIXED64 = 1
    BYTES = 2
    GROUP = 3
    GROUP_END = 4
    FIXED32 = 5

# One field of a message: bytes lie at [begin, end) of the data, and numbers are `value`.
ctypedef struct Field:
    uint64_t number
    int kind
    uint64_t value
    int64_t begin
    int64_t end

# Read an integer at `at` and move behind it.
cdef int read_varint(
    const uint8_t* data, int64_t* at, int64_t end, uint64_t* value
) noexcept nogil

# Read the field at `at` and move behind it; END at the end, and below zero what is wrong.
cdef int next_field(
    const uint8_t* data, int64_t* at, int64_t end, Field* field
) noexcept nogil
