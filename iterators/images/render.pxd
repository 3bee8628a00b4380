from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int64_t, uint8_t, uint32_t

from iterators.images.draw cimport ImageKey
from iterators.images.geometry cimport Geometry, Layer
from iterators.images.jitter cimport Jitter
from iterators.images.jpeg cimport jpeg_decoder
from iterators.images.normalise cimport normalise_recipe
from iterators.images.outcome cimport Outcome
from iterators.images.render_plan cimport RenderPlan
from iterators.images.resample cimport resampler
from iterators.images.warp cimport warp_source


# Memory of a renderer, kept from image to image: number of each buffer.
cdef enum:
    PIXELS_A = 0            # steps read one and write the other
    PIXELS_B = 1
    STEPS = 2               # column positions of a warp
    ROW = 3                 # one row of a canvas that is wider than its image
    BUFFERS = 4


# The place of one sample in a batch.
cdef struct Slot:
    void* data
    float* label


# Pixels of an image, or of a rectangle of one that begins at (x, y).
cdef struct Pixels:
    const uint8_t* first
    ptrdiff_t stride
    int x
    int y
    int width
    int height


cdef struct Rectangle:
    int x
    int y
    int width
    int height


# Where finished rows go: normalised into a slot, or nowhere yet (slot NULL) because a later step
# needs the whole image.
cdef struct Sink:
    void* slot
    normalise_recipe normalise
    bint mirror
    int y


# Turns records into samples; belongs to one thread at a time and keeps its memory.
cdef class Renderer:
    cdef readonly RenderPlan plan
    cdef jpeg_decoder* decoder
    cdef resampler* resampler
    cdef uint8_t* buffers[BUFFERS]
    cdef size_t capacities[BUFFERS]
    cdef object decoded         # image decoded through Python, alive while its pixels are read
    # What was done so far.
    cdef int64_t images
    cdef int64_t bytes
    cdef double decode_seconds
    cdef double total_seconds

    cdef int render(self, const uint8_t* record, size_t length, uint32_t epoch, int64_t number,
                    int64_t draw, const Slot* slot, Outcome* outcome) noexcept nogil
    cdef int read_header(self, const uint8_t* record, size_t length, size_t* content,
                         const Slot* slot, Outcome* outcome) noexcept nogil
    cdef int read_labels(self, const uint8_t* record, uint32_t flag, const Slot* slot,
                         Outcome* outcome) noexcept nogil
    cdef Py_ssize_t find_listed(self, Outcome* outcome) noexcept nogil
    cdef int render_image(self, const uint8_t* data, size_t size, const ImageKey* image, void* slot,
                          Outcome* outcome) noexcept nogil
    cdef int render_jpeg(self, int width, int height, int orientation, const ImageKey* image,
                         void* slot, Outcome* outcome) noexcept nogil
    cdef int render_other(self, const uint8_t* data, size_t size, const ImageKey* image, void* slot,
                          Outcome* outcome) noexcept nogil
    cdef int draw(self, const ImageKey* image, int width, int height, Geometry* geometry,
                  Outcome* outcome) noexcept nogil
    cdef void draw_colours(self, const ImageKey* image, Jitter* jitter) noexcept nogil
    cdef int run_layers(self, const ImageKey* image, const Geometry* geometry, const Pixels* pixels,
                        int denominator, void* slot, Outcome* outcome) noexcept nogil
    cdef int resample_layer(self, const Layer* layer, const Pixels* pixels, int denominator,
                            uint8_t* out, Sink* sink, Outcome* outcome) noexcept nogil
    cdef int copy_layer(self, const Layer* layer, const Pixels* pixels, uint8_t* out, Sink* sink,
                        Outcome* outcome) noexcept nogil
    cdef void needed(self, const Layer* layer, int denominator, int width, int height,
                     Rectangle* wanted) noexcept nogil
    cdef void describe_warp(self, const Layer* layer, const Pixels* pixels,
                            warp_source* source) noexcept nogil
    cdef int warp_layer(self, const Layer* layer, const Pixels* pixels, uint8_t* out, Sink* sink,
                        Outcome* outcome) noexcept nogil
    cdef void pad_layer(self, const Layer* layer, const Pixels* pixels, uint8_t* out,
                        Sink* sink) noexcept nogil
    cdef void finish_rows(self, Sink* sink, const uint8_t* rows, ptrdiff_t stride,
                          int count) noexcept nogil
    cdef int start_rows(self, int denominator, int x, int y, int width, int height,
                        Outcome* outcome) noexcept nogil
    cdef int next_rows(self, const uint8_t** row, ptrdiff_t* stride, int* count,
                       Outcome* outcome) noexcept nogil
    cdef int decode_python(self, const uint8_t* data, size_t size, Pixels* pixels,
                           Outcome* outcome) noexcept with gil
    cdef int decode_rectangle(self, int denominator, int orientation, int width, int height,
                              const Rectangle* wanted, Pixels* pixels,
                              Outcome* outcome) noexcept nogil
    cdef uint8_t* buffer(self, int which, size_t size, Outcome* outcome) noexcept nogil
    cdef int fail(self, Outcome* outcome, int status, const char* message) noexcept nogil
