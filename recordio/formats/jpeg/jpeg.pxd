"""Declarations of the JPEG decoder for other modules; `decoder.h` explains them."""

from recordio.formats.codec_rows cimport CodecRows
from recordio.formats.jpeg_markers cimport jpeg_limits

cdef extern from "recordio/formats/jpeg/decoder.h" nogil:
    cdef enum jpeg_status:
        JPEG_OK
        JPEG_NOT_JPEG
        JPEG_CORRUPT
        JPEG_TRUNCATED
        JPEG_TOO_LARGE
        JPEG_TOO_MANY_SCANS
        JPEG_NO_MEMORY
        JPEG_UNSUPPORTED
        JPEG_BAD_ARGUMENT
        JPEG_UNAVAILABLE


cdef class JpegRows(CodecRows):
    cdef jpeg_limits limits
