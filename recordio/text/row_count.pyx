"""How many rows text files have and where some of them are, without parsing them.

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

__all__ = ["RowPlaces", "count_rows", "row_starts"]


cdef int64_t starts_in(const uint8_t* text, int64_t length, int64_t offset, uint8_t comment,
                       int64_t* starts) noexcept nogil:
    """Where lines with anything but blanks and comments begin; returns how many there are."""
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


def row_starts(path, comment="#", max_line_bytes=MAX_LINE_BYTES, remote_options=None):
    """Where the rows of a text file, or of all files in a folder, begin.

    Parameters
    ----------
    path : str or os.PathLike
        File, folder or fsspec URL; any file may be gzip.
    comment : str
        Lines that begin with this character are no rows.
    max_line_bytes : int
        A longer line is an error.
    remote_options : mapping, optional
        How the server of a URL is reached.

    Returns
    -------
    sizes : list of int
        Bytes of text in each file.
    starts : numpy.ndarray of int64
        First byte of the line of each row, counted through all files.

    Raises
    ------
    TextFormatError, OSError
        As `RowPlaces`.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "a.libsvm")
    >>> _ = path.write_text("1 1:2\\n# no\\n0 2:3")
    >>> row_starts(path)
    ([16], array([ 0, 11]))
    """
    cdef TextChunk chunk
    cdef const uint8_t[::1] text
    cdef int64_t[::1] view
    cdef int64_t rows, offset
    cdef uint8_t first = ord(comment)
    buffer, found, files = None, [], []
    with LineChunks(
        os.fsdecode(path), max_line_bytes=max_line_bytes, remote_options=remote_options
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
            found.append(starts[:rows] if 2 * rows > chunk.lines else starts[:rows].copy())
            files.append(chunk.file_number)
        sizes = chunks.sizes
    bases = list(itertools.accumulate(sizes, initial=0))
    return sizes, np.concatenate(
        [np.empty(0, np.int64), *(some + bases[file] for some, file in zip(found, files))]
    )


class RowPlaces:
    """The number of rows in a text file or folder, and the place of every row that begins a chunk.

    Parameters
    ----------
    path : str or os.PathLike
        File, folder or fsspec URL, as for `recordio.read_csv`; any file may be gzip.
    skip_header : int
        Lines to leave out at the start of every file.
    delimiter : str
        Separates fields, and hence is no blank.
    chunk_bytes : int
        Text between two places that are remembered, about; each takes 32 bytes of memory.
    max_line_bytes : int
        A longer line is an error.
    remote_options : mapping, optional
        How the server of a URL is reached.

    Attributes
    ----------
    count : int
        Rows, bad ones included.

    Raises
    ------
    TextFormatError
        For a line that is too long, and for damaged gzip.
    OSError
        If a file cannot be read.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "a.csv")
    >>> _ = path.write_text("1,2\\n\\n3,4\\n5,6\\n")
    >>> places = RowPlaces(path, chunk_bytes=5)
    >>> places.count, places.before(1)
    (3, (1, 0, 5, 3))
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
                place = rows, chunk.file_number, chunk.offset, chunk.first_line
                for column, value in zip(self._columns, place):
                    column.append(value)
                buffer = chunk.buffer
                text = buffer
                if chunk.length:
                    with nogil:
                        rows += rows_in(&text[0], &text[0] + chunk.length, separator)
                text = None             # a bytearray that is viewed cannot be used again
        self.count = rows

    def before(self, row):
        """The last remembered place at or before a row, of which there must be one at least.

        Parameters
        ----------
        row : int
            Counted from 0.

        Returns
        -------
        row, file_number, offset, line : int
            The row there, and what `LineChunks.go_to` needs to begin with it.
        """
        number = max(bisect.bisect_right(self._columns[0], row) - 1, 0)
        return tuple(column[number] for column in self._columns)


def count_rows(path, skip_header=0, delimiter=",", max_line_bytes=MAX_LINE_BYTES):
    """Count the rows of a text file or of all files in a folder.

    Parameters
    ----------
    path, skip_header, delimiter, max_line_bytes
        As for `RowPlaces`.

    Returns
    -------
    int
        As many rows as `recordio.read_csv` returns for a file without errors.

    Raises
    ------
    TextFormatError, OSError
        As `RowPlaces`.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "a.csv")
    >>> _ = path.write_text("x,y\\n1,2\\n\\n3,4")
    >>> count_rows(path, skip_header=1)
    2
    """
    return RowPlaces(path, skip_header, delimiter, max_line_bytes=max_line_bytes).count
