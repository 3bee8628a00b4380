"""C declarations of the colour kernels; the code is header-only (`colour.h`)."""

from libc.stdint cimport int64_t, uint8_t


cdef extern from "recordio/kernels/colour.h" nogil:
    void colour_brightness(uint8_t* row, int n, float factor)
    int64_t colour_grey_sum(const uint8_t* row, int width)
    float colour_contrast_offset(float factor, int64_t grey_sum, int64_t pixels)
    void colour_contrast(uint8_t* row, int n, float factor, float offset)
    void colour_saturation(uint8_t* row, int width, float factor)
    void colour_hls(uint8_t* row, int width, int dh, int dl, int ds)
    void colour_lighting(uint8_t* row, int width, const float* delta)

    void colour_scale_at(int level, uint8_t* row, int n, float factor, float offset)
    int64_t colour_grey_sum_at(int level, const uint8_t* row, int width)
    void colour_saturation_at(int level, uint8_t* row, int width, float factor)
    void colour_hls_at(int level, uint8_t* row, int width, int dh, int dl, int ds)
    void colour_lighting_at(int level, uint8_t* row, int width, const float* delta)
