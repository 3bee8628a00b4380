"""The record frame: where a record begins and ends in the bytes of a file, and how it is written.

A record is one part, or several where its payload held the magic word.  Everything here works on
bytes in memory, without the GIL where there is more than one record to do; nothing here opens a file.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memcmp, memcpy, memset

from typing import NamedTuple

import numpy as np

from recordio.errors import CorruptRecordError, RecordTooLargeError, TruncatedRecordError

__all__ = ["MAGIC", "MAX_RECORD_LENGTH", "encode", "encode_into", "find_head", "scan_offsets", "survey"]

#: The four bytes every part begins with.
MAGIC = b"\x0a\x23\xd7\xce"
#: Bytes of the longest payload the format can hold.
MAX_RECORD_LENGTH = MAX_RECORD

# Pieces of work between two looks at pending signals: small enough for a slow disk.
cdef enum:
    INDEX_CHUNK = 4096
    SEARCH_CHUNK = 1 << 26


cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>

    static const uint8_t recordio_magic[4] = {0x0A, 0x23, 0xD7, 0xCE};
    static const uint8_t recordio_zeros[4] = {0, 0, 0, 0};

    /* The magic as the machine's own word, so that whole words can be compared. */
    static inline uint32_t recordio_magic_word(void) {
        uint32_t word;
        memcpy(&word, recordio_magic, 4);
        return word;
    }

    static inline uint32_t recordio_word(const uint8_t *at) {
        uint32_t word;
        memcpy(&word, at, 4);
        return word;
    }

    /* The second word of a head is little-endian on every machine. */
    static inline uint32_t recordio_flag_and_length(const uint8_t *head) {
        return (uint32_t)head[4] | (uint32_t)head[5] << 8 | (uint32_t)head[6] << 16 |
               (uint32_t)head[7] << 24;
    }

    static inline void recordio_put_head(uint8_t *head, uint32_t flag, uint32_t length) {
        uint32_t word = flag << 29 | length;
        memcpy(head, recordio_magic, 4);
        head[4] = (uint8_t)word;
        head[5] = (uint8_t)(word >> 8);
        head[6] = (uint8_t)(word >> 16);
        head[7] = (uint8_t)(word >> 24);
    }

    /* Counting has no early exit, hence compilers make vector code of the inner loop.  The outer one
       may stop at the first block that has a magic word: a search must not read on for nothing. */
    static inline int64_t recordio_count_magic(const uint8_t *data, int64_t words, int only_first) {
        const uint32_t magic = recordio_magic_word();
        int64_t count = 0;
        while (words > 0 && !(only_first && count)) {
            const int64_t block = words < 256 ? words : 256;
            uint32_t found = 0;
            for (int64_t i = 0; i < block; i++) found += recordio_word(data + 4 * i) == magic;
            count += found;
            data += 4 * block;
            words -= block;
        }
        return count;
    }
    """
    const uint8_t* MAGIC_BYTES "recordio_magic"
    const uint8_t* ZERO_BYTES "recordio_zeros"
    uint32_t magic_word "recordio_magic_word"() noexcept nogil
    uint32_t load_word "recordio_word"(const uint8_t* at) noexcept nogil
    uint32_t flag_and_length "recordio_flag_and_length"(const uint8_t* head) noexcept nogil
    void put_head "recordio_put_head"(uint8_t* head, uint32_t flag, uint32_t length) noexcept nogil
    int64_t count_magic "recordio_count_magic"(
        const uint8_t* data, int64_t words, bint only_first
    ) noexcept nogil


cdef inline int64_t padded(int64_t length) noexcept nogil:
    return (length + 3) & ~<int64_t>3


cdef int _not_a_head(const uint8_t* at, int64_t left) noexcept nogil:
    """What stands at `at` instead of a head, if its first bytes are no magic word."""
    cdef size_t have = 4 if left >= 4 else <size_t>left
    if memcmp(at, MAGIC_BYTES, have) == 0:
        return FRAME_OK
    return FRAME_ZEROS if memcmp(at, ZERO_BYTES, have) == 0 else FRAME_BAD_MAGIC


cdef int frame_scan(
    const uint8_t* base, int64_t size, int64_t offset, Frame* frame
) noexcept nogil:
    cdef int64_t position = offset, left, length
    cdef uint32_t word, flag
    cdef int status
    frame.offset = offset
    frame.end = offset
    frame.length = 0
    frame.parts = 0
    if offset < 0 or offset > size or offset & 3:
        return FRAME_BAD_OFFSET
    if offset == size:
        return FRAME_END
    while True:
        frame.end = position
        left = size - position
        if left == 0:
            return FRAME_MISSING_PART
        status = _not_a_head(base + position, left)
        if status != FRAME_OK:
            return status
        if left < FRAME_HEAD:
            return FRAME_TRUNCATED_HEAD
        word = flag_and_length(base + position)
        flag = word >> 29
        length = word & MAX_RECORD
        if flag > 3:
            return FRAME_BAD_FLAG
        if frame.parts == 0:
            if flag > 1:
                return FRAME_ORPHAN_PART
        else:
            if flag < 2:
                return FRAME_UNFINISHED
            frame.length += 4
        left -= FRAME_HEAD
        if length > left:
            return FRAME_TRUNCATED_PAYLOAD
        if padded(length) > left:
            return FRAME_TRUNCATED_PAD
        frame.length += length
        if frame.length > MAX_RECORD:
            return FRAME_TOO_LONG
        frame.parts += 1
        position += FRAME_HEAD + padded(length)
        if flag == 0 or flag == 3:
            frame.end = position
            return FRAME_OK


cdef inline void _copy_overlap(
    const uint8_t* source, int64_t at, int64_t length, int64_t start, int64_t stop, uint8_t* out
) noexcept nogil:
    """Copy what the piece [at, at + length) of a payload shares with [start, stop) to `out`."""
    cdef int64_t first = at if at > start else start
    cdef int64_t last = at + length if at + length < stop else stop
    if first < last:
        memcpy(out + (first - start), source + (first - at), <size_t>(last - first))


cdef void frame_read(
    const uint8_t* base, const Frame* frame, int64_t start, int64_t count, uint8_t* out
) noexcept nogil:
    cdef int64_t position = frame.offset, at = 0, stop = start + count, length, part
    for part in range(frame.parts):
        if at >= stop:
            return
        if part > 0:
            _copy_overlap(MAGIC_BYTES, at, 4, start, stop, out)
            at += 4
        length = flag_and_length(base + position) & MAX_RECORD
        # Heads were checked by frame_scan; a file that changes meanwhile must not lead outside.
        if position + FRAME_HEAD + length > frame.end:
            return
        _copy_overlap(base + position + FRAME_HEAD, at, length, start, stop, out)
        at += length
        position += FRAME_HEAD + padded(length)


cdef void frame_join(const uint8_t* base, const Frame* frame, uint8_t* out) noexcept nogil:
    frame_read(base, frame, 0, frame.length, out)


cdef int frames_index(
    const uint8_t* base,
    int64_t size,
    int64_t offset,
    int64_t* offsets,
    int64_t capacity,
    int64_t* count,
    Frame* last,
) noexcept nogil:
    cdef int status
    count[0] = 0
    last.end = offset
    while count[0] < capacity:
        status = frame_scan(base, size, last.end, last)
        if status != FRAME_OK:
            return status
        offsets[count[0]] = last.offset
        count[0] += 1
    return FRAME_OK


cdef int frame_check_payload(const uint8_t* base, Frame* frame) noexcept nogil:
    cdef int64_t position = frame.offset, length, part
    for part in range(frame.parts):
        length = flag_and_length(base + position) & MAX_RECORD
        if count_magic(base + position + FRAME_HEAD, length // 4, True):
            return FRAME_SWALLOWED_HEAD
        position += FRAME_HEAD + padded(length)
    return FRAME_OK


cdef int64_t next_head(const uint8_t* base, int64_t size, int64_t offset) noexcept nogil:
    cdef uint32_t magic = magic_word()
    cdef int64_t position = padded(offset) if offset > 0 else 0
    while position + FRAME_HEAD <= size:
        if load_word(base + position) == magic and flag_and_length(base + position) >> 29 <= 1:
            return position
        position += 4
    return size


cdef object frame_error(int status, path, int64_t offset, record):
    kind, reason = _DAMAGE[status]
    return kind(reason, path=path, offset=offset, record=record)


_KINDS = {
    FRAME_OK: "ok",
    FRAME_END: "end",
    FRAME_BAD_OFFSET: "bad_offset",
    FRAME_BAD_MAGIC: "bad_magic",
    FRAME_ZEROS: "zeros",
    FRAME_BAD_FLAG: "bad_flag",
    FRAME_ORPHAN_PART: "orphan_part",
    FRAME_UNFINISHED: "unfinished",
    FRAME_TOO_LONG: "too_long",
    FRAME_SWALLOWED_HEAD: "swallowed_head",
    FRAME_TRUNCATED_HEAD: "truncated_head",
    FRAME_TRUNCATED_PAYLOAD: "truncated_payload",
    FRAME_TRUNCATED_PAD: "truncated_pad",
    FRAME_MISSING_PART: "missing_part",
}
_REPAIR = "recordio.repair() saves the records that are whole"
_DAMAGE = {
    FRAME_BAD_OFFSET: (
        CorruptRecordError,
        "no record can begin here: offsets are multiples of 4 inside the file; if they come from an"
        " index, rebuild it with recordio.build_index()",
    ),
    FRAME_BAD_MAGIC: (
        CorruptRecordError,
        f"no record begins here (no magic word): the file is damaged, is no record file, or the"
        f" index is that of another file; {_REPAIR}",
    ),
    FRAME_ZEROS: (
        CorruptRecordError,
        f"zero bytes where a record should begin: the file was not written to its end; {_REPAIR}",
    ),
    FRAME_BAD_FLAG: (
        CorruptRecordError, f"the flag of a record part is none of 0 to 3; {_REPAIR}"
    ),
    FRAME_ORPHAN_PART: (
        CorruptRecordError,
        f"a continuation part stands here without the first part of its record; {_REPAIR}",
    ),
    FRAME_UNFINISHED: (
        CorruptRecordError,
        f"a new record begins before the last part of the one before; {_REPAIR}",
    ),
    FRAME_TOO_LONG: (
        CorruptRecordError, f"the parts of a record add up to 2**29 bytes or more; {_REPAIR}"
    ),
    FRAME_SWALLOWED_HEAD: (
        CorruptRecordError,
        f"the head of another record lies inside this one, so its length is wrong; {_REPAIR}",
    ),
    FRAME_TRUNCATED_HEAD: (
        TruncatedRecordError, f"the file ends inside the head of a record; {_REPAIR}"
    ),
    FRAME_TRUNCATED_PAYLOAD: (
        TruncatedRecordError,
        f"the file ends inside the payload of a record, or its length is wrong; {_REPAIR}",
    ),
    FRAME_TRUNCATED_PAD: (
        TruncatedRecordError,
        f"the file ends inside the pad bytes of its last record; {_REPAIR}",
    ),
    FRAME_MISSING_PART: (
        TruncatedRecordError, f"the file ends between two parts of a record; {_REPAIR}"
    ),
}


cdef int64_t _encoded_size(const uint8_t* data, int64_t length) except -1:
    if length > MAX_RECORD:
        raise RecordTooLargeError(
            f"a record of {length} bytes; the format holds at most {MAX_RECORD} (2**29 - 1):"
            " store the data in several records"
        )
    return FRAME_HEAD + padded(length) + 4 * count_magic(data, length // 4, False)


cdef void _encode(
    const uint8_t* data, int64_t length, uint8_t* out, int64_t encoded
) noexcept nogil:
    """Write the frame of a payload; `encoded` is its size, which tells whether words are escaped."""
    cdef int64_t start = 0, i, whole = length & ~<int64_t>3
    cdef uint32_t magic = magic_word()
    if encoded != FRAME_HEAD + padded(length):
        for i in range(0, whole, 4):
            if load_word(data + i) == magic:
                put_head(out, 2 if start else 1, <uint32_t>(i - start))
                memcpy(out + FRAME_HEAD, data + start, <size_t>(i - start))
                out += FRAME_HEAD + (i - start)
                start = i + 4
    put_head(out, 3 if start else 0, <uint32_t>(length - start))
    memcpy(out + FRAME_HEAD, data + start, <size_t>(length - start))
    memset(out + FRAME_HEAD + (length - start), 0, <size_t>(padded(length) - length))


def encode(payload):
    """Frame one record.

    Parameters
    ----------
    payload : bytes-like
        At most ``2**29 - 1`` bytes; may be empty.

    Returns
    -------
    bytes
        What stands in a file for the record: a multiple of 4 bytes long.

    Raises
    ------
    RecordTooLargeError
        If the payload has ``2**29`` bytes or more.

    Examples
    --------
    >>> encode(b"a").hex(" ")
    '0a 23 d7 ce 01 00 00 00 61 00 00 00'
    """
    cdef const uint8_t[::1] view = _as_bytes(payload)
    cdef const uint8_t* data = &view[0] if view.shape[0] else NULL
    cdef int64_t size = _encoded_size(data, view.shape[0])
    out = PyBytes_FromStringAndSize(NULL, size)
    cdef uint8_t* start = <uint8_t*>PyBytes_AS_STRING(out)
    with nogil:
        _encode(data, view.shape[0], start, size)
    return out


def encode_into(uint8_t[::1] buffer, Py_ssize_t position, payload):
    """Frame one record behind others in a buffer.

    Parameters
    ----------
    buffer : writable bytes-like
        Where to write.
    position : int
        Where in the buffer the frame begins, ``0 <= position <= len(buffer)``.
    payload : bytes-like
        At most ``2**29 - 1`` bytes; may be empty.

    Returns
    -------
    int
        The position just behind the frame, or -1 if it does not fit; nothing is written then.

    Raises
    ------
    RecordTooLargeError
        If the payload has ``2**29`` bytes or more.

    Examples
    --------
    >>> buffer = bytearray(16)
    >>> encode_into(buffer, 0, b"abc"), encode_into(buffer, 12, b"def")
    (12, -1)
    """
    cdef const uint8_t[::1] view = _as_bytes(payload)
    cdef const uint8_t* data = &view[0] if view.shape[0] else NULL
    cdef int64_t size = _encoded_size(data, view.shape[0])
    if position < 0 or position > buffer.shape[0]:
        raise ValueError(f"position {position} outside a buffer of {buffer.shape[0]} bytes")
    if size > buffer.shape[0] - position:
        return -1
    _encode(data, view.shape[0], &buffer[position], size)
    return position + size


cdef object _as_bytes(payload):
    """Something that a view of unsigned bytes accepts."""
    if type(payload) is bytes or type(payload) is bytearray:
        return payload
    view = memoryview(payload)
    if not view.c_contiguous:
        raise TypeError("a record must be contiguous bytes")
    return view.cast("B") if view.nbytes else b""


def scan_offsets(data, path=None, int64_t start=0, int64_t record=0):
    """Offsets of all records in the bytes of a file.

    Parameters
    ----------
    data : bytes-like
        The whole file.
    path : str, optional
        Its name, for errors.
    start : int
        Offset of the first record to look at.
    record : int
        Its position, for errors.

    Returns
    -------
    numpy.ndarray
        int64, one offset for each record.

    Raises
    ------
    CorruptRecordError, TruncatedRecordError
        At the first damage, with its offset and the number of the record.

    Examples
    --------
    >>> scan_offsets(encode(b"a") + encode(b"bcdef"))
    array([ 0, 12])
    """
    cdef const uint8_t[::1] view = _as_bytes(data)
    cdef const uint8_t* base = &view[0] if view.shape[0] else NULL
    cdef int64_t size = view.shape[0], count = 0
    cdef int64_t[::1] chunk
    cdef Frame last
    cdef int status = FRAME_OK
    chunks = []
    last.end = start
    while status == FRAME_OK:
        array = np.empty(INDEX_CHUNK, np.int64)
        chunk = array
        with nogil:
            status = frames_index(
                base, size, last.end, &chunk[0], INDEX_CHUNK, &count, &last
            )
        chunks.append(array[:count])
        record += count
        PyErr_CheckSignals()
    if status != FRAME_END:
        raise frame_error(status, path, last.end, record)
    return np.concatenate(chunks)


def find_head(data, int64_t offset=0):
    """Offset of the next record that may begin at or behind an offset.

    Parameters
    ----------
    data : bytes-like
        The whole file.
    offset : int
        Where to start, in bytes.

    Returns
    -------
    int
        A multiple of 4 at which the magic word and the flag of a first part stand, or
        ``len(data)`` if there is none.

    Examples
    --------
    >>> find_head(b"damaged!" + encode(b"a"))
    8
    """
    cdef const uint8_t[::1] view = _as_bytes(data)
    cdef const uint8_t* base = &view[0] if view.shape[0] else NULL
    cdef int64_t size = view.shape[0], stop, found
    offset = padded(max(offset, 0))
    while offset < size:
        # The next chunk begins where a head may have been cut.
        stop = min(size, offset + SEARCH_CHUNK)
        with nogil:
            found = next_head(base, stop, offset)
        if found < stop or stop == size:
            return found if found < stop else size
        offset = stop - 4
        PyErr_CheckSignals()
    return size


class Run(NamedTuple):
    """Adjacent whole records, and what stands behind them."""

    #: Where the records begin: int64 array.
    offsets: object
    #: Offset behind the last of them.
    end: int
    #: How many of them have several parts.
    multipart: int
    #: Bytes in them, without heads and padding.
    payload_bytes: int
    #: What stands at `end`: "ok" (probably more records), "end" of the file, or a kind of damage.
    kind: str
    #: The damage in words, else empty.
    reason: str


def survey(data, int64_t start=0):
    """Look at a run of whole records, their payloads included.

    Parameters
    ----------
    data : bytes-like
        The whole file.
    start : int
        Offset at which to begin.

    Returns
    -------
    Run
        A few thousand records at most; go on at its `end` while its kind is ``"ok"``.

    Examples
    --------
    >>> run = survey(encode(b"a") + bytes(4))
    >>> run.offsets, run.end, run.kind
    (array([0]), 12, 'zeros')
    """
    cdef const uint8_t[::1] view = _as_bytes(data)
    cdef const uint8_t* base = &view[0] if view.shape[0] else NULL
    cdef int64_t size = view.shape[0], count = 0, multipart = 0, payload_bytes = 0, end = start
    array = np.empty(INDEX_CHUNK, np.int64)
    cdef int64_t[::1] offsets = array
    cdef Frame frame
    cdef int status = FRAME_OK
    with nogil:
        while count < INDEX_CHUNK and end - start < SEARCH_CHUNK:
            status = frame_scan(base, size, end, &frame)
            if status == FRAME_OK:
                status = frame_check_payload(base, &frame)
            if status != FRAME_OK:
                break
            offsets[count] = frame.offset
            count += 1
            multipart += frame.parts > 1
            payload_bytes += frame.length
            end = frame.end
    PyErr_CheckSignals()
    kind = _KINDS[status]
    reason = "" if status == FRAME_OK or status == FRAME_END else _DAMAGE[status][1]
    return Run(array[:count], end, multipart, payload_bytes, kind, reason)
