"""CRC-32C of bytes, by the processor's instruction for it where there is one; without the GIL."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int64_t, uint8_t, uint32_t

__all__ = ["crc32c", "has_instruction"]

cdef extern from "recordio/bytes/crc32c.h":
    int crc32c_instruction
    void crc32c_prepare()
    uint32_t crc32c_plain(uint32_t crc, const uint8_t* data, size_t size) noexcept nogil
    uint32_t crc32c_bytes(uint32_t crc, const uint8_t* data, size_t size) noexcept nogil

crc32c_prepare()


cdef uint32_t crc32c_of(const uint8_t* data, int64_t size) noexcept nogil:
    return crc32c_bytes(0, data, <size_t>size)


def crc32c(data, uint32_t before=0, *, bint plain=False):
    """Compute the CRC-32C of contiguous bytes behind those whose CRC is `before`.

    `plain` does without the processor's instruction, for tests.

    >>> hex(crc32c(b"123456789")), crc32c(b"6789", crc32c(b"12345")) == crc32c(b"123456789")
    ('0xe3069283', True)
    """
    cdef Py_buffer buffer
    cdef uint32_t crc
    PyObject_GetBuffer(data, &buffer, PyBUF_SIMPLE)
    try:
        with nogil:
            if plain:
                crc = crc32c_plain(before, <const uint8_t*>buffer.buf, buffer.len)
            else:
                crc = crc32c_bytes(before, <const uint8_t*>buffer.buf, buffer.len)
    finally:
        PyBuffer_Release(&buffer)
    return crc


def has_instruction():
    """Find out whether this processor has an instruction for it that is used."""
    return bool(crc32c_instruction)
