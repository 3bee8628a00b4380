"""Regions of images that are turned upright, by ``orient.h``."""

from recordio.kernels.orient cimport orient_rectangle


def orient_region(int width, int height, int orientation, region):
    """Find the region (x, y, width, height) of the stored image for one of the upright image.

    `width` and `height` are those of the stored image.
    """
    cdef int x, y, wide, high
    x, y, wide, high = region
    orient_rectangle(width, height, orientation, &x, &y, &wide, &high)
    return x, y, wide, high
