"""The JPEG decoder for `cimport`: `jpeg_decoder.h` says what each function does.

Extension modules do not see each other's C functions, so other modules call these, which live in
`iterators.images.codecs.jpeg.jpeg` and forward to the C function of the same name behind ``jpeg_``.
"""

from libc.stdint cimport int64_t, uint8_t


cdef extern from "iterators/images/codecs/jpeg/decoder.h" nogil:
    ctypedef struct jpeg_decoder:
        pass

    ctypedef struct jpeg_info:
        int width
        int height
        int components
        int orientation
        int progressive
        int supported

    ctypedef struct jpeg_limits:
        int64_t max_pixels
        int max_scans
        int64_t max_scan_pixels

    cdef enum jpeg_status:
        JPEG_OK
        JPEG_NOT_JPEG
        JPEG_CORRUPT
        JPEG_TRUNCATED
        JPEG_TOO_LARGE
        JPEG_TOO_MANY_SCANS
        JPEG_NO_MEMORY
        JPEG_UNSUPPORTED
        JPEG_BAD_ARGUMENT
        JPEG_UNAVAILABLE

    cdef enum jpeg_channels:
        JPEG_GREY
        JPEG_RGB
        JPEG_BGR

    const int64_t JPEG_DEFAULT_MAX_PIXELS
    const int JPEG_DEFAULT_MAX_SCANS
    const int64_t JPEG_DEFAULT_MAX_SCAN_PIXELS


cdef int decoder_available() noexcept nogil
cdef jpeg_decoder* decoder_new() noexcept nogil
cdef void decoder_free(jpeg_decoder* decoder) noexcept nogil
cdef int decoder_open(jpeg_decoder* decoder, const uint8_t* data, size_t size,
                      const jpeg_limits* limits, jpeg_info* info) noexcept nogil
cdef int decoder_start(jpeg_decoder* decoder, int channels, int denominator, int x, int y,
                       int width, int height) noexcept nogil
cdef int decoder_rows(jpeg_decoder* decoder, const uint8_t** row, ptrdiff_t* stride,
                      int* count) noexcept nogil
cdef void decoder_finish(jpeg_decoder* decoder) noexcept nogil
cdef const char* decoder_message(const jpeg_decoder* decoder) noexcept nogil
cdef int decoder_warnings(const jpeg_decoder* decoder) noexcept nogil
