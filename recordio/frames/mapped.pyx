"""One pass over the records of a mapped file, in order."""

cimport cython
from libc.stdint cimport int64_t, uint8_t

from recordio.frames.frame cimport FRAME_END, FRAME_OK, Frame
from recordio.frames.frame cimport frame_confirm, frame_error, frame_scan
from recordio.frames.locate cimport locate_one
from recordio.frames.mapping cimport map_guard
from recordio.frames.reader cimport RecordReader
from recordio.frames.views cimport payload_view

__all__ = ["RecordIterator"]

cdef enum:
    AHEAD = 64          # records located at a time


@cython.final
cdef class RecordIterator:
    """One pass over a reader, a few records located ahead of the one handed out.

    Parameters
    ----------
    reader : RecordReader
        An open one, of a local file.
    """

    cdef RecordReader reader
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

    def __cinit__(self, RecordReader reader not None):
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
