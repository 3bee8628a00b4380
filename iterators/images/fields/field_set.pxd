from cpython.ref cimport PyObject
from libc.stdint cimport int64_t, uint32_t

from iterators.images.fields.field cimport FieldPlan, FieldRows
from iterators.images.fields.path cimport FieldPath
from iterators.images.render cimport Renderer
from iterators.images.sources.source cimport Scratch
from recordio.formats.status cimport Outcome


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

    cdef int aim(self, FieldRows* rows, Py_ssize_t number, array, Py_ssize_t slot) except -1

    cdef FieldRows* rows_of(self, Py_ssize_t at) noexcept nogil
    # These records will be needed soon.
    cdef void expect(self, const int64_t* numbers, Py_ssize_t count) noexcept nogil
    # The exception for a field that failed.
    cdef object failure(self, const FieldRows* rows, Py_ssize_t slot, int64_t record,
                        Outcome* outcome)


# The workers of one thread.
cdef class FieldCrew:
    cdef FieldSet fields
    cdef list workers               # of every section, those of every field
    cdef PyObject** table
    cdef FieldPath* paths           # of every view
    cdef Scratch scratch

    cdef int find_paths(self, Renderer renderer, Outcome* outcome) noexcept nogil
    # Make the fields of a sample whose image a renderer has made.
    cdef int render(self, Py_ssize_t section, Renderer renderer, int64_t number, uint32_t epoch,
                    int64_t draw, FieldRows* rows, Py_ssize_t slot, Outcome* outcome) noexcept nogil
