"""Decode a JPEG image and resize it in one pass: rows go from the decoder into the resampler.

The full-size image never exists, which saves its memory and its way through the caches.  This gives
OpenCV's pixels or none at all: what OpenCV would treat in another way is left to OpenCV.
"""

from threading import local

import numpy as np

from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int64_t, uint8_t

from iterators.images.codecs.jpeg cimport jpeg
from iterators.images.kernels cimport resample

__all__ = ["decode_resized"]


cdef class _Engine:
    """A decoder and a resampler; it must not be used by two threads at a time."""

    cdef jpeg.jpeg_decoder* decoder
    cdef resample.resampler* resampler

    def __cinit__(self):
        self.decoder = NULL
        self.resampler = NULL
        self.decoder = jpeg.decoder_new()
        self.resampler = resample.resampler_new()
        if self.decoder is NULL or self.resampler is NULL:
            raise MemoryError("no memory for a JPEG decoder")

    def __dealloc__(self):
        jpeg.decoder_free(self.decoder)
        resample.resampler_free(self.resampler)


_thread = local()


cdef bint _has_end_marker(const uint8_t* data, size_t size) noexcept nogil:
    """Whether the marker that ends an image is somewhere in the data; as a rule at its end."""
    while size >= 2:
        if data[size - 1] == 0xD9 and data[size - 2] == 0xFF:
            return True
        size -= 1
    return False


cdef int _open(_Engine engine, const uint8_t* data, size_t size,
               jpeg.jpeg_info* info) noexcept nogil:
    """Read the header; 1 if the image can be decoded here as OpenCV would do it."""
    cdef jpeg.jpeg_limits limits
    limits.max_pixels = jpeg.JPEG_DEFAULT_MAX_PIXELS
    limits.max_scans = jpeg.JPEG_DEFAULT_MAX_SCANS
    limits.max_scan_pixels = jpeg.JPEG_DEFAULT_MAX_SCAN_PIXELS
    if jpeg.decoder_open(engine.decoder, data, size, &limits, info) != jpeg.JPEG_OK:
        return 0
    return info.supported and info.orientation == 1 and _has_end_marker(data, size)


cdef void _set_axis(resample.resample_axis* axis, int source, int target, int origin,
                    int stored) noexcept nogil:
    """The whole of the target from one span of the stored image."""
    axis.source = source
    axis.target = target
    axis.begin = 0
    axis.count = target
    axis.origin = origin
    axis.denominator = 1
    axis.stored = stored


cdef int _run(_Engine engine, int method, int channels, const resample.resample_axis* columns,
              const resample.resample_axis* lines, uint8_t* out) noexcept nogil:
    """Decode and resize the opened image; 1 if it is complete and was decoded without a warning."""
    cdef int samples = 1 if channels == jpeg.JPEG_GREY else 3
    cdef int x = 0, y = 0, width = 0, height = 0, count = 0, done = 0, i
    cdef const uint8_t* row = NULL
    cdef ptrdiff_t stride = 0
    if resample.resampler_begin(engine.resampler, method, columns, lines, samples, out,
                                <ptrdiff_t>columns.count * samples) != resample.RESAMPLE_OK:
        return 0
    resample.resampler_source(engine.resampler, &x, &y, &width, &height)
    height = lines.stored - y  # to the last row: damage below the crop is damage as well
    if jpeg.decoder_start(engine.decoder, channels, 1, x, y, width, height) != jpeg.JPEG_OK:
        return 0
    while True:
        if jpeg.decoder_rows(engine.decoder, &row, &stride, &count) != jpeg.JPEG_OK:
            return 0
        if count == 0:
            break
        for i in range(count):
            done = resample.resampler_push(engine.resampler, row + i * stride)
    return done == lines.count and jpeg.decoder_warnings(engine.decoder) == 0


def decode_resized(data, int short_side, int method=1, int channels=3, *, bint square=False,
                   int largest_side=65500):
    """Decode a JPEG image with its short side scaled to a length.

    Parameters
    ----------
    data : bytes-like
        The file.
    short_side : int, pixels
        New length of the short side, up or down; the long side follows, rounded down.
    method : {1, 3}
        1 bilinear, 3 area: those in which `iterators.images.kernels.resample` and OpenCV agree to
        the bit.
    channels : {3, 1}
        3 for BGR, 1 for grey (the stored luminance).
    square : bool
        Take the square in the centre instead of the whole image.
    largest_side : int, pixels
        A result with a longer side is not made.

    Returns
    -------
    numpy.ndarray or None
        uint8 of shape (height, width, 3) or (height, width), the pixels of OpenCV's ``imdecode``
        and ``resize``.  None where OpenCV has to decide: no JPEG, damaged or truncated (in the crop
        or outside), to be turned upright, CMYK, more pixels or scans than
        `iterators.images.codecs.jpeg.jpeg.decode` accepts, a result that would be too large, or no
        libjpeg-turbo.

    Raises
    ------
    ValueError
        An argument is not allowed.

    Examples
    --------
    >>> import cv2
    >>> from iterators.images.codecs.jpeg import jpeg
    >>> data = cv2.imencode(".jpg", np.full((40, 60, 3), 200, "uint8"))[1].tobytes()
    >>> image = decode_resized(data, 20)
    >>> image.shape if jpeg.available() else (20, 30, 3)
    (20, 30, 3)
    >>> decode_resized(b"no JPEG", 20) is None
    True
    """
    cdef const uint8_t[::1] view
    cdef uint8_t[::1] pixels
    cdef resample.resample_axis columns, lines
    cdef jpeg.jpeg_info info
    cdef int64_t width, height, new_width, new_height
    cdef int order, good
    cdef _Engine engine
    if short_side < 1:
        raise ValueError(f"short_side must be a number of pixels, not {short_side}")
    if method not in (1, 3):
        raise ValueError(f"method must be 1 or 3, not {method}")
    if channels not in (1, 3):
        raise ValueError(f"channels must be 1 or 3, not {channels}")
    if not memoryview(data).nbytes:
        return None
    view = memoryview(data).cast("B")
    order = jpeg.JPEG_BGR if channels == 3 else jpeg.JPEG_GREY
    # Taken out while it is in use: a finalizer in this thread may come here as well.
    engine = _thread.__dict__.pop("engine", None) or _Engine()
    try:
        with nogil:
            good = _open(engine, &view[0], view.shape[0], &info)
        if not good:
            return None
        width, height = info.width, info.height
        if square:
            width = height = min(width, height)
        if height > width:
            new_width, new_height = short_side, height * short_side // width
        else:
            new_width, new_height = width * short_side // height, short_side
        if max(new_width, new_height) > largest_side:
            return None
        _set_axis(&columns, width, new_width, (info.width - width) // 2, info.width)
        _set_axis(&lines, height, new_height, (info.height - height) // 2, info.height)
        image = np.empty((new_height, new_width, 3)[:2 if channels == 1 else 3], np.uint8)
        pixels = image.reshape(-1)
        with nogil:
            good = _run(engine, method, order, &columns, &lines, &pixels[0])
        return image if good else None
    finally:
        jpeg.decoder_finish(engine.decoder)
        _thread.__dict__["engine"] = engine
