from libc.stdint cimport uint32_t, uint64_t

from recordio.formats.status cimport Outcome


# The labels of one sample, from its record or from a list by id.
cdef class LabelReader:
    cdef Py_ssize_t width           # values of a row
    cdef object arrays              # keep what the pointers point to
    cdef const uint64_t* ids        # of the list, ascending
    cdef Py_ssize_t num_listed      # -1 without a list
    cdef const float* values
    # What becomes of a class label, by a `LabelChange`.
    cdef bint absent                # there are none: -1 for all
    cdef bint changes
    cdef object table               # keeps what the pointers point to
    cdef Py_ssize_t num_keys        # of a table; -1 without
    cdef const float* keys          # ascending
    cdef const float* becomes
    cdef float classes              # without a table: known labels are below
    cdef float shift

    # Fill a row from the `flag` labels of the record, of float32 at any address; 0: a single one.
    cdef int read(self, const void* labels, uint32_t flag, float* row,
                  Outcome* outcome) noexcept nogil
    # Change the class label at a pointer; what is wrong with an unknown one is in the outcome.
    cdef int change(self, float* label, Outcome* outcome) noexcept nogil
    # Position of the record's id in the list; -1 after a failure.
    cdef Py_ssize_t find_listed(self, Outcome* outcome) noexcept nogil
