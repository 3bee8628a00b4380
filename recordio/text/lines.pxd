"""C declarations of chunks of text."""

from libc.stdint cimport int64_t, uint8_t

cdef enum:
    TEXT_PADDING = 16       # bytes behind every chunk; parsers load up to 8 characters together

# Number of times that `byte` occurs.
cdef int64_t count_byte(const uint8_t* text, int64_t length, uint8_t byte) noexcept nogil

# Lines with anything but blanks; the text ends with a line end.
cdef int64_t rows_in(const uint8_t* at, const uint8_t* end, uint8_t delimiter) noexcept nogil

cdef class TextChunk:
    cdef readonly object path
    cdef readonly int64_t file_number
    cdef readonly int64_t offset
    cdef readonly int64_t first_line
    cdef readonly int64_t lines
    cdef readonly int64_t length
    cdef readonly object buffer
    cdef public object target
