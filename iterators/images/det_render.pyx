"""One record with boxes becomes one sample of a batch of detection images, without the GIL.

`DetRenderer` is the renderer of `render` with three differences: the label is the vector of
objects, changed together with the image; the image may be smaller than its place and lies at the
top left of it; and colours are those of MXNet's detection augmenter.  Decoding and resampling are
not done here.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t, int64_t
from libc.stddef cimport ptrdiff_t
from libc.stdio cimport snprintf
from libc.string cimport memcpy, memset

from iterators.images.augment.det_geometry cimport (
    DetGeometryRecipe, draw_det_geometry, load_det_recipe,
)
from iterators.images.augment.det_jitter cimport DetJitterRecipe, draw_det_jitter, load_det_jitter
from iterators.images.augment.det_labels cimport (
    Objects, check_label, label_message, parse_label,
)
from iterators.images.augment.draw cimport ImageKey
from iterators.images.augment.geometry cimport Geometry
from iterators.images.augment.jitter cimport Jitter
from iterators.images.layers cimport ROW, Pixels, Sink
from iterators.images.kernels.normalise cimport normalise_row
from iterators.images.status cimport (
    HEADER_SIZE, MESSAGE_SIZE, RENDER_GEOMETRY, RENDER_LABEL, RENDER_OK, Outcome,
)
from iterators.images.render cimport Renderer, Slot
from iterators.images.plan cimport RenderPlan

from .augment.geometry import geometry_message

cdef enum:
    PREFIX = 4              # values before the label: channels, rows, columns, length


cdef class DetPlan(RenderPlan):
    """`RenderPlan` for detection images.

    Parameters
    ----------
    recipe : DetRecipe
    raw_width : int
        Number of labels that every record must have; 0 or less for any number.
    label_width : int
        Values of a row of the label array: 4 more than the longest raw label; 0 to read no labels.
    labels : tuple of numpy.ndarray, optional
        Ids, uint64, ascending; where the label of each begins and the last one ends, int64
        ``(n + 1,)``; and all their values, float32.  They replace those in the records.
    **more
        As for `RenderPlan`.
    """

    cdef DetGeometryRecipe det_geometry
    cdef DetJitterRecipe det_jitter
    cdef Py_ssize_t raw_width
    cdef float pad_value
    cdef const int64_t* label_starts

    def __init__(self, recipe, *, raw_width=0, **more):
        self.raw_width = raw_width
        super().__init__(recipe, **more)

    def _load(self, recipe):
        memset(&self.geometry, 0, sizeof(self.geometry))
        memset(&self.jitter, 0, sizeof(self.jitter))
        load_det_recipe(&self.det_geometry, recipe)
        load_det_jitter(&self.det_jitter, recipe)
        self.pad_value = recipe.label_pad_value

    def _load_labels(self, labels):
        cdef const uint64_t[::1] ids
        cdef const int64_t[::1] starts
        cdef const float[::1] values
        self.label_arrays = ids, starts, values = labels
        if starts.shape[0] != ids.shape[0] + 1 or starts[ids.shape[0]] > values.shape[0]:
            raise ValueError("labels must be ids (n,), starts (n + 1,) and values")
        self.num_listed = ids.shape[0]
        self.label_starts = &starts[0]
        if self.num_listed:
            self.label_ids = &ids[0]
        if values.shape[0]:
            self.label_table = &values[0]

    def renderer(self):
        """A renderer of the kind that this plan needs."""
        return DetRenderer(self)


cdef class DetRenderer(Renderer):
    """Renders detection samples one after the other; see the module.

    Parameters
    ----------
    plan : DetPlan

    Examples
    --------
    >>> import numpy as np
    >>> from recordio import IRHeader, pack_img
    >>> from iterators.images.augment.det_recipe import DetRecipe
    >>> header = IRHeader(0, [2, 5, 7, 0.0, 0.25, 0.5, 1.0], 1, 0)
    >>> record = pack_img(header, np.zeros((4, 6, 3), np.uint8), img_fmt=".png")
    >>> recipe = DetRecipe(data_shape=(3, 8, 8), resize_mode="shrink")
    >>> data, label, _ = DetRenderer(DetPlan(recipe, label_width=12)).sample(record)
    >>> label[0].tolist()
    [3.0, 4.0, 6.0, 7.0, 2.0, 5.0, 7.0, 0.0, 0.25, 0.5, 1.0, -1.0]
    """

    cdef DetPlan det_plan
    cdef Objects objects        # of the image at work, in its slot
    cdef Py_ssize_t header      # values before them
    cdef float* row             # its row of the label array; NULL without
    cdef int width              # size of the finished image
    cdef int height

    def __cinit__(self, DetPlan plan):
        self.det_plan = plan
        self.row = NULL

    cdef int read_labels(self, const uint8_t* record, uint32_t flag, const Slot* slot,
                         Outcome* outcome) noexcept nogil:
        """Copy the raw label behind the place of the prefix, and check it."""
        cdef Py_ssize_t listed, count = flag, raw_width = self.det_plan.raw_width
        cdef const int64_t* starts = self.det_plan.label_starts
        cdef const void* source = record + HEADER_SIZE
        cdef int status
        if self.plan.num_listed >= 0:
            listed = self.find_listed(outcome)
            if listed < 0:
                return outcome.status
            count = starts[listed + 1] - starts[listed]
            source = self.plan.label_table + starts[listed]
        elif flag == 0:
            return self.fail(outcome, RENDER_LABEL,
                             b"the record has a single label instead of a vector of objects")
        if raw_width > 0 and count != raw_width:
            snprintf(outcome.message, MESSAGE_SIZE,
                     "the record has %lld labels, label_width is %lld",
                     <long long>count, <long long>raw_width)
            outcome.status = RENDER_LABEL
            return RENDER_LABEL
        if count > self.plan.label_width - PREFIX:
            return self.refuse_label(source, count, outcome)
        self.row = slot.label
        memcpy(self.row + PREFIX, source, sizeof(float) * count)
        status = parse_label(self.row + PREFIX, count, &self.header, &self.objects)
        if status:
            return self.fail(outcome, RENDER_LABEL, label_message(status))
        return RENDER_OK

    cdef int refuse_label(self, const void* label, Py_ssize_t count,
                          Outcome* outcome) noexcept nogil:
        """Say what is wrong with a label that does not fit: most often it is damaged."""
        cdef int status = check_label(label, count, &self.header, &self.objects)
        if status:
            return self.fail(outcome, RENDER_LABEL, label_message(status))
        snprintf(outcome.message, MESSAGE_SIZE,
                 "the label has %lld values, and %lld fit: label_pad_width or, without it, "
                 "max_label_width says how many",
                 <long long>count, <long long>(self.plan.label_width - PREFIX))
        outcome.status = RENDER_LABEL
        return RENDER_LABEL

    cdef int draw(self, const ImageKey* image, int width, int height, Geometry* geometry,
                  Outcome* outcome) noexcept nogil:
        cdef int status
        if self.plan.label_width == 0:
            self.objects.count = 0
            self.row = NULL
        status = draw_det_geometry(&self.det_plan.det_geometry, image, width, height, &self.objects,
                                   geometry)
        if status:
            with gil:
                return self.fail(outcome, RENDER_GEOMETRY, geometry_message(status).encode())
        self.width = geometry.layers[geometry.count - 1].out_width
        self.height = geometry.layers[geometry.count - 1].out_height
        if self.row != NULL:
            self.finish_label()
        return RENDER_OK

    cdef void finish_label(self) noexcept nogil:
        """Complete the row: what comes before the label and what fills it up."""
        cdef Py_ssize_t i, count = self.header + self.objects.count * self.objects.width
        self.row[0], self.row[1] = self.plan.channels, self.height
        self.row[2], self.row[3] = self.width, count
        for i in range(PREFIX + count, self.plan.label_width):
            self.row[i] = self.det_plan.pad_value

    cdef void draw_colours(self, const ImageKey* image, Jitter* jitter) noexcept nogil:
        draw_det_jitter(&self.det_plan.det_jitter, image, jitter)

    cdef int run_layers(self, const ImageKey* image, const Geometry* geometry, const Pixels* pixels,
                        int denominator, void* slot, Outcome* outcome) noexcept nogil:
        """The image, and below it normalised zeros."""
        cdef Sink rest
        cdef uint8_t* row = self.blank_row(outcome)
        if row == NULL or Renderer.run_layers(self, image, geometry, pixels, denominator, slot,
                                              outcome):
            return outcome.status
        if self.height == self.plan.height:
            return RENDER_OK
        rest.slot, rest.normalise = slot, self.plan.normalise
        rest.mirror, rest.y = False, self.height
        memset(row, 0, <size_t>self.plan.width * self.plan.channels)
        while rest.y < self.plan.height:
            self.write_row(&rest, row)
        return RENDER_OK

    cdef void finish_rows(self, Sink* sink, const uint8_t* rows, ptrdiff_t stride,
                          int count) noexcept nogil:
        """Rows of the image, each continued with zeros up to the width of the canvas.

        The mirror is within the image, and a mean image stays where it is on the canvas.
        """
        cdef int i, x, c, channels = self.plan.channels
        cdef bint flips = sink.mirror and sink.normalise.mean_image != NULL
        cdef ptrdiff_t size = <ptrdiff_t>self.width * channels
        cdef const uint8_t* pixel
        cdef uint8_t* row
        if sink.slot == NULL:
            return
        if self.width == self.plan.width and not flips:
            Renderer.finish_rows(self, sink, rows, stride, count)
            return
        row = self.buffers[ROW]
        for i in range(count):
            if sink.mirror:
                pixel = rows + i * stride + size
                for x in range(self.width):
                    pixel -= channels
                    for c in range(channels):
                        row[x * channels + c] = pixel[c]
            else:
                memcpy(row, rows + i * stride, size)
            self.write_row(sink, row)

    cdef void write_row(self, Sink* sink, const uint8_t* row) noexcept nogil:
        """Normalise one row of the canvas."""
        normalise_row(&sink.normalise, row, self.plan.width, sink.y, False,
                      <char*>sink.slot + sink.y * self.plan.row_stride * self.plan.item_size,
                      self.plan.pixel_stride, self.plan.channel_stride)
        sink.y += 1

    cdef uint8_t* blank_row(self, Outcome* outcome) noexcept nogil:
        """The buffer of one row of the canvas, all zero; NULL after a failure."""
        cdef size_t size = <size_t>self.plan.width * self.plan.channels
        cdef uint8_t* row = self.buffer(ROW, size, outcome)
        if row != NULL:
            memset(row, 0, size)
        return row
