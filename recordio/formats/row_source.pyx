"""Row sources: the interface between the codecs and the steps of an image.

A `RowSource` gives the rows of a rectangle of an image, wherever they come from: decoded as they
are asked for, converted, or in memory already.  It is a struct of functions, so that one is called
without the GIL and at the price of a pointer for a strip of rows; a `RowDecoder` owns one together
with what it needs.  Each codec brings a source of its own, and `general_rows` says which there are.
"""

from libc.stddef cimport ptrdiff_t
from libc.string cimport memset

from recordio.formats.status cimport RENDER_IMAGE, outcome_fail


cdef class RowDecoder:
    """Base class of what owns a source: made of channels, limits, and whether to turn images."""

    def __cinit__(self, *args, **keywords):
        memset(&self.source, 0, sizeof(RowSource))


cdef RowSource* open_first(RowSource** sources, int count, const uint8_t* data, size_t size,
                           ImageInfo* info, Outcome* outcome) noexcept nogil:
    cdef int i, status
    for i in range(count):
        memset(info, 0, sizeof(ImageInfo))
        info.orientation = 1
        status = sources[i].open(sources[i], data, size, info, outcome)
        if status == SOURCE_OPEN:
            return sources[i]
        if status == SOURCE_FAILED:
            return NULL
    outcome_fail(outcome, RENDER_IMAGE, b"no codec takes this image")
    return NULL


cdef int start_pixels(RowSource* source, int denominator, const Rectangle* area,
                      Outcome* outcome) noexcept nogil:
    cdef Pixels* pixels = <Pixels*>source.state
    pixels.asked.first = (pixels.first + (area.y - pixels.y) * pixels.stride
                          + <ptrdiff_t>(area.x - pixels.x) * pixels.pixel_size)
    pixels.asked.stride, pixels.asked.count = pixels.stride, area.height
    pixels.asked.cold = True
    return 0


cdef int next_pixels(RowSource* source, Rows* rows, Outcome* outcome) noexcept nogil:
    rows[0] = (<Pixels*>source.state).asked
    return 0


cdef bint finish_pixels(RowSource* source) noexcept nogil:
    return True


cdef void read_pixels(RowSource* source, Pixels* pixels) noexcept nogil:
    source.state, source.seconds = pixels, 0
    source.start, source.next, source.finish = start_pixels, next_pixels, finish_pixels
