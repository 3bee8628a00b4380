"""C declarations of the affine warp; the code is header-only (`warp.h`)."""

from libc.stddef cimport ptrdiff_t, size_t
from libc.stdint cimport int16_t, int32_t, uint8_t


cdef extern from "recordio/kernels/warp.h" nogil:
    enum:
        WARP_LARGEST_SIDE

    ctypedef struct warp_source:
        const uint8_t* pixels
        ptrdiff_t stride
        int x
        int y
        int width
        int height
        int image_width
        int image_height
        int channels
        double inverse[6]
        int method
        const int16_t* weights
        uint8_t fill[4]
        const int32_t* steps[2]
        int steps_begin

    size_t warp_weights_size(int method)
    void warp_fill_weights(int method, int16_t* weights)
    void affine_forward(
        float* forward, double angle_degrees, float shear, float scale, float ratio, int width,
        int height, float canvas_width, float canvas_height)
    void warp_invert(const float* forward, double* inverse)
    void warp_bounds(
        const warp_source* source, int x0, int y0, int width, int height,
        int* sx, int* sy, int* sw, int* sh)
    void warp_prepare(warp_source* source, int x0, int count, int32_t* steps)
    void warp_row(const warp_source* source, int x0, int count, int y, uint8_t* out)
    void warp_row_at(int level, const warp_source* source, int x0, int count, int y, uint8_t* out)


# The table that `warp_source.weights` has to point at: made when the module is imported, for all
# threads; NULL for methods that need none.
cdef const int16_t* warp_weights(int method) noexcept nogil
