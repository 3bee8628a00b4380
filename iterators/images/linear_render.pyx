"""The part of a renderer that differs for an `Augmenter`, and the plan that chooses it.

The changes of colour of an `Augmenter` and the normalisation are one affine map of RGB, applied in
float while the finished image is written to its slot.
"""

from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int64_t, uint8_t

from iterators.images.augment.draw cimport ImageKey
from iterators.images.augment.geometry cimport Geometry, Target
from iterators.images.augment.jitter cimport (
    ColourRecipe, ColourSteps, compose, draw_colours, linear_colour, linear_colour_row,
    linear_colour_sums, load_colours,
)
from iterators.images.plan cimport RenderPlan
from iterators.images.row_writer cimport RowWriter

from iterators.core.dtypes import FLOAT_TYPES

__all__ = ["LinearPlan"]


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
