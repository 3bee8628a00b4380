"""The parts of a renderer that differ for images with boxes, and the plan that chooses them.

The label is the vector of objects, which changes together with the image; and the image may be
smaller than its slot, lies at the top left of it, and is mirrored within itself.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stddef cimport ptrdiff_t
from libc.stdio cimport snprintf
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from recordio.kernels.pixel cimport PIXEL_SLACK

from iterators.images.augment.det_geometry cimport (
    DetGeometryRecipe, draw_det_geometry, load_det_recipe, load_emission,
)
from iterators.images.augment.det_labels cimport (
    CropLimits, check_label, label_message, parse_label,
)
from iterators.images.augment.det_moves cimport move_objects
from iterators.images.augment.draw cimport ImageKey
from iterators.images.augment.geometry cimport Geometry, GeometryDrawer, Target
from iterators.images.augment.policy cimport PolicyChange
from iterators.images.label_reader cimport LabelReader
from iterators.images.plan cimport RenderPlan
from iterators.images.row_writer cimport RowWriter
from recordio.formats.status cimport (
    MESSAGE_SIZE, RENDER_LABEL, RENDER_OK, Outcome, outcome_fail,
)

cdef enum:
    NO_OBJECTS = 2          # values of a label without objects: its header
    OBJECT_WIDTH = 5        # of the objects that it does not have
    MOST_SAMPLE = 4         # bytes of a channel


cdef class DetPlan(RenderPlan):
    """`RenderPlan` for detection images.

    `raw_width` is the number of labels that every record must have, 0 or less for any number, and
    `label_width` 4 more than the longest raw label.  The labels that replace those in the records
    are ids, ascending; where the label of each begins and the last one ends; and all values.

    >>> import numpy as np
    >>> from recordio import IRHeader, pack_img
    >>> from iterators.images.augment.det_recipe import DetRecipe
    >>> from iterators.images.render import Renderer
    >>> header = IRHeader(0, [2, 5, 7, 0.0, 0.25, 0.5, 1.0], 1, 0)
    >>> record = pack_img(header, np.zeros((4, 6, 3), np.uint8), img_fmt=".png")
    >>> recipe = DetRecipe(data_shape=(3, 8, 8), resize_mode="shrink")
    >>> data, label, _ = Renderer(DetPlan(recipe, label_width=12)).sample(record)
    >>> label[0].tolist()
    [3.0, 4.0, 6.0, 7.0, 2.0, 5.0, 7.0, 0.0, 0.25, 0.5, 1.0, -1.0]
    """

    cdef Py_ssize_t raw_width

    def __init__(self, recipe, *, raw_width=0, **more):
        self.raw_width = raw_width
        super().__init__(recipe, **more)

    def parts(self):
        """Return the parts, as `RenderPlan.parts` does."""
        labels = ObjectLabels(self)
        changes = self.changes()
        return labels, DetGeometry(self, labels, changes), changes, CanvasWriter(self)


cdef class ObjectLabels(LabelReader):
    """Vectors of objects: their number may differ from record to record."""

    def __init__(self, DetPlan plan not None):
        cdef const uint64_t[::1] ids
        cdef const int64_t[::1] starts
        cdef const float[::1] values
        LabelReader.__init__(self, plan.change)
        self.width, self.raw_width, self.channels = plan.label_width, plan.raw_width, plan.channels
        self.pad_value = plan.recipe.label_pad_value
        if plan.labels is None:
            return
        self.arrays = ids, starts, values = plan.labels
        if starts.shape[0] != ids.shape[0] + 1 or starts[ids.shape[0]] > values.shape[0]:
            raise ValueError("labels must be ids (n,), starts (n + 1,) and values")
        self.num_listed = ids.shape[0]
        self.starts = &starts[0]
        if self.num_listed:
            self.ids = &ids[0]
        if values.shape[0]:
            self.values = &values[0]

    cdef int read(self, const void* labels, uint32_t flag, float* row,
                  Outcome* outcome) noexcept nogil:
        """Copy the raw label behind the prefix, and check it."""
        cdef Py_ssize_t listed, count = flag
        cdef int status
        if self.absent:
            return self.have_none(row)
        if self.num_listed >= 0:
            listed = self.find_listed(outcome)
            if listed < 0:
                return outcome.status
            count = self.starts[listed + 1] - self.starts[listed]
            labels = self.values + self.starts[listed]
        elif flag == 0:
            return outcome_fail(outcome, RENDER_LABEL,
                                b"the record has a single label instead of a vector of objects")
        if self.raw_width > 0 and count != self.raw_width:
            snprintf(outcome.message, MESSAGE_SIZE,
                     "the record has %lld labels, label_width is %lld",
                     <long long>count, <long long>self.raw_width)
            outcome.status = RENDER_LABEL
            return RENDER_LABEL
        if count > self.width - PREFIX:
            return self.refuse(labels, count, outcome)
        self.row = row
        memcpy(row + PREFIX, labels, sizeof(float) * count)
        status = parse_label(row + PREFIX, count, &self.header, &self.objects)
        if status:
            return outcome_fail(outcome, RENDER_LABEL, label_message(status))
        for listed in range(self.objects.count):
            if self.change(self.objects.values + listed * self.objects.width, outcome):
                return outcome.status
        return RENDER_OK

    cdef int have_none(self, float* row) noexcept nogil:
        """Write the label of an image without objects."""
        self.row, self.header = row, NO_OBJECTS
        self.objects.values, self.objects.count, self.objects.width = NULL, 0, OBJECT_WIDTH
        row[PREFIX], row[PREFIX + 1] = NO_OBJECTS, OBJECT_WIDTH
        return RENDER_OK

    cdef int refuse(self, const void* label, Py_ssize_t count, Outcome* outcome) noexcept nogil:
        """Say what is wrong with a label that does not fit: most often it is damaged."""
        cdef int status = check_label(label, count, &self.header, &self.objects)
        if status:
            return outcome_fail(outcome, RENDER_LABEL, label_message(status))
        snprintf(outcome.message, MESSAGE_SIZE,
                 "the label has %lld values, and %lld fit: label_pad_width or, without it, "
                 "max_label_width says how many",
                 <long long>count, <long long>(self.width - PREFIX))
        outcome.status = RENDER_LABEL
        return RENDER_LABEL

    cdef void finish(self, int width, int height) noexcept nogil:
        """Complete the row: what comes before the label and what fills it up."""
        cdef Py_ssize_t i, count = self.header + self.objects.count * self.objects.width
        if self.row == NULL:
            return
        self.row[0], self.row[1], self.row[2], self.row[3] = self.channels, height, width, count
        for i in range(PREFIX + count, self.width):
            self.row[i] = self.pad_value


cdef class DetGeometry(GeometryDrawer):
    """Draws the geometry of a `DetRecipe`, and changes the objects alike, as a policy does."""

    cdef DetGeometryRecipe recipe
    cdef CropLimits emission
    cdef ObjectLabels labels
    cdef PolicyChange policy        # None without

    def __init__(self, DetPlan plan not None, ObjectLabels labels not None, changes):
        self.labels = labels
        load_det_recipe(&self.recipe, plan.recipe)
        load_emission(&self.emission, plan.recipe)
        for change in changes:
            if isinstance(change, PolicyChange):
                self.policy = change

    cdef int draw_steps(self, const ImageKey* image, int width, int height, const Target* target,
                        Geometry* geometry) noexcept nogil:
        cdef int status
        self.recipe.width, self.recipe.height = target.width, target.height
        status = draw_det_geometry(&self.recipe, image, width, height, &self.labels.objects,
                                   geometry)
        if status:
            return status
        width = geometry.steps[geometry.count - 1].out_width
        height = geometry.steps[geometry.count - 1].out_height
        if self.policy is not None:
            move_objects(&self.labels.objects, self.policy.draw_for(image, width, height), width,
                         height, geometry.mirror, &self.emission)
        self.labels.finish(width, height)
        return status


cdef class CanvasWriter(RowWriter):
    """Writes images that may be smaller than their slots, and below and beside them zeros.

    The mirror is within the image, and a mean image stays where it is on the canvas.
    """

    cdef uint8_t* row           # of the canvas
    cdef int width              # size of the image
    cdef int height

    def __cinit__(self, RenderPlan plan not None):
        self.row = <uint8_t*>calloc(
            MOST_SAMPLE * <size_t>plan.most_width * plan.channels + PIXEL_SLACK, 1)
        if self.row == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.row)

    cdef void begin(self, const Target* target, const ImageKey* image,
                    const Geometry* geometry) noexcept nogil:
        RowWriter.begin(self, target, image, geometry)
        self.width = geometry.steps[geometry.count - 1].out_width
        self.height = geometry.steps[geometry.count - 1].out_height
        memset(self.row, 0, MOST_SAMPLE * <size_t>self.target.width * self.plan.channels)

    cdef void write(self, const uint8_t* rows, ptrdiff_t stride, int count) noexcept nogil:
        cdef int i, x, c, pixel_bytes = self.plan.channels * self.sample
        cdef ptrdiff_t size = <ptrdiff_t>self.width * pixel_bytes
        cdef const uint8_t* pixel
        if self.width == self.target.width and not (
                self.mirror and self.normalise.mean_image != NULL):
            RowWriter.write(self, rows, stride, count)
            return
        for i in range(count):
            if self.mirror:
                pixel = rows + i * stride + size
                for x in range(self.width):
                    pixel -= pixel_bytes
                    for c in range(pixel_bytes):
                        self.row[x * pixel_bytes + c] = pixel[c]
            else:
                memcpy(self.row, rows + i * stride, size)
            self.put(self.row, False)

    cdef void end(self) noexcept nogil:
        memset(self.row, 0, self.sample * <size_t>self.target.width * self.plan.channels)
        while self.y < self.target.height:
            self.put(self.row, False)
        RowWriter.end(self)
