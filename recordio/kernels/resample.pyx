# cython: language_level=3
"""Resize whole images: the Python face of ``resample.h``.

The image stage and the packing tool use the same streaming resampler.  The arithmetic is OpenCV's
or Pillow's with 8 bits, on every machine.
"""

from libc.stdint cimport uint8_t

import numpy as np

__all__ = ["LEVELS", "resize", "variants"]

#: Names of the levels of `simd.h` for this kind of processor; a kernel without a form for a level
#: takes the next one below.
LEVELS = {"plain": SIMD_LEVEL_PLAIN}
if SIMD_X86:
    LEVELS["sse4.1"] = SIMD_LEVEL_SSE41
    LEVELS["avx2"] = SIMD_LEVEL_AVX2
    LEVELS["avx512"] = SIMD_LEVEL_AVX512
if SIMD_NEON:
    LEVELS["neon"] = SIMD_LEVEL_NEON


def variants():
    """Return names of the code variants that this machine can run; all give the same bytes.

    They go from ``"plain"`` to the best, which is the default.
    """
    best = simd_level(SIMD_LEVEL_AVX512)
    return tuple(name for name, level in LEVELS.items() if level <= best)


cdef void _fill(resample_axis* axis, int source, int target) noexcept nogil:
    axis.source = axis.stored = source
    axis.target = axis.count = target
    axis.begin = axis.origin = 0
    axis.denominator = 1
    axis.low = axis.high = 0


def resize(const uint8_t[:, :, ::1] image not None, size, method=1):
    """Resize an image of 8-bit pixels with 1, 3 or 4 channels to (width, height) pixels.

    The result is that of OpenCV's ``resize`` (cubic may differ by 1 where OpenCV does not compute
    in integers).  `method` is 0 nearest, 1 bilinear, 2 cubic, 3 area, 4 Lanczos over 8 x 8 pixels;
    16 to 21 are Pillow's nearest, box, bilinear, Hamming, bicubic and Lanczos of `Image.resize`.
    """
    cdef resample_axis x, y
    cdef uint8_t[:, :, ::1] target
    cdef int code = method, status, row, left = 0, top = 0, width = 0, height = 0
    shape = image.shape[0], image.shape[1], image.shape[2]
    if 0 in shape:
        raise ValueError(f"an image has the shape (height, width, channels), not {shape}")
    out = np.empty((size[1], size[0], image.shape[2]), np.uint8)
    target = out
    _fill(&x, <int>image.shape[1], size[0])
    _fill(&y, <int>image.shape[0], size[1])
    cdef resampler* handle = resampler_new()
    if handle == NULL:
        raise MemoryError("no memory for a resampler")
    with nogil:
        status = resampler_begin(
            handle, code, &x, &y, <int>image.shape[2], &target[0, 0, 0],
            target.shape[1] * target.shape[2])
        if status == RESAMPLE_OK:
            resampler_source(handle, &left, &top, &width, &height)
            for row in range(top, top + height):
                resampler_push(handle, &image[row, left, 0])
        resampler_free(handle)
    if status == RESAMPLE_NO_MEMORY:
        raise MemoryError(f"no memory to resize an image to {tuple(size)} pixels")
    if status != RESAMPLE_OK:
        raise ValueError(f"cannot resize an image to {tuple(size)} pixels")
    return out
