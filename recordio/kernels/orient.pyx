"""Turn images upright as the EXIF orientation says: the Python face of ``orient.h``."""

from libc.stdint cimport uint8_t

import numpy as np

__all__ = ["orient"]


def orient(image, int orientation):
    """Turn a (height, width, channels) image upright; 5 to 8 exchange height and width."""
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
