"""Write finished rows of an image into their slot in a batch, normalised on the way.

What a recipe erases is erased there, after the last row.

A `LinearPlan` is that of an `Augmenter`, whose changes of colour and normalisation are one affine
map of RGB, applied in float while the finished image is written.  A `PatchPlan` is that of images
in patches, which follow one another from left to right and from top to bottom, as do the pixels in
each and the channels of a pixel: timm's NaFlex models take them so.
"""

from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from iterators.images.augment.geometry cimport Step
from iterators.images.augment.pixel_changes cimport (
    ColourRecipe, ColourSteps, compose, draw_colours, linear_colour, linear_colour_row,
    linear_colour_sums, load_colours,
)
from recordio.kernels.normalise cimport normalise_deep_row, normalise_row, normalise_streams

from ..core.dtypes import FLOAT_TYPES


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
            self.eraser.draw_rectangles(image, last.out_width, last.out_height)

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


# ---- affine colours ----


cdef class LinearPlan(RenderPlan):
    """`RenderPlan` for an `Augmenter`, of float pixels.

    >>> import numpy as np
    >>> from recordio import IRHeader, pack_img
    >>> from iterators.images.augment.augmenter import described_augmenter
    >>> from iterators.images.render import Renderer
    >>> record = pack_img(IRHeader(0, 3.0, 7, 0), np.full((9, 9, 3), 90, np.uint8), img_fmt=".png")
    >>> augmenter = described_augmenter((3, 4, 4), rand_gray=1)
    >>> data, _, _ = Renderer(LinearPlan(augmenter)).sample(record)
    >>> data.shape, round(float(data[0, 0, 0, 0]))
    ((1, 3, 4, 4), 90)
    """

    def __init__(self, recipe, *, dtype="float32", **more):
        if dtype not in FLOAT_TYPES:
            raise ValueError(f"dtype={dtype!r}: colours changed in float need one of {FLOAT_TYPES}")
        super().__init__(recipe, dtype=dtype, **more)

    def find_cuts(self):
        """Return the name of the iterators, which give 8 bits as those of MXNet do."""
        return ("ImageIter or ImageDetIter (as in MXNet)",)

    def parts(self):
        """Return the parts, as `RenderPlan.parts` does."""
        labels, geometry, changes, writer = super().parts()
        return labels, geometry, changes, LinearWriter(self) if self.recipe.coloured else writer


cdef class LinearWriter(RowWriter):
    """Writes images whose colours change on the way.

    The whole image comes at once: a contrast needs the mean of all of it.
    """

    cdef ColourRecipe recipe
    cdef ColourSteps steps      # of the image at work

    def __cinit__(self, RenderPlan plan not None):
        load_colours(&self.recipe, plan.recipe)
        self.whole = True

    cdef void begin(self, const Target* target, const ImageKey* image,
                    const Geometry* geometry) noexcept nogil:
        RowWriter.begin(self, target, image, geometry)
        draw_colours(&self.recipe, image, &self.steps)

    cdef void write(self, const uint8_t* rows, ptrdiff_t stride, int count) noexcept nogil:
        cdef linear_colour colour
        cdef int64_t[3] sums = [0, 0, 0]
        cdef double[3] average
        cdef int i
        for i in range(count):
            linear_colour_sums(rows + i * stride, self.target.width, sums)
        for i in range(3):
            average[i] = <double>sums[i] / (<double>count * self.target.width)
        compose(&self.steps, average, self.normalise.mean, self.normalise.factor, &colour)
        for i in range(count):
            linear_colour_row(
                &colour, self.normalise.dtype, rows + i * stride, self.target.width, self.mirror,
                self.row_at(i), self.target.pixel_stride, self.target.channel_stride)


# ---- patches ----

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
