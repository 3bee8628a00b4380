"""C declarations of affine colour maps: their application to pixels, and how they are drawn."""

from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int64_t, uint8_t

from iterators.images.augment.draw cimport ImageKey


cdef extern from "iterators/images/augment/linear_colour.h" nogil:
    ctypedef struct linear_colour:
        float[3][3] matrix
        float[3] offset
    void linear_colour_sums(const uint8_t* pixels, ptrdiff_t count, int64_t* sums)
    void linear_colour_row(
        const linear_colour* colour, int dtype, const uint8_t* row, int width, int mirror,
        void* slot_row, ptrdiff_t pixel_stride, ptrdiff_t channel_stride)


# The steps of one image in their order, with what was drawn for it.
cdef struct ColourSteps:
    int order[3]            # of brightness 0, contrast 1, saturation 2
    double factor[3]        # 1 for off
    double hue              # radians
    double noise[3]
    bint grey


# The largest changes of a recipe.
cdef struct ColourRecipe:
    double change[3]        # brightness, contrast, saturation
    double hue              # share of a half turn
    double noise
    double grey             # probability


cdef void load_colours(ColourRecipe* target, recipe)
cdef void draw_colours(const ColourRecipe* recipe, const ImageKey* image,
                       ColourSteps* steps) noexcept nogil
# The one map that all steps make, followed by (x - mean) * factor; `average` is the mean pixel.
cdef void compose(const ColourSteps* steps, const double* average, const float* mean,
                  const float* factor, linear_colour* colour) noexcept nogil
