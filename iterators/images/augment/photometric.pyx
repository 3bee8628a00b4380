"""Changes of colour and sharpness as torchvision, timm and DINO make them, each with a probability.

DeiT III's one of three, a colour jitter, greying, a blur and solarizing, in this order, with
Pillow's arithmetic.  (`jitter` has MXNet's, whose grey and rounding differ.)
"""

from libc.stdint cimport uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from iterators.images.augment.draw cimport (
    DRAW_PHOTOMETRIC, ImageKey, draw, draw_between, draw_integer, philox_block, philox_unit,
)
from iterators.images.augment.pixel_change cimport PixelChange
from recordio.kernels.normalise cimport normalise_recipe
from recordio.kernels.operations cimport (
    OPERATION_BLUR, OPERATION_BRIGHTNESS, OPERATION_COLOUR, OPERATION_CONTRAST, OPERATION_GREY,
    OPERATION_HUE, OPERATION_SOLARIZE, operation, operation_apply, operation_image, operation_kind,
    operation_room,
)

cdef enum:
    JITTERS = 4

# Purposes of the blocks of random numbers.
cdef enum Block:
    CHANCES = 0             # of jitter, grey, blur, solarize
    FACTORS = 1             # of the jitter
    ORDER = 2               # of the jitter: one word for each step
    SIGMA = 3               # of the blur and of that of one of three; which of three


cdef struct PhotometricRecipe:
    bint three
    double jitter[JITTERS][2]   # ranges
    double jitter_chance    # 0 without a jitter
    double grey_chance
    double blur_chance
    double[2] sigma
    double solarize_chance
    double threshold


cdef struct State:
    DrawnPhotometric drawn
    PhotometricRecipe recipe
    operation_image image


cdef void add(State* state, operation_kind kind, double value) noexcept nogil:
    cdef operation* done = &state.drawn.operations[state.drawn.count]
    done.kind, done.value, done.method = kind, <float>value, 0
    state.drawn.count += 1


cdef void draw_three(State* state, philox_block words) noexcept nogil:
    cdef int which = draw_integer(words.word[2], 0, 2)
    if which == 0:
        add(state, OPERATION_GREY, 0)
    elif which == 1:
        add(state, OPERATION_SOLARIZE, state.recipe.threshold)
    else:
        add(state, OPERATION_BLUR,
            draw_between(words.word[1], state.recipe.sigma[0], state.recipe.sigma[1]))


cdef void draw_jitter(State* state, const ImageKey* image) noexcept nogil:
    """Draw each step once, in random order: that of their words."""
    cdef philox_block factors = draw(image, DRAW_PHOTOMETRIC + FACTORS)
    cdef philox_block order = draw(image, DRAW_PHOTOMETRIC + ORDER)
    cdef operation_kind[JITTERS] kinds = [
        OPERATION_BRIGHTNESS, OPERATION_CONTRAST, OPERATION_COLOUR, OPERATION_HUE]
    cdef bint[JITTERS] done = [False, False, False, False]
    cdef double low, high, value
    cdef int _, j, next
    for _ in range(JITTERS):
        next = -1
        for j in range(JITTERS):
            if not done[j] and (next < 0 or order.word[j] < order.word[next]):
                next = j
        done[next] = True
        low, high = state.recipe.jitter[next][0], state.recipe.jitter[next][1]
        if low == high == (0 if kinds[next] == OPERATION_HUE else 1):
            continue
        value = draw_between(factors.word[next], low, high)
        add(state, kinds[next], <int>(255 * value) if kinds[next] == OPERATION_HUE else value)


cdef bint draw_photometric(void* state, const ImageKey* image,
                           normalise_recipe* normalise) noexcept nogil:
    cdef State* found = <State*>state
    cdef const PhotometricRecipe* recipe = &found.recipe
    cdef philox_block chances = draw(image, DRAW_PHOTOMETRIC + CHANCES)
    cdef philox_block sigma = draw(image, DRAW_PHOTOMETRIC + SIGMA)
    found.drawn.count = 0
    if recipe.three:
        draw_three(found, sigma)
    if philox_unit(chances.word[0]) < recipe.jitter_chance:
        draw_jitter(found, image)
    if philox_unit(chances.word[1]) < recipe.grey_chance:
        add(found, OPERATION_GREY, 0)
    if philox_unit(chances.word[2]) < recipe.blur_chance:
        add(found, OPERATION_BLUR, draw_between(sigma.word[0], recipe.sigma[0], recipe.sigma[1]))
    if philox_unit(chances.word[3]) < recipe.solarize_chance:
        add(found, OPERATION_SOLARIZE, recipe.threshold)
    return found.drawn.count > 0


cdef int apply_photometric(void* state, uint8_t* pixels, int channels, int width,
                           int height) noexcept nogil:
    cdef State* found = <State*>state
    cdef int i
    found.image.pixels, found.image.width, found.image.height = pixels, width, height
    for i in range(found.drawn.count):
        operation_apply(&found.drawn.operations[i], &found.image)
    return 0


cdef class Photometric(PixelChange):
    """The photometric changes of a `Recipe`; see `PixelChange`."""

    cdef State state

    def __cinit__(self, recipe):
        cdef State* state = &self.state
        cdef PhotometricRecipe* target = &self.state.recipe
        cdef int i
        memset(state, 0, sizeof(State))
        channels, height, width = recipe.data_shape
        target.three = recipe.three_augment
        for i in range(len(recipe.color_jitter)):
            target.jitter[i][0], target.jitter[i][1] = recipe.color_jitter[i]
        target.jitter_chance = recipe.color_jitter_prob if recipe.color_jitter else 0
        target.grey_chance, target.blur_chance = recipe.random_grayscale, recipe.gaussian_blur
        target.sigma[0], target.sigma[1] = recipe.blur_sigma
        target.solarize_chance = recipe.solarize_p
        target.threshold = recipe.solarize_threshold
        state.image.channels = channels
        state.image.room = <uint8_t*>malloc(
            operation_room(width, height, channels, target.sigma[1]))
        if state.image.room == NULL:
            raise MemoryError
        self.change.state, self.change.finished = state, True
        self.change.draw, self.change.apply = draw_photometric, apply_photometric

    def __dealloc__(self):
        free(self.state.image.room)

    @staticmethod
    def wanted(recipe):
        """Return whether a recipe has any of these changes."""
        return bool(recipe.three_augment or recipe.color_jitter or recipe.random_grayscale
                    or recipe.gaussian_blur or recipe.solarize_p)
