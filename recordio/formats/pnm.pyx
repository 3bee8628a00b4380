"""Raw images: uint8 pixels behind the header of a binary PNM file, P5 for grey and P6 for RGB.

Reads and writes the one form of PNM that needs no decoder; any other belongs to `general`.  Nothing
here resizes, and nothing looks at records.
"""

import re
from collections import namedtuple

from libc.stddef cimport ptrdiff_t
from libc.stdint cimport uint8_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy

from recordio.kernels.pixel cimport PIXEL_SLACK

import numpy as np

from recordio.formats.row_source cimport (
    SOURCE_FAILED, SOURCE_OPEN, SOURCE_OTHER, ImageInfo, Rectangle, RowDecoder, Rows, RowSource,
)
from recordio.formats.status cimport (
    MESSAGE_SIZE, RENDER_IMAGE, RENDER_MEMORY, Outcome, outcome_fail,
)

from recordio.errors import ImageDecodeError

from .jpeg.jpeg import DEFAULT_MAX_PIXELS

__all__ = ["HEADER", "PNMHeader", "RawRows", "decode", "decode_pnm", "encode", "header"]

#: Numbers of a header with white space and comments between them; exactly one space ends it.
HEADER = re.compile(rb"P([56])" + rb"(?:\s|#[^\r\n]*[\r\n])+(\d{1,10})" * 3 + rb"\s")

PNMHeader = namedtuple("PNMHeader", ["width", "height", "channels", "start"])
PNMHeader.__doc__ = """The facts in the header of a raw image.

Attributes
----------
width, height : int
    Size in pixels.
channels : int
    1 for grey, 3 for RGB.
start : int
    Offset of the first pixel in bytes; rows follow each other without gaps.
"""


def header(data, *, max_pixels=DEFAULT_MAX_PIXELS):
    r"""Read the header of a raw image and check that all pixels are there.

    None stands for everything but P5 and P6 with a largest value of 255, and for headers that
    decoders do not agree about, such as those with a comment right behind a number.

    >>> header(b"P5\n3 2\n255\n......")
    PNMHeader(width=3, height=2, channels=1, start=11)
    >>> header(b"P5\n3 2\n255\n.....")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    recordio.errors.ImageDecodeError: the PNM image is truncated (3 x 2 grey pixels are 6 bytes, ...
    """
    cdef pnm_header header
    if not _parse(_bytes_of(data), max_pixels, &header):
        return None
    return PNMHeader(header.width, header.height, header.channels, header.start)


def decode(data, channels, *, max_pixels=DEFAULT_MAX_PIXELS):
    r"""Copy the pixels of a raw image.

    >>> decode(b"P6\n1 1\n255\n\x01\x02\x03", 3).tolist()
    [[[1, 2, 3]]]
    """
    cdef const uint8_t[::1] view = _bytes_of(data)
    cdef pnm_header header
    cdef uint8_t[:, :, ::1] pixels
    cdef const uint8_t* row
    cdef Py_ssize_t y, stride
    if channels not in (1, 3):
        raise ValueError(f"channels must be 1 or 3, not {channels!r}")
    if not _parse(view, max_pixels, &header):
        return None
    pixels = image = np.empty((header.height, header.width, channels), np.uint8)
    stride = header.width * header.channels
    row = &view[header.start]
    with nogil:
        if header.channels == pixels.shape[2]:
            memcpy(&pixels[0, 0, 0], row, header.height * stride)
        else:
            for y in range(pixels.shape[0]):
                pnm_convert_row(row + y * stride, <int>header.width, header.channels,
                                &pixels[y, 0, 0])
    return image


def decode_pnm(view, int channels, *, max_pixels=DEFAULT_MAX_PIXELS):
    r"""Return the values of an image of any largest value up to 65535; None for any other file.

    Values of more than 8 bits are as they are stored, smaller ones stretched to 0 to 255.

    >>> decode_pnm(memoryview(b"P5\n2 1\n1023\n\x03\xff\0\1"), 1, max_pixels=9).tolist()
    [[[1023], [1]]]
    """
    match = HEADER.match(bytes(view[:4096]))
    if match is None:
        return None
    kind, width, height, largest = map(int, match.groups())
    if not (width and height and 0 < largest < 65536) or width * height > max_pixels:
        return None
    dtype, samples = np.dtype(">u2" if largest > 255 else "u1"), 1 if kind == 5 else 3
    needed = width * height * samples * dtype.itemsize
    if len(view) - match.end() < needed:
        raise ImageDecodeError(
            f"the PNM image is truncated ({needed} bytes of pixels are announced, "
            f"{len(view) - match.end()} are there); pack it again from its source")
    values = np.frombuffer(view, dtype, width * height * samples, match.end())
    values = values.reshape(height, width, samples)
    values = np.minimum(values, largest).astype(np.uint32)  # as Pillow does
    if largest > 255:
        return values.astype(np.uint16)
    return ((values * 510 + largest) // (2 * largest)).astype(np.uint8)


def encode(const uint8_t[:, :, ::1] pixels not None):
    r"""Make a raw image.

    >>> encode(np.full((1, 2, 1), 65, np.uint8))
    b'P5\n2 1\n255\nAA'
    """
    kinds = {1: "P5", 3: "P6"}
    if pixels.shape[2] not in kinds or not pixels.nbytes:
        raise ValueError(f"a raw image has pixels of 1 or 3 bytes, not shape {pixels.base.shape}")
    start = f"{kinds[pixels.shape[2]]}\n{pixels.shape[1]} {pixels.shape[0]}\n255\n"
    return start.encode("ascii") + memoryview(pixels).cast("B")


def _bytes_of(data):
    """A flat view; None for no bytes, of which Cython cannot make one."""
    view = memoryview(data)
    return view.cast("B") if view.nbytes else None


cdef bint _parse(const uint8_t[::1] data, max_pixels, pnm_header* header) except -1:
    """Return True for a raw image; raise if it is one that is truncated or too large."""
    cdef char[200] message
    cdef int status
    if data is None:
        return False
    status = pnm_parse(&data[0], data.shape[0], max_pixels, header)
    if status in (PNM_TOO_LARGE, PNM_TRUNCATED):
        pnm_explain(status, header, max_pixels, message, sizeof(message))
        raise ImageDecodeError(message.decode("ascii"))
    return status == PNM_OK


cdef enum:
    STRIP_ROWS = 16         # converted at a time


cdef struct State:
    int channels
    Py_ssize_t max_pixels
    pnm_header header
    const uint8_t* data
    Rows rest               # of the rectangle that is read
    int width
    uint8_t* strip          # of converted rows
    size_t capacity


cdef class RawRows(RowDecoder):
    """A reader of raw images, grey or RGB as is asked for; see `RowDecoder`."""

    cdef State state

    def __cinit__(self, int channels, *, max_pixels=DEFAULT_MAX_PIXELS, **limits):
        self.state.strip = NULL
        self.state.capacity = 0
        self.state.channels, self.state.max_pixels = channels, max_pixels
        self.source.state = &self.state
        self.source.open, self.source.start = open_raw, start_raw
        self.source.next, self.source.finish = next_raw, finish_raw

    def __dealloc__(self):
        free(self.state.strip)


cdef int open_raw(RowSource* source, const uint8_t* data, size_t size, ImageInfo* info,
                  Outcome* outcome) noexcept nogil:
    cdef State* state = <State*>source.state
    cdef pnm_header* header = &state.header
    cdef int status = PNM_OTHER
    if state.channels != 4:
        status = pnm_parse(data, size, state.max_pixels, header)
    if status == PNM_OTHER:
        return SOURCE_OTHER
    if status != PNM_OK:
        pnm_explain(status, header, state.max_pixels, outcome.message, MESSAGE_SIZE)
        outcome.status = RENDER_IMAGE
        return SOURCE_FAILED
    state.data = data + header.start
    info.width, info.height = <int>header.width, <int>header.height
    info.raw = True
    info.in_memory = header.channels == state.channels
    info.pixel_size = state.channels
    return SOURCE_OPEN


cdef int start_raw(RowSource* source, int denominator, const Rectangle* area,
                   Outcome* outcome) noexcept nogil:
    cdef State* state = <State*>source.state
    cdef size_t size = <size_t>area.width * state.channels * STRIP_ROWS + PIXEL_SLACK
    cdef void* memory
    if state.header.channels != state.channels and size > state.capacity:
        memory = realloc(state.strip, size)
        if memory == NULL:
            return outcome_fail(outcome, RENDER_MEMORY, b"")
        state.strip, state.capacity = <uint8_t*>memory, size
    state.width = area.width
    state.rest.stride = <ptrdiff_t>state.header.width * state.header.channels
    state.rest.first = (state.data + area.y * state.rest.stride
                        + <ptrdiff_t>area.x * state.header.channels)
    state.rest.count, state.rest.cold = area.height, True
    return 0


cdef int next_raw(RowSource* source, Rows* rows, Outcome* outcome) noexcept nogil:
    cdef State* state = <State*>source.state
    cdef ptrdiff_t packed = <ptrdiff_t>state.width * state.channels
    cdef int y
    rows[0] = state.rest
    if state.header.channels == state.channels:
        return 0
    rows.count = min(rows.count, STRIP_ROWS)
    for y in range(rows.count):
        pnm_convert_row(state.rest.first + y * state.rest.stride, state.width,
                        state.header.channels, state.strip + y * packed)
    state.rest.first += rows.count * state.rest.stride
    state.rest.count -= rows.count
    rows.first, rows.stride, rows.cold = state.strip, packed, False
    return 0


cdef bint finish_raw(RowSource* source) noexcept nogil:
    return True
