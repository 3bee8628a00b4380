"""Read the records of one file through a memory map: in order, by position or by key.

Records come out as read-only memoryviews of the file, without a copy.
"""

from functools import partial
from operator import index as as_integer

import numpy as np

cimport cython
from libc.stdint cimport int64_t

from recordio.counter cimport counter_publish, counter_published
from recordio.frames.frame cimport FRAME_OK, Frame, frame_confirm
from recordio.frames.locate cimport as_positions, first_outside, locate_one
from recordio.frames.index_file cimport KeyLookup
from recordio.frames.mapped cimport MappedRecords
from recordio.bytes.mapping cimport address_of, guard_of
from recordio.frames.views cimport UNMAP_ON_CLOSE

from recordio.errors import IndexFileError, KeyNotFoundError
from recordio.bytes.files import StoredFile
from recordio.frames.checksums import checksums_path, read_checksums
from recordio.frames.frame import scan_offsets
from recordio.frames.index_file import read_index
from recordio.frames.listing import listing_fault
from recordio.frames.mapped import RecordIterator
from recordio.frames.mirrored import RemoteRecords
from recordio.frames.record_bytes import map_records
from recordio.bytes.remote.objects import redacted_url
from recordio.bytes.remote.settings import RemoteSettings

__all__ = ["RecordReader"]


cdef class RecordReader(MappedRecords):
    """The records of one file, as a sequence.

    Parameters
    ----------
    path : str or os.PathLike
        The record file, or its URL.  An empty file is a valid, empty sequence.
    index : str or os.PathLike, optional
        Its ``.idx`` file.  With an index, position *i* is the record that line *i* of the index
        lists, and iteration follows the index.  Without an index, positions are the order of the
        file and keys equal positions; iteration needs no preparation, and the first use of
        positions scans the file once.
    verify : bool
        Compare each record with its checksum in ``PREFIX.crc`` when it is read.  Without an index,
        that file also lists where the records begin, so that damage in the head of a record hides
        no other record.
    selection : bool
        The index lists the records that are wanted: some may be left out, others listed more than
        once.  False: an index that does not go to the end of the file, or lists a record twice, is
        taken for a damaged one, or for that of another file.
    **remote
        Keywords of `RemoteSettings`, for a URL: `remote_cache`, `remote_cache_size`,
        `remote_timeout` and `remote_options`.

    Attributes
    ----------
    path, index_path : str
        As given, URLs without user names and queries; `index_path` is None without an index.
    checksums : Checksums or None
        The content of ``PREFIX.crc``, with `verify`.
    closed : bool
        Whether `close` was called.

    Raises
    ------
    OSError
        If a file cannot be opened.
    IndexFileError
        If the index cannot be parsed, or lists offsets outside the record file; unless `selection`,
        if it ends early or lists a record twice.  For a URL also when positions are needed and
        there is no index beside it.
    RemoteFileError
        For a URL, if bytes cannot be fetched.
    ChecksumFileError
        With `verify`, if ``PREFIX.crc`` is missing, damaged, or that of another file.
    ChecksumError
        With `verify`, when a record is read that does not match its checksum.
    CorruptRecordError, TruncatedRecordError
        When a damaged record is read; a truncated tail is an error, too, and not the end of the
        file.  The error names path, offset and record.
    ValueError
        When a closed reader is used.

    Notes
    -----
    A record is a read-only memoryview of the mapped file; a record in several parts (its payload
    holds the magic word) is a memoryview of a copy in which they are joined.  Views stay valid
    after `close`, and keep the file mapped.

    Any number of threads may use one reader, without a lock, but each needs an iterator of its
    own; a reader may be used after ``fork``.  Pickling stores the paths and keywords only.  The
    reader keeps 16 bytes for each record; the first look-up by key in an index whose keys do not
    ascend adds 8.

    From a file on a server only the blocks that are needed are fetched, into a sparse copy on the
    disk that all processes share; see the page about remote files.  Without `index`, the ``.idx``
    file beside it, if there is one, gives the offsets of the records.

    If the file shrinks while it is mapped, or the disk fails, reading a record that is no longer
    whole raises a `TruncatedRecordError`, and all others can be read.  Views from before show zeros
    where bytes are missing; `recordio.bytes.mapping.is_lost` finds such views.
    `RecordWriter` never shrinks a file: it replaces the file, and readers keep the one they opened.

    Examples
    --------
    >>> import tempfile, pathlib, recordio
    >>> path = pathlib.Path(tempfile.mkdtemp(), "a.rec")
    >>> with recordio.RecordWriter(path, path.with_suffix(".idx")) as writer:
    ...     for key, text in [(7, b"seven"), (3, b"three"), (5, b"five")]:
    ...         _ = writer.write(text, key=key)
    >>> reader = RecordReader(path, path.with_suffix(".idx"))
    >>> len(reader), bytes(reader[0]), bytes(reader[-1]), bytes(reader.by_key(3))
    (3, b'seven', b'five', b'three')
    >>> [bytes(record) for record in reader]
    [b'seven', b'three', b'five']
    """

    def __init__(self, path, index=None, verify=False, selection=False, **remote):
        cdef const int64_t[::1] table
        cdef int64_t outside
        if self.path is not None:
            raise RuntimeError("a RecordReader is initialised once")
        self._settings = RemoteSettings.of(
            type(self).__name__, remote, also=("path", "index", "verify", "selection")
        )
        file = StoredFile.at(path)
        indexed = None if index is None else StoredFile.at(index)
        self._source = file.name, indexed and indexed.name
        self.selection = selection
        self.path = redacted_url(file.name)
        self.index_path = indexed and redacted_url(indexed.name)
        if indexed is not None:
            keys, offsets = indexed.parsed(read_index, self._settings)
        if file.is_local:
            self.view = map_records(file)
        else:
            self.remote = RemoteRecords(file.mirrored(self._settings), file.name, self._settings)
            self.view = self.remote.mirror.view
        self.base = address_of(self.view)
        self.guard = guard_of(self.view)
        self.size = len(self.view)
        self.closed = False
        if verify:
            beside = StoredFile.at(checksums_path(file.name))
            self.checksums = beside.parsed(read_checksums, self._settings)
            self.checksums.check_size(self.path, self.size)
        if self.index_path is not None:
            keys.flags.writeable = offsets.flags.writeable = False
            table = offsets
            with nogil:
                outside = first_outside(table, self.size)
            if outside >= 0:
                raise IndexFileError(
                    f"offset {table[outside]} lies outside {self.path} of {self.size} bytes:"
                    " the record file is truncated or the index is that of another file;"
                    " recordio.build_index() writes it again",
                    path=self.index_path,
                    line=outside + 1,
                )
            self._keys = keys
            self._set_offsets(offsets)
            if not selection:
                fault = self._index_fault()
                if fault is not None:
                    fault.reason += "; selection=True reads what such an index lists"
                    raise fault.at()
        elif self.checksums is not None:
            offsets = self.checksums.offsets
            offsets.flags.writeable = False
            self._set_offsets(offsets)

    cdef int _set_offsets(self, offsets) except -1:
        cdef const int64_t[::1] table = offsets
        if self.remote is not None:
            self.remote.set_table(offsets)
        # Two threads may both have scanned; the table that others already use must stay.
        with cython.critical_section(self):
            if self.count < 0:
                self._offsets = offsets
                self.offset_table = &table[0] if table.shape[0] else NULL
                counter_publish(&self.count, table.shape[0])
        return 0

    def _index_fault(self):
        """Say what is wrong with the index, as far as a few heads tell; None if nothing is."""
        return listing_fault(self.offsets, self.index_path, self.path, self.size, self._end_at)

    def _end_at(self, int64_t offset):
        """Find by its head where the record at an offset ends; None if no whole one begins there.
        """
        cdef Frame frame
        cdef int status
        if self.remote is not None:
            return self.remote.end_at(offset)
        with nogil:
            status = frame_confirm(
                self.guard, locate_one(self.base, self.size, offset, &frame), &frame
            )
        return frame.end if status == FRAME_OK else None

    cdef int need_offsets(self) except -1:
        self.check_open()
        if counter_published(&self.count) < 0:
            view = self.view        # a close() elsewhere must not unmap it meanwhile
            if self.remote is None:
                offsets = scan_offsets(view, self.path)
            else:
                offsets = self.remote.offsets()
            offsets.flags.writeable = False
            self._set_offsets(offsets)
        return 0

    cdef object _read(self, int64_t position):
        remote = self.remote        # a close() elsewhere forgets it
        if remote is None:
            return self._take(position)
        with remote.pin(self._offsets[position:position + 1]):
            record = self._take(position)
            return record if remote.resident else memoryview(bytes(record))

    def __len__(self):
        """Number of records; without an index the first call scans the file."""
        self.need_offsets()
        return self.count

    def __iter__(self):
        """Iterate over all records from the first; any number of iterations may run at once."""
        self.check_open()
        if self.remote is None:
            return RecordIterator(self)
        if self.index_path is None and self.checksums is None:
            return self.remote.from_start(self.read_at)
        return self.remote.in_order(self.offsets, self.read_many)

    def __getitem__(self, item):
        """One record by position, or a list of records for a slice or a sequence of positions."""
        cdef int64_t position
        self.need_offsets()
        if isinstance(item, slice):
            return self.read_many(range(*item.indices(self.count)))
        try:
            number = as_integer(item)
        except TypeError:
            return self.read_many(item)
        try:
            position = number
        except OverflowError:
            raise IndexError(self._no_position(number)) from None
        if position < 0:
            position += self.count
        if position < 0 or position >= self.count:
            raise IndexError(self._no_position(number))
        return self._read(position)

    def read_many(self, positions, *, bint copy=False):
        """Return the records at many positions; the fastest way to read at random.

        Parameters
        ----------
        positions : sequence or array of int, shape (n,)
            In any order, with repetitions; negative ones count from the end.
        copy : bool
            Return bytes, which stay as they are if the file changes.

        Returns
        -------
        list of memoryview or of bytes
            In the order of `positions`.

        Raises
        ------
        IndexError
            If a position is out of range.
        CorruptRecordError, TruncatedRecordError
            If one of the records is damaged.

        Examples
        --------
        >>> import tempfile, pathlib, recordio
        >>> path = pathlib.Path(tempfile.mkdtemp(), "a.rec")
        >>> with recordio.RecordWriter(path) as writer:
        ...     for text in (b"a", b"b", b"c"):
        ...         _ = writer.write(text)
        >>> [bytes(record) for record in RecordReader(path).read_many([2, 0, -1])]
        [b'c', b'a', b'c']
        """
        self.need_offsets()
        positions = as_positions(positions)
        if self.remote is None:
            return self._take_many(positions, copy)
        return self.remote.read_many(self._take_many, self._offsets, np.asarray(positions), copy)

    def read_at(self, int64_t offset, record=None, *, bint copy=False):
        """Return the record that begins at a byte offset, and the offset of the next one.

        Parameters
        ----------
        offset : int
            Byte offset in the file: 0 or the `next_offset` of an earlier call.
        record : int, optional
            Position of the record, for errors.
        copy : bool
            Return bytes, which stay as they are if the file changes.

        Returns
        -------
        payload : memoryview, bytes or None
            None if `offset` is the end of the file.
        next_offset : int
            The offset after the record.

        Raises
        ------
        CorruptRecordError, TruncatedRecordError
            If no whole record begins at `offset`.

        Examples
        --------
        >>> import tempfile, pathlib, recordio
        >>> path = pathlib.Path(tempfile.mkdtemp(), "a.rec")
        >>> with recordio.RecordWriter(path) as writer:
        ...     _ = writer.write(b"abc")
        >>> payload, end = RecordReader(path).read_at(0)
        >>> bytes(payload), end, RecordReader(path).read_at(end)
        (b'abc', 12, (None, 12))
        """
        remote = self.remote
        if remote is None:
            return self._take_at(offset, record, copy)
        with remote.pin_at(offset):
            payload, end = self._take_at(offset, record, copy or not remote.resident)
        if payload is not None and not copy and not remote.resident:
            payload = memoryview(payload)
        return payload, end

    def check_tail(self, int64_t offset=0, record=0):
        """Follow the records from one offset to the end of the file.

        Parameters
        ----------
        offset : int
            Byte offset of a record.
        record : int
            Its position, for errors.

        Returns
        -------
        int
            Size of the file in bytes; from `offset` on it consists of whole records.

        Raises
        ------
        CorruptRecordError, TruncatedRecordError
            At the first damage.
        """
        self.check_open()
        if self.remote is not None:
            self.remote.mirror.fetch_all()
        scan_offsets(self.view, self.path, offset, record)
        return self.size

    cdef int64_t find_key(self, int64_t key) except -2:
        self.need_offsets()
        if self._keys is None:
            return key if 0 <= key < self.count else -1
        if self._lookup is None:
            lookup = KeyLookup(self._keys)
            with cython.critical_section(self):
                if self._lookup is None:
                    self._lookup = lookup
        return (<KeyLookup>self._lookup).find(key)

    def position_of(self, key):
        """Position of a key; of the last one where a key is listed more than once.

        Parameters
        ----------
        key : int
            A key of the index; without an index a position, 0 <= key < len(reader).

        Returns
        -------
        int

        Raises
        ------
        KeyNotFoundError
            If the index does not list the key.
        """
        cdef int64_t position
        number = as_integer(key)
        self.check_open()
        position = self.find_key(number) if -(1 << 63) <= number < 1 << 63 else -1
        if position < 0:
            where = self.path if self.index_path is None else self.index_path
            raise KeyNotFoundError(f"no record has the key {number}", path=where)
        return position

    def offset_of(self, int64_t position):
        """Byte offset of the record at a position, 0 <= position < len(reader), or IndexError."""
        self.need_offsets()
        if position < 0 or position >= self.count:
            raise IndexError(self._no_position(position))
        return self.offset_table[position]

    def by_key(self, key):
        """The record with a key; the last one where a key is listed more than once.

        Parameters
        ----------
        key : int
            A key of the index; without an index a position, 0 <= key < len(reader).

        Returns
        -------
        memoryview

        Raises
        ------
        KeyNotFoundError
            If the index does not list the key.
        CorruptRecordError, TruncatedRecordError
            If the record is damaged.
        """
        return self._read(self.position_of(key))

    @property
    def keys(self):
        """Keys by position: int64 array of shape (n,), read-only."""
        self.need_offsets()
        if self._keys is None:
            keys = np.arange(self.count)
            keys.flags.writeable = False
            return keys
        return self._keys.view()

    @property
    def offsets(self):
        """Byte offsets by position: int64 array of shape (n,), read-only."""
        self.need_offsets()
        return self._offsets.view()

    def close(self):
        """Close the file; may be called again.  Records that were returned stay valid."""
        self.closed = True
        if UNMAP_ON_CLOSE or self.remote is not None:   # or the mirror could not make room
            self.remote = None
            self.base = NULL
            self.guard = NULL
            self.size = 0
            self.view = None

    def __enter__(self):
        self.check_open()
        return self

    def __exit__(self, *exc_info):
        self.close()

    def __reduce__(self):
        self.check_open()
        made = partial(type(self), **vars(self._settings))
        return made, (*self._source, self.checksums is not None, self.selection)

    def __repr__(self):
        state = ", closed" if self.closed else ""
        index = "" if self.index_path is None else f", index={self.index_path!r}"
        return f"RecordReader({self.path!r}{index}{state})"
