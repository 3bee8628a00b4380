"""One record becomes one sample whose colours were changed in float, without the GIL.

`LinearRenderer` is the renderer of `render` with one difference: the changes of colour of an
`Augmenter` and the normalisation are one affine map of RGB, applied while the finished image is
written to its place.  Decoding, crops and resizes are not done here.
"""

from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memset

from iterators.images.augment.draw cimport ImageKey
from iterators.images.augment.geometry cimport load_recipe
from iterators.images.augment.jitter cimport Jitter
from iterators.images.layers cimport Sink
from iterators.images.augment.linear_colour cimport (
    Steps, StepsRecipe, compose, draw_steps, linear_colour, linear_colour_row, linear_colour_sums,
    load_steps,
)
from iterators.images.render cimport Renderer
from iterators.images.plan cimport RenderPlan


cdef class LinearPlan(RenderPlan):
    """`RenderPlan` for an `Augmenter`.

    Parameters
    ----------
    recipe : Augmenter
    dtype : {"float32", "float16"}
    **more
        As for `RenderPlan`.
    """

    cdef StepsRecipe steps
    cdef bint coloured

    def __init__(self, recipe, *, dtype="float32", **more):
        if dtype not in ("float32", "float16"):
            raise ValueError(f"dtype={dtype!r}: colours changed in float need float32 or float16")
        super().__init__(recipe, dtype=dtype, **more)

    def _load(self, recipe):
        load_recipe(&self.geometry, recipe)
        memset(&self.jitter, 0, sizeof(self.jitter))
        load_steps(&self.steps, recipe)
        self.coloured = recipe.coloured

    def renderer(self):
        """A renderer of the kind that this plan needs."""
        return LinearRenderer(self)


cdef class LinearRenderer(Renderer):
    """Renders samples with colours changed in float one after the other; see the module.

    Parameters
    ----------
    plan : LinearPlan

    Examples
    --------
    >>> import numpy as np
    >>> from recordio import IRHeader, pack_img
    >>> from iterators.images.augment.augmenter import CreateAugmenter
    >>> record = pack_img(IRHeader(0, 3.0, 7, 0), np.full((9, 9, 3), 90, np.uint8), img_fmt=".png")
    >>> augmenter = CreateAugmenter((3, 4, 4), rand_gray=1)
    >>> data, _, _ = LinearRenderer(LinearPlan(augmenter)).sample(record)
    >>> data.shape, round(float(data[0, 0, 0, 0]))
    ((1, 3, 4, 4), 90)
    """

    cdef LinearPlan linear_plan
    cdef Steps steps            # of the image at work

    def __cinit__(self, LinearPlan plan):
        self.linear_plan = plan

    cdef void draw_colours(self, const ImageKey* image, Jitter* jitter) noexcept nogil:
        memset(jitter, 0, sizeof(Jitter))
        jitter.gain = 1
        # The image is finished before its colours change: a contrast needs the mean of all of it.
        jitter.colours = self.linear_plan.coloured
        if jitter.colours:
            draw_steps(&self.linear_plan.steps, image, &self.steps)

    cdef void finish_rows(self, Sink* sink, const uint8_t* rows, ptrdiff_t stride,
                          int count) noexcept nogil:
        """The whole image at once if its colours change."""
        cdef linear_colour colour
        cdef int64_t[3] sums = [0, 0, 0]
        cdef double[3] average
        cdef int i
        if sink.slot == NULL:
            return
        if not self.linear_plan.coloured:
            Renderer.finish_rows(self, sink, rows, stride, count)
            return
        for i in range(count):
            linear_colour_sums(rows + i * stride, self.plan.width, sums)
        for i in range(3):
            average[i] = <double>sums[i] / (<double>count * self.plan.width)
        compose(&self.steps, average, sink.normalise.mean, sink.normalise.factor, &colour)
        for i in range(count):
            linear_colour_row(
                &colour, sink.normalise.dtype, rows + i * stride, self.plan.width, sink.mirror,
                <char*>sink.slot + sink.y * self.plan.row_stride * self.plan.item_size,
                self.plan.pixel_stride, self.plan.channel_stride)
            sink.y += 1
