"""Changes of the colours of one image: drawn per image, applied to its finished pixels.

Brightness, contrast and saturation in random order, then hue / lightness / saturation, then noise
along the principal colours of ImageNet: MXNet's steps in its order, with the arithmetic of
`colour`. The contrast and illumination that act on normalised values are drawn here as well.
"""

from libc.math cimport cos, log, sqrt
from libc.stdint cimport int64_t, uint8_t

from recordio.kernels.colour cimport (
    colour_brightness, colour_contrast, colour_contrast_offset, colour_grey_sum, colour_hls,
    colour_lighting, colour_saturation,
)
from iterators.images.augment.draw cimport (
    DRAW_EXPOSURE, DRAW_HUE, DRAW_JITTER, DRAW_LIGHTNESS, DRAW_NOISE, ImageKey, draw, draw_between,
    draw_integer, philox_block, philox_unit,
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
    double brightness
    double contrast
    double saturation
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
        draw_factors(recipe, image, jitter)
    if recipe.shifts:
        draw_shifts(recipe, image, jitter)
    if jitter.noises:
        draw_noise(recipe, image, jitter)
    if recipe.exposes:
        draw_exposure(recipe, image, jitter)
        jitter_expose(jitter, normalise)
    return jitter.colours


cdef void draw_factors(const JitterRecipe* recipe, const ImageKey* image,
                       Jitter* jitter) noexcept nogil:
    cdef philox_block block = draw(image, DRAW_JITTER)
    cdef int order = draw_integer(block.word[3], 0, 5), first = order // 2
    cdef int second = (first + 1 + order % 2) % 3
    jitter.factor[BRIGHTNESS] = 1 + draw_between(block.word[0], -recipe.brightness,
                                                 recipe.brightness)
    jitter.factor[CONTRAST] = 1 + draw_between(block.word[1], -recipe.contrast, recipe.contrast)
    jitter.factor[SATURATION] = 1 + draw_between(block.word[2], -recipe.saturation,
                                                 recipe.saturation)
    jitter.order[0], jitter.order[1], jitter.order[2] = first, second, 3 - first - second


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
            factor = jitter.factor[jitter.order[step]]
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
    target.brightness, target.contrast = recipe.brightness, recipe.contrast
    target.saturation = recipe.saturation
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
