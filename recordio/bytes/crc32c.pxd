"""C declarations of CRC-32C, for the modules that compare checksums without the GIL."""

from libc.stdint cimport int64_t, uint8_t, uint32_t

cdef uint32_t crc32c_of(const uint8_t* data, int64_t size) noexcept nogil
