from iterators.images.augment.det_labels cimport CropLimits, Objects
from iterators.images.augment.policy cimport MAX_DRAWN, Drawn

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
