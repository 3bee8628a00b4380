"""The labels of a record become a row of a batch, without the GIL."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from iterators.images.status cimport (
    RENDER_LABEL_WIDTH, RENDER_NOT_LISTED, RENDER_OK, Outcome, outcome_fail,
)
from recordio.header cimport HEADER_LABEL, HEADER_SIZE


cdef class LabelReader:
    """Base class: knows where in a list an id is, but not what a label means."""

    def __cinit__(self, *args, **keywords):
        self.ids, self.values, self.num_listed = NULL, NULL, -1

    cdef int read(self, const uint8_t* record, uint32_t flag, float* row,
                  Outcome* outcome) noexcept nogil:
        return RENDER_OK

    cdef Py_ssize_t find_listed(self, Outcome* outcome) noexcept nogil:
        cdef Py_ssize_t low = 0, high = self.num_listed, middle
        while low < high:
            middle = (low + high) // 2
            if self.ids[middle] < outcome.record_id:
                low = middle + 1
            else:
                high = middle
        if low == self.num_listed or self.ids[low] != outcome.record_id:
            outcome_fail(outcome, RENDER_NOT_LISTED, b"")
            return -1
        return low


cdef class RowLabels(LabelReader):
    """As many labels as a row has.

    Parameters
    ----------
    labels : tuple of numpy.ndarray or None
        Ids, uint64, ascending, and their labels, float32 ``(n, width)``, which replace those in the
        records.
    width : int
    """

    def __init__(self, labels, Py_ssize_t width):
        cdef const uint64_t[::1] ids
        cdef const float[:, ::1] rows
        self.width = width
        if labels is None:
            return
        self.arrays = ids, rows = labels
        if not ids.shape[0] == rows.shape[0] or rows.shape[1] != width:
            raise ValueError("labels must be ids (n,) and rows (n, label_width)")
        self.num_listed = ids.shape[0]
        if self.num_listed:
            self.ids, self.values = &ids[0], &rows[0, 0]

    cdef int read(self, const uint8_t* record, uint32_t flag, float* row,
                  Outcome* outcome) noexcept nogil:
        cdef Py_ssize_t listed
        if self.num_listed >= 0:
            listed = self.find_listed(outcome)
            if listed >= 0:
                memcpy(row, self.values + listed * self.width, 4 * self.width)
            return outcome.status
        if self.width != (<Py_ssize_t>flag if flag else 1):
            return outcome_fail(outcome, RENDER_LABEL_WIDTH, b"")
        memcpy(row, record + (HEADER_SIZE if flag else HEADER_LABEL), 4 * self.width)
        return RENDER_OK
