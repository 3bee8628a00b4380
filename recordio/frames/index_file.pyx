"""Indexes of record files: the ``.idx`` text, two int64 arrays of it, and the position of a key.

A line is ``key TAB offset``, in the order of writing.  This module never keeps a Python object for
a single line, and it reads record files only in `build_index`.
"""

import os

import numpy as np

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint64_t
from libc.string cimport memchr, memmove

from recordio.frames.frame cimport (
    FRAME_OK,
    Frame,
    frame_confirm,
    frame_error,
    frame_read,
    frame_scan,
)
from recordio.bytes.mapping cimport guard_of, map_guard
from recordio.header cimport HEADER_ID, HEADER_SIZE

from recordio.errors import IndexFileError, RecordHeaderError
from recordio.bytes.files import StoredFile, open_output
from recordio.frames.frame import scan_offsets
from recordio.frames.record_bytes import map_records

__all__ = ["KeyLookup", "build_index", "format_index", "read_index", "write_index"]

cdef enum:
    READ_CHUNK = 1 << 20        # bytes of text in memory at a time
    FORMAT_CHUNK = 1 << 15      # lines formatted at a time
    LINE_MAX = 42               # sign, 19 digits, tab, 19 digits, newline, and one to spare

cdef enum LineStatus:
    LINE_OK
    LINE_BLANK
    LINE_NO_TAB
    LINE_BAD_KEY
    LINE_BAD_OFFSET
    LINE_KEY_OVERFLOW
    LINE_OFFSET_OVERFLOW
    LINE_UNALIGNED

_LINE_DAMAGE = {
    LINE_BLANK: "a blank line",
    LINE_NO_TAB: "no tab between key and offset",
    LINE_BAD_KEY: "the key is no decimal integer",
    LINE_BAD_OFFSET: "the offset is no decimal integer of at least 0",
    LINE_KEY_OVERFLOW: "the key does not fit into 64 bits",
    LINE_OFFSET_OVERFLOW: "the offset does not fit into 63 bits",
    LINE_UNALIGNED: "the offset is no multiple of 4",
}


cdef inline bint _is_blank(uint8_t c) noexcept nogil:
    return c == c' ' or c == c'\r' or c == c'\v' or c == c'\f' or c == c'\t'


cdef int _parse_integer(
    const uint8_t* text, const uint8_t* end, int64_t* value
) noexcept nogil:
    """Parse a whole field, blanks around it allowed: 0, 1 (no integer) or 2 (overflow)."""
    cdef bint negative = False
    cdef uint64_t number = 0, limit = <uint64_t>INT64_MAX
    cdef unsigned int digit
    while text < end and _is_blank(text[0]):
        text += 1
    while end > text and _is_blank((end - 1)[0]):
        end -= 1
    if text < end and (text[0] == c'-' or text[0] == c'+'):
        negative = text[0] == c'-'
        text += 1
    if text == end:
        return 1
    if negative:
        limit += 1
    cdef bint overflow = False
    while text < end:
        digit = <unsigned int>text[0] - c'0'
        if digit > 9:
            return 1
        if number > (limit - digit) // 10:
            overflow = True
        else:
            number = number * 10 + digit
        text += 1
    if overflow:
        return 2
    value[0] = <int64_t>(0 - number) if negative else <int64_t>number
    return 0


cdef int _parse_line(
    const uint8_t* line, const uint8_t* end, int64_t* key, int64_t* offset
) noexcept nogil:
    cdef const uint8_t* tab
    cdef const uint8_t* stop
    cdef int status
    while line < end and _is_blank(line[0]):
        line += 1
    while end > line and _is_blank((end - 1)[0]):
        end -= 1
    if line == end:
        return LINE_BLANK
    tab = <const uint8_t*>memchr(line, c'\t', <size_t>(end - line))
    if tab == NULL:
        return LINE_NO_TAB
    stop = <const uint8_t*>memchr(tab + 1, c'\t', <size_t>(end - tab - 1))
    status = _parse_integer(line, tab, key)
    if status:
        return LINE_BAD_KEY if status == 1 else LINE_KEY_OVERFLOW
    status = _parse_integer(tab + 1, end if stop == NULL else stop, offset)
    if status:
        return LINE_BAD_OFFSET if status == 1 else LINE_OFFSET_OVERFLOW
    if offset[0] < 0:
        return LINE_BAD_OFFSET
    return LINE_UNALIGNED if offset[0] & 3 else LINE_OK


cdef int _parse_lines(
    const uint8_t* text,
    int64_t length,
    bint final,
    int64_t* keys,
    int64_t* offsets,
    int64_t capacity,
    int64_t* lines,
    int64_t* used,
) noexcept nogil:
    """Parse the whole lines of a piece of text, with the last line if it is the final piece."""
    cdef const uint8_t* line = text
    cdef const uint8_t* end = text + length
    cdef const uint8_t* newline
    cdef int status = LINE_OK
    lines[0] = 0
    while line < end and lines[0] < capacity:
        newline = <const uint8_t*>memchr(line, c'\n', <size_t>(end - line))
        if newline == NULL:
            if not final:
                break
            newline = end
        status = _parse_line(line, newline, keys + lines[0], offsets + lines[0])
        if status != LINE_OK:
            break
        lines[0] += 1
        line = newline + 1 if newline < end else end
    used[0] = line - text
    return status


cdef int64_t _count_newlines(const uint8_t* text, int64_t length) noexcept nogil:
    cdef int64_t i, count = 0
    for i in range(length):
        count += text[i] == c'\n'
    return count


cdef object _line_error(int status, path, int64_t line, const uint8_t* text, int64_t length):
    cdef const uint8_t* newline = NULL
    if length:
        newline = <const uint8_t*>memchr(text, c'\n', <size_t>length)
    if newline != NULL:
        length = newline - text
    shown = bytes(text[:min(length, 60)]).decode("ascii", "backslashreplace")
    return IndexFileError(
        f"{_LINE_DAMAGE[status]}: {shown!r}; expected KEY<tab>OFFSET;"
        " recordio.build_index() writes the index again",
        path=path,
        line=line,
    )


def read_index(path):
    """Parse an index file into its keys and offsets, int64 arrays in the order of the lines.

    Lines are ``key TAB offset``.  Windows line ends, a missing final newline and further columns
    are accepted, as MXNet accepts them.  Any other line is an error with its number; keys that are
    no integers are only known to `recordio.MXIndexedRecordIO`.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "a.idx")
    >>> _ = path.write_bytes(b"7\\t0\\n3\\t16\\n")
    >>> read_index(path)
    (array([7, 3]), array([ 0, 16]))
    """
    name = os.fsdecode(path)
    if not StoredFile.at(name).is_local:
        return StoredFile.at(name).parsed(read_index)
    # Two passes over the file, counting first, so that memory never holds more than the two arrays
    # and one piece of text.
    cdef uint8_t[::1] buffer = bytearray(READ_CHUNK)
    cdef int64_t have = 0, lines = 0, count = 0, used = 0, total = 0, got
    cdef int64_t[::1] key_view, offset_view
    cdef int status
    cdef bint final = False
    cdef uint8_t last = c'\n'
    with StoredFile(name).open(buffering=0) as file:
        while True:
            got = file.readinto(buffer)
            if not got:
                break
            with nogil:
                total += _count_newlines(&buffer[0], got)
                last = buffer[got - 1]
            PyErr_CheckSignals()
        if last != c'\n':
            total += 1
        keys = np.empty(total, np.int64)
        offsets = np.empty(total, np.int64)
        if total == 0:
            return keys, offsets
        key_view, offset_view = keys, offsets
        file.seek(0)
        while not final:
            if have == buffer.shape[0]:     # one line fills the buffer
                larger = bytearray(2 * have)
                larger[:have] = buffer
                buffer = larger
            got = file.readinto(buffer[have:])
            final = got == 0
            have += got
            if lines == total:
                if have:
                    raise IndexFileError("the index changed while it was read", path=name)
                break
            with nogil:
                status = _parse_lines(
                    &buffer[0], have, final, &key_view[lines], &offset_view[lines],
                    total - lines, &count, &used,
                )
            lines += count
            if status != LINE_OK:
                raise _line_error(status, name, lines + 1, &buffer[0] + used, have - used)
            have -= used
            if have:
                memmove(&buffer[0], &buffer[0] + used, <size_t>have)
            PyErr_CheckSignals()
    if lines != total:
        raise IndexFileError("the index changed while it was read", path=name)
    return keys, offsets


cdef int64_t _format_integer(int64_t value, uint8_t* out) noexcept nogil:
    cdef uint8_t[20] digits
    cdef int64_t length = 0, written = 0
    cdef uint64_t rest = <uint64_t>value
    if value < 0:
        out[0] = c'-'
        written = 1
        rest = 0 - rest
    while True:
        digits[length] = <uint8_t>(c'0' + rest % 10)
        length += 1
        rest //= 10
        if rest == 0:
            break
    while length:
        length -= 1
        out[written] = digits[length]
        written += 1
    return written


def format_index(keys, offsets):
    """Yield the text of an index in pieces of whole lines.

    >>> b"".join(format_index([7, 3], [0, 16]))
    b'7\\t0\\n3\\t16\\n'
    """
    cdef const int64_t[::1] key_view = np.ascontiguousarray(keys, np.int64)
    cdef const int64_t[::1] offset_view = np.ascontiguousarray(offsets, np.int64)
    cdef int64_t line, first, stop, length
    cdef uint8_t* out
    if key_view.shape[0] != offset_view.shape[0]:
        raise ValueError(f"{key_view.shape[0]} keys for {offset_view.shape[0]} offsets")
    for first in range(0, key_view.shape[0], FORMAT_CHUNK):
        stop = min(key_view.shape[0], first + FORMAT_CHUNK)
        piece = PyBytes_FromStringAndSize(NULL, (stop - first) * LINE_MAX)
        out = <uint8_t*>PyBytes_AS_STRING(piece)
        length = 0
        for line in range(first, stop):
            length += _format_integer(key_view[line], out + length)
            out[length] = c'\t'
            length += 1 + _format_integer(offset_view[line], out + length + 1)
            out[length] = c'\n'
            length += 1
        yield piece[:length]


def write_index(path, keys, offsets):
    """Write an index file, at a path or a URL; it appears complete or not at all.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "a.idx")
    >>> write_index(path, [7, 3], [0, 16])
    >>> path.read_bytes()
    b'7\\t0\\n3\\t16\\n'
    """
    with open_output(path) as output:
        for piece in format_index(keys, offsets):
            output.write(piece)


def build_index(path, index=None, keys="position"):
    """Write the index of a record file that has none.

    Parameters
    ----------
    path : str or os.PathLike
        The record file or its URL; it is read once.
    index : str or os.PathLike, optional
        The index to write or to replace, or its URL; by default `path` with the suffix ``.idx``.
    keys : {"position", "id"}
        ``"position"``: 0, 1, 2 ... in the order of the file, as MXNet's ``rec2idx.py`` writes them.
        ``"id"``: the ``id`` in the image header of each record, as ``im2rec`` writes them; no two
        records may have the same.

    Returns
    -------
    int
        The number of records.

    Raises
    ------
    CorruptRecordError, TruncatedRecordError
        If the record file is damaged; an existing index stays as it was.
    RecordHeaderError
        For ``keys="id"``, if a record is too short for an image header, its id does not fit into 63
        bits, or a record before it has the same id.
    ValueError
        For other `keys`, or if `index` is the record file.
    OSError
        If a file cannot be read or written.

    Examples
    --------
    >>> import tempfile, pathlib, recordio
    >>> path = pathlib.Path(tempfile.mkdtemp(), "a.rec")
    >>> with recordio.RecordWriter(path) as writer:
    ...     _ = writer.write(b"one"), writer.write(b"three")
    >>> build_index(path)
    2
    >>> path.with_suffix(".idx").read_bytes()
    b'0\\t0\\n1\\t12\\n'
    """
    if keys not in ("position", "id"):
        raise ValueError(f"keys must be 'position' or 'id', not {keys!r}")
    name = os.fsdecode(path)
    if index is None:
        index = StoredFile.at(name).beside(".idx").name
    if os.path.exists(index) and os.path.samefile(name, index):
        raise ValueError(f"{name} cannot be its own index: give another index")
    data = map_records(StoredFile.at(name))
    offsets = scan_offsets(data, name)
    numbers = np.arange(len(offsets)) if keys == "position" else _image_ids(data, offsets, name)
    write_index(index, numbers, offsets)
    return len(offsets)


cdef object _image_ids(data, offsets, path):
    """The id in the image header of every record."""
    cdef int64_t i, count = len(offsets)
    cdef uint8_t[8] raw
    cdef uint64_t number
    cdef int byte, status
    cdef Frame frame
    cdef map_guard* guard = guard_of(data)
    ids = np.empty(count, np.int64)
    if count == 0:
        return ids
    cdef const uint8_t[::1] view = data
    cdef const int64_t[::1] offset_view = offsets
    cdef int64_t[::1] out = ids
    for i in range(count):
        status = frame_scan(&view[0], view.shape[0], offset_view[i], &frame)
        if status == FRAME_OK and frame.length >= HEADER_SIZE:
            frame_read(&view[0], &frame, HEADER_ID, 8, raw)
        status = frame_confirm(guard, status, &frame)
        if status != FRAME_OK:
            raise frame_error(status, path, frame.end, i)
        if frame.length < HEADER_SIZE:
            raise RecordHeaderError(
                f"a record of {frame.length} bytes is too short for an image header ({HEADER_SIZE}"
                " bytes); use keys='position'", path=path, offset=frame.offset, record=i,
            )
        number = 0
        for byte in range(8):
            number |= <uint64_t>raw[byte] << (8 * byte)
        if number > <uint64_t>INT64_MAX:
            raise RecordHeaderError(
                f"the id {number} does not fit into 63 bits; use keys='position'",
                path=path, offset=frame.offset, record=i, record_id=number,
            )
        out[i] = <int64_t>number
        if i % 4096 == 0:
            PyErr_CheckSignals()
    _check_different(ids, offsets, path)
    return ids


def _check_different(ids, offsets, path):
    """Raise an error for the first record whose id another one before it has: its key finds one."""
    order = np.argsort(ids, kind="stable")
    again = np.flatnonzero(ids[order[1:]] == ids[order[: len(order) - 1]])
    if not len(again):
        return
    place = again[np.argmin(order[again + 1])]
    first, second = int(order[place]), int(order[place + 1])
    more = f" (and so for {len(again) - 1} more)" if len(again) > 1 else ""
    raise RecordHeaderError(
        f"record {first} has the same id{more}: as a key it would name one of them, and the others "
        "would be lost; use keys='position'",
        path=path, offset=int(offsets[second]), record=second, record_id=int(ids[second]),
    )


cdef class KeyLookup:
    """Positions by key, without a Python object for each; the keys are kept, not copied.

    Binary search in the keys where they ascend, else through their sorting order, which takes 8
    bytes more for each.

    >>> lookup = KeyLookup(np.array([7, 3, 7]))
    >>> lookup.position_of(7), lookup.position_of(3), lookup.position_of(0)
    (2, 1, -1)
    """

    def __init__(self, keys):
        self.keys = keys
        with nogil:
            self.ascending = _ascends(self.keys)
        if not self.ascending:
            # Sorting is stable, so that the last of several equal keys stays the last.
            self.order = np.argsort(keys, kind="stable").astype(np.int64, copy=False)

    def position_of(self, int64_t key):
        """Find the position of a key, of the last of several equal ones; -1 if there is none."""
        return self.find(key)

    cdef int64_t find(self, int64_t key) noexcept nogil:
        cdef int64_t low = 0, high = self.keys.shape[0], middle
        # The first position behind all keys that are not greater than `key`.
        while low < high:
            middle = low + (high - low) // 2
            if self.keys[middle if self.ascending else self.order[middle]] <= key:
                low = middle + 1
            else:
                high = middle
        if low == 0:
            return -1
        low = low - 1 if self.ascending else self.order[low - 1]
        return low if self.keys[low] == key else -1


cdef bint _ascends(const int64_t[::1] keys) noexcept nogil:
    cdef int64_t i
    for i in range(1, keys.shape[0]):
        if keys[i - 1] > keys[i]:
            return False
    return True
