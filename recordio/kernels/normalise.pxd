"""C declarations of the normalising kernels; the code is header-only (`normalise.h`)."""

from libc.stddef cimport ptrdiff_t
from libc.stdint cimport uint8_t


cdef extern from "recordio/kernels/normalise.h" nogil:
    # Element types by their names, -1 for others; whether they are floats; a float stored as one.
    int normalise_type(const char* name)
    int normalise_is_float(int type)
    void normalise_store_float(int type, void* slot, ptrdiff_t at, float value)

    ctypedef struct normalise_recipe:
        int channels
        int dtype
        float[4] mean
        float[4] factor
        float[4] offset
        const float* mean_image
        int mean_height
        int mean_width

    void normalise_row(
        const normalise_recipe* recipe, const uint8_t* row, int width, int y, int mirror,
        void* slot_row, ptrdiff_t pixel_stride, ptrdiff_t channel_stride)
    int normalise_streams(
        const normalise_recipe* recipe, int width, const void* slot_row, ptrdiff_t pixel_stride,
        ptrdiff_t channel_stride)
    void normalise_done()
    void normalise_row_at(
        int limit, const normalise_recipe* recipe, const uint8_t* row, int width, int y, int mirror,
        void* slot_row, ptrdiff_t pixel_stride, ptrdiff_t channel_stride)


cdef extern from "recordio/kernels/normalise_deep.h" nogil:
    int normalise_deep_row(
        const normalise_recipe* recipe, const uint8_t* row, int sample, int width, int y,
        int mirror, void* slot_row, ptrdiff_t pixel_stride, ptrdiff_t channel_stride)
