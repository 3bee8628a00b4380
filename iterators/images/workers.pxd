from cpython.ref cimport PyObject
from libc.stdint cimport int64_t, uint32_t

from iterators.images.det_render cimport Partners
from iterators.images.fields.field cimport FieldPath, FieldRows
from iterators.images.render cimport Renderer
from iterators.images.sources.source cimport Scratch
from recordio.formats.status cimport Outcome


cdef class StageWorkers


# All groups of a stage, to be asked without the GIL.
cdef class PlanGroups:
    cdef readonly list all
    cdef readonly bint mosaics      # whether there may be some
    cdef PyObject** table
    cdef Py_ssize_t count

    # Number of the group that a record belongs to.
    cdef Py_ssize_t group_of(self, int64_t number) noexcept nogil
    # Whether the image of a record is cached.
    cdef bint holds(self, int64_t number) noexcept nogil
    # Whether a record is put together with others this time, and with which; any thread may ask.
    cdef bint find_partners(self, StageWorkers workers, int64_t number, uint32_t epoch,
                            int64_t draw, Partners* partners) noexcept nogil


# The renderers of one thread, one for every group, and what makes mosaics; NULL for none.
cdef class StageWorkers:
    cdef readonly list renderers
    cdef readonly list mosaics
    cdef object fields              # its `FieldWorkers`; None without
    cdef Py_ssize_t number          # of the thread
    # Seconds of the thread at work, those of them on samples, on fields, and on a processor; others
    # read them.
    cdef double working
    cdef double rendering
    cdef double on_processor
    cdef double on_fields
    cdef PyObject** table
    cdef PyObject** mosaic_table


# All fields of the samples of a stage, and the memory of those of its batches.
cdef class FieldSet:
    cdef readonly tuple plans
    cdef PyObject** plan_table
    cdef int count
    cdef Py_ssize_t batch_size
    cdef Py_ssize_t depth
    cdef FieldRows* ring            # of every batch under way, and of one slot to be made again
    cdef list pools
    cdef list arrays
    cdef list slots                 # of every batch under way

    cdef int set_target(self, FieldRows* rows, Py_ssize_t number, array, Py_ssize_t slot) except -1

    cdef FieldRows* rows_of(self, Py_ssize_t at) noexcept nogil
    # These records will be needed soon.
    cdef void expect(self, const int64_t* numbers, Py_ssize_t count) noexcept nogil
    # The exception for a field that failed.
    cdef object failure(self, const FieldRows* rows, Py_ssize_t slot, int64_t record,
                        Outcome* outcome)


# The workers of one thread.
cdef class FieldWorkers:
    cdef FieldSet fields
    cdef list workers               # of every group, those of every field
    cdef PyObject** table
    cdef FieldPath* paths           # of every view
    cdef Scratch scratch

    cdef int find_paths(self, Renderer renderer, Outcome* outcome) noexcept nogil
    # Make the fields of a sample whose image a renderer has made.
    cdef int render(self, Py_ssize_t group, Renderer renderer, int64_t number, uint32_t epoch,
                    int64_t draw, FieldRows* rows, Py_ssize_t slot, Outcome* outcome) noexcept nogil
