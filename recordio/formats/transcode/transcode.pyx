# build: libjpeg rewrite.c coefficients.c rewrite_unavailable.c
"""Rewrite JPEG files without loss, so that parts of them are decoded faster.

A rewritten file has the same coefficients, hence the same pixels for every decoder, and everything
else that was in the file.  Nothing is ever decoded to pixels, repaired or left out here: a file
that is damaged in any way is refused.
"""

from collections import namedtuple
from operator import index as as_integer

import numpy as np

from libc.stdint cimport int16_t, uint8_t, uint16_t
from libc.string cimport memcpy

cimport recordio.formats.jpeg.jpeg as jpeg
from recordio.formats.jpeg_markers cimport jpeg_limits, load_limits

from recordio.errors import ImageDecodeError
from recordio.formats.jpeg import MISSING

__all__ = ["JpegCoefficients", "coefficients", "optimize_jpeg", "read_all_codes", "rewrite"]


cdef extern from "recordio/formats/transcode/rewrite.h" nogil:
    ctypedef struct jpeg_component:
        int width
        int height
        uint16_t quantisation[64]

    ctypedef struct jpeg_frame:
        int components
        jpeg_component component[4]

    ctypedef struct jpeg_coefficients:
        pass

    ctypedef struct jpeg_rewrite_options:
        jpeg_limits limits
        int restart
        int tables

    ctypedef struct jpeg_rewritten:
        uint8_t* data
        size_t size
        char message[256]

    cdef enum:
        JPEG_RESTART_AUTO

    cdef enum jpeg_tables:
        JPEG_TABLES_AUTO
        JPEG_TABLES_OPTIMAL
        JPEG_TABLES_STANDARD

    jpeg_coefficients* jpeg_coefficients_new() noexcept
    void jpeg_coefficients_free(jpeg_coefficients* coefficients) noexcept
    void jpeg_coefficients_be_lenient(jpeg_coefficients* coefficients) noexcept
    int jpeg_coefficients_read(jpeg_coefficients* coefficients, const uint8_t* data, size_t size,
                               const jpeg_limits* limits) noexcept
    const jpeg_frame* jpeg_coefficients_frame(const jpeg_coefficients* coefficients) noexcept
    int jpeg_coefficients_rows(jpeg_coefficients* coefficients, int component, int first,
                               int count, const int16_t** rows) noexcept
    const char* jpeg_coefficients_message(const jpeg_coefficients* coefficients) noexcept
    int jpeg_rewrite(const uint8_t* data, size_t size, const jpeg_rewrite_options* options,
                     jpeg_rewritten* result) noexcept
    void jpeg_rewrite_free(jpeg_rewritten* result) noexcept


MAX_RESTART = 65535

JpegCoefficients = namedtuple("JpegCoefficients", ["blocks", "quantisation"])
JpegCoefficients.__doc__ = """The coefficients and tables that a JPEG file codes.

Attributes
----------
blocks : list of numpy.ndarray
    For each component int16 of shape (rows of blocks, columns of blocks, 8, 8), not multiplied by
    the quantisation table.  Blocks that only fill up an MCU are left out.
quantisation : list of numpy.ndarray
    For each component uint16 of shape (8, 8).
"""

TABLES = {
    "auto": JPEG_TABLES_AUTO, "optimal": JPEG_TABLES_OPTIMAL, "standard": JPEG_TABLES_STANDARD
}


cdef str _reason(int status, bytes message):
    """Why a file was refused: a short text that is the same for all files of a kind."""
    text = message.decode("utf-8", "replace")
    if status == jpeg.JPEG_NO_MEMORY:
        raise MemoryError(text)
    if status == jpeg.JPEG_UNAVAILABLE:
        raise ImageDecodeError(MISSING)
    return {
        jpeg.JPEG_NOT_JPEG: "not a JPEG image",
        jpeg.JPEG_CORRUPT: "damaged",
        jpeg.JPEG_TRUNCATED: "truncated",
        jpeg.JPEG_TOO_LARGE: "too many pixels",
        jpeg.JPEG_TOO_MANY_SCANS: "too many scans",
    }.get(status, text)


cdef const uint8_t[::1] _bytes_of(data):
    """The bytes of any contiguous buffer; None if there are none."""
    view = memoryview(data)
    return view.cast("B") if view.nbytes else None


def _restart_number(restart):
    """The number that stands for a restart interval."""
    if isinstance(restart, str):
        if restart != "auto":
            raise ValueError(f"restart must be 'auto' or a number of MCUs, not {restart!r}")
        return JPEG_RESTART_AUTO
    number = as_integer(restart)
    if not 0 <= number <= MAX_RESTART:
        raise ValueError(f"restart must lie between 0 and {MAX_RESTART}, not {number}")
    return number


def rewrite(data, restart="auto", tables="auto", **limits):
    """Rewrite a JPEG file without loss, or say why it should stay as it is.

    >>> from recordio.formats.jpeg import jpeg
    >>> rewrite(b"GIF89a")[1] if jpeg.available() else "not a JPEG image"
    'not a JPEG image'
    """
    cdef const uint8_t[::1] view = _bytes_of(data)
    cdef jpeg_rewrite_options options
    cdef jpeg_rewritten result
    cdef int status
    cdef size_t size
    cdef const uint8_t* first = NULL
    options.restart = _restart_number(restart)
    if tables not in TABLES:
        raise ValueError(f"tables must be 'auto', 'optimal' or 'standard', not {tables!r}")
    options.tables = TABLES[tables]
    load_limits(&options.limits, limits)
    size = 0 if view is None else view.shape[0]
    if size:
        first = &view[0]
    with nogil:
        status = jpeg_rewrite(first, size, &options, &result)
    try:
        if status != jpeg.JPEG_OK:
            return None, _reason(status, result.message)
        if result.data == NULL:
            return None, "nothing to gain"
        return result.data[:result.size], ""
    finally:
        jpeg_rewrite_free(&result)


def optimize_jpeg(data, restart="auto", **limits):
    """Rewrite a JPEG file without loss, so that it and parts of it are decoded faster.

    Progressive files become sequential, Huffman tables the shortest for the image, and restart
    markers let a decoder jump to the part that it needs.  The coefficients are not touched, which
    is proved by reading them back; tables of quantisation, EXIF, ICC, comments and all other
    segments, and what follows the image, are copied byte by byte.

    Parameters
    ----------
    data : bytes-like
        The file.
    restart : int or "auto"
        MCUs (16 x 16 pixels in most files) between two restart markers, 0 for none.  By default
        chosen by size and content so that random crops are decoded with the least work: about
        eight for a photograph of 500 x 400 pixels, none for images with a side below 160 pixels.
    **limits
        `max_pixels`, `max_scans` and `max_scan_pixels`, to raise what is accepted.

    Returns
    -------
    bytes
        The rewritten file; or the same bytes if there is nothing to gain, as for small sequential
        images.

    Raises
    ------
    ImageDecodeError
        If the file is not JPEG, is damaged or truncated in any way, has more than 2**26 pixels,
        256 scans or 2**31 pixels in all scans, or is of a kind that is not rewritten: coded
        arithmetically, lossless, of 12 bits, progressive without its last scans, or with further
        pictures behind it that it points to (MPF).  Or if this was built without libjpeg-turbo.
    ValueError
        If `restart` is not allowed.

    Notes
    -----
    While it works it needs up to 12 bytes of memory for each pixel, and no lock of the interpreter.

    Examples
    --------
    >>> import cv2
    >>> from recordio import decode_image
    >>> from recordio.formats.jpeg import jpeg
    >>> image = np.random.default_rng(0).integers(0, 256, (200, 300, 3), "uint8")
    >>> options = [cv2.IMWRITE_JPEG_PROGRESSIVE, 1]
    >>> data = cv2.imencode(".jpg", image, options)[1].tobytes()
    >>> if jpeg.available():
    ...     again = optimize_jpeg(data)
    ...     same = (decode_image(again) == decode_image(data)).all()
    ...     print(jpeg.header(again).progressive, same)
    ... else:
    ...     print("False True")
    False True
    """
    rewritten, reason = rewrite(data, restart, **limits)
    if rewritten is not None:
        return rewritten
    if reason == "nothing to gain":
        return bytes(data)
    limit = {
        "too many pixels": "; raise max_pixels to allow it",
        "too many scans": "; raise max_scans and max_scan_pixels to allow it",
    }.get(reason, "")
    raise ImageDecodeError(f"the JPEG file cannot be rewritten: {reason}{limit}")


cdef class _Reader:
    """The coefficients of one file."""

    cdef jpeg_coefficients* read

    def __cinit__(self):
        self.read = NULL
        self.read = jpeg_coefficients_new()
        if self.read is NULL:
            raise MemoryError("no memory for a JPEG decoder")

    def __dealloc__(self):
        jpeg_coefficients_free(self.read)


def coefficients(data, **limits):
    """Read the coefficients of a JPEG file, to compare files with each other.

    >>> import cv2
    >>> from recordio.formats.jpeg import jpeg
    >>> data = cv2.imencode(".jpg", np.zeros((20, 50), "uint8"))[1].tobytes()
    >>> coefficients(data).blocks[0].shape if jpeg.available() else (3, 7, 8, 8)
    (3, 7, 8, 8)
    """
    cdef const uint8_t[::1] view = _bytes_of(data)
    cdef _Reader reader = _Reader()
    cdef jpeg_limits most
    cdef const jpeg_frame* frame
    cdef const int16_t* row
    cdef int16_t[:, :, :, ::1] blocks
    cdef uint16_t[:, ::1] table
    cdef int status, component, y
    cdef size_t row_size
    load_limits(&most, limits)
    if view is None:
        raise ImageDecodeError("not a JPEG image")
    with nogil:
        status = jpeg_coefficients_read(reader.read, &view[0], view.shape[0], &most)
    if status != jpeg.JPEG_OK:
        raise ImageDecodeError(_reason(status, jpeg_coefficients_message(reader.read)))
    frame = jpeg_coefficients_frame(reader.read)
    result = JpegCoefficients([], [])
    for component in range(frame.components):
        width, height = frame.component[component].width, frame.component[component].height
        result.blocks.append(np.empty((height, width, 8, 8), np.int16))
        blocks = result.blocks[component]
        row_size = <size_t>width * 64 * sizeof(int16_t)
        for y in range(height):
            if not jpeg_coefficients_rows(reader.read, component, y, 1, &row):
                raise MemoryError("the coefficients cannot be had")
            memcpy(&blocks[y, 0, 0, 0], row, row_size)
        result.quantisation.append(np.empty((8, 8), np.uint16))
        table = result.quantisation[component]
        memcpy(&table[0, 0], frame.component[component].quantisation, 64 * sizeof(uint16_t))
    return result


def read_all_codes(data, **limits):
    """Read a JPEG file to its end, and refuse it if a pixel may be wrong, in libjpeg's own words.

    It returns False for a file that was not examined: one that is no JPEG file, is of a rare kind,
    or lacks whole scans, of which only decoders know the effect; and for all without libjpeg-turbo.
    Bytes that are left in front of the end marker count as damage: they are what decoders have not
    read of damaged codes, except for filling with one value.

    >>> read_all_codes(b"GIF89a")
    False
    """
    cdef const uint8_t[::1] view = _bytes_of(data)
    cdef _Reader reader = _Reader()
    cdef jpeg_limits most
    cdef int status
    load_limits(&most, limits)
    if view is None:
        return False
    jpeg_coefficients_be_lenient(reader.read)
    with nogil:
        status = jpeg_coefficients_read(reader.read, &view[0], view.shape[0], &most)
    message = jpeg_coefficients_message(reader.read).decode("utf-8", "replace")
    if status == jpeg.JPEG_NO_MEMORY:
        raise MemoryError(message)
    if status == jpeg.JPEG_CORRUPT:
        raise ImageDecodeError(f"the JPEG image is damaged: libjpeg reports \"{message}\"")
    if status == jpeg.JPEG_TRUNCATED:
        raise ImageDecodeError(f"the JPEG image is truncated: libjpeg reports \"{message}\"")
    if status in (jpeg.JPEG_TOO_LARGE, jpeg.JPEG_TOO_MANY_SCANS):
        raise ImageDecodeError(message)
    return status == jpeg.JPEG_OK
