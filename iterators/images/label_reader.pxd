from libc.stdint cimport uint8_t, uint32_t, uint64_t

from iterators.images.status cimport Outcome


# The labels of one sample, from its record or from a list by id.
cdef class LabelReader:
    cdef Py_ssize_t width           # values of a row
    cdef object arrays              # keep what the pointers point to
    cdef const uint64_t* ids        # of the list, ascending
    cdef Py_ssize_t num_listed      # -1 without a list
    cdef const float* values

    # Fill a row; `flag` labels follow the header of the record, which is as long as it says.
    cdef int read(self, const uint8_t* record, uint32_t flag, float* row,
                  Outcome* outcome) noexcept nogil
    # Place of the record's id in the list; -1 after a failure.
    cdef Py_ssize_t find_listed(self, Outcome* outcome) noexcept nogil
