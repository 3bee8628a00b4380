"""Paths of images whose fields follow them, by the same functions as the image stage."""

from libc.stdint cimport int32_t, uint8_t
from libc.stdlib cimport free, malloc

from iterators.images.fields.field cimport FieldPath, PathFinder, Tracer, find_origin, move_point
from iterators.images.fields.pixel_fields cimport ValueReader, gather_row, value_image
from iterators.images.render cimport Renderer
from recordio.formats.row_source cimport ImageInfo, Rectangle
from recordio.formats.status cimport RENDER_OK, Outcome

import numpy as np

from recordio.errors import ImageDecodeError


cdef enum:
    INT32 = 2               # a type of `gather.h`


cdef class Path:
    """What moved the pixels of the image that a renderer of `plan` makes of `pixels`."""

    cdef FieldPath* path
    cdef Tracer tracer
    cdef readonly object image

    def __cinit__(self, maker, pixels, epoch, number):
        cdef Renderer renderer = maker.renderer
        cdef Outcome outcome
        outcome.status, outcome.message[0] = RENDER_OK, 0
        self.path = <FieldPath*>malloc(sizeof(FieldPath))
        self.image = renderer.pixels(pixels, epoch, number)
        if renderer.path_finder.find(renderer.runner, self.path, &outcome):
            raise ValueError(outcome.message.decode())
        self.tracer = Tracer()
        self.tracer.begin(self.path, &outcome)

    def __dealloc__(self):
        free(self.path)

    @property
    def steps(self):
        """The steps, as dicts."""
        return [self.path.steps[i] for i in range(self.path.count)]

    @property
    def mirror(self):
        return bool(self.path.mirror)

    @property
    def flip(self):
        return bool(self.path.flip)

    @property
    def reversed(self):
        return bool(self.path.reversed)

    @property
    def straight(self):
        return bool(self.path.straight)

    def origins(self):
        """Column and row of the origin of every pixel, -1 outside: (2, height, width)."""
        cdef int y
        cdef int width = self.path.out_width, height = self.path.out_height
        found = np.empty((2, height, width), np.int32)
        cdef int32_t[:, :, ::1] view = found
        for y in range(height):
            self.tracer.trace(y, &view[0, y, 0], &view[1, y, 0])
        return np.where(found[:1] < 0, -1, found)

    def moved(self, double x, double y):
        """A point of the image in the finished one, and whether it is seen all the way."""
        seen = move_point(self.path, &x, &y)
        return x, y, bool(seen)

    def origin(self, double x, double y):
        """The point of the image under one of the finished image."""
        find_origin(self.path, &x, &y)
        return x, y


cdef class PathMaker:
    """Makes the paths of a plan."""

    cdef readonly Renderer renderer

    def __init__(self, plan):
        self.renderer = Renderer(plan)
        self.renderer.path_finder = PathFinder(self.renderer.runner)

    def __call__(self, pixels, epoch=0, number=0):
        return Path(self, pixels, epoch, number)


def read_values(const uint8_t[::1] data not None, limits, *, exact=True, region=None):
    """Values of a rectangle (x, y, width, height) of an image, of all of it by default."""
    cdef ValueReader reader = ValueReader(dict(limits), exact)
    cdef ImageInfo info
    cdef Outcome outcome
    cdef Rectangle wanted
    cdef value_image found
    cdef int32_t[::1] columns
    cdef int y
    outcome.message[0] = 0
    if data.shape[0] == 0 or reader.open(&data[0], data.shape[0], &info, &outcome):
        raise ImageDecodeError(outcome.message.decode("utf-8", "replace"))
    wanted.x, wanted.y, wanted.width, wanted.height = region or (0, 0, info.width, info.height)
    if reader.read(&wanted, &found, &outcome):
        raise ImageDecodeError(outcome.message.decode("utf-8", "replace"))
    columns = np.arange(wanted.x, wanted.x + wanted.width, dtype=np.int32)
    values = np.empty((wanted.height, wanted.width), np.int32)
    cdef char* out = <char*><size_t>values.ctypes.data
    for y in range(wanted.height):
        gather_row(&found, wanted.y + y, &columns[0], wanted.width, -1, INT32,
                   out + 4 * <size_t>y * wanted.width)
    reader.finish()
    return values, found.bytes
