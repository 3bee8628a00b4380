from iterators.images.augment.draw cimport ImageKey
from iterators.images.augment.jitter cimport Jitter


cdef struct DetJitterRecipe:
    int hue
    int saturation
    int lightness
    double contrast
    double hue_chance
    double saturation_chance
    double lightness_chance
    double contrast_chance


cdef void load_det_jitter(DetJitterRecipe* target, recipe)
cdef void draw_det_jitter(const DetJitterRecipe* recipe, const ImageKey* image,
                          Jitter* jitter) noexcept nogil
