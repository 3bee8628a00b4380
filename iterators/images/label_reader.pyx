"""Copy the labels of a record into a row of a batch, without the GIL."""

from libc.math cimport floor
from libc.stdint cimport uint32_t, uint64_t
from libc.stdio cimport snprintf
from libc.string cimport memcpy

from recordio.formats.status cimport (
    MESSAGE_SIZE, RENDER_LABEL, RENDER_LABEL_WIDTH, RENDER_NOT_LISTED, RENDER_OK, Outcome,
    outcome_fail,
)


cdef class LabelReader:
    """Base class: finds an id in a list, and changes the class of a label."""

    def __cinit__(self, *args, **keywords):
        self.ids, self.values, self.num_listed = NULL, NULL, -1
        self.num_keys = -1

    def __init__(self, change=None):
        cdef const float[::1] keys, becomes
        if change is None or change.keeps:
            return
        self.absent, self.changes = change.absent, True
        if change.table is not None:
            self.table = keys, becomes = change.table
            self.num_keys, self.keys, self.becomes = keys.shape[0], &keys[0], &becomes[0]
        elif change.classes is not None:
            self.classes, self.shift = change.classes, change.shift

    cdef int read(self, const void* labels, uint32_t flag, float* row,
                  Outcome* outcome) noexcept nogil:
        return RENDER_OK

    cdef int change(self, float* label, Outcome* outcome) noexcept nogil:
        cdef Py_ssize_t low = 0, high = self.num_keys, middle
        if not self.changes:
            return RENDER_OK
        if self.num_keys < 0:
            if 0 <= label[0] < self.classes and label[0] == floor(label[0]):
                label[0] += self.shift
                return RENDER_OK
            snprintf(outcome.message, MESSAGE_SIZE,
                     "the label %g numbers none of the %.0f classes of the pack",
                     <double>label[0], <double>self.classes)
        else:
            while low < high:
                middle = (low + high) // 2
                if self.keys[middle] < label[0]:
                    low = middle + 1
                else:
                    high = middle
            if low < self.num_keys and self.keys[low] == label[0]:
                label[0] = self.becomes[low]
                return RENDER_OK
            snprintf(outcome.message, MESSAGE_SIZE,
                     "the label %g is not among those that `labels` of the pack names",
                     <double>label[0])
        outcome.status = RENDER_LABEL
        return RENDER_LABEL

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
    """Reads as many labels as a row has, from the record or from a list of ids and rows."""

    def __init__(self, labels, Py_ssize_t width, change=None):
        LabelReader.__init__(self, change)
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

    cdef int read(self, const void* labels, uint32_t flag, float* row,
                  Outcome* outcome) noexcept nogil:
        cdef Py_ssize_t listed, i
        if self.absent:
            for i in range(self.width):
                row[i] = -1
            return RENDER_OK
        if self.num_listed >= 0:
            listed = self.find_listed(outcome)
            if listed < 0:
                return outcome.status
            memcpy(row, self.values + listed * self.width, 4 * self.width)
            return self.change(row, outcome)
        if self.width != (<Py_ssize_t>flag if flag else 1):
            return outcome_fail(outcome, RENDER_LABEL_WIDTH, b"")
        memcpy(row, labels, 4 * self.width)
        return self.change(row, outcome)


cdef class SeveralLabels(LabelReader):
    """Reads any number of classes: padded with -1, or as a row with 1 at each of them."""

    cdef bint multi_hot

    def __init__(self, bint multi_hot, Py_ssize_t width, change=None):
        LabelReader.__init__(self, change)
        self.multi_hot, self.width = multi_hot, width

    cdef int read(self, const void* labels, uint32_t flag, float* row,
                  Outcome* outcome) noexcept nogil:
        cdef Py_ssize_t i, count = <Py_ssize_t>flag if flag else 1
        cdef float label
        for i in range(self.width):
            row[i] = 0 if self.multi_hot and not self.absent else -1
        if self.absent:
            return RENDER_OK
        if not self.multi_hot and count > self.width:
            return outcome_fail(outcome, RENDER_LABEL_WIDTH, b"")
        for i in range(count):
            memcpy(&label, <const char*>labels + 4 * i, 4)
            if self.change(&label, outcome) != RENDER_OK:
                return outcome.status
            if not self.multi_hot:
                row[i] = label
                continue
            if not (0 <= label < self.width and label == floor(label)):
                snprintf(outcome.message, MESSAGE_SIZE,
                         "the label %g numbers none of the %lld classes of multi_hot",
                         <double>label, <long long>self.width)
                outcome.status = RENDER_LABEL
                return RENDER_LABEL
            row[<Py_ssize_t>label] = 1
        return RENDER_OK
