"""Write record files: a new one, or an existing one continued, with its index beside it.

The files appear, complete and together, when the writer is closed; nobody ever sees a part of them.
This module does not know what is in a record.
"""

from __future__ import annotations

import os
import threading
import warnings
from array import array
from collections.abc import Mapping
from operator import index as as_integer
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, SupportsIndex

import numpy as np

from recordio.bytes.crc32c import crc32c
from recordio.bytes.files import StoredFile, open_output
from recordio.bytes.remote.objects import redacted_url
from recordio.bytes.remote.settings import RemoteSettings
from recordio.errors import IndexFileError, RecordIOError, RemoteFileError
from recordio.frames.checksums import (
    ENTRY,
    checksums_path,
    format_checksums,
    read_checksums,
)
from recordio.frames.companions import stale_files
from recordio.frames.encoder import encode, encode_into
from recordio.frames.index_file import format_index
from recordio.frames.reader import RecordReader

if TYPE_CHECKING:
    from typing_extensions import Buffer  # nothing of it is installed with the package

_BUFFER = 1 << 20
_KEY_LIMIT = 1 << 63
_UNLISTED = object()


class RecordWriter:
    """Write records to a file that appears when the writer is closed.

    Parameters
    ----------
    path : str or os.PathLike
        The record file, or its URL; replaced if it exists.
    index : str or os.PathLike, optional
        The ``.idx`` file to write with it, a URL if `path` is one.
    append : bool
        Continue an existing file, with `index` if it is given.  The existing records are copied
        first (without reading them where the file system can share blocks), so that appending, too,
        is all or nothing.  A file that does not exist is created.  URLs cannot be continued.
    checksums : bool
        Write ``PREFIX.crc`` as well, the CRC-32C of every record; ``append=True`` continues the
        existing one.  If False, an existing ``PREFIX.crc`` is removed, as ``PREFIX.sizes`` and
        ``PREFIX.entry`` are in any case.
    remote_timeout : float, optional
        Seconds for which a failing request to the server of a URL is repeated, and within which a
        part of 16 MiB has to be sent; 60 by default.
    remote_options : mapping, optional
        How to reach that server; see `RemoteSettings`.

    Attributes
    ----------
    path, index_path : str
        As given; `index_path` is None without an index.
    closed : bool
        Whether the writer was closed or discarded.

    Raises
    ------
    OSError
        If a folder is missing, not writable or full; also from `write` and `close`.
    CorruptRecordError, TruncatedRecordError
        For ``append=True``, if the existing file does not end with a whole record.
    RemoteFileError
        If a URL cannot be written, also from `write` and `close`; or for a URL and ``append=True``.
    ChecksumFileError
        For ``append=True`` and ``checksums=True``, if the checksums of the existing file are
        missing or those of another file.
    IndexFileError
        For ``append=True``, if the existing index cannot be parsed, does not belong to the file, or
        if only one of the two files exists.

    Notes
    -----
    Everything is written to temporary files in the same folders.  `close`, or leaving a ``with``
    block, flushes them to the disk and renames them; an exception inside the block (Ctrl-C too), a
    full disk, or dropping a writer that was not closed removes them and leaves the old files as
    they were.  Index and record file are never of different versions: the old index is removed
    first, then the record file is replaced, then the new index appears.  A crash in between leaves
    a record file, old or new but whole, without its index; `recordio.build_index` writes that
    again.  SIGKILL or a crash can leave temporary files named ``*.partial`` or ``*.replaced``; the
    next writer of the same file removes them.

    A URL is written in parts by a thread while records are added, with nothing on the disk and
    about 100 MiB in memory.  The object appears at `close`;
    `recordio.bytes.remote.output.RemoteOutput` describes the guarantees.

    Any number of threads may write to one writer.  A forked child cannot use it.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "a.rec")
    >>> with RecordWriter(path, path.with_suffix(".idx")) as writer:
    ...     writer.write(b"first")
    ...     writer.write(b"second", key=20)
    ...     path.exists()
    0
    16
    False
    >>> with RecordWriter(path, path.with_suffix(".idx"), append=True) as writer:
    ...     writer.write(b"third")
    32
    >>> path.with_suffix(".idx").read_text().split()
    ['0', '0', '20', '16', '21', '32']
    """

    #: Number of its first file among those of the output.
    _first = 0

    def __init__(
        self,
        path: str | os.PathLike[str],
        index: str | os.PathLike[str] | None = None,
        append: bool = False,
        checksums: bool = False,
        *,
        remote_timeout: float | None = None,
        remote_options: Mapping[str, Any] | None = None,
    ) -> None:
        self.path: str = os.fsdecode(path)
        self.index_path: str | None = None if index is None else os.fsdecode(index)
        self._lock = threading.Lock()
        self._buffer = bytearray(_BUFFER)
        self._used = 0
        self._written = 0
        self._next_key = 0
        self._lines = array("q")  # key, offset, key, offset ... that are not formatted yet
        self._has_checksums = bool(checksums)
        self._checked = array("q")  # offset, CRC, offset, CRC ... of all records
        settings = RemoteSettings(remote_timeout=remote_timeout, remote_options=remote_options)
        if append and not StoredFile.at(self.path).is_local:
            raise RemoteFileError(
                "records cannot be appended to an object: write another one and read both (all"
                " providers take several), or append to a local copy and upload that",
                path=redacted_url(self.path),
            )
        size = self._check_existing() if append else None
        paths = [self.path] if self.index_path is None else [self.path, self.index_path]
        if checksums:
            paths.append(checksums_path(self.path))
        self._output = self._open(paths, stale_files(self.path, paths, settings), settings)
        if size is not None:
            self._copy_existing(size)

    def _open(self, paths: list[str], without: list[str], settings: RemoteSettings) -> Any:
        """Open the output to its files."""
        return open_output(*paths, without=without, settings=settings)

    def _check_existing(self) -> int | None:
        """Size of the whole file that is to be continued, or None if there is none."""
        present = os.path.exists(self.path)
        if self.index_path is not None and os.path.exists(self.index_path) != present:
            missing = self.index_path if present else self.path
            raise IndexFileError(
                "to append, record file and index must both exist, or neither;"
                " recordio.build_index() writes the index of a record file",
                path=missing,
            )
        if not present:
            return None
        if self._has_checksums:
            old = read_checksums(checksums_path(self.path))
            old.check_size(self.path, StoredFile(self.path).size())
            for offset, _, crc in old.entries.tolist():
                self._checked.extend((offset, crc))
        with RecordReader(self.path, self.index_path, selection=True) as reader:
            start, before = 0, 0
            if self.index_path is not None and len(reader):
                # Records are chained forwards only: from the last one that is listed to the end.
                start, before = int(reader.offsets.max()), len(reader) - 1
                self._next_key = max(int(reader.keys.max()) + 1, 0)
            size = reader.check_tail(start, before)
            fault = None if self.index_path is None else reader._index_fault()
            if fault is not None:
                raise fault
            return size

    def _copy_existing(self, size: int) -> None:
        try:
            self._written = self._output.copy_existing(0)
            if self._written != size:
                raise RecordIOError("the file changed while it was copied", path=self.path)
            if self.index_path is not None:
                self._output.copy_existing(1, end_with=b"\n")
        except BaseException:
            self.discard()
            raise

    @property
    def closed(self) -> bool:
        """True after the files were published or discarded."""
        return bool(self._output.closed)

    def write(self, buf: Buffer, key: SupportsIndex | None = None) -> int:
        """Append a record.

        Parameters
        ----------
        buf : bytes-like
            At most ``2**29 - 1`` bytes; may be empty.
        key : int, optional
            Its key in the index, -2**63 to 2**63 - 1; by default one more than the largest so far,
            which is the position of the record if no keys are given.  Keys may repeat; readers
            find the last record with a key.

        Returns
        -------
        int
            Byte offset of the record in the file.

        Raises
        ------
        RecordTooLargeError
            If `buf` has ``2**29`` bytes or more; the writer stays usable.
        ValueError
            If the writer is closed, or a key is too large or is given without an index.
        OSError
            If the disk is full; the new files are then removed.
        """
        if self.index_path is None:
            if key is not None:
                raise ValueError(f"the writer of {self.path} has no index to hold the key {key!r}")
            return self._append(buf)
        return self._append(buf, None if key is None else as_integer(key))

    def _append(self, data: Buffer, key: object = _UNLISTED) -> int:
        """Write a record and return its offset.

        `key` goes to the index: an int, None for the next one, the text of a key that is no int,
        or nothing at all.
        """
        output = self._output
        # Before the lock as well: a forked child may have inherited it locked, for ever.
        output.check_usable()
        with self._lock:
            if output.closed:
                output.check_usable()
            if key is None:
                key = self._next_key
            if isinstance(key, int) and not -_KEY_LIMIT <= key < _KEY_LIMIT:
                raise ValueError(f"the key {key} does not fit into 64 bits")
            offset = self._written + self._used
            end = encode_into(self._buffer, self._used, data)
            if end < 0:
                self._flush()
                end = encode_into(self._buffer, 0, data)
            frame = encode(data) if end < 0 else None
            if self._has_checksums:
                self._note_checksum(offset, frame, end)
            if frame is not None:
                self._write_out(0, frame)
            else:
                self._used = end
            if isinstance(key, int):
                self._lines.append(key)
                self._lines.append(offset)
                if key >= self._next_key:
                    self._next_key = key + 1
            elif key is not _UNLISTED:
                self._write_out(1, f"{key}\t{offset}\n".encode())
        return offset

    def _note_checksum(self, offset: int, frame: bytes | None, end: int) -> None:
        """Keep the CRC of a frame, which ends at `end` in the buffer or has bytes of its own."""
        data = memoryview(self._buffer)[self._used : end] if frame is None else frame
        self._checked.extend((offset, crc32c(data)))

    def _flush(self) -> None:
        used, self._used = self._used, 0
        self._write_out(0, memoryview(self._buffer)[:used])
        if self._lines:
            pairs = np.array(self._lines).reshape(-1, 2)
            del self._lines[:]
            for piece in format_index(pairs[:, 0], pairs[:, 1]):
                self._write_out(1, piece)

    def _write_out(self, file: int, data: bytes | memoryview) -> None:
        try:
            self._output.files[self._first + file].write(data)
        except BaseException:
            self._output.discard()
            raise
        if file == 0:
            self._written += len(data)

    def tell(self) -> int:
        """Byte offset at which the next record will begin."""
        self._output.check_usable()
        return self._written + self._used

    def close(self) -> None:
        """Publish the files; does nothing if the writer is closed already."""
        if self._output.closed:
            return
        self._output.check_usable()
        with self._lock:
            if not self._output.closed:
                self._finish()
                self._output.commit()

    def _finish(self) -> None:
        """Write what is left."""
        self._flush()
        if self._has_checksums:
            self._write_checksums()

    def _write_checksums(self) -> None:
        pairs = np.array(self._checked, np.int64).reshape(-1, 2)
        entries = np.zeros(len(pairs), ENTRY)
        entries["offset"], entries["crc"] = pairs.T
        entries["length"] = np.diff(entries["offset"], append=self._written)
        for piece in format_checksums(entries, self._written):
            self._write_out(1 if self.index_path is None else 2, piece)

    def discard(self) -> None:
        """Remove the temporary files and leave the old files as they were."""
        self._output.discard()

    def __enter__(self) -> Self:
        self._output.check_usable()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()

    def __del__(self) -> None:
        output = getattr(self, "_output", None)
        if output is not None and not output.closed and output.owned:
            output.discard()
            warnings.warn(
                f"the writer of {self.path} was dropped without close(): nothing was written",
                ResourceWarning,
                stacklevel=2,
                source=self,
            )

    def __repr__(self) -> str:
        return f"RecordWriter({self.path!r}{', closed' if self.closed else ''})"
