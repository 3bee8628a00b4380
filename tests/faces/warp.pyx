# cython: language_level=3
"""Rotate, shear, scale and crop images in one step, as the image stage does, by ``warp.h``.

The bytes are those of OpenCV 4.8's ``warpAffine``, on every machine.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int32_t, uint8_t

import numpy as np

from recordio.kernels.resample cimport SIMD_LEVEL_AVX512
from recordio.kernels.resample import LEVELS, variants
from recordio.kernels.warp cimport (
    WARP_LARGEST_SIDE, affine_forward, warp_bounds, warp_invert, warp_prepare, warp_row_at,
    warp_source, warp_weights,
)


def forward_matrix(angle, shear, scale, ratio, size, canvas):
    """Return the (2, 3) matrix of MXNet's random affine step, in the float32 arithmetic it uses.

    ``matrix @ (x, y, 1)`` is the place of the pixel (x, y) in the result.  `angle` is in degrees,
    counter-clockwise; `shear` the pixels by which a row moves to the right for every row further
    down, after the stretching; `ratio` the vertical to horizontal stretch: the factors are
    ``2 * scale / (1 + ratio)`` for the width and `ratio` times that for the height.  `canvas` is
    (width, height) of the result before they are cut to whole pixels; the image's centre comes to
    the middle of it.
    """
    cdef float[6] forward
    affine_forward(forward, angle, shear, scale, ratio, size[0], size[1], canvas[0], canvas[1])
    return np.array([forward[i] for i in range(6)], np.float32).reshape(2, 3)


cdef int _load(warp_source* source, matrix, whole, method) except -1:
    """Fill in the data on which bounds and rows depend."""
    cdef float[6] forward
    cdef int i
    with np.errstate(over="ignore"):  # what float32 cannot hold is refused below
        matrix = np.asarray(matrix, np.float32)
    if matrix.shape != (2, 3):
        raise ValueError(f"an affine matrix has the shape (2, 3), not {matrix.shape}")
    if not np.isfinite(matrix).all():
        raise ValueError("an affine matrix must be finite")
    if method not in (0, 1, 2, 3, 4):
        raise ValueError(f"method must be 0, 1, 2, 3 or 4, not {method}")
    for i in range(6):
        forward[i] = matrix.flat[i]
    warp_invert(forward, source.inverse)
    _check_size("an image", whole)
    source.image_width, source.image_height = whole
    source.method = method
    source.weights = warp_weights(method)
    return 0


cdef int _check_size(what, size) except -1:
    if not all(1 <= side <= WARP_LARGEST_SIDE for side in size):
        raise ValueError(f"{what} has sides of 1 to {WARP_LARGEST_SIDE} pixels, not {tuple(size)}")
    return 0


cdef int _check_window(window, size) except -1:
    for i in range(2):
        if window[i] < 0 or window[i + 2] < 1 or window[i] + window[i + 2] > size[i]:
            raise ValueError(
                f"the window {tuple(window)} is not inside a result of {tuple(size)} pixels")
    return 0


def bounds(matrix, image_size, window, method=1):
    """Return the part of an image that a window of its warped form is made of.

    Both are (x, y, width, height): the smallest upright rectangle, all zero if only fill is seen.
    `image_size` is (width, height).
    """
    cdef warp_source source
    cdef int x, y, width, height
    _load(&source, matrix, image_size, method)
    _check_window(window, (WARP_LARGEST_SIDE, WARP_LARGEST_SIDE))
    warp_bounds(&source, window[0], window[1], window[2], window[3], &x, &y, &width, &height)
    return x, y, width, height


cdef void _run(
    int level, warp_source* source, int x0, int y0, int width, int height, int32_t* steps,
    uint8_t* out,
) noexcept nogil:
    cdef int row
    warp_prepare(source, x0, width, steps)
    for row in range(height):
        warp_row_at(level, source, x0, width, y0 + row,
                    out + <ptrdiff_t>row * width * source.channels)


def warp(
    image, matrix, size, method=1, fill=255, window=None, *, origin=(0, 0), image_size=None,
    variant=None,
):
    """Warp an image of 8-bit pixels with 1, 3 or 4 channels, or only what a window of it shows.

    `matrix` is as of ``forward_matrix``; `size` is (width, height) of the whole result; `method` is
    0 nearest, 1 bilinear, 2 cubic, 3 area (as OpenCV's warps, which take it for bilinear), 4
    Lanczos over 8 x 8 pixels.  `fill`, 0 to 255, one or one per channel, is outside the image.
    With `origin` (x, y) and `image_size`, `image` is only that rectangle of a larger one; it has to
    hold the `bounds` of the window, and fill is seen where it does not.
    """
    cdef warp_source source
    cdef Py_buffer pixels, target
    cdef int level, x, y, width, height, i

    image = np.asarray(image)
    if image.dtype != np.uint8:
        raise TypeError(f"an image must be made of uint8, not {image.dtype}")
    if image.ndim not in (2, 3) or 0 in image.shape:
        raise ValueError(f"an image has the shape (height, width[, channels]), not {image.shape}")
    image = np.ascontiguousarray(image)
    channels = image.shape[2] if image.ndim == 3 else 1
    if channels not in (1, 3, 4):
        raise ValueError(f"an image has 1, 3 or 4 channels, not {channels}")
    if image_size is None:
        image_size = origin[0] + image.shape[1], origin[1] + image.shape[0]
    for i in range(2):
        if origin[i] < 0 or origin[i] + image.shape[1 - i] > image_size[i]:
            raise ValueError(
                f"a rectangle of {image.shape[1]} x {image.shape[0]} pixels at {tuple(origin)} is "
                f"not inside an image of {tuple(image_size)} pixels")
    _check_size("a result", size)
    window = (0, 0, *size) if window is None else window
    _check_window(window, size)
    if variant is not None and variant not in variants():
        raise ValueError(f"variant must be one of {variants()}, not {variant!r}")
    level = SIMD_LEVEL_AVX512 if variant is None else LEVELS[variant]
    fills = [int(value) for value in np.ravel(fill)]
    fills = fills * channels if len(fills) == 1 else fills
    if len(fills) != channels or not all(0 <= value <= 255 for value in fills):
        raise ValueError(f"fill must be one number or {channels} from 0 to 255, not {fill!r}")

    _load(&source, matrix, image_size, method)
    source.x, source.y = origin
    source.height, source.width = image.shape[:2]
    source.stride = image.strides[0]
    source.channels = channels
    for i in range(channels):
        source.fill[i] = fills[i]
    x, y, width, height = window
    out = np.empty((height, width, *image.shape[2:]), np.uint8)
    cdef int32_t[::1] steps = np.empty(2 * width, np.int32)
    PyObject_GetBuffer(image, &pixels, PyBUF_SIMPLE)
    try:
        PyObject_GetBuffer(out, &target, PyBUF_SIMPLE)
        try:
            source.pixels = <const uint8_t*>pixels.buf
            with nogil:
                _run(level, &source, x, y, width, height, &steps[0], <uint8_t*>target.buf)
        finally:
            PyBuffer_Release(&target)
    finally:
        PyBuffer_Release(&pixels)
    return out
