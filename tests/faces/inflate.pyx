"""The inflater of PNG and its checksums, over memory that ends where theirs may."""

from libc.stdint cimport uint8_t, uint32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy


cdef extern from "recordio/formats/png/inflate.h" nogil:
    enum:
        INFLATE_READS
        INFLATE_WRITES

    ctypedef struct png_inflater:
        pass

    int png_inflate(png_inflater* inflater, int portable, const uint8_t* data, size_t size,
                    uint8_t* out, size_t out_size) noexcept
    void crc32_prepare() noexcept
    uint32_t crc32_plain(const uint8_t* data, size_t size) noexcept
    uint32_t png_crc32(const uint8_t* data, size_t size) noexcept
    uint32_t png_adler32(const uint8_t* data, size_t size) noexcept

crc32_prepare()


def inflate(const uint8_t[::1] data, size_t size, *, bint portable=False):
    """Inflate one zlib stream to so many bytes; None if it is not that."""
    cdef png_inflater* inflater = <png_inflater*>malloc(sizeof(png_inflater))
    cdef size_t given = data.shape[0]
    cdef uint8_t* read = <uint8_t*>malloc(given + INFLATE_READS)
    cdef uint8_t* written = <uint8_t*>malloc(size + INFLATE_WRITES)
    try:
        if not inflater or not read or not written:
            raise MemoryError
        if given:
            memcpy(read, &data[0], given)
        if png_inflate(inflater, portable, read, given, written, size):
            return written[:size]
        return None
    finally:
        free(inflater)
        free(read)
        free(written)


def crc32(const uint8_t[::1] data, *, bint plain=False):
    """The CRC-32 of bytes, with tables alone if `plain`."""
    cdef const uint8_t* begin = &data[0] if data.shape[0] else NULL
    return (crc32_plain if plain else png_crc32)(begin, data.shape[0])


def adler32(const uint8_t[::1] data):
    """The Adler-32 of bytes."""
    return png_adler32(&data[0] if data.shape[0] else NULL, data.shape[0])
