# build: small
"""Fields beside an image: a plan for all threads, a worker for each, and the path of the image.

The stage calls the workers behind the renderer of the image, whose geometry they follow.  A path
says how the pixels of the image came into its slot.  Its steps are those that were drawn for the
image, whatever became of its colours.  Backwards it finds the pixel of a mask for every pixel of
the slot; forwards it moves points and corners.  Positions are those of `Image.transform`: pixel i
reaches from i to i + 1.
"""

from libc.math cimport NAN, floor
from libc.stdint cimport int64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset

from iterators.images.augment.geometry cimport (
    STEP_AFFINE, STEP_PAD, STEP_PERSPECTIVE, STEP_RESAMPLE, STEP_WARP,
)
from iterators.images.augment.pixel_changes cimport Change
from iterators.images.image_steps cimport padded_from
from recordio.formats.status cimport RENDER_GEOMETRY, RENDER_MEMORY, RENDER_OK, outcome_fail
from recordio.kernels.transform cimport transform_map


cdef enum:
    ACROSS = 0              # axes
    DOWN = 1

#: Pixels by which a point may lie outside of an edge: sines and float32 fractions are rounded.
cdef double ROUNDING = 1e-3


cdef class PathFinder:
    """Notes what is drawn for each image that `runner` makes, and finds its path."""

    def __init__(self, StepRunner runner not None):
        if any([runner.changes[i].mixes for i in range(runner.num_changes)]):
            raise ValueError(
                "auto_augment mixes several moved copies of an image, and no field can lie under "
                "all of them: drop fields, or use a policy that mixes none, such as randaugment")

    cdef void note(self, const Geometry* geometry, int width, int height) noexcept nogil:
        self.drawn.count, self.drawn.mirror = geometry.count, geometry.mirror
        self.drawn.flip, self.drawn.changed = geometry.flip, geometry.changed
        memcpy(self.drawn.steps, geometry.steps, geometry.count * sizeof(Step))
        self.width, self.height = width, height

    cdef int find(self, StepRunner runner, FieldPath* path, Outcome* outcome) noexcept nogil:
        cdef int i
        cdef const Change* change
        cdef const Step* last
        path.width, path.height, path.count = self.width, self.height, self.drawn.count
        path.mirror, path.flip = self.drawn.mirror, self.drawn.flip
        path.reversed, path.straight = path.mirror != path.flip, True
        memcpy(path.steps, self.drawn.steps, self.drawn.count * sizeof(Step))
        last = &path.steps[path.count - 1]
        path.out_width, path.out_height = last.out_width, last.out_height
        path.drawn, path.changed = path.count, self.drawn.changed
        for i in range(path.count):
            path.straight = path.straight and is_straight(&path.steps[i])
        for i in range(runner.num_changes):
            change = &runner.changes[i]
            if runner.drawn[i] and change.follow != NULL:
                change.follow(change.state, path.out_width, path.out_height, add_map, path)
        if path.count > MAX_PATH:
            return outcome_fail(outcome, RENDER_GEOMETRY,
                                b"more operations move the image than its fields can follow")
        return RENDER_OK


cdef void map_of(const Step* step, double* map) noexcept nogil:
    """Copy the map of a step, from positions in its target to those in its input."""
    memcpy(map, step.inverse, sizeof(step.inverse))
    if step.kind == STEP_WARP:      # which maps the centres of pixels
        map[2] = map[2] + 0.5 - 0.5 * (map[0] + map[1])
        map[5] = map[5] + 0.5 - 0.5 * (map[3] + map[4])


cdef void add_map(void* context, const transform_map* how) noexcept nogil:
    """Add a step that moves the finished image."""
    cdef FieldPath* path = <FieldPath*>context
    cdef Step* step
    if path.count >= MAX_PATH:
        path.count = MAX_PATH + 1
        return
    step = &path.steps[path.count]
    path.count += 1
    memset(step, 0, sizeof(Step))
    step.kind = STEP_PERSPECTIVE if how.perspective else STEP_AFFINE
    step.method = how.method
    step.width = step.target_width = step.out_width = path.out_width
    step.height = step.target_height = step.out_height = path.out_height
    memcpy(step.inverse, how.matrix, sizeof(step.inverse))
    path.straight = False
    if how.matrix[0] * how.matrix[4] - how.matrix[1] * how.matrix[3] < 0:
        path.reversed = not path.reversed


cdef inline bint is_straight(const Step* step) noexcept nogil:
    return step.kind == STEP_RESAMPLE or step.kind == STEP_PAD


# ---- backwards, pixel by pixel ----

cdef void fill_table(const Step* step, int axis, int32_t* table) noexcept nogil:
    """Find the column or row of the input for each one of the output; -1 outside."""
    cdef int first = step.left if axis == ACROSS else step.top, i
    cdef int count = step.out_width if axis == ACROSS else step.out_height
    cdef int64_t begin = step.x if axis == ACROSS else step.y
    cdef int64_t side = step.width if axis == ACROSS else step.height
    cdef int64_t target = step.target_width if axis == ACROSS else step.target_height
    cdef int border = step.border_x if axis == ACROSS else step.border_y
    for i in range(count):
        if step.kind == STEP_PAD:
            table[i] = padded_from(step.method, first + i - border, <int>side)
        else:
            table[i] = <int32_t>(begin + (2 * <int64_t>(first + i) + 1) * side // (2 * target))


cdef class Tracer:
    """Finds the origins of the pixels of one slot after the other."""

    def __cinit__(self):
        self.memory, self.capacity = NULL, 0

    def __dealloc__(self):
        free(self.memory)

    cdef int begin(self, const FieldPath* path, Outcome* outcome) noexcept nogil:
        cdef size_t needed = <size_t>path.out_width + path.out_height
        cdef const Step* step
        cdef int32_t* at
        cdef int i
        self.path = path
        for i in range(path.count):
            if is_straight(&path.steps[i]):
                needed += <size_t>path.steps[i].out_width + path.steps[i].out_height
        if needed > self.capacity:
            at = <int32_t*>realloc(self.memory, needed * sizeof(int32_t))
            if at == NULL:
                return outcome_fail(outcome, RENDER_MEMORY, b"")
            self.memory, self.capacity = at, needed
        self.columns, self.rows = self.memory, self.memory + path.out_width
        at = self.rows + path.out_height
        for i in range(path.count):
            step = &path.steps[i]
            if not is_straight(step):
                continue
            self.tables[i][ACROSS], self.tables[i][DOWN] = at, at + step.out_width
            at += step.out_width + step.out_height
            fill_table(step, ACROSS, self.tables[i][ACROSS])
            fill_table(step, DOWN, self.tables[i][DOWN])
        if path.straight:
            self.join(ACROSS, path.out_width, path.mirror, self.columns)
            self.join(DOWN, path.out_height, path.flip, self.rows)
        return RENDER_OK

    cdef void join(self, int axis, int count, bint reversed, int32_t* out) noexcept nogil:
        """Follow the tables of all steps."""
        cdef int i, j
        cdef int32_t at
        for j in range(count):
            at = count - 1 - j if reversed else j
            for i in range(self.path.count - 1, -1, -1):
                if at >= 0:
                    at = self.tables[i][axis][at]
            out[j] = at

    cdef void trace(self, int y, int32_t* xs, int32_t* ys) noexcept nogil:
        cdef const FieldPath* path = self.path
        cdef const Step* step
        cdef double[8] m
        cdef double x_at, y_at, across, down, depth
        cdef int i, j, count = path.out_width
        cdef int row = path.out_height - 1 - y if path.flip else y
        for j in range(count):
            xs[j], ys[j] = count - 1 - j if path.mirror else j, row
        for i in range(path.count - 1, -1, -1):
            step = &path.steps[i]
            if is_straight(step):
                for j in range(count):
                    if xs[j] >= 0:
                        xs[j], ys[j] = self.tables[i][ACROSS][xs[j]], self.tables[i][DOWN][ys[j]]
                        if ys[j] < 0:
                            xs[j] = -1
                continue
            map_of(step, m)
            for j in range(count):
                if xs[j] < 0:
                    continue
                x_at, y_at = xs[j] + step.left + 0.5, ys[j] + step.top + 0.5
                across = m[0] * x_at + m[1] * y_at + m[2]
                down = m[3] * x_at + m[4] * y_at + m[5]
                if step.kind == STEP_PERSPECTIVE:
                    depth = m[6] * x_at + m[7] * y_at + 1
                    across, down = across / depth, down / depth
                if 0 <= across < step.width and 0 <= down < step.height:
                    xs[j], ys[j] = <int32_t>across, <int32_t>down
                else:
                    xs[j] = -1

    cdef void trace_exactly(self, int y, double* xs, double* ys) noexcept nogil:
        cdef const FieldPath* path = self.path
        cdef int i, j, count = path.out_width
        cdef int row = path.out_height - 1 - y if path.flip else y
        for j in range(count):
            xs[j], ys[j] = (count - 1 - j if path.mirror else j) + 0.5, row + 0.5
            for i in range(path.count - 1, -1, -1):
                if not step_back(&path.steps[i], &xs[j], &ys[j]):
                    xs[j] = NAN
                    break


# ---- positions ----

cdef bint pad_back(int method, double border, int side, double* at) noexcept nogil:
    cdef double whole
    cdef int before, after
    at[0] -= border
    if 0 <= at[0] < side:
        return True
    whole = floor(at[0])
    before = padded_from(method, <int>whole, side)
    if before < 0:
        return False
    after = padded_from(method, <int>whole + 1, side)
    at[0] = before + (1 - (at[0] - whole) if after < before else at[0] - whole)
    return True


cdef bint step_back(const Step* step, double* x, double* y) noexcept nogil:
    """Find the position in the input of a step; False outside."""
    cdef double across = x[0] + step.left, down = y[0] + step.top, depth
    cdef double[8] m
    if step.kind == STEP_RESAMPLE:
        x[0] = step.x + across * step.width / step.target_width
        y[0] = step.y + down * step.height / step.target_height
        return True
    x[0], y[0] = across, down
    if step.kind == STEP_PAD:
        return (pad_back(step.method, step.border_x, step.width, x)
                and pad_back(step.method, step.border_y, step.height, y))
    map_of(step, m)
    x[0], y[0] = m[0] * across + m[1] * down + m[2], m[3] * across + m[4] * down + m[5]
    if step.kind == STEP_PERSPECTIVE:
        depth = m[6] * across + m[7] * down + 1
        x[0], y[0] = x[0] / depth, y[0] / depth
    return 0 <= x[0] < step.width and 0 <= y[0] < step.height


cdef bint step_forward(const Step* step, double* x, double* y) noexcept nogil:
    cdef double[8] m
    cdef double whole, a, b, c, d, u = x[0], v = y[0]
    if step.kind == STEP_RESAMPLE:
        x[0] = (u - step.x) * step.target_width / step.width - step.left
        y[0] = (v - step.y) * step.target_height / step.height - step.top
        return True
    if step.kind == STEP_PAD:
        x[0], y[0] = u + step.border_x - step.left, v + step.border_y - step.top
        return True
    map_of(step, m)
    # (m0 - m6 u) x + (m1 - m7 u) y = u - m2, and alike for v: the map solved for the target.
    a, b = m[0], m[1]
    c, d = m[3], m[4]
    if step.kind == STEP_PERSPECTIVE:
        a, b = m[0] - m[6] * u, m[1] - m[7] * u
        c, d = m[3] - m[6] * v, m[4] - m[7] * v
    whole = a * d - b * c
    if whole == 0:
        return False
    u, v = u - m[2], v - m[5]
    x[0], y[0] = (d * u - b * v) / whole - step.left, (a * v - c * u) / whole - step.top
    return True


cdef inline bint is_within(double at, double low, double side) noexcept nogil:
    """Return whether a position is inside or on either edge, the roundings of maps left aside."""
    return low - ROUNDING <= at <= low + side + ROUNDING


cdef bint move_point(const FieldPath* path, double* x, double* y) noexcept nogil:
    cdef const Step* step
    cdef bint seen = is_within(x[0], 0, path.width) and is_within(y[0], 0, path.height)
    cdef int i
    for i in range(path.count):
        step = &path.steps[i]
        if step.kind == STEP_RESAMPLE and i == 0:
            seen = (seen and is_within(x[0], step.x, step.width)
                    and is_within(y[0], step.y, step.height))
        if not step_forward(step, x, y):
            return False
        seen = seen and is_within(x[0], 0, step.out_width) and is_within(y[0], 0, step.out_height)
    if path.mirror:
        x[0] = path.out_width - x[0]
    if path.flip:
        y[0] = path.out_height - y[0]
    return seen


cdef void find_origin(const FieldPath* path, double* x, double* y) noexcept nogil:
    cdef const Step* step
    cdef int i
    if path.mirror:
        x[0] = path.out_width - x[0]
    if path.flip:
        y[0] = path.out_height - y[0]
    for i in range(path.count - 1, -1, -1):
        step = &path.steps[i]
        if step.kind == STEP_PAD:       # as if the image went on
            x[0], y[0] = x[0] + step.left - step.border_x, y[0] + step.top - step.border_y
        else:
            step_back(step, x, y)


# ---- plans and workers ----

cdef class FieldWorker:
    """Base class: makes nothing."""

    cdef int render(self, const Encoded* record, const FieldTask* task,
                    Outcome* outcome) noexcept nogil:
        return RENDER_OK


cdef class FieldPlan:
    """Base class of the plans of fields.

    `spec` is what was asked for, `source` gives its records, and `view` is the view of the image
    whose geometry it has.
    """

    def __init__(self, name, spec, Source source, int view=0):
        self.name, self.spec, self.source, self.view = name, spec, source, view

    def worker(self, renderer):
        """Make a worker beside a renderer of images."""
        raise NotImplementedError

    def shape(self, slots, size=None):
        """Return the shape of the array of a batch, with images of that height and width."""
        raise NotImplementedError

    cdef size_t set_target(self, Py_ssize_t slots, int height, int width, char* data,
                           Target* target) noexcept nogil:
        return 0

    def value(self, content):
        """Return what a sample has, of the bytes of its payload."""
        return content


cdef uint8_t* payload_room(Payload* payload, size_t size, Outcome* outcome) noexcept nogil:
    cdef void* memory
    if size > payload.capacity:
        memory = realloc(payload.bytes, size)
        if memory == NULL:
            outcome_fail(outcome, RENDER_MEMORY, b"")
            return NULL
        payload.bytes, payload.capacity = <uint8_t*>memory, size
    payload.size = size
    return payload.bytes
