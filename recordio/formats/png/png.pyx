"""Decode PNG images without Python: all or a region, to the pixels that OpenCV gives.

It takes files in which nothing is odd, which libpng would warn of or read in a way of its own, and
leaves all others to `recordio.formats.general`.  It never turns an image, and never hands
out pixels for which the data is missing.
"""

import os

from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport strncpy

from recordio.formats.codec_rows cimport Codec, CodecRows
from recordio.formats.row_source cimport (
    SOURCE_FAILED, SOURCE_OPEN, SOURCE_OTHER, ImageInfo, OpenStatus, Rectangle,
)
from recordio.formats.status cimport MESSAGE_SIZE

from recordio.formats.jpeg_markers import DEFAULT_MAX_PIXELS

cdef extern from "recordio/formats/png/decoder.h" nogil:
    ctypedef struct png_decoder:
        pass

    ctypedef struct png_info:
        int width
        int height
        int pixel

    enum:
        PNG_VALUES

    cdef enum png_status:
        PNG_OK
        PNG_OTHER
        PNG_NO_MEMORY
        PNG_BAD_ARGUMENT

    void png_decoder_prepare() noexcept
    png_decoder* png_decoder_new() noexcept
    void png_decoder_free(png_decoder* decoder) noexcept
    void png_decoder_use_vectors(png_decoder* decoder, int use) noexcept
    int png_decoder_open(png_decoder* decoder, const uint8_t* data, size_t size, int channels,
                         int deep, int64_t max_pixels, png_info* info) noexcept
    int png_decoder_start(png_decoder* decoder, int x, int y, int width, int height) noexcept
    int png_decoder_rows(png_decoder* decoder, const uint8_t** row, ptrdiff_t* stride,
                         int* count) noexcept
    void png_decoder_finish(png_decoder* decoder) noexcept
    const char* png_decoder_message(const png_decoder* decoder) noexcept

__all__ = ["PngRows", "PngValues", "decoder"]

png_decoder_prepare()


def decoder():
    """Name the decoder of PNG images in which nothing is odd.

    It is ``"own"``, or ``"opencv"`` if that is asked for.

    >>> decoder() in ("own", "opencv")
    True
    """
    asked = os.environ.get("ITERATORS_PNG", "")
    if asked not in ("", "opencv"):
        raise ValueError(f"the environment variable ITERATORS_PNG must be 'opencv', not {asked!r}")
    return asked or "own"


decoder()  # a wrong variable is told of at once


cdef struct Settings:
    int deep
    bint closed             # everything is left to the next source


cdef class PngRows(CodecRows):
    """A row source that undoes filters no further than it has to; see `RowDecoder`.

    `deep` gives 16 bits where they are stored, for grey of an image without colours and RGB of
    others.  Left to the next source are images with several frames, an orientation, odd chunks or
    damaged data; four channels of an image without transparency; grey of colours for which the file
    has a profile; everything, if `decoder` is not ``"own"``.  Without `vectors` filters are undone
    in plain C.
    """

    cdef Settings settings

    def __cinit__(self, int channels=1, *, bint deep=False, bint vectors=True,
                  max_pixels=DEFAULT_MAX_PIXELS, **limits):
        cdef Codec* codec = &self.codec
        codec.open, codec.start, codec.rows = open_png, start_png, rows_of_png
        codec.finish, codec.explain, codec.free = finish_png, explain_png, free_png
        codec.no_memory, codec.bad_argument = PNG_NO_MEMORY, PNG_BAD_ARGUMENT
        codec.channels, codec.max_pixels = channels, max_pixels
        codec.settings = &self.settings
        self.settings.deep, self.settings.closed = deep, decoder() != "own"
        self.made(png_decoder_new())
        png_decoder_use_vectors(<png_decoder*>codec.decoder, vectors)


cdef class PngValues(PngRows):
    """The same for values as they are stored, such as the numbers of classes in a mask.

    A value is a byte, or two in the order of the machine: ``info.pixel_size`` says so.  Images with
    several values for a pixel are left to the next source.
    """

    def __cinit__(self, *, max_pixels=DEFAULT_MAX_PIXELS, **limits):
        self.settings.deep = PNG_VALUES


cdef OpenStatus open_png(Codec* codec, const uint8_t* data, size_t size,
                         ImageInfo* info) noexcept nogil:
    cdef const Settings* settings = <const Settings*>codec.settings
    cdef png_info found
    if settings.closed:
        return SOURCE_OTHER
    codec.status = png_decoder_open(<png_decoder*>codec.decoder, data, size, codec.channels,
                                    settings.deep, codec.max_pixels, &found)
    if codec.status == PNG_OTHER:
        return SOURCE_OTHER
    if codec.status != PNG_OK:
        return SOURCE_FAILED
    info.width, info.height, info.pixel_size = found.width, found.height, found.pixel
    return SOURCE_OPEN


cdef int start_png(const Codec* codec, int denominator, const Rectangle* wanted) noexcept nogil:
    return png_decoder_start(<png_decoder*>codec.decoder, wanted.x, wanted.y, wanted.width,
                             wanted.height)


cdef int rows_of_png(void* decoder, const uint8_t** row, ptrdiff_t* stride,
                     int* count) noexcept nogil:
    return png_decoder_rows(<png_decoder*>decoder, row, stride, count)


cdef bint finish_png(void* decoder) noexcept nogil:
    png_decoder_finish(<png_decoder*>decoder)
    return True


cdef void explain_png(const Codec* codec, char* text) noexcept nogil:
    strncpy(text, png_decoder_message(<png_decoder*>codec.decoder), MESSAGE_SIZE)


cdef void free_png(void* decoder) noexcept nogil:
    png_decoder_free(<png_decoder*>decoder)
