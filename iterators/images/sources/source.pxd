from libc.stdint cimport int64_t, uint32_t, uint64_t, uint8_t


# Memory of one worker for records that are not in one piece; kept from record to record.
cdef struct Scratch:
    uint8_t* bytes
    size_t capacity


cdef enum FetchStatus:
    FETCH_OK = 0            # every other value is the source's own


# An encoded image with its labels and its id.
cdef struct Encoded:
    const uint8_t* data
    size_t size
    bint has_header         # the data begin with one, which says what is not known yet:
    uint64_t id
    uint32_t flag           # as in a header: the number of labels, 0 for a single one
    const void* labels      # float32, at any address


# Where encoded images come from.
cdef class Source:
    cdef readonly int64_t count
    # The image of a number in [0, count); valid until the next call with the same scratch.
    cdef int fetch(self, int64_t number, Scratch* scratch, Encoded* image) noexcept nogil
    # The same for somebody who needs id and labels only; the rest may be missing.
    cdef int fetch_head(self, int64_t number, Scratch* scratch, Encoded* image) noexcept nogil
    # FETCH_OK, or why not to believe what was read of these bytes, which `fetch` gave: to be asked
    # after reading.
    cdef int confirm(self, int64_t number, const uint8_t* data, size_t size) noexcept nogil
    # These records will be fetched soon; how many of them the system was told of.
    cdef Py_ssize_t expect(self, const int64_t* numbers, Py_ssize_t count) noexcept nogil
    # The exception for a status of `fetch` or `confirm` that is not FETCH_OK.
    cdef object failure(self, int64_t number, int status)
    # Where a record lies, as keywords of RecordIOError.
    cdef dict location(self, int64_t number)
