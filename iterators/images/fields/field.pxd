from libc.stdint cimport int32_t, uint8_t

from iterators.images.augment.draw cimport ImageKey
from iterators.images.augment.geometry cimport MAX_STEPS, Geometry, Step, Target
from iterators.images.image_steps cimport StepRunner
from iterators.images.sources.source cimport Encoded, Source
from recordio.formats.status cimport Outcome


cdef enum:
    MAX_MOVES = 96                  # steps that changes of pixels add: those of a policy
    MAX_PATH = MAX_STEPS + MAX_MOVES


# All that moves the pixels of an image on its way to a slot.  The steps are those of a geometry
# and, behind them, one for each operation that turns or moves the finished image.  Mirror and flip
# come last, within the finished image.
cdef struct FieldPath:
    int width               # of the image, upright
    int height
    int count
    int drawn               # steps of the geometry, and which of them `changed` is
    int changed
    Step steps[MAX_PATH]
    bint straight           # rows stay rows, and columns columns
    bint mirror
    bint flip
    bint reversed           # left and right are exchanged
    int out_width           # of the finished image
    int out_height


# Finds the paths of the images that a runner renders: what was drawn for the last one.
cdef class PathFinder:
    cdef Geometry drawn
    cdef int width
    cdef int height

    cdef void note(self, const Geometry* geometry, int width, int height) noexcept nogil
    # The path of the image that was noted and run last.
    cdef int find(self, StepRunner runner, FieldPath* path, Outcome* outcome) noexcept nogil


# Where the pixels of a slot come from, each step by the nearest pixel; serves one thread.
cdef class Tracer:
    cdef const FieldPath* path
    cdef int32_t* memory
    cdef size_t capacity
    cdef int32_t* tables[MAX_PATH][2]
    # Of a straight path: the column and the row of every column and row of the finished image, in
    # the order of the slot; -1 for those outside.
    cdef int32_t* columns
    cdef int32_t* rows

    cdef void join(self, int axis, int count, bint reversed, int32_t* out) noexcept nogil
    cdef int begin(self, const FieldPath* path, Outcome* outcome) noexcept nogil
    # Of any path: the pixels of one row of the finished image; xs -1 for those outside.
    cdef void trace(self, int y, int32_t* xs, int32_t* ys) noexcept nogil
    # The same as positions between pixels, not rounded on the way; xs is not a number outside.
    cdef void trace_exactly(self, int y, double* xs, double* ys) noexcept nogil


# Move a point of the image to the finished one: whether it was seen in every step.
cdef bint move_point(const FieldPath* path, double* x, double* y) noexcept nogil
# Find the pixel of the image under a position of the finished one, wherever that is.
cdef void find_origin(const FieldPath* path, double* x, double* y) noexcept nogil
# Where a step brings a position of its whole input, its window included; False for nowhere.
cdef bint step_forward(const Step* step, double* x, double* y) noexcept nogil


cdef enum:
    MAX_FIELDS = 64


# What a sample has of a field that is no array of a fixed shape.
cdef struct Payload:
    uint8_t* bytes
    size_t size
    size_t capacity


# The fields of one batch under way: where each begins, and by slot what went wrong.
cdef struct FieldRows:
    Target targets[MAX_FIELDS]      # the first slot of each array ...
    size_t slot_bytes[MAX_FIELDS]   # ... and how far the next one is
    Payload* payloads[MAX_FIELDS]   # of every slot; NULL for arrays
    int* failed                     # number of the field, -1 if none failed
    int* fetched                    # status of its source


# One field of one sample, and where it goes.
cdef struct FieldTask:
    const FieldPath* path
    const ImageKey* image
    Target target           # of an array
    Payload* payload        # of others


# Makes a field of one sample after the other; serves one thread.
cdef class FieldWorker:
    cdef int render(self, const Encoded* record, const FieldTask* task,
                    Outcome* outcome) noexcept nogil


# Describes a field of every sample; read by all threads.
cdef class FieldPlan:
    cdef readonly str name
    cdef readonly object spec
    cdef readonly int view          # whose geometry it has
    cdef readonly Source source
    cdef readonly bint is_array     # with a slot of fixed size in every batch
    cdef readonly object dtype
    cdef readonly object layout
    cdef readonly int height        # of arrays, if a batch has no other size
    cdef readonly int width
    cdef readonly object padding    # content of slots without a sample

    # Find the first slot in the memory of an array, and how many bytes it is to the next one.
    cdef size_t set_target(self, Py_ssize_t slots, int height, int width, char* data,
                           Target* target) noexcept nogil


# Room for so many bytes; NULL without memory, which the outcome says.
cdef uint8_t* payload_room(Payload* payload, size_t size, Outcome* outcome) noexcept nogil
