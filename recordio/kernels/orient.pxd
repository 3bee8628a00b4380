"""The EXIF orientations for `cimport`; `orient.h` describes the functions."""

from libc.stdint cimport uint8_t


cdef extern from "recordio/kernels/orient.h" nogil:
    bint orient_exchanges_sides(int orientation) noexcept
    void orient_image(const uint8_t* src, ptrdiff_t stride, int width, int height, int channels,
                      int orientation, uint8_t* dst, ptrdiff_t dst_stride) noexcept
    void orient_rectangle(int width, int height, int orientation, int* x, int* y,
                          int* rectangle_width, int* rectangle_height) noexcept
