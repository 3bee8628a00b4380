"""Sources of images that lie in containers: spans of files, and contents that a library reads."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from recordio.bytes.mapping cimport map_lost
from recordio.frames.frame cimport MAX_RECORD

import numpy as np

from recordio.bytes.mapping import LOST
from recordio.errors import RecordIOError, TruncatedRecordError
from recordio.header import IRHeader

from .source cimport FETCH_OK, Encoded, File, MappedFiles, Scratch, Source

cdef extern from "iterators/images/sources/image_file.h" nogil:
    int image_file_reserve(uint8_t** memory, size_t* capacity, size_t size)

cdef enum:
    NO_MEMORY = -1          # as in `source`
    LOST_BYTES = 1
    NO_CONTENT = 2          # the sample has none that could be used
    CUT = 3                 # the file ends within it
    FAILED = 4              # the library said why


cdef class LabelTable:
    """Ids and labels: those of image i are ``labels[starts[i] : starts[i + 1]]``."""

    def __cinit__(self, ids, starts, labels):
        cdef const uint64_t[::1] id_table = ids
        cdef const int64_t[::1] start_table = starts
        cdef const float[::1] label_table = labels
        wrong = len(starts) != len(ids) + 1 or starts[len(ids)] != len(labels)
        if wrong or (np.diff(starts) < 1).any():
            raise ValueError("there must be an id, and at least one label, for every image")
        self.tables = ids, starts, labels
        self.count = id_table.shape[0]
        self.starts = &start_table[0]
        if self.count:
            self.ids, self.labels = &id_table[0], &label_table[0]

    cdef void describe(self, int64_t number, Encoded* image) noexcept nogil:
        """Fill in all but the bytes."""
        cdef int64_t first = self.starts[number], count = self.starts[number + 1] - first
        image.has_header, image.id = False, self.ids[number]
        image.flag = 0 if count == 1 else <uint32_t>count
        image.labels = self.labels + first

    def header(self, number):
        """The header that the image would have in a record file."""
        ids, starts, labels = self.tables
        row = labels[starts[number]:starts[number + 1]]
        if len(row) == 1:
            return IRHeader(0, float(row[0]), int(ids[number]), 0)
        row = row.view()
        row.flags.writeable = False
        return IRHeader(len(row), row, int(ids[number]), 0)


cdef class SpanFiles(MappedFiles):
    """Images that are spans of mapped files; see `MappedFiles`.

    A size of -1 is that of a sample without usable content: ``fault(number)`` says why, or is the
    error itself.
    """

    def __init__(self, paths, views, offsets, starts, sizes, labels, numberings=None,
                 faults=lambda number: "it has no content"):
        cdef const int64_t[::1] table = sizes
        super().__init__(paths, views, offsets, starts, numberings)
        if len(sizes) != len(offsets) or (<LabelTable?>labels).count != len(offsets):
            raise ValueError("there must be a size and labels for every offset")
        self.sizes, self.table, self.faults = sizes, labels, faults
        self.size_of = &table[0] if self.count else NULL

    cdef int fetch(self, int64_t number, Scratch* scratch, Encoded* image) noexcept nogil:
        cdef const File* file = self.file_of(number)
        cdef int64_t begin = self.offset_of[number], size = self.size_of[number]
        if size < 0 or size > MAX_RECORD:
            return NO_CONTENT
        if not 0 <= begin <= file.size - size:
            return CUT
        self.table.describe(number, image)
        image.data, image.size = file.base + begin, <size_t>size
        return LOST_BYTES if map_lost(file.guard, begin, begin + size) else FETCH_OK

    cdef int fetch_head(self, int64_t number, Scratch* scratch, Encoded* image) noexcept nogil:
        self.table.describe(number, image)
        image.data, image.size = NULL, 0
        return FETCH_OK

    cdef object failure(self, int64_t number, int status):
        location = self.location(number)
        if status == CUT:
            return TruncatedRecordError(
                f"the file ends within its {self.size_of[number]} bytes", **location)
        if status == NO_CONTENT and self.size_of[number] > MAX_RECORD:
            return RecordIOError(f"it has {self.size_of[number]} bytes: at most {MAX_RECORD} are "
                                 "possible", **location)
        if status == NO_CONTENT:
            fault = self.faults(number)
            return fault if isinstance(fault, Exception) else RecordIOError(fault, **location)
        if status == NO_MEMORY:
            return Source.failure(self, number, status)
        return TruncatedRecordError(LOST, **location)

    def image(self, number):
        """The header and the content of one image; see `Source.image`."""
        return self.table.header(number), self.read(number)


cdef class LibraryRows(Source):
    """Images that Python reads, one by one, under the GIL.

    ``reading(number)`` gives the bytes and may be called by any thread; ``placing(number)`` gives
    the location, for errors.
    """

    def __init__(self, reading, placing, labels):
        self.reading, self.placing, self.table = reading, placing, labels
        self.count = self.table.count
        self.errors = {}

    cdef int fetch(self, int64_t number, Scratch* scratch, Encoded* image) noexcept nogil:
        cdef int status
        with gil:
            status = self.read_one(number, scratch, image)
        if status == FETCH_OK:
            self.table.describe(number, image)
        return status

    cdef int fetch_head(self, int64_t number, Scratch* scratch, Encoded* image) noexcept nogil:
        self.table.describe(number, image)
        image.data, image.size = NULL, 0
        return FETCH_OK

    cdef int read_one(self, int64_t number, Scratch* scratch, Encoded* image) noexcept:
        cdef const uint8_t[::1] content
        try:
            found = self.reading(number)
            image.size = len(found)
            if image.size > MAX_RECORD:
                raise RecordIOError(
                    f"it has {image.size} bytes: at most {MAX_RECORD} are possible")
            if not image_file_reserve(&scratch.bytes, &scratch.capacity, max(image.size, 1)):
                return NO_MEMORY
            if image.size:
                content = found
                memcpy(scratch.bytes, &content[0], image.size)
            image.data = scratch.bytes
            return FETCH_OK
        except BaseException as error:
            self.errors[number] = error
            return FAILED

    cdef object failure(self, int64_t number, int status):
        if status == NO_MEMORY:
            return Source.failure(self, number, status)
        error = self.errors.pop(number, None)
        if error is None:       # another reader of the same image has taken it
            return RecordIOError("it could not be read", **self.location(number))
        return error.at(**self.location(number)) if isinstance(error, RecordIOError) else error

    cdef dict location(self, int64_t number):
        return self.placing(number)

    def image(self, number):
        """The header and the content of one image; see `Source.image`."""
        return self.table.header(number), self.read(number)


cdef class SpansAndRows(Source):
    """The same images from two sources, `packed` ones from the second."""

    def __cinit__(self, Source spans, Source rows, packed):
        cdef const uint8_t[::1] table = np.ascontiguousarray(packed).view(np.uint8)
        if not spans.count == rows.count == table.shape[0]:
            raise ValueError("both sources must have all images")
        self.spans, self.rows, self.packed = spans, rows, table
        self.count = spans.count
        self.in_rows = &table[0] if self.count else NULL

    cdef int fetch(self, int64_t number, Scratch* scratch, Encoded* image) noexcept nogil:
        if self.in_rows[number]:
            return self.rows.fetch(number, scratch, image)
        return self.spans.fetch(number, scratch, image)

    cdef int fetch_head(self, int64_t number, Scratch* scratch, Encoded* image) noexcept nogil:
        return self.spans.fetch_head(number, scratch, image)

    cdef int confirm(self, int64_t number, const uint8_t* data, size_t size) noexcept nogil:
        return FETCH_OK if self.in_rows[number] else self.spans.confirm(number, data, size)

    cdef Py_ssize_t expect(self, const int64_t* numbers, Py_ssize_t count) noexcept nogil:
        return self.spans.expect(numbers, count)

    cdef object failure(self, int64_t number, int status):
        if self.in_rows[number]:
            return self.rows.failure(number, status)
        return self.spans.failure(number, status)

    cdef dict location(self, int64_t number):
        return self.spans.location(number)

    def image(self, number):
        """The header and the content of one image; see `Source.image`."""
        return (self.rows if self.in_rows[number] else self.spans).image(number)

    def read(self, number):
        """The bytes of one image; see `Source.read`."""
        return (self.rows if self.in_rows[number] else self.spans).read(number)


cdef class JoinedSources(Source):
    """The images of one source, and behind them those of another."""

    def __cinit__(self, Source first, Source second):
        self.first, self.second = first, second
        self.border, self.count = first.count, first.count + second.count

    cdef int fetch(self, int64_t number, Scratch* scratch, Encoded* image) noexcept nogil:
        if number < self.border:
            return self.first.fetch(number, scratch, image)
        return self.second.fetch(number - self.border, scratch, image)

    cdef int fetch_head(self, int64_t number, Scratch* scratch, Encoded* image) noexcept nogil:
        if number < self.border:
            return self.first.fetch_head(number, scratch, image)
        return self.second.fetch_head(number - self.border, scratch, image)

    cdef int confirm(self, int64_t number, const uint8_t* data, size_t size) noexcept nogil:
        if number < self.border:
            return self.first.confirm(number, data, size)
        return self.second.confirm(number - self.border, data, size)

    cdef Py_ssize_t expect(self, const int64_t* numbers, Py_ssize_t count) noexcept nogil:
        cdef Py_ssize_t i, told = 0
        cdef int64_t number
        for i in range(count):
            number = numbers[i]
            if number < self.border:
                told += self.first.expect(&number, 1)
            else:
                number -= self.border
                told += self.second.expect(&number, 1)
        return told

    cdef object failure(self, int64_t number, int status):
        if number < self.border:
            return self.first.failure(number, status)
        return self.second.failure(number - self.border, status)

    cdef dict location(self, int64_t number):
        if number < self.border:
            return self.first.location(number)
        return self.second.location(number - self.border)

    def image(self, number):
        """The header and the content of one image; see `Source.image`."""
        if number < self.border:
            return self.first.image(number)
        return self.second.image(number - self.border)

    def read(self, number):
        """The bytes of one image; see `Source.read`."""
        if number < self.border:
            return self.first.read(number)
        return self.second.read(number - self.border)
