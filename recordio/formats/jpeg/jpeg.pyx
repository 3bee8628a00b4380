"""Decode JPEG images with libjpeg-turbo: the header, a region, at full size or a fraction of it.

It gives the pixels as stored: it never turns an image upright, never decodes anything but JPEG, and
never hands out pixels for which the data is missing.
"""

import os
from collections import namedtuple
from threading import local

import numpy as np

from libc.stdint cimport INT64_MAX, int64_t, uint8_t
from libc.stdio cimport snprintf
from libc.string cimport memcpy

from recordio.counter cimport seconds_add
from recordio.formats.row_source cimport (
    SOURCE_FAILED, SOURCE_OPEN, SOURCE_OTHER, ImageInfo, Rectangle, RowDecoder, RowSource, Rows,
)
from recordio.kernels.orient cimport orient_exchanges_sides
from recordio.formats.status cimport (
    MESSAGE_SIZE, RENDER_IMAGE, RENDER_MEMORY, Outcome, outcome_fail,
)
from recordio.sync cimport sync_now
from recordio.formats.jpeg.entry_store cimport EntryStore, entry_store
from recordio.formats.jpeg_markers cimport jpeg_limits, load_limits

from recordio.errors import ImageDecodeError
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
    "decode",
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
    Whether `decode` can decode it: not so for CMYK, 12 bits, lossless and arithmetic coding.
"""


cdef class _Decoder:
    """One decoder; it must not be used by two threads at a time."""

    cdef jpeg_decoder* decoder

    def __cinit__(self):
        self.decoder = NULL
        self.decoder = jpeg_decoder_new()
        if self.decoder == NULL:
            raise MemoryError("no memory for a JPEG decoder")
        self.choose()

    def __dealloc__(self):
        jpeg_decoder_free(self.decoder)

    cdef int choose(self) except -1:
        """Take the entropy decoder that is asked for."""
        cdef jpeg_entropy_choice choice = JPEG_ENTROPY_OF_LIBRARY
        if entropy_decoder() == "own":
            choice = JPEG_ENTROPY_PORTABLE if _portable else JPEG_ENTROPY_OF_OURS
        if jpeg_decoder_choose(self.decoder, choice) != JPEG_OK:
            raise MemoryError("no memory for a JPEG decoder")
        return 0


_thread = local()


cdef _Decoder _borrow_decoder():
    """The decoder of this thread, which a finalizer that decodes meanwhile will not find."""
    cdef _Decoder decoder = _thread.__dict__.pop("decoder", None)
    if decoder is None:
        return _Decoder()
    decoder.choose()
    return decoder


cdef void _return_decoder(_Decoder decoder):
    """Keep the decoder for the next image of this thread."""
    _thread.__dict__["outcome"] = (
        jpeg_decoder_chosen(decoder.decoder), jpeg_decoder_warnings(decoder.decoder)
    )
    jpeg_decoder_finish(decoder.decoder)
    _thread.__dict__["decoder"] = decoder


cdef const uint8_t[::1] _bytes_of(data):
    """The bytes of any contiguous buffer; None if there are none."""
    view = memoryview(data)
    return view.cast("B") if view.nbytes else None


cdef int _check(_Decoder decoder, int status) except -1:
    """Raise the exception for a status other than JPEG_OK."""
    if status == JPEG_OK:
        return 0
    cdef char[MESSAGE_SIZE] text
    explain(status, jpeg_decoder_message(decoder.decoder), text)
    said = text.decode("utf-8", "replace")
    if status == JPEG_NO_MEMORY:
        raise MemoryError(said)
    raise (ValueError if status == JPEG_BAD_ARGUMENT else ImageDecodeError)(said)


cdef void explain(int status, const char* message, char* text) noexcept nogil:
    """Write what is wrong and what to do, in MESSAGE_SIZE bytes."""
    cdef const char* form = b"%s"
    if status == JPEG_NOT_JPEG:
        form = b"not a JPEG image"
    elif status == JPEG_CORRUPT:
        form = b"the JPEG image is damaged (%s); pack it again from its source"
    elif status == JPEG_TRUNCATED:
        form = b"the JPEG image is truncated (%s); pack it again from its source"
    elif status == JPEG_TOO_LARGE:
        form = b"the JPEG image is too large: %s"
    elif status == JPEG_TOO_MANY_SCANS:
        form = b"the JPEG image is suspicious: %s"
    elif status == JPEG_UNSUPPORTED:
        form = b"%s (CMYK, 12 bits, lossless or arithmetic coding)"
    elif status == JPEG_UNAVAILABLE:
        form = (b"recordio was built without libjpeg-turbo; install its headers and build again, "
                b"or decode with recordio.decode_image")
    snprintf(text, MESSAGE_SIZE, form, message)


cdef int _open(_Decoder decoder, const uint8_t[::1] data, const jpeg_limits* limits,
               jpeg_info* info) except -1:
    """Open the image in `data`, or raise."""
    cdef int status
    if data is None:
        status = jpeg_decoder_open(decoder.decoder, NULL, 0, limits, info)
    else:
        status = jpeg_decoder_open(decoder.decoder, &data[0], data.shape[0], limits, info)
    return _check(decoder, status)


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


def _last_outcome():
    """Of this thread's last image: 0 the library's, 1 ours, 2 given back; number of warnings."""
    return _thread.__dict__["outcome"]


def _choose_portable(portable):
    """Let decoders use only instructions that every processor has, to compare them."""
    global _portable
    _portable = bool(portable)


_portable = False
_trial_passed = bool(jpeg_decoder_check())
entropy_decoder()  # a wrong variable is told of at once


def header(data):
    """Read the header of a JPEG image without decoding it.

    >>> header(b"GIF89a")
    Traceback (most recent call last):
        ...
    recordio.errors.ImageDecodeError: not a JPEG image
    """
    cdef const uint8_t[::1] view = _bytes_of(data)
    cdef _Decoder decoder = _borrow_decoder()
    cdef jpeg_info info
    cdef jpeg_limits none
    load_limits(&none, dict.fromkeys(DEFAULT_LIMITS, INT64_MAX))
    try:
        _open(decoder, view, &none, &info)
    finally:
        _return_decoder(decoder)
    return JpegInfo(
        info.width, info.height, info.components, info.orientation,
        bool(info.progressive), bool(info.supported),
    )


cdef int _copy_rows(jpeg_decoder* decoder, uint8_t* to, size_t row_size) noexcept nogil:
    """Copy all rows of the started image to `to`."""
    cdef const uint8_t* row
    cdef ptrdiff_t stride
    cdef int status, count, i
    while True:
        status = jpeg_decoder_rows(decoder, &row, &stride, &count)
        if status != JPEG_OK or count == 0:
            return status
        for i in range(count):
            memcpy(to, row + i * stride, row_size)
            to += row_size


def decode(data, int channels=3, region=None, int denominator=1, *, EntryStore entries=None,
           int64_t record=0, **limits):
    """Decode a JPEG image, or a region of it, at full size or a fraction of it.

    A region is ``(x, y, width, height)`` in pixels of the scaled image, which measures
    ``ceil(width / denominator)`` by ``ceil(height / denominator)``.  The pixels, uint8 of shape
    (height, width, 3 or 1), are not turned.  `entries` has what is known of this image as its
    `record`, and keeps what is found out.

    >>> import cv2, numpy
    >>> data = cv2.imencode(".jpg", numpy.full((40, 60, 3), 200, "uint8"))[1].tobytes()
    >>> if available():
    ...     print(decode(data, region=(10, 5, 20, 30)).shape, decode(data, denominator=8).shape)
    ... else:
    ...     print("(30, 20, 3) (5, 8, 3)")
    (30, 20, 3) (5, 8, 3)
    """
    cdef const uint8_t[::1] view = _bytes_of(data)
    cdef uint8_t[:, :, ::1] pixels
    cdef _Decoder decoder
    cdef jpeg_info info
    cdef jpeg_limits most
    cdef int status, x, y, width, height
    load_limits(&most, limits)
    if channels not in (1, 3):
        raise ValueError(f"channels must be 1 or 3, not {channels}")
    if denominator not in (1, 2, 4, 8):
        raise ValueError(f"denominator must be 1, 2, 4 or 8, not {denominator}")
    decoder = _borrow_decoder()
    try:
        _open(decoder, view, &most, &info)
        if entries is not None:
            jpeg_decoder_entries(decoder.decoder, entries.store, record)
        if region is None:
            x = y = 0
            width = (info.width + denominator - 1) // denominator
            height = (info.height + denominator - 1) // denominator
        else:
            x, y, width, height = region
        with nogil:
            status = jpeg_decoder_start(
                decoder.decoder, channels, denominator, x, y, width, height
            )
        _check(decoder, status)
        result = np.empty((height, width, channels), np.uint8)
        pixels = result
        with nogil:
            status = _copy_rows(decoder.decoder, &pixels[0, 0, 0], <size_t>width * channels)
        _check(decoder, status)
        return result
    finally:
        _return_decoder(decoder)


cdef struct State:
    jpeg_decoder* decoder
    jpeg_limits limits
    int channels
    bint upright


cdef class JpegRows(RowDecoder):
    """A row source that decodes no more than it has to; channels may also be -3, for BGR.

    What `header` calls unsupported is left to the next source.
    """

    cdef _Decoder decoder
    cdef State state

    def __cinit__(self, int channels, *, bint upright=True, **limits):
        self.decoder = _Decoder()
        load_limits(&self.state.limits, limits)
        self.state.channels, self.state.upright = channels, upright
        self.state.decoder = self.decoder.decoder
        self.source.state = &self.state
        self.source.open, self.source.start = open_jpeg, start_jpeg
        self.source.next, self.source.finish = next_jpeg, finish_jpeg


cdef int open_jpeg(RowSource* source, const uint8_t* data, size_t size, ImageInfo* info,
                   Outcome* outcome) noexcept nogil:
    cdef State* state = <State*>source.state
    cdef jpeg_info found
    cdef int status
    if state.channels == 4:
        return SOURCE_OTHER
    status = jpeg_decoder_open(state.decoder, data, size, &state.limits, &found)
    if status == JPEG_OK and found.supported:
        info.width, info.height = found.width, found.height
        if state.upright:
            info.orientation = found.orientation
        if orient_exchanges_sides(info.orientation):
            info.width, info.height = found.height, found.width
        info.scales = True
        if source.kept != NULL:
            jpeg_decoder_entries(state.decoder, <entry_store*>source.kept, source.record)
        return SOURCE_OPEN
    jpeg_decoder_finish(state.decoder)
    if status in (JPEG_OK, JPEG_NOT_JPEG, JPEG_UNAVAILABLE):
        return SOURCE_OTHER
    fail(state, status, outcome)
    return SOURCE_FAILED


cdef int start_jpeg(RowSource* source, int denominator, const Rectangle* wanted,
                    Outcome* outcome) noexcept nogil:
    cdef State* state = <State*>source.state
    cdef double begin = sync_now()
    cdef int status = jpeg_decoder_start(state.decoder, state.channels, denominator, wanted.x,
                                         wanted.y, wanted.width, wanted.height)
    seconds_add(&source.seconds, sync_now() - begin)
    return fail(state, status, outcome) if status != JPEG_OK else 0


cdef int next_jpeg(RowSource* source, Rows* rows, Outcome* outcome) noexcept nogil:
    cdef State* state = <State*>source.state
    cdef double begin = sync_now()
    cdef int status = jpeg_decoder_rows(state.decoder, &rows.first, &rows.stride, &rows.count)
    rows.cold = False
    seconds_add(&source.seconds, sync_now() - begin)
    return fail(state, status, outcome) if status != JPEG_OK else 0


cdef bint finish_jpeg(RowSource* source) noexcept nogil:
    cdef State* state = <State*>source.state
    jpeg_decoder_finish(state.decoder)
    return jpeg_decoder_warnings(state.decoder) == 0


cdef int fail(const State* state, int status, Outcome* outcome) noexcept nogil:
    """Note the decoder's error in `outcome`; a lack of memory is no fault of the image."""
    cdef char[MESSAGE_SIZE] text
    explain(status, jpeg_decoder_message(state.decoder), text)
    return outcome_fail(outcome, RENDER_MEMORY if status == JPEG_NO_MEMORY else RENDER_IMAGE,
                        text)
