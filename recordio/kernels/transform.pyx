# cython: language_level=3
"""Move uint8 images by affine and perspective maps: the Python face of ``transform.h``."""

from libc.stdint cimport uint8_t

import numpy as np

from recordio.kernels.operations cimport AFFINE_LARGEST_SIDE, PIXEL_SLACK
from recordio.kernels.resample cimport SIMD_LEVEL_AVX512, simd_level

from recordio.kernels.operations import METHODS
from recordio.kernels.resample import LEVELS

__all__ = ["affine_map", "perspective_map", "rotation_map", "transform"]


def transform(image, matrix, *, method="nearest", fill=0, size=None, window=None, variant=None):
    """Return what Pillow's ``Image.transform`` makes of a grey, RGB or RGBA image, to the byte.

    `matrix` has 6 numbers of an affine map or 8 of a perspective one; `size` is the (height, width)
    of the result, and `window` the (left, top, width, height) of it that is wanted.  Alpha is a
    channel like the others.
    """
    image = np.asarray(image)
    shape = image.shape if image.ndim == 3 else (*image.shape, 1)
    if image.dtype != np.uint8 or len(shape) != 3 or shape[2] not in (1, 3, 4) or image.size == 0:
        raise ValueError(
            "an array (height, width) or (height, width, 1, 3 or 4) of uint8 is expected, not "
            f"{image.dtype} {image.shape}")
    height, width = shape[:2] if size is None else size
    if not 0 < min(*shape[:2], height, width) <= max(*shape, height, width) <= AFFINE_LARGEST_SIDE:
        raise ValueError(f"sides of 1 to {AFFINE_LARGEST_SIDE} pixels are expected")
    if len(matrix) not in (6, 8) or not np.isfinite(matrix).all():
        raise ValueError(f"matrix={matrix!r}: 6 or 8 numbers are expected")
    if method not in METHODS:
        raise ValueError(f"method must be one of {METHODS}, not {method!r}")
    if variant is not None and variant not in LEVELS:
        raise ValueError(f"variant must be one of {tuple(LEVELS)}, not {variant!r}")
    left, top, wide, high = (0, 0, width, height) if window is None else window
    if left < 0 or top < 0 or wide < 1 or high < 1 or left + wide > width or top + high > height:
        raise ValueError(f"window={window!r}: a part of {width} x {height} pixels is expected")
    cdef transform_map move
    cdef affine_image source
    cdef int i, level = simd_level(SIMD_LEVEL_AVX512 if variant is None else LEVELS[variant])
    cdef int x = left, y = top, columns = wide, rows = high
    for i in range(8):
        move.matrix[i] = matrix[i] if i < len(matrix) else 0
    move.perspective, move.method = len(matrix) == 8, METHODS.index(method)
    move.width, move.height = width, height
    for i in range(shape[2]):
        move.fill[i] = fill if isinstance(fill, int) else fill[i]
    cdef const uint8_t[::1] pixels = np.concatenate(
        [image.ravel(), np.zeros(PIXEL_SLACK, np.uint8)])
    result = np.empty((high, wide, *image.shape[2:]), np.uint8)
    cdef uint8_t[::1] out = result.ravel()
    source.pixels, source.width, source.height = &pixels[0], shape[1], shape[0]
    source.channels = shape[2]
    with nogil:
        transform_window(level, &move, &source, x, y, columns, rows, &out[0])
    return result


def rotation_map(degrees, size, expand=False):
    """Return the matrix and the (height, width) of Pillow's ``Image.rotate`` about the centre."""
    cdef transform_map move
    transform_rotation(degrees, size[1], size[0], expand, &move)
    return [move.matrix[i] for i in range(6)], (move.height, move.width)


def affine_map(degrees, translate, scale, shear, size):
    """Return the matrix of torchvision's ``affine`` for an image of that (height, width)."""
    cdef transform_map move
    transform_affine(degrees, translate[0], translate[1], scale, shear[0], shear[1], size[1],
                     size[0], &move)
    return [move.matrix[i] for i in range(6)]


def perspective_map(ends, size):
    """Return the matrix of torchvision's ``perspective`` of the corners; None if there is none."""
    cdef transform_map move
    cdef int[4][2] last
    for i in range(4):
        last[i][0], last[i][1] = ends[i]
    if transform_perspective(last, size[1], size[0], &move):
        return None
    return [move.matrix[i] for i in range(8)]
