"""C declarations of checksums of records, for stages that compare them without the GIL."""

from libc.stdint cimport int64_t, uint8_t, uint32_t

from recordio.frames.frame cimport Frame

# What is known of one record: the bytes [offset, offset + length) of the file and their CRC-32C.
cdef packed struct Entry:
    int64_t offset
    uint32_t length
    uint32_t crc

cdef struct Table:
    const Entry* entries    # ascending, without gaps
    int64_t count

# Negative, so that they can stand beside FrameStatus.
cdef enum ChecksumStatus:
    CHECKSUM_OK = 0
    CHECKSUM_WRONG = -101       # the bytes of the record are not those that were written
    CHECKSUM_ABSENT = -102      # the table has no record that begins there

cdef class Checksums:
    cdef readonly object path
    cdef readonly int64_t size
    cdef readonly object entries
    cdef Table table

# Compare a record that `frame_scan` has located in the file at `base`.
cdef int checksum_check(const Table* table, const uint8_t* base, const Frame* frame) noexcept nogil

# The exception for a status that is not CHECKSUM_OK.
cdef object checksum_error(int status, path, int64_t offset, record)
