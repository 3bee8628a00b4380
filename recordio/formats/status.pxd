"""The outcome of one sample: a status, and the details that an error message needs."""

from libc.stdint cimport int64_t, uint64_t


cdef enum RenderStatus:
    RENDER_OK = 0
    RENDER_SHORT_HEADER     # fewer bytes than an image header
    RENDER_SHORT_LABELS     # the header announces more labels than there are bytes
    RENDER_LABEL_WIDTH      # another number of labels than label_width
    RENDER_NOT_LISTED       # the id is not in the list of labels
    RENDER_LABEL            # the labels cannot be used; the message says why
    RENDER_IMAGE            # the image cannot be decoded; the message says why
    RENDER_GEOMETRY         # the crop does not fit; the message says why
    RENDER_MEMORY


cdef enum:
    MESSAGE_SIZE = 320


cdef struct Outcome:
    int status
    int64_t num_labels      # number of labels of the record
    uint64_t record_id
    char message[MESSAGE_SIZE]


# Notes a failure and returns its status.
cdef int outcome_fail(Outcome* outcome, int status, const char* message) noexcept nogil
# The exception for an outcome that is not RENDER_OK; `location` holds keywords of RecordIOError.
cdef object outcome_error(Outcome* outcome, Py_ssize_t label_width, dict location)
