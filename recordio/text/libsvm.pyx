"""LibSVM text to a sparse matrix and labels.

A line is ``label index:value ...``.  What MXNet's LibSVMIter reads is read here, except that a
missing value or an index out of range is an error, and that weights of labels have to be asked for:
without them a line that begins with ``index:value`` has no label.
"""

import os

import numpy as np

from libc.math cimport fabs, floor, isinf
from libc.stdint cimport INT64_MAX, int64_t, uint8_t
from libc.string cimport memchr

from recordio.text.decimal cimport (
    loses_digits,
    parse_double,
    parse_integer,
    short_double,
    short_integer,
)
from recordio.text.lines cimport TextChunk, count_byte

from recordio.errors import TextFormatError
from recordio.extras import need
from recordio.file_limits import check_array_bytes
from recordio.text.lines import MAX_LINE_BYTES, LineChunks, note_bad_row
from recordio.ordered import OrderedWork, default_threads

__all__ = ["read_libsvm"]

ctypedef fused real:
    float
    double

cdef enum:
    EXACT_IN_FLOAT = 1 << 24        # whole numbers beyond it may be rounded

cdef enum Status:
    OK
    BAD_LABEL
    BAD_WEIGHT
    NO_LABEL
    LARGE_LABEL
    BAD_QUERY
    BAD_INDEX
    NO_VALUE
    BAD_VALUE
    NEGATIVE
    TOO_LARGE

cdef struct Fault:
    Status status
    int64_t line            # from 0
    int64_t column          # item of the line, from 0
    const uint8_t* item

cdef struct Parsed:
    int64_t rows
    int64_t entries
    int64_t largest         # index; -1 without entries
    int64_t weights         # rows with what is dropped
    int64_t queries
    int64_t comments        # with the lines that hold nothing else

_SHOWN = 40                 # characters of the offending text


cdef inline bint _is_blank(uint8_t c) noexcept nogil:
    return c == c' ' or c == c'\t' or c == c'\r'


cdef inline bint _ends_item(uint8_t c) noexcept nogil:
    return _is_blank(c) or c == c'\n' or c == c'#'


cdef inline const uint8_t* _parse_real(const uint8_t* at, real* out) noexcept nogil:
    """Parse a number that ends an item or stands before a colon, or return NULL."""
    cdef double value = 0
    cdef const uint8_t* next = short_double(at, &value)
    if next == NULL or not (_ends_item(next[0]) or next[0] == c':'):
        next = parse_double(at, &value)
    out[0] = <real>value
    return next


cdef inline Status _parse_entry(
    const uint8_t** start, int64_t base, int64_t limit, int64_t* index, real* value
) noexcept nogil:
    """Parse ``index:value``; `start` moves behind it."""
    cdef const uint8_t* at = start[0]
    cdef int64_t number = 0
    cdef int overflow = 0
    cdef const uint8_t* next = short_integer(at, &number)
    if next == NULL or next[0] != c':':
        next = parse_integer(at, &number, &overflow)
        if next == NULL:
            return BAD_INDEX
        if next[0] != c':':
            return NO_VALUE if _ends_item(next[0]) else BAD_INDEX
    if overflow:
        return NEGATIVE if at[0] == c'-' else TOO_LARGE
    if number < base:
        return NEGATIVE
    number -= base
    if number >= limit:
        return TOO_LARGE
    at = next + 1
    if _ends_item(at[0]):
        return NO_VALUE
    next = _parse_real(at, value)
    if next == NULL or not _ends_item(next[0]):
        return BAD_VALUE
    index[0] = number
    start[0] = next
    return OK


cdef bint _is_rounded(real label, const uint8_t* text) noexcept nogil:
    """Tell whether a whole number that became a label may have lost digits."""
    cdef double value = 0
    if fabs(label) < EXACT_IN_FLOAT or isinf(label):
        return False
    parse_double(text, &value)
    return value == floor(value) and loses_digits(text, value, label)


cdef Status _parse_label(
    const uint8_t** start, bint weighted, real* label, int64_t* weights
) noexcept nogil:
    """Parse ``label`` or, if `weighted`, ``label:weight``, whose weight is dropped and counted."""
    cdef real weight
    cdef const uint8_t* next = _parse_real(start[0], label)
    if next == NULL:
        return BAD_LABEL
    if _is_rounded(label[0], start[0]):
        return LARGE_LABEL
    if next[0] == c':':
        if not weighted:
            return NO_LABEL
        next = _parse_real(next + 1, &weight)
        if next == NULL or not _ends_item(next[0]):
            return BAD_WEIGHT
        weights[0] += 1
    elif not _ends_item(next[0]):
        return BAD_LABEL
    start[0] = next
    return OK


cdef bint _is_query(const uint8_t* at) noexcept nogil:
    return at[0] == c'q' and at[1] == c'i' and at[2] == c'd' and at[3] == c':'


cdef Status _parse_rows(
    const uint8_t* at,
    const uint8_t* end,
    int64_t base,
    int64_t limit,
    bint weighted,
    real* labels,
    int64_t* counts,
    int64_t* indices,
    real* values,
    Parsed* parsed,
    Fault* fault,
) noexcept nogil:
    """Parse whole lines behind what is parsed; stops at the first one that is wrong."""
    cdef int64_t line = 0, entries = parsed.entries, first, largest, ignored = 0
    cdef int overflow = 0
    cdef const uint8_t* next
    cdef Status status = OK
    while at < end:
        fault.column = 0
        while _is_blank(at[0]):
            at += 1
        if at[0] != c'\n' and at[0] != c'#':
            fault.item = at
            status = _parse_label(&at, weighted, labels + parsed.rows, &parsed.weights)
            first = entries
            largest = parsed.largest
            while status == OK:
                while _is_blank(at[0]):
                    at += 1
                if at[0] == c'\n' or at[0] == c'#':
                    break
                fault.column += 1
                fault.item = at
                if _is_query(at):
                    next = parse_integer(at + 4, &ignored, &overflow)
                    if next == NULL or not _ends_item(next[0]):
                        status = BAD_QUERY
                    else:
                        parsed.queries += 1
                        at = next
                    continue
                status = _parse_entry(&at, base, limit, indices + entries, values + entries)
                if status == OK:
                    if indices[entries] > largest:
                        largest = indices[entries]
                    entries += 1
            if status != OK:
                fault.status = status
                fault.line = line
                return status
            counts[parsed.rows] = entries - first
            parsed.rows += 1
            parsed.entries = entries
            parsed.largest = largest
        parsed.comments += at[0] == c'#'
        while at[0] != c'\n':
            at += 1
        at += 1
        line += 1
    return OK


cdef object _parse_chunk(
    TextChunk chunk, dtype, int64_t base, int64_t limit, bint weighted, list bad
):
    """Return labels, row sizes, indices, values, the largest index, `bad`, and what is dropped.

    With the list `bad` a row that cannot be read is empty, its label is 0, and the list gets its
    row in the chunk and its error; with None that is raised.
    """
    cdef const uint8_t[::1] text = chunk.buffer
    cdef int64_t entries, line = 0, length = chunk.length
    cdef Status status
    cdef const uint8_t* at = &text[0]
    cdef const uint8_t* end = at + length
    cdef Parsed parsed
    cdef Fault fault
    cdef float[::1] labels32, values32
    cdef double[::1] labels64, values64
    with nogil:     # an entry has a colon; one more of everything, so that there is a first one
        entries = min(count_byte(&text[0], length, c':'), length // 4) + 1
    labels, counts = np.empty(chunk.lines + 1, dtype), np.empty(chunk.lines + 1, np.int64)
    indices, values = np.empty(entries, np.int64), np.empty(entries, dtype)
    cdef int64_t[::1] count_view = counts, index_view = indices
    cdef bint single = dtype == np.float32
    if single:
        labels32, values32 = labels, values
    else:
        labels64, values64 = labels, values
    parsed.rows = parsed.entries = parsed.weights = parsed.queries = parsed.comments = 0
    parsed.largest = -1
    while True:
        with nogil:
            if single:
                status = _parse_rows(
                    at, end, base, limit, weighted, &labels32[0], &count_view[0], &index_view[0],
                    &values32[0], &parsed, &fault,
                )
            else:
                status = _parse_rows(
                    at, end, base, limit, weighted, &labels64[0], &count_view[0], &index_view[0],
                    &values64[0], &parsed, &fault,
                )
        if status == OK:
            break
        fault.line += line
        error = _error(chunk, fault.item - &text[0], fault, base, limit, dtype)
        note_bad_row(bad, parsed.rows, error)
        labels[parsed.rows] = counts[parsed.rows] = 0
        parsed.rows += 1
        line = fault.line + 1
        at = <const uint8_t*>memchr(fault.item, c'\n', end - fault.item) + 1
    return (
        _used(labels, parsed.rows), _used(counts, parsed.rows), _used(indices, parsed.entries),
        _used(values, parsed.entries), parsed.largest, bad,
        {"weights": parsed.weights, "queries": parsed.queries, "comments": parsed.comments},
    )


cdef object _used(array, int64_t count):
    """Return the used part of an array; a copy where most is unused, which then needs no memory."""
    return array[:count] if 2 * count > len(array) else array[:count].copy()


cdef object _error(TextChunk chunk, start, Fault fault, base, limit, dtype):
    text = bytes(chunk.buffer[start:chunk.buffer.find(b"\n", start)])
    shown = text.decode("utf-8", "backslashreplace")
    for end in " \t\r#":       # not split(), which knows more white space
        shown = shown.partition(end)[0]
    shown = repr(shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "...")
    reason = {
        BAD_LABEL: f"the label {shown} is no number",
        BAD_WEIGHT: f"the weight of the label {shown} is no number",
        LARGE_LABEL: f"the label {shown} has no exact {dtype}: another dtype may hold it",
        NO_LABEL: f"no label stands before the feature {shown}; where it is a label with a weight,"
                  " label_weights=True reads it and drops the weight",
        BAD_QUERY: f"{shown} is no query: qid takes an integer",
        BAD_INDEX: f"{shown} is not INDEX:VALUE with an integer index",
        NO_VALUE: f"{shown} has no value; it must be INDEX:VALUE",
        BAD_VALUE: f"the value in {shown} is no number",
        NEGATIVE: f"the index in {shown} is below {base}"
        + ("" if base == 0 else "; zero_based=True reads files that count from 0"),
        TOO_LARGE: f"the index in {shown} is too large"
        + (f" for num_features={limit}" if limit != INT64_MAX else ""),
    }[fault.status]
    return TextFormatError(
        reason, path=chunk.path, line=chunk.first_line + fault.line, column=fault.column + 1
    )


def read_libsvm(
    path, num_features=None, dtype="float32", zero_based=True, threads=None, bad_rows=None,
    *, skip_header=0, label_weights=False, max_line_bytes=MAX_LINE_BYTES, max_array_bytes=None,
    dropped=None, remote_options=None,
):
    """Read a LibSVM file into a sparse matrix and labels.

    Parameters
    ----------
    path : str or os.PathLike
        A file, a folder (all its files, in the order of their names), a pattern such as
        ``part-*.txt``, several of them with semicolons in between, or fsspec URLs; any file may be
        gzip.
    num_features : int, optional
        Columns of the matrix; by default as many as the largest index needs.
    dtype : {"float32", "float64"}
        Type of values and labels.
    zero_based : bool
        Whether the first feature is 0, as for MXNet, or 1, as in the files of LibSVM itself.
    threads : int, optional
        Threads that parse; by default one for every processor of the process.
    bad_rows : dict, optional
        If given, a row that cannot be read is no error: it is empty, its label is 0, and
        ``bad_rows[row]`` becomes its `TextFormatError`, about 1 KB each.  More than 16384 such rows
        in about 1 MiB of text are an error all the same.
    skip_header : int
        Lines to leave out at the start of every file.
    label_weights : bool
        Lines may begin with ``label:weight``; weights are dropped.  By default such a line is an
        error: its label may be missing.
    max_line_bytes : int
        A longer line is an error, so that a file without line ends does not fill the memory.
    max_array_bytes : int, optional
        A larger matrix is an error, labels and bad rows included.  By default 64 times the size of
        the files as they are stored, at least 256 MiB, which only gzip files or many bad rows can
        exceed.
    dropped : dict, optional
        If given, ``dropped["weights"]``, ``["queries"]`` and ``["comments"]`` become the numbers of
        weights, of ``qid:n`` and of lines with a comment.
    remote_options : mapping, optional
        How the server of a URL is reached, as for `read_csv`.

    Returns
    -------
    data : scipy.sparse.csr_array
        Shape ``(rows, num_features)``, of type `dtype`.  The indices of a row ascend, whatever the
        order in the file; where a line has an index twice, its values are added in `dtype`.
    labels : numpy.ndarray
        Shape ``(rows,)``, of type `dtype`: the first number of each line.

    Raises
    ------
    TextFormatError
        For a missing label, one that is a whole number without an exact `dtype`, a label, index or
        value that is no number, a missing value, an index that is negative or not below
        `num_features`: the first one in the file, with its line and the position of the item in it
        (the label is 1). Also beyond a limit, for damaged gzip, and if a pattern matches no file.
    ValueError
        If a parameter is out of its range.
    ImportError
        If SciPy is not installed.
    OSError
        If a file cannot be read.

    Notes
    -----
    Like MXNet's LibSVMIter, this drops ``qid:n``, comments from ``#`` to the end of the line, blank
    lines and, with `label_weights`, the weight of a label (``1:0.5``); `dropped` counts all but the
    blank lines.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "a.libsvm")
    >>> _ = path.write_text("1 0:0.5 2:3  # comment\\n0 1:-1\\n")
    >>> data, labels = read_libsvm(path)
    >>> data.toarray()
    array([[ 0.5,  0. ,  3. ],
           [ 0. , -1. ,  0. ]], dtype=float32)
    >>> labels
    array([1., 0.], dtype=float32)
    """
    sparse = need("scipy.sparse", "read_libsvm")
    kind = np.dtype(dtype)
    if kind not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise ValueError(f"dtype must be float32 or float64, not {dtype}")
    header = skip_header.__index__()
    if header < 0:
        raise ValueError(f"skip_header must not be negative, not {skip_header}")
    cdef bint weighted = label_weights
    count = default_threads() if threads is None else threads.__index__()
    if count < 1:
        raise ValueError(f"threads must be at least 1, not {count}")
    cdef int64_t limit = INT64_MAX
    if num_features is not None:
        limit = num_features.__index__()
        if limit < 0:
            raise ValueError(f"num_features must not be negative, not {num_features}")
    cdef int64_t base = 0 if zero_based else 1
    name = path if isinstance(path, str) else os.fsdecode(path)
    labels, counts, indices, values = parts = [], [], [], []
    largest, nbytes, first = -1, 0, 0
    totals = dict.fromkeys(("weights", "queries", "comments"), 0)
    with LineChunks(
        name, skip_header=header, max_line_bytes=max_line_bytes, remote_options=remote_options
    ) as chunks:
        work = OrderedWork(
            chunks.read,
            lambda chunk: _parse_chunk(
                chunk, kind, base, limit, weighted, None if bad_rows is None else []
            ),
            threads=count, ahead=4 * count,
        )
        try:
            for *arrays, last, bad, counted in work:
                for part, array in zip(parts, arrays):
                    part.append(array)
                    nbytes += array.nbytes
                for row, error in bad or ():
                    error.record = first + row
                    bad_rows[first + row] = error
                    nbytes += 1024
                for key in totals:
                    totals[key] += counted[key]
                first += len(arrays[0])
                largest = max(largest, last)
                check_array_bytes(
                    nbytes, chunks.stored_read, max_array_bytes, TextFormatError, name
                )
        finally:
            work.close()
    if dropped is not None:
        dropped.update(totals)
    features = largest + 1 if num_features is None else limit
    entries = sum(map(len, indices))
    index_type = np.int32 if max(entries, features) < 1 << 31 else np.int64
    joined_labels = _joined(labels, kind)
    pointers = np.zeros(len(joined_labels) + 1, index_type)
    np.cumsum(_joined(counts, np.int64), out=pointers[1:], dtype=index_type)
    data = sparse.csr_array(
        (_joined(values, kind), _joined(indices, index_type), pointers),
        shape=(len(joined_labels), features),
    )
    data.sum_duplicates()       # which sorts; nothing happens to rows in order
    return data, joined_labels


def _joined(pieces, dtype):
    """Join arrays into one; the list of them is emptied."""
    joined = np.concatenate([np.empty(0, dtype), *pieces], dtype=dtype, casting="same_kind")
    pieces.clear()
    return joined
