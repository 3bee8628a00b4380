from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int64_t, uint8_t

from iterators.images.augment.draw cimport ImageKey


cdef enum:
    MAX_STEPS = 9


# Where a finished image goes, and how large it is there; its strides are in elements.  An image in
# patches is as large as its own size, or that of its crop, lets: `length` patches at most.
cdef struct Target:
    void* data
    int height
    int width
    ptrdiff_t row_stride
    ptrdiff_t pixel_stride
    ptrdiff_t channel_stride
    int patch               # side of the patches; 0 for an image that is not cut into any
    int length
    int64_t* coordinates         # row and column of each patch
    uint8_t* marks          # whether there is one


cdef enum StepKind:
    STEP_RESAMPLE = 0
    STEP_WARP               # the inverse map takes target pixels to input pixels
    STEP_PAD                # the input lies at (border_x, border_y) of the target
    STEP_AFFINE             # the inverse map is Pillow's, of an affine transform ...
    STEP_PERSPECTIVE        # ... or of a perspective


# What a border consists of: the method of a STEP_PAD, in the order of `PADDING_MODES`.
cdef enum Padding:
    PADDING_CONSTANT = 0
    PADDING_EDGE = 1        # the last pixels
    PADDING_REFLECT = 2     # the image mirrored in its last pixels
    PADDING_SYMMETRIC = 3   # the image mirrored behind them


# One step from pixels to pixels: the rectangle (x, y, width, height) of its input becomes
# target_width x target_height pixels, of which the window (left, top, out_width, out_height) is
# wanted.  The window of a step is the whole input of the next; the first one reads the decoded
# image.
cdef struct Step:
    StepKind kind
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
    double inverse[8]
    int border_x
    int border_y


cdef struct Geometry:
    int count
    Step steps[MAX_STEPS]
    bint mirror
    bint flip               # upside down, as rows are written
    int changed             # step whose result the changes of pixels are applied to


cdef enum GeometryStatus:
    GEOMETRY_OK = 0
    GEOMETRY_CROP_OUTSIDE     # crop_x_start or crop_y_start leaves too few pixels
    GEOMETRY_CROP_SIZE        # the image is smaller than max_crop_size
    GEOMETRY_CROP_LARGE       # the image is smaller than a random crop
    GEOMETRY_TOO_LARGE        # an image on the way would have a side of 2**26 pixels, or of none


# Owners of the words of DRAW_METHOD.
cdef enum MethodWord:
    METHOD_RESIZE = 0
    METHOD_WARP = 1
    METHOD_CROP = 2


# The interpolation for one step of one image, with `inter_method` 9 and 10 resolved.
cdef int choose_method(int inter_method, const ImageKey* image, int step, int width, int height,
                       int new_width, int new_height) noexcept nogil
# Append a step that reads the whole current image; NULL if its result would be too large or empty,
# or if there are MAX_STEPS already.
cdef Step* add_step(Geometry* geometry, StepKind kind, int method, int* width, int* height,
                    int64_t target_width, int64_t target_height) noexcept nogil
# Crop the current image, of which there is a step: the window of the last one shrinks.
cdef void keep_rectangle(Geometry* geometry, int x, int y, int width, int height) noexcept nogil
# The values of `new_width` that are no numbers of pixels.
cdef enum ResizeTo:
    RESIZE_OFF = -1
    RESIZE_COVER = -2       # the target is covered, and one side is the target's
    RESIZE_CONTAIN = -3     # it fits into the target, and one side is the target's


# The first resize of a recipe: the short side and 0, or both sides; or a `ResizeTo`.
cdef struct FirstResize:
    int new_width
    int new_height
    int most                # pixels that the long side has at most, or 0
    int inter_method


cdef FirstResize load_resize(recipe)
# Append it; the last sizes are those of the target, for a `ResizeTo`.
cdef int resize_first(const FirstResize* resize, const ImageKey* image, int* width, int* height,
                      Geometry* geometry, int wanted_width, int wanted_height) noexcept nogil


# Draws where the pixels of one image after the other come from.
cdef class GeometryDrawer:
    # Compute the steps from an image of `width` x `height` pixels to the size of a target: a
    # GeometryStatus.
    cdef int draw_steps(self, const ImageKey* image, int width, int height, const Target* target,
                        Geometry* geometry) noexcept nogil


# Meaning of a status, for error messages; NULL terminated.
cdef const char* geometry_message(int status) noexcept nogil
