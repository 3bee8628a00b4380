"""C declarations of the records of a mapped file, for whoever reads them without the GIL."""

from libc.stdint cimport int64_t, uint8_t

from recordio.frames.checksums cimport Checksums
from recordio.frames.frame cimport Frame
from recordio.bytes.mapping cimport map_guard


cdef class MappedRecords:
    # The mapped file; all are cleared by close().  Whoever uses `base` without the GIL, or longer
    # than one call, first takes a reference to `view`: while it lives, the mapping lives.
    cdef const uint8_t* base
    cdef map_guard* guard
    cdef int64_t size
    cdef object view
    # Where the records begin, in the order of their positions; as long as the object lives.
    # `count` is -1 as long as that is not known.
    cdef const int64_t* offset_table
    cdef int64_t count
    cdef readonly str path
    cdef readonly object index_path
    cdef readonly bint closed
    # What records are compared with when they are taken; None if they are not.
    cdef readonly Checksums checksums

    # ValueError if the file is closed.
    cdef int check_open(self) except -1
    # Locate the record at a position in [0, count); the status is one of FrameStatus.
    cdef int locate(self, int64_t position, Frame* frame) noexcept nogil
    # Raise if a located record of the file at `base` is not as its checksum says.
    cdef int check_record(self, const uint8_t* base, const Frame* frame, record) except -1
    cdef object _take(self, int64_t position)
    cdef object _no_position(self, position)
