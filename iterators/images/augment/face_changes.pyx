"""AdaFace's changes of faces: a part of the image on black, and low resolution.

Both are drawn per image, each with its probability, in this order.  Resizing is that of `resample`,
which is OpenCV's.
"""

from libc.math cimport exp, log, rint, sqrt
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from iterators.images.augment.draw cimport (
    DRAW_PHOTOMETRIC, ImageKey, draw, draw_between, draw_integer, philox_block, philox_unit,
)
from iterators.images.augment.pixel_change cimport PixelChange
from recordio.kernels.normalise cimport normalise_recipe
from recordio.kernels.operations cimport PIXEL_SLACK
from recordio.kernels.resample cimport (
    resample_axis, resampler, resampler_begin, resampler_free, resampler_new, resampler_push,
    resampler_source,
)

cdef enum:
    TRIES = 10              # of a part of the image
    METHODS = 5             # nearest, bilinear, cubic, area, Lanczos

# Purposes of the blocks of random numbers of DRAW_PHOTOMETRIC, beside those of `photometric`.
cdef enum Block:
    CHANCES = 4             # of the part and of low resolution; the side
    INTERPOLATIONS = 5      # down and up; x and y of a part
    PART = 6                # area, ratio, x, y: 6 ... 15

# Range of a part's width / height.
cdef double LEAST_RATIO = 3.0 / 4
cdef double LARGEST_RATIO = 4.0 / 3


cdef struct FaceRecipe:
    int width
    int height
    double crop_chance
    double[2] area
    double low_chance
    double[2] side


cdef struct State:
    DrawnFace drawn
    FaceRecipe recipe
    resampler* resampler
    uint8_t* small          # room for an image


cdef void draw_part(const FaceRecipe* recipe, const ImageKey* image,
                    DrawnFace* drawn) noexcept nogil:
    """Draw the part as torchvision draws the crop of `RandomResizedCrop`."""
    cdef philox_block words
    cdef double area, ratio
    cdef int i
    for i in range(TRIES):
        words = draw(image, DRAW_PHOTOMETRIC + PART + i)
        area = draw_between(words.word[0], recipe.area[0], recipe.area[1])
        area *= <double>recipe.width * recipe.height
        ratio = exp(draw_between(words.word[1], log(LEAST_RATIO), log(LARGEST_RATIO)))
        drawn.crop_width = <int>rint(sqrt(area * ratio))
        drawn.crop_height = <int>rint(sqrt(area / ratio))
        if (0 < drawn.crop_width <= recipe.width and 0 < drawn.crop_height <= recipe.height):
            drawn.x = draw_integer(words.word[2], 0, recipe.width - drawn.crop_width)
            drawn.y = draw_integer(words.word[3], 0, recipe.height - drawn.crop_height)
            return
    # The largest part of a possible ratio, in the middle.
    ratio = <double>recipe.width / recipe.height
    drawn.crop_width, drawn.crop_height = recipe.width, recipe.height
    if ratio < LEAST_RATIO:
        drawn.crop_height = <int>rint(recipe.width / LEAST_RATIO)
    elif ratio > LARGEST_RATIO:
        drawn.crop_width = <int>rint(recipe.height * LARGEST_RATIO)
    drawn.x = (recipe.width - drawn.crop_width) // 2
    drawn.y = (recipe.height - drawn.crop_height) // 2


cdef void expect_face(void* state, int width, int height) noexcept nogil:
    cdef FaceRecipe* recipe = &(<State*>state).recipe
    recipe.width, recipe.height = width, height


cdef bint draw_face(void* state, const ImageKey* image, normalise_recipe* normalise) noexcept nogil:
    cdef const FaceRecipe* recipe = &(<State*>state).recipe
    cdef DrawnFace* drawn = &(<State*>state).drawn
    cdef philox_block chances = draw(image, DRAW_PHOTOMETRIC + CHANCES)
    cdef philox_block methods = draw(image, DRAW_PHOTOMETRIC + INTERPOLATIONS)
    cdef double side = draw_between(chances.word[2], recipe.side[0], recipe.side[1])
    drawn.crops = philox_unit(chances.word[0]) < recipe.crop_chance
    drawn.lowers = philox_unit(chances.word[1]) < recipe.low_chance
    if drawn.crops:
        draw_part(recipe, image, drawn)
    drawn.small_width = max(<int>(side * recipe.width), 1)
    drawn.small_height = max(<int>(side * recipe.height), 1)
    drawn.down = draw_integer(methods.word[0], 0, METHODS - 1)
    drawn.up = draw_integer(methods.word[1], 0, METHODS - 1)
    return drawn.crops or drawn.lowers


cdef void fill_axes(resample_axis* x, resample_axis* y, int width, int height, int out_width,
                    int out_height) noexcept nogil:
    """Describe a whole image that gets another size."""
    x.source = x.stored = width
    x.target = x.count = out_width
    y.source = y.stored = height
    y.target = y.count = out_height
    x.begin = x.origin = y.begin = y.origin = 0
    x.denominator = y.denominator = 1
    x.low = x.high = y.low = y.high = 0


cdef int resize(State* state, int method, const uint8_t* pixels, int width, int height,
                int channels, uint8_t* out, int out_width, int out_height) noexcept nogil:
    """Resize: 0, or -1 if the resampler had no memory for its tables."""
    cdef resample_axis x, y
    cdef ptrdiff_t stride = <ptrdiff_t>width * channels
    cdef int row, left, top, columns, rows
    fill_axes(&x, &y, width, height, out_width, out_height)
    if resampler_begin(state.resampler, method, &x, &y, channels, out, out_width * channels):
        return -1
    resampler_source(state.resampler, &left, &top, &columns, &rows)
    for row in range(top, top + rows):
        resampler_push(state.resampler, pixels + row * stride + left * channels)
    return 0


cdef int apply_face(void* state, uint8_t* pixels, int channels, int width,
                    int height) noexcept nogil:
    cdef State* face = <State*>state
    cdef const DrawnFace* drawn = &face.drawn
    cdef ptrdiff_t stride = <ptrdiff_t>width * channels
    cdef uint8_t* row
    cdef int y, right
    if drawn.crops:
        right = drawn.x + drawn.crop_width
        for y in range(height):
            row = pixels + y * stride
            if drawn.y <= y < drawn.y + drawn.crop_height:
                memset(row, 0, <size_t>drawn.x * channels)
                memset(row + right * channels, 0, <size_t>(width - right) * channels)
            else:
                memset(row, 0, stride)
    if drawn.lowers:
        if resize(face, drawn.down, pixels, width, height, channels, face.small, drawn.small_width,
                  drawn.small_height):
            return -1
        return resize(face, drawn.up, face.small, drawn.small_width, drawn.small_height, channels,
                      pixels, width, height)
    return 0


cdef class FaceChange(PixelChange):
    """`crop_on_fill` and `low_resolution` of a `Recipe`; see `PixelChange`."""

    cdef State state

    def __cinit__(self, recipe):
        cdef State* state = &self.state
        memset(state, 0, sizeof(State))
        channels, height, width = recipe.data_shape
        state.recipe.width, state.recipe.height = width, height
        state.recipe.crop_chance, state.recipe.low_chance = (
            recipe.crop_on_fill, recipe.low_resolution)
        state.recipe.area[0], state.recipe.area[1] = recipe.crop_on_fill_area
        state.recipe.side[0], state.recipe.side[1] = recipe.low_resolution_side
        state.resampler = resampler_new()
        state.small = <uint8_t*>malloc(<size_t>width * height * channels + PIXEL_SLACK)
        if state.resampler == NULL or state.small == NULL:
            raise MemoryError
        self.change.state = state
        self.change.expect = expect_face
        self.change.draw, self.change.apply = draw_face, apply_face

    def __dealloc__(self):
        resampler_free(self.state.resampler)
        free(self.state.small)

    @staticmethod
    def wanted(recipe):
        """Return whether a recipe has one of these changes."""
        return bool(recipe.crop_on_fill or recipe.low_resolution)
