"""How many rows text files have, without parsing them.

A row is a line that is not blank.  Nothing here looks at what a row says.
"""

import os

from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memchr

from recordio.lines cimport TextChunk

from recordio.lines import LineChunks

__all__ = ["count_rows"]


cdef int64_t rows_in(const uint8_t* at, const uint8_t* end) noexcept nogil:
    """Lines with anything but blanks; the text ends with a line end."""
    cdef int64_t rows = 0
    while at < end:
        if at[0] == c' ' or at[0] == c'\t' or at[0] == c'\r':
            at += 1
        elif at[0] == c'\n':
            at += 1
        else:
            rows += 1
            at = <const uint8_t*>memchr(at, c'\n', end - at) + 1
    return rows


def count_rows(path, skip_header=0):
    """Count the rows of a text file or of all files in a folder.

    Parameters
    ----------
    path : str or os.PathLike
        File, folder or fsspec URL, as for `recordio.read_csv`; any file may be gzip.
    skip_header : int
        Lines to leave out at the start of every file.

    Returns
    -------
    int
        As many rows as `recordio.read_csv` returns for a file without errors.

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
    >>> _ = path.write_text("x,y\\n1,2\\n\\n3,4")
    >>> count_rows(path, skip_header=1)
    2
    """
    cdef TextChunk chunk
    cdef const uint8_t[::1] text
    cdef int64_t rows = 0
    buffer = None
    with LineChunks(os.fsdecode(path), 1 << 20, skip_header) as chunks:
        while (chunk := chunks.read(buffer)) is not None:
            buffer = chunk.buffer
            text = buffer
            if chunk.length:
                with nogil:
                    rows += rows_in(&text[0], &text[0] + chunk.length)
            text = None             # a bytearray that is viewed cannot be used again
    return rows
