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
