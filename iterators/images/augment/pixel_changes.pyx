"""Changes of the pixels of one image: their base, MXNet's colours, AdaFace's faces, and erasing.

A `PixelChange` draws its own random numbers and keeps them until they are applied; it is called
without the GIL.  `changes` lists all of them, so that a renderer can run any number.

MXNet's colours are brightness, contrast and saturation in random order, then hue / lightness /
saturation, then noise along the principal colours of ImageNet: MXNet's steps in its order, with the
arithmetic of `colour`, applied to the finished pixels.  The contrast and illumination that act on
normalised values are drawn here as well.  Images with boxes have hue, lightness and saturation
first, then contrast as a factor of all values, each with a probability.

For `mx.image.CreateAugmenter` every step is an affine map of RGB, and all of them together one:
brightness, contrast and saturation, hue, noise, greying, and then normalisation.  Nothing is
rounded or cut off in between; the renderer applies the result once.

AdaFace changes faces: a part of the image on black, and low resolution, each with its probability,
in this order.  Resizing is that of `resample`, which is OpenCV's.

An `Eraser` writes over rectangles of the finished image, in its slot in a batch.  Area, ratio and
position are drawn as torchvision and timm draw them, whose rules are the same.  The values are
those after normalisation; integer pixels have none, and get what it would make of them.
"""

from libc.math cimport cos, exp, log, rint, sin, sqrt
from libc.stdint cimport uint32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from iterators.images.augment.draw cimport (
    DRAW_ERASING, DRAW_EXPOSURE, DRAW_HUE, DRAW_JITTER, DRAW_LIGHTNESS, DRAW_NOISE,
    DRAW_PHOTOMETRIC, DRAW_RECTANGLE, DRAW_SHIFTS, DRAW_SHIFT_CHANCES, DRAW_TURN, draw,
    draw_between, draw_integer, philox_block, philox_unit,
)
from recordio.kernels.colour cimport (
    colour_brightness, colour_contrast, colour_contrast_offset, colour_grey_sum, colour_hls,
    colour_lighting, colour_saturation,
)
from recordio.kernels.normalise cimport normalise_is_float, normalise_row, normalise_store_float
from recordio.kernels.operations cimport PIXEL_SLACK
from recordio.kernels.resample cimport (
    resample_axis, resampler, resampler_begin, resampler_free, resampler_new, resampler_push,
    resampler_source,
)

from statistics import NormalDist

from .policy_options import ERASING_VALUES, MOST_RECTANGLES


cdef class PixelChange:
    """Base class of the owner of a change: made of a recipe."""

    def __cinit__(self, *args, **keywords):
        memset(&self.change, 0, sizeof(Change))


# ---- colours of MXNet ----

cdef enum:
    BRIGHTNESS = 0
    CONTRAST = 1
    SATURATION = 2

# Principal components of the colours of ImageNet: eigenvalues, and eigenvectors as rows R, G, B.
cdef double[3] EIGENVALUES = [55.46, 4.794, 1.148]
cdef double[9] EIGENVECTORS = [
    -0.5675, 0.7192, 0.4009,
    -0.5808, -0.0045, -0.8140,
    -0.5836, -0.6948, 0.4203,
]


cdef struct JitterRecipe:
    bint colours            # whether any pixel changes
    bint jitters            # brightness, contrast, saturation
    bint shifts             # hue, saturation, lightness
    bint exposes
    double change[3]        # brightness, contrast, saturation
    int hue
    int lightness
    int saturation_shift
    double noise
    double max_contrast
    double max_illumination


cdef struct JitterState:
    Jitter drawn            # first, for `jitter_image`
    JitterRecipe recipe


cdef inline int draw_shift(unsigned int first, unsigned int second, int largest) noexcept nogil:
    """Draw as MXNet: most weight on the second of two uniform numbers, truncated toward zero."""
    cdef double position = (philox_unit(first) + 4 * philox_unit(second)) / 5
    return <int>(position * 2 * largest - largest)


cdef inline double draw_normal(unsigned int first, unsigned int second) noexcept nogil:
    """Draw a standard normal number from two words (Box and Muller 1958)."""
    cdef double radius = sqrt(-2 * log(1 - philox_unit(first)))
    return radius * cos(6.283185307179586 * philox_unit(second))


cdef bint draw_jitter(void* state, const ImageKey* image,
                      normalise_recipe* normalise) noexcept nogil:
    """Draw everything for one image."""
    cdef const JitterRecipe* recipe = &(<JitterState*>state).recipe
    cdef Jitter* jitter = &(<JitterState*>state).drawn
    jitter.colours, jitter.gain = recipe.colours, 1
    jitter.jitters, jitter.shifts = recipe.jitters, recipe.shifts
    jitter.noises, jitter.exposes = recipe.noise > 0, recipe.exposes
    if recipe.jitters:
        draw_factors(image, recipe.change, jitter.factor, jitter.order)
    if recipe.shifts:
        draw_shifts(recipe, image, jitter)
    if jitter.noises:
        draw_noise(recipe, image, jitter)
    if recipe.exposes:
        draw_exposure(recipe, image, jitter)
        jitter_expose(jitter, normalise)
    return jitter.colours


cdef void draw_factors(const ImageKey* image, const double* change, double* factor,
                       int* order) noexcept nogil:
    """Draw the factors of brightness, contrast and saturation, and the order of the three."""
    cdef philox_block block = draw(image, DRAW_JITTER)
    cdef int number = draw_integer(block.word[3], 0, 5), i
    for i in range(3):
        factor[i] = 1 + draw_between(block.word[i], -change[i], change[i])
    order[0] = number // 2
    order[1] = (order[0] + 1 + number % 2) % 3
    order[2] = 3 - order[0] - order[1]


cdef void draw_shifts(const JitterRecipe* recipe, const ImageKey* image,
                      Jitter* jitter) noexcept nogil:
    cdef philox_block hue = draw(image, DRAW_HUE), lightness = draw(image, DRAW_LIGHTNESS)
    jitter.hue = draw_shift(hue.word[0], hue.word[1], recipe.hue)
    jitter.saturation = draw_shift(hue.word[2], hue.word[3], recipe.saturation_shift)
    jitter.lightness = draw_shift(lightness.word[0], lightness.word[1], recipe.lightness)


cdef void draw_noise(const JitterRecipe* recipe, const ImageKey* image,
                     Jitter* jitter) noexcept nogil:
    cdef double[3] noise
    cdef int channel
    draw_principal_noise(image, recipe.noise, noise)
    for channel in range(3):
        jitter.noise[channel] = noise[channel]


cdef void jitter_expose(const Jitter* jitter, normalise_recipe* normalise) noexcept nogil:
    """Add contrast and illumination: ((x - mean) * contrast + illumination) * factor."""
    cdef int i
    for i in range(4):
        normalise.offset[i] = jitter.illumination * normalise.factor[i]
        normalise.factor[i] = jitter.exposure * normalise.factor[i]


cdef void draw_principal_noise(const ImageKey* image, double deviation,
                               double* noise) noexcept nogil:
    cdef philox_block block = draw(image, DRAW_NOISE), more = draw(image, DRAW_NOISE + 1)
    cdef double[3] normal = [
        draw_normal(block.word[0], block.word[1]), draw_normal(block.word[2], block.word[3]),
        draw_normal(more.word[0], more.word[1])]
    cdef double sum
    cdef int channel, component
    for channel in range(3):
        sum = 0
        for component in range(3):
            sum += (EIGENVECTORS[3 * channel + component] * EIGENVALUES[component]
                    * normal[component] * deviation)
        noise[channel] = sum


cdef void draw_exposure(const JitterRecipe* recipe, const ImageKey* image,
                        Jitter* jitter) noexcept nogil:
    cdef philox_block block = draw(image, DRAW_EXPOSURE)
    jitter.exposure = 1 + draw_between(block.word[0], -recipe.max_contrast, recipe.max_contrast)
    jitter.illumination = draw_between(block.word[1], -recipe.max_illumination,
                                       recipe.max_illumination)


cdef int jitter_image(void* state, uint8_t* pixels, int channels, int width,
                      int height) noexcept nogil:
    """Change packed pixels as was drawn: RGB, unless there is only a gain.

    The state begins with a `Jitter`.
    """
    cdef const Jitter* jitter = <const Jitter*>state
    cdef int step, y
    cdef uint8_t* row
    cdef int64_t count = <int64_t>width * height, grey
    cdef float factor, offset
    if jitter.jitters:
        for step in range(3):
            factor = <float>jitter.factor[jitter.order[step]]
            if jitter.order[step] == BRIGHTNESS:
                colour_brightness(pixels, <int>(3 * count), factor)
            elif jitter.order[step] == SATURATION:
                colour_saturation(pixels, <int>count, factor)
            else:
                grey = colour_grey_sum(pixels, <int>count)
                offset = colour_contrast_offset(factor, grey, count)
                colour_contrast(pixels, <int>(3 * count), factor, offset)
    for y in range(height):
        row = pixels + <int64_t>y * width * 3
        if jitter.shifts:
            colour_hls(row, width, jitter.hue, jitter.lightness, jitter.saturation)
        if jitter.noises:
            colour_lighting(row, width, jitter.noise)
    if jitter.gain != 1:
        colour_brightness(pixels, <int>(channels * count), jitter.gain)
    return 0


cdef void load_jitter(JitterRecipe* target, recipe):
    """Copy the validated parameters of a `recipe.Recipe`."""
    target.change = [recipe.brightness, recipe.contrast, recipe.saturation]
    target.hue, target.saturation_shift = recipe.random_h, recipe.random_s
    target.lightness = recipe.random_l
    target.noise = recipe.pca_noise
    target.max_contrast = recipe.max_random_contrast
    target.max_illumination = recipe.max_random_illumination
    target.jitters = bool(recipe.brightness or recipe.contrast or recipe.saturation)
    target.shifts = bool(recipe.random_h or recipe.random_s or recipe.random_l)
    target.colours = target.jitters or target.shifts or recipe.pca_noise > 0
    target.exposes = bool(recipe.max_random_contrast or recipe.max_random_illumination)


cdef class ColourJitter(PixelChange):
    """The changes of colour of a `Recipe`; see `PixelChange`."""

    cdef JitterState state

    def __init__(self, recipe):
        load_jitter(&self.state.recipe, recipe)
        self.change.state = &self.state
        self.change.draw, self.change.apply = draw_jitter, jitter_image


# ---- of images with boxes ----

cdef struct DetJitterRecipe:
    int hue
    int saturation
    int lightness
    double contrast
    double hue_chance
    double saturation_chance
    double lightness_chance
    double contrast_chance


cdef struct DetJitterState:
    Jitter drawn            # first, for `jitter_image`
    DetJitterRecipe recipe


# MXNet leaves a contrast out that changes no pixel by much.
cdef double LEAST_CONTRAST = 1e-3


cdef bint draw_det_jitter(void* state, const ImageKey* image,
                          normalise_recipe* normalise) noexcept nogil:
    cdef const DetJitterRecipe* recipe = &(<DetJitterState*>state).recipe
    cdef Jitter* jitter = &(<DetJitterState*>state).drawn
    cdef philox_block size = draw(image, DRAW_SHIFTS), chance = draw(image, DRAW_SHIFT_CHANCES)
    cdef double contrast
    memset(jitter, 0, sizeof(Jitter))
    jitter.gain = 1
    if philox_unit(chance.word[0]) < recipe.hue_chance:
        jitter.hue = <int>draw_between(size.word[0], -recipe.hue, recipe.hue)
    if philox_unit(chance.word[1]) < recipe.saturation_chance:
        jitter.saturation = <int>draw_between(size.word[1], -recipe.saturation, recipe.saturation)
    if philox_unit(chance.word[2]) < recipe.lightness_chance:
        jitter.lightness = <int>draw_between(size.word[2], -recipe.lightness, recipe.lightness)
    if philox_unit(chance.word[3]) < recipe.contrast_chance:
        contrast = draw_between(size.word[3], -recipe.contrast, recipe.contrast)
        if contrast > LEAST_CONTRAST or contrast < -LEAST_CONTRAST:
            jitter.gain = <float>(1 + contrast)
    jitter.shifts = jitter.hue != 0 or jitter.saturation != 0 or jitter.lightness != 0
    jitter.colours = jitter.shifts or jitter.gain != 1
    return jitter.colours


cdef void load_det_jitter(DetJitterRecipe* target, recipe):
    """Copy the validated parameters of a `det_recipe.DetRecipe`."""
    target.hue, target.hue_chance = recipe.max_random_hue, recipe.random_hue_prob
    target.saturation = recipe.max_random_saturation
    target.saturation_chance = recipe.random_saturation_prob
    target.lightness = recipe.max_random_illumination
    target.lightness_chance = recipe.random_illumination_prob
    target.contrast = recipe.max_random_contrast
    target.contrast_chance = recipe.random_contrast_prob


cdef class DetColourJitter(PixelChange):
    """The changes of colour of a `DetRecipe`; see `PixelChange`."""

    cdef DetJitterState state

    def __init__(self, recipe):
        load_det_jitter(&self.state.recipe, recipe)
        self.change.state = &self.state
        self.change.draw, self.change.apply = draw_det_jitter, jitter_image


# ---- in float, as one map ----

cdef double PI = 3.141592653589793
cdef double[3] LUMA = [0.299, 0.587, 0.114]
# Grey of a picture that keeps nothing else: the luma of high definition television.
cdef double[3] GREY = [0.21, 0.72, 0.07]
# RGB to the axes of NTSC television, about the first of which hue turns, and back: MXNet's digits.
cdef double[3][3] FROM_RGB = [
    [0.299, 0.587, 0.114], [0.596, -0.274, -0.321], [0.211, -0.523, 0.311]]
cdef double[3][3] TO_RGB = [[1.0, 0.956, 0.621], [1.0, -0.272, -0.647], [1.0, -1.107, 1.705]]


# x -> matrix * x + offset
cdef struct Affine:
    double matrix[3][3]
    double offset[3]


cdef void scale(Affine* map, double factor) noexcept nogil:
    cdef int i, j
    for i in range(3):
        map.offset[i] *= factor
        for j in range(3):
            map.matrix[i][j] *= factor


cdef void multiply(Affine* map, const double[3][3] left) noexcept nogil:
    """Apply a linear map after the others."""
    cdef Affine before = map[0]
    cdef int i, j
    for i in range(3):
        map.offset[i] = (left[i][0] * before.offset[0] + left[i][1] * before.offset[1]
                         + left[i][2] * before.offset[2])
        for j in range(3):
            map.matrix[i][j] = (left[i][0] * before.matrix[0][j] + left[i][1] * before.matrix[1][j]
                                + left[i][2] * before.matrix[2][j])


cdef double mean_grey(const Affine* map, const double* average) noexcept nogil:
    """Return the mean grey of the image so far: grey is linear, so that of the mean pixel."""
    cdef double grey = 0
    cdef int i
    for i in range(3):
        grey += LUMA[i] * (map.matrix[i][0] * average[0] + map.matrix[i][1] * average[1]
                           + map.matrix[i][2] * average[2] + map.offset[i])
    return grey


cdef void turn_hue(Affine* map, double angle) noexcept nogil:
    cdef double[3][3] turn = [[1, 0, 0], [0, cos(angle), -sin(angle)], [0, sin(angle), cos(angle)]]
    multiply(map, FROM_RGB)
    multiply(map, turn)
    multiply(map, TO_RGB)


cdef void mix_grey(Affine* map, const double* weights, double factor) noexcept nogil:
    """Append ``x * factor + (1 - factor) * grey(x)``."""
    cdef double[3][3] mix
    cdef int i, j
    for i in range(3):
        for j in range(3):
            mix[i][j] = (1 - factor) * weights[j] + (factor if i == j else 0)
    multiply(map, mix)


cdef void compose(const ColourSteps* steps, const double* average, const float* mean,
                  const float* factor, linear_colour* colour) noexcept nogil:
    cdef Affine map
    cdef double grey
    cdef int step, i, j
    memset(&map, 0, sizeof(map))
    for i in range(3):
        map.matrix[i][i] = 1
    for i in range(3):
        step = steps.order[i]
        if step == SATURATION:
            mix_grey(&map, LUMA, steps.factor[step])
        elif step == BRIGHTNESS:
            scale(&map, steps.factor[step])
        else:
            grey = mean_grey(&map, average) * (1 - steps.factor[step])
            scale(&map, steps.factor[step])
            for j in range(3):
                map.offset[j] += grey
    if steps.hue:
        turn_hue(&map, steps.hue)
    for i in range(3):
        map.offset[i] += steps.noise[i]
    if steps.grey:
        mix_grey(&map, GREY, 0)
    for i in range(3):
        colour.offset[i] = <float>((map.offset[i] - mean[i]) * factor[i])
        for j in range(3):
            colour.matrix[i][j] = <float>(map.matrix[i][j] * factor[i])


cdef void load_colours(ColourRecipe* target, recipe):
    """Copy the validated parameters of an `augmenter.Augmenter`."""
    target.change = [recipe.brightness, recipe.contrast, recipe.saturation]
    target.hue, target.noise, target.grey = recipe.hue, recipe.pca_noise, recipe.rand_gray


cdef void draw_colours(const ColourRecipe* recipe, const ImageKey* image,
                       ColourSteps* steps) noexcept nogil:
    """Draw everything for one image."""
    cdef philox_block turn = draw(image, DRAW_TURN)
    memset(steps, 0, sizeof(ColourSteps))
    draw_factors(image, recipe.change, steps.factor, steps.order)
    steps.hue = draw_between(turn.word[0], -recipe.hue, recipe.hue) * PI
    steps.grey = philox_unit(turn.word[1]) < recipe.grey
    if recipe.noise > 0:
        draw_principal_noise(image, recipe.noise, steps.noise)


# ---- faces ----

cdef enum:
    PART_TRIES = 10              # of a part of the image
    METHODS = 5             # nearest, bilinear, cubic, area, Lanczos

# Purposes of the blocks of random numbers of DRAW_PHOTOMETRIC, beside those of photometric steps.
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


cdef struct FaceState:
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
    for i in range(PART_TRIES):
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
    cdef FaceRecipe* recipe = &(<FaceState*>state).recipe
    recipe.width, recipe.height = width, height


cdef bint draw_face(void* state, const ImageKey* image, normalise_recipe* normalise) noexcept nogil:
    cdef const FaceRecipe* recipe = &(<FaceState*>state).recipe
    cdef DrawnFace* drawn = &(<FaceState*>state).drawn
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


cdef int resize_face(FaceState* state, int method, const uint8_t* pixels, int width, int height,
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
    cdef FaceState* face = <FaceState*>state
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
        if resize_face(face, drawn.down, pixels, width, height, channels, face.small,
                       drawn.small_width, drawn.small_height):
            return -1
        return resize_face(face, drawn.up, face.small, drawn.small_width, drawn.small_height,
                           channels, pixels, width, height)
    return 0


cdef class FaceChange(PixelChange):
    """`crop_on_fill` and `low_resolution` of a `Recipe`; see `PixelChange`."""

    cdef FaceState state

    def __cinit__(self, recipe):
        cdef FaceState* state = &self.state
        memset(state, 0, sizeof(FaceState))
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
    def is_needed(recipe):
        """Return whether a recipe has one of these changes."""
        return bool(recipe.crop_on_fill or recipe.low_resolution)


# ---- erasing ----

cdef extern from "recordio/kernels/noise.h" nogil:
    enum:
        NOISE_STEPS
        NOISE_AT_ONCE
    void noise_block(const float* quantiles, uint64_t key, uint32_t number, float* out)

assert MOST_RECTANGLES == MAX_RECTANGLES

cdef enum:
    RECTANGLE_TRIES = 10              # of a rectangle

# Means and deviations of ImageNet in grey levels, for integer pixels: R, G, B, alpha; grey.
IMAGENET = ((123.675, 116.28, 103.53, 255.0), (58.395, 57.12, 57.375, 0.0))
IMAGENET_GREY = ((114.495,), (57.63,))

cdef float[NOISE_STEPS + 1] quantiles


cdef void fill_quantiles():
    """Fill in those of the normal distribution, cut off beyond 4.2; the variance stays 1."""
    cdef int i
    normal = NormalDist()
    levels = [normal.inv_cdf(<double>i / NOISE_STEPS) for i in range(1, NOISE_STEPS)]
    levels = [-4.2, *levels, 4.2]
    # Between two quantiles all values are equally likely.
    variance = sum(
        (low * low + low * high + high * high) / 3 for low, high in zip(levels, levels[1:]))
    scale = sqrt(NOISE_STEPS / variance)
    for i in range(NOISE_STEPS + 1):
        quantiles[i] = levels[i] * scale


fill_quantiles()


cdef class Eraser:
    """Erases rectangles of images as a recipe with `random_erasing` says; serves one writer.

    Images are at most `most_width` pixels wide.
    """

    def __cinit__(self, recipe, int most_width):
        cdef int i
        self.channels = recipe.channels
        self.chance = recipe.random_erasing
        self.area[0], self.area[1] = recipe.erasing_area
        self.counts[0], self.counts[1] = recipe.erasing_count
        for i in range(2):
            self.log_ratio[i] = log(recipe.erasing_ratio[i])
        value = recipe.erasing_value
        self.kind = ERASING_LEVEL
        if isinstance(value, str):
            self.kind = <ErasingKind><int>(1 + ERASING_VALUES.index(value))
        else:
            self.level = value
        means, deviations = IMAGENET_GREY if self.channels == 1 else IMAGENET
        if any(recipe.differs(f"{name}_{colour}") for name in ("mean", "std") for colour in "rgba"):
            means, deviations = recipe.mean, recipe.std
        for i in range(self.channels):
            self.mean[i], self.deviation[i] = means[i], deviations[i]
        self.row = <uint8_t*>malloc(<size_t>most_width * self.channels + 64)
        if self.row == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.row)

    cdef void draw_rectangles(self, const ImageKey* image, int full_width,
                              int full_height) noexcept nogil:
        cdef philox_block words = draw(image, DRAW_ERASING), more
        cdef int count, i, attempt, width, height
        cdef double area, ratio
        cdef Erased* rectangle
        self.count = 0
        if philox_unit(words.word[0]) >= self.chance:
            return
        self.noise = <uint64_t>words.word[2] << 32 | words.word[3]
        count = draw_integer(words.word[1], self.counts[0], self.counts[1])
        for i in range(count):
            for attempt in range(RECTANGLE_TRIES):
                more = draw(image, DRAW_RECTANGLE + i * RECTANGLE_TRIES + attempt)
                area = draw_between(more.word[0], self.area[0], self.area[1])
                area *= <double>full_width * full_height / count
                ratio = exp(draw_between(more.word[1], self.log_ratio[0], self.log_ratio[1]))
                height, width = <int>rint(sqrt(area * ratio)), <int>rint(sqrt(area / ratio))
                if width < full_width and height < full_height:
                    rectangle = &self.rectangles[self.count]
                    rectangle.width, rectangle.height = width, height
                    rectangle.x = draw_integer(more.word[2], 0, full_width - width)
                    rectangle.y = draw_integer(more.word[3], 0, full_height - height)
                    self.count += 1
                    break

    cdef void erase(self, void* slot, const normalise_recipe* normalise, ptrdiff_t row_stride,
                    ptrdiff_t pixel_stride, ptrdiff_t channel_stride) noexcept nogil:
        cdef bint floats = normalise_is_float(normalise.dtype)
        cdef const Erased* one
        cdef float[NOISE_AT_ONCE] colour
        cdef Noise noise
        cdef ptrdiff_t at
        cdef int i, y
        noise.key, noise.block, noise.used = self.noise, MAX_RECTANGLES, NOISE_AT_ONCE
        for i in range(self.count):
            one = &self.rectangles[i]
            noise_block(quantiles, self.noise, i, colour)
            for y in range(one.y, one.y + one.height):
                at = y * row_stride + one.x * pixel_stride
                if floats:
                    erase_floats(self, normalise, one.width, colour, &noise, slot, at,
                                 pixel_stride, channel_stride)
                else:
                    erase_bytes(self, normalise, one.width, y, colour, &noise, <char*>slot + at,
                                pixel_stride, channel_stride)


# Normal numbers one after the other.
cdef struct Noise:
    uint64_t key
    uint32_t block          # the next one
    int used
    float ready[NOISE_AT_ONCE]


cdef inline float next_noise(Noise* noise) noexcept nogil:
    if noise.used == NOISE_AT_ONCE:
        noise_block(quantiles, noise.key, noise.block, noise.ready)
        noise.block += 1
        noise.used = 0
    noise.used += 1
    return noise.ready[noise.used - 1]


cdef void erase_floats(Eraser eraser, const normalise_recipe* normalise, int width,
                       const float* colour, Noise* noise, void* slot, ptrdiff_t at,
                       ptrdiff_t pixel_stride, ptrdiff_t channel_stride) noexcept nogil:
    """Erase one row of a rectangle of floats."""
    cdef int c, _
    cdef float value
    cdef ptrdiff_t position
    for c in range(eraser.channels):
        value = 0
        if eraser.kind == ERASING_LEVEL:
            value = ((eraser.level - normalise.mean[c]) * normalise.factor[c]
                     + normalise.offset[c])
        elif eraser.kind == ERASING_COLOUR:
            value = colour[c]
        position = at + c * channel_stride
        for _ in range(width):
            if eraser.kind == ERASING_PIXEL:
                value = next_noise(noise)
            normalise_store_float(normalise.dtype, slot, position, value)
            position += pixel_stride


cdef void erase_bytes(Eraser eraser, const normalise_recipe* normalise, int width, int y,
                      const float* colour, Noise* noise, char* row, ptrdiff_t pixel_stride,
                      ptrdiff_t channel_stride) noexcept nogil:
    """Erase one row of a rectangle of uint8 or int8: pixels, written as all others are."""
    cdef int c, x
    cdef float value
    for x in range(width):
        for c in range(eraser.channels):
            value = eraser.mean[c]
            if eraser.kind == ERASING_LEVEL:
                value = eraser.level
            elif eraser.kind == ERASING_COLOUR:
                value += eraser.deviation[c] * colour[c]
            elif eraser.kind == ERASING_PIXEL:
                value += eraser.deviation[c] * next_noise(noise)
            value = min(max(value, <float>0), <float>255)
            eraser.row[x * eraser.channels + c] = <uint8_t>rint(value)
    normalise_row(normalise, eraser.row, width, y, False, row, pixel_stride, channel_stride)
