from libc.stdint cimport int64_t

from iterators.images.augment.det_labels cimport Objects
from iterators.images.label_reader cimport LabelReader
from recordio.formats.status cimport Outcome

cdef enum:
    PREFIX = 4              # values before the label: channels, rows, columns, length


# Vectors of objects: their number may differ from record to record.
cdef class ObjectLabels(LabelReader):
    cdef Py_ssize_t raw_width
    cdef int channels
    cdef float pad_value
    cdef const int64_t* starts      # of the labels in the list
    cdef Objects objects            # of the image at work, in its row
    cdef Py_ssize_t header          # values before them
    cdef float* row                 # NULL without

    cdef int have_none(self, float* row) noexcept nogil
    cdef int refuse(self, const void* label, Py_ssize_t count, Outcome* outcome) noexcept nogil
    # Complete the row, for an image of that size.
    cdef void finish(self, int width, int height) noexcept nogil
