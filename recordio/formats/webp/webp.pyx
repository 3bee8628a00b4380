"""Decode still WebP images with libwebp, without Python: all or a region.

The pixels are those of libwebp's own decode of the whole image, which OpenCV and Pillow hand out
too.  It never turns an image and never decodes an animation, which `recordio.formats.general` does.
"""

import numpy as np

from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy

from recordio.counter cimport seconds_add
from recordio.formats.row_source cimport (
    SOURCE_FAILED, SOURCE_OPEN, SOURCE_OTHER, ImageInfo, Rectangle, RowDecoder, RowSource, Rows,
)
from recordio.formats.status cimport RENDER_IMAGE, RENDER_MEMORY, Outcome, outcome_fail
from recordio.kernels.orient cimport orient_exchanges_sides
from recordio.sync cimport sync_now

from recordio.errors import ImageDecodeError
from recordio.formats.jpeg_markers import DEFAULT_MAX_PIXELS
from recordio.kernels.orient import orient

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

__all__ = ["WebpRows", "available", "decode", "library"]


cdef class _Decoder:
    """One decoder; it must not be used by two threads at a time."""

    cdef webp_decoder* decoder

    def __cinit__(self):
        self.decoder = NULL
        self.decoder = webp_decoder_new()
        if self.decoder == NULL:
            raise MemoryError("no memory for a WebP decoder")

    def __dealloc__(self):
        webp_decoder_free(self.decoder)


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


def decode(data, int channels=3, region=None, *, bint upright=False, max_pixels=DEFAULT_MAX_PIXELS):
    """Decode a still WebP image, or a region of it, to RGB, grey or RGBA pixels.

    A region is ``(x, y, width, height)`` of the image as it is stored; `upright` turns what was
    decoded as the EXIF orientation says.  None stands for what is left to the general decoder: no
    WebP, an animation, four channels of an image without transparency; everything, if `available`
    is False.

    >>> import cv2
    >>> red = np.full((4, 6, 3), (0, 0, 255), "uint8")
    >>> content = cv2.imencode(".webp", red, [cv2.IMWRITE_WEBP_QUALITY, 101])[1].tobytes()
    >>> if available():
    ...     print(decode(content, region=(1, 1, 1, 2)).tolist())
    ... else:
    ...     print("[[[255, 0, 0]], [[255, 0, 0]]]")
    [[[255, 0, 0]], [[255, 0, 0]]]
    """
    view = memoryview(data)
    cdef const uint8_t[::1] content = view.cast("B") if view.nbytes else None
    cdef uint8_t[:, :, ::1] pixels
    cdef _Decoder own = _Decoder()
    cdef webp_info info
    cdef int64_t most = max_pixels
    cdef int status, x, y, width, height
    if channels not in (1, 3, 4):
        raise ValueError(f"channels must be 1, 3 or 4, not {channels}")
    if content is None:
        return None
    status = webp_decoder_open(own.decoder, &content[0], content.shape[0], channels, most, &info)
    if status == WEBP_OTHER:
        return None
    _check(own, status)
    x, y, width, height = (0, 0, info.width, info.height) if region is None else region
    with nogil:
        status = webp_decoder_start(own.decoder, x, y, width, height)
    _check(own, status)
    result = np.empty((height, width, channels), np.uint8)
    pixels = result
    with nogil:
        status = _copy_rows(own.decoder, &pixels[0, 0, 0], <size_t>width * channels)
    _check(own, status)
    return orient(result, info.orientation) if upright and info.orientation != 1 else result


cdef int _check(_Decoder decoder, int status) except -1:
    """Raise the exception for a status other than WEBP_OK."""
    if status == WEBP_OK:
        return 0
    text = webp_decoder_message(decoder.decoder).decode("ascii")
    if status == WEBP_NO_MEMORY:
        raise MemoryError("no memory to decode a WebP image")
    if status == WEBP_BAD_ARGUMENT:
        raise ValueError(text)
    raise ImageDecodeError(text)


cdef int _copy_rows(webp_decoder* decoder, uint8_t* to, size_t row_size) noexcept nogil:
    """Copy all rows of the started image to `to`."""
    cdef const uint8_t* row
    cdef ptrdiff_t stride
    cdef int status, count, i
    while True:
        status = webp_decoder_rows(decoder, &row, &stride, &count)
        if status != WEBP_OK or count == 0:
            return status
        for i in range(count):
            memcpy(to, row + i * stride, row_size)
            to += row_size


cdef struct State:
    webp_decoder* decoder
    int channels
    bint upright
    int64_t max_pixels


cdef class WebpRows(RowDecoder):
    """A row source that decodes no further than to the end of the rectangle; see `RowDecoder`.

    What `decode` returns None for is left to the next source.
    """

    cdef _Decoder decoder
    cdef State state

    def __cinit__(self, int channels, *, bint upright=True, max_pixels=DEFAULT_MAX_PIXELS,
                  **limits):
        self.decoder = _Decoder()
        self.state.decoder = self.decoder.decoder
        # Four channels are as they are stored, whoever decodes.
        self.state.channels, self.state.upright = channels, upright and channels != 4
        self.state.max_pixels = max_pixels
        self.source.state = &self.state
        self.source.open, self.source.start = open_webp, start_webp
        self.source.next, self.source.finish = next_webp, finish_webp


cdef int open_webp(RowSource* source, const uint8_t* data, size_t size, ImageInfo* info,
                   Outcome* outcome) noexcept nogil:
    cdef State* state = <State*>source.state
    cdef webp_info found
    cdef int status = webp_decoder_open(state.decoder, data, size, state.channels,
                                        state.max_pixels, &found)
    if status == WEBP_OTHER:
        return SOURCE_OTHER
    if status != WEBP_OK:
        fail(state, status, outcome)
        return SOURCE_FAILED
    info.width, info.height = found.width, found.height
    if state.upright:
        info.orientation = found.orientation
    if orient_exchanges_sides(info.orientation):
        info.width, info.height = found.height, found.width
    return SOURCE_OPEN


cdef int start_webp(RowSource* source, int denominator, const Rectangle* wanted,
                    Outcome* outcome) noexcept nogil:
    cdef State* state = <State*>source.state
    cdef double begin = sync_now()
    cdef int status = webp_decoder_start(state.decoder, wanted.x, wanted.y, wanted.width,
                                         wanted.height)
    seconds_add(&source.seconds, sync_now() - begin)
    return fail(state, status, outcome) if status != WEBP_OK else 0


cdef int next_webp(RowSource* source, Rows* rows, Outcome* outcome) noexcept nogil:
    cdef State* state = <State*>source.state
    cdef int status = webp_decoder_rows(state.decoder, &rows.first, &rows.stride, &rows.count)
    rows.cold = True
    return fail(state, status, outcome) if status != WEBP_OK else 0


cdef bint finish_webp(RowSource* source) noexcept nogil:
    webp_decoder_finish((<State*>source.state).decoder)
    return True


cdef int fail(const State* state, int status, Outcome* outcome) noexcept nogil:
    """Note the decoder's error in `outcome`; a lack of memory is no fault of the image."""
    return outcome_fail(outcome, RENDER_MEMORY if status == WEBP_NO_MEMORY else RENDER_IMAGE,
                        webp_decoder_message(state.decoder))
