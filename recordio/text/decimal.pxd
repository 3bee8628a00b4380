"""Decimal text to numbers, for the compiled modules of this package.

The text must hold a line end, and at least 8 readable bytes behind it.
"""

from libc.stdint cimport int64_t, uint8_t

cdef extern from "recordio/text/decimal.h":
    # Each returns the end of the number, or NULL where there is none (or, for the short ones, none
    # that is written in the short and usual way).
    const uint8_t* parse_double "recordio_parse_double"(
        const uint8_t* text, double* value
    ) noexcept nogil
    const uint8_t* short_double "recordio_short_double"(
        const uint8_t* text, double* value
    ) noexcept nogil
    const uint8_t* parse_integer "recordio_parse_integer"(
        const uint8_t* text, int64_t* value, int* overflow
    ) noexcept nogil
    const uint8_t* short_integer "recordio_short_integer"(
        const uint8_t* text, int64_t* value
    ) noexcept nogil

    # Two integers, each with `delimiter` behind it; returns what follows.
    const uint8_t* short_pair "recordio_short_pair"(
        const uint8_t* text, uint8_t delimiter, int64_t* pair
    ) noexcept nogil


cdef inline bint loses_digits(const uint8_t* text, double whole, double kept) noexcept nogil:
    """Tell whether a whole number in a text is another one than the number that is kept of it."""
    cdef int64_t integer = 0
    cdef int overflow = 0
    cdef const uint8_t* end = parse_integer(text, &integer, &overflow)
    if end == NULL or overflow or end[0] == c'.' or end[0] == c'e' or end[0] == c'E':
        return kept != whole
    return kept >= 9.2e18 or kept <= -9.2e18 or <int64_t>kept != integer
