# cython: language_level=3
"""Resize images through a crop and a window, as the image stage does, by ``resample.h``."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport uint8_t

import numpy as np

from recordio.kernels.resample cimport (
    RESAMPLE_NO_MEMORY, RESAMPLE_OK, resample_axis, resample_denominator, resample_draft, resampler,
    resampler_begin, resampler_free, resampler_limit, resampler_new, resampler_push,
    resampler_source,
)
from recordio.kernels.resample import LEVELS, variants


def denominator(method, source, target):
    """Return the strongest reduction at which an image may be decoded before it is resized.

    It is the largest of 1, 2, 4, 8 at which the decoded image is at least as large as the result on
    both axes; always 1 for nearest.  Sizes are (width, height).
    """
    return resample_denominator(method, source[0], target[0], source[1], target[1])


def draft(gap, source, target):
    """Return the reduction of Pillow's draft for `thumbnail` with that `reducing_gap`."""
    return resample_draft(gap, source[0], target[0], source[1], target[1])


cdef int _fill(
    resample_axis* axis, source, target, begin, count, origin, denominator, stored, box
) except -1:
    axis.source = source
    axis.target = target
    axis.begin = begin
    axis.count = count
    axis.origin = origin
    axis.denominator = denominator
    axis.stored = stored
    axis.low, axis.high = box
    return 0


cdef int _run(resampler* r, const uint8_t* pixels, ptrdiff_t stride, int channels) noexcept nogil:
    """Push the rows that are needed; return how many rows of the result are complete."""
    cdef int x = 0, y = 0, width = 0, height = 0, row, done = 0
    resampler_source(r, &x, &y, &width, &height)
    pixels += y * stride + <ptrdiff_t>x * channels
    for row in range(height):
        done = resampler_push(r, pixels + row * stride)
    return done


cdef class _Resampler:
    """Owner of one resampler."""

    cdef resampler* handle

    def __cinit__(self):
        self.handle = NULL
        self.handle = resampler_new()
        if self.handle == NULL:
            raise MemoryError("no memory for a resampler")

    def __dealloc__(self):
        resampler_free(self.handle)


def resize(
    image, size, method=1, *, crop=None, window=None, box=None, denominator=1, stored=None,
    out=None, variant=None,
):
    """Resize an image of 8-bit pixels with 1, 3 or 4 channels.

    The result is that of OpenCV's ``resize`` (cubic may differ by 1 where OpenCV does not compute
    in integers).  `size` is (width, height) after the resize; `method` is 0 nearest, 1 bilinear, 2
    cubic, 3 area, 4 Lanczos over 8 x 8 pixels.  `crop` (x, y, width, height) is the part of the
    stored image that is resized, pixels outside having no influence; `window` the part of the
    result that is returned.  An image that was decoded at a fraction, 1 / `denominator`, of the
    stored size has crop and `stored`, its (width, height), in stored pixels.  Methods 16 to 21 are
    Pillow's; `box` (left, top, right, bottom) is then that of `Image.resize`, within the crop.
    """
    cdef resample_axis x, y
    cdef Py_buffer source, target
    cdef int status, channels, code, done = 0
    cdef ptrdiff_t source_stride, target_stride
    cdef uint8_t* target_pixels
    cdef const uint8_t* source_pixels

    image = np.asarray(image)
    if image.dtype != np.uint8:
        raise TypeError(f"an image must be made of uint8, not {image.dtype}")
    if image.ndim not in (2, 3) or 0 in image.shape:
        raise ValueError(f"an image has the shape (height, width[, channels]), not {image.shape}")
    image = np.ascontiguousarray(image)
    channels = image.shape[2] if image.ndim == 3 else 1
    if channels not in (1, 3, 4):
        raise ValueError(f"an image has 1, 3 or 4 channels, not {channels}")
    decoded = image.shape[1], image.shape[0]
    if denominator not in (1, 2, 4, 8):
        raise ValueError(f"denominator must be 1, 2, 4 or 8, not {denominator}")
    if stored is None:
        if denominator != 1:
            raise ValueError("the size of the stored image is needed when denominator is not 1")
        stored = decoded
    if tuple(-(-side // denominator) for side in stored) != decoded:
        raise ValueError(
            f"an image of {decoded} pixels is not one of {stored} decoded at 1/{denominator}")
    crop = (0, 0, *stored) if crop is None else crop
    window = (0, 0, *size) if window is None else window
    for i in range(2):
        if crop[i] < 0 or crop[i + 2] < 1 or crop[i] + crop[i + 2] > stored[i]:
            raise ValueError(
                f"the crop {tuple(crop)} is not inside an image of {tuple(stored)} pixels")
        if window[i] < 0 or window[i + 2] < 1 or window[i] + window[i + 2] > size[i]:
            raise ValueError(
                f"the window {tuple(window)} is not inside a result of {tuple(size)} pixels")
    if method not in (*range(5), *range(16, 22)):
        raise ValueError(f"method must be 0 to 4 or 16 to 21, not {method}")
    if variant is not None and variant not in variants():
        raise ValueError(f"variant must be one of {variants()}, not {variant!r}")

    shape = (window[3], window[2], *image.shape[2:])
    if out is None:
        out = np.empty(shape, np.uint8)
    elif (
        out.dtype != np.uint8 or out.shape != shape
        or not out.flags.c_contiguous or not out.flags.writeable
    ):
        raise ValueError(f"out must be a writeable C-contiguous array of uint8 of shape {shape}")

    box = (0, 0, 0, 0) if box is None else box
    _fill(&x, crop[2], size[0], window[0], window[2], crop[0], denominator, stored[0], box[::2])
    _fill(&y, crop[3], size[1], window[1], window[3], crop[1], denominator, stored[1], box[1::2])
    source_stride = image.strides[0]
    target_stride = out.strides[0]
    code = method
    owner = _Resampler()
    cdef resampler* handle = (<_Resampler>owner).handle
    if variant is not None:
        resampler_limit(handle, LEVELS[variant])
    PyObject_GetBuffer(image, &source, PyBUF_SIMPLE)
    try:
        PyObject_GetBuffer(out, &target, PyBUF_SIMPLE)
        try:
            source_pixels = <const uint8_t*>source.buf
            target_pixels = <uint8_t*>target.buf
            with nogil:
                status = resampler_begin(
                    handle, code, &x, &y, channels, target_pixels, target_stride)
                if status == RESAMPLE_OK:
                    done = _run(handle, source_pixels, source_stride, channels)
        finally:
            PyBuffer_Release(&target)
    finally:
        PyBuffer_Release(&source)
    if status == RESAMPLE_NO_MEMORY:
        raise MemoryError(f"no memory to resize {tuple(crop[2:])} to {tuple(size)} pixels")
    if status != RESAMPLE_OK:
        raise ValueError(f"cannot resize {tuple(crop[2:])} to {tuple(size)} pixels")
    assert done == window[3], "the resampler did not complete its rows"
    return out
