from cpython.ref cimport PyObject
from libc.stdint cimport int64_t

from iterators.images.plan cimport RenderPlan
from iterators.images.render_cache cimport CachedImages


# Neighbouring records of which the same becomes.
cdef class Section:
    cdef readonly RenderPlan plan
    cdef readonly CachedImages cached
    cdef readonly int64_t first


# All sections of a stage, to be asked without the GIL.
cdef class Sections:
    cdef readonly list all
    cdef PyObject** table
    cdef Py_ssize_t count

    # Place of the section that a record belongs to.
    cdef Py_ssize_t place_of(self, int64_t number) noexcept nogil
    # Whether the image of a record is cached.
    cdef bint holds(self, int64_t number) noexcept nogil


# The renderers of one thread, one for every section.
cdef class Crew:
    cdef readonly list renderers
    cdef PyObject** table
