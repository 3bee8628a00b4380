"""The one door to bytes: existence, size and content of a file at a path or a URL.

Records, indexes, text and lists are all opened and written here, so that another kind of storage is
a change of this module alone.
"""

from __future__ import annotations

import contextlib
import glob
import gzip
import io
import os
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO, TextIO, TypeVar, cast
from urllib.parse import quote, urlsplit

from recordio.bytes.mapping import map_file
from recordio.bytes.regular_files import open_regular
from recordio.bytes.remote.by_fsspec import filesystem
from recordio.bytes.remote.fetching import in_background
from recordio.bytes.remote.folder import open_mirror, open_mirrors
from recordio.bytes.remote.mirror import Mirror
from recordio.bytes.remote.objects import is_there, library_of, list_urls, looked_up, open_stream
from recordio.bytes.remote.output import RemoteOutput, remove
from recordio.bytes.remote.settings import RemoteSettings
from recordio.bytes.storage import AtomicOutput
from recordio.errors import RecordIOError

__all__ = [
    "StoredFile",
    "filesystem",
    "listed_files",
    "named_files",
    "open_bytes",
    "open_output",
    "open_text",
    "remove_output",
    "unpacked",
    "with_mirrors",
]

Parsed = TypeVar("Parsed")

_GZIP_MAGIC = b"\x1f\x8b"


@dataclass(frozen=True)
class StoredFile:
    """One file at a path or a URL, which need not exist; `mirror` is the copy of an open URL.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "a")
    >>> _ = path.write_bytes(b"abc")
    >>> file = StoredFile.at(path)
    >>> file.size(), bytes(file.map()), file.is_local
    (3, b'abc', True)
    """

    name: str
    mirror: Mirror | None = field(default=None, compare=False, repr=False)

    @classmethod
    def at(cls, path: str | os.PathLike[str] | StoredFile) -> StoredFile:
        """Describe the file at a path or URL; ``file://`` is a path of this machine."""
        if isinstance(path, StoredFile):
            return path
        name = os.fsdecode(path)
        if name.startswith("file://"):
            from urllib.request import url2pathname  # with the whole of http and email

            name = url2pathname(urlsplit(name).path)
        return cls(name)

    @property
    def is_local(self) -> bool:
        """True for a path of this machine, False for a URL."""
        return "://" not in self.name

    def beside(self, suffix: str) -> StoredFile:
        """Name the file beside it with another suffix, such as the index of a record file.

        >>> StoredFile("data/a.rec").beside(".idx").name
        'data/a.idx'
        >>> StoredFile("https://host/a.rec?key=1").beside(".idx").name
        'https://host/a.idx?key=1'
        """
        path, mark, query = (self.name, "", "") if self.is_local else self.name.partition("?")
        return StoredFile(os.path.splitext(path)[0] + suffix + mark + query)

    def neighbour(self, name: str) -> StoredFile:
        """Name another file in the same folder.

        >>> StoredFile("sets/a.json").neighbour("b 1.rec").name
        'sets/b 1.rec'
        >>> StoredFile("https://host/sets/a.json?key=1").neighbour("b 1.rec").name
        'https://host/sets/b%201.rec?key=1'
        """
        if self.is_local:
            return StoredFile(os.path.join(os.path.dirname(self.name), name))
        path, mark, query = self.name.partition("?")
        if self.name.startswith(("http://", "https://")):
            name = quote(name)
        return StoredFile(f"{path.rpartition('/')[0]}/{name}{mark}{query}")

    def open(self, buffering: int = -1, settings: RemoteSettings | None = None) -> BinaryIO:
        """Open it for reading: a regular file, or a URL.

        `buffering` is for local files, as that of the function `open`.
        """
        if self.is_local:
            return open_regular(self.name, buffering)
        return open_stream(self.name, settings or RemoteSettings())

    def first_bytes(self, count: int, settings: RemoteSettings | None = None) -> bytes:
        """Read its first bytes; none of a file that does not exist or cannot be opened here."""
        if self.is_local:
            with contextlib.suppress(OSError), open_regular(self.name, 0) as file:
                return file.read(count)
            return b""
        with contextlib.suppress(FileNotFoundError):
            remote = looked_up(self.name, settings or RemoteSettings())
            count = min(count, remote.version.size)
            return in_background(lambda: bytes(remote.fetch(0, count))) if count else b""
        return b""

    def exists(self, settings: RemoteSettings | None = None) -> bool:
        """Look for it; a folder does not count."""
        if self.is_local:
            return os.path.isfile(self.name)
        if self.mirror is not None:
            return True
        return is_there(self.name, settings or RemoteSettings())

    def size(self) -> int:
        """Count its bytes as they are stored."""
        return os.path.getsize(self.name) if self.is_local else self.mirrored().size

    def version(self) -> tuple[int, int]:
        """Give its size and the time of its last change in nanoseconds, both -1 without a file.

        For a URL it is something else that changes with the content, instead of the time.
        """
        if not self.is_local:
            mirror = self.mirrored()
            return mirror.size, zlib.crc32(mirror.tag.encode())
        with contextlib.suppress(OSError):
            status = os.stat(self.name)
            return status.st_size, status.st_mtime_ns
        return -1, -1

    def ends(self, count: int) -> tuple[int, bytes, bytes]:
        """Read its size, and its first and last bytes."""
        if self.is_local:
            with self.open() as file:
                head = file.read(count)
                size = file.seek(0, os.SEEK_END)
                file.seek(max(size - count, 0))
                return size, head, file.read(count)
        mirror = self.mirrored()
        with mirror.pin_bytes(0, count), mirror.pin_bytes(max(mirror.size - count, 0), mirror.size):
            return mirror.size, bytes(mirror.view[:count]), bytes(mirror.view[-count:])

    def map(self, settings: RemoteSettings | None = None) -> memoryview:
        """Map it into memory by `mapping.map_file`; all of a file on a server is fetched before."""
        if self.is_local:
            return map_file(self.name)
        mirror = self.mirrored(settings)
        mirror.fetch_all()
        return mirror.view

    def mirrored(self, settings: RemoteSettings | None = None) -> Mirror:
        """Open the local copy of a URL, filled as its bytes are read."""
        return open_mirror(self.name, settings) if self.mirror is None else self.mirror

    def parsed(
        self, parse: Callable[[str], Parsed], settings: RemoteSettings | None = None
    ) -> Parsed:
        """Call a function that takes a local path; its errors name this file."""
        if self.is_local:
            return parse(self.name)
        mirror = self.mirrored(settings)
        mirror.fetch_all()
        try:
            return parse(mirror.path)
        except RecordIOError as error:
            raise type(error)(error.reason, path=mirror.url, line=error.line) from None

    def check_local(self) -> None:
        """Raise an OSError for a URL, where only a file of this machine will do."""
        if not self.is_local:
            raise OSError(
                f"{self.name}: this has to be a file on a disk of this machine: copy it there, "
                "for example with `recordio fetch`, and give that path"
            )


def listed_files(
    paths: str | Sequence[str], suffix: str, settings: RemoteSettings | None = None
) -> list[StoredFile]:
    """List the files of several paths, folders, patterns and URLs, URLs with their mirrors.

    Patterns are such as ``part-*.rec`` or ``**/*.rec``; in one string they stand with semicolons
    between them.  What exists is a name and no pattern.  A URL that ends with a slash is a folder,
    and one with ``*`` in its last part is a pattern.  The names of files in a folder, and of those
    that a pattern matches, have to end with `suffix`, and come in order.  A folder or a pattern
    without such a file is a FileNotFoundError.
    """
    return with_mirrors(named_files(paths, suffix, settings), settings)


def named_files(
    paths: str | Sequence[str],
    suffix: str = "",
    settings: RemoteSettings | None = None,
    look: bool = False,
) -> list[StoredFile]:
    """Name the same files, where objects on servers are listed, but not opened.

    With `look`, the server is asked whether a URL without a slash at its end is a folder, too.
    """
    all_files: list[StoredFile] = []
    kind = f" {suffix}" if suffix else ""
    if isinstance(paths, str):
        paths = [paths] if os.path.exists(paths) else [p for p in paths.split(";") if p]
    for path in paths:
        file = StoredFile.at(path)
        if not file.is_local:
            files = _listed_urls(file.name, suffix, settings, look)
        elif glob.has_magic(file.name) and not os.path.exists(file.name):
            names = sorted(filter(os.path.isfile, glob.glob(file.name, recursive=True)))
            files = [StoredFile(name) for name in names if name.endswith(suffix)]
        elif os.path.isdir(file.name):
            names = sorted(entry.path for entry in os.scandir(file.name) if entry.is_file())
            files = [StoredFile(name) for name in names if name.endswith(suffix)]
            if not files:
                raise FileNotFoundError(f"{path}: the folder holds no{kind} file")
        else:
            files = [file]
        if not files:
            raise FileNotFoundError(f"{path}: no{kind} file has a name like that")
        all_files += files
    return all_files


def _listed_urls(
    url: str, suffix: str, settings: RemoteSettings | None, look: bool
) -> list[StoredFile]:
    # An HTTP server would be asked for all of the file: it knows no folders, only pages with links.
    settings = settings or RemoteSettings()
    if look and not url.startswith(("http://", "https://")) and not url.endswith("/"):
        url += "/" * library_of(url, settings, text=True).is_folder(url, settings)
    return [StoredFile(name) for name in list_urls(url, suffix, settings)]


def with_mirrors(files: list[StoredFile], settings: RemoteSettings | None) -> list[StoredFile]:
    """Open the URLs among some files together, so that they share the room on the disk."""
    urls = [file.name for file in files if not file.is_local]
    if not urls:
        return files
    mirrors = iter(open_mirrors(urls, settings))
    return [file if file.is_local else StoredFile(file.name, next(mirrors)) for file in files]


def open_text(
    path: str | os.PathLike[str] | StoredFile,
    errors: str = "strict",
    encoding: str = "utf-8",
    settings: RemoteSettings | None = None,
) -> TextIO:
    """Open a file of text for reading; one on a server is fetched before."""
    file = StoredFile.at(path)
    if file.is_local:
        return open(file.name, encoding=encoding, errors=errors)
    return io.TextIOWrapper(io.BytesIO(file.map(settings)), encoding=encoding, errors=errors)


def open_bytes(path: str | os.PathLike[str]) -> tuple[BinaryIO, bool]:
    """Open a file or URL, unpacked if its first bytes are those of gzip; True says that they are.

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
    """Unpack a file if it is gzip, and say whether it is; an error closes it."""
    try:
        magic = file.read(2)
        file.seek(0)
        packed = magic == _GZIP_MAGIC
        return (cast(BinaryIO, _GzipFile(file)) if packed else file), packed
    except BaseException:
        file.close()
        raise


class _GzipFile(gzip.GzipFile):
    """The unpacked bytes of a gzip file; closes that file, too."""

    def __init__(self, below: BinaryIO) -> None:
        self._below = below
        super().__init__(fileobj=below, mode="rb")

    def stored_read(self) -> int:
        """Count the packed bytes that were read so far."""
        return self._below.tell()

    def close(self) -> None:
        try:
            super().close()
        finally:
            self._below.close()


def open_output(
    *paths: str | os.PathLike[str],
    without: Sequence[str | os.PathLike[str]] = (),
    settings: RemoteSettings | None = None,
) -> AtomicOutput | RemoteOutput:
    """Open the output to a main file and those that describe it: all paths, or all URLs.

    Companions of the old main file that the new one does not have, `without`, are removed.
    """
    files = [StoredFile.at(path) for path in paths]
    local = [file.is_local for file in files]
    if all(local):
        return AtomicOutput(*(file.name for file in files), without=without)
    if any(local):
        raise RecordIOError(
            f"it cannot appear together with {files[local.index(False)].name}: give URLs for both, "
            "or paths",
            path=files[local.index(True)].name,
        )
    gone = [os.fsdecode(path) for path in without]
    return RemoteOutput(*(file.name for file in files), without=gone, settings=settings)


def remove_output(path: str | os.PathLike[str]) -> None:
    """Remove a file of this machine, or an object, if it is there."""
    file = StoredFile.at(path)
    if file.is_local:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(file.name)
        return
    remove(file.name)
