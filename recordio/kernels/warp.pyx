# cython: language_level=3
"""The tables of weights that ``warp.h`` reads: made when this is imported, for all threads."""

from libc.stdint cimport int16_t

from recordio.kernels.resample cimport RESAMPLE_CUBIC, RESAMPLE_LANCZOS4

cdef int16_t[32 * 32 * 4 * 4] cubic_weights
cdef int16_t[32 * 32 * 8 * 8] lanczos_weights
assert warp_weights_size(RESAMPLE_CUBIC) * sizeof(int16_t) == sizeof(cubic_weights)
assert warp_weights_size(RESAMPLE_LANCZOS4) * sizeof(int16_t) == sizeof(lanczos_weights)
warp_fill_weights(RESAMPLE_CUBIC, cubic_weights)
warp_fill_weights(RESAMPLE_LANCZOS4, lanczos_weights)


cdef const int16_t* warp_weights(int method) noexcept nogil:
    if method == RESAMPLE_CUBIC:
        return cubic_weights
    if method == RESAMPLE_LANCZOS4:
        return lanczos_weights
    return NULL
