# build: decoder.c
"""Read headers of PNG images, and decode them without Python: all or a region.

What is decoded is the still image, of 8 or 16 bits; files whose pixels depend on something odd are
left to `recordio.formats.general`.  It never turns an image, and never hands out pixels for which
the data is missing.
"""

from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport strncpy

from recordio.formats.codec_rows cimport Codec, CodecRows
from recordio.formats.row_source cimport (
    SOURCE_FAILED, SOURCE_OPEN, SOURCE_OTHER, ImageInfo, OpenStatus, Rectangle,
)
from recordio.formats.status cimport MESSAGE_SIZE

from recordio.errors import ImageDecodeError
from recordio.formats.jpeg_markers import DEFAULT_MAX_PIXELS

cdef extern from "recordio/formats/png/decoder.h" nogil:
    ctypedef struct png_decoder:
        pass

    ctypedef struct png_info:
        int width
        int height
        int orientation
        int pixel
        int cut

    ctypedef struct png_outline:
        int width
        int height
        int depth
        int colour
        int interlaced
        int num_alphas
        int has_key
        int orientation
        int animated
        int is_cut
        char* message

    enum:
        PNG_VALUES
        PNG_PALETTE

    cdef enum png_status:
        PNG_OK
        PNG_OTHER
        PNG_NO_MEMORY
        PNG_BAD_ARGUMENT

    int png_decoder_look(const uint8_t* data, size_t size, int outline,
                         png_outline* image) noexcept
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

__all__ = ["PngRows", "PngValues", "check_png", "png_header"]

png_decoder_prepare()

#: Channels by colour type; a palette gives colours.
cdef int[7] CHANNELS = [1, 0, 3, 3, 2, 0, 4]


def png_header(const uint8_t[::1] data not None):
    """Read a header: width, height, orientation, bits, channels, if in passes, and if plain.

    Plain pixels have no palette, no colour that is transparent, and no other frames.  The result is
    None where the header is not as it should be.
    """
    cdef png_outline header
    png_decoder_look(&data[0], data.shape[0], True, &header)
    if header.message[0]:
        raise ImageDecodeError(header.message.decode("ascii", "replace"))
    if not (0 <= header.colour <= 6 and CHANNELS[header.colour] and header.width and header.height):
        return None
    is_palette, has_alphas = header.colour == PNG_PALETTE, header.num_alphas or header.has_key
    return (
        header.width, header.height, header.orientation or 1, 8 if is_palette else header.depth,
        CHANNELS[header.colour] + bool(has_alphas), bool(header.interlaced),
        not (is_palette or has_alphas or header.animated),
    )


def check_png(const uint8_t[::1] data not None):
    """Return True for all chunks with right checksums; False: only a decoder can tell."""
    cdef png_outline outline
    cdef int status
    with nogil:
        status = png_decoder_look(&data[0], data.shape[0], False, &outline)
    if status in (PNG_OK, PNG_OTHER):
        return status == PNG_OK and not outline.is_cut
    raise ImageDecodeError(outline.message.decode("ascii", "replace"))


cdef class PngRows(CodecRows):
    """A row source that undoes filters no further than it has to; see `RowDecoder`.

    `deep` gives 16 bits where they are stored.  Left to the next source are images whose pixels
    depend on odd chunks or damaged data, and four channels of an image without transparency.
    Without `vectors` filters are undone in plain C.
    """

    cdef int deep

    def __cinit__(self, int channels=1, *, bint upright=True, bint deep=False, bint vectors=True,
                  max_pixels=DEFAULT_MAX_PIXELS, **limits):
        cdef Codec* codec = &self.codec
        codec.open, codec.start, codec.rows = open_png, start_png, rows_of_png
        codec.finish, codec.explain, codec.free = finish_png, explain_png, free_png
        codec.no_memory, codec.bad_argument = PNG_NO_MEMORY, PNG_BAD_ARGUMENT
        # Four channels are as they are stored, whoever decodes.
        codec.channels, codec.upright = channels, upright and channels != 4
        codec.max_pixels, codec.settings = max_pixels, &self.deep
        self.deep = deep
        self.made(png_decoder_new())
        png_decoder_use_vectors(<png_decoder*>codec.decoder, vectors)


cdef class PngValues(PngRows):
    """The same for values as they are stored, such as the numbers of classes in a mask.

    A value is a byte, or two in the order of the machine: ``info.pixel_size`` says so.  Images with
    several values for a pixel, or to be turned, are left to the next source.
    """

    def __cinit__(self, *, max_pixels=DEFAULT_MAX_PIXELS, **limits):
        self.deep = PNG_VALUES


cdef OpenStatus open_png(Codec* codec, const uint8_t* data, size_t size,
                         ImageInfo* info) noexcept nogil:
    cdef int deep = (<const int*>codec.settings)[0]
    cdef png_info header
    codec.status = png_decoder_open(<png_decoder*>codec.decoder, data, size, codec.channels,
                                    deep, codec.max_pixels, &header)
    if codec.status == PNG_OTHER or (codec.status == PNG_OK and deep == PNG_VALUES
                                     and header.orientation != 1):
        return SOURCE_OTHER
    if codec.status != PNG_OK:
        return SOURCE_FAILED
    info.width, info.height, info.pixel_size = header.width, header.height, header.pixel
    info.orientation, info.cut = header.orientation, header.cut
    return SOURCE_OPEN


cdef int start_png(const Codec* codec, int denominator, const Rectangle* area) noexcept nogil:
    return png_decoder_start(<png_decoder*>codec.decoder, area.x, area.y, area.width,
                             area.height)


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
