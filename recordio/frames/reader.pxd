"""C declarations of the record reader, for stages that read records without the GIL."""

from libc.stdint cimport int64_t, uint8_t

from recordio.frames.checksums cimport Checksums
from recordio.frames.frame cimport Frame
from recordio.frames.mapping cimport map_guard


cdef class RecordReader:
    # The mapped file; all are cleared by close().  Whoever uses `base` without the GIL, or longer
    # than one call, first takes a reference to `view`: while it lives, the mapping lives.
    cdef const uint8_t* base
    cdef map_guard* guard
    cdef int64_t size
    cdef object view
    # Where the records begin, in the order of their positions; valid after need_offsets() and as
    # long as the reader.  `count` is -1 before.
    cdef const int64_t* offset_table
    cdef int64_t count
    cdef readonly str path
    cdef readonly object index_path
    cdef readonly bint closed
    cdef object _offsets
    cdef object _keys
    cdef object _lookup
    # What records are compared with when they are taken; None if they are not.
    cdef readonly Checksums checksums

    # The records of a mirrored file, which are fetched before they are read; None for a local one.
    cdef readonly object remote
    cdef object _source
    cdef object _settings

    # Fill `offset_table` and `count`, by one scan of the file if there is no index.
    cdef int need_offsets(self) except -1
    # Locate the record at a position in [0, count); the status is one of FrameStatus.
    cdef int locate(self, int64_t position, Frame* frame) noexcept nogil
    # Position of a key, or -1.
    cdef int64_t find_key(self, int64_t key) except -2
    # ValueError if the reader is closed.
    cdef int check_open(self) except -1
    cdef int _set_offsets(self, offsets) except -1
    # Raise if a located record of the file at `base` is not as its checksum says.
    cdef int check_record(self, const uint8_t* base, const Frame* frame, record) except -1
    cdef object _read(self, int64_t position)
    cdef object _take(self, int64_t position)
