from libc.stdint cimport int64_t, uint8_t, uint64_t

from iterators.images.sources.source cimport Encoded, MappedFiles, Scratch, Source


# Ids and labels of images, beside what gives their bytes.
cdef class LabelTable:
    cdef object tables              # keep what the pointers below point to
    cdef Py_ssize_t count
    cdef const uint64_t* ids
    cdef const int64_t* starts
    cdef const float* labels

    cdef void describe(self, int64_t number, Encoded* image) noexcept nogil


cdef class SpanFiles(MappedFiles):
    cdef LabelTable table
    cdef object sizes
    cdef const int64_t* size_of
    cdef object faults


cdef class LibraryRows(Source):
    cdef LabelTable table
    cdef object reading
    cdef object placing
    cdef dict errors

    cdef int read_one(self, int64_t number, Scratch* scratch, Encoded* image) noexcept


cdef class SpansAndRows(Source):
    cdef Source spans
    cdef Source rows
    cdef object packed              # keeps what the pointer below points to
    cdef const uint8_t* in_rows


cdef class JoinedSources(Source):
    cdef Source first
    cdef Source second
    cdef int64_t border             # number of the first image of the second
