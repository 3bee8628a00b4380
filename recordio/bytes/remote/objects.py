"""Objects on servers: which library reaches a URL, sizes and versions, and ranges of bytes.

`RemoteObject` makes requests again for as long as `remote_timeout` allows.  Nothing here keeps
bytes.
"""

from __future__ import annotations

import fnmatch
import io
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, BinaryIO, cast
from urllib.parse import urlsplit

from recordio.bytes.remote.by_fsspec import Fsspec
from recordio.bytes.remote.by_obstore import Obstore
from recordio.bytes.remote.fetching import in_background
from recordio.bytes.remote.library import (
    Access,
    GaveUp,
    Library,
    NoRanges,
    Version,
    redacted,
    redacted_url,
    retried,
)
from recordio.errors import (
    RecordIOError,
    RemoteChangedError,
    RemoteFileError,
    RemoteMissingError,
)

if TYPE_CHECKING:
    from typing_extensions import Buffer  # nothing of it is installed with the package

__all__ = [
    "LIBRARIES",
    "RangeFile",
    "RemoteObject",
    "is_there",
    "library_of",
    "list_urls",
    "looked_up",
    "open_stream",
    "redacted_url",
]

#: The libraries by their names; the first that reaches a URL is used for it.
LIBRARIES: dict[str, type[Library]] = {"obstore": Obstore, "fsspec": Fsspec}
#: Errors of an object that is opened after which it is not asked for again.
HOPELESS = (TypeError, ValueError, MemoryError)
#: Errors of the libraries that say that a request was denied.
DENIED = {"PermissionError", "PermissionDeniedError", "UnauthenticatedError"}
#: Bytes that are read ahead of a stream of ranges.
STREAM_BYTES = 1 << 20

logger: logging.Logger = logging.getLogger("recordio")


def library_of(url: str, access: Access, text: bool = False) -> type[Library]:
    """Choose the library that reaches a URL, to read text there or records."""
    if access.library is not None:
        return LIBRARIES[access.library]
    kinds = [kind for kind in LIBRARIES.values() if kind.reads_text or not text]
    return next(kind for kind in kinds if kind.reaches(url))


class RemoteObject:
    """One object, as it was when it was opened; `url` is what messages show.

    It raises RemoteFileError where it cannot be reached or tells no size, and the errors of the
    library.
    """

    def __init__(self, url: str, access: Access) -> None:
        self.url: str = redacted_url(url)
        self.access: Access = access
        self._library = library_of(url, access)(url, access)
        self.version: Version = self._library.head()
        self._has_sent_ranges = False

    def read(self, start: int, end: int) -> memoryview:
        """Read the bytes ``[start, end)`` by one request; errors are those of the library, too."""
        data = memoryview(self._library.read(start, end, self.version)).cast("B")
        if len(data) != end - start:
            raise RemoteFileError(
                f"{len(data)} bytes came instead of {end - start}", path=self.url, offset=start
            )
        self._has_sent_ranges = True
        return data

    def fetch(
        self,
        start: int,
        end: int,
        patience: float | None = None,
        failed: Callable[[Exception], object] = lambda error: None,
    ) -> memoryview:
        """Read the bytes ``[start, end)``, by further requests while they fail.

        No further one begins after `patience` seconds, `remote_timeout` by default.  `failed` is
        called with each error; what it raises ends the attempts, as a replaced object does, and a
        server that has not sent a range yet and sends the whole object.
        """
        final = RemoteChangedError, *([] if self._has_sent_ranges else [NoRanges])
        try:
            return retried(
                lambda: self.read(start, end),
                self.access.timeout if patience is None else patience,
                final=final,
                failed=failed,
            )
        except NoRanges as first:
            raise RemoteFileError(first.reason, path=first.path, offset=first.offset) from None
        except GaveUp as last:
            error = last.cause
            cause = redacted(error, self.access.options)
            if isinstance(error, RemoteFileError):
                cause = error.reason
            raise RemoteFileError(
                f"bytes {start} to {end - 1} cannot be read, {last.effort}: {cause}",
                path=self.url,
                offset=start,
            ) from None


def looked_up(url: str, access: Access) -> RemoteObject:
    """Open an object, by further requests while they fail; Ctrl-C ends the wait."""
    return in_background(lambda: _looked_up(url, access))


def is_there(url: str, access: Access) -> bool:
    """Look for an object; one that is denied is not there, as S3 does it without `list`."""
    try:
        in_background(lambda: _looked_up(url, access, patient_when_denied=False))
    except RemoteMissingError:
        return False
    return True


def _looked_up(url: str, access: Access, patient_when_denied: bool = True) -> RemoteObject:
    told = False

    def note(error: Exception) -> None:
        nonlocal told
        if not patient_when_denied and type(error).__name__ in DENIED:
            raise FileNotFoundError(str(error))
        if not told and not isinstance(error, HOPELESS):
            told = True
            logger.warning(
                "%s: cannot be opened yet, and is asked for again for %g s (remote_timeout): %s",
                redacted_url(url),
                access.timeout,
                redacted(error, access.options),
            )

    try:
        return retried(
            lambda: RemoteObject(url, access),
            access.timeout,
            final=(ImportError, RemoteFileError, FileNotFoundError),
            hopeless=HOPELESS,
            failed=note,
        )
    except RemoteFileError:
        raise
    except FileNotFoundError as error:
        cause = redacted(error, access.options)
        raise RemoteMissingError(
            f"there is no such object: {cause}", path=redacted_url(url)
        ) from None
    except GaveUp as last:
        raise RemoteFileError(
            f"the object cannot be opened, {last.effort}: {redacted(last.cause, access.options)}",
            path=redacted_url(url),
        ) from None


# -- streams --------------------------------------------------------------------------------------


def open_stream(url: str, access: Access) -> BinaryIO:
    """Open an object to be read from its start to its end."""
    try:
        stream = library_of(url, access, text=True).stream(url, access)
    except (OSError, RecordIOError, ImportError, ValueError):
        raise
    except Exception as error:  # of a library below, such as credentials that are missing
        raise RemoteFileError(
            f"the object cannot be opened: {redacted(error, access.options)}",
            path=redacted_url(url),
        ) from None
    if stream is None:
        remote = looked_up(url, access)
        ranges = RangeFile(
            remote.version.size,
            lambda begin, end: in_background(lambda: remote.fetch(begin, end)),
        )
        stream = cast(BinaryIO, io.BufferedReader(ranges, STREAM_BYTES))
    return stream


class RangeFile(io.RawIOBase):
    """A file to be read from any position, of which ``read(begin, end)`` brings a range."""

    def __init__(self, size: int, read: Callable[[int, int], Buffer]) -> None:
        self._size, self._read, self._position = size, read, 0

    def readable(self) -> bool:
        """Tell that it can be read."""
        return True

    def seekable(self) -> bool:
        """Tell that any part of it can be read."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to a position, and return it."""
        begin = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        if begin + offset < 0:
            raise OSError("a position before the beginning of the file")
        self._position = begin + offset
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Read as many bytes as the buffer has, or all that are left; return their number."""
        view = memoryview(buffer).cast("B")
        start = self._position
        end = min(start + len(view), self._size)
        if start >= end:
            return 0
        view[: end - start] = self._read(start, end)
        self._position = end
        return end - start


# -- folders --------------------------------------------------------------------------------------


def list_urls(url: str, suffix: str, access: Access) -> list[str]:
    """List the objects that a URL names: itself, those in a folder, or those of a pattern.

    A URL that ends with a slash is a folder, and ``*`` in its last part makes it a pattern.  Names
    of their objects have to end with `suffix`, and come in order.
    """
    folder, _, last = url.rpartition("/")
    if last and "*" not in last:
        return [url]
    try:
        names = _names_below(f"{folder}/", access)
    except Exception as error:
        if isinstance(error, RemoteFileError | ImportError):
            raise
        raise RemoteFileError(
            f"the folder cannot be listed: {redacted(error, access.options)}",
            path=redacted_url(url),
        ) from None
    pattern = last or "*"
    matches = [n for n in names if n.endswith(suffix) and fnmatch.fnmatchcase(n, pattern)]
    return [f"{folder}/{name}" for name in sorted(matches)]


def _names_below(folder: str, access: Access) -> list[str]:
    is_page = urlsplit(folder).scheme in ("http", "https")
    kind = Fsspec if is_page else library_of(folder, access)  # obstore follows no links
    return kind(folder, access).names()
