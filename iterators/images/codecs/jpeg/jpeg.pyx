"""Decode JPEG images with libjpeg-turbo: the header, a region, at full size or a fraction of it.

It gives the pixels as stored: it never turns an image upright (`orient` does, for others to use),
never decodes anything but JPEG, and never hands out pixels for which the data is missing.
"""

import os
from collections import namedtuple
from threading import local

import numpy as np

from libc.limits cimport INT_MAX
from libc.stdint cimport INT64_MAX, int64_t, uint8_t
from libc.string cimport memcpy

from iterators.images.kernels cimport orient as orientation_of

from recordio.errors import ImageDecodeError

__all__ = [
    "DEFAULT_MAX_PIXELS",
    "DEFAULT_MAX_SCANS",
    "DEFAULT_MAX_SCAN_PIXELS",
    "JpegInfo",
    "available",
    "check_limits",
    "decode",
    "entropy_decoder",
    "header",
    "library",
    "orient",
    "orient_region",
]


cdef extern from "iterators/images/codecs/jpeg/decoder.h" nogil:
    cdef enum jpeg_entropy_choice:
        JPEG_ENTROPY_OF_LIBRARY
        JPEG_ENTROPY_OF_OURS

    int jpeg_decoder_available() noexcept
    const char* jpeg_decoder_library() noexcept
    jpeg_decoder* jpeg_decoder_new() noexcept
    void jpeg_decoder_free(jpeg_decoder* decoder) noexcept
    int jpeg_decoder_check() noexcept
    int jpeg_decoder_choose(jpeg_decoder* decoder, jpeg_entropy_choice choice) noexcept
    int jpeg_decoder_chosen(const jpeg_decoder* decoder) noexcept
    int jpeg_decoder_open(jpeg_decoder* decoder, const uint8_t* data, size_t size,
                          const jpeg_limits* limits, jpeg_info* info) noexcept
    int jpeg_decoder_start(jpeg_decoder* decoder, int channels, int denominator, int x, int y,
                           int width, int height) noexcept
    int jpeg_decoder_rows(jpeg_decoder* decoder, const uint8_t** row, ptrdiff_t* stride,
                          int* count) noexcept
    void jpeg_decoder_finish(jpeg_decoder* decoder) noexcept
    const char* jpeg_decoder_message(const jpeg_decoder* decoder) noexcept
    int jpeg_decoder_warnings(const jpeg_decoder* decoder) noexcept


cdef extern from "iterators/images/codecs/jpeg/outline.h" nogil:
    ctypedef struct jpeg_outline:
        int width
        int height

    void read_jpeg_outline(const uint8_t* data, size_t size, jpeg_outline* found) noexcept

cdef extern from "iterators/images/codecs/jpeg/work.h" nogil:
    cdef enum jpeg_work:
        JPEG_WORK_OK

    jpeg_work count_scans(const uint8_t* data, size_t size, const jpeg_limits* limits, int width,
                          int height) noexcept
    void explain_work(jpeg_work found, const jpeg_limits* limits, int width, int height,
                      char* message, size_t size) noexcept
    void explain_pixels(const jpeg_limits* limits, int width, int height, char* message,
                        size_t size) noexcept


cdef enum:
    MESSAGE_SIZE = 256

cdef bint own_entropy = False     # whether new decoders use our entropy decoder


cdef jpeg_entropy_choice own_choice() noexcept nogil:
    return JPEG_ENTROPY_OF_OURS if own_entropy else JPEG_ENTROPY_OF_LIBRARY


cdef int decoder_available() noexcept nogil:
    return jpeg_decoder_available()


cdef jpeg_decoder* decoder_new() noexcept nogil:
    cdef jpeg_decoder* decoder = jpeg_decoder_new()
    if decoder != NULL and jpeg_decoder_choose(decoder, own_choice()) != JPEG_OK:
        jpeg_decoder_free(decoder)
        return NULL
    return decoder


cdef void decoder_free(jpeg_decoder* decoder) noexcept nogil:
    jpeg_decoder_free(decoder)


cdef int decoder_open(jpeg_decoder* decoder, const uint8_t* data, size_t size,
                      const jpeg_limits* limits, jpeg_info* info) noexcept nogil:
    return jpeg_decoder_open(decoder, data, size, limits, info)


cdef int decoder_start(jpeg_decoder* decoder, int channels, int denominator, int x, int y,
                       int width, int height) noexcept nogil:
    return jpeg_decoder_start(decoder, channels, denominator, x, y, width, height)


cdef int decoder_rows(jpeg_decoder* decoder, const uint8_t** row, ptrdiff_t* stride,
                      int* count) noexcept nogil:
    return jpeg_decoder_rows(decoder, row, stride, count)


cdef void decoder_finish(jpeg_decoder* decoder) noexcept nogil:
    jpeg_decoder_finish(decoder)


cdef const char* decoder_message(const jpeg_decoder* decoder) noexcept nogil:
    return jpeg_decoder_message(decoder)


cdef int decoder_warnings(const jpeg_decoder* decoder) noexcept nogil:
    return jpeg_decoder_warnings(decoder)


DEFAULT_MAX_PIXELS = JPEG_DEFAULT_MAX_PIXELS
DEFAULT_MAX_SCANS = JPEG_DEFAULT_MAX_SCANS
DEFAULT_MAX_SCAN_PIXELS = JPEG_DEFAULT_MAX_SCAN_PIXELS

JpegInfo = namedtuple(
    "JpegInfo", ["width", "height", "components", "orientation", "progressive", "supported"]
)
JpegInfo.__doc__ = """What the header of a JPEG image says.

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
        self.decoder = decoder_new()
        if self.decoder is NULL:
            raise MemoryError("no memory for a JPEG decoder")

    def __dealloc__(self):
        jpeg_decoder_free(self.decoder)


_thread = local()


cdef _Decoder _borrow_decoder():
    """The decoder of this thread, which a finalizer that decodes meanwhile will not find."""
    cdef _Decoder decoder = _thread.__dict__.pop("decoder", None)
    if decoder is None:
        return _Decoder()
    if jpeg_decoder_choose(decoder.decoder, own_choice()) != JPEG_OK:
        raise MemoryError("no memory for a JPEG decoder")
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
    text = jpeg_decoder_message(decoder.decoder).decode("utf-8", "replace")
    if status == JPEG_NO_MEMORY:
        raise MemoryError(text)
    if status == JPEG_BAD_ARGUMENT:
        raise ValueError(text)
    raise ImageDecodeError({
        JPEG_NOT_JPEG: "not a JPEG image",
        JPEG_CORRUPT: f"the JPEG image is damaged ({text}); pack it again from its source",
        JPEG_TRUNCATED: f"the JPEG image is truncated ({text}); pack it again from its source",
        JPEG_TOO_LARGE: f"the JPEG image is too large: {text}",
        JPEG_TOO_MANY_SCANS: f"the JPEG image is suspicious: {text}",
        JPEG_UNSUPPORTED: f"{text} (CMYK, 12 bits, lossless or arithmetic coding)",
        JPEG_UNAVAILABLE: "iterators was built without libjpeg-turbo; install its headers and "
                          "build again, or decode with iterators.images.codecs.general",
    }[status])


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
    """Whether this module was built with libjpeg-turbo.

    Returns
    -------
    bool

    Examples
    --------
    >>> isinstance(available(), bool)
    True
    """
    return bool(jpeg_decoder_available())


def library():
    """Name and version of the library that decodes, as known when it was built.

    Returns
    -------
    str
        For example ``"libjpeg-turbo 2.1.5"``; ``"none"`` if there is none.

    Examples
    --------
    >>> isinstance(library(), str)
    True
    """
    return jpeg_decoder_library().decode("ascii")


def entropy_decoder():
    """Who decodes the entropy-coded data of JPEG images.

    Sequential Huffman coding, which most files have, is decoded faster here than by the library,
    and to the same pixels; all other coding, and whatever is damaged, is left to the library.
    When this module is imported it tries that on built-in images.  The environment variable
    ``ITERATORS_JPEG=plain``, read at the same time, leaves everything to the library.

    Returns
    -------
    str
        ``"own"``; or the reason why the library does everything: ``"plain"`` (asked for),
        ``"incompatible"`` (the trial failed), ``"none"`` (built without libjpeg-turbo).

    Examples
    --------
    >>> entropy_decoder() in ("own", "plain", "incompatible", "none")
    True
    """
    return _entropy_decoder


def _choose_entropy_decoder(bint own):
    """Let decoders made from now on, and `decode`, use ours or the library's: to compare them."""
    global own_entropy
    if own and _entropy_decoder not in ("own", "plain"):
        raise ValueError(f"the entropy decoder cannot be used here: {_entropy_decoder}")
    own_entropy = own


def _last_outcome():
    """Of this thread's last image: 0 the library's, 1 ours, 2 given back; number of warnings."""
    return _thread.__dict__["outcome"]


cdef str _try_entropy_decoder():
    """Decide at import which entropy decoder is used."""
    asked = os.environ.get("ITERATORS_JPEG", "")
    if asked not in ("", "plain"):
        raise ValueError(f"the environment variable ITERATORS_JPEG must be 'plain', not {asked!r}")
    if not jpeg_decoder_available():
        return "none"
    if not jpeg_decoder_check():
        return "incompatible"
    return asked or "own"


_entropy_decoder = _try_entropy_decoder()
own_entropy = _entropy_decoder == "own"


def header(data):
    """Read the header of a JPEG image without decoding it.

    Parameters
    ----------
    data : bytes-like
        The file.

    Returns
    -------
    JpegInfo

    Raises
    ------
    ImageDecodeError
        If it is not a JPEG file, or its header is damaged or incomplete.

    Examples
    --------
    >>> header(b"GIF89a")
    Traceback (most recent call last):
        ...
    recordio.errors.ImageDecodeError: not a JPEG image
    """
    cdef const uint8_t[::1] view = _bytes_of(data)
    cdef _Decoder decoder = _borrow_decoder()
    cdef jpeg_info info
    cdef jpeg_limits none = jpeg_limits(
        max_pixels=INT64_MAX, max_scans=INT_MAX, max_scan_pixels=INT64_MAX
    )
    try:
        _open(decoder, view, &none, &info)
    finally:
        _return_decoder(decoder)
    return JpegInfo(
        info.width, info.height, info.components, info.orientation,
        bool(info.progressive), bool(info.supported),
    )


def check_limits(data, *, int64_t max_pixels=DEFAULT_MAX_PIXELS,
                 int max_scans=DEFAULT_MAX_SCANS,
                 int64_t max_scan_pixels=DEFAULT_MAX_SCAN_PIXELS):
    """Refuse a JPEG image that takes too long to decode, before another decoder gets it.

    Nothing is decoded, and nothing else is said of the image; other formats are let through.

    Parameters
    ----------
    data : bytes-like
        The file.
    max_pixels, max_scans, max_scan_pixels : int
        As for `decode`, which looks by itself.

    Raises
    ------
    ImageDecodeError
        If the image exceeds a limit; the error names it.

    Examples
    --------
    >>> check_limits(b"GIF89a")
    """
    cdef const uint8_t[::1] view = _bytes_of(data)
    cdef jpeg_limits limits = jpeg_limits(
        max_pixels=max_pixels, max_scans=max_scans, max_scan_pixels=max_scan_pixels
    )
    cdef jpeg_outline found
    cdef jpeg_work work
    cdef char message[MESSAGE_SIZE]
    cdef size_t size = 0 if view is None else view.shape[0]
    if size < 3 or not (view[0] == 0xFF and view[1] == 0xD8 and view[2] == 0xFF):
        return
    read_jpeg_outline(&view[0], size, &found)
    if <int64_t>found.width * found.height > max_pixels:
        explain_pixels(&limits, found.width, found.height, message, MESSAGE_SIZE)
        raise ImageDecodeError("the JPEG image is too large: " + message.decode("ascii"))
    work = count_scans(&view[0], size, &limits, found.width, found.height)
    if work != JPEG_WORK_OK:
        explain_work(work, &limits, found.width, found.height, message, MESSAGE_SIZE)
        raise ImageDecodeError("the JPEG image is suspicious: " + message.decode("ascii"))


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


def decode(data, int channels=3, region=None, int denominator=1, *,
           int64_t max_pixels=DEFAULT_MAX_PIXELS, int max_scans=DEFAULT_MAX_SCANS,
           int64_t max_scan_pixels=DEFAULT_MAX_SCAN_PIXELS):
    """Decode a JPEG image, or a region of it, at full size or a fraction of it.

    Parameters
    ----------
    data : bytes-like
        The file.
    channels : {3, 1}
        3 for RGB, 1 for grey (the stored luminance).
    region : tuple of int, optional
        ``(x, y, width, height)`` in pixels of the scaled image; the whole image by default.  The
        pixels are those of ``decode(data)[y : y + height, x : x + width]``, at less cost.
    denominator : {1, 2, 4, 8}
        The scaled image measures ``ceil(width / denominator)`` by ``ceil(height / denominator)``.
    max_pixels : int
        Images with more stored pixels are refused.
    max_scans : int
        Images with more scans are refused; progressive ones have some ten.
    max_scan_pixels : int
        Images with several scans are refused if these pass over more pixels in all; each component
        of a scan counts.

    Returns
    -------
    numpy.ndarray
        uint8 of shape (height, width, channels), as stored: the orientation is not applied.

    Raises
    ------
    ImageDecodeError
        If it is not a JPEG file, is damaged, ends before the last row of the region, exceeds a
        limit or is of a kind that `header` calls unsupported.
    ValueError
        If the region lies outside the image or another argument is not allowed.

    Examples
    --------
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
    cdef jpeg_limits limits = jpeg_limits(
        max_pixels=max_pixels, max_scans=max_scans, max_scan_pixels=max_scan_pixels
    )
    cdef int status, x, y, width, height
    if channels not in (1, 3):
        raise ValueError(f"channels must be 1 or 3, not {channels}")
    if denominator not in (1, 2, 4, 8):
        raise ValueError(f"denominator must be 1, 2, 4 or 8, not {denominator}")
    decoder = _borrow_decoder()
    try:
        _open(decoder, view, &limits, &info)
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


def orient(image, int orientation):
    """Turn an image upright.

    Parameters
    ----------
    image : numpy.ndarray
        uint8 of shape (height, width, channels).
    orientation : int
        EXIF orientation 1 to 8.

    Returns
    -------
    numpy.ndarray
        A new array; (width, height, channels) for orientations 5 to 8.

    Examples
    --------
    >>> import numpy
    >>> image = numpy.arange(6, dtype="uint8").reshape(2, 3, 1)
    >>> orient(image, 6)[:, :, 0].tolist()
    [[3, 0], [4, 1], [5, 2]]
    """
    cdef const uint8_t[:, :, ::1] source = np.ascontiguousarray(image)
    cdef uint8_t[:, :, ::1] target
    cdef int height = source.shape[0], width = source.shape[1], channels = source.shape[2]
    if not 1 <= orientation <= 8:
        raise ValueError(f"the orientation must be 1 to 8, not {orientation}")
    exchange = orientation_of.orient_exchanges_sides(orientation)
    result = np.empty(
        (width, height, channels) if exchange else (height, width, channels), np.uint8
    )
    if result.size:
        target = result
        with nogil:
            orientation_of.orient_image(
                &source[0, 0, 0], <ptrdiff_t>width * channels, width, height, channels,
                orientation, &target[0, 0, 0], <ptrdiff_t>target.shape[1] * channels,
            )
    return result


def orient_region(int width, int height, int orientation, region):
    """Find the region of the stored image that a region of the upright image is made of.

    Parameters
    ----------
    width, height : int
        Size of the stored image in pixels.
    orientation : int
        EXIF orientation 1 to 8.
    region : tuple of int
        ``(x, y, width, height)`` in the upright image.

    Returns
    -------
    tuple of int
        ``(x, y, width, height)`` in the stored image.

    Examples
    --------
    >>> orient_region(100, 60, 6, (0, 0, 10, 20))
    (0, 50, 20, 10)
    """
    cdef int x, y, wide, high
    x, y, wide, high = region
    orientation_of.orient_rectangle(width, height, orientation, &x, &y, &wide, &high)
    return x, y, wide, high
