from libc.stdint cimport int64_t, uint8_t, uint32_t

from iterators.images.augment.draw cimport ImageKey
from iterators.images.augment.geometry cimport Geometry, Layer
from iterators.images.layers cimport LayerRenderer, Pixels, Rectangle
from iterators.images.status cimport Outcome


# The place of one sample in a batch.
cdef struct Slot:
    void* data
    float* label


# A way to a sample that leaves out the decoding of its image.
cdef class ImageShortcut:
    cdef bint lost      # what `look` found was gone when it was rendered
    # Whether the next `render`, if it is for this record, needs no encoded image.
    cdef bint look(self, int64_t number) noexcept nogil
    # Whether it was possible.
    cdef bint render(self, Renderer renderer, const uint8_t* data, size_t size,
                     const ImageKey* image, void* slot, Outcome* outcome) noexcept nogil


# Turns records into samples.
cdef class Renderer(LayerRenderer):
    cdef ImageShortcut shortcut     # tried first; may be None
    cdef object decoded         # image decoded through Python, alive while its pixels are read
    # What was done so far; others read it.
    cdef int64_t images
    cdef int64_t bytes
    cdef double total_seconds

    cdef int render(self, const uint8_t* record, size_t length, uint32_t epoch, int64_t number,
                    int64_t draw, const Slot* slot, Outcome* outcome) noexcept nogil
    # The two halves of `render`: header and labels into slot and outcome, then the image.
    cdef int read_header(self, const uint8_t* record, size_t length, size_t* content,
                         const Slot* slot, Outcome* outcome) noexcept nogil
    cdef int render_image(self, const uint8_t* data, size_t size, const ImageKey* image, void* slot,
                          Outcome* outcome) noexcept nogil
    # In place of the second half: a whole upright image in memory, RGB or grey (RGBA if the plan
    # has 4 channels), which was decoded before.  `normalise_done` must follow, as after any.
    cdef int render_pixels(self, const Pixels* pixels, int channels, const ImageKey* image,
                           void* slot, Outcome* outcome) noexcept nogil

    cdef int read_labels(self, const uint8_t* record, uint32_t flag, const Slot* slot,
                         Outcome* outcome) noexcept nogil
    cdef Py_ssize_t find_listed(self, Outcome* outcome) noexcept nogil
    cdef int draw(self, const ImageKey* image, int width, int height, Geometry* geometry,
                  Outcome* outcome) noexcept nogil
    cdef int render_jpeg(self, int width, int height, int orientation, const ImageKey* image,
                         void* slot, Outcome* outcome) noexcept nogil
    cdef int decode_rectangle(self, int denominator, int orientation, int width, int height,
                              const Rectangle* wanted, Pixels* pixels,
                              Outcome* outcome) noexcept nogil
    cdef int find_pixels(self, const uint8_t* data, size_t size, Pixels* pixels, int* channels,
                         Outcome* outcome) noexcept nogil
    cdef int convert_rectangle(self, const Pixels* stored, int channels, const Layer* layer,
                               Pixels* pixels, Outcome* outcome) noexcept nogil
    cdef int decode_python(self, const uint8_t* data, size_t size, Pixels* pixels,
                           Outcome* outcome) noexcept with gil
