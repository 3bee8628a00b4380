"""Write finished rows of an image into their slot in a batch, normalised on the way.

What a recipe erases is erased there, after the last row.
"""

from libc.stddef cimport ptrdiff_t
from libc.stdint cimport uint8_t

from iterators.images.augment.draw cimport ImageKey
from iterators.images.augment.erasing cimport Eraser
from iterators.images.augment.geometry cimport Geometry, Step, Target
from recordio.kernels.normalise cimport (
    normalise_deep_row, normalise_row, normalise_streams,
)
from iterators.images.plan cimport RenderPlan

cdef extern from "recordio/kernels/cache_hints.h" nogil:
    void prefetch_for_writing(const void* memory, size_t size)


cdef class RowWriter:
    """Writes images that fill their slots; serves one renderer."""

    def __cinit__(self, RenderPlan plan not None):
        self.plan, self.whole = plan, False
        if plan.recipe.random_erasing:
            self.eraser = Eraser(plan.recipe, plan.most_width)

    cdef void begin(self, const Target* target, const ImageKey* image,
                    const Geometry* geometry) noexcept nogil:
        cdef const Step* last = &geometry.steps[geometry.count - 1]
        self.normalise = self.plan.normalise
        self.target, self.y, self.sample, self.lost = target[0], 0, 1, False
        self.mirror, self.flip = geometry.mirror, geometry.flip
        if self.eraser is not None:
            self.eraser.draw(image, last.out_width, last.out_height)

    cdef void write(self, const uint8_t* rows, ptrdiff_t stride, int count) noexcept nogil:
        cdef int i, channel
        cdef char* target
        put_rows(self, rows, stride, count, self.mirror)
        count = min(count, self.target.height - self.y)
        target = self.row_at(self.y)
        if self.target.pixel_stride != 1 or normalise_streams(
                &self.normalise, self.target.width, target, self.target.pixel_stride,
                self.target.channel_stride):
            return
        # The next rows come when the decoder is done with them; until then their memory can.
        for i in range(count):
            for channel in range(self.plan.channels):
                prefetch_for_writing(
                    self.row_at(self.y + i)
                    + channel * self.target.channel_stride * self.plan.item_size,
                    self.target.width * self.plan.item_size)

    cdef void end(self) noexcept nogil:
        if self.eraser is not None:
            self.eraser.erase(self.target.data, &self.normalise, self.target.row_stride,
                              self.target.pixel_stride, self.target.channel_stride)

    cdef void put(self, const uint8_t* row, bint mirror) noexcept nogil:
        put_rows(self, row, 0, 1, mirror)

    cdef char* row_at(self, int y) noexcept nogil:
        if self.flip:
            y = self.target.height - 1 - y
        return <char*>self.target.data + y * self.target.row_stride * self.plan.item_size


cdef void put_rows(RowWriter writer, const uint8_t* rows, ptrdiff_t stride, int count,
                   bint mirror) noexcept nogil:
    """Normalise the next rows of the slot."""
    cdef const Target* target = &writer.target
    cdef int i
    for i in range(count):
        if writer.sample == 1:
            normalise_row(&writer.normalise, rows + i * stride, target.width, writer.y, mirror,
                          writer.row_at(writer.y), target.pixel_stride, target.channel_stride)
        elif normalise_deep_row(&writer.normalise, rows + i * stride, writer.sample, target.width,
                                writer.y, mirror, writer.row_at(writer.y), target.pixel_stride,
                                target.channel_stride):
            writer.lost = True
        writer.y += 1
