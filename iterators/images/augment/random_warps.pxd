from iterators.images.augment.draw cimport ImageKey
from recordio.kernels.transform cimport transform_map


# In the order in which they follow each other.
cdef enum WarpKind:
    WARP_ROTATION = 0
    WARP_AFFINE = 1
    WARP_PERSPECTIVE = 2
    WARP_KINDS = 3


# The part of a recipe that is needed to draw the warps of one image.
cdef struct WarpRecipe:
    bint has[WARP_KINDS]
    double rotation[2]      # ranges in degrees, both ends included but for rounding
    double degrees[2]
    double translate[2]     # of `affine`: shares of width and height
    double scale[2]
    double shear[4]
    double distortion
    double chance           # of the perspective
    int method


# What is drawn for one warp; of each kind only its own numbers.
cdef struct DrawnWarp:
    double angle
    int shift[2]
    double scale
    double shear[2]
    int corners[4][2]       # of a perspective: top left, top right, bottom right, bottom left


cdef void load_warps(WarpRecipe* target, recipe)
# Draw one warp for an image of that size and find its map; False if the image stays as it is.
cdef bint draw_warp(const WarpRecipe* recipe, WarpKind kind, const ImageKey* image, int width,
                    int height, DrawnWarp* drawn, transform_map* found) noexcept nogil
