from libc.stdint cimport int64_t, uint32_t, uint64_t


# What the drawing of one image needs to know of a recipe.
cdef struct GeometryRecipe:
    int width
    int height
    int resize
    int rand_crop
    int crop_x_start
    int crop_y_start
    int random_resized_crop
    double min_area
    double max_area
    double min_ratio
    double max_ratio
    int mirror
    int rand_mirror
    int inter_method


# One resampling of an image: the rectangle (x, y, width, height) of its input becomes target_width x
# target_height pixels, of which the window (left, top, out_width, out_height) is wanted.  The window
# of a layer is the whole input of the next; the first one reads the decoded image.
cdef struct Layer:
    int method
    int x
    int y
    int width
    int height
    int target_width
    int target_height
    int left
    int top
    int out_width
    int out_height


cdef enum:
    MAX_LAYERS = 4


cdef struct Geometry:
    int count
    Layer layers[MAX_LAYERS]
    int mirror


cdef enum GeometryStatus:
    GEOMETRY_OK = 0
    GEOMETRY_CROP_OUTSIDE     # crop_x_start or crop_y_start leaves too few pixels
    GEOMETRY_TOO_LARGE        # a resized image would have a side of 2**26 pixels or more


cdef void load_recipe(GeometryRecipe* target, recipe)
cdef int draw_geometry(const GeometryRecipe* recipe, uint64_t key, uint32_t epoch, int64_t record,
                       int width, int height, Geometry* geometry) noexcept nogil
