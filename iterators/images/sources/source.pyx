# build: small
"""Sources of encoded images: record files, image files, contents of containers, arrays.

A `Source` answers one question, without the GIL and in any thread: which bytes are image number i.
A record is handed out with its header still to be parsed, everything else with id and labels from
a list.  Containers give spans of their files, or contents that a library reads.
"""

from cpython.bytes cimport PyBytes_AS_STRING
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcpy

from recordio.bytes.mapping cimport address_of, guard_of, map_guard, map_lost
from recordio.counter cimport counter_load, counter_store
from recordio.frames.checksums cimport (
    CHECKSUM_ABSENT, CHECKSUM_OK, CHECKSUM_WRONG, Table, checksum_check, checksum_error,
)
from recordio.frames.frame cimport (
    FRAME_HEAD, FRAME_LOST, FRAME_OK, MAX_RECORD, Frame, frame_confirm, frame_error, frame_join,
    frame_scan,
)
from recordio.frames.reader cimport RecordReader

import errno
import os
import sys

import numpy as np

from recordio.bytes.mapping import LOST
from recordio.encodings import missing_name, path_of_name
from recordio.errors import ImageFileError, RecordIOError, TruncatedRecordError
from recordio.header import IRHeader, unpack


cdef extern from "iterators/images/sources/image_file.h" nogil:
    ctypedef char image_file_char       # wchar_t on Windows
    enum:
        IMAGE_FILE_MEMORY
        IMAGE_FILE_NOT_REGULAR
        IMAGE_FILE_TOO_LARGE
        IMAGE_FILE_SHRANK
    int image_file_reserve(uint8_t** memory, size_t* capacity, size_t size)
    int image_file_read(const image_file_char* path, int64_t largest, uint8_t** memory,
                        size_t* capacity, size_t* length)

cdef extern from "iterators/images/sources/readahead.h" nogil:
    int64_t readahead_faults()
    void readahead_sparse(const uint8_t* base, int64_t size, int sparse)
    void readahead_range(const uint8_t* base, int64_t begin, int64_t end)

cdef enum:
    NO_MEMORY = -1          # status of `fetch`; FrameStatus and errno are not negative
    ABSENT = -2             # the file has no record for the image
    ANNOUNCED = 1 << 14     # records announced since a page was last missing
    PIECE = 1 << 17         # bytes announced at once; of more the system may read only the first


cdef class Source:
    """Base class: records ``0 ... count - 1``.

    Examples
    --------
    >>> Source().count
    0
    """

    cdef int fetch(self, int64_t number, Scratch* scratch, Encoded* image) noexcept nogil:
        return NO_MEMORY

    cdef int fetch_head(self, int64_t number, Scratch* scratch, Encoded* image) noexcept nogil:
        return self.fetch(number, scratch, image)

    cdef int confirm(self, int64_t number, const uint8_t* data, size_t size) noexcept nogil:
        return FETCH_OK

    cdef Py_ssize_t expect(self, const int64_t* numbers, Py_ssize_t count) noexcept nogil:
        return 0

    cdef object failure(self, int64_t number, int status):
        return MemoryError("no memory for a record")

    cdef dict location(self, int64_t number):
        return {}

    def announce(self, const int64_t[::1] numbers not None):
        """Say that records will be fetched soon, so that they are read from the disk meanwhile.

        Parameters
        ----------
        numbers : numpy.ndarray of int64
            Each in ``[0, count)``.

        Returns
        -------
        int
            How many of them the system was told of: none where all seem to be in memory.

        Raises
        ------
        IndexError
            If there is no such record.
        """
        cdef Py_ssize_t i
        for i in range(numbers.shape[0]):
            if not 0 <= numbers[i] < self.count:
                raise IndexError(f"record {numbers[i]} of {self.count}")
        if numbers.shape[0] == 0:
            return 0
        with nogil:
            i = self.expect(&numbers[0], numbers.shape[0])
        return i

    def image(self, number):
        """The header and the encoded image of one record, copied.

        Parameters
        ----------
        number : int
            In ``[0, count)``.

        Returns
        -------
        header : IRHeader
        content : bytes

        Raises
        ------
        IndexError
            If there is no such record.
        RecordIOError
            If it cannot be read, or is no image record.
        """
        return unpack(self.read(number))

    def read(self, number):
        """The bytes of one record or file, copied.

        Parameters
        ----------
        number : int
            In ``[0, count)``.

        Returns
        -------
        bytes

        Raises
        ------
        IndexError
            If there is no such record.
        RecordIOError
            If it cannot be read.
        """
        cdef Scratch scratch
        cdef Encoded image
        cdef int64_t position = number
        cdef int status
        cdef bytes content = b""
        if not 0 <= position < self.count:
            raise IndexError(f"record {number} of {self.count}")
        scratch.bytes, scratch.capacity = NULL, 0
        try:
            with nogil:
                status = self.fetch(position, &scratch, &image)
            if status == FETCH_OK:
                content = (<const char*>image.data)[:image.size]
                status = self.confirm(position, image.data, image.size)
            if status != FETCH_OK:
                raise self.failure(position, status)
            return content
        finally:
            free(scratch.bytes)


# A mapped file and the number of its first record.
cdef struct File:
    const uint8_t* base
    int64_t size
    int64_t start
    map_guard* guard
    bint verifies                   # records are compared with
    Table checksums


cdef class MappedFiles(Source):
    """Records that lie in mapped files, numbered through; base class.

    Records that are expected are announced to the system, which reads them from the disk while
    others are decoded - just them, not what surrounds them in the file.  That costs a microsecond
    or two for each, so it is done only at the start and where pages turn out to be missing.

    Parameters
    ----------
    paths : sequence of str
        The files, as errors name them.
    views : sequence of memoryview
        Their bytes, mapped.
    offsets : numpy.ndarray of int64
        Offset of every record in its file; the position in this array is the record number.
    starts : numpy.ndarray of int64
        Number of the first record of each file.
    numberings : sequence of callable, optional
        For each file what gives the number by which errors name its n-th record here, where some
        of its records are left out.
    """

    cdef list paths
    cdef list views                 # keep the mappings while threads read them
    cdef object numberings          # of the records of each file, for errors
    cdef File* files
    cdef Py_ssize_t num_files
    cdef object offsets
    cdef const int64_t* offset_of
    cdef int64_t faults             # page faults when `expect` was last called
    cdef int64_t to_announce        # records that it will still announce

    def __init__(self, paths, views, offsets, starts, numberings=None):
        cdef const int64_t[::1] table = offsets
        cdef Py_ssize_t i
        if self.files != NULL:
            raise RuntimeError("a source is initialised once")
        self.num_files = len(paths)
        self.files = <File*>calloc(max(self.num_files, 1), sizeof(File))
        if self.files == NULL:
            raise MemoryError
        self.paths, self.views = list(paths), list(views)
        for i in range(self.num_files):
            self.files[i].base, self.files[i].size = address_of(views[i]), len(views[i])
            self.files[i].start, self.files[i].guard = starts[i], guard_of(views[i])
        self.offsets, self.numberings = offsets, numberings
        self.count = table.shape[0]
        self.offset_of = &table[0] if self.count else NULL
        self.faults, self.to_announce = -1, 0

    def __dealloc__(self):
        free(self.files)

    cdef void read_sparsely(self, bint sparsely) noexcept nogil:
        """Begin to announce records, or end it."""
        cdef Py_ssize_t i
        counter_store(&self.to_announce, ANNOUNCED if sparsely else 0)
        for i in range(self.num_files):
            readahead_sparse(self.files[i].base, self.files[i].size, sparsely)

    cdef Py_ssize_t expect(self, const int64_t* numbers, Py_ssize_t count) noexcept nogil:
        # Threads that do this at once may announce a little more or less than one alone.
        cdef int64_t faults = readahead_faults(), left = counter_load(&self.to_announce)
        cdef Py_ssize_t i
        if faults != counter_load(&self.faults):
            counter_store(&self.faults, faults)
            if left == 0:
                self.read_sparsely(True)
            left = ANNOUNCED
        if left == 0:
            return 0
        for i in range(count):
            self.announce_one(numbers[i])
        left -= min(count, left)
        counter_store(&self.to_announce, left)
        if left == 0:
            self.read_sparsely(False)
        return count

    cdef void announce_one(self, int64_t number) noexcept nogil:
        cdef const File* file = self.file_of(number)
        cdef int64_t begin = self.offset_of[number], end = file.size
        if not 0 <= begin < end:
            return
        if number + 1 < self.count and self.file_of(number + 1) == file:
            end = self.offset_of[number + 1]
        if not begin < end <= begin + MAX_RECORD:    # the index is not in the file's order
            end = begin + PIECE
        end = min(end, file.size)
        while begin < end:
            readahead_range(file.base, begin, min(begin + PIECE, end))
            begin += PIECE

    cdef const File* file_of(self, int64_t record) noexcept nogil:
        cdef Py_ssize_t low = 0, high = self.num_files, middle
        while high - low > 1:
            middle = (low + high) // 2
            if self.files[middle].start <= record:
                low = middle
            else:
                high = middle
        return &self.files[low]

    cdef int confirm(self, int64_t number, const uint8_t* data, size_t size) noexcept nogil:
        cdef const File* file = self.file_of(number)
        cdef int64_t begin = data - file.base
        if not 0 <= begin < file.size:
            return FETCH_OK         # a copy, which was confirmed when it was made
        if map_lost(file.guard, begin, begin + <int64_t>size):
            return FRAME_LOST
        return FETCH_OK

    cdef dict location(self, int64_t number):
        cdef const File* file = self.file_of(number)
        return {"path": self.paths[file - self.files], "offset": self.offset_of[number],
                "record": self.number_in(file, number)}

    cdef object number_in(self, const File* file, int64_t number):
        """The number of a record in its file."""
        number -= file.start
        return number if self.numberings is None else self.numberings[file - self.files](number)


cdef class RecordFiles(MappedFiles):
    """Records of record files.

    Parameters
    ----------
    readers : sequence of recordio.RecordReader
        The files.
    offsets, starts, numberings
        As for `MappedFiles`; negative offsets are those of records that the files do not have.
    absences : sequence of callable, optional
        For each file what makes the error for such a record, by its number there.
    """

    cdef list checksums             # what records are compared with
    cdef object absences            # what makes errors for records that files do not have

    def __init__(self, readers, offsets, starts, numberings=None, absences=None):
        cdef RecordReader reader
        cdef Py_ssize_t i
        super().__init__([r.path for r in readers], [(<RecordReader>r).view for r in readers],
                         offsets, starts, numberings)
        self.checksums, self.absences = [], absences
        for i in range(self.num_files):
            reader = readers[i]
            if reader.checksums is not None:
                self.checksums.append(reader.checksums)
                self.files[i].checksums = reader.checksums.table
                self.files[i].verifies = True

    cdef int fetch(self, int64_t number, Scratch* scratch, Encoded* image) noexcept nogil:
        return self.locate(number, True, scratch, image)

    cdef int fetch_head(self, int64_t number, Scratch* scratch, Encoded* image) noexcept nogil:
        # A checksum would have all of the record read.
        return self.locate(number, False, scratch, image)

    cdef int locate(self, int64_t number, bint verify, Scratch* scratch,
                    Encoded* image) noexcept nogil:
        cdef Frame frame
        cdef const File* file = self.file_of(number)
        cdef int status
        if self.offset_of[number] < 0:
            return ABSENT
        status = frame_scan(file.base, file.size, self.offset_of[number], &frame)
        if status != FRAME_OK:
            return frame_confirm(file.guard, status, &frame)
        if verify and file.verifies:
            status = checksum_check(&file.checksums, file.base, &frame)
            if status != CHECKSUM_OK:
                return status
        image.data, image.size = file.base + frame.offset + FRAME_HEAD, <size_t>frame.length
        image.has_header = True
        if frame.parts > 1:
            if not image_file_reserve(&scratch.bytes, &scratch.capacity, <size_t>frame.length):
                return NO_MEMORY
            frame_join(file.base, &frame, scratch.bytes)
            image.data = scratch.bytes
        # Also what is in one piece: what is lost already need not be decoded.
        return frame_confirm(file.guard, FRAME_OK, &frame)

    cdef object failure(self, int64_t number, int status):
        cdef const File* file = self.file_of(number)
        cdef Frame frame
        if status == NO_MEMORY:
            return Source.failure(self, number, status)
        if status == ABSENT:
            return self.absences[file - self.files](number - file.start)
        if status in (CHECKSUM_WRONG, CHECKSUM_ABSENT):
            return checksum_error(status, self.paths[file - self.files], self.offset_of[number],
                                  self.number_in(file, number))
        frame_scan(file.base, file.size, self.offset_of[number], &frame)
        if status == FRAME_LOST:
            frame.end = frame.offset
        return frame_error(status, self.paths[file - self.files], frame.end,
                           self.number_in(file, number))


cdef class ImageFiles(Source):
    """Image files: each is read when it is asked for.

    A file is in memory only while its image is rendered; what is kept for each is its path, its id
    and its labels.

    Parameters
    ----------
    paths : sequence of str
        The files, regular ones of at most 2**29 - 1 bytes.
    ids : numpy.ndarray of uint64, (n,)
    labels : numpy.ndarray of float32, (n, label_width)
        At least one for each.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(b"pixels")
    ...     file.flush()
    ...     files = ImageFiles([file.name], np.array([7], np.uint64), np.array([[3]], np.float32))
    ...     files.image(0)
    (IRHeader(flag=0, label=3.0, id=7, id2=0), b'pixels')
    """

    cdef list paths
    cdef bytes names                # all paths, each ended by a zero
    cdef const char* first_name
    cdef object tables              # keep what the pointers below point to
    cdef const int64_t* starts      # where each path begins in them
    cdef const uint64_t* ids
    cdef const float* labels
    cdef Py_ssize_t label_width

    def __cinit__(self, paths, ids, labels):
        cdef const uint64_t[::1] id_table = ids
        cdef const float[:, ::1] label_table = labels
        cdef const int64_t[::1] starts
        self.paths = list(paths)
        if not len(self.paths) == id_table.shape[0] == label_table.shape[0]:
            raise ValueError("there must be one id and one row of labels for every path")
        if label_table.shape[1] == 0:
            raise ValueError("there must be at least one label for every path")
        names = [_native(path) for path in self.paths]
        begins = np.zeros(len(names) + 1, np.int64)
        np.cumsum([len(name) for name in names], out=begins[1:])
        starts = begins
        self.names = b"".join(names)
        self.first_name = PyBytes_AS_STRING(self.names)
        self.tables = ids, labels, begins
        self.count, self.label_width = len(names), label_table.shape[1]
        self.starts = &starts[0]
        if self.count:
            self.ids = &id_table[0]
            self.labels = &label_table[0, 0]

    cdef int fetch(self, int64_t number, Scratch* scratch, Encoded* image) noexcept nogil:
        cdef int status = image_file_read(
            <const image_file_char*>(self.first_name + self.starts[number]), MAX_RECORD,
            &scratch.bytes, &scratch.capacity, &image.size)
        if status:
            return status
        self.describe(number, image)
        image.data = scratch.bytes
        return FETCH_OK

    cdef int fetch_head(self, int64_t number, Scratch* scratch, Encoded* image) noexcept nogil:
        self.describe(number, image)
        image.data, image.size = NULL, 0
        return FETCH_OK

    cdef void describe(self, int64_t number, Encoded* image) noexcept nogil:
        """Fill in all but the bytes."""
        image.has_header, image.id = False, self.ids[number]
        image.flag = 0 if self.label_width == 1 else <uint32_t>self.label_width
        image.labels = self.labels + number * self.label_width

    def image(self, number):
        """The header and the content of one file; see `Source.image`."""
        content = self.read(number)
        ids, labels, _ = self.tables
        if self.label_width == 1:
            return IRHeader(0, float(labels[number, 0]), int(ids[number]), 0), content
        row = labels[number]
        row.flags.writeable = False
        return IRHeader(self.label_width, row, int(ids[number]), 0), content

    cdef object failure(self, int64_t number, int status):
        if status == IMAGE_FILE_MEMORY:
            return Source.failure(self, number, status)
        if status == IMAGE_FILE_NOT_REGULAR:
            reason = "is no regular file"
        elif status == IMAGE_FILE_TOO_LARGE:
            reason = f"is too large: at most {MAX_RECORD} bytes are possible"
        elif status == IMAGE_FILE_SHRANK:
            reason = "became shorter while it was read"
        elif status in (errno.EMFILE, errno.ENFILE, errno.ENOMEM):
            # What the machine lacks says nothing about the file: never to be skipped.
            return OSError(status, os.strerror(status), self.paths[number])
        else:
            reason = f"cannot be read: {os.strerror(status)}"
            if status == errno.ENOENT:
                reason += missing_name(self.paths[number])
        return ImageFileError(f"the image file {reason}", record_id=self.ids[number],
                              **self.location(number))

    cdef dict location(self, int64_t number):
        return {"path": self.paths[number], "record": number}


def _native(path):
    """A path as the system's open() takes it, ended by a zero."""
    if "\0" in path:
        raise ValueError(f"the path {path!r} has a zero character in it")
    if sys.platform == "win32":
        return path.encode("utf-16-le", "surrogatepass") + b"\0\0"
    return os.fsencode(path_of_name(path)) + b"\0"


# ---- containers ----

cdef enum:
    LOST_BYTES = 1
    NO_CONTENT = 2          # the sample has none that could be used
    CUT = 3                 # the file ends within it
    FAILED = 4              # the library said why


cdef class LabelTable:
    """Ids and labels: those of image i are ``labels[starts[i] : starts[i + 1]]``."""

    cdef object tables              # keep what the pointers below point to
    cdef Py_ssize_t count
    cdef const uint64_t* ids
    cdef const int64_t* starts
    cdef const float* labels

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

    cdef LabelTable table
    cdef object sizes
    cdef const int64_t* size_of
    cdef object faults

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

    cdef LabelTable table
    cdef object reading
    cdef object placing
    cdef dict errors

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
            data = self.reading(number)
            image.size = len(data)
            if image.size > MAX_RECORD:
                raise RecordIOError(
                    f"it has {image.size} bytes: at most {MAX_RECORD} are possible")
            if not image_file_reserve(&scratch.bytes, &scratch.capacity, max(image.size, 1)):
                return NO_MEMORY
            if image.size:
                content = data
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
            try:
                self.reading(number)
            except BaseException as again:
                error = again
            else:
                error = RecordIOError("it could not be read, and can be now: read it again")
        return error.at(**self.location(number)) if isinstance(error, RecordIOError) else error

    cdef dict location(self, int64_t number):
        return self.placing(number)

    def image(self, number):
        """The header and the content of one image; see `Source.image`."""
        return self.table.header(number), self.read(number)


cdef class SpansAndRows(Source):
    """The same images from two sources, `packed` ones from the second."""

    cdef Source spans
    cdef Source rows
    cdef object packed              # keeps what the pointer below points to
    cdef const uint8_t* in_rows

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

    cdef Source first
    cdef Source second
    cdef int64_t border             # number of the first image of the second

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


# ---- arrays ----

cdef class ImageArrays(Source):
    """Images of one size, each made when it is asked for: pixels behind a PNM header.

    The array is contiguous, with at least one image; an image has one label.

    Examples
    --------
    >>> import numpy as np
    >>> grey = np.full((2, 3, 4), 65, np.uint8)
    >>> arrays = ImageArrays(grey, np.array([5, 6], np.float32))
    >>> header, image = arrays.image(1)
    >>> header.label, header.id, image
    (6.0, 1, b'P5\\n4 3\\n255\\nAAAAAAAAAAAA')
    """

    cdef object arrays              # keep what the pointers below point to
    cdef const uint8_t* pixels
    cdef const float* labels
    cdef const char* head           # of PNM
    cdef size_t head_bytes
    cdef size_t image_bytes

    def __cinit__(self, images, labels):
        cdef const float[::1] label_table = labels
        cdef const uint8_t[::1] flat = memoryview(images).cast("B")
        if len(images) != len(labels):
            raise ValueError(f"there are {len(images)} images and {len(labels)} labels")
        kind = "P6" if images.ndim == 4 else "P5"
        head = f"{kind}\n{images.shape[2]} {images.shape[1]}\n255\n".encode()
        self.arrays = images, labels, head
        self.head, self.head_bytes = PyBytes_AS_STRING(head), len(head)
        self.count, self.image_bytes = len(images), images[:1].nbytes
        self.pixels, self.labels = NULL, NULL
        if self.count:
            self.pixels, self.labels = &flat[0], &label_table[0]

    cdef int fetch(self, int64_t number, Scratch* scratch, Encoded* image) noexcept nogil:
        cdef uint8_t* larger
        image.size = self.head_bytes + self.image_bytes
        if scratch.capacity < image.size:
            larger = <uint8_t*>realloc(scratch.bytes, image.size)
            if larger == NULL:
                return -1           # no memory
            scratch.bytes, scratch.capacity = larger, image.size
        memcpy(scratch.bytes, self.head, self.head_bytes)
        memcpy(scratch.bytes + self.head_bytes, self.pixels + number * self.image_bytes,
               self.image_bytes)
        image.data, image.has_header = scratch.bytes, False
        image.id, image.flag, image.labels = <uint64_t>number, 0, self.labels + number
        return FETCH_OK

    def image(self, number):
        """The header and the content of one image; see `Source.image`."""
        content = self.read(number)
        return IRHeader(0, float(self.arrays[1][number]), number, 0), content
