"""`MXRecordIO` and `MXIndexedRecordIO`: MXNet's names and rules over this package's files.

Thin on purpose: frames, maps and atomic output live in the modules below.  For new code there are
`RecordReader` and `RecordWriter`.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from recordio.bytes.files import StoredFile, open_text
from recordio.errors import IndexFileError, KeyNotFoundError, RecordIOError
from recordio.exit_hooks import at_end
from recordio.frames.listing import listing_fault
from recordio.frames.reader import RecordReader
from recordio.frames.writer import RecordWriter

if TYPE_CHECKING:
    import weakref

    from typing_extensions import Buffer  # nothing of it is installed with the package


class MXRecordIO:
    """Read or write a record file in order, as ``mxnet.recordio.MXRecordIO`` does.

    Parameters
    ----------
    uri : str or os.PathLike
        The record file; for reading also a URL (``s3://...``).
    flag : {"r", "w"}
        Read, or write a new file.

    Attributes
    ----------
    uri, flag
        As given.
    is_open : bool
        Whether it can be read or written now.
    writable : bool
        Whether it was opened with ``"w"``.

    Raises
    ------
    ValueError
        If `flag` is neither ``"r"`` nor ``"w"``.
    OSError
        If the file cannot be opened.
    RecordIOError
        If `uri` is ``stdin`` or ``stdout``, or a URL to write to.

    Notes
    -----
    Differences from MXNet:

    * Damage, a truncated tail included, raises a `RecordIOError` with path, offset and record, each
      time it is met; it never turns into an end of the file.
    * A writer works on a temporary file, and the old file stays until `close`, dropping the object
      or the end of the process publishes the new one.  The end of the process is that of the
      program, of a child of ``os.fork`` that leaves by ``sys.exit``, and of a worker of
      multiprocessing, forked or not; a signal (``Process.terminate``, leaving the ``with`` block of
      a ``Pool``) and ``os._exit`` publish nothing.  Neither does a ``with`` block that is left by
      an exception.  `reset` of a writer discards its records and starts an empty file.
    * `write` takes any bytes-like object.
    * Pickling leaves the object open.  A reader is unpickled open at its first record, a writer
      closed.
    * A reader can be used in a forked child, from its position; a writer cannot.
    * It is iterable, has `tell`, and works in a ``with`` block.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = str(pathlib.Path(tempfile.mkdtemp(), "a.rec"))
    >>> record = MXRecordIO(path, "w")
    >>> for number in range(3):
    ...     record.write(b"record_%d" % number)
    >>> record.close()
    >>> record = MXRecordIO(path, "r")
    >>> record.read(), record.read(), record.read(), record.read()
    (b'record_0', b'record_1', b'record_2', None)
    """

    def __init__(self, uri: str | os.PathLike[str], flag: Literal["r", "w"]) -> None:
        self.uri: str | os.PathLike[str] = uri
        self.flag: Literal["r", "w"] = flag
        self._reader: RecordReader | None = None
        self._writer: RecordWriter | None = None
        self._publisher: weakref.finalize[..., Any] | None = None
        self._offset = 0
        self._position: int | None = 0
        self.open()

    @property
    def writable(self) -> bool:
        """True if the file was opened for writing."""
        return self.flag == "w"

    @property
    def is_open(self) -> bool:
        """True while the file can be read or written."""
        return self._reader is not None or self._writer is not None

    def open(self) -> None:
        """Open the file at its first record; a writer starts an empty file."""
        if self.flag not in ("r", "w"):
            raise ValueError(f"Invalid flag {self.flag!r}: expected 'r' or 'w'")
        path = os.fsdecode(self.uri)
        if path in ("stdin", "stdout"):
            raise RecordIOError(
                "only files can be opened; for a file of this name give its full path", path=path
            )
        if self.writable and not StoredFile.at(path).is_local:
            raise RecordIOError("only local files can be written", path=path)
        self.close()
        if self.writable:
            self._writer = self._open_writer(path)
            # Unlike __del__, this also runs, in time, at the end of the program.
            self._publisher = at_end(self, _publish, self._writer)
        else:
            self._reader = self._open_reader(path)
            self._offset = 0
            self._position = 0

    def _open_writer(self, path: str) -> RecordWriter:
        return RecordWriter(path)

    def _open_reader(self, path: str) -> RecordReader:
        return RecordReader(path)

    def close(self) -> None:
        """Close the file; a writer publishes what was written.  May be called again."""
        reader, writer = self._reader, self._writer
        self._reader = self._writer = None
        if reader is not None:
            reader.close()
        if writer is not None:
            self._detach()
            _publish(writer)

    def _detach(self) -> None:
        if self._publisher is not None:
            self._publisher.detach()

    def reset(self) -> None:
        """Go back to the first record; a writer discards its records and starts an empty file."""
        self._discard()
        self.open()

    def _discard(self) -> None:
        if self._writer is not None:
            self._detach()
            self._writer.discard()
            self._writer = None

    def write(self, buf: Buffer) -> None:
        """Append a record.

        Parameters
        ----------
        buf : bytes-like
            At most ``2**29 - 1`` bytes.

        Raises
        ------
        RecordTooLargeError
            If `buf` has ``2**29`` bytes or more.
        ValueError, AssertionError
            If the file is closed, or open for reading.
        OSError
            If the disk is full; the new file is then removed.
        """
        self._for_writing()._append(buf)

    def read(self) -> bytes | None:
        """Return the next record, or None after the last one.

        Returns
        -------
        bytes or None

        Raises
        ------
        CorruptRecordError, TruncatedRecordError
            If no whole record begins at this position.
        ValueError, AssertionError
            If the file is closed, or open for writing.
        """
        reader = self._for_reading()
        if reader.remote is not None:
            reader.remote.prefetch_from(self._offset)
        payload, self._offset = reader.read_at(self._offset, self._position, copy=True)
        if payload is None:
            return None
        if self._position is not None:
            self._position += 1
        return payload

    def tell(self) -> int:
        """Return the byte offset at which the next record will be read or written."""
        if self.writable:
            return self._for_writing().tell()
        self._for_reading()
        return self._offset

    def _for_reading(self) -> RecordReader:
        if self.writable:
            raise AssertionError(f"{self.uri} is open for writing, not for reading")
        if self._reader is None:
            raise ValueError(f"{self.uri} is closed; reset() opens it again")
        return self._reader

    def _for_writing(self) -> RecordWriter:
        if not self.writable:
            raise AssertionError(f"{self.uri} is open for reading, not for writing")
        if self._writer is None:
            raise ValueError(f"{self.uri} is closed")
        return self._writer

    def __iter__(self) -> Iterator[bytes]:
        """Iterate over the records from the current one on."""
        self._for_reading()
        return iter(self.read, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is not None:
            self._discard()
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        state = {name: value for name, value in vars(self).items() if not name.startswith("_")}
        return state | {"is_open": self._reader is not None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        was_open = state.pop("is_open")
        self._reader = self._writer = self._publisher = None
        vars(self).update(state)
        if was_open:
            self.open()


class MXIndexedRecordIO(MXRecordIO):
    """Read or write a record file by key, as ``mxnet.recordio.MXIndexedRecordIO`` does.

    Parameters
    ----------
    idx_path : str or os.PathLike
        The ``.idx`` file.
    uri : str or os.PathLike
        The record file.
    flag : {"r", "w"}
        Read both files, or write new ones.
    key_type : callable
        Function that makes a key of its text in the index: int, str, float ...
    selection : bool
        For reading: the index lists the records that are wanted, not all of them once, as
        `RecordReader` has it.

    Attributes
    ----------
    idx_path, key_type, selection
        As given.

    Raises
    ------
    IndexFileError
        If the index cannot be parsed or lists offsets outside the record file; unless `selection`,
        if it ends before the record file does, or lists a record twice.  MXNet believes such an
        index.

    Notes
    -----
    `read` and `read_idx` may be mixed freely, even after the end of the file, where MXNet's class
    fails.  `idx` and `keys` are made on first use: with integer keys, `read_idx` needs only the 16
    bytes for each record of `RecordReader`.  As in MXNet, `read_idx` and `seek` open a closed
    reader again.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> record = MXIndexedRecordIO(str(folder / "a.idx"), str(folder / "a.rec"), "w")
    >>> for key in (7, 3):
    ...     record.write_idx(key, b"record_%d" % key)
    >>> record.close()
    >>> record = MXIndexedRecordIO(str(folder / "a.idx"), str(folder / "a.rec"), "r")
    >>> record.keys, record.read_idx(3), record.read_idx(7), record.read()
    ([7, 3], b'record_3', b'record_7', b'record_3')
    """

    def __init__(
        self,
        idx_path: str | os.PathLike[str],
        uri: str | os.PathLike[str],
        flag: Literal["r", "w"],
        key_type: Callable[[Any], Any] = int,
        selection: bool = False,
    ) -> None:
        self.idx_path: str | os.PathLike[str] = idx_path
        self.key_type: Callable[[Any], Any] = key_type
        self.selection: bool = selection
        self._keys: list[Any] | None = None
        self._idx: dict[Any, int] | None = None
        super().__init__(uri, flag)

    def _open_writer(self, path: str) -> RecordWriter:
        self._keys, self._idx = [], {}
        return RecordWriter(path, self.idx_path)

    def _open_reader(self, path: str) -> RecordReader:
        self._keys = self._idx = None
        if self.key_type is int:
            return RecordReader(path, self.idx_path, selection=self.selection)
        reader = RecordReader(path)
        try:
            index, size = os.fsdecode(self.idx_path), StoredFile.at(path).size()
            self._keys, self._idx = _read_keys(index, self.key_type, size)
            offsets = np.fromiter(self._idx.values(), np.int64)
            fault = listing_fault(offsets, index, path, size, reader._end_at)
            if fault is not None and not self.selection:
                raise fault
        except BaseException:
            reader.close()
            raise
        return reader

    @property
    def keys(self) -> list[Any]:
        """Keys in the order of the index."""
        if self._keys is None:
            self._keys = self._reading_by_key().keys.tolist()
        return self._keys

    @property
    def idx(self) -> dict[Any, int]:
        """Byte offset of the record with each key; the last one if it is listed more than once."""
        if self._idx is None:
            reader = self._reading_by_key()
            self._idx = dict(zip(reader.keys.tolist(), reader.offsets.tolist(), strict=True))
        return self._idx

    def _reading_by_key(self) -> RecordReader:
        if not self.writable and self._reader is None:
            self.open()
        return self._for_reading()

    def _locate(self, key: Any) -> tuple[int, int | None]:
        """Return the offset of a key, and its position where that is known."""
        reader = self._reading_by_key()
        if self.key_type is not int:
            if key not in self.idx:
                raise KeyNotFoundError(f"no record has the key {key!r}", path=self.idx_path)
            return self.idx[key], None
        number: int | None = None
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            number = int(key)
        if number is None or number != key:
            raise KeyNotFoundError(f"no record has the key {key!r}", path=self.idx_path)
        position = reader.position_of(number)
        return reader.offset_of(position), position

    def seek(self, idx: Any) -> None:
        """Make the record with a key the next one that `read` returns.

        Parameters
        ----------
        idx : key
            A key, not an offset.

        Raises
        ------
        KeyNotFoundError
            If the index does not list the key.
        """
        self._offset, self._position = self._locate(idx)

    def read_idx(self, idx: Any) -> bytes | None:
        """Return the record with a key; `read` continues after it.

        Parameters
        ----------
        idx : key
            A key; if it is listed more than once, the last record with it is read.

        Returns
        -------
        bytes

        Raises
        ------
        KeyNotFoundError
            If the index does not list the key.
        CorruptRecordError, TruncatedRecordError
            If the record is damaged.
        """
        # One look-up and one read from local values: threads may call this at the same time.
        offset, position = self._locate(idx)
        payload, end = self._for_reading().read_at(offset, position, copy=True)
        self._offset, self._position = end, None if position is None else position + 1
        return payload

    def write_idx(self, idx: Any, buf: Buffer) -> None:
        """Append a record and list it in the index.

        Parameters
        ----------
        idx : key
            Stored as ``str(key_type(idx))``.
        buf : bytes-like
            At most ``2**29 - 1`` bytes.

        Raises
        ------
        ValueError
            If the text of the key is empty, or has blanks at its ends, tabs or line ends.
        RecordTooLargeError, OSError, AssertionError
            As `write`.
        """
        writer = self._for_writing()
        key = self.key_type(idx)
        text = str(key)
        if text != text.strip() or not text or "\t" in text or "\n" in text:
            raise ValueError(f"the key {text!r} cannot be stored in a line of the index")
        offset = writer._append(buf, text)
        self.keys.append(key)
        self.idx[key] = offset


def _publish(writer: RecordWriter) -> None:
    """Close a writer; in a forked child, whose parent goes on writing, let it go."""
    with contextlib.suppress(RuntimeError):
        writer.close()


def _read_keys(
    path: str, key_type: Callable[[Any], Any], size: int
) -> tuple[list[Any], dict[Any, int]]:
    """Return keys and offsets of an index whose keys are not integers."""
    keys: list[Any] = []
    offsets: dict[Any, int] = {}
    with open_text(path) as file:
        for number, line in enumerate(file, 1):
            fields = line.strip().split("\t")
            try:
                key, offset = key_type(fields[0]), int(fields[1])
            except (IndexError, ValueError) as error:
                raise IndexFileError(
                    f"expected KEY<tab>OFFSET, not {line[:60]!r} ({error})", path=path, line=number
                ) from error
            if not 0 <= offset < size:
                raise IndexFileError(
                    f"offset {offset} lies outside the record file, which has {size} bytes",
                    path=path,
                    line=number,
                )
            keys.append(key)
            offsets[key] = offset
    return keys, offsets
