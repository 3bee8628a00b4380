from libc.stddef cimport ptrdiff_t
from libc.stdint cimport uint8_t

from iterators.images.augment.draw cimport ImageKey
from iterators.images.augment.geometry cimport Geometry, Layer
from iterators.images.augment.jitter cimport Jitter
from iterators.images.codecs.jpeg.jpeg cimport jpeg_decoder
from iterators.images.kernels.normalise cimport normalise_recipe
from iterators.images.status cimport Outcome
from iterators.images.plan cimport RenderPlan
from iterators.images.kernels.resample cimport resampler
from iterators.images.kernels.warp cimport warp_source


# Memory of a renderer, kept from image to image: number of each buffer.
cdef enum:
    PIXELS_A = 0            # steps read one and write the other
    PIXELS_B = 1
    STEPS = 2               # column positions of a warp
    ROW = 3                 # one row of a canvas that is wider than its image
    BUFFERS = 4


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


# From pixels to a place in a batch; belongs to one thread at a time and keeps its memory.
cdef class LayerRenderer:
    cdef readonly RenderPlan plan
    cdef jpeg_decoder* decoder
    cdef resampler* resampler
    cdef uint8_t* buffers[BUFFERS]
    cdef size_t capacities[BUFFERS]
    cdef double decode_seconds  # so far; others read it

    cdef void draw_colours(self, const ImageKey* image, Jitter* jitter) noexcept nogil
    cdef int run_layers(self, const ImageKey* image, const Geometry* geometry, const Pixels* pixels,
                        int denominator, void* slot, Outcome* outcome) noexcept nogil
    cdef int resample_layer(self, const Layer* layer, const Pixels* pixels, int denominator,
                            uint8_t* out, Sink* sink, Outcome* outcome) noexcept nogil
    cdef int copy_layer(self, const Layer* layer, const Pixels* pixels, uint8_t* out, Sink* sink,
                        Outcome* outcome) noexcept nogil
    cdef int warp_layer(self, const Layer* layer, const Pixels* pixels, uint8_t* out, Sink* sink,
                        Outcome* outcome) noexcept nogil
    cdef void pad_layer(self, const Layer* layer, const Pixels* pixels, uint8_t* out,
                        Sink* sink) noexcept nogil
    cdef void needed(self, const Layer* layer, int denominator, int width, int height,
                     Rectangle* wanted) noexcept nogil
    cdef void describe_warp(self, const Layer* layer, const Pixels* pixels,
                            warp_source* source) noexcept nogil
    cdef int start_rows(self, int denominator, int x, int y, int width, int height,
                        Outcome* outcome) noexcept nogil
    cdef int next_rows(self, const uint8_t** row, ptrdiff_t* stride, int* count,
                       Outcome* outcome) noexcept nogil
    cdef int fail_decoding(self, Outcome* outcome, int status) noexcept nogil
    cdef void finish_rows(self, Sink* sink, const uint8_t* rows, ptrdiff_t stride,
                          int count) noexcept nogil
    cdef uint8_t* buffer(self, int which, size_t size, Outcome* outcome) noexcept nogil
    cdef int fail(self, Outcome* outcome, int status, const char* message) noexcept nogil
