"""Checksums of the records of a file, in a file beside it: ``PREFIX.crc``.

A checksum covers the whole frame of its record: heads, payload, pad bytes.  Record files are not
opened, and nothing is repaired.
"""

import os
import struct
from typing import NamedTuple

import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t, uint8_t

from recordio.bytes.crc32c cimport crc32c_of
from recordio.frames.frame cimport FRAME_HEAD, FRAME_OK, Frame, frame_scan

from recordio.errors import ChecksumError, ChecksumFileError
from recordio.bytes.files import StoredFile
from recordio.bytes.crc32c import crc32c
from recordio.frames.companions import CHECKSUMS

__all__ = [
    "ENTRY",
    "Checksums",
    "Comparison",
    "checksum_entries",
    "checksums_path",
    "compare",
    "format_checksums",
    "is_checksums",
    "read_checksums",
]

#: One record in the file: where its frame begins, how long it is, and the CRC-32C of those bytes.
ENTRY = np.dtype([("offset", "<i8"), ("length", "<u4"), ("crc", "<u4")])

# Magic, version, bytes of an entry, entries, bytes of the record file, reserved; behind them the
# CRC-32C of these 36 bytes and the entries.
_HEAD = struct.Struct("<8sIIQQI")
_CRC = struct.Struct("<I")
_MAGIC = CHECKSUMS.magic
_VERSION = 1
LARGEST_FILE = 2**63 - 1
_NATIVE = ENTRY.newbyteorder("=")

# Pieces of work between two looks at pending signals.
cdef enum:
    CHUNK_RECORDS = 4096
    CHUNK_BYTES = 1 << 26

_REMEDY = (
    "`recordio check --write-checksums` makes it again, for a record file that is known to be whole"
)


cdef int64_t find_entry(const Table* table, int64_t offset) noexcept nogil:
    """The entry of the record at an offset, or -1."""
    cdef int64_t low = 0, high = table.count, middle
    while low < high:
        middle = low + (high - low) // 2
        if table.entries[middle].offset < offset:
            low = middle + 1
        else:
            high = middle
    return low if low < table.count and table.entries[low].offset == offset else -1


cdef int checksum_check(const Table* table, const uint8_t* base, const Frame* frame) noexcept nogil:
    cdef int64_t number = find_entry(table, frame.offset), length = frame.end - frame.offset
    cdef const Entry* entry = table.entries + number
    if number < 0:
        return CHECKSUM_ABSENT
    if length != entry.length or crc32c_of(base + frame.offset, length) != entry.crc:
        return CHECKSUM_WRONG
    return CHECKSUM_OK


cdef object checksum_error(int status, path, int64_t offset, record):
    name = checksums_path(path)
    if status == CHECKSUM_ABSENT:
        reason = f"{name} knows no record that begins here: the index is that of another file"
    else:
        reason = (
            f"the bytes of the record are not those that {name} was made of: it is damaged;"
            " `recordio check` lists all such records, --repair saves the others"
        )
    return ChecksumError(reason, path=path, offset=offset, record=record)


cdef class Checksums:
    """The checksums of the records of one file, in its order and without gaps, 16 bytes for each.

    >>> from recordio.frames.encoder import encode
    >>> data = encode(b"one") + encode(b"three")
    >>> checksums = Checksums(checksum_entries(data, np.array([0, 12])), len(data))
    >>> len(checksums), checksums.offsets, compare(data, checksums).holds
    (2, array([ 0, 12]), array([ True,  True]))
    """

    def __init__(self, entries, size, path=None):
        cdef const uint8_t[::1] raw
        self.path = None if path is None else os.fsdecode(path)
        self.size = size
        self.entries = np.ascontiguousarray(entries, _NATIVE)
        # Unsigned: an offset and a length from a file may add up to anything.
        begins = self.entries["offset"].astype(np.uint64)
        ends = begins + self.entries["length"]
        gapless = np.array_equal(np.append(np.uint64(0), ends), np.append(begins, np.uint64(size)))
        if not gapless or np.any(self.entries["length"] < FRAME_HEAD):
            raise ChecksumFileError(
                f"its entries do not follow one another from 0 to {size}; {_REMEDY}",
                path=self.path,
            )
        self.table.entries, self.table.count = NULL, len(self.entries)
        if len(self.entries):
            raw = self.entries.view(np.uint8)
            self.table.entries = <const Entry*>&raw[0]

    def __len__(self):
        """Number of records."""
        return self.table.count

    @property
    def offsets(self):
        """Byte offsets of the records: int64 array of shape (n,)."""
        return np.ascontiguousarray(self.entries["offset"])

    def check_size(self, path, int64_t size):
        """Raise ChecksumFileError if the record file `path` is not as long as these say."""
        if size != self.size:
            raise ChecksumFileError(
                f"describes a record file of {self.size} bytes, and {os.fsdecode(path)} has {size}:"
                " it belongs to another file, or that one was truncated or continued;"
                f" `recordio check` tells what is whole. {_REMEDY}",
                path=self.path,
            )


class Comparison(NamedTuple):
    """Some records compared with their checksums."""

    #: Whether each record is as it was: bool array.
    holds: object
    #: How many of those are stored in several parts.
    multipart: int
    #: Bytes in those, without heads and padding.
    payload_bytes: int


def compare(data, Checksums checksums not None, int64_t first=0):
    """Compare a few thousand records of a whole file with their checksums, from `first` on."""
    cdef const uint8_t[::1] view = data
    cdef const uint8_t* base = &view[0] if view.shape[0] else NULL
    cdef int64_t size = view.shape[0], count = 0, done = 0, multipart = 0, payload_bytes = 0
    cdef const Entry* entry
    cdef Frame frame
    holds = np.zeros(max(min(checksums.table.count - first, CHUNK_RECORDS), 0), np.bool_)
    cdef uint8_t[::1] out = holds.view(np.uint8)
    with nogil:
        while count < out.shape[0] and done < CHUNK_BYTES:
            entry = checksums.table.entries + first + count
            if (entry.offset + entry.length <= size
                    and frame_scan(base, size, entry.offset, &frame) == FRAME_OK
                    and checksum_check(&checksums.table, base, &frame) == CHECKSUM_OK):
                out[count] = True
                multipart += frame.parts > 1
                payload_bytes += frame.length
            done += entry.length
            count += 1
    PyErr_CheckSignals()
    return Comparison(holds[:count], multipart, payload_bytes)


def checksum_entries(data, offsets):
    """Compute the checksums of all records of a file, which begin at the ascending offsets."""
    view = memoryview(data)
    entries = np.zeros(len(offsets), ENTRY)
    entries["offset"] = offsets
    entries["length"] = np.diff(np.append(offsets, len(view)))
    entries["crc"] = [crc32c(view[at:at + length]) for at, length, _ in entries.tolist()]
    return entries


def checksums_path(path):
    """Name the file beside a record file in which its checksums are.

    >>> checksums_path("data/train.rec")
    'data/train.crc'
    """
    return os.path.splitext(os.fsdecode(path))[0] + CHECKSUMS.ending


def is_checksums(path, settings=None):
    """Tell whether a file, or the object at a URL, exists and begins as one of checksums does."""
    return StoredFile.at(path).first_bytes(len(_MAGIC), settings) == _MAGIC


def read_checksums(path):
    """Read a ``.crc`` file; one that is missing, damaged or of another kind is an error."""
    def wrong(reason):
        return ChecksumFileError(f"{reason}; {_REMEDY}", path=path)

    if not StoredFile.at(path).is_local:
        return StoredFile.at(path).parsed(read_checksums)
    try:
        with StoredFile.at(path).open() as file:
            head = file.read(_HEAD.size + _CRC.size)
            if head[: len(_MAGIC)] != _MAGIC[: len(head)]:
                raise wrong("this is no file of checksums")
            if len(head) < _HEAD.size + _CRC.size:
                raise wrong("the file ends inside its header")
            _, version, width, count, size, _ = _HEAD.unpack_from(head)
            if version != _VERSION or width != ENTRY.itemsize:
                raise wrong(f"version {version} of the format is not known here")
            if size > LARGEST_FILE:
                raise wrong(f"no record file has {size} bytes")
            # Before memory is taken for what is not there.
            there = os.fstat(file.fileno()).st_size - len(head)
            if there != count * width:
                raise wrong(f"{count} records take {count * width} bytes, and there are {there}")
            table = file.read(count * width)
    except FileNotFoundError as error:
        raise wrong("there is no such file") from error
    if crc32c(table, crc32c(head[: _HEAD.size])) != _CRC.unpack_from(head, _HEAD.size)[0]:
        raise wrong("the file is damaged: its own checksum is another one")
    return Checksums(np.frombuffer(table, ENTRY), size, path)


def format_checksums(entries, size):
    """Yield the bytes of the ``.crc`` file of a record file of `size` bytes, in pieces."""
    table = np.ascontiguousarray(entries, ENTRY).tobytes()
    head = _HEAD.pack(_MAGIC, _VERSION, ENTRY.itemsize, len(entries), size, 0)
    yield head
    yield _CRC.pack(crc32c(table, crc32c(head)))
    yield table
