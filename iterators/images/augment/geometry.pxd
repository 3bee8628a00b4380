from libc.stdint cimport int64_t

from iterators.images.augment.draw cimport ImageKey


cdef enum:
    MAX_LAYERS = 6
    MAX_ANGLES = 64


# What the drawing of one image needs to know of a recipe.
cdef struct GeometryRecipe:
    int width
    int height
    int resize
    bint rand_crop
    int crop_x_start
    int crop_y_start
    int min_crop_size
    int max_crop_size
    bint random_resized_crop
    double min_area
    double max_area
    double min_ratio
    double max_ratio
    bint crops_first        # a small image is cropped to the target's proportions, then grown
    bint log_ratio          # the aspect ratio of a random area is uniform in its logarithm
    bint warps
    int max_rotate_angle
    int rotate
    int num_angles
    int angles[MAX_ANGLES]
    double max_shear
    double min_scale
    double max_scale
    double min_size
    double max_size
    int pad
    bint mirror
    bint rand_mirror
    int inter_method


cdef enum LayerKind:
    LAYER_RESAMPLE = 0
    LAYER_WARP              # the inverse map takes target pixels to input pixels
    LAYER_PAD               # the input lies at (border_x, border_y) of the target


# One step from pixels to pixels: the rectangle (x, y, width, height) of its input becomes
# target_width x target_height pixels, of which the window (left, top, out_width, out_height) is
# wanted.  The window of a layer is the whole input of the next; the first one reads the decoded
# image.
cdef struct Layer:
    LayerKind kind
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
    double inverse[6]
    int border_x
    int border_y


cdef struct Geometry:
    int count
    Layer layers[MAX_LAYERS]
    bint mirror
    int coloured            # layer whose result the colour changes are applied to


cdef enum GeometryStatus:
    GEOMETRY_OK = 0
    GEOMETRY_CROP_OUTSIDE     # crop_x_start or crop_y_start leaves too few pixels
    GEOMETRY_CROP_SIZE        # the image is smaller than max_crop_size
    GEOMETRY_TOO_LARGE        # an image on the way would have a side of 2**26 pixels, or of none


# Which word of DRAW_METHOD is whose.
cdef enum MethodWord:
    METHOD_RESIZE = 0
    METHOD_WARP = 1
    METHOD_CROP = 2


# The interpolation for one step of one image, with `inter_method` 9 and 10 resolved.
cdef int choose_method(int inter_method, const ImageKey* image, int step, int width, int height,
                       int new_width, int new_height) noexcept nogil
# Append a step that reads the whole current image; NULL if its result would be too large or empty.
cdef Layer* add_layer(Geometry* geometry, LayerKind kind, int method, int* width, int* height,
                      int64_t target_width, int64_t target_height) noexcept nogil
# Crop the current image: the window of its last layer shrinks.
cdef void keep_rectangle(Geometry* geometry, int x, int y, int width, int height) noexcept nogil
# Append the first resize, after which the short side has `resize` pixels.
cdef int resize_short_side(int resize, int inter_method, const ImageKey* image, int* width,
                           int* height, Geometry* geometry) noexcept nogil
cdef void load_recipe(GeometryRecipe* target, recipe)
cdef int draw_geometry(const GeometryRecipe* recipe, const ImageKey* image, int width, int height,
                       Geometry* geometry) noexcept nogil
