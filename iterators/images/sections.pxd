from cpython.ref cimport PyObject
from libc.stdint cimport int64_t, uint32_t

from iterators.images.mosaic cimport Partners
from iterators.images.plan cimport RenderPlan
from iterators.images.render_cache cimport CachedImages


# Neighbouring records with one plan and one cache.
cdef class Section:
    cdef readonly RenderPlan plan
    cdef readonly CachedImages cached
    cdef readonly int64_t first


cdef class Crew


# All sections of a stage, to be asked without the GIL.
cdef class Sections:
    cdef readonly list all
    cdef readonly bint mosaics      # whether there may be some
    cdef PyObject** table
    cdef Py_ssize_t count

    # Number of the section that a record belongs to.
    cdef Py_ssize_t section_of(self, int64_t number) noexcept nogil
    # Whether the image of a record is cached.
    cdef bint holds(self, int64_t number) noexcept nogil
    # Whether a record is put together with others this time, and with which; any thread may ask.
    cdef bint find_partners(self, Crew crew, int64_t number, uint32_t epoch, int64_t draw,
                            Partners* partners) noexcept nogil


# The renderers of one thread, one for every section, and what makes mosaics; NULL for none.
cdef class Crew:
    cdef readonly list renderers
    cdef readonly list mosaics
    cdef object fields              # its `FieldCrew`; None without
    cdef Py_ssize_t number          # of the thread
    # Seconds of the thread at work, those of them on samples, on fields, and on a processor; others
    # read them.
    cdef double working
    cdef double rendering
    cdef double on_processor
    cdef double on_fields
    cdef PyObject** table
    cdef PyObject** mosaic_table


# A table of addresses, for as long as the list keeps them; NULL for None.
cdef PyObject** table_of(list objects) except NULL
