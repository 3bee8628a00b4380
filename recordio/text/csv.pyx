"""Numbers in CSV text to arrays, at once or in chunks.

Every field is a decimal number; there are no quotes, no names and no missing values.  Text that is
anything else is an error with its line and column, never a guess.
"""

import weakref

import numpy as np

from libc.stdint cimport INT32_MAX, INT32_MIN, int32_t, int64_t, uint8_t
from libc.string cimport memchr, memset

from recordio.text.decimal cimport (
    parse_double,
    parse_integer,
    short_double,
    short_integer,
    short_pair,
)
from recordio.text.lines cimport TextChunk, rows_in

from recordio.text.csv_format import CSVFormat, whole_number
from recordio.errors import TextFormatError
from recordio.text.lines import MAX_BAD_ROWS, MAX_LINE_BYTES, LineChunks, note_bad_row
from recordio.ordered import OrderedWork
from recordio.text.row_count import RowPositions
from recordio.text.growing_array import Table

__all__ = ["CSVReader", "read_csv"]

ctypedef fused number:
    float
    double
    int32_t
    int64_t
    uint8_t

cdef enum:
    PAIR_TRIES = 4

cdef enum Status:
    OK
    TOO_SHORT
    TOO_LONG
    EMPTY
    JUNK
    OVERFLOW

cdef struct Fault:
    Status status
    int64_t line            # from 0
    int64_t column          # from 0
    const uint8_t* field

_SHOWN = 40                 # characters of the offending text
_FIRST_BYTES = 1 << 17      # of the first chunk of a stream: nobody can begin before it is there


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


cdef inline const uint8_t* _short_field(const uint8_t* at, number* out) noexcept nogil:
    """Parse a number as it mostly looks, or return NULL: what follows must still be checked."""
    cdef double real = 0
    cdef int64_t integer = 0
    if number is float or number is double:
        at = short_double(at, &real)
        out[0] = <number>real
    else:
        at = short_integer(at, &integer)
        if not _in_range(out, integer):
            return NULL
    return at


cdef Status _any_field(
    const uint8_t** start, uint8_t delimiter, bint last, number* out
) noexcept nogil:
    """Parse any field with its surroundings; `start` moves behind the delimiter or line end.

    If the row is too short, it stays, or moves to the line end if there is a field before that.
    """
    cdef const uint8_t* at = _skip_blanks(start[0], delimiter)
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


cdef int64_t _parse_rows(
    const uint8_t** start,
    const uint8_t* end,
    int64_t columns,
    uint8_t delimiter,
    number* out,
    int64_t room,
    Fault* fault,
) noexcept nogil:
    """Parse whole lines as long as there is room for a row, and move `start` behind them.

    Returns the rows; at the first error `fault` describes it.
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
            next = _short_field(at, out + column)
            if next != NULL and next[0] == delimiter:
                at = next + 1
                column += 1
                continue
            fault.field = at
            status = _any_field(&at, delimiter, False, out + column)
            if status != OK:
                break
            column += 1
        else:
            next = _short_field(at, out + column)
            if next != NULL and next[0] == c'\n':
                at = next + 1
            elif next != NULL and next[0] == c'\r' and next[1] == c'\n':
                at = next + 2
            else:
                fault.field = at
                status = _any_field(&at, delimiter, True, out + column)
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


cdef int64_t _most_rows(TextChunk chunk, int64_t columns, uint8_t delimiter, bint skipping):
    """Return the most rows of a chunk: blank lines are none, and a number takes two bytes.

    Bad rows count, too: the first one, or with `skipping` as many as are allowed.
    """
    cdef int64_t fitting = chunk.length // (2 * columns) + 1
    cdef const uint8_t[::1] text
    if chunk.lines <= fitting or chunk.lines * columns <= 1 << 22:
        return chunk.lines      # no more than a few MiB are at stake
    text = chunk.buffer
    if skipping:
        fitting += <int64_t>MAX_BAD_ROWS
    return min(rows_in(&text[0], &text[0] + chunk.length, delimiter), fitting)


cdef int64_t _parse_chunk(
    TextChunk chunk, int64_t columns, uint8_t delimiter, array, int64_t row, list bad
) except -1:
    """Parse a chunk into `array` (rows, columns), from row `row` on; returns the rows.

    There must be room for `_most_rows`.

    With `bad` a row that cannot be read is zero, and the list gets pairs of its row in the chunk
    and its error; with None that is raised.
    """
    cdef const uint8_t[::1] text = chunk.buffer
    cdef uint8_t[::1] raw = array.reshape(-1).view(np.uint8)
    cdef int64_t rows = 0, left, line = 0, itemsize = array.itemsize, row_bytes
    cdef int64_t room = _most_rows(chunk, columns, delimiter, bad is not None)
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
                rows += _parse_rows(&at, end, columns, delimiter, <float*>out, left, &fault)
            elif kind == c'f':
                rows += _parse_rows(&at, end, columns, delimiter, <double*>out, left, &fault)
            elif kind == c'i' and itemsize == 4:
                rows += _parse_rows(&at, end, columns, delimiter, <int32_t*>out, left, &fault)
            elif kind == c'i':
                rows += _parse_rows(&at, end, columns, delimiter, <int64_t*>out, left, &fault)
            else:
                rows += _parse_rows(&at, end, columns, delimiter, <uint8_t*>out, left, &fault)
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
        TOO_SHORT: f"the row has {fault.column} fields instead of {columns}; it ends with {shown}",
        TOO_LONG: f"the row has more than {columns} fields; the next one is {shown}",
        EMPTY: f"the field is empty; every row needs {columns} numbers",
        JUNK: f"{shown} is not {kind}; fields are separated by {delimiter!r}, and header lines"
              " need skip_header",
        OVERFLOW: f"{shown} does not fit into {dtype}",
    }[fault.status]
    return TextFormatError(
        reason, path=chunk.path, line=chunk.first_line + fault.line, column=fault.column + 1
    )


def read_csv(
    path, shape=None, dtype="float32", delimiter=",", skip_header=0, threads=None, bad_rows=None,
    *, max_line_bytes=MAX_LINE_BYTES, max_array_bytes=None, remote_options=None,
):
    """Read a CSV file of numbers into one array.

    Parameters
    ----------
    path : str or os.PathLike
        A file, a folder (all its files, in the order of their names), a pattern such as
        ``part-*.csv``, several of them with semicolons in between, or fsspec URLs; any file may be
        gzip.
    shape : tuple of int, optional
        Shape of a row, filled in C order; every line must have as many fields.  By default
        ``(columns,)`` with the number of fields in the first line that is not blank.
    dtype : {"float32", "float64", "int32", "int64", "uint8"}
        Type of the array.  Fractions and exponents are for the float types only.
    delimiter : str
        One ASCII character between fields; no letter, digit, sign or point.
    skip_header : int
        Lines to leave out at the start of every file.
    threads : int, optional
        Threads that parse; by default one for every processor of the process.
    bad_rows : dict, optional
        If given, a row that cannot be read is no error: it is zero in the array, and
        ``bad_rows[row]`` becomes its `TextFormatError`, about 1 KB each.  More than 16384 such rows
        in about 1 MiB of text are an error all the same.
    max_line_bytes : int
        A longer line is an error, so that a file without line ends does not fill the memory.
    max_array_bytes : int, optional
        A larger array is an error.  By default 64 times the size of the files as they are stored,
        at least 256 MiB, which only gzip files or many bad rows can exceed.
    remote_options : mapping, optional
        How the server of a URL is reached: the options of fsspec's file system for it, and for S3
        also the names `endpoint_url`, `access_key_id`, `secret_access_key`, `session_token` and
        `region`.  Options that are not given come from the environment.

    Returns
    -------
    numpy.ndarray
        Shape ``(rows, *shape)``, of type `dtype`.

    Raises
    ------
    TextFormatError
        For a row that is too short or too long, an empty field, text that is no number, or an
        integer that does not fit: the first one in the file, with its line and column.  Also beyond
        a limit, for damaged gzip, and if a pattern matches no file.
    ValueError
        If a parameter is out of its range.
    OSError
        If a file cannot be read.

    Notes
    -----
    As in MXNet's CSVIter, these are accepted: blank lines (left out), CRLF, a missing final line
    end, a byte order mark, blanks around numbers, one more delimiter at the end of a line, ``nan``
    and ``inf`` in upper or lower case.  Unlike there, integers are always decimal, and ``1x`` is
    an error.  Values are those of ``float(text)``, rounded to float32 where that is `dtype`.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "a.csv")
    >>> _ = path.write_text("1, 2.5\\n-3,4e-2\\n")
    >>> read_csv(path)
    array([[ 1.  ,  2.5 ],
           [-3.  ,  0.04]], dtype=float32)
    """
    form = CSVFormat(
        path, shape, dtype, delimiter, skip_header, threads, max_line_bytes, max_array_bytes,
        remote_options,
    )
    with LineChunks(
        form.path, skip_header=form.skip_header, max_line_bytes=form.max_line_bytes,
        remote_options=remote_options,
    ) as chunks:
        table = Table(form.columns, form.dtype, chunks.stored_bytes())

        def read(buffer):
            chunk = chunks.read(buffer)
            if chunk is not None:
                room = _most_rows(chunk, form.columns, ord(form.delimiter), bad_rows is not None)
                form.check(table.reserved + room, chunks.stored_read)
                chunk.target = *table.reserve(room, chunk.length), room
            return chunk

        def parse(chunk):
            array, row, room = chunk.target
            bad = None if bad_rows is None else []
            rows = _parse_chunk(chunk, form.columns, ord(form.delimiter), array, row, bad)
            return array, row + rows, room - rows, rows, bad

        work = OrderedWork(read, parse, threads=form.threads, ahead=4 * form.threads)
        try:
            first = 0
            for array, row, unused, rows, bad in work:
                if unused:
                    table.leave_out(array, row, unused)
                _note(bad_rows, first, bad)
                first += rows
                if bad:
                    form.check(first, chunks.stored_read, len(bad_rows))
        finally:
            work.close()
        array = None            # the last one is large and has served its time
        rows = table.finish()
        return rows.reshape(len(rows), *form.shape)


def _note(bad_rows, first, bad):
    """Number the bad rows of a chunk that begins with row `first`; without a dict, raise."""
    for row, error in bad or ():
        if bad_rows is None:
            raise error
        error.record = first + row
        bad_rows[first + row] = error


class CSVReader:
    """Read CSV files of numbers in chunks, with bounded memory.

    Parameters
    ----------
    path, shape, dtype, delimiter, skip_header, threads, max_line_bytes, remote_options
        As for `read_csv`.
    chunk_bytes : int
        Approximate bytes of text in a chunk; at least one line.  At most ``2 * threads + 2``
        chunks, with the arrays made of them, are in memory at a time.
    max_array_bytes : int, optional
        A larger array of one chunk is an error.  By default 64 times the size of its text, at least
        256 MiB, which only wide rows that cannot be read exceed.

    Attributes
    ----------
    path : str
        As given.
    shape : tuple of int
        Shape of a row.
    dtype : numpy.dtype
        Type of the arrays.

    Raises
    ------
    TextFormatError
        While iterating, at the chunk with the error, after all rows of the chunks before it were
        delivered.
    ValueError
        If a parameter is out of its range, or the reader is closed.

    Notes
    -----
    Iterating yields arrays of shape ``(rows, *shape)``, at least one row each, in the order of the
    file; joined, they are the array of `read_csv`.  Each iteration starts at the first row, or
    with `rows` at any other, and has its own threads, which parse ahead and end with the iteration
    or with `close`.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "a.csv")
    >>> _ = path.write_text("1,2\\n3,4\\n5,6\\n")
    >>> with CSVReader(path, dtype="int32", chunk_bytes=8) as reader:
    ...     [rows.tolist() for rows in reader]
    [[[1, 2], [3, 4]], [[5, 6]]]
    """

    def __init__(
        self, path, shape=None, dtype="float32", delimiter=",", skip_header=0,
        chunk_bytes=1 << 21, threads=None, *, max_line_bytes=MAX_LINE_BYTES, max_array_bytes=None,
        remote_options=None,
    ):
        self._format = CSVFormat(
            path, shape, dtype, delimiter, skip_header, threads, max_line_bytes, max_array_bytes,
            remote_options,
        )
        self._chunk_bytes = whole_number("chunk_bytes", chunk_bytes, 1)
        self._positions = None
        self._running = weakref.WeakSet()
        self._closed = False
        self.path = self._format.path
        self.shape = self._format.shape
        self.dtype = self._format.dtype

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def close(self):
        """End all iterations and their threads; further ones raise ValueError."""
        self._closed = True
        for work in list(self._running):
            work.close()

    def __getstate__(self):
        if self._closed:
            raise ValueError(f"the reader of {self.path} is closed")
        return {**self.__dict__, "_running": None}  # iterations stay with their threads

    def __setstate__(self, state):
        self.__dict__.update(state, _running=weakref.WeakSet())

    def __iter__(self):
        return self.rows()

    def count(self):
        """Number of rows; the first call reads all text once, without parsing it.

        Raises
        ------
        TextFormatError, OSError
            If the text cannot be read; lines without numbers count as rows, too.
        """
        if self._positions is None:
            form = self._format
            self._positions = RowPositions(
                form.path, form.skip_header, form.delimiter, min(self._chunk_bytes, 1 << 20),
                form.max_line_bytes, form.remote_options,
            )
        return self._positions.count

    def rows(self, start=0, bad_rows=None):
        """Iterate from any row on, parsing at most one chunk of the rows before it.

        Parameters
        ----------
        start : int
            The first row, counted from 0.  For any other than 0, `count` finds the positions of
            rows, and gzip files are unpacked up to it.
        bad_rows : dict, optional
            If given, a row that cannot be read is no error: it is zero, and ``bad_rows[row]``
            becomes its `TextFormatError` when its array is delivered.

        Yields
        ------
        numpy.ndarray
            Shape ``(rows, *shape)``, as when iterating over the reader.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp(), "a.csv")
        >>> _ = path.write_text("1,2\\n3,x\\n5,6\\n")
        >>> bad_rows = {}
        >>> with CSVReader(path, shape=2) as reader:
        ...     [rows.tolist() for rows in reader.rows(1, bad_rows)], list(bad_rows)
        ([[[0.0, 0.0], [5.0, 6.0]]], [1])
        """
        if self._closed:
            raise ValueError(f"the reader of {self.path} is closed")
        return self._iterate(whole_number("start", start, 0), bad_rows)

    def _iterate(self, start, bad_rows):
        form = self._format
        nearest = None
        if start:
            if start >= self.count():
                return
            nearest = self._positions.before(start)

        def parse(chunk):
            # Errors before the first row that is wanted are not reported.
            is_first = nearest is not None and (chunk.file_number, chunk.offset) == nearest[1:3]
            bad = [] if is_first or bad_rows is not None else None
            room = _most_rows(chunk, form.columns, ord(form.delimiter), bad is not None)
            form.check(room, chunk.length)
            array = np.empty((room, form.columns), form.dtype)
            rows = _parse_chunk(chunk, form.columns, ord(form.delimiter), array, 0, bad)
            if rows < len(array):
                array = array[:rows].copy()     # what is no row needs no memory
            return array.reshape(rows, *form.shape), bad

        with LineChunks(
            form.path, self._chunk_bytes, form.skip_header, first_bytes=_FIRST_BYTES,
            max_line_bytes=form.max_line_bytes, remote_options=form.remote_options,
        ) as chunks:
            first = 0
            if nearest is not None:
                first = nearest[0]
                chunks.go_to(*nearest[1:])
            work = OrderedWork(
                chunks.read, parse, threads=form.threads, ahead=2 * form.threads + 2
            )
            self._running.add(work)
            try:
                for array, bad in work:
                    before = max(start - first, 0)
                    _note(bad_rows, first, [one for one in bad or () if one[0] >= before])
                    first += len(array)
                    if len(array) > before:
                        yield array[before:]
                    del array
                if self._closed:
                    raise ValueError(f"the reader of {self.path} is closed")
            finally:
                work.close()
