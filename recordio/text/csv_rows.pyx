"""Rows of numbers in CSV text to arrays, one chunk of text at a time."""

import numpy as np

from libc.math cimport fabs, floor, isinf
from libc.stdint cimport INT32_MAX, INT32_MIN, int32_t, int64_t, uint8_t
from libc.string cimport memchr, memset

from recordio.text.decimal cimport (
    loses_digits,
    parse_double,
    parse_integer,
    short_double,
    short_integer,
    short_pair,
)
from recordio.text.lines cimport TextChunk, rows_in

from recordio.errors import TextFormatError
from recordio.text.lines import MAX_BAD_ROWS, note_bad_row

__all__ = ["most_rows", "parse_chunk"]

ctypedef fused number:
    float
    double
    int32_t
    int64_t
    uint8_t

cdef enum:
    PAIR_TRIES = 4
    EXACT_IN_FLOAT = 1 << 24       # whole numbers beyond it may be rounded

cdef enum Status:
    OK
    TOO_SHORT
    TOO_LONG
    EMPTY
    JUNK
    OVERFLOW
    INEXACT

cdef struct Fault:
    Status status
    int64_t line            # from 0
    int64_t column          # from 0
    const uint8_t* field

_SHOWN = 40                 # characters of the offending text


cdef inline bint _is_blank(uint8_t c, uint8_t delimiter) noexcept nogil:
    return (c == c' ' or c == c'\t' or c == c'\r') and c != delimiter


cdef inline const uint8_t* _skip_blanks(const uint8_t* at, uint8_t delimiter) noexcept nogil:
    while _is_blank(at[0], delimiter):
        at += 1
    return at


cdef inline bint _in_range(number* out, int64_t value) noexcept nogil:
    """Store an integer if its type holds it."""
    if number is int32_t:
        if value < INT32_MIN or value > INT32_MAX:
            return False
    elif number is uint8_t:
        if value < 0 or value > 255:
            return False
    out[0] = <number>value
    return True


cdef inline bint _is_rounded(number* out, const uint8_t* text, double real) noexcept nogil:
    """Tell whether a whole number that was stored has lost digits."""
    if number is float or number is double:
        if fabs(real) <= EXACT_IN_FLOAT or isinf(real) or real != floor(real):
            return False
        return loses_digits(text, real, <double>out[0])
    else:
        return False


cdef inline const uint8_t* _short_field(
    const uint8_t* at, bint exact, number* out
) noexcept nogil:
    """Parse a number as it mostly looks, or return NULL: what follows must still be checked."""
    cdef double real = 0
    cdef int64_t integer = 0
    cdef const uint8_t* text = at
    if number is float or number is double:
        at = short_double(at, &real)
        out[0] = <number>real
        if exact and _is_rounded(out, text, real):
            return NULL
    else:
        at = short_integer(at, &integer)
        if not _in_range(out, integer):
            return NULL
    return at


cdef Status _any_field(
    const uint8_t** start, uint8_t delimiter, bint last, bint exact, number* out
) noexcept nogil:
    """Parse any field with its surroundings; `start` moves behind the delimiter or line end.

    If the row is too short, it stays, or moves to the line end if there is a field before that.
    """
    cdef const uint8_t* at = _skip_blanks(start[0], delimiter)
    cdef const uint8_t* text = at
    cdef double real = 0
    cdef int64_t integer = 0
    cdef int overflow = 0
    if at[0] == c'\n':
        return TOO_SHORT
    if at[0] == delimiter:
        return EMPTY
    if number is float or number is double:
        at = parse_double(at, &real)
        out[0] = <number>real
    else:
        at = parse_integer(at, &integer, &overflow)
    if at == NULL:
        return JUNK
    at = _skip_blanks(at, delimiter)
    if at[0] != delimiter and at[0] != c'\n':
        return JUNK
    if number is int32_t or number is int64_t or number is uint8_t:
        if overflow or not _in_range(out, integer):
            return OVERFLOW
    if exact and _is_rounded(out, text, real):
        return INEXACT
    if not last:
        if at[0] == c'\n':
            start[0] = at
            return TOO_SHORT
    elif at[0] == delimiter:        # one more at the end of the line is harmless
        at = _skip_blanks(at + 1, delimiter)
        if at[0] != c'\n':
            start[0] = at
            return TOO_LONG
    start[0] = at + 1
    return OK


cdef Status _fill_empty(
    const uint8_t** start, uint8_t delimiter, bint last, number* out, double missing
) noexcept nogil:
    """Store the value of an empty field; `start` moves behind the delimiter or line end."""
    cdef const uint8_t* at = _skip_blanks(start[0], delimiter)
    out[0] = <number>missing
    if last and at[0] == delimiter:         # one more at the end of the line is harmless
        at = _skip_blanks(at + 1, delimiter)
        if at[0] != c'\n':
            start[0] = at
            return TOO_LONG
    start[0] = at + 1
    return OK


cdef int64_t _parse_rows(
    const uint8_t** start,
    const uint8_t* end,
    int64_t columns,
    uint8_t delimiter,
    number* out,
    int64_t room,
    const double* missing,
    bint exact,
    Fault* fault,
) noexcept nogil:
    """Parse whole lines as long as there is room for a row, and move `start` behind them.

    Empty fields are `missing`, or an error if that is NULL; with `exact` a whole number that is
    rounded is an error.  Returns the rows; at the first error
    `fault` describes it.
    """
    cdef const uint8_t* at = start[0]
    cdef int64_t rows = 0, column, line = 0
    cdef const uint8_t* next
    cdef int64_t[2] pair
    cdef int tries          # worth of looking for pairs, which other numbers use up
    cdef Status status = OK
    while at < end and rows < room:
        column = 0
        tries = PAIR_TRIES
        while column < columns - 1:
            if tries > 0 and column < columns - 2:
                next = short_pair(at, delimiter, pair)
                if (
                    next != NULL
                    and _in_range(out + column, pair[0]) and _in_range(out + column + 1, pair[1])
                ):
                    at = next
                    column += 2
                    tries = PAIR_TRIES
                    continue
                tries -= 1
            next = _short_field(at, exact, out + column)
            if next != NULL and next[0] == delimiter:
                at = next + 1
                column += 1
                continue
            fault.field = at
            status = _any_field(&at, delimiter, False, exact, out + column)
            if status == EMPTY and missing != NULL:
                status = _fill_empty(&at, delimiter, False, out + column, missing[0])
            if status != OK:
                break
            column += 1
        else:
            next = _short_field(at, exact, out + column)
            if next != NULL and next[0] == c'\n':
                at = next + 1
            elif next != NULL and next[0] == c'\r' and next[1] == c'\n':
                at = next + 2
            else:
                fault.field = at
                status = _any_field(&at, delimiter, True, exact, out + column)
                if status == TOO_SHORT and column > 0:
                    status = EMPTY      # it ends with a delimiter
                if status == EMPTY and missing != NULL:
                    status = _fill_empty(&at, delimiter, True, out + column, missing[0])
        line += 1
        if status == OK:
            rows += 1
            out += columns
        elif status == TOO_SHORT and column == 0 and _skip_blanks(fault.field, 0)[0] == c'\n':
            at = _skip_blanks(fault.field, 0) + 1
            status = OK             # a blank line
        else:
            if status == TOO_SHORT and at[0] == c'\n' and at > fault.field:
                column += 1         # the field is fine, the next one is missing
            elif status == TOO_LONG:
                column += 1
                fault.field = at
            fault.status = status
            fault.line = line - 1
            fault.column = column
            return rows
    fault.status = OK
    start[0] = at
    return rows


def most_rows(
    TextChunk chunk, int64_t columns, uint8_t delimiter, bint skipping, bint filling
):
    """Return the most rows of a chunk: blank lines are none, and a number takes two bytes.

    With `filling` a field takes one, as it may be empty.  Bad rows count, too: the first one, or
    with `skipping` as many as are allowed.
    """
    cdef int64_t fitting = chunk.length // (columns if filling else 2 * columns) + 1
    cdef const uint8_t[::1] text
    if chunk.lines <= fitting or chunk.lines * columns <= 1 << 22:
        return chunk.lines      # no more than a few MiB are at stake
    text = chunk.buffer
    if skipping:
        fitting += <int64_t>MAX_BAD_ROWS
    return min(rows_in(&text[0], &text[0] + chunk.length, delimiter), fitting)


def parse_chunk(
    TextChunk chunk, int64_t columns, uint8_t delimiter, array, int64_t row, list bad, filled=None,
    bint exact=False,
):
    """Parse a chunk into `array` (rows, columns), from row `row` on; returns the rows.

    There must be room for `most_rows`.

    With `bad` a row that cannot be read is zero, and the list gets pairs of its row in the chunk
    and its error; with None that is raised.  Empty fields become `filled` unless that is None;
    with `exact` whole numbers that would be rounded are errors.
    """
    cdef const uint8_t[::1] text = chunk.buffer
    cdef double value = 0 if filled is None else filled
    cdef const double* missing = NULL if filled is None else &value
    cdef uint8_t[::1] raw = array.reshape(-1).view(np.uint8)
    cdef int64_t rows = 0, left, line = 0, itemsize = array.itemsize, row_bytes
    cdef int64_t room = most_rows(chunk, columns, delimiter, bad is not None, missing != NULL)
    cdef char kind = ord(array.dtype.kind)
    cdef Fault fault
    if raw.shape[0] < (row + room) * columns * itemsize:
        raise ValueError("more rows than room")
    if chunk.length == 0 or chunk.buffer[chunk.length - 1] != 10:
        raise ValueError("a chunk must end with a line end")
    cdef const uint8_t* at = &text[0]
    cdef const uint8_t* end = at + chunk.length
    cdef uint8_t* out
    row_bytes = columns * itemsize
    while True:
        out = &raw[0] + (row + rows) * row_bytes
        fault.status = OK
        fault.line = fault.column = 0
        fault.field = at
        left = room - rows
        with nogil:
            if kind == c'f' and itemsize == 4:
                rows += _parse_rows(
                    &at, end, columns, delimiter, <float*>out, left, missing, exact, &fault)
            elif kind == c'f':
                rows += _parse_rows(
                    &at, end, columns, delimiter, <double*>out, left, missing, exact, &fault)
            elif kind == c'i' and itemsize == 4:
                rows += _parse_rows(
                    &at, end, columns, delimiter, <int32_t*>out, left, missing, exact, &fault)
            elif kind == c'i':
                rows += _parse_rows(
                    &at, end, columns, delimiter, <int64_t*>out, left, missing, exact, &fault)
            else:
                rows += _parse_rows(
                    &at, end, columns, delimiter, <uint8_t*>out, left, missing, exact, &fault)
        if fault.status == OK:
            if rows_in(at, end, delimiter):
                raise ValueError("more rows than room")
            return rows
        fault.line += line
        error = _error(chunk, fault.field - &text[0], fault, columns, chr(delimiter), array.dtype)
        note_bad_row(bad, rows, error)
        memset(&raw[0] + (row + rows) * row_bytes, 0, row_bytes)
        rows += 1
        line = fault.line + 1
        at = <const uint8_t*>memchr(fault.field, c'\n', end - fault.field) + 1
        if at == end:
            return rows


cdef object _error(TextChunk chunk, start, Fault fault, columns, delimiter, dtype):
    text = bytes(chunk.buffer[start:chunk.buffer.find(b"\n", start)])
    if fault.status != TOO_SHORT:
        text = text.split(delimiter.encode(), 1)[0]
    shown = text.strip().decode("utf-8", "backslashreplace")
    shown = repr(shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "...")
    kind = "a decimal number" if dtype.kind == "f" else "a decimal integer"
    reason = {
        TOO_SHORT: f"the row has {fault.column} fields instead of {columns}; it ends with "
                   + (shown if text.strip() else "a delimiter"),
        TOO_LONG: f"the row has more than {columns} fields; the next one is {shown}",
        EMPTY: f"the field is empty; every row needs {columns} numbers, and missing= gives a value"
               " for empty fields",
        JUNK: f"{shown} is not {kind}; fields are separated by {delimiter!r}, and header lines"
              " need skip_header",
        OVERFLOW: f"{shown} does not fit into {dtype}",
        INEXACT: f"{shown} has no exact {dtype}: another dtype may hold it",
    }[fault.status]
    if fault.status == JUNK and text.strip()[:1] in (b'"', b"'"):
        reason = f"{shown} is in quotes: numbers stand without quotes here"
    return TextFormatError(
        reason, path=chunk.path, line=chunk.first_line + fault.line, column=fault.column + 1
    )
