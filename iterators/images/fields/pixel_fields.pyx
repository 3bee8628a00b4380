"""Fields of pixels: masks, images of 16-bit values, and further images of a sample.

Masks and values have one number for each pixel, 8 or 16 bits, as it is stored: its number in a
palette, or its grey level, which is not stretched where it has fewer than 8 bits.  PNG and raw grey
images of values are read without the GIL, all others by Pillow.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdio cimport snprintf
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset

from iterators.images.augment.geometry cimport (
    MAX_STEPS, STEP_PAD, STEP_RESAMPLE, Geometry, Step, Target,
)
from iterators.images.fields.field cimport FieldPath, FieldPlan, FieldTask, FieldWorker, Tracer
from iterators.images.image_steps cimport StepRunner
from iterators.images.plan cimport RenderPlan
from iterators.images.render cimport Renderer, parse_header
from iterators.images.row_writer cimport RowWriter
from iterators.images.sources.source cimport Encoded, Source
from recordio.formats.pnm cimport PNM_OK, PNM_OTHER, pnm_explain, pnm_header, pnm_parse
from recordio.formats.row_source cimport SOURCE_FAILED, SOURCE_OPEN, Rows
from recordio.formats.status cimport (
    MESSAGE_SIZE, RENDER_GEOMETRY, RENDER_IMAGE, RENDER_MEMORY, RENDER_OK, outcome_fail,
)
from recordio.kernels.normalise cimport normalise_done
from recordio.kernels.pixel cimport PIXEL_SLACK

from dataclasses import fields

import numpy as np

from recordio.errors import ImageDecodeError, RecordIOError
from recordio.formats.general import turned
from recordio.formats.image_header import open_within_limits, read_header
from recordio.formats.jpeg.jpeg import DEFAULT_LIMITS
from recordio.formats.png.png import PngValues
from recordio.kernels.operations import METHODS

from ..augment.recipe import FILTERS, FIRST_FILTER


#: Types in which values are delivered.
VALUE_TYPES = ("uint8", "uint16", "int32", "int64", "float32")


def decode_values(bytes data not None, limits=DEFAULT_LIMITS, *, exact=True):
    """Return the values of an image by Pillow, upright: uint8 or uint16, (height, width).

    >>> import io
    >>> from PIL import Image
    >>> file = io.BytesIO()
    >>> Image.new("1", (3, 2), 1).save(file, "PNG")
    >>> decode_values(file.getvalue()).tolist()
    [[1, 1, 1], [1, 1, 1]]
    """
    if exact and data[:2] == b"\xff\xd8":
        raise ImageDecodeError(
            "a JPEG image does not keep the values of its pixels: store masks as PNG")
    image = open_within_limits(data, limits)
    if image.mode not in ("1", "P", "L", "I", "I;16", "I;16B", "I;16L"):
        raise ImageDecodeError(
            f"the image has several values for each pixel (mode {image.mode}), and one is needed: "
            "a grey level, or the number of a colour in a palette")
    values = np.asarray(image)
    if image.format != "TIFF":  # which Pillow turns
        values = turned(values, read_header(data).orientation)
    if values.dtype == bool:
        return values.astype(np.uint8)
    if values.dtype != np.uint8:
        if values.min(initial=0) < 0 or values.max(initial=0) > 65535:
            raise ImageDecodeError("the image has values beyond 16 bits")
        return np.ascontiguousarray(values, np.uint16)
    return np.ascontiguousarray(values)


cdef class ValueReader:
    """Reads one image after the other; `exact` refuses JPEG, which changes values."""

    def __cinit__(self, dict limits not None, bint exact=True):
        self.memory, self.capacity, self.source = NULL, 0, NULL
        self.png, self.limits, self.exact = PngValues(**limits), limits, exact
        self.max_pixels = limits["max_pixels"]

    def __dealloc__(self):
        free(self.memory)

    cdef int open(self, const uint8_t* data, size_t size, ImageInfo* info,
                  Outcome* outcome) noexcept nogil:
        cdef pnm_header header
        cdef int status
        outcome.status = RENDER_OK
        self.source = NULL
        memset(info, 0, sizeof(ImageInfo))
        if size == 0:
            return outcome_fail(outcome, RENDER_IMAGE, b"the record holds no image data")
        status = self.png.source.open(&self.png.source, data, size, info, outcome)
        if status == SOURCE_FAILED:
            return outcome.status
        if status == SOURCE_OPEN:
            self.source, self.value_bytes = &self.png.source, info.pixel_size
            return RENDER_OK
        status = pnm_parse(data, size, self.max_pixels, &header)
        if status == PNM_OTHER or status == PNM_OK and header.channels != 1:
            return self.open_by_pillow(data, size, info, outcome)
        if status != PNM_OK:
            pnm_explain(status, &header, self.max_pixels, outcome.message, MESSAGE_SIZE)
            outcome.status = RENDER_IMAGE
            return RENDER_IMAGE
        self.whole.first, self.whole.bytes = data + header.start, 1
        self.keep(<int>header.width, <int>header.height, info)
        return RENDER_OK

    cdef void keep(self, int width, int height, ImageInfo* info) noexcept nogil:
        """Note the size of an image that is in memory."""
        info.width, info.height = width, height
        self.whole.x = self.whole.y = 0
        self.whole.width, self.whole.height = width, height
        self.whole.stride = <Py_ssize_t>width * self.whole.bytes

    cdef int open_by_pillow(self, const uint8_t* data, size_t size, ImageInfo* info,
                            Outcome* outcome) noexcept with gil:
        cdef size_t address
        try:
            copy = PyBytes_FromStringAndSize(<const char*>data, <Py_ssize_t>size)
            values = self.decoded = decode_values(copy, self.limits, exact=self.exact)
            address = values.ctypes.data
            self.whole.first, self.whole.bytes = <const uint8_t*>address, values.itemsize
            self.keep(values.shape[1], values.shape[0], info)
        except MemoryError:
            return outcome_fail(outcome, RENDER_MEMORY, b"")
        except Exception as error:
            reason = error.reason if isinstance(error, RecordIOError) else repr(error)
            return outcome_fail(outcome, RENDER_IMAGE, reason.encode("utf-8", "replace"))
        return RENDER_OK

    cdef int read(self, const Rectangle* region, value_image* image,
                  Outcome* outcome) noexcept nogil:
        cdef Rows rows
        cdef size_t packed, needed
        cdef int y = 0, i
        cdef void* memory
        image[0] = self.whole
        if self.source == NULL:
            return RENDER_OK
        if self.source.start(self.source, 1, region, outcome):
            return outcome.status
        image.x, image.y, image.width, image.height = (
            region.x, region.y, region.width, region.height)
        image.bytes = self.value_bytes
        packed = <size_t>region.width * image.bytes
        needed = packed * region.height + PIXEL_SLACK
        if needed > self.capacity:
            memory = realloc(self.memory, needed)
            if memory == NULL:
                return outcome_fail(outcome, RENDER_MEMORY, b"")
            self.memory, self.capacity = <uint8_t*>memory, needed
        while y < region.height:
            if self.source.next(self.source, &rows, outcome):
                return outcome.status
            for i in range(rows.count):
                memcpy(self.memory + (y + i) * packed, rows.first + i * rows.stride, packed)
            y += rows.count
        image.first, image.stride = self.memory, <Py_ssize_t>packed
        return RENDER_OK

    cdef void finish(self) noexcept nogil:
        if self.source != NULL:
            self.source.finish(self.source)
        self.source = NULL


# ---- plans and workers ----

cdef enum:
    AS_DRAWN = -1           # an interpolation

#: Beginnings of keywords that are not those of a further image, and of those that always are.
ERASING = ("erasing_", "random_erasing")
FORM = ("data_shape", "mean_", "std_", "scale", "scaled_decode", "reducing_gap", "resample",
        "interpolation", "inter_method", "orient", "background", "fill_value")
#: Numbers of the interpolations of a field in OpenCV's resizes; of moves, see `METHODS`.
OPENCV_METHODS = {"nearest": 0, "bilinear": 1, "bicubic": 2, "lanczos": 4}


cdef int check_size(const ImageInfo* info, const FieldPath* path, Outcome* outcome) noexcept nogil:
    if info.width == path.width and info.height == path.height:
        return RENDER_OK
    snprintf(outcome.message, MESSAGE_SIZE,
             "the field has %d x %d pixels, and its image %d x %d: give it the size of the image",
             info.width, info.height, path.width, path.height)
    outcome.status = RENDER_GEOMETRY
    return RENDER_GEOMETRY


# ---- one value for each pixel ----

cdef class ValuePlan(FieldPlan):
    """A field of values, (batch, height, width), or (batch, 1, height, width) of an image."""

    cdef size_t item_size

    def __init__(self, name, spec, Source source, int view, size):
        FieldPlan.__init__(self, name, spec, source, view)
        self.is_array = True
        self.dtype = np.dtype(spec.dtype)
        self.height, self.width = size
        self.layout, self.padding = spec.layout, spec.padding
        self.item_size = self.dtype.itemsize

    def shape(self, slots, size=None):
        """Return the shape of the array of a batch, with images of that height and width."""
        channels = (1,) * (len(self.layout) - 3)
        return (slots, *channels, *(size or (self.height, self.width)))

    cdef size_t set_target(self, Py_ssize_t slots, int height, int width, char* data,
                           Target* target) noexcept nogil:
        target.data, target.height, target.width = data, height, width
        target.pixel_stride, target.row_stride = 1, width
        target.channel_stride = <ptrdiff_t>width * height
        return self.item_size * width * height

    def worker(self, renderer):
        """Make a worker beside a renderer of images."""
        return ValueWorker(self, renderer.plan.limits)


cdef class ValueWorker(FieldWorker):
    """Picks the values of a slot from those of an image."""

    cdef ValueReader reader
    cdef Tracer tracer
    cdef int type
    cdef int64_t fill
    cdef bint blends
    cdef int32_t[::1] partners      # of values, the one that it becomes in a mirrored image
    cdef void* memory       # positions of a row
    cdef size_t capacity

    def __cinit__(self, FieldPlan plan not None, limits):
        self.memory, self.capacity = NULL, 0
        self.reader, self.tracer = ValueReader(dict(limits)), Tracer()
        self.type = VALUE_TYPES.index(plan.dtype.name)
        self.fill = plan.padding
        self.partners = partners_of(plan.spec.exchanged) if plan.spec.exchanged else None
        self.blends = plan.spec.blends

    def __dealloc__(self):
        free(self.memory)

    cdef int render(self, const Encoded* record, const FieldTask* task,
                    Outcome* outcome) noexcept nogil:
        cdef Encoded encoded = record[0]
        cdef ImageInfo info
        if encoded.has_header and parse_header(&encoded, outcome):
            return outcome.status
        if self.reader.open(encoded.data, encoded.size, &info, outcome):
            return outcome.status
        if not check_size(&info, task.path, outcome):
            self.pick(task, outcome)
        self.reader.finish()
        return outcome.status

    cdef int pick(self, const FieldTask* task, Outcome* outcome) noexcept nogil:
        cdef const FieldPath* path = task.path
        cdef value_image image
        cdef Rectangle region
        cdef void* memory
        cdef const Target* target = &task.target
        cdef size_t line = target.width * value_size(self.type)
        cdef char* row = <char*>target.data
        cdef size_t needed = 2 * sizeof(double) * path.out_width
        cdef int y
        if self.tracer.begin(path, outcome):
            return outcome.status
        region.x = region.y = 0
        region.width, region.height = path.width, path.height
        if path.straight and not self.blends:
            span(self.tracer.columns, path.out_width, &region.x, &region.width)
            span(self.tracer.rows, path.out_height, &region.y, &region.height)
        elif needed > self.capacity:
            memory = realloc(self.memory, needed)
            if memory == NULL:
                return outcome_fail(outcome, RENDER_MEMORY, b"")
            self.memory, self.capacity = memory, needed
        if self.reader.read(&region, &image, outcome):
            return outcome.status
        if self.type == 0 and value_beyond(&image):
            return outcome_fail(outcome, RENDER_IMAGE,
                                b'the mask has values above 255, which uint8 does not hold: give '
                                b'the field dtype="int32"')
        for y in range(target.height):
            if y < path.out_height:
                self.write(path, &image, y, row, row - line)
                fill_row(target.width - path.out_width, self.fill, self.type,
                         row + path.out_width * value_size(self.type))
            else:
                fill_row(target.width, self.fill, self.type, row)
            row += line
        return RENDER_OK

    cdef void write(self, const FieldPath* path, const value_image* image, int y, char* row,
                    const char* above) noexcept nogil:
        """Write one row of the finished image; the one above it may be the same."""
        cdef int32_t* rows = self.tracer.rows
        cdef double* exact = <double*>self.memory
        cdef int32_t* xs = <int32_t*>self.memory
        cdef size_t line = path.out_width * value_size(self.type)
        if self.blends:
            self.tracer.trace_exactly(y, exact, exact + path.out_width)
            blend_pixels(image, exact, exact + path.out_width, path.out_width, self.fill,
                         self.type, row)
        elif not path.straight:
            self.tracer.trace(y, xs, xs + path.out_width)
            gather_pixels(image, xs, xs + path.out_width, path.out_width, self.fill, self.type, row)
        elif rows[y] < 0:
            fill_row(path.out_width, self.fill, self.type, row)
        elif y and rows[y] == rows[y - 1]:
            memcpy(row, above, line)
            return
        else:
            gather_row(image, rows[y], self.tracer.columns, path.out_width, self.fill, self.type,
                       row)
        if path.reversed and self.partners is not None:
            exchange_values(&self.partners[0], <int32_t>self.partners.shape[0], path.out_width,
                            self.type, row)


def partners_of(swap):
    """Return what each value becomes if those of the pairs are exchanged.

    >>> partners_of([(1, 3)]).tolist()
    [0, 3, 2, 1]
    """
    partners = np.arange(max(map(max, swap)) + 1, dtype=np.int32)
    for a, b in swap:
        partners[a], partners[b] = b, a
    return partners


cdef void span(const int32_t* positions, int count, int* first, int* length) noexcept nogil:
    """Find what is needed along one axis; one pixel if nothing is."""
    cdef int i, low = -1, high = -1
    for i in range(count):
        if positions[i] >= 0:
            low = positions[i] if low < 0 else min(low, positions[i])
            high = max(high, positions[i])
    first[0], length[0] = max(low, 0), max(high - max(low, 0) + 1, 1)


# ---- images ----

cdef class ImagePlan(FieldPlan):
    """A further image."""

    cdef RenderPlan plan            # of the first group

    def __init__(self, name, spec, Source source, int view, RenderPlan image not None):
        FieldPlan.__init__(self, name, spec, source, view)
        self.is_array, self.padding = True, 0
        plan = self.plan = self.render_plan(image)
        self.dtype, self.layout = plan.dtype, plan.layout
        self.height, self.width = plan.height, plan.width

    cdef RenderPlan render_plan(self, RenderPlan image):
        """Return the plan of the field of the images of a pack."""
        channels, height, width = image.recipe.data_shape
        kept = {
            name: getattr(image.recipe, name) for name in [one.name for one in fields(image.recipe)]
            if (self.spec.colour and not name.startswith(ERASING)) or name.startswith(FORM)}
        own = {"layout": image.layout, "dtype": self.spec.dtype or image.dtype.name,
               "largest": (image.most_height, image.most_width)}
        if self.spec.dtype is None:
            own["mean_image"] = image.mean_image
        else:
            channels = self.spec.channels or channels
        kept["data_shape"] = channels, height, width
        recipe = type(image.recipe)(**kept)
        return type(image)(recipe, key=image.key, label_width=0, **own, **image.limits)

    def shape(self, slots, size=None):
        """Return the shape of the array of a batch, with images of that height and width."""
        return self.plan.shape(slots, size)

    cdef size_t set_target(self, Py_ssize_t slots, int height, int width, char* data,
                           Target* target) noexcept nogil:
        return self.plan.set_target(slots, height, width, data, target)

    def worker(self, renderer):
        """Make a worker beside a renderer of images."""
        cdef Renderer main = renderer
        cdef RenderPlan image = main.plan if self.view == 0 else main.plan.views[self.view - 1]
        return ImageWorker(self, self.render_plan(image), main)


cdef class ImageWorker(FieldWorker):
    """Renders a further image with the steps that were drawn for the image."""

    cdef Renderer renderer      # of this field: it opens its images
    cdef StepRunner runner
    cdef bint colour
    cdef int resize_method
    cdef int move_method

    def __cinit__(self, FieldPlan field not None, RenderPlan plan not None, Renderer main not None):
        name = field.spec.interpolation
        self.renderer = Renderer(plan, strict=main.strict, beside=main)
        self.colour = field.spec.colour
        _, _, changes, writer = plan.parts()
        self.runner = StepRunner(plan, changes if self.colour else (), writer or RowWriter(plan))
        self.resize_method = self.move_method = AS_DRAWN
        if name is not None:
            self.move_method = METHODS.index("bicubic" if name == "lanczos" else name)
            self.resize_method = OPENCV_METHODS[name]
            if plan.recipe.resample is not None:
                self.resize_method = FIRST_FILTER + FILTERS.index(name)

    cdef int render(self, const Encoded* record, const FieldTask* task,
                    Outcome* outcome) noexcept nogil:
        cdef Encoded encoded = record[0]
        cdef ImageInfo info
        cdef Geometry geometry
        cdef RowSource* source
        if encoded.has_header and parse_header(&encoded, outcome):
            return outcome.status
        source = self.renderer.open_deep(encoded.data, encoded.size, &info, outcome)
        if source == NULL:
            return outcome.status
        if not check_size(&info, task.path, outcome) and not self.plan_steps(
                task.path, &geometry, outcome):
            source = self.renderer.fitted(source, encoded.data, encoded.size, &info, &geometry,
                                          outcome)
            if source == NULL:
                return outcome.status
            self.runner.run(source, &info, task.image, &geometry, &task.target, outcome)
        normalise_done()
        return self.renderer.finish(source, outcome)

    cdef int plan_steps(self, const FieldPath* path, Geometry* geometry,
                        Outcome* outcome) noexcept nogil:
        """Take the steps of the path; with colours those of a policy are among its changes."""
        cdef int i, count = path.count
        cdef Step* step
        if self.colour:
            count = path.drawn
        if count > MAX_STEPS:
            return outcome_fail(outcome, RENDER_GEOMETRY,
                                b"more operations move the image than a further image can follow: "
                                b"give the field colour=True")
        memcpy(geometry.steps, path.steps, count * sizeof(Step))
        geometry.count, geometry.mirror, geometry.flip = count, path.mirror, path.flip
        geometry.changed = path.changed
        for i in range(count):
            step = &geometry.steps[i]
            if step.kind == STEP_RESAMPLE and self.resize_method != AS_DRAWN:
                step.method = self.resize_method
            elif step.kind != STEP_PAD and step.kind != STEP_RESAMPLE and (
                    self.move_method != AS_DRAWN):
                step.method = self.move_method
        return RENDER_OK
