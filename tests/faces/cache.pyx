"""Images put into a cache and taken out of it, as the image stage does without Python."""

import numpy as np

from libc.stdint cimport int64_t, uint8_t

from iterators.images.cache.image_cache cimport (
    CACHE_ABSENT, CACHE_FOUND, CachedImage, ImageCache,
)


def store(ImageCache cache, int64_t number, const uint8_t[:, :, ::1] pixels, source_size=None):
    """Put an image, (height, width, channels), into a cache.

    `source_size` is (width, height) of the image that these pixels were made from; theirs if not
    given.  Return False if it was there already or has no room.
    """
    cdef CachedImage image, there
    cdef bint done
    check_number(cache, number)
    assert pixels.shape[2] == cache.channels
    image.pixels = &pixels[0, 0, 0]
    image.height, image.width = pixels.shape[0], pixels.shape[1]
    image.source_width, image.source_height = source_size or (image.width, image.height)
    with nogil:
        done = (cache.find(number, &there) == CACHE_ABSENT
                and cache.has_room(image.width, image.height) and cache.put(number, &image))
    return done


def load(ImageCache cache, int64_t number):
    """Return the image of a record, copied, and the (width, height) of its source.

    None if it is not there, or is damaged.
    """
    cdef CachedImage image
    cdef int status
    check_number(cache, number)
    with nogil:
        status = cache.find(number, &image)
    if status != CACHE_FOUND:
        return None
    pixels = <const uint8_t[:image.height, :image.width, :cache.channels]>image.pixels
    return np.array(pixels), (image.source_width, image.source_height)


cdef int check_number(ImageCache cache, int64_t number) except -1:
    if not 0 <= number < cache.count:
        raise IndexError(f"record {number} of {cache.count}")
    return 0
