# cython: language_level=3
"""Turn pixels into normalised samples of a batch, as the image stage does, by ``normalise.h``."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport uint8_t

import numpy as np

from recordio.kernels.normalise cimport normalise_recipe, normalise_row_at, normalise_type
from recordio.kernels.resample cimport SIMD_LEVEL_AVX512
from recordio.kernels.resample import LEVELS


cdef int _check(status, text) except -1:
    if not status:
        raise ValueError(text)
    return 0


def _per_channel(name, values, channels):
    """Return one float per channel from a number or a sequence."""
    values = np.asarray(values, np.float32).ravel()
    if values.size == 1:
        values = np.repeat(values, channels)
    _check(values.size == channels, f"{name} must be one number or {channels}, not {values.size}")
    return values


cdef void _run(
    int level, const normalise_recipe* recipe, const uint8_t* pixels, int height, int width,
    int mirror, uint8_t* slot, ptrdiff_t row_bytes, ptrdiff_t pixel_stride,
    ptrdiff_t channel_stride,
) noexcept nogil:
    cdef int y
    for y in range(height):
        normalise_row_at(
            level, recipe, pixels + <ptrdiff_t>y * width * recipe.channels, width, y, mirror,
            slot + y * row_bytes, pixel_stride, channel_stride)


def normalise(
    image, *, mean=0.0, std=1.0, scale=1.0, contrast=1.0, illumination=0.0, mirror=False,
    dtype="float32", layout="chw", mean_image=None, out=None, variant=None,
):
    """Subtract, scale, mirror and permute one image.

    ``out = ((x - mean) * contrast + illumination) * scale / std`` in float32 arithmetic, computed
    as ``(x - mean) * (contrast * scale / std) + illumination * scale / std`` like MXNet's
    ImageRecordIter.  ``uint8`` ignores all of them; ``int8`` uses only the mean, rounded, and
    saturates.  `layout` is any order of c, h, w.  `mean_image`, (channels, height, width), replaces
    `mean` and is subtracted before mirroring.
    """
    cdef normalise_recipe recipe
    cdef Py_buffer source, target, means
    cdef int height, width, channels, flip, level, type_code
    cdef ptrdiff_t row_bytes, pixel_stride, channel_stride
    cdef const uint8_t* pixels
    cdef uint8_t* slot

    image = np.asarray(image)
    _check(
        image.dtype == np.uint8 and image.ndim in (2, 3),
        "an image is an array (height, width[, channels]) of uint8")
    image = np.ascontiguousarray(image if image.ndim == 3 else image[:, :, None])
    height, width, channels = image.shape
    _check(channels in (1, 3, 4), f"an image has 1, 3 or 4 channels, not {channels}")
    type_code = normalise_type(dtype.encode())
    _check(type_code >= 0, f"dtype={dtype!r} is not an element type of a batch")
    _check(
        sorted(layout) == ["c", "h", "w"],
        f"layout must be an order of c, h and w, not {layout!r}")
    _check(
        variant is None or variant in LEVELS,
        f"variant must be one of {tuple(LEVELS)}, not {variant!r}")
    sizes = {"h": height, "w": width, "c": channels}
    shape = tuple(sizes[axis] for axis in layout)
    if out is None:
        out = np.empty(shape, dtype)
    _check(
        out.dtype == dtype and out.shape == shape
        and out.flags.c_contiguous and out.flags.writeable,
        f"out must be a writeable C-contiguous array of {dtype} of shape {shape}")
    if 0 in shape:
        return out

    means_given = _per_channel("mean", mean, channels)
    factor = np.float32(contrast) * np.float32(scale) / _per_channel("std", std, channels)
    offset = np.float32(illumination) * np.float32(scale) / _per_channel("std", std, channels)
    recipe.channels = channels
    recipe.dtype = type_code
    recipe.mean_image = NULL
    recipe.mean_height = recipe.mean_width = 0
    for c in range(channels):
        recipe.mean[c] = means_given[c]
        recipe.factor[c] = factor[c]
        recipe.offset[c] = offset[c]
    if mean_image is not None:
        mean_image = np.ascontiguousarray(mean_image, np.float32)
        _check(
            mean_image.shape == (channels, height, width),
            f"the mean image must have shape {(channels, height, width)}, not {mean_image.shape}")
    strides = dict(zip(layout, out.strides, strict=True))
    row_bytes = strides["h"]
    pixel_stride = strides["w"] // out.itemsize
    channel_stride = strides["c"] // out.itemsize
    flip = bool(mirror)
    level = SIMD_LEVEL_AVX512 if variant is None else LEVELS[variant]

    PyObject_GetBuffer(image, &source, PyBUF_SIMPLE)
    try:
        PyObject_GetBuffer(out, &target, PyBUF_SIMPLE)
        try:
            PyObject_GetBuffer(image if mean_image is None else mean_image, &means, PyBUF_SIMPLE)
            try:
                if mean_image is not None:
                    recipe.mean_image = <const float*>means.buf
                    recipe.mean_height = height
                    recipe.mean_width = width
                pixels = <const uint8_t*>source.buf
                slot = <uint8_t*>target.buf
                with nogil:
                    _run(
                        level, &recipe, pixels, height, width, flip, slot, row_bytes,
                        pixel_stride, channel_stride)
            finally:
                PyBuffer_Release(&means)
        finally:
            PyBuffer_Release(&target)
    finally:
        PyBuffer_Release(&source)
    return out
