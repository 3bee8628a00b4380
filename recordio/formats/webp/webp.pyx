# build: libwebp decoder.c
"""Decode still WebP images with libwebp, without Python: all or a region.

The pixels are those of libwebp's own decode of the whole image, which OpenCV and Pillow hand out
too.  It never turns an image and never decodes an animation, which `recordio.formats.general` does.
"""

from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport strncpy

from recordio.formats.codec_rows cimport Codec, CodecRows
from recordio.formats.row_source cimport (
    SOURCE_FAILED, SOURCE_OPEN, SOURCE_OTHER, ImageInfo, OpenStatus, Rectangle,
)
from recordio.formats.status cimport MESSAGE_SIZE

from recordio.formats.jpeg_markers import DEFAULT_MAX_PIXELS

cdef extern from "recordio/formats/webp/decoder.h" nogil:
    ctypedef struct webp_decoder:
        pass

    ctypedef struct webp_info:
        int width
        int height
        int orientation

    cdef enum webp_status:
        WEBP_OK
        WEBP_OTHER
        WEBP_NO_MEMORY
        WEBP_BAD_ARGUMENT

    int webp_decoder_available() noexcept
    const char* webp_decoder_library() noexcept
    int webp_decoder_version() noexcept
    webp_decoder* webp_decoder_new() noexcept
    void webp_decoder_free(webp_decoder* decoder) noexcept
    int webp_decoder_open(webp_decoder* decoder, const uint8_t* data, size_t size, int channels,
                          int64_t max_pixels, webp_info* info) noexcept
    int webp_decoder_start(webp_decoder* decoder, int x, int y, int width, int height) noexcept
    int webp_decoder_rows(webp_decoder* decoder, const uint8_t** row, ptrdiff_t* stride,
                          int* count) noexcept
    void webp_decoder_finish(webp_decoder* decoder) noexcept
    const char* webp_decoder_message(const webp_decoder* decoder) noexcept

__all__ = ["WebpRows", "available", "library"]


def available():
    """Return True if this module was built with libwebp; without it decodes nothing.

    >>> isinstance(available(), bool)
    True
    """
    return bool(webp_decoder_available())


def library():
    """Name the library that decodes and its version.

    >>> isinstance(library(), str)
    True
    """
    name = webp_decoder_library().decode("ascii")
    version = webp_decoder_version()
    if name == "libwebp":
        name += f" {version >> 16}.{version >> 8 & 255}.{version & 255}"
    return name


cdef class WebpRows(CodecRows):
    """A row source that decodes no further than to the end of the rectangle; see `RowDecoder`.

    Left to the next source are animations, and four channels of an image without transparency.
    """

    def __cinit__(self, int channels, *, bint upright=True, bint deep=False,
                  max_pixels=DEFAULT_MAX_PIXELS, **limits):
        cdef Codec* codec = &self.codec
        codec.open, codec.start, codec.rows = open_webp, start_webp, rows_of_webp
        codec.finish, codec.explain, codec.free = finish_webp, explain_webp, free_webp
        codec.no_memory, codec.bad_argument = WEBP_NO_MEMORY, WEBP_BAD_ARGUMENT
        codec.cold = True
        # Four channels are as they are stored, whoever decodes.
        codec.channels, codec.upright = channels, upright and channels != 4
        codec.max_pixels = max_pixels
        self.made(webp_decoder_new())


cdef OpenStatus open_webp(Codec* codec, const uint8_t* data, size_t size,
                          ImageInfo* info) noexcept nogil:
    cdef webp_info header
    codec.status = webp_decoder_open(<webp_decoder*>codec.decoder, data, size, codec.channels,
                                     codec.max_pixels, &header)
    info.width, info.height, info.orientation = header.width, header.height, header.orientation
    info.pixel_size = codec.channels
    if codec.status == WEBP_OTHER:
        return SOURCE_OTHER
    return SOURCE_OPEN if codec.status == WEBP_OK else SOURCE_FAILED


cdef int start_webp(const Codec* codec, int denominator, const Rectangle* area) noexcept nogil:
    return webp_decoder_start(<webp_decoder*>codec.decoder, area.x, area.y, area.width,
                              area.height)


cdef int rows_of_webp(void* decoder, const uint8_t** row, ptrdiff_t* stride,
                      int* count) noexcept nogil:
    return webp_decoder_rows(<webp_decoder*>decoder, row, stride, count)


cdef bint finish_webp(void* decoder) noexcept nogil:
    webp_decoder_finish(<webp_decoder*>decoder)
    return True


cdef void explain_webp(const Codec* codec, char* text) noexcept nogil:
    strncpy(text, webp_decoder_message(<webp_decoder*>codec.decoder), MESSAGE_SIZE)


cdef void free_webp(void* decoder) noexcept nogil:
    webp_decoder_free(<webp_decoder*>decoder)
