"""The loop over the headers of a tar file, without the GIL; see ``tar_members.h``.

What the files of a sample mean is said by `webdataset`, which looks at every sample that is not of
the usual kind.
"""

from cpython.buffer cimport PyBuffer_FillInfo
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free

from recordio.bytes.mapping cimport address_of

import numpy as np

__all__ = ["TarScan", "read_header", "split_name"]

cdef extern from "recordio/containers/tar_members.h" nogil:
    enum: TAR_MORE, TAR_DAMAGED, TAR_NO_MEMORY
    ctypedef struct tar_table:
        uint8_t* data
        size_t size, capacity
    ctypedef struct tar_part:
        int64_t offset, size, ending, ending_size
        int32_t is_sparse
    ctypedef struct tar_hard:
        int64_t row, first_part, parts, key, key_size
    ctypedef struct tar_tally:
        int64_t count
        int32_t size
        uint8_t* ending
    ctypedef struct tar_scan:
        int64_t size, position, want_begin, want_end, most_content
        const char* reason
        const uint64_t* contents
        int contents_count, last_dot, reads_labels
        int64_t rows, without_ending, no_files, other_kinds
        tar_table offsets, sizes, labels, names, name_starts, parts, texts, hard, tallies, odd
    void tar_begin(tar_scan* scan, int64_t size)
    int tar_run(tar_scan* scan, const uint8_t* base, int64_t end)
    int tar_take_lines(tar_scan* scan, const uint8_t* base, const uint8_t* text, size_t size)
    bint tar_end_names(tar_scan* scan)
    bint tar_close(tar_scan* scan)
    void tar_free(tar_scan* scan)
    bint tar_split(const uint8_t* name, size_t size, int last_dot, size_t* begin, size_t* dot)
    bint tar_sum_is_right(const uint8_t* header)
    int64_t tar_number(const uint8_t* field, size_t size)


cdef class TarScan:
    """A scan of a file of some size, whose contents end in one of some suffixes without a dot.

    Names are split at the first dot of the last component, or with `last_dot` at the last one.
    `run` goes on until it needs bytes that are not there, which `next_range` says.
    """

    cdef tar_scan scan
    cdef uint64_t[::1] words
    cdef readonly bint is_done

    def __cinit__(self, int64_t size, contents, int64_t most_content, bint last_dot=False):
        tar_begin(&self.scan, size)
        padded = b"".join(one.encode().ljust(8, b"\0") for one in contents if len(one) <= 8)
        self.words = np.frombuffer(padded, np.uint64).copy()
        self.scan.contents = &self.words[0]
        self.scan.contents_count = <int>self.words.shape[0]
        self.scan.most_content, self.scan.last_dot = most_content, last_dot

    def __dealloc__(self):
        tar_free(&self.scan)

    @property
    def next_range(self):
        """The range of bytes that is needed to go on."""
        return self.scan.want_begin, self.scan.want_end

    @property
    def rows(self):
        """How many samples were found."""
        return self.scan.rows

    @property
    def position(self):
        """Where the next header is."""
        return self.scan.position

    def run(self, view, int64_t end):
        """Go on in a view of the file, of which the bytes before `end` are there.

        The reason is returned if the file is damaged at `position`.
        """
        cdef const uint8_t* base = address_of(view)
        cdef int status
        if not 0 <= end <= len(view) or len(view) < self.scan.size:
            raise ValueError("the view must show the file")
        with nogil:
            status = tar_run(&self.scan, base, end)
        return self._after(status)

    def take_lines(self, view, lines, reads_labels):
        """Add the files that lines of an index name, all of them; see `dali_index`.

        Returns a reason if they cannot be right, and else a table of files whose headers should be
        compared, those before which there is more than that, and some: offset, size, and where the
        name begins in the lines and how long it is.  Without `reads_labels` nothing of the archive
        is read.
        """
        cdef const uint8_t[::1] text = lines
        cdef const uint8_t* base = address_of(view)
        cdef int status
        if len(view) < self.scan.size or not text.shape[0]:
            raise ValueError("there must be lines, and the view must show the file")
        self.scan.reads_labels = reads_labels
        with nogil:
            status = tar_take_lines(&self.scan, base, &text[0], text.shape[0])
        reason = self._after(status)
        return reason or _take(&self.scan.odd, np.int64).reshape(-1, 4)

    def give_up(self):
        """End the last sample where nothing more can be read."""
        self._after(TAR_DAMAGED if tar_close(&self.scan) else TAR_NO_MEMORY)

    cdef _after(self, int status):
        if status == TAR_NO_MEMORY:
            raise MemoryError("there is no room for the names of the files in a tar file")
        self.is_done = status != TAR_MORE
        return self.scan.reason.decode() if status == TAR_DAMAGED else None

    def hard(self):
        """Take the samples that Python has to look at: number, key and files.

        A file has an ending, in ASCII's lower case, offset, size, and whether it is sparse.
        """
        cdef tar_part* parts = <tar_part*>self.scan.parts.data
        cdef const tar_hard* one = <const tar_hard*>self.scan.hard.data
        cdef const uint8_t* texts = self.scan.texts.data
        cdef size_t i
        cdef int64_t j
        samples = []
        for i in range(self.scan.hard.size // sizeof(tar_hard)):
            files = [
                (
                    _text(texts + parts[j].ending, parts[j].ending_size),
                    parts[j].offset,
                    parts[j].size,
                    bool(parts[j].is_sparse),
                )
                for j in range(one[i].first_part, one[i].first_part + one[i].parts)
            ]
            samples.append((one[i].row, _text(texts + one[i].key, one[i].key_size), files))
        self.scan.hard.size = 0
        return samples

    def tables(self):
        """Take what was found: offsets, sizes, labels, names, and where each begins and ends."""
        self._after(0 if tar_end_names(&self.scan) else TAR_NO_MEMORY)
        return (
            _take(&self.scan.offsets, np.int64),
            _take(&self.scan.sizes, np.int64),
            _take(&self.scan.labels, np.float32),
            _take(&self.scan.names, np.uint8),
            _take(&self.scan.name_starts, np.int64),
        )

    def left_out(self):
        """Count what was passed over, but for samples that Python looks at."""
        cdef tar_tally* tallies = <tar_tally*>self.scan.tallies.data
        cdef size_t i
        counts = {
            "files without an ending": self.scan.without_ending,
            "links or devices": self.scan.no_files,
            "others": self.scan.other_kinds,
        }
        for i in range(self.scan.tallies.size // sizeof(tar_tally)):
            counts["." + _text(tallies[i].ending, tallies[i].size)] = tallies[i].count
        return {name: count for name, count in counts.items() if count}


cdef str _text(const uint8_t* text, int64_t size):
    return PyBytes_FromStringAndSize(<const char*>text, size).decode("utf-8", "surrogateescape")


cdef class _TableOwner:
    """A table that was taken from a scan."""

    cdef tar_table table

    def __dealloc__(self):
        free(self.table.data)

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        PyBuffer_FillInfo(buffer, self, self.table.data, self.table.size, False, flags)


cdef _take(tar_table* table, dtype):
    """Take a table away from a scan, without a copy."""
    cdef _TableOwner owner = _TableOwner()
    owner.table = table[0]
    table.data, table.size, table.capacity = NULL, 0, 0
    return np.frombuffer(owner, dtype) if owner.table.size else np.empty(0, dtype)


def split_name(str name):
    """Split the name of a file in an archive into key and ending; None if it is of no sample.

    The ending begins behind the first dot of the last component.  Hidden files and those of systems
    are of no sample.

    >>> split_name("./set/0001.left.PNG"), split_name("set.d/README"), split_name("set/.hidden")
    (('set/0001', 'left.PNG'), None, None)
    """
    cdef bytes text = name.encode("utf-8", "surrogateescape")
    cdef size_t begin, dot
    if not tar_split(text, len(text), False, &begin, &dot):
        return None
    return tuple(
        part.decode("utf-8", "surrogateescape") for part in (text[begin:dot], text[dot + 1:]))


def read_header(header):
    """Read name and size in a header of 512 bytes; None if it is no header of a file.

    A name of 100 bytes or more is longer as a rule, and stands elsewhere.
    """
    cdef const uint8_t[::1] block = header
    if block.shape[0] != 512 or not tar_sum_is_right(&block[0]) or block[156] not in b"0\0007":
        return None
    size = tar_number(&block[124], 12)
    prefix, name = (bytes(field).partition(b"\0")[0] for field in (block[345:500], block[:100]))
    return None if size < 0 else (prefix + b"/" + name if prefix else name, size)
