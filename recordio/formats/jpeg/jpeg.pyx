# build: libjpeg decoder.c entropy.c entropy_check.c idct.c mcu_rows.c progressive.c unavailable.c
"""Decode JPEG images with libjpeg-turbo: the header, a region, at full size or a fraction of it.

It gives the pixels as stored: it never turns an image upright, never decodes anything but JPEG, and
never hands out pixels for which the data is missing.
"""

import os
from collections import namedtuple

from libc.stddef cimport ptrdiff_t
from libc.stdint cimport INT64_MAX, int64_t, uint8_t
from libc.stdio cimport snprintf

from recordio.formats.codec_rows cimport Codec
from recordio.formats.row_source cimport (
    SOURCE_FAILED, SOURCE_OPEN, SOURCE_OTHER, ImageInfo, OpenStatus, Rectangle,
)
from recordio.formats.status cimport MESSAGE_SIZE
from recordio.formats.jpeg.entry_store cimport entry_store
from recordio.formats.jpeg_markers cimport jpeg_limits, load_limits

from recordio.errors import ImageDecodeError
from recordio.formats.jpeg import MISSING
from recordio.formats.jpeg_markers import DEFAULT_LIMITS, check_limits

__all__ = [
    "DEFAULT_LIMITS",
    "DEFAULT_MAX_PIXELS",
    "DEFAULT_MAX_SCANS",
    "DEFAULT_MAX_SCAN_PIXELS",
    "JpegInfo",
    "JpegRows",
    "available",
    "check_limits",
    "entropy_decoder",
    "header",
    "library",
]


cdef extern from "recordio/formats/jpeg/decoder.h" nogil:
    ctypedef struct jpeg_decoder:
        pass

    ctypedef struct jpeg_info:
        int width
        int height
        int components
        int orientation
        int progressive
        int supported

    cdef enum jpeg_entropy_choice:
        JPEG_ENTROPY_OF_LIBRARY
        JPEG_ENTROPY_OF_OURS
        JPEG_ENTROPY_PORTABLE
        JPEG_ENTROPY_AVX2

    int jpeg_decoder_available() noexcept
    const char* jpeg_decoder_library() noexcept
    jpeg_decoder* jpeg_decoder_new() noexcept
    void jpeg_decoder_free(jpeg_decoder* decoder) noexcept
    int jpeg_decoder_check() noexcept
    int jpeg_decoder_choose(jpeg_decoder* decoder, jpeg_entropy_choice choice) noexcept
    int jpeg_decoder_chosen(const jpeg_decoder* decoder) noexcept
    int jpeg_decoder_open(jpeg_decoder* decoder, const uint8_t* data, size_t size,
                          const jpeg_limits* limits, jpeg_info* info) noexcept
    void jpeg_decoder_entries(jpeg_decoder* decoder, entry_store* store, int64_t record) noexcept
    void jpeg_decoder_into(jpeg_decoder* decoder, uint8_t* into, ptrdiff_t stride) noexcept
    int jpeg_decoder_start(jpeg_decoder* decoder, int channels, int denominator, int x, int y,
                           int width, int height) noexcept
    int jpeg_decoder_rows(jpeg_decoder* decoder, const uint8_t** row, ptrdiff_t* stride,
                          int* count) noexcept
    void jpeg_decoder_finish(jpeg_decoder* decoder) noexcept
    const char* jpeg_decoder_message(const jpeg_decoder* decoder) noexcept
    int jpeg_decoder_warnings(const jpeg_decoder* decoder) noexcept


DEFAULT_MAX_PIXELS = DEFAULT_LIMITS["max_pixels"]
DEFAULT_MAX_SCANS = DEFAULT_LIMITS["max_scans"]
DEFAULT_MAX_SCAN_PIXELS = DEFAULT_LIMITS["max_scan_pixels"]


JpegInfo = namedtuple(
    "JpegInfo", ["width", "height", "components", "orientation", "progressive", "supported"]
)
JpegInfo.__doc__ = """The facts in the header of a JPEG image.

Attributes
----------
width, height : int
    Size in pixels as stored, before the orientation is applied.
components : int
    Colour components: 1 grey, 3 colour, 4 CMYK.
orientation : int
    EXIF orientation, 1 to 8; 1 if the file does not say.
progressive : bool
    Whether the image is stored in passes over the whole picture.
supported : bool
    Whether `JpegRows` can decode it: not so for 12 bits, lossless and arithmetic coding.
"""


def available():
    """Return True if this module was built with libjpeg-turbo.

    >>> isinstance(available(), bool)
    True
    """
    return bool(jpeg_decoder_available())


def library():
    """Name the library that decodes and its version, as known when it was built.

    >>> isinstance(library(), str)
    True
    """
    return jpeg_decoder_library().decode("ascii")


def entropy_decoder():
    """Name the decoder of the entropy-coded data of JPEG images.

    Huffman coding, sequential in one scan or progressive, is decoded faster here than by the
    library, and to the same pixels; all other coding, and whatever is damaged, is left to the
    library.
    When this module is imported it tries that on built-in images.  The environment variable
    ``ITERATORS_JPEG=plain`` leaves everything to the library, for decoders made while it is set.

    >>> entropy_decoder() in ("own", "plain", "incompatible", "none")
    True
    """
    asked = os.environ.get("ITERATORS_JPEG", "")
    if asked not in ("", "plain"):
        raise ValueError(f"the environment variable ITERATORS_JPEG must be 'plain', not {asked!r}")
    if not jpeg_decoder_available():
        return "none"
    return asked or "own" if _trial_passed else "incompatible"


def _choose_kernels(kernels):
    """Let new decoders use "portable" instructions alone, "avx2" ones too, or all: to compare."""
    global _kernels
    _kernels = kernels


_kernels = ""
_trial_passed = bool(jpeg_decoder_check())
entropy_decoder()  # a wrong variable is told of at once


def header(data):
    """Read the header of a JPEG image without decoding it.

    >>> header(b"GIF89a")
    Traceback (most recent call last):
        ...
    recordio.errors.ImageDecodeError: not a JPEG image
    """
    view = memoryview(data)
    cdef const uint8_t[::1] content = view.cast("B") if view.nbytes else None
    cdef JpegRows rows = JpegRows(3, **dict.fromkeys(DEFAULT_LIMITS, INT64_MAX))
    cdef jpeg_info info
    cdef char[MESSAGE_SIZE] text
    cdef const uint8_t* first = NULL
    if content is not None:
        first = &content[0]
    rows.codec.status = jpeg_decoder_open(<jpeg_decoder*>rows.codec.decoder, first, view.nbytes,
                                          &rows.limits, &info)
    if rows.codec.status != JPEG_OK:
        explain_jpeg(&rows.codec, text)
        raise ImageDecodeError(text.decode("utf-8", "replace"))
    return JpegInfo(
        info.width, info.height, info.components, info.orientation,
        bool(info.progressive), bool(info.supported),
    )


cdef class JpegRows(CodecRows):
    """A row source that decodes no more than it has to; channels may also be -3, for BGR.

    What `header` calls unsupported is left to the next source.
    """

    def __cinit__(self, int channels, *, bint upright=True, bint deep=False, **limits):
        cdef Codec* codec = &self.codec
        cdef jpeg_entropy_choice choice = JPEG_ENTROPY_OF_LIBRARY
        codec.open, codec.start, codec.rows = open_jpeg, start_jpeg, rows_of_jpeg
        codec.finish, codec.explain, codec.free = finish_jpeg, explain_jpeg, free_jpeg
        codec.no_memory, codec.bad_argument = JPEG_NO_MEMORY, JPEG_BAD_ARGUMENT
        codec.channels, codec.upright = channels, upright
        load_limits(&self.limits, limits)
        codec.settings = &self.limits
        self.made(jpeg_decoder_new())
        if entropy_decoder() == "own":
            choice = JPEG_ENTROPY_OF_OURS
            if _kernels:
                choice = JPEG_ENTROPY_AVX2 if _kernels == "avx2" else JPEG_ENTROPY_PORTABLE
        if jpeg_decoder_choose(<jpeg_decoder*>codec.decoder, choice) != JPEG_OK:
            raise MemoryError("no memory for a JPEG decoder")

    @property
    def outcome(self):
        """The last image: 0 the library's, 1 ours, 2 given back to it; number of warnings."""
        cdef const jpeg_decoder* decoder = <const jpeg_decoder*>self.codec.decoder
        return jpeg_decoder_chosen(decoder), jpeg_decoder_warnings(decoder)


cdef OpenStatus open_jpeg(Codec* codec, const uint8_t* data, size_t size,
                          ImageInfo* info) noexcept nogil:
    cdef jpeg_decoder* decoder = <jpeg_decoder*>codec.decoder
    cdef jpeg_info header
    info.pixel_size = abs(codec.channels)
    if codec.channels == 4:
        return SOURCE_OTHER
    codec.status = jpeg_decoder_open(decoder, data, size, <const jpeg_limits*>codec.settings,
                                     &header)
    if codec.status == JPEG_OK and header.supported:
        info.width, info.height, info.orientation = header.width, header.height, header.orientation
        info.scales = True
        if codec.source.kept != NULL:
            jpeg_decoder_entries(decoder, <entry_store*>codec.source.kept, codec.source.record)
        return SOURCE_OPEN
    jpeg_decoder_finish(decoder)
    if codec.status in (JPEG_OK, JPEG_NOT_JPEG, JPEG_UNAVAILABLE):
        return SOURCE_OTHER
    return SOURCE_FAILED


cdef int start_jpeg(const Codec* codec, int denominator, const Rectangle* area) noexcept nogil:
    cdef jpeg_decoder* decoder = <jpeg_decoder*>codec.decoder
    jpeg_decoder_into(decoder, codec.source.into, codec.source.into_stride)
    return jpeg_decoder_start(decoder, codec.channels, denominator, area.x, area.y,
                              area.width, area.height)


cdef int rows_of_jpeg(void* decoder, const uint8_t** row, ptrdiff_t* stride,
                      int* count) noexcept nogil:
    return jpeg_decoder_rows(<jpeg_decoder*>decoder, row, stride, count)


cdef bint finish_jpeg(void* decoder) noexcept nogil:
    jpeg_decoder_finish(<jpeg_decoder*>decoder)
    return jpeg_decoder_warnings(<jpeg_decoder*>decoder) == 0


_MISSING = MISSING.encode()
cdef const char* missing = _MISSING


cdef void explain_jpeg(const Codec* codec, char* text) noexcept nogil:
    """Write what is wrong and what to do."""
    cdef const char* form = b"%s"
    if codec.status == JPEG_NOT_JPEG:
        form = b"not a JPEG image"
    elif codec.status == JPEG_CORRUPT:
        form = b"the JPEG image is damaged (%s); pack it again from its source"
    elif codec.status == JPEG_TRUNCATED:
        form = b"the JPEG image is truncated (%s); pack it again from its source"
    elif codec.status == JPEG_TOO_LARGE:
        form = b"the JPEG image is too large: %s"
    elif codec.status == JPEG_TOO_MANY_SCANS:
        form = b"the JPEG image is suspicious: %s"
    elif codec.status == JPEG_UNAVAILABLE:
        form = missing
    snprintf(text, MESSAGE_SIZE, form, jpeg_decoder_message(<const jpeg_decoder*>codec.decoder))


cdef void free_jpeg(void* decoder) noexcept nogil:
    jpeg_decoder_free(<jpeg_decoder*>decoder)
