from libc.stddef cimport ptrdiff_t
from libc.stdint cimport uint8_t, uint64_t

from iterators.images.augment.draw cimport ImageKey
from recordio.kernels.normalise cimport normalise_recipe

cdef enum:
    MAX_RECTANGLES = 16


cdef struct Erased:
    int x
    int y
    int width
    int height


# Content of an erased rectangle.
cdef enum ErasingKind:
    ERASING_LEVEL = 0       # a grey level
    ERASING_MEAN            # 0 after normalisation
    ERASING_COLOUR          # one normal number for every channel
    ERASING_PIXEL           # one for every value


# Draws the rectangles of one image after the other, and erases them from its slot in a batch.
cdef class Eraser:
    cdef double chance
    cdef double area[2]
    cdef double log_ratio[2]
    cdef int counts[2]
    cdef ErasingKind kind
    cdef float level
    cdef float[4] mean      # of integer pixels, in grey levels
    cdef float[4] deviation
    cdef int channels
    cdef uint8_t* row       # of integer pixels, before they are written
    # Of the image at work.
    cdef int count
    cdef Erased rectangles[MAX_RECTANGLES]
    cdef uint64_t noise

    # The size is that of the image, which may be smaller than its slot.
    cdef void draw(self, const ImageKey* image, int full_width, int full_height) noexcept nogil
    # Strides in elements: of neighbouring rows, pixels and channels.
    cdef void erase(self, void* slot, const normalise_recipe* normalise, ptrdiff_t row_stride,
                    ptrdiff_t pixel_stride, ptrdiff_t channel_stride) noexcept nogil
