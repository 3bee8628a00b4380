"""Decode a JPEG image and resize it in one pass: rows go from the decoder into the resampler.

The full-size image never exists, which saves its memory and its way through the caches.  This gives
OpenCV's pixels or none at all: what OpenCV would treat in another way is left to OpenCV.
"""

from threading import local

import numpy as np

from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int64_t, uint8_t

from recordio.formats.row_source cimport (
    SOURCE_OPEN, ImageInfo, Rectangle, RowDecoder, Rows, RowSource,
)
cimport recordio.kernels.resample as resample
from recordio.formats.status cimport Outcome

from .jpeg import JpegRows

__all__ = ["decode_resized"]


cdef class _Engine:
    """A decoder and a resampler; it must not be used by two threads at a time."""

    cdef RowDecoder decoder
    cdef RowSource* rows
    cdef resample.resampler* resampler

    def __cinit__(self, int channels):
        self.resampler = NULL
        self.decoder = JpegRows(channels)
        self.rows = &self.decoder.source
        self.resampler = resample.resampler_new()
        if self.resampler is NULL:
            raise MemoryError("no memory for a resampler")

    def __dealloc__(self):
        resample.resampler_free(self.resampler)


_thread = local()


cdef bint _has_end_marker(const uint8_t* data, size_t size) noexcept nogil:
    """Return True if the marker that ends an image is in the data, as a rule at their end."""
    while size >= 2:
        if data[size - 1] == 0xD9 and data[size - 2] == 0xFF:
            return True
        size -= 1
    return False


cdef bint _open(_Engine engine, const uint8_t* data, size_t size, ImageInfo* info) noexcept nogil:
    """Read the header; whether the image can be decoded here as OpenCV would do it."""
    cdef Outcome outcome
    return (engine.rows.open(engine.rows, data, size, info, &outcome) == SOURCE_OPEN
            and info.orientation == 1 and _has_end_marker(data, size))


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
    axis.low = axis.high = 0


cdef bint _run(_Engine engine, int method, int samples, const resample.resample_axis* columns,
               const resample.resample_axis* lines, uint8_t* out) noexcept nogil:
    """Decode and resize the opened image; whether it is complete and without a warning."""
    cdef int y = 0, done = 0, i
    cdef Rectangle area
    cdef Rows rows
    cdef Outcome outcome
    if resample.resampler_begin(engine.resampler, method, columns, lines, samples, out,
                                <ptrdiff_t>columns.count * samples) != resample.RESAMPLE_OK:
        return False
    resample.resampler_source(engine.resampler, &area.x, &area.y, &area.width,
                              &area.height)
    area.height = lines.stored - area.y     # to the last row: damage there is damage as well
    if engine.rows.start(engine.rows, 1, &area, &outcome):
        return False
    while y < area.height:
        if engine.rows.next(engine.rows, &rows, &outcome):
            return False
        for i in range(rows.count):
            done = resample.resampler_push(engine.resampler, rows.first + i * rows.stride)
        y += rows.count
    return engine.rows.finish(engine.rows) and done == lines.count


def decode_resized(data, int short_side, int method=1, int channels=3, *, bint square=False,
                   int largest_side=65500):
    """Decode a JPEG image with its short side scaled to a length.

    The pixels are those of OpenCV's ``imdecode`` and ``resize``, BGR or grey. Method 1 is
    bilinear, 3 area: those in which `recordio.kernels.resample` and OpenCV agree to the bit. None
    stands for what OpenCV has to decide: no JPEG, damaged or truncated (in the crop or outside),
    to be turned upright, more pixels or scans than `recordio.formats.jpeg.jpeg.JpegRows`
    accepts, a result that would be larger than `largest_side`, or no libjpeg-turbo.

    >>> import cv2
    >>> from recordio.formats.jpeg import jpeg
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
    cdef ImageInfo info
    cdef int64_t width, height, new_width, new_height
    cdef bint good
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
    # Taken out while it is in use: a finalizer in this thread may come here as well.
    engine = _thread.__dict__.pop(channels, None) or _Engine(-3 if channels == 3 else 1)
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
            good = _run(engine, method, channels, &columns, &lines, &pixels[0])
        return image if good else None
    finally:
        engine.rows.finish(engine.rows)
        _thread.__dict__[channels] = engine
