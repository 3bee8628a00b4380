"""Fields that are read as they are, or follow from the image alone: texts, JSON, crop, size."""

from libc.stdint cimport int32_t, uint8_t
from libc.string cimport memchr, memcpy

from iterators.images.augment.draw cimport DRAW_LINE, draw, draw_integer
from iterators.images.fields.field cimport FieldPlan, FieldTask, FieldWorker, payload_room
from iterators.images.fields.path cimport FieldPath, find_origin
from iterators.images.render cimport parse_header
from iterators.images.sources.source cimport Encoded, Source
from recordio.formats.status cimport RENDER_OK, Outcome

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

    cdef int render(self, const Encoded* found, const FieldTask* task,
                    Outcome* outcome) noexcept nogil:
        cdef Encoded encoded = found[0]
        cdef const uint8_t* begin
        cdef const uint8_t* end
        cdef const uint8_t* last
        cdef const uint8_t* line
        cdef int count = 1, number = 0
        cdef uint8_t* out
        if encoded.has_header and parse_header(&encoded, outcome):
            return outcome.status
        begin, last = encoded.data, encoded.data + encoded.size
        if self.lines != LINES_ALL and encoded.size and last[-1] == c"\n":
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

    cdef int render(self, const Encoded* found, const FieldTask* task,
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
