"""C declarations of torchvision's Gaussian blur; the code is header-only (`gaussian.h`)."""

from libc.stdint cimport uint8_t


cdef extern from "recordio/kernels/gaussian.h" nogil:
    enum:
        GAUSSIAN_LARGEST

    ctypedef struct gaussian_taps:
        int radius

    gaussian_taps gaussian_of(int side, double deviation)
    size_t gaussian_room(int width, int height, int channels, int side)
    void gaussian_blur(
        int level, const gaussian_taps* taps, uint8_t* pixels, int width, int height, int channels,
        uint8_t* room)
