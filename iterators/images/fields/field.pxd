from libc.stdint cimport int64_t, uint8_t, uint32_t

from iterators.images.augment.draw cimport ImageKey
from iterators.images.augment.geometry cimport Target
from iterators.images.fields.path cimport FieldPath
from iterators.images.sources.source cimport Encoded, Source
from recordio.formats.status cimport Outcome

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
    cdef int render(self, const Encoded* found, const FieldTask* task,
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
    cdef size_t aim(self, Py_ssize_t slots, int height, int width, char* data,
                    Target* target) noexcept nogil


# Room for so many bytes; NULL without memory, which the outcome says.
cdef uint8_t* payload_room(Payload* payload, size_t size, Outcome* outcome) noexcept nogil
