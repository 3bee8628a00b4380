from iterators.images.augment.det_labels cimport CropLimits, Objects
from iterators.images.augment.draw cimport ImageKey
from iterators.images.augment.geometry cimport FirstResize, Geometry


cdef enum:
    MAX_SAMPLERS = 64


cdef enum ResizeMode:
    RESIZE_FORCE = 0        # in the order of det_recipe.RESIZE_MODES
    RESIZE_SHRINK
    RESIZE_FIT


cdef struct CropSampler:
    float min_scale
    float max_scale
    float min_ratio
    float max_ratio
    int trials
    CropLimits limits


# The part of a detection recipe that is needed to draw one image, and the size of its slot.
cdef struct DetGeometryRecipe:
    int width
    int height
    FirstResize resize
    ResizeMode resize_mode
    double mirror_chance
    double pad_chance
    double crop_chance
    float max_pad_scale
    int num_samplers
    CropSampler samplers[MAX_SAMPLERS]


# Load the limit on cut objects that stay, after a crop or otherwise; no other limit.
cdef void load_emission(CropLimits* target, recipe)
cdef void load_det_recipe(DetGeometryRecipe* target, recipe)
# Draw and compute the steps for an image of `width` x `height` pixels, and change its objects
# alike.  The status is one of GeometryStatus.
cdef int draw_det_geometry(const DetGeometryRecipe* recipe, const ImageKey* image, int width,
                           int height, Objects* objects, Geometry* geometry) noexcept nogil
