# build: small
"""The outcome of one sample, noted without the GIL and turned into an exception with it."""

from libc.string cimport strncpy

from recordio.header cimport HEADER_SIZE

from recordio.errors import ImageDecodeError, LabelError, RecordHeaderError


cdef int outcome_fail(Outcome* outcome, int status, const char* message) noexcept nogil:
    outcome.status = status
    strncpy(outcome.message, message, MESSAGE_SIZE - 1)
    outcome.message[MESSAGE_SIZE - 1] = 0
    return status


cdef object outcome_error(Outcome* outcome, Py_ssize_t label_width, dict location):
    """The exception for a sample that could not be rendered."""
    location = dict(location)
    cdef int status = outcome.status
    if status == RENDER_MEMORY:
        return MemoryError("no memory to decode and resample an image")
    if status == RENDER_SHORT_HEADER:
        return RecordHeaderError(
            f"the record is shorter than the {HEADER_SIZE} bytes of an image header", **location)
    location["record_id"] = outcome.record_id
    if status == RENDER_SHORT_LABELS:
        return RecordHeaderError(
            f"the header announces {outcome.num_labels} labels, which the record is too short for",
            **location)
    if status == RENDER_LABEL_WIDTH:
        return LabelError(
            f"the record has {outcome.num_labels} labels, label_width is {label_width}", **location)
    if status == RENDER_NOT_LISTED:
        return LabelError("the list of labels has no line for this id", **location)
    if status == RENDER_LABEL:
        return LabelError(outcome.message.decode("utf-8", "replace"), **location)
    return ImageDecodeError(outcome.message.decode("utf-8", "replace"), **location)
