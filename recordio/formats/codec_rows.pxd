from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int64_t, uint8_t

from recordio.formats.row_source cimport ImageInfo, OpenStatus, Rectangle, RowDecoder, RowSource
from recordio.formats.status cimport MESSAGE_SIZE


# A decoder written in C and its functions, which return 0 or a number of their own.
cdef struct Codec:
    void* decoder
    const RowSource* source  # that it is the codec of
    int channels
    bint upright            # whether images are to be turned as they say
    int64_t max_pixels
    const void* settings    # that only codecs of its kind have
    bint cold               # rows come from memory that may have to be fetched
    int no_memory, bad_argument     # of the numbers
    int status              # what the last call returned
    # Size and orientation as stored.
    OpenStatus (*open)(Codec* codec, const uint8_t* data, size_t size,
                       ImageInfo* info) noexcept nogil
    int (*start)(const Codec* codec, int denominator, const Rectangle* area) noexcept nogil
    int (*rows)(void* decoder, const uint8_t** row, ptrdiff_t* stride, int* count) noexcept nogil
    bint (*finish)(void* decoder) noexcept nogil    # whether the image was sound
    # Why the last call failed, in MESSAGE_SIZE bytes.
    void (*explain)(const Codec* codec, char* text) noexcept nogil
    void (*free)(void* decoder) noexcept nogil


# A row source over a decoder written in C, which the subclass makes in its `__cinit__`.
cdef class CodecRows(RowDecoder):
    cdef Codec codec

    cdef int made(self, void* decoder) except -1
