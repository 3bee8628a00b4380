"""One encoded record becomes one sample of a batch, without the GIL.

A `Renderer` reads the header and the labels, decodes only the rectangle and the scale that the drawn
geometry needs, resamples row by row while the rows are still in the cache, and normalises every
finished row straight into the sample's place in the batch.  It knows nothing of threads, order or
batches; the stage gives every thread a renderer of its own.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset, strncpy

import numpy as np

from recordio.errors import ImageDecodeError, LabelError, RecordHeaderError, RecordIOError

from iterators.images.geometry cimport Geometry, Layer, draw_geometry, load_recipe
from iterators.images.jpeg cimport (
    JPEG_DEFAULT_MAX_PIXELS, JPEG_DEFAULT_MAX_SCANS, JPEG_NOT_JPEG, JPEG_OK, JPEG_UNAVAILABLE,
    decoder_available, decoder_finish, decoder_free, decoder_message, decoder_new, decoder_open,
    decoder_rows, decoder_start, jpeg_info,
)
from iterators.images.normalise cimport normalise_row
from iterators.images.orient cimport orient_exchanges_sides, orient_image, orient_rectangle
from iterators.images.resample cimport (
    resample_axis, resample_denominator, resampler_begin, resampler_free, resampler_new,
    resampler_push, resampler_source,
)

from . import codec
from .geometry import geometry_message

cdef enum:
    HEADER_SIZE = 24        # IRHeader: flag, label, id, id2
    ROWS = 0                # buffers: finished rows of the last layer,
    PIXELS_A = 1            # and two for images between layers
    PIXELS_B = 2
    SLACK = 64              # kernels may read a vector behind the last pixel

DTYPES = ("float32", "uint8", "int8", "float16")


cdef class RenderPlan:
    """What is the same for every sample: recipe, shape, layout, dtype, label width, limits.

    Parameters
    ----------
    recipe : Recipe
    key : int
        Key of all augmentation draws, 64 bits.
    layout : str
        Some order of the letters N, C, H and W.
    dtype : {"float32", "uint8", "int8", "float16"}
    label_width : int
        Labels of a sample.
    batch_size : int
        Needed for the strides when N is not the first axis.
    """

    def __init__(self, recipe, *, uint64_t key=0, layout="NCHW", dtype="float32", label_width=1,
                 batch_size=1):
        cdef int i
        self.recipe = recipe
        self.dtype = np.dtype(dtype)
        self.layout = layout
        self.key = key
        self.label_width = label_width
        self.channels, self.height, self.width = recipe.data_shape
        load_recipe(&self.geometry, recipe)
        self.limits.max_pixels = JPEG_DEFAULT_MAX_PIXELS
        self.limits.max_scans = JPEG_DEFAULT_MAX_SCANS
        memset(&self.normalise, 0, sizeof(self.normalise))
        self.normalise.channels = self.channels
        self.normalise.dtype = DTYPES.index(self.dtype.name)
        for i in range(4):
            self.normalise.mean[i] = recipe.mean[i]
            self.normalise.factor[i] = np.float32(recipe.scale) / np.float32(recipe.std[i])
        strides = self._strides(batch_size)
        self.item_size = self.dtype.itemsize
        self.sample_stride, self.channel_stride = strides["N"], strides["C"]
        self.row_stride, self.pixel_stride = strides["H"], strides["W"]

    def shape(self, batch_size):
        """Shape of a batch in the plan's layout."""
        sizes = dict(zip("NCHW", (batch_size, self.channels, self.height, self.width)))
        return tuple(sizes[axis] for axis in self.layout)

    def _strides(self, batch_size):
        stride, strides = 1, {}
        for axis, size in zip(reversed(self.layout), reversed(self.shape(batch_size))):
            strides[axis] = stride
            stride *= size
        return strides


cdef class Renderer:
    """Renders samples one after the other; see the module.

    Parameters
    ----------
    plan : RenderPlan

    Examples
    --------
    >>> from recordio import IRHeader, pack_img
    >>> from iterators.images.recipe import Recipe
    >>> record = pack_img(IRHeader(0, 3.0, 7, 0), np.zeros((9, 9, 3), np.uint8), img_fmt=".png")
    >>> renderer = Renderer(RenderPlan(Recipe(data_shape=(3, 4, 4), mean_r=1)))
    >>> data, label, record_id = renderer.sample(record)
    >>> data.shape, float(data[0, 0, 0, 0]), float(label[0, 0]), record_id
    ((1, 3, 4, 4), -1.0, 3.0, 7)
    """

    def __cinit__(self, RenderPlan plan):
        cdef int i
        for i in range(3):
            self.buffers[i] = NULL
            self.capacities[i] = 0
        self.plan = plan
        self.decoder = decoder_new() if decoder_available() else NULL
        self.resampler = resampler_new()
        if self.resampler == NULL or (decoder_available() and self.decoder == NULL):
            raise MemoryError

    def __dealloc__(self):
        cdef int i
        decoder_free(self.decoder)
        resampler_free(self.resampler)
        for i in range(3):
            free(self.buffers[i])

    def sample(self, const uint8_t[::1] record not None, uint32_t epoch=0, int64_t number=0):
        """Render one record into a batch of one.

        Parameters
        ----------
        record : bytes-like
            Header, labels and encoded image.
        epoch, number : int
            Choose the random numbers.

        Returns
        -------
        data : numpy.ndarray
            Of the plan's layout and dtype, batch size 1.
        label : numpy.ndarray of float32, (1, label_width)
        record_id : int

        Raises
        ------
        RecordIOError
            Whatever is wrong with the record.
        """
        plan = self.plan
        data = np.empty(plan.shape(1), plan.dtype)
        label = np.empty((1, plan.label_width), np.float32)
        cdef Slot slot
        cdef Outcome outcome
        cdef int status
        cdef const uint8_t* first = &record[0] if record.shape[0] else NULL
        slot.data = <void*><size_t>data.ctypes.data
        slot.label = <float*><size_t>label.ctypes.data
        with nogil:
            status = self.render(first, record.shape[0], epoch, number, &slot, &outcome)
        if status:
            raise outcome_error(&outcome, plan.label_width, None, None, None)
        return data, label, outcome.record_id

    cdef int render(self, const uint8_t* record, size_t length, uint32_t epoch, int64_t number,
                    const Slot* slot, Outcome* outcome) noexcept nogil:
        """Fill one slot from one record."""
        cdef size_t content
        outcome.status = RENDER_OK
        outcome.message[0] = 0
        outcome.record_id = 0
        if self.read_header(record, length, &content, slot, outcome):
            return outcome.status
        return self.render_image(record + content, length - content, epoch, number, slot.data,
                                 outcome)

    cdef int read_header(self, const uint8_t* record, size_t length, size_t* content,
                         const Slot* slot, Outcome* outcome) noexcept nogil:
        cdef uint32_t flag
        cdef Py_ssize_t width = self.plan.label_width
        if length < HEADER_SIZE:
            return self.fail(outcome, RENDER_SHORT_HEADER, b"")
        memcpy(&flag, record, 4)
        memcpy(&outcome.record_id, record + 8, 8)
        outcome.found = flag if flag else 1
        content[0] = HEADER_SIZE + <size_t>4 * flag
        if content[0] > length:
            return self.fail(outcome, RENDER_SHORT_LABELS, b"")
        if width != (<Py_ssize_t>flag if flag else 1):
            return self.fail(outcome, RENDER_LABEL_WIDTH, b"")
        memcpy(slot.label, record + (HEADER_SIZE if flag else 4), 4 * width)
        return RENDER_OK

    cdef int render_image(self, const uint8_t* data, size_t size, uint32_t epoch, int64_t number,
                          void* slot, Outcome* outcome) noexcept nogil:
        cdef jpeg_info info
        cdef int status
        if size == 0:
            return self.fail(outcome, RENDER_IMAGE, b"the record holds no image data")
        if self.decoder != NULL and self.plan.channels != 4:
            status = decoder_open(self.decoder, data, size, &self.plan.limits, &info)
            if status == JPEG_OK and info.supported:
                status = self.render_jpeg(info.width, info.height, info.orientation, epoch, number,
                                          slot, outcome)
                decoder_finish(self.decoder)
                return status
            decoder_finish(self.decoder)
            if status not in (JPEG_OK, JPEG_NOT_JPEG, JPEG_UNAVAILABLE):
                return self.fail(outcome, RENDER_IMAGE, decoder_message(self.decoder))
        return self.render_other(data, size, epoch, number, slot, outcome)

    cdef int render_jpeg(self, int width, int height, int orientation, uint32_t epoch,
                         int64_t number, void* slot, Outcome* outcome) noexcept nogil:
        """The image that the decoder has open."""
        cdef Geometry geometry
        cdef Layer* layer = &geometry.layers[0]
        cdef Pixels pixels
        cdef int denominator, x, y
        cdef bint turned = orient_exchanges_sides(orientation)
        if turned:
            width, height = height, width
        if self.draw(epoch, number, width, height, &geometry, outcome):
            return outcome.status
        denominator = resample_denominator(layer.method, layer.width, layer.target_width,
                                           layer.height, layer.target_height)
        if orientation == 1:
            pixels.first = NULL         # rows come from the decoder
            return self.run_layers(&geometry, &pixels, denominator, slot, outcome)
        if width % denominator or height % denominator:
            denominator = 1             # the scaled grids of both directions would not coincide
        x, y = layer.x // denominator, layer.y // denominator
        if self.decode_rectangle(
                denominator, orientation, width // denominator, height // denominator, x, y,
                (layer.x + layer.width + denominator - 1) // denominator - x,
                (layer.y + layer.height + denominator - 1) // denominator - y, &pixels, outcome):
            return outcome.status
        return self.run_layers(&geometry, &pixels, denominator, slot, outcome)

    cdef int decode_rectangle(self, int denominator, int orientation, int width, int height, int x,
                              int y, int rectangle_width, int rectangle_height, Pixels* pixels,
                              Outcome* outcome) noexcept nogil:
        """Decode a rectangle of the upright, scaled image into a buffer, turned upright."""
        cdef int channels = self.plan.channels, count, i, top = 0
        cdef int stored_x = x, stored_y = y, stored_width = rectangle_width
        cdef int stored_height = rectangle_height
        cdef const uint8_t* row
        cdef ptrdiff_t stride, packed
        cdef size_t size = <size_t>rectangle_width * rectangle_height * channels
        cdef uint8_t* stored = self.buffer(PIXELS_A, size, outcome)
        cdef uint8_t* upright = self.buffer(PIXELS_B, size, outcome)
        if outcome.status:
            return outcome.status
        if orient_exchanges_sides(orientation):
            width, height = height, width
        orient_rectangle(width, height, orientation, &stored_x, &stored_y, &stored_width,
                         &stored_height)
        packed = <ptrdiff_t>stored_width * channels
        if decoder_start(self.decoder, channels, denominator, stored_x, stored_y, stored_width,
                         stored_height):
            return self.fail(outcome, RENDER_IMAGE, decoder_message(self.decoder))
        while top < stored_height:
            if decoder_rows(self.decoder, &row, &stride, &count):
                return self.fail(outcome, RENDER_IMAGE, decoder_message(self.decoder))
            for i in range(count):
                memcpy(stored + (top + i) * packed, row + i * stride, packed)
            top += count
        orient_image(stored, packed, stored_width, stored_height, channels, orientation, upright,
                     <ptrdiff_t>rectangle_width * channels)
        pixels.first = upright
        pixels.stride = <ptrdiff_t>rectangle_width * channels
        pixels.x, pixels.y = x, y
        return RENDER_OK

    cdef int render_other(self, const uint8_t* data, size_t size, uint32_t epoch, int64_t number,
                          void* slot, Outcome* outcome) noexcept nogil:
        """An image that is not a JPEG, or a kind of JPEG that needs the general decoder."""
        cdef Geometry geometry
        cdef Pixels pixels
        cdef int width, height
        if self.decode_python(data, size, &pixels, &width, &height, outcome):
            return outcome.status
        if self.draw(epoch, number, width, height, &geometry, outcome):
            return outcome.status
        return self.run_layers(&geometry, &pixels, 1, slot, outcome)

    cdef int decode_python(self, const uint8_t* data, size_t size, Pixels* pixels, int* width,
                           int* height, Outcome* outcome) noexcept with gil:
        cdef const uint8_t[:, :, ::1] view
        try:
            # A copy: the span may be a worker's scratch memory, and Python code can keep what it gets.
            copy = PyBytes_FromStringAndSize(<const char*>data, <Py_ssize_t>size)
            view = self.decoded = codec.decode(copy, self.plan.channels)
        except MemoryError:
            return self.fail(outcome, RENDER_MEMORY, b"")
        except Exception as error:
            reason = error.reason if isinstance(error, RecordIOError) else repr(error)
            return self.fail(outcome, RENDER_IMAGE, reason.encode("utf-8", "replace"))
        pixels.first = &view[0, 0, 0]
        pixels.stride = view.shape[1] * view.shape[2]
        pixels.x = pixels.y = 0
        width[0], height[0] = <int>view.shape[1], <int>view.shape[0]
        return RENDER_OK

    cdef int draw(self, uint32_t epoch, int64_t number, int width, int height, Geometry* geometry,
                  Outcome* outcome) noexcept nogil:
        cdef int status = draw_geometry(&self.plan.geometry, self.plan.key, epoch, number, width,
                                        height, geometry)
        if status:
            # The only place that makes a message of several kinds of failure; rare, so the GIL is fine.
            with gil:
                return self.fail(outcome, RENDER_GEOMETRY, geometry_message(status).encode())
        return RENDER_OK

    cdef int run_layers(self, const Geometry* geometry, const Pixels* pixels, int denominator,
                        void* slot, Outcome* outcome) noexcept nogil:
        """Run the layers from the decoded pixels (or the decoder, if there are none) to the slot."""
        cdef Pixels current = pixels[0]
        cdef const Layer* layer
        cdef uint8_t* out
        cdef int i
        cdef bint last, same
        for i in range(geometry.count):
            layer = &geometry.layers[i]
            last = i == geometry.count - 1
            same = layer.width == layer.target_width and layer.height == layer.target_height
            out = NULL
            if not (last and same):
                out = self.buffer(
                    ROWS if last else PIXELS_B if i & 1 else PIXELS_A,
                    <size_t>layer.out_width * layer.out_height * self.plan.channels, outcome)
                if out == NULL:
                    return outcome.status
            if same:
                self.copy_layer(layer, &current, last, geometry.mirror, out, slot, outcome)
            else:
                self.resample_layer(layer, &current, denominator if i == 0 else 1, last,
                                    geometry.mirror, out, slot, outcome)
            if outcome.status:
                return outcome.status
            current.first = out
            current.stride = <ptrdiff_t>layer.out_width * self.plan.channels
            current.x = current.y = 0
        return RENDER_OK

    cdef int copy_layer(self, const Layer* layer, const Pixels* pixels, bint last, bint mirror,
                        uint8_t* out, void* slot, Outcome* outcome) noexcept nogil:
        """A layer that only crops: rows go from the decoder or the image to where they belong."""
        cdef int channels = self.plan.channels, y = 0, i, count = layer.out_height
        cdef int x0 = layer.x + layer.left, y0 = layer.y + layer.top
        cdef ptrdiff_t packed = <ptrdiff_t>layer.out_width * channels, stride = pixels.stride
        cdef const uint8_t* row = NULL
        if pixels.first != NULL:
            row = pixels.first + (y0 - pixels.y) * stride + (x0 - pixels.x) * channels
        elif decoder_start(self.decoder, channels, 1, x0, y0, layer.out_width, layer.out_height):
            return self.fail(outcome, RENDER_IMAGE, decoder_message(self.decoder))
        while y < layer.out_height:
            if pixels.first == NULL and decoder_rows(self.decoder, &row, &stride, &count):
                return self.fail(outcome, RENDER_IMAGE, decoder_message(self.decoder))
            for i in range(count):
                if last:
                    self.finish_row(row + i * stride, y + i, mirror, slot)
                else:
                    memcpy(out + (y + i) * packed, row + i * stride, packed)
            y += count
        return RENDER_OK

    cdef int resample_layer(self, const Layer* layer, const Pixels* pixels, int denominator,
                            bint last, bint mirror, uint8_t* out, void* slot,
                            Outcome* outcome) noexcept nogil:
        """Rows are pushed through the resampler; those that it finishes go to the slot at once."""
        cdef int channels = self.plan.channels
        cdef int x0, y0, width, height, count, i, y = 0, finished = 0, ready
        cdef ptrdiff_t packed = <ptrdiff_t>layer.out_width * channels, stride = pixels.stride
        cdef const uint8_t* row = NULL
        cdef resample_axis horizontal, vertical
        horizontal.source, horizontal.target = layer.width, layer.target_width
        horizontal.begin, horizontal.count = layer.left, layer.out_width
        horizontal.origin, horizontal.denominator = layer.x, denominator
        horizontal.stored = layer.x + layer.width
        vertical.source, vertical.target = layer.height, layer.target_height
        vertical.begin, vertical.count = layer.top, layer.out_height
        vertical.origin, vertical.denominator = layer.y, denominator
        vertical.stored = layer.y + layer.height
        if resampler_begin(self.resampler, layer.method, &horizontal, &vertical, channels, out,
                           packed):
            return self.fail(outcome, RENDER_MEMORY, b"")
        resampler_source(self.resampler, &x0, &y0, &width, &height)
        count = height
        if pixels.first != NULL:
            row = pixels.first + (y0 - pixels.y) * stride + (x0 - pixels.x) * channels
        elif decoder_start(self.decoder, channels, denominator, x0, y0, width, height):
            return self.fail(outcome, RENDER_IMAGE, decoder_message(self.decoder))
        while y < height:
            if pixels.first == NULL and decoder_rows(self.decoder, &row, &stride, &count):
                return self.fail(outcome, RENDER_IMAGE, decoder_message(self.decoder))
            for i in range(count):
                ready = resampler_push(self.resampler, row + i * stride)
                while last and finished < ready:
                    self.finish_row(out + finished * packed, finished, mirror, slot)
                    finished += 1
            y += count
        return RENDER_OK

    cdef void finish_row(self, const uint8_t* row, int y, bint mirror, void* slot) noexcept nogil:
        normalise_row(&self.plan.normalise, row, self.plan.width, y, mirror,
                      <char*>slot + y * self.plan.row_stride * self.plan.item_size,
                      self.plan.pixel_stride, self.plan.channel_stride)

    cdef uint8_t* buffer(self, int which, size_t size, Outcome* outcome) noexcept nogil:
        """Memory of at least that size, kept from image to image; NULL after a failure."""
        cdef uint8_t* memory
        if size > 4 * <size_t>self.plan.limits.max_pixels:
            self.fail(outcome, RENDER_GEOMETRY, b"an image between two resizes would be too large")
            return NULL
        if size + SLACK > self.capacities[which]:
            memory = <uint8_t*>realloc(self.buffers[which], size + SLACK)
            if memory == NULL:
                self.fail(outcome, RENDER_MEMORY, b"")
                return NULL
            self.buffers[which] = memory
            self.capacities[which] = size + SLACK
        return self.buffers[which]

    cdef int fail(self, Outcome* outcome, int status, const char* message) noexcept nogil:
        outcome.status = status
        strncpy(outcome.message, message, MESSAGE_SIZE - 1)
        outcome.message[MESSAGE_SIZE - 1] = 0
        return status


cdef object outcome_error(Outcome* outcome, Py_ssize_t label_width, path, offset, record):
    """The exception for a sample that could not be rendered."""
    place = {"path": path, "offset": offset, "record": record}
    cdef int status = outcome.status
    if status == RENDER_MEMORY:
        return MemoryError("no memory to decode and resample an image")
    if status == RENDER_SHORT_HEADER:
        return RecordHeaderError(
            f"the record is shorter than the {HEADER_SIZE} bytes of an image header", **place)
    place["record_id"] = outcome.record_id
    if status == RENDER_SHORT_LABELS:
        return RecordHeaderError(
            f"the header announces {outcome.found} labels, which the record is too short for",
            **place)
    if status == RENDER_LABEL_WIDTH:
        return LabelError(
            f"the record has {outcome.found} labels, label_width is {label_width}", **place)
    return ImageDecodeError(outcome.message.decode("utf-8", "replace"), **place)
