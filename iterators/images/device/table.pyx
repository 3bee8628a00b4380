# build: small
"""The image stage writes a table instead of pixels: what a device is to make of each image.

A `TablePlan` is that of blocks (`block.h`), and its `TableRenderer` fills a row: an encoded image
goes to the front of the block, tables of weights go to its back.  An image that the device does not
decode is made here, finished but for its normalisation, and goes to the back as well.
"""

from libc.stdint cimport int64_t, uint32_t, uint8_t
from libc.string cimport memcmp, memcpy, memset

from iterators.images.augment.draw cimport ImageKey
from iterators.images.augment.geometry cimport STEP_RESAMPLE, Geometry, Step, Target
from iterators.images.device.decoder cimport (
    KERNEL_COPY, KERNEL_STEPS, ROW_JPEG, ROW_NO_ROOM, ROW_PIXELS, BatchDecoder, HeaderTest,
    block_back, block_begin, block_front, block_grow, block_rows, block_size, block_take,
    device_block, device_row, kernel_batch, kernel_pixel, kernel_step,
)
from iterators.images.plan cimport RenderPlan
from iterators.images.render cimport Renderer, Slot
from iterators.images.sources.source cimport Encoded
from recordio.formats.row_source cimport ImageInfo, RowSource
from recordio.formats.status cimport RENDER_MEMORY, Outcome, outcome_error, outcome_fail
from recordio.kernels.resample cimport resample_axis, resample_denominator

import numpy as np

__all__ = [
    "BATCH_TYPES", "TablePlan", "TableRenderer", "batch_form", "cramped_slots", "drop_rows",
    "empty_block", "grown", "run_kernel",
]


cdef extern from "recordio/formats/jpeg_segments.h" nogil:
    ctypedef struct jpeg_segment:
        int marker
        const uint8_t* data
        size_t size
        bint whole
    ctypedef struct jpeg_outline:
        int frame
        int components
        int bits
        int orientation
    enum:
        JPEG_MARKER_SOF0
        JPEG_MARKER_SOF1
        JPEG_MARKER_SOS
    jpeg_segment next_segment(const uint8_t* data, size_t size, size_t* at)
    int read_jpeg_outline(const uint8_t* data, size_t size, jpeg_outline* outline)


cdef extern from "iterators/images/device/step_tables.h" nogil:
    ctypedef struct planned_step:
        int method
        resample_axis horizontal
        resample_axis vertical
    int64_t plan_step(planned_step* p, int channels, kernel_step* s)
    int write_step(const planned_step* p, kernel_step* s, int* tables, int* x, int* y)


cdef enum:
    ADOBE = 0xEE            # marker of the segment that says how colours are stored
    TRAILING = 256          # bytes at the end in which the marker of the end is looked for
    FIRST_ROOM = 1 << 16    # bytes of a block for each of its slots, until more were needed

#: Element types that the kernel writes, and their numbers there.
BATCH_TYPES = {"float32": 0, "uint8": 1, "float16": 2, "bfloat16": 3}


cdef class TablePlan(RenderPlan):
    """The plan of blocks for the images of another plan.

    They are for a `BatchDecoder`; without one, images are decoded as where there is no engine.  Set
    `room`, the bytes of a block beside its rows, only while no block is being made.
    """

    cdef readonly BatchDecoder decoder
    cdef public int64_t room

    def __init__(self, RenderPlan of not None, BatchDecoder decoder, Py_ssize_t batch_size):
        RenderPlan.__init__(self, of.recipe, key=of.key, layout="NHWC", dtype="uint8",
                            label_width=of.label_width, labels=of.labels, change=of.change,
                            **of.limits)
        self.decoder, self.room = decoder, FIRST_ROOM * batch_size

    @property
    def renderer_class(self):
        """Class of the renderers of this plan."""
        return TableRenderer

    def shape(self, samples, size=None):
        """Return the shape of a block."""
        return (block_size(self.room, samples),)

    cdef Py_ssize_t set_target(self, Py_ssize_t samples, int height, int width, char* data,
                               Target* target) noexcept nogil:
        memset(target, 0, sizeof(Target))
        block_begin(<device_block*>data, self.room, samples)
        target.data = block_rows(<device_block*>data)
        target.height, target.width = height, width
        return sizeof(device_row)


cdef class TableRenderer(Renderer):
    """Fills rows of blocks; serves one thread."""

    cdef HeaderTest test

    def __init__(self, TablePlan plan not None, **more):
        self.test = HeaderTest(plan.decoder)

    def fill(self, const uint8_t[::1] record not None, uint32_t epoch, int64_t number, int64_t draw,
             uint8_t[::1] block not None, Py_ssize_t place):
        """Fill a row of a block from a record, whose labels are read elsewhere."""
        cdef Slot slot
        cdef Target target
        cdef Outcome outcome
        cdef Encoded image
        label = np.empty(max(self.plan.label_width, 1), np.float32)
        memset(&target, 0, sizeof(Target))
        target.height, target.width = self.plan.height, self.plan.width
        target.data = block_rows(<device_block*>&block[0]) + place
        slot.targets, slot.label = &target, <float*><size_t>label.ctypes.data
        image.data = &record[0] if record.shape[0] else NULL
        image.size, image.has_header = record.shape[0], True
        with nogil:
            self.render(&image, epoch, number, draw, &slot, &outcome)
        if outcome.status:
            raise outcome_error(&outcome, self.plan.label_width, {})

    cdef int render_image(self, const uint8_t* data, size_t size, const ImageKey* image,
                          const Target* target, Outcome* outcome) noexcept nogil:
        cdef device_row* row = <device_row*>target.data
        cdef ImageInfo info
        cdef Geometry geometry
        cdef RowSource* source
        cdef int made = 0
        row.count, row.kind = 0, 0
        if may_decode(data, size):
            source = self.open_image(data, size, &info, outcome)
            if source == NULL:
                return outcome.status
            if not self.draw(image, info.width, info.height, target, &geometry, outcome):
                made = self.fill_row(row, data, size, &info, &geometry, outcome)
            source.finish(source)
            if made or outcome.status:
                return outcome.status
        return self.make_pixels(row, data, size, image, target, outcome)

    # Fill the row of an image that the device decodes; False if it does not.
    cdef bint fill_row(self, device_row* row, const uint8_t* data, size_t size,
                       const ImageInfo* info, const Geometry* geometry,
                       Outcome* outcome) noexcept nogil:
        cdef device_block* block = <device_block*>(<uint8_t*>row - row.to_block)
        cdef planned_step[3] planned        # KERNEL_STEPS
        cdef int64_t[3] numbers
        cdef int64_t total = 0, content, tables
        cdef const Step* step = &geometry.steps[0]
        cdef int i, x, y, channels = self.plan.channels
        if geometry.count > KERNEL_STEPS:
            return False
        row.denominator = 1
        if self.test.of.decoder.scales and self.plan.scaled_decode and info.scales:
            row.denominator = resample_denominator(
                step.method, step.width, step.target_width, step.height, step.target_height)
        for i in range(geometry.count):
            step = &geometry.steps[i]
            if (step.kind != STEP_RESAMPLE or self.plan.largest
                    < <size_t>step.out_width * step.out_height * channels):
                return False
            planned[i].method = step.method
            describe_axis(&planned[i].horizontal, step.x, step.width, step.target_width, step.left,
                          step.out_width, row.denominator if i == 0 else 1)
            describe_axis(&planned[i].vertical, step.y, step.height, step.target_height, step.top,
                          step.out_height, row.denominator if i == 0 else 1)
            numbers[i] = plan_step(&planned[i], channels, &row.steps[i])
            if numbers[i] < 0:
                return False
            total += numbers[i]
        row.frame_width, row.frame_height = info.width, info.height
        if not block_take(block, size, 4 * total, &content, &tables):
            row.kind = ROW_NO_ROOM
            return True
        for i in range(geometry.count):
            row.steps[i].in_tail, row.steps[i].tables, row.steps[i].source = False, tables, 0
            if write_step(&planned[i], &row.steps[i], <int*>(<uint8_t*>block + tables), &x, &y):
                outcome_fail(outcome, RENDER_MEMORY, b"")
                return True
            tables += 4 * numbers[i]
            if i == 0:
                row.x, row.y = x, y
                row.window_width, row.window_height = row.steps[0].columns, row.steps[0].lines
            else:
                row.steps[i].stride = row.steps[i - 1].width * channels
                row.steps[i].source = <int64_t>y * row.steps[i].stride + x * channels
        if not self.test.supports(data, size, row):
            return False        # what was taken is left unused
        row.content, row.size = content, size
        memcpy(<uint8_t*>block + content, data, size)
        row.mirror, row.flip, row.count = geometry.mirror, geometry.flip, geometry.count
        row.kind = ROW_JPEG
        return True

    # Make the image here, as large as its slot.
    cdef int make_pixels(self, device_row* row, const uint8_t* data, size_t size,
                         const ImageKey* image, const Target* target,
                         Outcome* outcome) noexcept nogil:
        cdef device_block* block = <device_block*>(<uint8_t*>row - row.to_block)
        cdef kernel_step* step = &row.steps[0]
        cdef int channels = self.plan.channels
        cdef Target own = target[0]
        cdef int64_t front, back
        if not block_take(block, 0, <int64_t>own.height * own.width * channels, &front, &back):
            row.kind = ROW_NO_ROOM
            return outcome.status
        own.data = <uint8_t*>block + back
        own.row_stride, own.pixel_stride, own.channel_stride = own.width * channels, channels, 1
        if Renderer.render_image(self, data, size, image, &own, outcome):
            return outcome.status
        memset(step, 0, sizeof(kernel_step))
        step.mode, step.in_tail, step.source, step.stride = KERNEL_COPY, True, back, own.row_stride
        step.tables = back
        step.columns, step.lines, step.width, step.height = (
            own.width, own.height, own.width, own.height)
        row.mirror = row.flip = False   # as it is made
        row.count, row.kind = 1, ROW_PIXELS
        return outcome.status


cdef bint may_decode(const uint8_t* data, size_t size) noexcept nogil:
    """An upright JPEG of 8 bits in one pass, grey or YCbCr, with its end.

    A device would fill what is missing of one that is cut off, silently.
    """
    cdef jpeg_outline outline
    cdef size_t i
    if size < 4 or data[0] != 0xFF or data[1] != 0xD8:
        return False
    if not read_jpeg_outline(data, size, &outline) or outline.bits != 8:
        return False
    if outline.frame != JPEG_MARKER_SOF0 and outline.frame != JPEG_MARKER_SOF1:
        return False
    if outline.orientation > 1 or (outline.components != 1 and outline.components != 3):
        return False
    if outline.components == 3 and stores_rgb(data, size):
        return False
    for i in range(2, min(size, TRAILING) + 1):
        if data[size - i] == 0xFF and data[size - i + 1] == 0xD9:
            return True
    return False


cdef bint stores_rgb(const uint8_t* data, size_t size) noexcept nogil:
    """Return whether the three components are red, green and blue, by the rules of libjpeg."""
    cdef size_t at = 2
    cdef jpeg_segment part = next_segment(data, size, &at)
    cdef bint named = False
    while part.marker and part.marker != JPEG_MARKER_SOS and part.whole:
        if part.marker == 0xE0 and part.size >= 9 and memcmp(part.data + 4, b"JFIF", 5) == 0:
            return False
        if part.marker == ADOBE and part.size >= 16 and memcmp(part.data + 4, b"Adobe", 5) == 0:
            return part.data[15] == 0
        if ((part.marker == JPEG_MARKER_SOF0 or part.marker == JPEG_MARKER_SOF1)
                and part.size >= 19):
            named = (part.data[10] == c"R" and part.data[13] == c"G"
                     and part.data[16] == c"B")
        part = next_segment(data, size, &at)
    return named


cdef void describe_axis(resample_axis* axis, int begin, int source, int target, int first,
                        int count, int denominator) noexcept nogil:
    """Put one axis of a step into the words of the resampler, as the stage's steps do."""
    axis.source, axis.target, axis.begin, axis.count = source, target, first, count
    axis.origin, axis.denominator, axis.stored = begin, denominator, begin + source
    axis.low = axis.high = 0


def empty_block(int64_t room, Py_ssize_t slots, allocate):
    """Make a block outside of the image stage."""
    made = allocate(block_size(room, slots))
    cdef uint8_t[::1] block = made
    block_begin(<device_block*>&block[0], room, slots)
    return made


def drop_rows(uint8_t[::1] block not None, slots):
    """Have nothing made for some slots."""
    cdef device_row* rows = block_rows(<device_block*>&block[0])
    for slot in slots:
        rows[<Py_ssize_t>slot].kind = rows[<Py_ssize_t>slot].count = 0


def cramped_slots(uint8_t[::1] block not None):
    """Return the slots for which a block has no room."""
    cdef device_block* table = <device_block*>&block[0]
    cdef int64_t i
    return [i for i in range(table.slots) if block_rows(table)[i].kind == ROW_NO_ROOM]


def grown(uint8_t[::1] block not None, allocate):
    """Copy a block that is too small into one that has room for all; also return its `room`."""
    cdef device_block* table = <device_block*>&block[0]
    cdef int64_t room = 2 * (block_front(table) + block_back(table))
    made = allocate(block_size(room, table.slots))
    cdef uint8_t[::1] target = made
    with nogil:
        block_grow(table, <device_block*>&target[0], room)
    return made, room


def batch_form(RenderPlan plan not None, Py_ssize_t batch_size, dtype="uint8", mean=(), factor=()):
    """Describe the batches of a plan as bytes, a `kernel_batch`: ``(pixel - mean) * factor``.

    `mean` and `factor` have a number for each channel; pixels of uint8 stay as they are.
    """
    cdef kernel_batch form
    cdef Target target
    cdef int i
    cdef Py_ssize_t sample = plan.set_target(batch_size, plan.height, plan.width, NULL, &target)
    memset(&form, 0, sizeof(form))
    form.slot = sample // plan.item_size
    form.row, form.pixel = target.row_stride, target.pixel_stride
    form.channel, form.channels = target.channel_stride, plan.channels
    form.width, form.height = plan.width, plan.height
    form.type = BATCH_TYPES[dtype]
    for i, (average, share) in enumerate(zip(mean, factor)):
        form.mean[i], form.factor[i] = average, share
    return (<const char*>&form)[:sizeof(form)]


def run_kernel(size_t tail, Py_ssize_t rows, size_t pixels, size_t out, bytes form,
               Py_ssize_t slots, most):
    """Run the kernel on this processor, on memory at these addresses, to compare a device with it.

    `rows` counts from `tail`, and `most` is that of the `BlockLayout`.
    """
    cdef const kernel_batch* batch = <const kernel_batch*><const char*>form
    cdef const device_row* row = <const device_row*>(tail + rows)
    cdef int64_t slot, count
    cdef int number, at
    for number, count in enumerate(most):
        with nogil:
            for slot in range(slots):
                for at in range(count):
                    kernel_pixel(&row[slot], <const uint8_t*>tail, <uint8_t*>pixels, <void*>out,
                                 batch, number, at)
