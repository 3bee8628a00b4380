"""Libraries that reach servers: the base class of all, and their requests, made again on failure.

A further library is a module with a class derived from `Library`, and a row in `objects.LIBRARIES`.
"""

from __future__ import annotations

import os
import random
import re
import time
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO, NamedTuple, Protocol, TypeVar

from recordio.errors import RemoteChangedError, RemoteFileError

#: Schemes of stores whose folders are beginnings of names.
CLOUDS = ("s3", "s3a", "gs", "az", "azure", "abfs", "abfss", "adl")
#: The longest that one request for bytes may take, in seconds.
REQUEST_SECONDS = 30.0
#: Seconds between two attempts: the first, and the longest.
FIRST_DELAY, LONGEST_DELAY = 0.1, 5.0
#: Errors after which a request that changes an object would fail again.
HOPELESS = (
    FileNotFoundError,
    PermissionError,
    NotImplementedError,
    TypeError,
    ValueError,
    MemoryError,
)

Answer = TypeVar("Answer")
Kinds = tuple[type[BaseException], ...]


class Version(NamedTuple):
    """Size of an object in bytes, and its ETag, or the time of its last change without one."""

    size: int
    tag: str


class Access(Protocol):
    """The way to a server, as `RemoteSettings` describes it."""

    @property
    def library(self) -> str | None:
        """Name of the library that has to be used."""

    @property
    def options(self) -> dict[str, Any]:
        """Options of the library."""

    @property
    def timeout(self) -> float:
        """Seconds for which a request that fails is made again."""


class PartWriter(Protocol):
    """One object on its way; errors are those of the library, or `GaveUp`.

    It is used by one thread; only `interrupt` may be called by another.
    """

    def write(self, part: bytearray) -> None:
        """Send a part, which nobody changes any more."""

    def finish(self, rest: bytearray) -> None:
        """Send what is left, perhaps nothing, and have the object appear."""

    def abort(self) -> None:
        """Have the server forget all parts."""

    def interrupt(self) -> None:
        """Have `write` or `finish` end soon, by an exception."""


class Library:
    """One object, or one folder, through a library; methods raise the library's own errors."""

    #: True for libraries that make requests which change objects again by themselves.
    repeats_changes = False
    #: False for libraries that read text only where they are chosen by name.
    reads_text = True

    def __init__(self, url: str, access: Access) -> None:
        self._url, self._access = url, access

    @classmethod
    def reaches(cls, url: str) -> bool:
        """Return True for URLs that this library is used for where none is chosen."""
        raise NotImplementedError

    def head(self) -> Version:
        """Look the object up."""
        raise NotImplementedError

    def read(self, start: int, end: int, version: Version) -> Any:
        """Read the bytes ``[start, end)`` of a version, or raise RemoteChangedError."""
        raise NotImplementedError

    def names(self) -> list[str]:
        """Name the objects in the folder, without those in folders below it."""
        raise NotImplementedError

    def copy(self, target: str) -> None:
        """Have the server copy the object to another URL."""
        raise NotImplementedError

    def delete(self) -> None:
        """Remove the object."""
        raise NotImplementedError

    def writer(self, part: int) -> PartWriter:
        """Begin to write the object, in parts of so many bytes."""
        raise NotImplementedError

    @classmethod
    def is_folder(cls, url: str, access: Access) -> bool:
        """Find out whether a URL without a slash at its end is a folder."""
        raise NotImplementedError

    @classmethod
    def stream(cls, url: str, access: Access) -> BinaryIO | None:
        """Open the object from its start to its end; None where it is to be read by ranges."""
        return None


def request_seconds(access: Access) -> float:
    """Limit the time that one request for bytes may take."""
    return min(access.timeout, REQUEST_SECONDS)


class GaveUp(Exception):
    """A request failed as often as it was made; `cause` says why the last attempt did."""

    def __init__(self, attempts: int, seconds: float, cause: Exception) -> None:
        super().__init__(attempts, seconds, cause)
        self.attempts: int = attempts
        self.seconds: float = seconds
        self.cause = cause

    @property
    def effort(self) -> str:
        """Say how often and for how long it was tried, for a message."""
        return f"after {self.attempts} attempts in {self.seconds:.0f} s (remote_timeout)"


class Interrupted(Exception):
    """A writer was interrupted between two attempts."""


def retried(
    request: Callable[[], Answer],
    timeout: float,
    *,
    final: Kinds = (),
    hopeless: Kinds = (MemoryError,),
    failed: Callable[[Exception], object] = lambda error: None,
    pause: Callable[[float], object] = time.sleep,
) -> Answer:
    """Make a request again while it fails and return its answer, or raise `GaveUp`.

    No attempt begins after `timeout` seconds.  Errors of the types `final` are passed on at once,
    and `hopeless` ones end the attempts.  `failed` is called with each error, and `pause` waits for
    some seconds; what these two raise ends the attempts, too.

    >>> answers = iter([0, 1])
    >>> retried(lambda: 1 // next(answers), timeout=5, pause=lambda seconds: None)
    1
    """
    begun, attempts = time.monotonic(), 0
    while True:
        try:
            return request()
        except final:
            raise
        except Exception as error:
            attempts += 1
            failed(error)
            spent = time.monotonic() - begun
            if spent >= timeout or isinstance(error, hopeless):
                raise GaveUp(attempts, spent, error) from None
        delay = min(FIRST_DELAY * 2 ** min(attempts - 1, 10), LONGEST_DELAY)
        pause(min(delay * random.uniform(0.5, 1), timeout - spent))


def object_was_replaced(url: str) -> RemoteChangedError:
    """Make the error for an object that is not the one that was opened."""
    return RemoteChangedError(
        "the object was replaced after it was opened: open it again to read the new one, whose"
        " records may be others",
        path=redacted_url(url),
    )


class NoRanges(RemoteFileError):
    """A server sent a whole object where it was asked for a range of bytes."""


def no_ranges(url: str, offset: int) -> NoRanges:
    """Make the error for a server that knows no ranges."""
    return NoRanges(
        "the server sent the whole object where it was asked for a range of bytes, and reading"
        " records needs ranges: download the file, or use a server that sends them",
        path=redacted_url(url),
        offset=offset,
    )


# -- messages without credentials -----------------------------------------------------------------

_CREDENTIALS = re.compile(
    r"((?:signature|token|secret|password|credential|access_?key|authorization|sig)[\w-]*"
    r"[\"']?\s*[=:]\s*[\"']?)[^\s\"'&,;<>)]+",
    re.IGNORECASE,
)
_QUERY = re.compile(r"(\w+://[^\s?\"'<>]*)\?[^\s\"'<>]*")
_USER = re.compile(r"(\w+://)[^/@\s]*@")
_PUBLIC = re.compile("endpoint|region|url|bucket")
#: Variables of the environment that hold credentials, `AWS_SECRET_ACCESS_KEY` and `HF_TOKEN` say.
_HIDDEN = re.compile("SECRET|TOKEN$|PASSWORD|(ACCOUNT|ACCESS|STORAGE|API)_KEY")
LONGEST_CAUSE = 300


def redacted_url(url: str) -> str:
    """Strip a URL of passwords and signatures, for messages.

    >>> redacted_url("https://user:word@host/a.rec?X-Amz-Signature=12")
    'https://host/a.rec'
    """
    return _USER.sub(r"\1", _QUERY.sub(r"\1", url))


def redacted(error: BaseException, options: dict[str, Any]) -> str:
    """Shorten an error of a library to one line without values of options or other credentials.

    >>> redacted(OSError("GET https://h/a?sig=5 with token=abc failed"), {})
    'OSError: GET https://h/a with token=*** failed'
    """
    text = str(error).split("\n\nDebug source", 1)[0]
    for value in sorted(_secrets(options) | _secrets_around(), key=len, reverse=True):
        text = text.replace(value, "***")
    text = " ".join(_CREDENTIALS.sub(r"\1***", redacted_url(text)).split())
    if len(text) > LONGEST_CAUSE:
        text = f"{text[:LONGEST_CAUSE]} ..."
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _secrets(options: Mapping[str, Any]) -> set[str]:
    """Collect the values of options, nested ones too, except those that name servers."""
    secrets: set[str] = set()
    for name, value in options.items():
        if isinstance(value, Mapping):
            secrets |= _secrets(value)
        elif isinstance(value, str) and len(value) > 3 and not _PUBLIC.search(str(name)):
            secrets.add(value)
    return secrets


def _secrets_around() -> set[str]:
    """Collect credentials from the environment of the process."""
    return {value for name, value in os.environ.items() if _HIDDEN.search(name) and len(value) > 7}
