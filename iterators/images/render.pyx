"""One encoded record becomes one sample of a batch, without the GIL.

A `Renderer` reads the header and the labels, draws the geometry, finds out what kind of image there
is, and has only the rectangle and the scale decoded that the geometry needs; the steps from there
to the sample's place in the batch are `layers`.  It knows nothing of threads, order or batches; the
stage gives every thread a renderer of its own.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memcpy

import numpy as np

from recordio.errors import RecordIOError

from iterators.images.augment.draw cimport ImageKey, draw_key
from iterators.images.augment.geometry cimport LAYER_RESAMPLE, Geometry, Layer, draw_geometry
from iterators.images.codecs.jpeg.jpeg cimport (
    JPEG_NOT_JPEG, JPEG_OK, JPEG_UNAVAILABLE, decoder_finish, decoder_open,
    jpeg_info,
)
from iterators.images.layers cimport PIXELS_A, PIXELS_B, LayerRenderer, Pixels, Rectangle
from iterators.images.kernels.normalise cimport normalise_done
from iterators.images.kernels.orient cimport orient_exchanges_sides, orient_image, orient_rectangle
from iterators.images.status cimport (
    HEADER_SIZE, MESSAGE_SIZE, RENDER_GEOMETRY, RENDER_IMAGE, RENDER_LABEL_WIDTH, RENDER_MEMORY,
    RENDER_NOT_LISTED, RENDER_OK, RENDER_SHORT_HEADER, RENDER_SHORT_LABELS, Outcome, outcome_error,
)
from iterators.images.codecs.pnm cimport (
    PNM_OK, PNM_OTHER, pnm_convert_row, pnm_explain, pnm_header, pnm_parse,
)
from iterators.images.kernels.resample cimport resample_denominator

cdef extern from "iterators/core/sync.h" nogil:
    double sync_now()

cdef extern from "iterators/core/counter.h" nogil:
    void counter_add(int64_t* counter, int64_t number)
    void seconds_add(double* seconds, double more)

from .codecs import general as codec
from .augment.geometry import geometry_message


cdef class ImageShortcut:
    """Base class: no image is known already."""

    cdef bint look(self, int64_t number) noexcept nogil:
        return False

    cdef bint render(self, Renderer renderer, const uint8_t* data, size_t size,
                     const ImageKey* image, void* slot, Outcome* outcome) noexcept nogil:
        return False


cdef class Renderer(LayerRenderer):
    """Renders samples one after the other; see the module.

    Parameters
    ----------
    plan : RenderPlan

    Examples
    --------
    >>> from recordio import IRHeader, pack_img
    >>> from iterators.images.augment.recipe import Recipe
    >>> from iterators.images.plan import RenderPlan
    >>> record = pack_img(IRHeader(0, 3.0, 7, 0), np.zeros((9, 9, 3), np.uint8), img_fmt=".png")
    >>> renderer = Renderer(RenderPlan(Recipe(data_shape=(3, 4, 4), mean_r=1)))
    >>> data, label, record_id = renderer.sample(record)
    >>> data.shape, float(data[0, 0, 0, 0]), float(label[0, 0]), record_id
    ((1, 3, 4, 4), -1.0, 3.0, 7)
    """

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
        if self.shortcut is None or not self.shortcut.render(
                self, record + content, length - content, &image, slot.data, outcome):
            self.render_image(record + content, length - content, &image, slot.data, outcome)
        normalise_done()
        counter_add(&self.images, 1)
        counter_add(&self.bytes, <int64_t>(length - content))
        seconds_add(&self.total_seconds, sync_now() - begin)
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
        cdef Pixels pixels
        cdef int status, channels = self.plan.channels
        if size == 0:
            return self.fail(outcome, RENDER_IMAGE, b"the record holds no image data")
        if self.decoder != NULL and channels != 4:
            status = decoder_open(self.decoder, data, size, &self.plan.limits, &info)
            if status == JPEG_OK and info.supported:
                status = self.render_jpeg(info.width, info.height, info.orientation, image, slot,
                                          outcome)
                decoder_finish(self.decoder)
                return status
            decoder_finish(self.decoder)
            if status not in (JPEG_OK, JPEG_NOT_JPEG, JPEG_UNAVAILABLE):
                return self.fail_decoding(outcome, status)
        status = self.find_pixels(data, size, &pixels, &channels, outcome)
        if status == PNM_OTHER:     # or a kind of JPEG that needs the general decoder
            status = self.decode_python(data, size, &pixels, outcome)
        if status:
            return outcome.status
        return self.render_pixels(&pixels, channels, image, slot, outcome)

    cdef int render_pixels(self, const Pixels* pixels, int channels, const ImageKey* image,
                           void* slot, Outcome* outcome) noexcept nogil:
        """A whole upright image in memory, of `channels` bytes a pixel: RGB or grey.

        Nothing is read but what the geometry needs, and nothing behind the last pixel.
        """
        cdef Geometry geometry
        cdef Pixels converted
        if self.draw(image, pixels.width, pixels.height, &geometry, outcome):
            return outcome.status
        if channels == self.plan.channels:
            return self.run_layers(image, &geometry, pixels, 1, slot, outcome)
        if self.convert_rectangle(pixels, channels, &geometry.layers[0], &converted, outcome):
            return outcome.status
        return self.run_layers(image, &geometry, &converted, 1, slot, outcome)

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

    cdef int find_pixels(self, const uint8_t* data, size_t size, Pixels* pixels, int* channels,
                         Outcome* outcome) noexcept nogil:
        """Where the pixels of a raw image are; PNM_OTHER if it is none."""
        cdef pnm_header header
        cdef int status = pnm_parse(data, size, self.plan.limits.max_pixels, &header)
        if status == PNM_OTHER or self.plan.channels == 4:
            return PNM_OTHER
        if status != PNM_OK:
            pnm_explain(status, &header, self.plan.limits.max_pixels, outcome.message, MESSAGE_SIZE)
            outcome.status = RENDER_IMAGE
            return status
        pixels.first, pixels.stride = data + header.start, header.width * header.channels
        pixels.x = pixels.y = 0
        pixels.width, pixels.height = <int>header.width, <int>header.height
        channels[0] = header.channels
        return PNM_OK

    cdef int convert_rectangle(self, const Pixels* stored, int channels, const Layer* layer,
                               Pixels* pixels, Outcome* outcome) noexcept nogil:
        """What a first layer reads, from grey to colour or from colour to grey, into a buffer."""
        cdef Rectangle wanted
        cdef int y
        cdef ptrdiff_t packed
        cdef uint8_t* target
        self.needed(layer, 1, stored.width, stored.height, &wanted)
        packed = <ptrdiff_t>wanted.width * self.plan.channels
        target = self.buffer(PIXELS_B, <size_t>packed * wanted.height, outcome)
        if target == NULL:
            return outcome.status
        for y in range(wanted.height):
            pnm_convert_row(stored.first + (wanted.y + y) * stored.stride + wanted.x * channels,
                            wanted.width, channels, target + y * packed)
        pixels.first, pixels.stride = target, packed
        pixels.x, pixels.y = wanted.x, wanted.y
        pixels.width, pixels.height = wanted.width, wanted.height
        return RENDER_OK

    cdef int decode_python(self, const uint8_t* data, size_t size, Pixels* pixels,
                           Outcome* outcome) noexcept with gil:
        cdef const uint8_t[:, :, ::1] view
        cdef double begin = sync_now()
        try:
            # A copy: the span may be a worker's scratch memory, and Python code can keep it.
            copy = PyBytes_FromStringAndSize(<const char*>data, <Py_ssize_t>size)
            view = self.decoded = codec.decode(
                copy, self.plan.channels, max_pixels=self.plan.limits.max_pixels,
                max_scans=self.plan.limits.max_scans,
                max_scan_pixels=self.plan.limits.max_scan_pixels,
            )
        except MemoryError:
            return self.fail(outcome, RENDER_MEMORY, b"")
        except Exception as error:
            reason = error.reason if isinstance(error, RecordIOError) else repr(error)
            return self.fail(outcome, RENDER_IMAGE, reason.encode("utf-8", "replace"))
        finally:
            seconds_add(&self.decode_seconds, sync_now() - begin)
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
