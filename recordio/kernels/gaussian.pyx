# cython: language_level=3
"""Blur uint8 images as torchvision does: the Python face of ``gaussian.h``."""

from libc.stdint cimport uint8_t

import numpy as np

from recordio.kernels.resample cimport SIMD_LEVEL_AVX512, simd_level

from recordio.kernels.resample import LEVELS

__all__ = ["LARGEST", "blur"]

#: The largest side of a kernel.
LARGEST = GAUSSIAN_LARGEST


def blur(image, kernel_size, double sigma, variant=None):
    """Return torchvision's ``gaussian_blur`` of an image (height, width, channels).

    `kernel_size` is (x, y), both odd; `sigma` is the standard deviation in pixels, above 0.
    """
    if len(kernel_size) != 2 or not all(k % 2 and 0 < k <= LARGEST for k in kernel_size):
        raise ValueError(f"kernel_size={kernel_size!r}: two odd numbers up to {LARGEST} expected")
    if not sigma > 0:
        raise ValueError(f"sigma={sigma!r}: a number above 0 is expected")
    result = np.array(image, np.uint8, order="C")
    if result.size == 0:
        return result
    cdef int height = result.shape[0], width = result.shape[1], channels = result.shape[2]
    cdef int level = simd_level(SIMD_LEVEL_AVX512 if variant is None else LEVELS[variant])
    cdef gaussian_taps[2] taps
    taps[0], taps[1] = gaussian_of(kernel_size[0], sigma), gaussian_of(kernel_size[1], sigma)
    cdef uint8_t[::1] pixels = result.reshape(-1)
    cdef uint8_t[::1] room = np.empty(
        gaussian_room(width, height, channels, max(kernel_size)), np.uint8)
    with nogil:
        gaussian_blur(level, taps, &pixels[0], width, height, channels, &room[0])
    return result
