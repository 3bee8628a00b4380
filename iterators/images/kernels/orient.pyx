"""Turn images upright as the EXIF orientation says: the Python face of ``orient.h``."""

from libc.stdint cimport uint8_t

import numpy as np

__all__ = ["orient", "orient_region"]


def orient(image, int orientation):
    """Turn an image upright.

    Parameters
    ----------
    image : numpy.ndarray
        uint8 of shape (height, width, channels).
    orientation : int
        EXIF orientation 1 to 8.

    Returns
    -------
    numpy.ndarray
        A new array; (width, height, channels) for orientations 5 to 8.

    Examples
    --------
    >>> import numpy
    >>> image = numpy.arange(6, dtype="uint8").reshape(2, 3, 1)
    >>> orient(image, 6)[:, :, 0].tolist()
    [[3, 0], [4, 1], [5, 2]]
    """
    cdef const uint8_t[:, :, ::1] source = np.ascontiguousarray(image)
    cdef uint8_t[:, :, ::1] target
    cdef int height = source.shape[0], width = source.shape[1], channels = source.shape[2]
    if not 1 <= orientation <= 8:
        raise ValueError(f"the orientation must be 1 to 8, not {orientation}")
    exchange = orient_exchanges_sides(orientation)
    result = np.empty(
        (width, height, channels) if exchange else (height, width, channels), np.uint8
    )
    if result.size:
        target = result
        with nogil:
            orient_image(
                &source[0, 0, 0], <ptrdiff_t>width * channels, width, height, channels,
                orientation, &target[0, 0, 0], <ptrdiff_t>target.shape[1] * channels,
            )
    return result


def orient_region(int width, int height, int orientation, region):
    """Find the region of the stored image that a region of the upright image is made of.

    Parameters
    ----------
    width, height : int
        Size of the stored image in pixels.
    orientation : int
        EXIF orientation 1 to 8.
    region : tuple of int
        ``(x, y, width, height)`` in the upright image.

    Returns
    -------
    tuple of int
        ``(x, y, width, height)`` in the stored image.

    Examples
    --------
    >>> orient_region(100, 60, 6, (0, 0, 10, 20))
    (0, 50, 20, 10)
    """
    cdef int x, y, wide, high
    x, y, wide, high = region
    orient_rectangle(width, height, orientation, &x, &y, &wide, &high)
    return x, y, wide, high
