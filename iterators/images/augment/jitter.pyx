"""MXNet's changes of the colours of one image, drawn per image.

Brightness, contrast and saturation in random order, then hue / lightness / saturation, then noise
along the principal colours of ImageNet: MXNet's steps in its order, with the arithmetic of
`colour`, applied to the finished pixels. The contrast and illumination that act on normalised
values are drawn here as well.  Images with boxes have hue, lightness and saturation first, then
contrast as a factor of all values, each with a probability.

For `mx.image.CreateAugmenter` every step is an affine map of RGB, and all of them together one:
brightness, contrast and saturation, hue, noise, greying, and then normalisation. Nothing is rounded
or cut off in between; the renderer applies the result once.
"""

from libc.math cimport cos, log, sin, sqrt
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memset

from recordio.kernels.colour cimport (
    colour_brightness, colour_contrast, colour_contrast_offset, colour_grey_sum, colour_hls,
    colour_lighting, colour_saturation,
)
from iterators.images.augment.draw cimport (
    DRAW_EXPOSURE, DRAW_HUE, DRAW_JITTER, DRAW_LIGHTNESS, DRAW_NOISE, DRAW_SHIFT_CHANCES,
    DRAW_SHIFTS, DRAW_TURN, ImageKey, draw, draw_between, draw_integer, philox_block, philox_unit,
)
from iterators.images.augment.pixel_change cimport PixelChange
from recordio.kernels.normalise cimport normalise_recipe

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


cdef struct State:
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
    cdef const JitterRecipe* recipe = &(<State*>state).recipe
    cdef Jitter* jitter = &(<State*>state).drawn
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

    cdef State state

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


cdef struct DetState:
    Jitter drawn            # first, for `jitter_image`
    DetJitterRecipe recipe


# MXNet leaves a contrast out that changes no pixel by much.
cdef double LEAST_CONTRAST = 1e-3


cdef bint draw_det_jitter(void* state, const ImageKey* image,
                          normalise_recipe* normalise) noexcept nogil:
    cdef const DetJitterRecipe* recipe = &(<DetState*>state).recipe
    cdef Jitter* jitter = &(<DetState*>state).drawn
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

    cdef DetState state

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
