from libc.stddef cimport ptrdiff_t
from libc.stdint cimport uint8_t

from iterators.images.augment.draw cimport ImageKey
from iterators.images.augment.geometry cimport Geometry, Target
from iterators.images.augment.pixel_changes cimport Eraser
from iterators.images.plan cimport RenderPlan
from recordio.kernels.normalise cimport normalise_recipe


# Puts the rows of one finished image after the other into a batch: begin, write, write, ..., end.
cdef class RowWriter:
    cdef RenderPlan plan
    cdef Eraser eraser              # None if nothing is erased
    cdef bint whole                 # all rows have to come in one call
    cdef normalise_recipe normalise     # of the image at work, from `begin` to `end`
    cdef Target target                  # of that image
    cdef bint mirror
    cdef bint flip
    cdef int y                      # of the next row
    cdef int sample                 # bytes of a channel: 1, or 2 (uint16) or 4 (float32)
    cdef bint lost                  # a value could not be stored

    cdef void begin(self, const Target* target, const ImageKey* image,
                    const Geometry* geometry) noexcept nogil
    cdef void write(self, const uint8_t* rows, ptrdiff_t stride, int count) noexcept nogil
    cdef void end(self) noexcept nogil
    # One row of the slot, of pixels of any size.
    cdef void put(self, const uint8_t* row, bint mirror) noexcept nogil
    # Where a row begins.
    cdef char* row_at(self, int y) noexcept nogil
