"""Images of values: one for each pixel, 8 or 16 bits, as they are stored.

The value of a pixel is its number in a palette, or its grey level, which is not stretched where it
has fewer than 8 bits.  PNG and raw grey images are read without the GIL, all others by Pillow.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport uint8_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset

from recordio.formats.pnm cimport PNM_OK, PNM_OTHER, pnm_explain, pnm_header, pnm_parse
from recordio.formats.row_source cimport SOURCE_FAILED, SOURCE_OPEN, ImageInfo, Rectangle, Rows
from recordio.formats.status cimport (
    MESSAGE_SIZE, RENDER_IMAGE, RENDER_MEMORY, RENDER_OK, Outcome, outcome_fail,
)
from recordio.kernels.pixel cimport PIXEL_SLACK

import numpy as np

from recordio.errors import ImageDecodeError, RecordIOError
from recordio.formats.image_header import open_within_limits, read_header
from recordio.formats.general import turned
from recordio.formats.jpeg.jpeg import DEFAULT_LIMITS
from recordio.formats.png.png import PngValues

#: Types in which values are delivered.
VALUE_TYPES = ("uint8", "uint16", "int32", "int64", "float32")


def decode_values(bytes data not None, limits=DEFAULT_LIMITS, *, exact=True):
    """Return the values of an image by Pillow, upright: uint8 or uint16, (height, width).

    >>> import io
    >>> from PIL import Image
    >>> file = io.BytesIO()
    >>> Image.new("1", (3, 2), 1).save(file, "PNG")
    >>> decode_values(file.getvalue()).tolist()
    [[1, 1, 1], [1, 1, 1]]
    """
    if exact and data[:2] == b"\xff\xd8":
        raise ImageDecodeError(
            "a JPEG image does not keep the values of its pixels: store masks as PNG")
    image = open_within_limits(data, limits)
    if image.mode not in ("1", "P", "L", "I", "I;16", "I;16B", "I;16L"):
        raise ImageDecodeError(
            f"the image has several values for each pixel (mode {image.mode}), and one is needed: "
            "a grey level, or the number of a colour in a palette")
    values = np.asarray(image)
    if image.format != "TIFF":  # which Pillow turns
        values = turned(values, read_header(data).orientation)
    if values.dtype == bool:
        return values.astype(np.uint8)
    if values.dtype != np.uint8:
        if values.min(initial=0) < 0 or values.max(initial=0) > 65535:
            raise ImageDecodeError("the image has values beyond 16 bits")
        return np.ascontiguousarray(values, np.uint16)
    return np.ascontiguousarray(values)


cdef class ValueReader:
    """Reads one image after the other; `exact` refuses JPEG, which changes values."""

    def __cinit__(self, dict limits not None, bint exact=True):
        self.memory, self.capacity, self.source = NULL, 0, NULL
        self.png, self.limits, self.exact = PngValues(**limits), limits, exact
        self.max_pixels = limits["max_pixels"]

    def __dealloc__(self):
        free(self.memory)

    cdef int open(self, const uint8_t* data, size_t size, ImageInfo* info,
                  Outcome* outcome) noexcept nogil:
        cdef pnm_header header
        cdef int status
        outcome.status = RENDER_OK
        self.source = NULL
        memset(info, 0, sizeof(ImageInfo))
        if size == 0:
            return outcome_fail(outcome, RENDER_IMAGE, b"the record holds no image data")
        status = self.png.source.open(&self.png.source, data, size, info, outcome)
        if status == SOURCE_FAILED:
            return outcome.status
        if status == SOURCE_OPEN:
            self.source, self.value_bytes = &self.png.source, info.pixel_size
            return RENDER_OK
        status = pnm_parse(data, size, self.max_pixels, &header)
        if status == PNM_OTHER or status == PNM_OK and header.channels != 1:
            return self.open_by_pillow(data, size, info, outcome)
        if status != PNM_OK:
            pnm_explain(status, &header, self.max_pixels, outcome.message, MESSAGE_SIZE)
            outcome.status = RENDER_IMAGE
            return RENDER_IMAGE
        self.whole.first, self.whole.bytes = data + header.start, 1
        self.keep(<int>header.width, <int>header.height, info)
        return RENDER_OK

    cdef void keep(self, int width, int height, ImageInfo* info) noexcept nogil:
        """Note the size of an image that is in memory."""
        info.width, info.height = width, height
        self.whole.x = self.whole.y = 0
        self.whole.width, self.whole.height = width, height
        self.whole.stride = <Py_ssize_t>width * self.whole.bytes

    cdef int open_by_pillow(self, const uint8_t* data, size_t size, ImageInfo* info,
                            Outcome* outcome) noexcept with gil:
        cdef size_t address
        try:
            copy = PyBytes_FromStringAndSize(<const char*>data, <Py_ssize_t>size)
            values = self.decoded = decode_values(copy, self.limits, exact=self.exact)
            address = values.ctypes.data
            self.whole.first, self.whole.bytes = <const uint8_t*>address, values.itemsize
            self.keep(values.shape[1], values.shape[0], info)
        except MemoryError:
            return outcome_fail(outcome, RENDER_MEMORY, b"")
        except Exception as error:
            reason = error.reason if isinstance(error, RecordIOError) else repr(error)
            return outcome_fail(outcome, RENDER_IMAGE, reason.encode("utf-8", "replace"))
        return RENDER_OK

    cdef int read(self, const Rectangle* wanted, value_image* image,
                  Outcome* outcome) noexcept nogil:
        cdef Rows rows
        cdef size_t packed, needed
        cdef int y = 0, i
        cdef void* memory
        image[0] = self.whole
        if self.source == NULL:
            return RENDER_OK
        if self.source.start(self.source, 1, wanted, outcome):
            return outcome.status
        image.x, image.y, image.width, image.height = (
            wanted.x, wanted.y, wanted.width, wanted.height)
        image.bytes = self.value_bytes
        packed = <size_t>wanted.width * image.bytes
        needed = packed * wanted.height + PIXEL_SLACK
        if needed > self.capacity:
            memory = realloc(self.memory, needed)
            if memory == NULL:
                return outcome_fail(outcome, RENDER_MEMORY, b"")
            self.memory, self.capacity = <uint8_t*>memory, needed
        while y < wanted.height:
            if self.source.next(self.source, &rows, outcome):
                return outcome.status
            for i in range(rows.count):
                memcpy(self.memory + (y + i) * packed, rows.first + i * rows.stride, packed)
            y += rows.count
        image.first, image.stride = self.memory, <Py_ssize_t>packed
        return RENDER_OK

    cdef void finish(self) noexcept nogil:
        if self.source != NULL:
            self.source.finish(self.source)
        self.source = NULL
