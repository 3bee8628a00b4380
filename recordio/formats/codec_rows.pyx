# build: small
"""The row source over a decoder written in C: the calls, their errors and their time.

JPEG, PNG and WebP are such decoders; what differs between them is a `Codec`.
"""

import numpy as np

from libc.string cimport memcpy

from recordio.counter cimport seconds_add
from recordio.formats.row_source cimport SOURCE_FAILED, SOURCE_OTHER, RowSource, Rows
from recordio.formats.status cimport RENDER_IMAGE, RENDER_MEMORY, Outcome, outcome_fail
from recordio.kernels.orient cimport orient_exchanges_sides
from recordio.sync cimport sync_now

from recordio.errors import ImageDecodeError

__all__ = ["CodecRows", "decode"]


cdef class CodecRows(RowDecoder):
    """A row source that decodes no more than it has to; see `RowDecoder`."""

    def __cinit__(self, *args, **keywords):
        self.codec.decoder = NULL
        self.source.state, self.codec.source = &self.codec, &self.source
        self.source.open, self.source.start = open_image, start_image
        self.source.next, self.source.finish = next_rows, finish_image

    def __dealloc__(self):
        if self.codec.decoder != NULL:
            self.codec.free(self.codec.decoder)

    cdef int made(self, void* decoder) except -1:
        """Take over a decoder, NULL if there was no memory for it."""
        self.codec.decoder = decoder
        if decoder == NULL:
            raise MemoryError("no memory for a decoder of images")
        return 0


cdef int open_image(RowSource* source, const uint8_t* data, size_t size, ImageInfo* info,
                    Outcome* outcome) noexcept nogil:
    cdef Codec* codec = <Codec*>source.state
    cdef double begin = sync_now()
    cdef OpenStatus opened = codec.open(codec, data, size, info)
    if opened == SOURCE_OTHER:
        return opened
    seconds_add(&source.seconds, sync_now() - begin)
    if opened == SOURCE_FAILED:
        fail(codec, codec.status, outcome)
        return opened
    if not codec.upright:
        info.orientation = 1
    if orient_exchanges_sides(info.orientation):
        info.width, info.height = info.height, info.width
    return opened


cdef int start_image(RowSource* source, int denominator, const Rectangle* area,
                     Outcome* outcome) noexcept nogil:
    cdef Codec* codec = <Codec*>source.state
    cdef double begin = sync_now()
    cdef int status = codec.start(codec, denominator, area)
    seconds_add(&source.seconds, sync_now() - begin)
    return fail(codec, status, outcome)


cdef int next_rows(RowSource* source, Rows* rows, Outcome* outcome) noexcept nogil:
    cdef Codec* codec = <Codec*>source.state
    cdef double begin = sync_now()
    cdef int status = codec.rows(codec.decoder, &rows.first, &rows.stride, &rows.count)
    rows.cold = codec.cold
    seconds_add(&source.seconds, sync_now() - begin)
    return fail(codec, status, outcome)


cdef bint finish_image(RowSource* source) noexcept nogil:
    cdef Codec* codec = <Codec*>source.state
    return codec.finish(codec.decoder)


cdef int fail(Codec* codec, int status, Outcome* outcome) noexcept nogil:
    """Note the error of a call in `outcome`; a lack of memory is no fault of the image."""
    cdef char[MESSAGE_SIZE] text
    codec.status = status
    if status == 0:
        return 0
    codec.explain(codec, text)
    return outcome_fail(outcome, RENDER_MEMORY if status == codec.no_memory else RENDER_IMAGE,
                        text)


def decode(CodecRows rows not None, data, region=None, int denominator=1):
    """Decode an image by one codec as it is stored: all of it, or a region; it is never turned.

    A region is ``(x, y, width, height)`` of the image at ``1 / denominator`` of its size.  None
    stands for an image that the codec leaves to another.
    """
    view = memoryview(data)
    cdef const uint8_t[::1] content = view.cast("B") if view.nbytes else None
    cdef uint8_t[:, ::1] memory
    cdef RowSource* source = &rows.source
    cdef ImageInfo info
    cdef Outcome outcome
    cdef Rectangle area
    cdef int opened, channels = abs(rows.codec.channels)
    cdef bint failed
    if content is None:
        return None
    info.orientation, info.pixel_size = 1, channels
    with nogil:
        opened = source.open(source, &content[0], content.shape[0], &info, &outcome)
    if opened == SOURCE_OTHER:
        return None
    try:
        if opened == SOURCE_FAILED:
            raise_error(&rows.codec, &outcome)
        if orient_exchanges_sides(info.orientation):
            info.width, info.height = info.height, info.width
        area.x = area.y = 0
        area.width = (info.width + denominator - 1) // denominator
        area.height = (info.height + denominator - 1) // denominator
        if region is not None:
            area.x, area.y, area.width, area.height = region
        with nogil:
            failed = source.start(source, denominator, &area, &outcome)
        if failed:
            raise_error(&rows.codec, &outcome)
        memory = pixels = np.empty((area.height, area.width * info.pixel_size), np.uint8)
        with nogil:
            failed = copy_rows(source, &memory[0, 0], area.height, memory.shape[1], &outcome)
        if failed:
            raise_error(&rows.codec, &outcome)
    finally:
        source.finish(source)
    dtype = np.uint8 if info.pixel_size == channels else np.uint16
    return pixels.view(dtype).reshape(area.height, area.width, channels)


cdef int raise_error(const Codec* codec, Outcome* outcome) except -1:
    """Raise the exception for a call that failed."""
    text = outcome.message.decode("utf-8", "replace")
    if outcome.status == RENDER_MEMORY:
        raise MemoryError(text)
    raise (ValueError if codec.status == codec.bad_argument else ImageDecodeError)(text)


cdef int copy_rows(RowSource* source, uint8_t* to, int height, size_t row_size,
                   Outcome* outcome) noexcept nogil:
    """Copy all rows of the started rectangle to `to`."""
    cdef Rows rows
    cdef int y = 0, i
    while y < height:
        if source.next(source, &rows, outcome):
            return 1
        for i in range(rows.count):
            memcpy(to, rows.first + i * rows.stride, row_size)
            to += row_size
        y += rows.count
    return 0
