from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from iterators.images.geometry cimport Geometry, GeometryRecipe, Layer
from iterators.images.jpeg cimport jpeg_decoder, jpeg_limits
from iterators.images.normalise cimport normalise_recipe
from iterators.images.resample cimport resampler


cdef enum RenderStatus:
    RENDER_OK = 0
    RENDER_SHORT_HEADER     # fewer bytes than an image header
    RENDER_SHORT_LABELS     # the header announces more labels than there are bytes
    RENDER_LABEL_WIDTH      # another number of labels than label_width
    RENDER_IMAGE            # the image cannot be decoded; the message says why
    RENDER_GEOMETRY         # the crop does not fit; the message says why
    RENDER_MEMORY


cdef enum:
    MESSAGE_SIZE = 200


cdef struct Outcome:
    int status
    int64_t found           # number of labels of the record
    uint64_t record_id
    char message[MESSAGE_SIZE]


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


# Everything that is the same for all samples of a provider; read by all renderers.
cdef class RenderPlan:
    cdef GeometryRecipe geometry
    cdef normalise_recipe normalise
    cdef jpeg_limits limits
    cdef uint64_t key
    cdef int channels
    cdef int width
    cdef int height
    cdef Py_ssize_t label_width
    cdef Py_ssize_t item_size
    # Distance of neighbours in elements.
    cdef ptrdiff_t sample_stride
    cdef ptrdiff_t channel_stride
    cdef ptrdiff_t row_stride
    cdef ptrdiff_t pixel_stride
    cdef readonly object recipe
    cdef readonly object dtype
    cdef readonly str layout


# Turns records into samples; belongs to one thread at a time and keeps its memory.
cdef class Renderer:
    cdef readonly RenderPlan plan
    cdef jpeg_decoder* decoder
    cdef resampler* resampler
    cdef uint8_t* buffers[3]
    cdef size_t capacities[3]
    cdef object decoded         # image decoded through Python, alive while its pixels are read

    cdef int render(self, const uint8_t* record, size_t length, uint32_t epoch, int64_t number,
                    const Slot* slot, Outcome* outcome) noexcept nogil
    cdef int read_header(self, const uint8_t* record, size_t length, size_t* content,
                         const Slot* slot, Outcome* outcome) noexcept nogil
    cdef int render_image(self, const uint8_t* data, size_t size, uint32_t epoch, int64_t number,
                          void* slot, Outcome* outcome) noexcept nogil
    cdef int render_jpeg(self, int width, int height, int orientation, uint32_t epoch,
                         int64_t number, void* slot, Outcome* outcome) noexcept nogil
    cdef int render_other(self, const uint8_t* data, size_t size, uint32_t epoch, int64_t number,
                          void* slot, Outcome* outcome) noexcept nogil
    cdef int draw(self, uint32_t epoch, int64_t number, int width, int height, Geometry* geometry,
                  Outcome* outcome) noexcept nogil
    cdef int run_layers(self, const Geometry* geometry, const Pixels* pixels, int denominator,
                        void* slot, Outcome* outcome) noexcept nogil
    cdef int copy_layer(self, const Layer* layer, const Pixels* pixels, bint last, bint mirror,
                        uint8_t* out, void* slot, Outcome* outcome) noexcept nogil
    cdef int resample_layer(self, const Layer* layer, const Pixels* pixels, int denominator,
                            bint last, bint mirror, uint8_t* out, void* slot,
                            Outcome* outcome) noexcept nogil
    cdef void finish_row(self, const uint8_t* row, int y, bint mirror, void* slot) noexcept nogil
    cdef int decode_python(self, const uint8_t* data, size_t size, Pixels* pixels, int* width,
                           int* height, Outcome* outcome) noexcept with gil
    cdef int decode_rectangle(self, int denominator, int orientation, int width, int height, int x,
                              int y, int rectangle_width, int rectangle_height, Pixels* pixels,
                              Outcome* outcome) noexcept nogil
    cdef uint8_t* buffer(self, int which, size_t size, Outcome* outcome) noexcept nogil
    cdef int fail(self, Outcome* outcome, int status, const char* message) noexcept nogil


# The exception for an outcome that is not RENDER_OK.
cdef object outcome_error(Outcome* outcome, Py_ssize_t label_width, path, offset, record)
