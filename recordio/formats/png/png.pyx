"""Decode PNG images without Python: all or a region, to the pixels that OpenCV gives.

It takes files in which nothing is odd, which libpng would warn of or read in a way of its own, and
leaves all others to `recordio.formats.general`.  It never turns an image, and never hands
out pixels for which the data is missing.
"""

import os

import numpy as np

from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy

from recordio.counter cimport seconds_add
from recordio.formats.row_source cimport (
    SOURCE_FAILED, SOURCE_OPEN, SOURCE_OTHER, ImageInfo, Rectangle, RowDecoder, RowSource, Rows,
)
from recordio.formats.status cimport RENDER_IMAGE, RENDER_MEMORY, Outcome, outcome_fail
from recordio.sync cimport sync_now

from recordio.errors import ImageDecodeError
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

    int png_decoder_available() noexcept
    const char* png_decoder_library() noexcept
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

__all__ = ["PngRows", "PngValues", "available", "decode", "decoder", "library"]


cdef class _Decoder:
    """One decoder; it must not be used by two threads at a time."""

    cdef png_decoder* decoder

    def __cinit__(self):
        self.decoder = NULL
        self.decoder = png_decoder_new()
        if self.decoder == NULL:
            raise MemoryError("no memory for a PNG decoder")

    def __dealloc__(self):
        png_decoder_free(self.decoder)


def available():
    """Return True if this module was built with libdeflate; without it decodes nothing.

    >>> isinstance(available(), bool)
    True
    """
    return bool(png_decoder_available())


def decoder():
    """Name the decoder of PNG images in which nothing is odd.

    It is ``"own"``, or the reason why OpenCV decodes: ``"opencv"`` (asked for), ``"none"`` (built
    without libdeflate).

    >>> decoder() in ("own", "opencv", "none")
    True
    """
    asked = os.environ.get("ITERATORS_PNG", "")
    if asked not in ("", "opencv"):
        raise ValueError(f"the environment variable ITERATORS_PNG must be 'opencv', not {asked!r}")
    if not png_decoder_available():
        return "none"
    return asked or "own"


decoder()  # a wrong variable is told of at once


def library():
    """Name the library that inflates and its version, as known when it was built.

    >>> isinstance(library(), str)
    True
    """
    return png_decoder_library().decode("ascii")


def decode(data, int channels=3, region=None, *, bint deep=False, max_pixels=DEFAULT_MAX_PIXELS,
           vectors=True):
    """Decode a PNG image, or a region of it.

    It gives RGB, grey or RGBA pixels; `deep` gives 16 bits where they are stored, and asks for grey
    of an image without colours, RGB of others.  A region is ``(x, y, width, height)``.  None stands
    for what is left to the general decoder: no PNG, or one with several frames, an orientation, odd
    chunks or damaged data; four channels of an image without transparency; grey of colours for
    which the file has a profile; everything, if `decoder` is not ``"own"``.

    >>> import cv2
    >>> content = cv2.imencode(".png", np.full((4, 6, 3), (0, 0, 255), "uint8"))[1].tobytes()
    >>> if available():
    ...     print(decode(content, region=(1, 1, 1, 2)).tolist())
    ... else:
    ...     print("[[[255, 0, 0]], [[255, 0, 0]]]")
    [[[255, 0, 0]], [[255, 0, 0]]]
    """
    view = memoryview(data)
    cdef const uint8_t[::1] content = view.cast("B") if view.nbytes else None
    cdef uint8_t[::1] memory
    cdef _Decoder own = _Decoder()
    cdef png_info info
    cdef int64_t most = max_pixels
    cdef int status, x, y, width, height
    if channels not in (1, 3, 4):
        raise ValueError(f"channels must be 1, 3 or 4, not {channels}")
    if content is None or decoder() != "own":
        return None
    png_decoder_use_vectors(own.decoder, bool(vectors))
    with nogil:
        status = png_decoder_open(own.decoder, &content[0], content.shape[0], channels, deep, most,
                                  &info)
    if status == PNG_OTHER:
        return None
    _check(own, status)
    x, y, width, height = (0, 0, info.width, info.height) if region is None else region
    _check(own, png_decoder_start(own.decoder, x, y, width, height))
    result = np.empty((height, width, channels), np.uint16 if deep else np.uint8)
    memory = memoryview(result).cast("B")
    with nogil:
        status = _copy_rows(own.decoder, &memory[0],
                            <size_t>width * channels * (2 if deep else 1))
    _check(own, status)
    return result


cdef int _check(_Decoder decoder, int status) except -1:
    """Raise the exception for a status other than PNG_OK."""
    if status == PNG_OK:
        return 0
    if status == PNG_NO_MEMORY:
        raise MemoryError("no memory to decode a PNG image")
    if status == PNG_BAD_ARGUMENT:
        raise ValueError("the region lies outside the image")
    raise ImageDecodeError(png_decoder_message(decoder.decoder).decode("ascii"))


cdef int _copy_rows(png_decoder* decoder, uint8_t* to, size_t row_size) noexcept nogil:
    """Copy all rows of the started image to `to`."""
    cdef const uint8_t* row
    cdef ptrdiff_t stride
    cdef int status, count, i
    while True:
        status = png_decoder_rows(decoder, &row, &stride, &count)
        if status != PNG_OK or count == 0:
            return status
        for i in range(count):
            memcpy(to, row + i * stride, row_size)
            to += row_size


cdef struct State:
    bint own
    png_decoder* decoder
    int channels
    int deep
    int64_t max_pixels


cdef class PngRows(RowDecoder):
    """A row source that undoes filters no further than it has to; see `RowDecoder`.

    What `decode` returns None for is left to the next source.
    """

    cdef _Decoder decoder
    cdef State state

    def __cinit__(self, int channels=1, *, max_pixels=DEFAULT_MAX_PIXELS, **limits):
        self.decoder, self.state.own = _Decoder(), decoder() == "own"
        self.state.decoder = self.decoder.decoder
        self.state.channels, self.state.max_pixels = channels, max_pixels
        self.source.state = &self.state
        self.source.open, self.source.start = open_png, start_png
        self.source.next, self.source.finish = next_png, finish_png


cdef class PngValues(PngRows):
    """The same for values as they are stored, such as the numbers of classes in a mask.

    A value is a byte, or two in the order of the machine: ``info.pixel_size`` says so.  Images with
    several values for a pixel are left to the next source.
    """

    def __cinit__(self, *, max_pixels=DEFAULT_MAX_PIXELS, **limits):
        self.state.deep = PNG_VALUES


cdef int open_png(RowSource* source, const uint8_t* data, size_t size, ImageInfo* info,
                  Outcome* outcome) noexcept nogil:
    cdef State* state = <State*>source.state
    cdef double begin = sync_now()
    cdef png_info found
    cdef int status = PNG_OTHER
    if state.own:
        status = png_decoder_open(state.decoder, data, size, state.channels, state.deep,
                                  state.max_pixels, &found)
    if status == PNG_OTHER:
        return SOURCE_OTHER
    seconds_add(&source.seconds, sync_now() - begin)
    if status != PNG_OK:
        fail(state, status, outcome)
        return SOURCE_FAILED
    info.width, info.height, info.pixel_size = found.width, found.height, found.pixel
    return SOURCE_OPEN


cdef int start_png(RowSource* source, int denominator, const Rectangle* wanted,
                   Outcome* outcome) noexcept nogil:
    cdef State* state = <State*>source.state
    cdef int status = png_decoder_start(state.decoder, wanted.x, wanted.y, wanted.width,
                                        wanted.height)
    return fail(state, status, outcome) if status != PNG_OK else 0


cdef int next_png(RowSource* source, Rows* rows, Outcome* outcome) noexcept nogil:
    cdef State* state = <State*>source.state
    cdef double begin = sync_now()
    cdef int status = png_decoder_rows(state.decoder, &rows.first, &rows.stride, &rows.count)
    rows.cold = False
    seconds_add(&source.seconds, sync_now() - begin)
    return fail(state, status, outcome) if status != PNG_OK else 0


cdef bint finish_png(RowSource* source) noexcept nogil:
    png_decoder_finish((<State*>source.state).decoder)
    return True


cdef int fail(const State* state, int status, Outcome* outcome) noexcept nogil:
    """Note the decoder's error in `outcome`; a lack of memory is no fault of the image."""
    return outcome_fail(outcome, RENDER_MEMORY if status == PNG_NO_MEMORY else RENDER_IMAGE,
                        png_decoder_message(state.decoder))
