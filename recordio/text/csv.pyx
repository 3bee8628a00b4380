"""Numbers in CSV text to arrays, at once or in chunks.

Every field is a decimal number; there are no quotes and no names, and empty fields only where a
value is given for them.  Text that is anything else is an error with its line and column, never a
guess.
"""

import weakref

import numpy as np

from recordio.text.csv_format import CSVFormat, whole_number
from recordio.text.csv_rows import most_rows, parse_chunk
from recordio.text.lines import MAX_LINE_BYTES, LineChunks
from recordio.ordered import OrderedWork
from recordio.text.row_count import RowPositions
from recordio.text.growing_array import Table

__all__ = ["CSVReader", "read_csv"]

_FIRST_BYTES = 1 << 17      # of the first chunk of a stream: nobody can begin before it is there


def read_csv(
    path, shape=None, dtype="float32", delimiter=",", skip_header=0, threads=None, bad_rows=None,
    *, missing=None, exact=False, max_line_bytes=MAX_LINE_BYTES, max_array_bytes=None,
    remote_options=None,
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
    missing : number, optional
        The value of empty fields, such as ``float("nan")`` or -1; by default they are an error.
        `dtype` must hold it.
    exact : bool
        A whole number that `dtype` would round is an error, such as 16777217 as float32.
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
        For a row that is too short or too long, an empty field without `missing`, text that is no
        number, or an integer that does not fit: the first one in the file, with its line and
        column.  Also beyond a limit, for damaged gzip, and if a pattern matches no file.
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
        remote_options, missing, exact,
    )
    with LineChunks(
        form.path, skip_header=form.skip_header, max_line_bytes=form.max_line_bytes,
        remote_options=remote_options,
    ) as chunks:
        table = Table(form.columns, form.dtype, chunks.stored_bytes())

        def read(buffer):
            chunk = chunks.read(buffer)
            if chunk is not None:
                room = most_rows(
                    chunk, form.columns, ord(form.delimiter), bad_rows is not None,
                    form.missing is not None,
                )
                form.check(table.reserved + room, chunks.stored_read)
                chunk.target = *table.reserve(room, chunk.length), room
            return chunk

        def parse(chunk):
            array, row, room = chunk.target
            bad = None if bad_rows is None else []
            rows = parse_chunk(
                chunk, form.columns, ord(form.delimiter), array, row, bad, form.missing, form.exact
            )
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
    path, shape, dtype, delimiter, skip_header, threads, missing, exact
        As for `read_csv`.
    max_line_bytes, remote_options
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
        chunk_bytes=1 << 21, threads=None, *, missing=None, exact=False,
        max_line_bytes=MAX_LINE_BYTES, max_array_bytes=None, remote_options=None,
    ):
        self._format = CSVFormat(
            path, shape, dtype, delimiter, skip_header, threads, max_line_bytes, max_array_bytes,
            remote_options, missing, exact,
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
            room = most_rows(
                chunk, form.columns, ord(form.delimiter), bad is not None, form.missing is not None
            )
            form.check(room, chunk.length)
            array = np.empty((room, form.columns), form.dtype)
            rows = parse_chunk(
                chunk, form.columns, ord(form.delimiter), array, 0, bad, form.missing, form.exact
            )
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
