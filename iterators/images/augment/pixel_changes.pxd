from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int64_t, uint64_t, uint8_t

from iterators.images.augment.draw cimport ImageKey
from recordio.kernels.normalise cimport normalise_recipe
from recordio.kernels.transform cimport transform_map


# Takes one map by which the pixels of a finished image moved.
ctypedef void (*take_map)(void* path, const transform_map* how) noexcept nogil


# One kind of change of the pixels of an image, between its last step and its normalisation.
cdef struct Change:
    void* state             # of the functions below
    bint finished           # made to the finished image, wherever the geometry has the others made
    # Say how large that image will be, before `draw`; NULL where nothing drawn depends on it.
    void (*expect)(void* state, int width, int height) noexcept nogil
    # Draw what happens to an image: whether any pixel changes.  What acts on normalised values
    # changes the normalisation instead.
    bint (*draw)(void* state, const ImageKey* image, normalise_recipe* normalise) noexcept nogil
    # Change packed pixels as was drawn: 0, or -1 if there was no memory.
    int (*apply)(void* state, uint8_t* pixels, int channels, int width, int height) noexcept nogil
    # Tell how the pixels of an image of that size move, one map after the other, for fields; NULL
    # where all stay.
    void (*follow)(void* state, int width, int height, take_map take, void* path) noexcept nogil
    bint mixes              # several copies of the image that may have moved differently


# Owner of a change and its state; the base of what `changes` lists.
cdef class PixelChange:
    cdef Change change


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


# Numbers drawn for one image, with which the state of a `FaceChange` begins.
cdef struct DrawnFace:
    bint crops
    int x
    int y
    int crop_width
    int crop_height
    bint lowers
    int small_width
    int small_height
    int down                # methods of `resample`
    int up


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
    cdef void draw_rectangles(self, const ImageKey* image, int full_width,
                              int full_height) noexcept nogil
    # Strides in elements: of neighbouring rows, pixels and channels.
    cdef void erase(self, void* slot, const normalise_recipe* normalise, ptrdiff_t row_stride,
                    ptrdiff_t pixel_stride, ptrdiff_t channel_stride) noexcept nogil
