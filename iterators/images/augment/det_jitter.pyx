"""Changes of the colours of one detection image: drawn per image, each with its probability.

Hue, lightness and saturation first, then contrast as a factor of all values: MXNet's detection
augmenter.  Applying them is the work of `jitter`.
"""

from libc.string cimport memset

from iterators.images.augment.draw cimport (
    DRAW_SHIFT_CHANCES, DRAW_SHIFTS, ImageKey, draw, draw_between, philox_block, philox_unit,
)
from iterators.images.augment.jitter cimport Jitter, jitter_image
from iterators.images.augment.pixel_change cimport PixelChange
from recordio.kernels.normalise cimport normalise_recipe

cdef struct DetJitterRecipe:
    int hue
    int saturation
    int lightness
    double contrast
    double hue_chance
    double saturation_chance
    double lightness_chance
    double contrast_chance


cdef struct State:
    Jitter drawn            # first, for `jitter_image`
    DetJitterRecipe recipe


#: MXNet leaves a contrast out that changes no pixel by much.
cdef double LEAST_CONTRAST = 1e-3


cdef bint draw_det_jitter(void* state, const ImageKey* image,
                          normalise_recipe* normalise) noexcept nogil:
    cdef const DetJitterRecipe* recipe = &(<State*>state).recipe
    cdef Jitter* jitter = &(<State*>state).drawn
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

    cdef State state

    def __init__(self, recipe):
        load_det_jitter(&self.state.recipe, recipe)
        self.change.state = &self.state
        self.change.draw, self.change.apply = draw_det_jitter, jitter_image
