from iterators.images.augment.draw cimport ImageKey
from iterators.images.augment.geometry cimport FirstResize, Geometry
from iterators.images.augment.program cimport MAX_DRAWN, Drawn


# A rectangle, in fractions of the image.
cdef struct Box:
    float x
    float y
    float width
    float height


# The objects of a label: `width` values each, which begin with id, xmin, ymin, xmax, ymax.
cdef struct Objects:
    float* values
    int width
    Py_ssize_t count


# Limits that at least one object must meet, and those for the objects that a crop keeps.
cdef struct CropLimits:
    float min_overlap
    float max_overlap
    float min_sample_coverage
    float max_sample_coverage
    float min_object_coverage
    float max_object_coverage
    bint by_overlap         # else by centre
    float emit_overlap


cdef enum LabelStatus:
    LABEL_OK = 0
    LABEL_SHORT             # fewer values than the two widths
    LABEL_HEADER            # a header width that is impossible
    LABEL_OBJECT            # an object width that is impossible
    LABEL_RAGGED            # the objects do not fill the label
    LABEL_CLASS             # a class that is no number
    LABEL_NOT_FINITE        # a coordinate that is no number
    LABEL_PIXELS            # a coordinate too far from the image for a fraction of it


# Check one object, of at least five values, which need not be aligned.
cdef int check_object(const void* values) noexcept nogil


# Check a raw label, which need not be aligned.  `header` becomes the number of values before its
# objects; `objects` gets their width and number, and its values are NULL.
cdef int check_label(const void* label, Py_ssize_t count, Py_ssize_t* header,
                     Objects* objects) noexcept nogil
# Check a raw label, refer to its objects and drop those without area.
cdef int parse_label(float* values, Py_ssize_t count, Py_ssize_t* header,
                     Objects* objects) noexcept nogil
cdef void mirror_objects(Objects* objects) noexcept nogil
# Express the boxes in fractions of `view` and clip them to it.
cdef void project_objects(Objects* objects, const Box* view) noexcept nogil
# Keep the objects that an accepted crop keeps, in fractions of it.
cdef void crop_objects(Objects* objects, const Box* crop, const CropLimits* limits) noexcept nogil
# The inverse of `project_objects`: boxes in fractions of `part` become fractions of the whole.
cdef void place_objects(Objects* objects, const Box* part) noexcept nogil
# Meaning of a status, for error messages; NULL terminated.
cdef const char* label_message(int status) noexcept nogil


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


cdef enum:
    X = 0
    Y = 1
    MAX_CORNERS = 4 + 4 * MAX_DRAWN     # every operation cuts with four straight lines


# The rest of a box, in pixels: convex, as a box is.
cdef struct Shape:
    int count
    double[MAX_CORNERS][2] corners


cdef void put(Shape* shape, double x, double y) noexcept nogil
# Keep what is below a limit, or above it where `sign` is -1.
cdef void cut(Shape* shape, int axis, double limit, double sign) noexcept nogil
cdef double area(Shape* shape) noexcept nogil
# Move the objects of an image of `width` x `height` pixels as the operations move its pixels.
# They are those of the image as it is once mirrored, if it will be.
cdef void move_objects(Objects* objects, const Drawn* drawn, int width, int height, bint mirror,
                       const CropLimits* limits) noexcept nogil
