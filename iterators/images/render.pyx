"""One encoded record becomes one sample of a batch, without the GIL.

A `Renderer` reads the header and the labels, decodes only the rectangle and the scale that the
drawn geometry needs, resamples row by row while the rows are still in the cache, and normalises
every finished row straight into the sample's place in the batch.  It knows nothing of threads,
order or batches; the stage gives every thread a renderer of its own.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset

import numpy as np

from recordio.errors import RecordIOError

from iterators.images.draw cimport ImageKey, draw_key
from iterators.images.geometry cimport (
    LAYER_PAD, LAYER_RESAMPLE, LAYER_WARP, Geometry, Layer, draw_geometry,
)
from iterators.images.jitter cimport Jitter, draw_jitter, jitter_expose, jitter_image
from iterators.images.jpeg cimport (
    JPEG_NOT_JPEG, JPEG_OK, JPEG_UNAVAILABLE, decoder_available, decoder_finish, decoder_free,
    decoder_message, decoder_new, decoder_open, decoder_rows, decoder_start, jpeg_info,
)
from iterators.images.normalise cimport (
    normalise_done, normalise_recipe, normalise_row, normalise_streams,
)
from iterators.images.orient cimport orient_exchanges_sides, orient_image, orient_rectangle
from iterators.images.outcome cimport (
    HEADER_SIZE, RENDER_GEOMETRY, RENDER_IMAGE, RENDER_LABEL_WIDTH, RENDER_MEMORY,
    RENDER_NOT_LISTED, RENDER_OK, RENDER_SHORT_HEADER, RENDER_SHORT_LABELS, Outcome, outcome_error,
    outcome_fail,
)
from iterators.images.render_plan cimport RenderPlan
from iterators.images.resample cimport (
    resample_axis, resample_denominator, resampler_begin, resampler_free, resampler_new,
    resampler_push, resampler_source,
)
from iterators.images.warp cimport warp_bounds, warp_prepare, warp_row, warp_source, warp_weights

cdef extern from "../core/sync.h" nogil:
    double sync_now()

cdef extern from "prefetch.h" nogil:
    void prefetch_for_writing(const void* memory, size_t size)

from . import codec
from .geometry import geometry_message

cdef enum:
    SLACK = 64              # kernels may read a vector behind the last pixel


cdef class Renderer:
    """Renders samples one after the other; see the module.

    Parameters
    ----------
    plan : RenderPlan

    Examples
    --------
    >>> from recordio import IRHeader, pack_img
    >>> from iterators.images.recipe import Recipe
    >>> from iterators.images.render_plan import RenderPlan
    >>> record = pack_img(IRHeader(0, 3.0, 7, 0), np.zeros((9, 9, 3), np.uint8), img_fmt=".png")
    >>> renderer = Renderer(RenderPlan(Recipe(data_shape=(3, 4, 4), mean_r=1)))
    >>> data, label, record_id = renderer.sample(record)
    >>> data.shape, float(data[0, 0, 0, 0]), float(label[0, 0]), record_id
    ((1, 3, 4, 4), -1.0, 3.0, 7)
    """

    def __cinit__(self, RenderPlan plan):
        cdef int i
        for i in range(BUFFERS):
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
        for i in range(BUFFERS):
            free(self.buffers[i])

    def sample(self, const uint8_t[::1] record not None, uint32_t epoch=0, int64_t number=0,
               int64_t draw=0):
        """Render one record into a batch of one.

        Parameters
        ----------
        record : bytes-like
            Header, labels and encoded image.
        epoch, number, draw : int
            Choose the random numbers; `draw` is 0 for the first occurrence in an epoch.

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
            status = self.render(first, record.shape[0], epoch, number, draw, &slot, &outcome)
        if status:
            raise outcome_error(&outcome, plan.label_width, {})
        return data, label, outcome.record_id

    cdef int render(self, const uint8_t* record, size_t length, uint32_t epoch, int64_t number,
                    int64_t draw, const Slot* slot, Outcome* outcome) noexcept nogil:
        """Fill one slot from one record."""
        cdef size_t content
        cdef ImageKey image
        cdef double begin = sync_now()
        outcome.status = RENDER_OK
        outcome.message[0] = 0
        outcome.record_id = 0
        if self.read_header(record, length, &content, slot, outcome):
            return outcome.status
        image.key = draw_key(self.plan.key, draw)
        image.epoch, image.record = epoch, number
        self.render_image(record + content, length - content, &image, slot.data, outcome)
        normalise_done()
        self.images += 1
        self.bytes += length - content
        self.total_seconds += sync_now() - begin
        return outcome.status

    cdef int read_header(self, const uint8_t* record, size_t length, size_t* content,
                         const Slot* slot, Outcome* outcome) noexcept nogil:
        cdef uint32_t flag
        if length < HEADER_SIZE:
            return self.fail(outcome, RENDER_SHORT_HEADER, b"")
        memcpy(&flag, record, 4)
        memcpy(&outcome.record_id, record + 8, 8)
        outcome.found = flag if flag else 1
        content[0] = HEADER_SIZE + <size_t>4 * flag
        if content[0] > length:
            return self.fail(outcome, RENDER_SHORT_LABELS, b"")
        if self.plan.label_width == 0:
            return RENDER_OK        # nobody asks for labels
        return self.read_labels(record, flag, slot, outcome)

    cdef int read_labels(self, const uint8_t* record, uint32_t flag, const Slot* slot,
                         Outcome* outcome) noexcept nogil:
        """Labels of the record or of the list, into the slot."""
        cdef Py_ssize_t width = self.plan.label_width, listed
        if self.plan.num_listed >= 0:
            listed = self.find_listed(outcome)
            if listed >= 0:
                memcpy(slot.label, self.plan.label_table + listed * width, 4 * width)
            return outcome.status
        if width != (<Py_ssize_t>flag if flag else 1):
            return self.fail(outcome, RENDER_LABEL_WIDTH, b"")
        memcpy(slot.label, record + (HEADER_SIZE if flag else 4), 4 * width)
        return RENDER_OK

    cdef Py_ssize_t find_listed(self, Outcome* outcome) noexcept nogil:
        """Place of the record's id in the list of labels; -1 after a failure."""
        cdef Py_ssize_t low = 0, high = self.plan.num_listed, middle
        while low < high:
            middle = (low + high) // 2
            if self.plan.label_ids[middle] < outcome.record_id:
                low = middle + 1
            else:
                high = middle
        if low == self.plan.num_listed or self.plan.label_ids[low] != outcome.record_id:
            self.fail(outcome, RENDER_NOT_LISTED, b"")
            return -1
        return low

    cdef int render_image(self, const uint8_t* data, size_t size, const ImageKey* image, void* slot,
                          Outcome* outcome) noexcept nogil:
        cdef jpeg_info info
        cdef int status
        if size == 0:
            return self.fail(outcome, RENDER_IMAGE, b"the record holds no image data")
        if self.decoder != NULL and self.plan.channels != 4:
            status = decoder_open(self.decoder, data, size, &self.plan.limits, &info)
            if status == JPEG_OK and info.supported:
                status = self.render_jpeg(info.width, info.height, info.orientation, image, slot,
                                          outcome)
                decoder_finish(self.decoder)
                return status
            decoder_finish(self.decoder)
            if status not in (JPEG_OK, JPEG_NOT_JPEG, JPEG_UNAVAILABLE):
                return self.fail(outcome, RENDER_IMAGE, decoder_message(self.decoder))
        return self.render_other(data, size, image, slot, outcome)

    cdef int render_jpeg(self, int width, int height, int orientation, const ImageKey* image,
                         void* slot, Outcome* outcome) noexcept nogil:
        """The image that the decoder has open."""
        cdef Geometry geometry
        cdef Layer* layer = &geometry.layers[0]
        cdef Pixels pixels
        cdef Rectangle wanted
        cdef int denominator = 1
        if orient_exchanges_sides(orientation):
            width, height = height, width
        if self.draw(image, width, height, &geometry, outcome):
            return outcome.status
        if layer.kind == LAYER_RESAMPLE:
            if self.plan.scaled_decode:
                denominator = resample_denominator(layer.method, layer.width, layer.target_width,
                                                   layer.height, layer.target_height)
            if orientation == 1:
                pixels.first = NULL         # rows come straight from the decoder
                return self.run_layers(image, &geometry, &pixels, denominator, slot, outcome)
        if width % denominator or height % denominator:
            denominator = 1     # the scaled grids of stored and upright image would not agree
        self.needed(layer, denominator, width, height, &wanted)
        if self.decode_rectangle(denominator, orientation, width // denominator,
                                 height // denominator, &wanted, &pixels, outcome):
            return outcome.status
        return self.run_layers(image, &geometry, &pixels, denominator, slot, outcome)

    cdef void needed(self, const Layer* layer, int denominator, int width, int height,
                     Rectangle* wanted) noexcept nogil:
        """What the first layer reads of the upright image at 1/denominator; never empty."""
        cdef warp_source source
        if layer.kind == LAYER_RESAMPLE:
            wanted.x, wanted.y = layer.x // denominator, layer.y // denominator
            wanted.width = (layer.x + layer.width + denominator - 1) // denominator - wanted.x
            wanted.height = (layer.y + layer.height + denominator - 1) // denominator - wanted.y
            return
        if layer.kind == LAYER_WARP:
            self.describe_warp(layer, NULL, &source)
            warp_bounds(&source, layer.left, layer.top, layer.out_width, layer.out_height,
                        &wanted.x, &wanted.y, &wanted.width, &wanted.height)
        else:
            wanted.x = min(max(layer.left - layer.border_x, 0), width)
            wanted.y = min(max(layer.top - layer.border_y, 0), height)
            wanted.width = min(layer.left + layer.out_width - layer.border_x, width) - wanted.x
            wanted.height = min(layer.top + layer.out_height - layer.border_y, height) - wanted.y
        if wanted.width < 1 or wanted.height < 1:
            wanted.x = wanted.y = 0
            wanted.width = wanted.height = 1

    cdef int decode_rectangle(self, int denominator, int orientation, int width, int height,
                              const Rectangle* wanted, Pixels* pixels,
                              Outcome* outcome) noexcept nogil:
        """Decode a rectangle of the upright, scaled image of `width` x `height` into a buffer."""
        cdef int channels = self.plan.channels, count, i, top = 0
        cdef Rectangle stored = wanted[0]
        cdef const uint8_t* row
        cdef ptrdiff_t stride, packed
        cdef size_t size = <size_t>wanted.width * wanted.height * channels
        cdef uint8_t* upright = self.buffer(PIXELS_B, size, outcome)
        cdef uint8_t* target = upright if orientation == 1 else self.buffer(PIXELS_A, size, outcome)
        if outcome.status:
            return outcome.status
        if orient_exchanges_sides(orientation):
            width, height = height, width
        orient_rectangle(width, height, orientation, &stored.x, &stored.y, &stored.width,
                         &stored.height)
        packed = <ptrdiff_t>stored.width * channels
        if self.start_rows(denominator, stored.x, stored.y, stored.width, stored.height, outcome):
            return outcome.status
        while top < stored.height:
            if self.next_rows(&row, &stride, &count, outcome):
                return outcome.status
            for i in range(count):
                memcpy(target + (top + i) * packed, row + i * stride, packed)
            top += count
        pixels.first, pixels.stride = upright, <ptrdiff_t>wanted.width * channels
        pixels.x, pixels.y = wanted.x, wanted.y
        pixels.width, pixels.height = wanted.width, wanted.height
        if orientation != 1:
            orient_image(target, packed, stored.width, stored.height, channels, orientation,
                         upright, pixels.stride)
        return RENDER_OK

    cdef int start_rows(self, int denominator, int x, int y, int width, int height,
                        Outcome* outcome) noexcept nogil:
        cdef double begin = sync_now()
        if decoder_start(self.decoder, self.plan.channels, denominator, x, y, width, height):
            self.fail(outcome, RENDER_IMAGE, decoder_message(self.decoder))
        self.decode_seconds += sync_now() - begin
        return outcome.status

    cdef int next_rows(self, const uint8_t** row, ptrdiff_t* stride, int* count,
                       Outcome* outcome) noexcept nogil:
        cdef double begin = sync_now()
        if decoder_rows(self.decoder, row, stride, count):
            self.fail(outcome, RENDER_IMAGE, decoder_message(self.decoder))
        self.decode_seconds += sync_now() - begin
        return outcome.status

    cdef int render_other(self, const uint8_t* data, size_t size, const ImageKey* image, void* slot,
                          Outcome* outcome) noexcept nogil:
        """An image that is not a JPEG, or a kind of JPEG that needs the general decoder."""
        cdef Geometry geometry
        cdef Pixels pixels
        if self.decode_python(data, size, &pixels, outcome):
            return outcome.status
        if self.draw(image, pixels.width, pixels.height, &geometry, outcome):
            return outcome.status
        return self.run_layers(image, &geometry, &pixels, 1, slot, outcome)

    cdef int decode_python(self, const uint8_t* data, size_t size, Pixels* pixels,
                           Outcome* outcome) noexcept with gil:
        cdef const uint8_t[:, :, ::1] view
        cdef double begin = sync_now()
        try:
            # A copy: the span may be a worker's scratch memory, and Python code can keep it.
            copy = PyBytes_FromStringAndSize(<const char*>data, <Py_ssize_t>size)
            view = self.decoded = codec.decode(copy, self.plan.channels)
        except MemoryError:
            return self.fail(outcome, RENDER_MEMORY, b"")
        except Exception as error:
            reason = error.reason if isinstance(error, RecordIOError) else repr(error)
            return self.fail(outcome, RENDER_IMAGE, reason.encode("utf-8", "replace"))
        finally:
            self.decode_seconds += sync_now() - begin
        pixels.first, pixels.stride = &view[0, 0, 0], view.shape[1] * view.shape[2]
        pixels.x = pixels.y = 0
        pixels.width, pixels.height = <int>view.shape[1], <int>view.shape[0]
        return RENDER_OK

    cdef int draw(self, const ImageKey* image, int width, int height, Geometry* geometry,
                  Outcome* outcome) noexcept nogil:
        cdef int status = draw_geometry(&self.plan.geometry, image, width, height, geometry)
        if status:
            with gil:
                return self.fail(outcome, RENDER_GEOMETRY, geometry_message(status).encode())
        return RENDER_OK

    cdef void draw_colours(self, const ImageKey* image, Jitter* jitter) noexcept nogil:
        draw_jitter(&self.plan.jitter, image, jitter)

    cdef int run_layers(self, const ImageKey* image, const Geometry* geometry, const Pixels* pixels,
                        int denominator, void* slot, Outcome* outcome) noexcept nogil:
        """From decoded pixels (or the decoder, if there are none) through all steps to the slot."""
        cdef Pixels current = pixels[0]
        cdef const Layer* layer
        cdef Sink sink
        cdef Jitter jitter
        cdef uint8_t* out = NULL
        cdef int i, last = geometry.count - 1
        cdef bint coloured
        sink.y = 0
        sink.mirror = geometry.mirror
        sink.normalise = self.plan.normalise
        self.draw_colours(image, &jitter)
        jitter_expose(&jitter, &sink.normalise)
        for i in range(geometry.count):
            layer = &geometry.layers[i]
            coloured = jitter.colours and i == geometry.coloured
            sink.slot = slot if i == last and not coloured else NULL
            out = self.buffer(PIXELS_B if i & 1 else PIXELS_A,
                              <size_t>layer.out_width * layer.out_height * self.plan.channels,
                              outcome)
            if out == NULL:
                return outcome.status
            if layer.kind == LAYER_WARP:
                self.warp_layer(layer, &current, out, &sink, outcome)
            elif layer.kind == LAYER_PAD:
                self.pad_layer(layer, &current, out, &sink)
            elif layer.width == layer.target_width and layer.height == layer.target_height:
                self.copy_layer(layer, &current, out, &sink, outcome)
            else:
                self.resample_layer(layer, &current, denominator if i == 0 else 1, out, &sink,
                                    outcome)
            if outcome.status:
                return outcome.status
            current.first, current.stride = out, <ptrdiff_t>layer.out_width * self.plan.channels
            current.x = current.y = 0
            current.width, current.height = layer.out_width, layer.out_height
            if coloured:
                jitter_image(&jitter, out, self.plan.channels, current.width, current.height)
                if i == last:
                    sink.slot = slot
                    self.finish_rows(&sink, out, current.stride, current.height)
        return RENDER_OK

    cdef int copy_layer(self, const Layer* layer, const Pixels* pixels, uint8_t* out, Sink* sink,
                        Outcome* outcome) noexcept nogil:
        """A step that only crops: rows go from the decoder or the image to where they belong."""
        cdef int channels = self.plan.channels, y = 0, i, count = layer.out_height
        cdef int x0 = layer.x + layer.left, y0 = layer.y + layer.top
        cdef ptrdiff_t packed = <ptrdiff_t>layer.out_width * channels, stride = pixels.stride
        cdef const uint8_t* row = NULL
        if pixels.first != NULL:
            row = pixels.first + (y0 - pixels.y) * stride + (x0 - pixels.x) * channels
        elif self.start_rows(1, x0, y0, layer.out_width, layer.out_height, outcome):
            return outcome.status
        while y < layer.out_height:
            if pixels.first == NULL and self.next_rows(&row, &stride, &count, outcome):
                return outcome.status
            if sink.slot != NULL:
                self.finish_rows(sink, row, stride, count)
            else:
                for i in range(count):
                    memcpy(out + (y + i) * packed, row + i * stride, packed)
            y += count
        return RENDER_OK

    cdef int resample_layer(self, const Layer* layer, const Pixels* pixels, int denominator,
                            uint8_t* out, Sink* sink, Outcome* outcome) noexcept nogil:
        """Rows are pushed through the resampler; those that it completes are finished at once."""
        cdef int channels = self.plan.channels
        cdef int x0, y0, width, height, count, i, y = 0, complete = 0, ready
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
        elif self.start_rows(denominator, x0, y0, width, height, outcome):
            return outcome.status
        while y < height:
            if pixels.first == NULL and self.next_rows(&row, &stride, &count, outcome):
                return outcome.status
            for i in range(count):
                ready = resampler_push(self.resampler, row + i * stride)
                self.finish_rows(sink, out + complete * packed, packed, ready - complete)
                complete = ready
            y += count
        return RENDER_OK

    cdef void describe_warp(self, const Layer* layer, const Pixels* pixels,
                            warp_source* source) noexcept nogil:
        memset(source, 0, sizeof(warp_source))
        memcpy(source.inverse, layer.inverse, sizeof(layer.inverse))
        memcpy(source.fill, self.plan.fill, 4)
        source.image_width, source.image_height = layer.width, layer.height
        source.channels = self.plan.channels
        source.method = layer.method
        source.weights = warp_weights(layer.method)
        if pixels != NULL:
            source.pixels, source.stride = pixels.first, pixels.stride
            source.x, source.y = pixels.x, pixels.y
            source.width, source.height = pixels.width, pixels.height

    cdef int warp_layer(self, const Layer* layer, const Pixels* pixels, uint8_t* out, Sink* sink,
                        Outcome* outcome) noexcept nogil:
        """Rotation, shear and scale: the inverse map, evaluated for the wanted pixels only."""
        cdef warp_source source
        cdef int y
        cdef ptrdiff_t packed = <ptrdiff_t>layer.out_width * self.plan.channels
        cdef int32_t* steps = <int32_t*>self.buffer(STEPS, 8 * <size_t>layer.out_width, outcome)
        if steps == NULL:
            return outcome.status
        self.describe_warp(layer, pixels, &source)
        warp_prepare(&source, layer.left, layer.out_width, steps)
        for y in range(layer.out_height):
            warp_row(&source, layer.left, layer.out_width, layer.top + y, out + y * packed)
            self.finish_rows(sink, out + y * packed, packed, 1)
        return RENDER_OK

    cdef void pad_layer(self, const Layer* layer, const Pixels* pixels, uint8_t* out,
                        Sink* sink) noexcept nogil:
        """A border of the fill value."""
        cdef int channels = self.plan.channels, x, y, i, source_y
        cdef int first = min(max(layer.border_x - layer.left, 0), layer.out_width)
        cdef int last = max(min(layer.border_x + layer.width - layer.left, layer.out_width), first)
        cdef ptrdiff_t packed = <ptrdiff_t>layer.out_width * channels
        cdef uint8_t* row
        for y in range(layer.out_height):
            row = out + y * packed
            source_y = layer.top + y - layer.border_y
            for x in range(layer.out_width):
                for i in range(channels):
                    row[x * channels + i] = self.plan.fill[i]
            if 0 <= source_y < layer.height and last > first:
                memcpy(row + first * channels,
                       pixels.first + (source_y - pixels.y) * pixels.stride
                       + (layer.left + first - layer.border_x - pixels.x) * channels,
                       <size_t>(last - first) * channels)
            self.finish_rows(sink, row, packed, 1)

    cdef void finish_rows(self, Sink* sink, const uint8_t* rows, ptrdiff_t stride,
                          int count) noexcept nogil:
        """Normalise rows into the slot, if they are ready for it."""
        cdef int i, channel
        cdef ptrdiff_t row_size = self.plan.row_stride * self.plan.item_size
        cdef char* target
        if sink.slot == NULL:
            return
        for i in range(count):
            target = <char*>sink.slot + sink.y * row_size
            normalise_row(&sink.normalise, rows + i * stride, self.plan.width, sink.y, sink.mirror,
                          target, self.plan.pixel_stride, self.plan.channel_stride)
            sink.y += 1
        count = min(count, self.plan.height - sink.y)
        target = <char*>sink.slot + sink.y * row_size
        if self.plan.pixel_stride != 1 or normalise_streams(
                &sink.normalise, self.plan.width, target, self.plan.pixel_stride,
                self.plan.channel_stride):
            return
        # The next rows come when the decoder is done with them; until then their memory can.
        for i in range(count):
            for channel in range(self.plan.channels):
                prefetch_for_writing(
                    target + i * row_size
                    + channel * self.plan.channel_stride * self.plan.item_size,
                    self.plan.width * self.plan.item_size)

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
        return outcome_fail(outcome, status, message)
