"""The steps between the pixels of an image and its place in a batch, without the GIL.

A `LayerRenderer` resamples, warps, pads and crops row by row while the rows are still in the cache,
whether they lie in memory or come from a JPEG decoder that was opened before, and normalises every
finished row straight into the sample's place.  It reads no record, opens no image and draws no
geometry: `render` does.
"""

from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int32_t, uint8_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset

from iterators.images.augment.draw cimport ImageKey
from iterators.images.augment.geometry cimport (
    LAYER_PAD,
    LAYER_RESAMPLE,
    LAYER_WARP,
    Geometry,
    Layer,
)
from iterators.images.augment.jitter cimport Jitter, draw_jitter, jitter_expose, jitter_image
from iterators.images.codecs.jpeg.jpeg cimport (
    JPEG_NO_MEMORY, JPEG_OK, decoder_available, decoder_free, decoder_message, decoder_new,
    decoder_rows, decoder_start,
)
from iterators.images.kernels.normalise cimport normalise_row, normalise_streams
from iterators.images.status cimport (
    RENDER_GEOMETRY, RENDER_IMAGE, RENDER_MEMORY, RENDER_OK, Outcome, outcome_fail,
)
from iterators.images.plan cimport RenderPlan
from iterators.images.kernels.resample cimport (
    resample_axis, resampler_begin, resampler_free, resampler_new, resampler_push, resampler_source,
)
from iterators.images.kernels.warp cimport (
    warp_bounds,
    warp_prepare,
    warp_row,
    warp_source,
    warp_weights,
)

cdef extern from "iterators/core/sync.h" nogil:
    double sync_now()

cdef extern from "iterators/core/counter.h" nogil:
    void seconds_add(double* seconds, double more)

cdef extern from "iterators/images/kernels/pixel.h":
    enum:
        PIXEL_SLACK         # bytes of memory that there must be behind the pixels

cdef extern from "iterators/images/kernels/cache_hints.h" nogil:
    void prefetch_for_writing(const void* memory, size_t size)
    void prefetch_for_reading(const void* memory, size_t size)

cdef enum:
    ROWS_AHEAD = 4          # rows of raw pixels come from memory, each at another place


cdef class LayerRenderer:
    """Base class of renderers; see the module.

    Parameters
    ----------
    plan : RenderPlan
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
                if pixels.first != NULL and i + ROWS_AHEAD < count:
                    prefetch_for_reading(row + (i + ROWS_AHEAD) * stride, width * channels)
                ready = resampler_push(self.resampler, row + i * stride)
                self.finish_rows(sink, out + complete * packed, packed, ready - complete)
                complete = ready
            y += count
        return RENDER_OK

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

    cdef int start_rows(self, int denominator, int x, int y, int width, int height,
                        Outcome* outcome) noexcept nogil:
        cdef double begin = sync_now()
        cdef int status = decoder_start(self.decoder, self.plan.channels, denominator, x, y, width,
                                        height)
        if status != JPEG_OK:
            self.fail_decoding(outcome, status)
        seconds_add(&self.decode_seconds, sync_now() - begin)
        return outcome.status

    cdef int next_rows(self, const uint8_t** row, ptrdiff_t* stride, int* count,
                       Outcome* outcome) noexcept nogil:
        cdef double begin = sync_now()
        cdef int status = decoder_rows(self.decoder, row, stride, count)
        if status != JPEG_OK:
            self.fail_decoding(outcome, status)
        seconds_add(&self.decode_seconds, sync_now() - begin)
        return outcome.status

    cdef int fail_decoding(self, Outcome* outcome, int status) noexcept nogil:
        """What the decoder could not do; that there is no memory says nothing about the image."""
        return self.fail(outcome, RENDER_MEMORY if status == JPEG_NO_MEMORY else RENDER_IMAGE,
                         decoder_message(self.decoder))

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
        if size + PIXEL_SLACK > self.capacities[which]:
            memory = <uint8_t*>realloc(self.buffers[which], size + PIXEL_SLACK)
            if memory == NULL:
                self.fail(outcome, RENDER_MEMORY, b"")
                return NULL
            self.buffers[which] = memory
            self.capacities[which] = size + PIXEL_SLACK
        return self.buffers[which]

    cdef int fail(self, Outcome* outcome, int status, const char* message) noexcept nogil:
        return outcome_fail(outcome, status, message)
