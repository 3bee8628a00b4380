"""Effect of the shears, shifts and rotations of a policy on the boxes of an image.

The four corners of a box are moved as the pixels are, and parts outside the image are cut off after
every operation, as they are lost to the next one.  The new box is the one around the rest.
Nothing here draws random numbers or touches pixels.
"""

from libc.string cimport memcpy, memmove

from iterators.images.augment.det_labels cimport CropLimits, Objects
from iterators.images.augment.policy cimport Drawn
from recordio.kernels.operations cimport operation, operation_is_geometric, operation_matrix

cdef double LABEL_ROUNDING = 2.0 ** -23     # of two edges, as shares of a side


# A box on its way: its shape and its centre, and whether that stayed inside all the time.
cdef struct Moved:
    Shape shape
    double[2] centre
    bint inside


cdef void put(Shape* shape, double x, double y) noexcept nogil:
    if shape.count < MAX_CORNERS:
        shape.corners[shape.count][X], shape.corners[shape.count][Y] = x, y
        shape.count += 1


cdef void cut(Shape* shape, int axis, double limit, double sign) noexcept nogil:
    cdef Shape kept
    cdef double* first
    cdef double* second
    cdef double past_first, past_second, share
    cdef int i
    kept.count = 0
    for i in range(shape.count):
        first, second = shape.corners[i], shape.corners[(i + 1) % shape.count]
        past_first, past_second = sign * (first[axis] - limit), sign * (second[axis] - limit)
        if past_first <= 0:
            put(&kept, first[X], first[Y])
        if (past_first <= 0) != (past_second <= 0):
            share = past_first / (past_first - past_second)
            put(&kept, first[X] + share * (second[X] - first[X]),
                first[Y] + share * (second[Y] - first[Y]))
    shape.count = kept.count
    memcpy(shape.corners, kept.corners, kept.count * sizeof(double[2]))


cdef double area(Shape* shape) noexcept nogil:
    cdef double twice = 0
    cdef double* first
    cdef double* second
    cdef int i
    for i in range(shape.count):
        first, second = shape.corners[i], shape.corners[(i + 1) % shape.count]
        twice += first[X] * second[Y] - second[X] * first[Y]
    return (twice if twice > 0 else -twice) / 2


cdef inline void move_point(double* point, const double* matrix) noexcept nogil:
    """`matrix` leads from the moved pixels back to where they were."""
    cdef double x = point[X] - matrix[2], y = point[Y] - matrix[5]
    cdef double whole = matrix[0] * matrix[4] - matrix[1] * matrix[3]
    point[X] = (matrix[4] * x - matrix[1] * y) / whole
    point[Y] = (matrix[0] * y - matrix[3] * x) / whole


cdef void move(Moved* moved, const operation* done, int width, int height) noexcept nogil:
    cdef double[6] matrix
    cdef int i
    operation_matrix(done, width, height, matrix)
    for i in range(moved.shape.count):
        move_point(moved.shape.corners[i], matrix)
    move_point(moved.centre, matrix)
    moved.inside = (moved.inside and 0 <= moved.centre[X] < width
                    and 0 <= moved.centre[Y] < height)
    cut(&moved.shape, X, 0, -1)
    cut(&moved.shape, X, width, 1)
    cut(&moved.shape, Y, 0, -1)
    cut(&moved.shape, Y, height, 1)


cdef void begin(Moved* moved, const float* box, int width, int height, bint mirror) noexcept nogil:
    cdef double left = box[1], right = box[3]
    if mirror:
        left, right = 1 - right, 1 - left
    moved.shape.count = 0
    put(&moved.shape, left * width, <double>box[2] * height)
    put(&moved.shape, right * width, <double>box[2] * height)
    put(&moved.shape, right * width, <double>box[4] * height)
    put(&moved.shape, left * width, <double>box[4] * height)
    moved.centre[X] = (left + right) / 2 * width
    moved.centre[Y] = (<double>box[2] + box[4]) / 2 * height
    moved.inside = True


cdef bint follow(const float* box, const Drawn* drawn, int first, int last, int width, int height,
                 bint mirror, const CropLimits* limits, float* around) noexcept nogil:
    """Move a box by some of the operations; False for one that is dropped."""
    cdef Moved moved
    cdef double whole, rounding, low, high
    cdef double[2] sides = [width, height]
    cdef int i, axis
    begin(&moved, box, width, height, mirror)
    whole = area(&moved.shape)
    for i in range(first, last):
        if operation_is_geometric(drawn.operations[i].kind):
            move(&moved, &drawn.operations[i], width, height)
    # What is left of a box that was moved out is as much as float32 labels are off by.
    rounding = LABEL_ROUNDING * width * height * ((box[3] - box[1]) + (box[4] - box[2]))
    if moved.shape.count < 3 or area(&moved.shape) <= rounding:
        return False
    if not (area(&moved.shape) > limits.emit_overlap * whole if limits.by_overlap
            else moved.inside):
        return False
    for axis in range(2):
        low = high = moved.shape.corners[0][axis]
        for i in range(moved.shape.count):
            low = min(low, moved.shape.corners[i][axis])
            high = max(high, moved.shape.corners[i][axis])
        low, high = max(low / sides[axis], 0.0), min(high / sides[axis], 1.0)  # cuts are rounded
        if mirror and axis == X:
            low, high = 1 - high, 1 - low
        around[1 + axis], around[3 + axis] = <float>low, <float>high
    return around[3] > around[1] and around[4] > around[2]


cdef bint moves(const Drawn* drawn) noexcept nogil:
    cdef int i
    for i in range(drawn.count):
        if operation_is_geometric(drawn.operations[i].kind):
            return True
    return False


cdef bint move_box(float* box, const Drawn* drawn, int width, int height, bint mirror,
                   const CropLimits* limits) noexcept nogil:
    """Change a box; False if it is to be dropped."""
    cdef float[5] around
    cdef float[5] was
    cdef int part, i
    if drawn.num_parts == 0:
        return follow(box, drawn, 0, drawn.count, width, height, mirror, limits, box)
    # All parts of a mix are seen at once, and the image where it was.
    for i in range(1, 5):
        was[i] = box[i]
    for part in range(drawn.num_parts):
        if follow(was, drawn, drawn.parts[part], drawn.parts[part + 1], width, height, mirror,
                  limits, around):
            box[1], box[2] = min(box[1], around[1]), min(box[2], around[2])
            box[3], box[4] = max(box[3], around[3]), max(box[4], around[4])
    return True


cdef void move_objects(Objects* objects, const Drawn* drawn, int width, int height, bint mirror,
                       const CropLimits* limits) noexcept nogil:
    cdef Py_ssize_t i, kept = 0
    cdef float* box
    if not moves(drawn):
        return
    for i in range(objects.count):
        box = objects.values + i * objects.width
        if move_box(box, drawn, width, height, mirror, limits):
            memmove(objects.values + kept * objects.width, box, sizeof(float) * objects.width)
            kept += 1
    objects.count = kept
