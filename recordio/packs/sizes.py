"""Width and height of the image of every record, read from the heads once and kept: ``.sizes``.

The file names the pack that it belongs to, and ends with a checksum: one of another pack, or one
that is not whole, is made anew.  docs/formats/sizes.md has its layout.  No pixel is decoded.
"""

from __future__ import annotations

import contextlib
import os
import struct
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ..bytes.crc32c import crc32c
from ..bytes.files import StoredFile, open_output
from ..bytes.mapping import map_file
from ..bytes.remote.heads import LARGE_RECORD, record_heads
from ..bytes.remote.settings import RemoteSettings
from ..containers.index import UNREADABLE, index_paths, write_beside_or_cached
from ..containers.reader import ContainedRecords
from ..errors import RecordIOError, RemoteFileError
from ..formats.image_header import read_header
from ..formats.jpeg_markers import jpeg_sizes
from ..frames.companions import SIZES
from ..frames.head import FRAMED_HEADER, HEAD, MAGIC_WORD, flag_of, length_of
from ..header import HEADER
from ..ordered import map_in_order
from ..payload import read_payload

MAGIC = SIZES.magic
SUFFIX = SIZES.ending
#: Magic, records, bytes of the file, and a check of where the records lie and how the file begins
#: and ends.
START = struct.Struct("<16sQQI")
CHECKSUM = struct.Struct("<I")
#: Bytes at both ends of a file that tell it from another one.
ENDS = 4096
#: Bytes of a record that are read first, and records that a thread takes at a time.
HEAD_BYTES, AT_ONCE = 4096, 1024
#: No image is larger; what says so is damaged.
LARGEST = (1 << 32) - 1


class SizedFile:
    """One file with images: where each record lies, and its content.

    Images begin at `begins` in the file, as far as they are spans of it.
    """

    file: StoredFile
    remote: Any
    settings: RemoteSettings | None = None
    #: Offset of every record, or the number by which a library reads it: int64.
    offsets: np.ndarray
    #: Which records are spans of the file: bool.
    spans: np.ndarray
    #: Where facts about the file are best kept.
    beside: StoredFile

    def __len__(self) -> int:
        return len(self.offsets)

    def within(self, rows: slice, heads: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Find where in the bytes of some records their contents begin and end: int64."""
        raise NotImplementedError

    def content(self, row: int) -> Any:
        """Read the content of one record."""
        raise NotImplementedError

    def offset_pieces(self) -> Iterable[np.ndarray]:
        """Give the offsets in their order, in one piece or several."""
        return [self.offsets]

    def bound(self, magic: bytes = MAGIC) -> bytes:
        """Return the start of a file, of sizes or whatever, that belongs to this one as it is."""
        size, _ = self.file.version()
        check = 0
        for piece in self.offset_pieces():
            check = crc32c(np.ascontiguousarray(piece, "<i8").data, check)
        if self.remote is not None:
            _, *ends = StoredFile(self.file.name, self.remote.mirror).ends(ENDS)
        elif os.path.isfile(self.file.name):
            _, *ends = self.file.ends(ENDS)
        else:
            ends = [repr(self.versions()).encode()]
        for end in ends:
            check = crc32c(end, check)
        return START.pack(magic, len(self), size, check)

    def versions(self) -> list[Any]:
        """Give what changes with the content of a folder."""
        return [self.file.version()]


class SizedRecords(SizedFile):
    """A record file, and the offsets of all its records."""

    def __init__(
        self,
        file: StoredFile,
        reader: Any,
        offsets: np.ndarray,
        settings: RemoteSettings | None = None,
    ) -> None:
        self.file: StoredFile = file
        self.reader: Any = reader
        self.remote: Any = reader.remote
        self.settings: RemoteSettings | None = settings
        self.offsets: np.ndarray = offsets
        self.spans: np.ndarray = np.ones(len(self.offsets), bool)
        self.beside: StoredFile = file.beside(SUFFIX)

    def within(self, rows: slice, heads: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Find contents behind the frame and the image header."""
        framed = np.ascontiguousarray(heads[:, : FRAMED_HEADER.itemsize]).view(FRAMED_HEADER)[:, 0]
        length = length_of(framed["lrec"]).astype(np.int64)
        begins = HEADER.size + 4 * framed["flag"].astype(np.int64)
        plain = (framed["magic"] == MAGIC_WORD) & (flag_of(framed["lrec"]) == 0)
        plain &= begins <= length
        return np.where(plain, HEAD.itemsize + begins, -1), HEAD.itemsize + length

    def content(self, row: int) -> Any:
        """Read what follows the image header, or all of a record without one."""
        record, _ = self.reader.read_at(int(self.offsets[row]))
        return b"" if record is None else read_payload(record).content


class SizedSamples(SizedFile):
    """A container, behind its reader."""

    def __init__(self, reader: ContainedRecords) -> None:
        self.file: StoredFile = reader.file
        self.reader: ContainedRecords = reader
        self.remote: Any = reader.remote
        self.settings: RemoteSettings | None = reader.settings
        self.offsets: np.ndarray = reader.samples.offsets
        packed = reader.packed if not reader.container.is_folder else np.ones(len(reader), bool)
        self.spans: np.ndarray = ~packed & (reader.samples.sizes > 0)
        self.beside: StoredFile = StoredFile(reader.file.name.rstrip("/") + SUFFIX)

    def within(self, rows: slice, heads: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Contents begin where samples do."""
        return np.where(self.spans[rows], 0, -1), self.reader.samples.sizes[rows]

    def content(self, row: int) -> Any:
        """Read what the file or the library has."""
        return self.reader.content(row)

    def versions(self) -> list[Any]:
        """Give names, sizes and times of the files of a folder."""
        reader = self.reader
        if not reader.container.is_folder:
            return [self.file.version(), len(reader), reader.samples.names.tobytes()]
        names = map(reader.samples.name_of, range(len(reader)))
        return [(name, StoredFile(os.path.join(self.file.name, name)).version()) for name in names]


class SizedPaths(SizedFile):
    """Image files that a list names; a file that cannot be read has no size."""

    remote = None

    def __init__(self, paths: Sequence[str]) -> None:
        self.paths: Sequence[str] = paths
        self.offsets: np.ndarray = np.arange(len(paths))
        self.spans: np.ndarray = np.zeros(len(paths), bool)

    def content(self, row: int) -> Any:
        """Read a file."""
        try:
            with open(self.paths[row], "rb") as file:
                return file.read()
        except OSError:
            return b""


# ---- what is kept


def stored_sizes(file: SizedFile) -> np.ndarray:
    """Return width and height of the image of every record: uint32, (records, 2).

    They are of the upright image; both are 0 where a record holds no image whose size can be read.
    What was not kept is read now, and kept beside the file or in a cache folder.
    """
    bound = file.bound()
    sizes = _kept(file, bound)
    if sizes is None:
        sizes = measured_sizes(file)
        if file.bound() == bound:  # else somebody writes it just now
            write_beside_or_cached(_paths(file), _pieces(bound, sizes))
    return sizes


def kept_sizes(file: SizedFile) -> np.ndarray | None:
    """Return the sizes, as `stored_sizes` has them, if they are kept; None if they are not."""
    kept = any(map(os.path.exists, _paths(file))) or (
        not file.file.is_local and file.beside.exists()
    )
    return _kept(file, file.bound()) if kept else None


def write_sizes(
    file: SizedFile,
    advance: Callable[[int], object] = lambda count: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> tuple[str, np.ndarray]:
    """Read all sizes again, and write them beside the file, on a server, too: name and sizes."""
    bound = file.bound()
    sizes = measured_sizes(file, advance, cancelled)
    with open_output(file.beside.name, settings=file.settings) as output:
        for piece in _pieces(bound, sizes):
            output.write(piece)
    return file.beside.name, sizes


def _paths(file: SizedFile) -> list[str]:
    return index_paths(file.file, SUFFIX, file.beside.name)


def with_checksum(*pieces: Any) -> list[Any]:
    """Return the pieces of a file, and behind them the checksum of all."""
    check = 0
    for piece in pieces:
        check = crc32c(piece, check)
    return [*pieces, CHECKSUM.pack(check)]


def without_checksum(path: str, bound: bytes) -> memoryview | None:
    """Map what stands between the start and the checksum of a file with one; None of any other."""
    data = map_file(path)
    end = len(data) - CHECKSUM.size
    if bytes(data[: len(bound)]) != bound or crc32c(data[:end]) != CHECKSUM.unpack(data[end:])[0]:
        return None
    return data[len(bound) : end]


def _pieces(bound: bytes, sizes: np.ndarray) -> list[Any]:
    return with_checksum(bound, np.ascontiguousarray(sizes, "<u4").data)


def _kept(file: SizedFile, bound: bytes) -> np.ndarray | None:
    for path in _paths(file):
        if file.file.is_local and is_older(path, file.file.name):
            continue
        sizes = _read(path, bound)
        if sizes is not None:
            return sizes
    if not file.file.is_local and file.beside.exists():
        return file.beside.parsed(lambda path: _read(path, bound), file.settings)
    return None


def is_older(path: str, name: str) -> bool:
    """Return True for what is older than a file: one of the same size may have taken its place."""
    return StoredFile(path).version()[1] < StoredFile(name).version()[1]


def _read(path: str, bound: bytes) -> np.ndarray | None:
    """Read a file of sizes that is whole and belongs to a pack; None of any other."""
    try:
        data = without_checksum(path, bound)
        if data is None:
            return None
        table = np.frombuffer(data, "<u4").reshape(-1, 2)
    except UNREADABLE:
        return None
    return table if len(table) == START.unpack(bound)[1] else None


# ---- what is read


def measured_sizes(
    file: SizedFile,
    advance: Callable[[int], object] = lambda count: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> np.ndarray:
    """Read the sizes, as `stored_sizes` has them, and keep them nowhere."""
    sizes = np.zeros((len(file), 2), np.uint32)
    heads = _Heads(file)

    def work(chunk: tuple[slice, np.ndarray | None]) -> int:
        rows, taken = chunk
        left = np.arange(rows.start, rows.stop)
        if taken is None:
            taken = heads.read(rows)
        if taken is not None:
            is_measured = jpeg_sizes(taken, *file.within(rows, taken), sizes[rows])
            left = left[~is_measured]
        for row in left.tolist():
            sizes[row] = _size_of(file, row)
        return rows.stop - rows.start

    with contextlib.closing(map_in_order(work, heads.chunks(), cancelled=cancelled)) as counts:
        for count in counts:
            advance(count)
    return sizes


def _size_of(file: SizedFile, row: int) -> tuple[int, int]:
    """Read the size of one image, upright; two zeros where there is none."""
    try:
        content = file.content(row)
        if not len(content):
            return 0, 0
        width, height = read_header(content).size
        return (
            (width, height) if 0 < min(width, height) <= max(width, height) <= LARGEST else (0, 0)
        )
    except RemoteFileError:
        raise
    except RecordIOError:
        return 0, 0


class _Heads:
    """The first bytes of records, some at a time."""

    def __init__(self, file: SizedFile) -> None:
        self.file = file
        remote, local = file.remote, file.remote is None and bool(file.spans.any())
        #: Heads are all that is read of large images.
        large = (local or remote is not None) and file.file.size() // len(file) >= LARGE_RECORD
        #: Heads are fetched without what follows them.
        self._far = large and remote is not None and not remote.mirror.complete
        #: The file on this machine, read without what the system would read ahead, or its bytes.
        self._descriptor, self._view = None, file.file.map() if local else memoryview(b"")
        if local and hasattr(os, "pread"):
            opened = file.file.open(0)
            weakref.finalize(self, opened.close)
            self._descriptor = opened.fileno()
            if large and hasattr(os, "posix_fadvise"):
                os.posix_fadvise(self._descriptor, 0, 0, os.POSIX_FADV_RANDOM)

    def chunks(self) -> Iterator[tuple[slice, np.ndarray | None]]:
        """Yield some rows after the other, with their heads where these come from a server."""
        file, remote = self.file, self.file.remote
        if self._far:
            for first, heads in record_heads(remote.mirror, file.offsets, HEAD_BYTES):
                yield slice(first, first + len(heads)), heads
            return
        for first in range(0, len(file), AT_ONCE):
            rows = slice(first, min(first + AT_ONCE, len(file)))
            if remote is None:
                yield rows, None
            else:
                with remote.pin(file.offsets[rows]):
                    heads = self._viewed(rows, remote.mirror.view)
                yield rows, heads

    def read(self, rows: slice) -> np.ndarray | None:
        """Read heads from the disk; None where contents are no spans of a file."""
        spans = self.file.spans[rows]
        if not spans.any():
            return None
        if self._descriptor is None:
            return self._viewed(rows, self._view)
        heads = np.zeros((len(spans), HEAD_BYTES), np.uint8)
        for head, offset, is_span in zip(heads, self.file.offsets[rows], spans, strict=True):
            if is_span:
                data = os.pread(self._descriptor, HEAD_BYTES, int(offset))
                head[: len(data)] = np.frombuffer(data, np.uint8)
        return heads

    def _viewed(self, rows: slice, view: memoryview) -> np.ndarray:
        heads = np.zeros((rows.stop - rows.start, HEAD_BYTES), np.uint8)
        for head, offset in zip(heads, self.file.offsets[rows].tolist(), strict=True):
            data = view[offset : offset + HEAD_BYTES]
            head[: len(data)] = np.frombuffer(data, np.uint8)
        return heads
