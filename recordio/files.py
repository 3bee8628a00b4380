"""The one door to bytes: what there is at a path or a URL, how large it is, and its content.

Records, indexes, text and lists are all opened here, so that another kind of place is a change of
this module alone.
"""

from __future__ import annotations

import contextlib
import gzip
import os
from dataclasses import dataclass
from typing import Any, BinaryIO, TextIO, cast

from recordio.frames.mapping import map_file

__all__ = ["StoredFile", "listed_files", "open_bytes", "open_text", "stored_files", "unpacked"]

_GZIP_MAGIC = b"\x1f\x8b"


@dataclass(frozen=True)
class StoredFile:
    """One file, which need not exist.

    Parameters
    ----------
    name : str
        Local path or fsspec URL, as errors show it.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "a")
    >>> _ = path.write_bytes(b"abc")
    >>> file = StoredFile.at(path)
    >>> file.size(), bytes(file.map()), file.is_local
    (3, b'abc', True)
    """

    name: str

    @classmethod
    def at(cls, path: str | os.PathLike[str]) -> StoredFile:
        """The file at a path."""
        return cls(os.fsdecode(path))

    @property
    def is_local(self) -> bool:
        """Whether it is a path of this machine and no URL."""
        return "://" not in self.name

    def open(self, buffering: int = -1) -> BinaryIO:
        """Open it for reading; `buffering` is for local files, as that of the function `open`."""
        if self.is_local:
            return open(self.name, "rb", buffering=buffering)
        files, inside = _filesystem(self.name)
        return files.open(inside, "rb")

    def size(self) -> int:
        """Bytes as they are stored."""
        if self.is_local:
            return os.path.getsize(self.name)
        files, inside = _filesystem(self.name)
        return files.size(inside)

    def version(self) -> tuple[int, int]:
        """Size and time of the last change in nanoseconds; -1 and -1 if it does not exist."""
        with contextlib.suppress(OSError):
            status = os.stat(self.name)
            return status.st_size, status.st_mtime_ns
        return -1, -1

    def map(self) -> memoryview:
        """Its bytes, mapped into memory: see `recordio.frames.mapping.map_file`."""
        if not self.is_local:
            raise OSError(
                f"{self.name}: a URL, and what is read by position must be on a disk of this "
                "machine: download it first, with fsspec or a tool of the service"
            )
        return map_file(self.name)


def stored_files(path: str | os.PathLike[str], suffix: str = "") -> list[StoredFile]:
    """The file at a path or URL, or if that is a folder, its files in the order of their names.

    Parameters
    ----------
    path : str or os.PathLike
    suffix : str
        How the names in a folder must end.

    Returns
    -------
    list of StoredFile
        None for a folder without such a file.
    """
    file = StoredFile.at(path)
    if file.is_local:
        if not os.path.isdir(file.name):
            return [file]
        names = [entry.path for entry in os.scandir(file.name) if entry.is_file()]
    else:
        files, inside = _filesystem(file.name)
        if not files.isdir(inside):
            return [file]
        entries = files.ls(inside, detail=True)
        names = [files.unstrip_protocol(e["name"]) for e in entries if e["type"] == "file"]
    return [StoredFile(name) for name in sorted(names) if name.endswith(suffix)]


def listed_files(paths: str, suffix: str) -> list[StoredFile]:
    """The files of several paths or folders with semicolons between them.

    A semicolon may also belong to the name of one file that exists.

    Raises
    ------
    FileNotFoundError
        For a folder without a file whose name ends with `suffix`.
    """
    found: list[StoredFile] = []
    for path in [paths] if os.path.exists(paths) else filter(None, paths.split(";")):
        files = stored_files(path, suffix)
        if not files:
            raise FileNotFoundError(f"{path}: the folder holds no {suffix} file")
        found += files
    return found


def open_text(path: str | os.PathLike[str], errors: str = "strict") -> TextIO:
    """Open a local file of UTF-8 text for reading."""
    return open(path, encoding="utf-8", errors=errors)


def open_bytes(path: str | os.PathLike[str]) -> tuple[BinaryIO, bool]:
    """Open one file for reading, unpacked if it is gzip.

    Parameters
    ----------
    path : str or os.PathLike
        Local path or URL.  Gzip is recognised by its first two bytes, not by the name.

    Returns
    -------
    file
        A binary file.
    packed : bool
        Whether it is gzip, and its size hence unknown before the end.

    Examples
    --------
    >>> import gzip, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "a.gz")
    >>> _ = path.write_bytes(gzip.compress(b"abc"))
    >>> file, packed = open_bytes(path)
    >>> with file:
    ...     file.read(), packed
    (b'abc', True)
    """
    return unpacked(StoredFile.at(path).open())


def unpacked(file: BinaryIO) -> tuple[BinaryIO, bool]:
    """The file, or what gzip packed into it, and whether it did; closes the file on an error."""
    try:
        magic = file.read(2)
        file.seek(0)
        packed = magic == _GZIP_MAGIC
        return (cast(BinaryIO, _GzipFile(file)) if packed else file), packed
    except BaseException:
        file.close()
        raise


class _GzipFile(gzip.GzipFile):
    """What gzip packed into a file; closes that file, too."""

    def __init__(self, below: BinaryIO) -> None:
        self._below = below
        super().__init__(fileobj=below, mode="rb")

    def stored_read(self) -> int:
        """How many packed bytes were read so far."""
        return self._below.tell()

    def close(self) -> None:
        try:
            super().close()
        finally:
            self._below.close()


def _filesystem(url: str) -> tuple[Any, str]:
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        raise ImportError(
            f"{url} is a URL, and reading URLs needs fsspec: pip install fsspec"
        ) from error
    return url_to_fs(url)
