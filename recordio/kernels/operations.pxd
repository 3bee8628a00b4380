"""C declarations of the operations of recipes; the code is header-only (`operations.h`)."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t


cdef extern from "recordio/kernels/operations.h" nogil:
    enum:
        AFFINE_NEAREST
        AFFINE_BILINEAR
        AFFINE_BICUBIC
        AFFINE_LARGEST_SIDE
        PIXEL_SLACK

    ctypedef enum operation_kind:
        OPERATION_BRIGHTNESS
        OPERATION_COLOUR
        OPERATION_CONTRAST
        OPERATION_HUE
        OPERATION_COUNT

    ctypedef struct operation:
        operation_kind kind
        float value
        int method

    ctypedef struct operation_image:
        uint8_t* pixels
        int width
        int height
        int channels
        uint8_t fill[4]
        uint8_t* room

    ctypedef struct operation_row:
        const char* name
        int low
        int high

    const operation_row* operation_rows()
    size_t operation_room(int width, int height, int channels, double deviation)
    int operation_is_geometric(operation_kind kind)
    void operation_matrix(const operation* done, int width, int height, double* matrix)
    void operation_apply(const operation* done, operation_image* image)
    void operation_apply_at(int level, const operation* done, operation_image* image)
