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


# Numbers drawn for one image.
cdef struct Jitter:
    bint colours            # whether any pixel changes
    bint jitters
    bint shifts
    bint noises
    bint exposes
    int order[3]            # of brightness 0, contrast 1, saturation 2
    double factor[3]
    int hue
    int lightness
    int saturation
    float noise[3]          # added to R, G, B
    float gain              # factor of all channels after everything else; 1 for off
    float exposure          # contrast of the normalisation
    float illumination


# Apply what was drawn to packed pixels: RGB, unless there is only a gain.  A `Change.apply` for a
# state that begins with a Jitter.
cdef int jitter_image(void* state, uint8_t* pixels, int channels, int width,
                      int height) noexcept nogil


# The changes of one image that are made in float, in their order.
cdef struct ColourSteps:
    int order[3]            # as above
    double factor[3]
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
