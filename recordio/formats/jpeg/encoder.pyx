# build: libjpeg compress.c
"""Encode pixels as JPEG images with libjpeg-turbo, without the GIL, to OpenCV's bytes.

Nothing here converts pixels or decodes images.
"""

from threading import local

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport uint8_t

from recordio.formats.jpeg import MISSING

cdef extern from "recordio/formats/jpeg/compress.h" nogil:
    enum:
        JPEG_LONGEST_SIDE
        JPEG_ENCODED
        JPEG_ENCODER_NO_MEMORY

    ctypedef struct jpeg_encoder:
        pass

    ctypedef struct jpeg_encoder_settings:
        int quality
        int across
        int down
        int progressive
        int optimize

    int jpeg_encoder_available() noexcept
    jpeg_encoder* jpeg_encoder_new() noexcept
    void jpeg_encoder_free(jpeg_encoder* encoder) noexcept
    int jpeg_encoder_encode(jpeg_encoder* encoder, const uint8_t* pixels, ptrdiff_t stride,
                            int width, int height, int channels,
                            const jpeg_encoder_settings* settings, const uint8_t** content,
                            size_t* size) noexcept
    const char* jpeg_encoder_message(const jpeg_encoder* encoder) noexcept

__all__ = ["LONGEST_SIDE", "SUBSAMPLINGS", "available", "encode"]

LONGEST_SIDE = JPEG_LONGEST_SIDE
#: Luma samples across and down for each sample of chroma.
SUBSAMPLINGS = {
    "4:4:4": (1, 1), "4:2:2": (2, 1), "4:2:0": (2, 2), "4:4:0": (1, 2), "4:1:1": (4, 1),
}


cdef class _Encoder:
    """One encoder; it must not be used by two threads at a time."""

    cdef jpeg_encoder* encoder

    def __cinit__(self):
        self.encoder = NULL
        self.encoder = jpeg_encoder_new()
        if self.encoder == NULL:
            raise MemoryError("no memory for a JPEG encoder")

    def __dealloc__(self):
        jpeg_encoder_free(self.encoder)


_thread = local()


def available():
    """Return True if this module was built with libjpeg-turbo; without it encodes nothing.

    >>> isinstance(available(), bool)
    True
    """
    return bool(jpeg_encoder_available())


def encode(const uint8_t[:, :, ::1] pixels not None, int quality=95, *, subsampling="4:2:0",
           bint progressive=False, bint optimize=False, bint bgr=False):
    """Encode pixels, (height, width, 1 or 3): grey, RGB or, if that is asked for, BGR.

    >>> import numpy as np
    >>> image = encode(np.zeros((4, 6, 3), np.uint8)) if available() else bytes((255, 216, 255))
    >>> list(image[:3])
    [255, 216, 255]
    """
    cdef jpeg_encoder_settings settings
    cdef int height, width, channels, status
    cdef const uint8_t* content = NULL
    cdef size_t size = 0
    if pixels.shape[2] not in (1, 3):
        raise ValueError(f"a JPEG image has 1 or 3 channels here, not {pixels.shape[2]}")
    if not 0 < min(pixels.shape[0], pixels.shape[1]) <= max(
            pixels.shape[0], pixels.shape[1]) <= JPEG_LONGEST_SIDE:
        raise ValueError(
            f"a JPEG image has 1 to {JPEG_LONGEST_SIDE} pixels a side, not {pixels.shape[1]} x "
            f"{pixels.shape[0]}")
    if not 0 <= quality <= 100:
        raise ValueError(f"quality must be 0 to 100, not {quality}")
    if subsampling not in SUBSAMPLINGS:
        raise ValueError(
            f"subsampling must be one of {', '.join(SUBSAMPLINGS)}, not {subsampling!r}")
    if not jpeg_encoder_available():
        raise RuntimeError(MISSING)
    settings.quality, settings.progressive, settings.optimize = quality, progressive, optimize
    settings.across, settings.down = SUBSAMPLINGS[subsampling]
    height, width, channels = pixels.shape[0], pixels.shape[1], pixels.shape[2]
    if bgr and channels == 3:
        channels = -3
    # Taken out while it is in use: a finalizer in this thread may come here as well.
    cdef _Encoder own = _thread.__dict__.pop("encoder", None) or _Encoder()
    with nogil:
        status = jpeg_encoder_encode(own.encoder, &pixels[0, 0, 0],
                                     <ptrdiff_t>width * pixels.shape[2], width, height, channels,
                                     &settings, &content, &size)
    if status != JPEG_ENCODED:
        message = jpeg_encoder_message(own.encoder).decode("utf-8", "replace")
        raise (MemoryError if status == JPEG_ENCODER_NO_MEMORY else ValueError)(message)
    result = PyBytes_FromStringAndSize(<const char*>content, <Py_ssize_t>size)
    _thread.__dict__["encoder"] = own
    return result
