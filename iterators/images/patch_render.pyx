"""The part of a renderer that differs for images in patches, and the plan that chooses it.

The patches of an image follow one another from left to right and from top to bottom, and so do the
pixels in each and the channels of a pixel, as timm's NaFlex models take them.
"""

from libc.stddef cimport ptrdiff_t
from libc.stdint cimport uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from iterators.images.augment.draw cimport ImageKey
from iterators.images.augment.geometry cimport Geometry, Step, Target
from iterators.images.plan cimport RenderPlan
from iterators.images.row_writer cimport RowWriter
from recordio.kernels.normalise cimport normalise_row

__all__ = ["PatchPlan"]

cdef enum:
    UNALIGNED = 32          # bytes: a row that begins at a cache line is written past the caches


cdef class PatchPlan(RenderPlan):
    """`RenderPlan` for batches of patches, squares with sides of `patch` pixels."""

    def __init__(self, recipe, *, int patch, **more):
        super().__init__(recipe, **more)
        self.patch = patch

    def find_cuts(self):
        """Return the keyword: patches are resized."""
        return ("patches",)

    def parts(self):
        """Return the parts, as `RenderPlan.parts` does."""
        labels, geometry, changes, _ = super().parts()
        return labels, geometry, changes, PatchWriter(self)


cdef class PatchWriter(RowWriter):
    """Writes images whose sides are multiples of those of a patch, and what there is of patches."""

    cdef char* memory
    cdef char* row              # of normalised pixels

    def __cinit__(self, RenderPlan plan not None):
        self.memory = <char*>malloc(
            <size_t>plan.most_width * plan.channels * plan.item_size + 64 + UNALIGNED)
        if self.memory == NULL:
            raise MemoryError
        self.row = self.memory + (64 - <size_t>self.memory % 64) % 64 + UNALIGNED

    def __dealloc__(self):
        free(self.memory)

    cdef void begin(self, const Target* target, const ImageKey* image,
                    const Geometry* geometry) noexcept nogil:
        cdef const Step* last = &geometry.steps[geometry.count - 1]
        RowWriter.begin(self, target, image, geometry)
        self.target.width, self.target.height = last.out_width, last.out_height

    cdef void write(self, const uint8_t* rows, ptrdiff_t stride, int count) noexcept nogil:
        cdef int side = self.plan.patch, across = self.target.width // side, i, x, y
        cdef size_t part = <size_t>side * self.plan.channels * self.plan.item_size
        cdef char* out
        for i in range(count):
            normalise_row(&self.normalise, rows + i * stride, self.target.width, self.y,
                          self.mirror, self.row, self.plan.channels, 1)
            y = self.target.height - 1 - self.y if self.flip else self.y
            out = <char*>self.target.data + (
                <size_t>(y // side) * across * side + y % side) * part
            for x in range(across):
                memcpy(out + x * side * part, self.row + x * part, part)
            self.y += 1

    cdef void end(self) noexcept nogil:
        """Clear the patches that the image does not have, and say where the others lie."""
        cdef int side = self.plan.patch, across = self.target.width // side, i
        cdef int count = self.target.height // side * across
        cdef size_t part = <size_t>side * side * self.plan.channels * self.plan.item_size
        RowWriter.end(self)
        memset(<char*>self.target.data + count * part, 0, (self.target.length - count) * part)
        for i in range(count):
            self.target.coordinates[2 * i] = i // across
            self.target.coordinates[2 * i + 1] = i % across
        memset(self.target.coordinates + 2 * count, 0,
               2 * (self.target.length - count) * sizeof(self.target.coordinates[0]))
        memset(self.target.marks, 1, count)
        memset(self.target.marks + count, 0, self.target.length - count)
