"""The record frame: where a record begins and ends in the bytes of a file.

A record is one part, or several where its payload held the magic word.  Everything here works on
bytes in memory, and without the GIL.
"""

from typing import NamedTuple

import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memcmp, memcpy

from recordio.bytes.mapping cimport guard_of, map_guard, map_lost
from recordio.frames.words cimport (
    MAGIC_BYTES,
    ZERO_BYTES,
    count_magic,
    flag_and_length,
    load_word,
    magic_word,
    padded,
)

from recordio.errors import CorruptRecordError, TruncatedRecordError
from recordio.bytes.mapping import LOST

__all__ = ["Run", "find_head", "scan_offsets", "survey"]

# Pieces of work between two looks at pending signals: small enough for a slow disk.
cdef enum:
    INDEX_CHUNK = 4096
    SEARCH_CHUNK = 1 << 26


cdef int _not_a_head(const uint8_t* at, int64_t left) noexcept nogil:
    """Return the fault of the bytes at `at`, if the first of them are no magic word."""
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


cdef int frame_doubt(map_guard* guard, int status, Frame* frame) noexcept nogil:
    cdef int64_t end = frame.end if status == FRAME_OK else frame.end + FRAME_HEAD
    if guard == NULL or status == FRAME_END or status == FRAME_BAD_OFFSET:
        return status
    if not map_lost(guard, frame.offset, end):
        return status
    frame.end = frame.offset
    return FRAME_LOST


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


cdef int frame_check_payload(
    const uint8_t* base, int64_t size, Frame* frame, bint* unescaped
) noexcept nogil:
    cdef int64_t position = frame.offset, length, _part
    unescaped[0] = False
    for _part in range(frame.parts):
        length = flag_and_length(base + position) & MAX_RECORD
        if position + FRAME_HEAD + length > frame.end:      # it changed meanwhile
            return FRAME_BAD_MAGIC
        if count_magic(base + position + FRAME_HEAD, length // 4, True):
            unescaped[0] = True
            return FRAME_OK if _next_begins(base, size, frame.end) else FRAME_SWALLOWED_HEAD
        position += FRAME_HEAD + padded(length)
    return FRAME_OK


cdef bint _next_begins(const uint8_t* base, int64_t size, int64_t end) noexcept nogil:
    """Tell whether the file ends at `end`, or a word stands there that looks like a head."""
    cdef int64_t stop = end + FRAME_HEAD
    return end == size or (stop <= size and next_head(base, stop, end) == end)


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
    FRAME_LOST: "lost",
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
        f"a magic word lies inside this record, and no record begins at its end, so its length is"
        f" wrong; {_REPAIR}",
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
    FRAME_LOST: (TruncatedRecordError, LOST),
}


def scan_offsets(data, path=None, int64_t start=0, int64_t record=0):
    """Find the offsets of all records in the bytes of a file, from the record at `start` on.

    The first damage is an error, with its offset and its number, counted from `record`.

    >>> from recordio.frames.encoder import encode
    >>> scan_offsets(encode(b"a") + encode(b"bcdef"))
    array([ 0, 12])
    """
    cdef const uint8_t[::1] view = data
    cdef const uint8_t* base = &view[0] if view.shape[0] else NULL
    cdef int64_t size = view.shape[0], count = 0, before
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
    offsets = np.concatenate(chunks)
    if status != FRAME_END:
        status = frame_confirm(guard_of(data), status, &last)
        before = offsets[len(offsets) - 1] if len(offsets) else -1
        if status != FRAME_LOST and before >= 0 and _swallows(base, size, before):
            # The damage is the record before: its length led here.
            status, last.end, record = FRAME_SWALLOWED_HEAD, before, record - 1
        raise frame_error(status, path, last.end, record)
    return offsets


cdef bint _swallows(const uint8_t* base, int64_t size, int64_t offset):
    """Tell whether the length of the record at `offset` is wrong, which `survey` calls damage."""
    cdef Frame frame
    cdef bint unescaped
    return (
        frame_scan(base, size, offset, &frame) == FRAME_OK
        and frame_check_payload(base, size, &frame, &unescaped) != FRAME_OK
    )


def find_head(data, int64_t offset=0):
    """Find the next offset, of `offset` and those behind it, at which a record may begin.

    It is a multiple of 4 with the magic word and the flag of a first part, or ``len(data)``.

    >>> from recordio.frames.encoder import encode
    >>> find_head(b"damaged!" + encode(b"a"))
    8
    """
    cdef const uint8_t[::1] view = data
    cdef const uint8_t* base = &view[0] if view.shape[0] else NULL
    cdef int64_t size = view.shape[0], stop, head
    offset = padded(max(offset, 0))
    while offset < size:
        # The next chunk begins where a head may have been cut.
        stop = min(size, offset + SEARCH_CHUNK)
        with nogil:
            head = next_head(base, stop, offset)
        if head < stop or stop == size:
            return head if head < stop else size
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
    #: Where those of them begin that hold a magic word which was not escaped: int64 array.
    unescaped: object
    #: What stands at `end`: "ok" (probably more records), "end" of the file, or a kind of damage.
    kind: str
    #: The damage in words, else empty.
    reason: str


def survey(data, int64_t start=0, bint payloads=True):
    """Look at a few thousand records from an offset on, up to the first damage.

    Go on at the `end` of the run while its kind is ``"ok"``.  With `payloads` all payloads are
    searched for magic words.  Otherwise only those are behind which no record begins: the same
    records are whole, but `Run.unescaped` does not list all.

    A record that holds a magic word, which MXNet's writer escapes, counts as whole if another
    record begins where it ends, or the file ends there.

    >>> from recordio.frames.encoder import encode
    >>> run = survey(encode(b"a") + bytes(4))
    >>> run.offsets, run.end, run.kind
    (array([0]), 12, 'zeros')
    """
    cdef const uint8_t[::1] view = data
    cdef const uint8_t* base = &view[0] if view.shape[0] else NULL
    cdef int64_t size = view.shape[0], count = 0, multipart = 0, payload_bytes = 0, end = start
    array, unescaped = np.empty((2, INDEX_CHUNK), np.int64)
    cdef int64_t[::1] offsets = array, unescaped_offsets = unescaped
    cdef int64_t unescaped_count = 0
    cdef Frame frame
    cdef bint holds_magic
    cdef int status = FRAME_OK
    with nogil:
        while count < INDEX_CHUNK and end - start < SEARCH_CHUNK:
            status = frame_scan(base, size, end, &frame)
            holds_magic = False
            if status == FRAME_OK and (payloads or not _next_begins(base, size, frame.end)):
                status = frame_check_payload(base, size, &frame, &holds_magic)
            if status != FRAME_OK:
                break
            offsets[count] = frame.offset
            count += 1
            if holds_magic:
                unescaped_offsets[unescaped_count] = frame.offset
                unescaped_count += 1
            multipart += frame.parts > 1
            payload_bytes += frame.length
            end = frame.end
    PyErr_CheckSignals()
    _check_run(data, array[:count], end, status, &frame)
    kind = _KINDS[status]
    reason = "" if status == FRAME_OK or status == FRAME_END else _DAMAGE[status][1]
    # Copies: a short run must not keep all of the two arrays.
    run_offsets = array[:count].copy()
    unescaped = unescaped[:unescaped_count].copy()
    return Run(run_offsets, end, multipart, payload_bytes, unescaped, kind, reason)


cdef _check_run(data, offsets, int64_t end, int status, Frame* behind):
    """Raise if records that were surveyed, or what stands behind them, have been lost."""
    cdef map_guard* guard = guard_of(data)
    if guard == NULL:
        return
    lost = None
    if map_lost(guard, offsets[0] if len(offsets) else end, end):
        ends = [*offsets[1:].tolist(), end]
        stretches = zip(offsets.tolist(), ends, strict=True)
        lost = next((begin for begin, stop in stretches if map_lost(guard, begin, stop)), end)
    elif frame_confirm(guard, status, behind) == FRAME_LOST:
        lost = behind.offset
    if lost is not None:
        raise frame_error(FRAME_LOST, data.obj.path, lost, None)
