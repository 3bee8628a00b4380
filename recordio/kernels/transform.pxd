"""C declarations of Pillow's Image.transform; the code is header-only (`transform.h`)."""

from libc.stdint cimport uint8_t


cdef extern from "recordio/kernels/transform.h" nogil:
    ctypedef struct affine_image:
        const uint8_t* pixels
        int width
        int height
        int channels

    ctypedef struct transform_map:
        double matrix[8]
        int perspective
        int method
        int width
        int height
        uint8_t fill[4]

    void transform_window(
        int level, const transform_map* map, const affine_image* image, int left, int top,
        int width, int height, uint8_t* out)
    void transform_rotation(
        double degrees, int width, int height, int expand, transform_map* map)
    void transform_affine(
        double degrees, double translate_x, double translate_y, double scale, double shear_x,
        double shear_y, int width, int height, transform_map* map)
    int transform_perspective(
        const int (*ends)[2], int width, int height, transform_map* map)
