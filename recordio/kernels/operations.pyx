# cython: language_level=3
"""Change uint8 images as Pillow does: the Python face of ``operations.h``.

Shears, shifts and rotations, enhancements, tables and blurs: the operations of the recipes of
torchvision and timm.  The image stage applies the same code.
"""

from cpython.buffer cimport PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport uint8_t
from libc.stdlib cimport free, malloc

import math

import numpy as np

from recordio.kernels.resample cimport SIMD_LEVEL_AVX512, simd_level
from recordio.kernels.resample import LEVELS

__all__ = ["METHODS", "MOVING", "NAMES", "operate"]

#: All operations, in the order of ``operations.h``, and those that move pixels.
NAMES = tuple([operation_rows()[kind].name.decode() for kind in range(OPERATION_COUNT)])
MOVING = tuple([
    name for kind, name in enumerate(NAMES) if operation_is_geometric(<operation_kind><int>kind)])
#: Interpolations of the geometric ones.
METHODS = ("nearest", "bilinear", "bicubic")


def operate(image, name, value=0.0, *, method="nearest", fill=0, variant=None):
    """Apply one operation of `NAMES` to a grey, RGB or RGBA image; the bytes are Pillow's.

    The table in ``operations.h`` says what the `value` of each is, and its range.

    Geometric operations have a `method` (bilinear and bicubic ones are within one level of
    Pillow's) and a `fill`, 0 to 255, for every channel or for each.  The others leave alpha as it
    is, except the blur.
    """
    cdef Py_buffer buffer
    cdef operation done
    cdef operation_image what
    cdef int level, i, kind
    image = np.asarray(image)
    shape = image.shape if image.ndim == 3 else (*image.shape, 1)
    if image.dtype != np.uint8 or len(shape) != 3 or shape[2] not in (1, 3, 4):
        raise ValueError(
            "an array (height, width) or (height, width, 1, 3 or 4) of uint8 is expected, not "
            f"{image.dtype} {image.shape}")
    if max(shape) > AFFINE_LARGEST_SIDE:
        raise ValueError(f"sides of up to {AFFINE_LARGEST_SIDE} pixels are expected, not {shape}")
    if name not in NAMES:
        raise ValueError(f"name must be one of {NAMES}, not {name!r}")
    if method not in METHODS:
        raise ValueError(f"method must be one of {METHODS}, not {method!r}")
    kind = NAMES.index(name)
    low, high = operation_rows()[kind].low, operation_rows()[kind].high
    if not (math.isfinite(value) and low <= value <= high):
        raise ValueError(f"the value of {name} lies within {low} to {high}, and is not {value!r}")
    fills = (fill,) * 4 if isinstance(fill, int) else tuple(fill)
    if len(fills) < shape[2] or not all(0 <= level <= 255 for level in fills):
        raise ValueError(f"fill={fill!r}: expected a level of 0 to 255, or one for every channel")
    if variant is not None and variant not in LEVELS:
        raise ValueError(f"variant must be one of {tuple(LEVELS)}, not {variant!r}")
    result = np.array(image, order="C")
    if result.size == 0:
        return result
    level = simd_level(SIMD_LEVEL_AVX512 if variant is None else LEVELS[variant])
    done.kind, done.value = <operation_kind>kind, value
    done.method = METHODS.index(method)
    what.height, what.width, what.channels = shape
    for i in range(what.channels):
        what.fill[i] = fills[i]
    what.room = <uint8_t*>malloc(
        operation_room(what.width, what.height, what.channels, value if name == "blur" else 0))
    if what.room == NULL:
        raise MemoryError
    PyObject_GetBuffer(result, &buffer, PyBUF_WRITABLE)
    what.pixels = <uint8_t*>buffer.buf
    try:
        with nogil:
            operation_apply_at(level, &done, &what)
    finally:
        PyBuffer_Release(&buffer)
        free(what.room)
    return result
