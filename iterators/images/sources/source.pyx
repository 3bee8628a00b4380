"""Sources of encoded images: mapped record files, or image files with a list of labels.

A `Source` answers one question, without the GIL and in any thread: which bytes are image number i.
A record is handed out with its header still to be parsed, a file with id and labels from a list.
"""

import errno
import os
import sys

from cpython.bytes cimport PyBytes_AS_STRING
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free

from recordio.counter cimport counter_load, counter_store

import numpy as np

from recordio.frames.checksums cimport (
    CHECKSUM_ABSENT, CHECKSUM_OK, CHECKSUM_WRONG, checksum_check, checksum_error,
)
from recordio.encodings import missing_name, path_of_name
from recordio.errors import ImageFileError
from recordio.frames.frame cimport FRAME_HEAD, FRAME_LOST, FRAME_OK, Frame, MAX_RECORD
from recordio.frames.frame cimport frame_confirm, frame_error, frame_join, frame_scan
from recordio.bytes.mapping cimport address_of, guard_of, map_lost
from recordio.frames.reader cimport RecordReader

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
        cdef bytes found = b""
        if not 0 <= position < self.count:
            raise IndexError(f"record {number} of {self.count}")
        scratch.bytes, scratch.capacity = NULL, 0
        try:
            with nogil:
                status = self.fetch(position, &scratch, &image)
            if status == FETCH_OK:
                found = (<const char*>image.data)[:image.size]
                status = self.confirm(position, image.data, image.size)
            if status != FETCH_OK:
                raise self.failure(position, status)
            return found
        finally:
            free(scratch.bytes)


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
