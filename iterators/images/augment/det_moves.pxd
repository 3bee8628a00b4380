from iterators.images.augment.det_labels cimport CropLimits, Objects
from iterators.images.augment.policy cimport Drawn


# Move the objects of an image of `width` x `height` pixels as the operations move its pixels.
# They are those of the image as it is once mirrored, if it will be.
cdef void move_objects(Objects* objects, const Drawn* drawn, int width, int height, bint mirror,
                       const CropLimits* limits) noexcept nogil
