"""Numbers of rows of text files, and positions of some rows, without parsing them.

A row is a line that is not blank.
"""

import array
import bisect
import itertools
import os

import numpy as np

from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memchr

from recordio.text.lines cimport TextChunk, rows_in

from recordio.text.lines import MAX_LINE_BYTES, LineChunks

__all__ = ["RowPositions", "count_rows", "row_starts"]


cdef int64_t starts_in(const uint8_t* text, int64_t length, int64_t offset, uint8_t comment,
                       int64_t* starts) noexcept nogil:
    """Store the starts of lines with anything but blanks and comments; return their number."""
    cdef const uint8_t* at = text
    cdef const uint8_t* end = text + length
    cdef const uint8_t* line
    cdef int64_t rows = 0
    while at < end:
        line = at
        while at[0] == c' ' or at[0] == c'\t' or at[0] == c'\r':
            at += 1
        if at[0] != c'\n' and at[0] != comment:
            starts[rows] = offset + (line - text)
            rows += 1
        at = <const uint8_t*>memchr(at, c'\n', end - at) + 1
    return rows


def row_starts(
    path, comment="#", max_line_bytes=MAX_LINE_BYTES, remote_options=None, skip_header=0
):
    """Find the rows of a text file, or of all files in a folder.

    It returns the bytes of text in each file, and the first byte of each row, counted through all
    files.  Lines that begin with `comment` are no rows, nor are
    the first `skip_header` lines of every file.
    """
    cdef TextChunk chunk
    cdef const uint8_t[::1] text
    cdef int64_t[::1] view
    cdef int64_t rows, offset
    cdef uint8_t first = ord(comment)
    buffer, row_starts, files = None, [], []
    with LineChunks(
        os.fsdecode(path), skip_header=skip_header, max_line_bytes=max_line_bytes,
        remote_options=remote_options,
    ) as chunks:
        while (chunk := chunks.read(buffer)) is not None:
            buffer = chunk.buffer
            text = buffer
            starts = np.empty(chunk.lines + 1, np.int64)
            view = starts
            offset = chunk.offset
            with nogil:
                rows = starts_in(&text[0], chunk.length, offset, first, &view[0])
            text = None             # a bytearray that is viewed cannot be used again
            # Lines that are no rows need no memory.
            row_starts.append(starts[:rows] if 2 * rows > chunk.lines else starts[:rows].copy())
            files.append(chunk.file_number)
        sizes = chunks.sizes
    bases = list(itertools.accumulate(sizes, initial=0))
    return sizes, np.concatenate(
        [np.empty(0, np.int64), *(some + bases[file] for some, file in zip(row_starts, files))]
    )


class RowPositions:
    """Number of rows in a text file or folder, and the position of every row that begins a chunk.

    The parameters are those of `recordio.read_csv`.  A chunk has about `chunk_bytes` of text, and
    its position takes 32 bytes of memory.  `count` includes bad rows.
    """

    def __init__(
        self, path, skip_header=0, delimiter=",", chunk_bytes=1 << 20,
        max_line_bytes=MAX_LINE_BYTES, remote_options=None,
    ):
        cdef TextChunk chunk
        cdef const uint8_t[::1] text
        cdef int64_t rows = 0
        cdef uint8_t separator = ord(delimiter)
        self._columns = [array.array("q") for _ in range(4)]
        buffer = None
        with LineChunks(
            os.fsdecode(path), chunk_bytes, skip_header, max_line_bytes=max_line_bytes,
            remote_options=remote_options,
        ) as chunks:
            while (chunk := chunks.read(buffer)) is not None:
                position = rows, chunk.file_number, chunk.offset, chunk.first_line
                for column, value in zip(self._columns, position):
                    column.append(value)
                buffer = chunk.buffer
                text = buffer
                if chunk.length:
                    with nogil:
                        rows += rows_in(&text[0], &text[0] + chunk.length, separator)
                text = None             # a bytearray that is viewed cannot be used again
        self.count = rows

    def before(self, row):
        """Return the last remembered position at or before a row, of which there must be one.

        It has the row there, and the `file_number`, `offset` and `line` for `LineChunks.go_to`.
        """
        number = max(bisect.bisect_right(self._columns[0], row) - 1, 0)
        return tuple(column[number] for column in self._columns)


def count_rows(path, skip_header=0, delimiter=",", max_line_bytes=MAX_LINE_BYTES):
    """Count the rows of a text file or of all files in a folder, as `recordio.read_csv` does."""
    return RowPositions(path, skip_header, delimiter, max_line_bytes=max_line_bytes).count
