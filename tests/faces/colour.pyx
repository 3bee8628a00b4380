# cython: language_level=3
"""Change brightness, contrast, saturation, hue and lighting as the image stage does: ``colour.h``.

The arithmetic is that of MXNet's default augmenter, bit by bit, including its grey with the weights
of red and blue exchanged.
"""

from cpython.buffer cimport PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int64_t, uint8_t

import numpy as np

from recordio.kernels.colour cimport (
    colour_contrast_offset, colour_grey_sum_at, colour_hls_at, colour_lighting_at,
    colour_saturation_at, colour_scale_at,
)
from recordio.kernels.resample cimport SIMD_LEVEL_AVX512, simd_level
from recordio.kernels.resample import LEVELS


cdef enum _Change:
    SCALE, CONTRAST, SATURATION, HLS, LIGHTING


cdef struct _Order:
    _Change change
    int level
    float factor
    float offset
    int hue
    int lightness
    int saturation
    float[3] delta


cdef void _run(_Order* order, uint8_t* pixels, ptrdiff_t height, int width) noexcept nogil:
    cdef ptrdiff_t y, stride = 3 * <ptrdiff_t>width
    cdef int64_t greys = 0
    cdef uint8_t* row
    if order.change == CONTRAST:
        for y in range(height):
            greys += colour_grey_sum_at(order.level, pixels + y * stride, width)
        order.offset = colour_contrast_offset(order.factor, greys, height * width)
    for y in range(height):
        row = pixels + y * stride
        if order.change == SATURATION:
            colour_saturation_at(order.level, row, width, order.factor)
        elif order.change == HLS:
            colour_hls_at(
                order.level, row, width, order.hue, order.lightness, order.saturation)
        elif order.change == LIGHTING:
            colour_lighting_at(order.level, row, width, order.delta)
        else:
            colour_scale_at(order.level, row, 3 * width, order.factor, order.offset)


cdef _changed(image, variant, _Order* order):
    """Return a changed copy of the image."""
    cdef Py_buffer buffer
    cdef ptrdiff_t height
    cdef int width
    image = np.asarray(image)
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3:
        raise ValueError(
            "colours of an array (height, width, 3) of uint8 can be changed, not of "
            f"{image.dtype} {image.shape}")
    if variant is not None and variant not in LEVELS:
        raise ValueError(f"variant must be one of {tuple(LEVELS)}, not {variant!r}")
    order.level = simd_level(SIMD_LEVEL_AVX512 if variant is None else LEVELS[variant])
    result = np.array(image, order="C")
    if result.size == 0:
        return result
    height = result.shape[0]
    width = result.shape[1]
    PyObject_GetBuffer(result, &buffer, PyBUF_WRITABLE)
    try:
        with nogil:
            _run(order, <uint8_t*>buffer.buf, height, width)
    finally:
        PyBuffer_Release(&buffer)
    return result


def brightness(image, factor, *, variant=None):
    """Multiply every value, round halves to even and saturate.

    Images are uint8 RGB, (height, width, 3); no result depends on `variant`.
    """
    cdef _Order order
    order.change = SCALE
    order.factor = factor
    order.offset = 0
    return _changed(image, variant, &order)


def contrast(image, factor, *, variant=None):
    """Move every value away from the mean grey of the image, or towards it.

    ``x * factor + (1 - factor) * mean(grey)`` with ``grey = 0.114 R + 0.587 G + 0.299 B``.
    """
    cdef _Order order
    order.change = CONTRAST
    order.factor = factor
    order.offset = 0
    return _changed(image, variant, &order)


def saturation(image, factor, *, variant=None):
    """Move every pixel away from its grey, or towards it.

    ``x * factor + (1 - factor) * grey`` with ``grey = 0.114 R + 0.587 G + 0.299 B``.
    """
    cdef _Order order
    order.change = SATURATION
    order.factor = factor
    return _changed(image, variant, &order)


def shift_hls(image, hue=0, lightness=0, saturation=0, *, variant=None):
    """Add to hue, lightness and saturation, each clamped to its range.

    Hue is in steps of two degrees; its sum is clamped to 0..180 and does not wrap round, the others
    to 0..255.  Shifts are -1000 to 1000.
    """
    cdef _Order order
    for name, value in (("hue", hue), ("lightness", lightness), ("saturation", saturation)):
        if not -1000 <= value <= 1000:
            raise ValueError(f"{name} must lie in -1000..1000, not {value}")
    order.change = HLS
    order.hue = hue
    order.lightness = lightness
    order.saturation = saturation
    return _changed(image, variant, &order)


def lighting(image, delta, *, variant=None):
    """Add a number to each of red, green and blue, cut the fraction off and saturate."""
    cdef _Order order
    if len(delta) != 3:
        raise ValueError(f"delta must be three numbers, not {len(delta)}")
    order.change = LIGHTING
    for c in range(3):
        order.delta[c] = delta[c]
    return _changed(image, variant, &order)
