"""Records in the bytes of a mapped file: taken by position or by offset, or one after another.

Nothing here opens a file, or knows keys: a `recordio.frames.reader.RecordReader` does.
"""

cimport cython
from libc.stdint cimport int64_t, uint8_t

from recordio.frames.checksums cimport CHECKSUM_OK, Checksums, checksum_check, checksum_error
from recordio.frames.frame cimport FRAME_END, FRAME_OK, Frame
from recordio.frames.frame cimport frame_confirm, frame_error, frame_scan
from recordio.frames.locate cimport confirm_many, locate_many, locate_one
from recordio.bytes.mapping cimport map_guard
from recordio.frames.views cimport (
    confirmed_view,
    pause_collector,
    payload_bytes,
    payload_view,
    resume_collector,
)

__all__ = ["MappedRecords", "RecordIterator"]

cdef enum:
    RUN = 256           # records located at a time by _take_many
    AHEAD = 64          # records located ahead by an iterator


cdef class MappedRecords:
    """The records of one mapped file, each located and checked when it is taken.

    Attributes
    ----------
    path, index_path : str
        Named by errors; `index_path` is None without an index.
    checksums : Checksums or None
        What records are compared with.
    closed : bool
    """

    def __cinit__(self):
        self.base = NULL
        self.guard = NULL
        self.size = 0
        self.offset_table = NULL
        self.count = -1
        self.closed = True

    cdef int check_open(self) except -1:
        if self.closed:
            raise ValueError(f"the reader of {self.path} is closed")
        return 0

    cdef int check_record(self, const uint8_t* base, const Frame* frame, record) except -1:
        cdef Checksums checksums = self.checksums
        cdef int status
        with nogil:
            status = checksum_check(&checksums.table, base, frame)
        if status != CHECKSUM_OK:
            raise checksum_error(status, self.path, frame.offset, record)
        return 0

    cdef int locate(self, int64_t position, Frame* frame) noexcept nogil:
        return locate_one(self.base, self.size, self.offset_table[position], frame)

    cdef object _take(self, int64_t position):
        cdef Frame frame
        cdef int status
        self.check_open()           # no other thread runs between this and the next line
        view = self.view
        cdef const uint8_t* base = self.base
        cdef map_guard* guard = self.guard
        cdef int64_t size = self.size
        with nogil:
            status = locate_one(base, size, self.offset_table[position], &frame)
        record = confirmed_view(view, base, guard, &frame, &status)
        if status != FRAME_OK:
            raise frame_error(status, self.path, frame.end, position)
        if self.checksums is not None:
            self.check_record(base, &frame, position)
        return record

    cdef object _no_position(self, position):
        return f"position {position} in {self.path}, which has {self.count} records"

    def _take_many(self, const int64_t[::1] positions, bint copy):
        cdef Frame[RUN] frames
        cdef int64_t first, count, i, position
        cdef int status, collecting
        self.check_open()
        view = self.view
        cdef const uint8_t* base = self.base
        cdef map_guard* guard = self.guard
        cdef int64_t size = self.size
        records = []
        for first in range(0, positions.shape[0], RUN):
            count = min(<int64_t>RUN, positions.shape[0] - first)
            with nogil:
                status = locate_many(
                    base, size, self.offset_table, self.count, &positions[first], &count, frames
                )
            if status == FRAME_END:
                raise IndexError(self._no_position(positions[first + count]))
            if status == FRAME_OK:
                collecting = pause_collector()
                try:
                    for i in range(count):
                        if copy:
                            records.append(payload_bytes(base, &frames[i]))
                        else:
                            records.append(payload_view(view, base, &frames[i]))
                finally:
                    resume_collector(collecting)
                status = confirm_many(guard, frames, &count)
            else:
                status = frame_confirm(guard, status, &frames[count])
            if status != FRAME_OK:
                i = positions[first + count]
                i += self.count if i < 0 else 0
                raise frame_error(status, self.path, frames[count].end, i)
            if self.checksums is not None:
                for i in range(count):
                    position = positions[first + i]
                    self.check_record(
                        base, &frames[i], position + (self.count if position < 0 else 0))
        return records

    def _take_at(self, int64_t offset, record, bint copy):
        cdef Frame frame
        cdef int status
        self.check_open()
        view = self.view
        cdef const uint8_t* base = self.base
        cdef map_guard* guard = self.guard
        cdef int64_t size = self.size
        with nogil:
            status = frame_scan(base, size, offset, &frame)
        if status == FRAME_END:
            return None, offset
        if copy and status == FRAME_OK:
            payload = payload_bytes(base, &frame)
            status = frame_confirm(guard, status, &frame)
        else:
            payload = confirmed_view(view, base, guard, &frame, &status)
        if status != FRAME_OK:
            raise frame_error(status, self.path, frame.end, record)
        if self.checksums is not None:
            self.check_record(base, &frame, record)
        return payload, frame.end


@cython.final
cdef class RecordIterator:
    """One pass over an open local reader, a few records located ahead of the one handed out."""

    cdef MappedRecords reader
    cdef object view
    cdef const uint8_t* base
    cdef map_guard* guard
    cdef const int64_t* table
    cdef int64_t size
    cdef int64_t offset         # where to go on, without an index
    cdef int64_t delivered      # records handed out
    cdef int ready              # records in `frames`
    cdef int cursor             # next of them to be handed out
    cdef int status             # what ended the last look ahead
    cdef bint looking           # ahead, while other threads run
    cdef Frame[AHEAD] frames
    cdef Frame damage

    def __cinit__(self, MappedRecords reader not None):
        self.reader = reader
        self.view = reader.view
        self.base = reader.base
        self.guard = reader.guard
        self.table = NULL
        self.size = reader.size
        self.offset = 0
        self.delivered = 0
        self.ready = 0
        self.cursor = 0
        self.status = FRAME_OK
        if reader.index_path is not None or reader.checksums is not None:
            self.table = reader.offset_table
            if reader.count == 0:
                self.status = FRAME_END

    def __iter__(self):
        return self

    @cython.critical_section
    def __next__(self):
        cdef Frame frame
        cdef int status
        if self.looking:
            raise ValueError("the iterator is in use by another thread: give each its own")
        self.reader.check_open()
        if self.cursor == self.ready:
            if self.status == FRAME_OK:
                self.looking = True
                with nogil:
                    self.look_ahead()
                self.looking = False
            if self.cursor == self.ready:
                if self.status == FRAME_END:
                    raise StopIteration
                raise frame_error(
                    self.status, self.reader.path, self.damage.end, self.delivered
                )
        frame = self.frames[self.cursor]
        record = payload_view(self.view, self.base, &frame)
        status = frame_confirm(self.guard, FRAME_OK, &frame)
        if status != FRAME_OK:
            raise frame_error(status, self.reader.path, frame.end, self.delivered)
        if self.reader.checksums is not None:
            self.reader.check_record(self.base, &frame, self.delivered)
        self.cursor += 1
        self.delivered += 1
        return record

    cdef void look_ahead(self) noexcept nogil:
        cdef Frame* frame
        self.cursor = 0
        self.ready = 0
        while self.ready < AHEAD:
            frame = &self.frames[self.ready]
            if self.table == NULL:
                self.status = frame_scan(self.base, self.size, self.offset, frame)
            elif self.delivered + self.ready == self.reader.count:
                self.status = FRAME_END
            else:
                self.status = locate_one(
                    self.base, self.size, self.table[self.delivered + self.ready], frame
                )
            if self.status != FRAME_OK:
                self.status = frame_confirm(self.guard, self.status, frame)
                self.damage = frame[0]
                return
            self.offset = frame.end
            self.ready += 1
