from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from recordio.frames.checksums cimport Table
from recordio.bytes.mapping cimport map_guard


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


# A mapped file and the number of its first record.
cdef struct File:
    const uint8_t* base
    int64_t size
    int64_t start
    map_guard* guard
    bint verifies                   # records are compared with
    Table checksums


# Records that lie in mapped files.
cdef class MappedFiles(Source):
    cdef list paths
    cdef list views                 # keep the mappings while threads read them
    cdef object numberings          # of the records of each file, for errors
    cdef File* files
    cdef Py_ssize_t num_files
    cdef object offsets
    cdef const int64_t* offset_of
    cdef int64_t faults             # page faults when `expect` was last called
    cdef int64_t to_announce        # records that it will still announce

    cdef void read_sparsely(self, bint sparsely) noexcept nogil
    cdef void announce_one(self, int64_t number) noexcept nogil
    cdef const File* file_of(self, int64_t record) noexcept nogil
    cdef object number_in(self, const File* file, int64_t number)


cdef class RecordFiles(MappedFiles):
    cdef list checksums             # what records are compared with
    cdef object absences            # what makes errors for records that files do not have

    cdef int locate(self, int64_t number, bint verify, Scratch* scratch,
                    Encoded* image) noexcept nogil


cdef class ImageFiles(Source):
    cdef list paths
    cdef bytes names                # all paths, each ended by a zero
    cdef const char* first_name
    cdef object tables              # keep what the pointers below point to
    cdef const int64_t* starts      # where each path begins in them
    cdef const uint64_t* ids
    cdef const float* labels
    cdef Py_ssize_t label_width

    cdef void describe(self, int64_t number, Encoded* image) noexcept nogil
