"""Write the frame of a record: head, payload, pad bytes; the magic word escaped.

The other direction is in `recordio.frames.frame`.
"""

from cpython.buffer cimport (
    PyBUF_SIMPLE,
    PyBUF_WRITABLE,
    PyBuffer_Release,
    PyObject_GetBuffer,
)
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memcpy, memset

from recordio.frames.frame cimport FRAME_HEAD, MAX_RECORD
from recordio.frames.words cimport count_magic, load_word, magic_word, padded, put_head

from recordio.errors import RecordTooLargeError

__all__ = ["MAGIC", "MAX_RECORD_LENGTH", "encode", "encode_into"]

#: The four bytes every part begins with.
MAGIC = b"\x0a\x23\xd7\xce"
#: Bytes of the longest payload the format can hold.
MAX_RECORD_LENGTH = MAX_RECORD


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
    """Write the frame of a payload; its size, `encoded`, tells whether words are escaped."""
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
    """Frame one record; the frame is a multiple of 4 bytes long.

    >>> encode(b"a").hex(" ")
    '0a 23 d7 ce 01 00 00 00 61 00 00 00'
    """
    cdef Py_buffer source
    cdef int64_t size
    cdef uint8_t* start
    _get_bytes(payload, &source)
    try:
        size = _encoded_size(<const uint8_t*>source.buf, source.len)
        out = PyBytes_FromStringAndSize(NULL, size)
        start = <uint8_t*>PyBytes_AS_STRING(out)
        with nogil:
            _encode(<const uint8_t*>source.buf, source.len, start, size)
    finally:
        PyBuffer_Release(&source)
    return out


def encode_into(buffer, Py_ssize_t position, payload):
    """Frame one record behind others in a buffer, and return the position behind it.

    It is -1 for a frame that does not fit; nothing is written then.

    >>> buffer = bytearray(16)
    >>> encode_into(buffer, 0, b"abc"), encode_into(buffer, 12, b"def")
    (12, -1)
    """
    cdef Py_buffer source, target
    cdef int64_t size
    _get_bytes(payload, &source)
    try:
        PyObject_GetBuffer(buffer, &target, PyBUF_WRITABLE)
        try:
            if position < 0 or position > target.len:
                raise ValueError(f"position {position} outside a buffer of {target.len} bytes")
            size = _encoded_size(<const uint8_t*>source.buf, source.len)
            if size > target.len - position:
                return -1
            _encode(
                <const uint8_t*>source.buf, source.len, <uint8_t*>target.buf + position, size
            )
        finally:
            PyBuffer_Release(&target)
    finally:
        PyBuffer_Release(&source)
    return position + size


cdef int _get_bytes(payload, Py_buffer* source) except -1:
    """The bytes of a payload; plain buffers, because typed memoryviews cost more than a record."""
    try:
        PyObject_GetBuffer(payload, source, PyBUF_SIMPLE)
    except (BufferError, ValueError) as error:
        raise TypeError(f"a record must be contiguous bytes: {error}") from error
    return 0
