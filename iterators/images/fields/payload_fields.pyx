# build: small
"""Fields of no fixed size: texts, JSON, crop and size of the image, key points and boxes.

Key points and boxes move as the pixels of their image do.  They lie in the labels of records,
``[A, B, A - 2 more values, objects of B values]``, in fractions of the image, and are delivered in
pixels of the finished one.
"""

from libc.math cimport isfinite
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdio cimport snprintf
from libc.stdlib cimport free
from libc.string cimport memchr, memcpy

from iterators.images.augment.det_geometry cimport (
    X, Y, Objects, Shape, area, check_object, cut, label_message, put,
)
from iterators.images.augment.draw cimport DRAW_LINE, draw, draw_integer
from iterators.images.augment.geometry cimport Step
from iterators.images.det_render cimport ObjectLabels
from iterators.images.fields.field cimport (
    FieldPath, FieldPlan, FieldTask, FieldWorker, find_origin, move_point, payload_room,
    step_forward,
)
from iterators.images.render cimport Renderer, parse_header
from iterators.images.sources.source cimport FETCH_OK, Encoded, Scratch, Source
from recordio.formats.status cimport MESSAGE_SIZE, RENDER_LABEL, RENDER_OK, Outcome, outcome_fail

import json

import numpy as np

from recordio.errors import FieldError


#: The lines of a text that are delivered.
LINES = ("all", "first", "random")

cdef enum Lines:
    LINES_ALL = 0
    LINES_FIRST
    LINES_RANDOM

#: What follows from the image alone: the type of its values, and how many a sample has.
PLACES = {"size": ("int32", 2), "crop": ("float32", 4), "mirrored": ("bool", 1)}

cdef enum Place:
    PLACE_SIZE = 0
    PLACE_CROP
    PLACE_MIRRORED


cdef class TextPlan(FieldPlan):
    """A text in UTF-8, or the JSON value that it holds, decoded where it is delivered."""

    def __init__(self, name, spec, Source source, int view):
        FieldPlan.__init__(self, name, spec, source, view)
        self.padding = "" if hasattr(spec, "line") else None

    def worker(self, renderer):
        """Make a worker beside a renderer of images."""
        return TextWorker(LINES.index(getattr(self.spec, "line", "all")))

    def value(self, content):
        """Return what a sample has, of the bytes of its payload."""
        try:
            text = content.decode("utf-8")
            return text if hasattr(self.spec, "line") else json.loads(text)
        except ValueError as error:
            kind = "UTF-8" if isinstance(error, UnicodeDecodeError) else "JSON"
            raise FieldError(f"the content of field {self.name} is no {kind}: {error}") from None


cdef class TextWorker(FieldWorker):
    """Copies a text, or a line of it."""

    cdef int lines

    def __init__(self, int lines):
        self.lines = lines

    cdef int render(self, const Encoded* record, const FieldTask* task,
                    Outcome* outcome) noexcept nogil:
        cdef Encoded encoded = record[0]
        cdef const uint8_t* begin
        cdef const uint8_t* end
        cdef const uint8_t* last
        cdef const uint8_t* line
        cdef int count = 1, number = 0
        cdef uint8_t* out
        if encoded.has_header and parse_header(&encoded, outcome):
            return outcome.status
        begin, last = encoded.data, encoded.data + encoded.size
        if self.lines != LINES_ALL and encoded.size and (last - 1)[0] == c"\n":
            last -= 1
        end = last
        if self.lines == LINES_RANDOM:
            line = begin
            while True:
                line = <const uint8_t*>memchr(line, c"\n", last - line)
                if line == NULL:
                    break
                line += 1
                count += 1
            number = draw_integer(draw(task.image, DRAW_LINE).word[0], 0, count - 1)
            while number:
                begin = <const uint8_t*>memchr(begin, c"\n", last - begin) + 1
                number -= 1
        if self.lines != LINES_ALL:
            end = <const uint8_t*>memchr(begin, c"\n", last - begin)
            end = last if end == NULL else end
        out = payload_room(task.payload, end - begin, outcome)
        if end > begin:
            if out == NULL:
                return outcome.status
            memcpy(out, begin, end - begin)
        return RENDER_OK


cdef class PlacePlan(FieldPlan):
    """What is seen of the image, the size of all of it, or whether it is mirrored.

    A sample has `values` of the type `dtype`.
    """

    cdef readonly int values

    def __init__(self, name, spec, int view):
        FieldPlan.__init__(self, name, spec, None, view)
        dtype, self.values = PLACES[spec.place]
        self.dtype = np.dtype(dtype)
        self.padding = bytes(self.dtype.itemsize * self.values)

    def worker(self, renderer):
        """Make a worker beside a renderer of images."""
        return PlaceWorker(self.spec.place)


cdef class PlaceWorker(FieldWorker):
    """Notes where the finished image comes from."""

    cdef int place
    cdef size_t size

    def __init__(self, place):
        self.place = list(PLACES).index(place)
        dtype, values = PLACES[place]
        self.size = np.dtype(dtype).itemsize * values

    cdef int render(self, const Encoded* record, const FieldTask* task,
                    Outcome* outcome) noexcept nogil:
        cdef const FieldPath* path = task.path
        cdef uint8_t* out = payload_room(task.payload, self.size, outcome)
        cdef double[2] low
        cdef double[2] high
        cdef double x, y
        cdef int i
        if out == NULL:
            return outcome.status
        if self.place == PLACE_MIRRORED:
            out[0] = path.reversed
            return RENDER_OK
        if self.place == PLACE_SIZE:
            (<int32_t*>out)[0], (<int32_t*>out)[1] = path.width, path.height
            return RENDER_OK
        for i in range(4):
            x, y = path.out_width * (i & 1), path.out_height * (i >> 1)
            find_origin(path, &x, &y)
            x, y = min(max(x, 0), <double>path.width), min(max(y, 0), <double>path.height)
            if i == 0:
                low[0], low[1], high[0], high[1] = x, y, x, y
            low[0], low[1] = min(low[0], x), min(low[1], y)
            high[0], high[1] = max(high[0], x), max(high[1], y)
        (<float*>out)[0], (<float*>out)[1] = <float>low[0], <float>low[1]
        (<float*>out)[2], (<float*>out)[3] = (
            <float>(high[0] - low[0]), <float>(high[1] - low[1]))
        return RENDER_OK


# ---- objects ----

cdef enum:
    POINT = 3               # values of a key point: x, y, v
    CORNERS = 4
    LEAST_HEADER = 2

# Coordinates of boxes, in the order of `BOX_FORMATS`.
cdef enum Format:
    FORMAT_XYXY = 0
    FORMAT_XYWH
    FORMAT_CXCYWH

cdef double ROUNDING = 2.0 ** -23


cdef inline float value_at(const Encoded* record, Py_ssize_t position) noexcept nogil:
    """Return one value of the labels, which need not be aligned."""
    cdef float value
    memcpy(&value, <const uint8_t*>record.labels + 4 * position, 4)
    return value


cdef int find_objects(const Encoded* record, int least, Py_ssize_t* first, Objects* objects,
                      Outcome* outcome) noexcept nogil:
    """Find the objects in the labels of a record, and check boxes; their values are not copied."""
    cdef Py_ssize_t i, count = record.flag
    cdef int status
    cdef float header, width
    if count < LEAST_HEADER:
        return outcome_fail(outcome, RENDER_LABEL,
                            b"the record has no vector of labels with objects: [2, values of an "
                            b"object, objects]")
    header, width = value_at(record, 0), value_at(record, 1)
    # Compared as floats first: the conversion of a value out of range is undefined.
    if not (LEAST_HEADER <= header <= count) or not (least <= width <= 1 << 20):
        snprintf(outcome.message, MESSAGE_SIZE,
                 "the labels begin with %g and %g: expected a header of 2 to %lld values, and "
                 "objects of at least %d", <double>header, <double>width, <long long>count, least)
        outcome.status = RENDER_LABEL
        return RENDER_LABEL
    first[0], objects.width = <Py_ssize_t>header, <int>width
    objects.count, objects.values = (count - first[0]) // objects.width, NULL
    if first[0] + objects.count * objects.width != count:
        return outcome_fail(outcome, RENDER_LABEL,
                            b"the values behind the header of the labels are no whole number of "
                            b"objects")
    if least < 1 + CORNERS:
        return RENDER_OK
    for i in range(objects.count):
        status = check_object(
            <const uint8_t*>record.labels + 4 * (first[0] + i * objects.width))
        if status:
            return outcome_fail(outcome, RENDER_LABEL, label_message(status))
    return RENDER_OK


def scan_objects(Source source not None, int least, int64_t last=-1):
    """Return the values of the first object and the most such objects of a record.

    Records from number `last` on are not looked at, and those of no use do not count.  Without any
    object they are the values that a label without objects states, or 0, and 0.
    """
    cdef Scratch scratch
    cdef Encoded record
    cdef Outcome outcome
    cdef Objects objects
    cdef Py_ssize_t first, most = 0
    cdef int64_t number
    cdef int width = 0, stated = 0
    scratch.bytes, scratch.capacity = NULL, 0
    with nogil:
        for number in range(source.count if last < 0 else min(last, source.count)):
            if source.fetch_head(number, &scratch, &record) != FETCH_OK:
                continue
            if record.has_header and parse_header(&record, &outcome):
                continue
            if find_objects(&record, least, &first, &objects, &outcome) == RENDER_OK:
                if width == 0 and objects.count:
                    width = objects.width
                if stated == 0:
                    stated = objects.width
                if objects.width == width:
                    most = max(most, objects.count)
    free(scratch.bytes)
    return width or stated, most


cdef class ObjectPlan(FieldPlan):
    """A field of objects: `width` values each, at most `most` in a sample; `spec` says the rest.

    Without a source they are those of the image's own labels, which its geometry has moved.
    """

    cdef readonly int width_of_object
    cdef readonly Py_ssize_t most

    def __init__(self, name, spec, Source source, int view, int width, Py_ssize_t most):
        FieldPlan.__init__(self, name, spec, source, view)
        self.padding = b""
        self.width_of_object, self.most = width, most

    def worker(self, renderer):
        """Make a worker beside a renderer of images."""
        if self.source is None:
            return OwnBoxWorker(self, renderer)
        if hasattr(self.spec, "swap"):
            return PointWorker(self)
        return BoxWorker(self)


cdef class ObjectWorker(FieldWorker):
    """Base class: reads the objects of a record."""

    cdef int width
    cdef Py_ssize_t most
    cdef int least

    def __init__(self, ObjectPlan plan not None):
        self.width, self.most = plan.width_of_object, plan.most

    cdef int render(self, const Encoded* record, const FieldTask* task,
                    Outcome* outcome) noexcept nogil:
        cdef Encoded encoded = record[0]
        cdef Objects objects
        cdef Py_ssize_t first
        if encoded.has_header and parse_header(&encoded, outcome):
            return outcome.status
        if find_objects(&encoded, self.least, &first, &objects, outcome):
            return outcome.status
        if objects.count and objects.width != self.width:
            snprintf(outcome.message, MESSAGE_SIZE,
                     "the objects of the record have %d values, and those of others %d",
                     objects.width, self.width)
            outcome.status = RENDER_LABEL
            return RENDER_LABEL
        return self.move(&encoded, first, &objects, task, outcome)

    cdef int move(self, const Encoded* record, Py_ssize_t first, Objects* objects,
                  const FieldTask* task, Outcome* outcome) noexcept nogil:
        return RENDER_OK

    cdef int check_count(self, Py_ssize_t count, Outcome* outcome) noexcept nogil:
        if count <= self.most:
            return RENDER_OK
        snprintf(outcome.message, MESSAGE_SIZE,
                 "the sample has %lld objects, and most=%lld of the field: make it larger",
                 <long long>count, <long long>self.most)
        outcome.status = RENDER_LABEL
        return RENDER_LABEL


# ---- key points ----

cdef class PointWorker(ObjectWorker):
    """Moves key points; those out of sight have v = 0, and those of pairs are exchanged."""

    cdef object order
    cdef const int64_t[::1] partner     # of every point where left and right are exchanged

    def __init__(self, ObjectPlan plan not None):
        ObjectWorker.__init__(self, plan)
        self.least = POINT
        order = np.arange(plan.width_of_object // POINT)
        for one, other in plan.spec.swap:
            order[one], order[other] = other, one
        self.order = self.partner = order.astype(np.int64)

    cdef int move(self, const Encoded* record, Py_ssize_t first, Objects* objects,
                  const FieldTask* task, Outcome* outcome) noexcept nogil:
        cdef const FieldPath* path = task.path
        cdef Py_ssize_t i, j, at, points = self.width // POINT
        cdef float* out
        cdef float visible
        cdef double x, y
        cdef bint seen
        if self.check_count(objects.count, outcome):
            return outcome.status
        out = <float*>payload_room(
            task.payload, objects.count * self.width * sizeof(float), outcome)
        if out == NULL and objects.count:
            return outcome.status
        for i in range(objects.count):
            for j in range(points):
                at = first + i * self.width + POINT * (
                    self.partner[j] if path.reversed else j)
                x, y = value_at(record, at), value_at(record, at + 1)
                visible = value_at(record, at + 2)
                if not isfinite(x) or not isfinite(y):
                    return outcome_fail(outcome, RENDER_LABEL,
                                        b"a key point's coordinate is not a finite number")
                x, y = x * path.width, y * path.height
                seen = visible != 0 and move_point(path, &x, &y)
                if visible == 0:
                    x = y = 0
                out[0], out[1], out[2] = <float>x, <float>y, visible if seen else <float>0
                out += POINT
        return RENDER_OK


# ---- boxes ----

cdef void write_box(int format, const double* low, const double* high, float* out) noexcept nogil:
    out[0], out[1] = <float>low[X], <float>low[Y]
    out[2], out[3] = <float>high[X], <float>high[Y]
    if format != FORMAT_XYXY:
        out[2], out[3] = <float>(high[X] - low[X]), <float>(high[Y] - low[Y])
    if format == FORMAT_CXCYWH:
        out[0], out[1] = <float>((low[X] + high[X]) / 2), <float>((low[Y] + high[Y]) / 2)


BOX_FORMATS = ("xyxy", "xywh", "cxcywh")


cdef class BoxWorker(ObjectWorker):
    """Moves boxes: what is seen of each, and the box around that."""

    cdef int format
    cdef bint by_overlap
    cdef double least_overlap
    cdef Shape rest             # of the box at work, and all of it as it would be
    cdef Shape whole

    def __init__(self, ObjectPlan plan not None):
        ObjectWorker.__init__(self, plan)
        self.least = 1 + CORNERS
        self.format = BOX_FORMATS.index(plan.spec.format)
        self.by_overlap = plan.spec.emit == "overlap"
        self.least_overlap = plan.spec.min_overlap

    cdef int move(self, const Encoded* record, Py_ssize_t first, Objects* objects,
                  const FieldTask* task, Outcome* outcome) noexcept nogil:
        cdef Py_ssize_t i, kept = 0, size = objects.width * sizeof(float)
        cdef double[4] box
        cdef double[2] low
        cdef double[2] high
        cdef int j
        cdef float* out = <float*>payload_room(task.payload, objects.count * size, outcome)
        if out == NULL and objects.count:
            return outcome.status
        for i in range(objects.count):
            for j in range(CORNERS):
                box[j] = value_at(record, first + i * objects.width + 1 + j)
            if self.move_box(task.path, box, low, high):
                memcpy(out, <const uint8_t*>record.labels + 4 * (first + i * objects.width), size)
                write_box(self.format, low, high, out + 1)
                out += objects.width
                kept += 1
        task.payload.size = kept * size
        return self.check_count(kept, outcome)

    cdef bint move_box(self, const FieldPath* path, const double* box, double* low,
                       double* high) noexcept nogil:
        """Move a box, in fractions of the image; False if it is dropped."""
        cdef Shape* rest = &self.rest
        cdef const Step* step
        cdef double full, x = (box[0] + box[2]) / 2 * path.width
        cdef double y = (box[1] + box[3]) / 2 * path.height
        cdef int i, j
        cdef bint seen
        if box[2] <= box[0] or box[3] <= box[1]:
            return False
        rest.count = 0
        for i in range(CORNERS):    # one after the other around it
            put(rest, (box[2] if i == 1 or i == 2 else box[0]) * path.width,
                (box[3] if i >= 2 else box[1]) * path.height)
        memcpy(self.whole.corners, rest.corners, CORNERS * sizeof(double[2]))
        self.whole.count = CORNERS
        clip(rest, path.width, path.height)
        for i in range(path.count):
            step = &path.steps[i]
            for j in range(rest.count):
                if not step_forward(step, &rest.corners[j][X], &rest.corners[j][Y]):
                    return False
            for j in range(CORNERS):
                if not step_forward(step, &self.whole.corners[j][X], &self.whole.corners[j][Y]):
                    return False
            clip(rest, step.out_width, step.out_height)
        if rest.count < 3:
            return False
        full = area(&self.whole)
        # What is left of a box that was moved out is as much as float32 labels are off by.
        if area(rest) <= ROUNDING * max(full, 1.0):
            return False
        seen = move_point(path, &x, &y)
        if not (area(rest) > self.least_overlap * full if self.by_overlap else seen):
            return False
        low[X] = high[X] = rest.corners[0][X]
        low[Y] = high[Y] = rest.corners[0][Y]
        for i in range(1, rest.count):
            low[X], high[X] = min(low[X], rest.corners[i][X]), max(high[X], rest.corners[i][X])
            low[Y], high[Y] = min(low[Y], rest.corners[i][Y]), max(high[Y], rest.corners[i][Y])
        if path.mirror:
            low[X], high[X] = path.out_width - high[X], path.out_width - low[X]
        if path.flip:
            low[Y], high[Y] = path.out_height - high[Y], path.out_height - low[Y]
        return high[X] > low[X] and high[Y] > low[Y]


cdef void clip(Shape* shape, int width, int height) noexcept nogil:
    cut(shape, X, 0, -1)
    cut(shape, X, width, 1)
    cut(shape, Y, 0, -1)
    cut(shape, Y, height, 1)


cdef class OwnBoxWorker(FieldWorker):
    """Copies the objects of a detection image, which are in fractions of the finished one."""

    cdef ObjectLabels labels
    cdef int format
    cdef int width
    cdef Py_ssize_t most

    def __init__(self, ObjectPlan plan not None, Renderer renderer not None):
        self.labels = renderer.labels
        self.format = BOX_FORMATS.index(plan.spec.format)
        self.width, self.most = plan.width_of_object, plan.most

    cdef int render(self, const Encoded* record, const FieldTask* task,
                    Outcome* outcome) noexcept nogil:
        cdef const Objects* objects = &self.labels.objects
        cdef double[2] sides = [task.path.out_width, task.path.out_height]
        cdef double[2] low
        cdef double[2] high
        cdef const float* box
        cdef Py_ssize_t i, size = objects.width * sizeof(float)
        cdef int axis
        cdef float* out = <float*>payload_room(task.payload, objects.count * size, outcome)
        if objects.count == 0:
            return RENDER_OK
        if out == NULL:
            return outcome.status
        if objects.width != self.width or objects.count > self.most:
            snprintf(outcome.message, MESSAGE_SIZE,
                     "the sample has %lld objects of %d values, and the field room for %lld of %d",
                     <long long>objects.count, objects.width, <long long>self.most, self.width)
            outcome.status = RENDER_LABEL
            return RENDER_LABEL
        for i in range(objects.count):
            box = objects.values + i * objects.width
            for axis in range(2):
                low[axis], high[axis] = box[1 + axis] * sides[axis], box[3 + axis] * sides[axis]
            memcpy(out, box, size)
            write_box(self.format, low, high, out + 1)
            out += objects.width
        return RENDER_OK


def check_width(ObjectPlan plan not None):
    """Refuse points that are no whole ones, and pairs of points that are not there."""
    points, rest = divmod(plan.width_of_object, POINT)
    if rest:
        raise FieldError(
            f"the instances of field {plan.name} have {plan.width_of_object} values: expected x, y "
            "and v for each key point")
    for pair in plan.spec.swap:
        if points and max(pair) >= points:
            raise ValueError(f"swap={pair!r}: there are {points} key points")
