"""What a field is to the image stage: a plan for all threads, and a worker for each.

The stage calls the workers behind the renderer of the image, whose geometry they follow.
"""

from libc.stdint cimport uint8_t
from libc.stdlib cimport realloc

from iterators.images.augment.geometry cimport Target
from iterators.images.sources.source cimport Encoded, Source
from recordio.formats.status cimport RENDER_MEMORY, RENDER_OK, Outcome, outcome_fail


cdef class FieldWorker:
    """Base class: makes nothing."""

    cdef int render(self, const Encoded* found, const FieldTask* task,
                    Outcome* outcome) noexcept nogil:
        return RENDER_OK


cdef class FieldPlan:
    """Base class of the plans of fields.

    `spec` is what was asked for, `source` gives its records, and `view` is the view of the image
    whose geometry it has.
    """

    def __init__(self, name, spec, Source source, int view=0):
        self.name, self.spec, self.source, self.view = name, spec, source, view

    def worker(self, renderer):
        """Make a worker beside a renderer of images."""
        raise NotImplementedError

    def shape(self, slots, size=None):
        """Return the shape of the array of a batch, with images of that height and width."""
        raise NotImplementedError

    cdef size_t aim(self, Py_ssize_t slots, int height, int width, char* data,
                    Target* target) noexcept nogil:
        return 0

    def value(self, content):
        """Return what a sample has, of the bytes of its payload."""
        return content


cdef uint8_t* payload_room(Payload* payload, size_t size, Outcome* outcome) noexcept nogil:
    cdef void* memory
    if size > payload.capacity:
        memory = realloc(payload.bytes, size)
        if memory == NULL:
            outcome_fail(outcome, RENDER_MEMORY, b"")
            return NULL
        payload.bytes, payload.capacity = <uint8_t*>memory, size
    payload.size = size
    return payload.bytes
