"""C declarations of the record reader, for stages that read records without the GIL."""

from libc.stdint cimport int64_t

from recordio.frames.mapped cimport MappedRecords


cdef class RecordReader(MappedRecords):
    cdef object _offsets
    cdef object _keys
    cdef object _lookup

    # The records of a mirrored file, which are fetched before they are read; None for a local one.
    cdef readonly object remote
    cdef object _source
    cdef object _settings
    cdef bint selection

    # Fill `offset_table` and `count`, by one scan of the file if there is no index.
    cdef int need_offsets(self) except -1
    # Position of a key, or -1.
    cdef int64_t find_key(self, int64_t key) except -2
    cdef int _set_offsets(self, offsets) except -1
    cdef object _read(self, int64_t position)
