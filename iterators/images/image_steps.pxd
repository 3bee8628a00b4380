from libc.stdint cimport int64_t, uint8_t

from iterators.images.augment.draw cimport ImageKey
from iterators.images.augment.geometry cimport Geometry, Target
from iterators.images.augment.pixel_changes cimport Change
from iterators.images.plan cimport RenderPlan
from iterators.images.row_writer cimport RowWriter
from recordio.formats.row_source cimport ImageInfo, Pixels, Rectangle, RowSource
from recordio.formats.status cimport Outcome
from recordio.kernels.resample cimport resampler


# Memory of a runner, kept from image to image: number of each buffer.
cdef enum:
    PIXELS_A = 0            # steps read one and write the other
    PIXELS_B = 1
    COLUMNS = 2             # column positions of a warp
    BUFFERS = 3
    MAX_CHANGES = 8


# From rows to a slot in a batch; belongs to one thread at a time and keeps its memory.
cdef class StepRunner:
    cdef RenderPlan plan
    cdef RowWriter writer           # None: the result of one step remains in PIXELS_A
    cdef object owners              # of the changes
    cdef Change changes[MAX_CHANGES]
    cdef bint drawn[MAX_CHANGES]
    cdef int num_changes
    cdef resampler* resampler
    cdef uint8_t* buffers[BUFFERS]
    cdef size_t capacities[BUFFERS]
    # Of some images, for all: their time without decoding, and what of it was spent on writing
    # rows, which normalises them, and on changes of pixels.  Others read it.
    cdef int64_t runs
    cdef bint timed                 # the image at work
    cdef double timed_seconds
    cdef double write_seconds
    cdef double change_seconds

    # The target is that of the writer; NULL without one.
    cdef int run(self, RowSource* source, const ImageInfo* info, const ImageKey* image,
                 const Geometry* geometry, const Target* target,
                 Outcome* outcome) noexcept nogil
    cdef int run_steps(self, RowSource* source, const ImageInfo* info, const ImageKey* image,
                       const Geometry* geometry, const Target* target,
                       Outcome* outcome) noexcept nogil
    # The time, 0 unless the image is timed; and what has passed since then went into changes.
    cdef double clock(self) noexcept nogil
    cdef void note(self, double begin) noexcept nogil
    # The same for an image of more than 8 bits, which no step resamples.
    cdef int run_deep(self, RowSource* source, const ImageInfo* info, const ImageKey* image,
                      const Geometry* geometry, const Target* target,
                      Outcome* outcome) noexcept nogil
    # A rectangle of an open image, upright and in memory until the next call.
    cdef int load(self, RowSource* source, const ImageInfo* info, const Rectangle* region,
                  Pixels* pixels, Outcome* outcome) noexcept nogil
    cdef uint8_t* buffer(self, int which, size_t size, Outcome* outcome) noexcept nogil


# Whether all steps of an image crop, and none resamples.
cdef bint only_crops(const Geometry* geometry) noexcept nogil
# The column or row that is seen at one of a bordered image; -1 for the fill value.
cdef int padded_from(int method, int at, int side) noexcept nogil
