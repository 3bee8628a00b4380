"""One object on a server: its size, its version, and ranges of its bytes.

`RemoteObject` finds the library that reaches a URL - obstore where it is installed and knows the
scheme, fsspec otherwise - and asks it for one range at a time.  Nothing here tries again, keeps
bytes or has threads.
"""

from __future__ import annotations

import contextlib
import fnmatch
import os
import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, NamedTuple, Protocol
from urllib.parse import unquote, urlsplit

from recordio.bytes.remote.fsspec_ranges import RangeAnswer, range_reader
from recordio.bytes.remote.settings import FIRST_DELAY, LONGEST_DELAY, RemoteSettings
from recordio.errors import RemoteChangedError, RemoteFileError
from recordio.extras import command, need

__all__ = [
    "RemoteObject",
    "Version",
    "copy_object",
    "delete_object",
    "fsspec_options",
    "list_urls",
    "redacted",
    "shown",
]

#: Schemes that obstore knows; the others are fsspec's.
OBSTORE_SCHEMES = ("s3", "s3a", "gs", "az", "azure", "abfs", "abfss", "adl", "http", "https")
#: The longest that one request for bytes may take, in seconds.
REQUEST_SECONDS = 30.0
#: Names of options in obstore and in s3fs, where they differ.
S3FS_NAMES = {
    "access_key_id": "key",
    "aws_access_key_id": "key",
    "secret_access_key": "secret",
    "aws_secret_access_key": "secret",
    "session_token": "token",
    "aws_session_token": "token",
    "aws_endpoint_url": "endpoint_url",
    "endpoint": "endpoint_url",
}

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


def shown(url: str) -> str:
    """A URL as messages show it, without what may be a password or a signature.

    Examples
    --------
    >>> shown("https://user:word@host/a.rec?X-Amz-Signature=12")
    'https://host/a.rec'
    """
    return _USER.sub(r"\1", _QUERY.sub(r"\1", url))


def redacted(error: BaseException, options: dict[str, Any]) -> str:
    """What an error of a library says, in a line without credentials.

    Parameters
    ----------
    error : exception
    options : dict
        Values of which none may appear, except those that name servers; nor do credentials of
        the environment.

    Examples
    --------
    >>> redacted(OSError("GET https://h/a?sig=5 with token=abc failed"), {})
    'OSError: GET https://h/a with token=*** failed'
    """
    text = str(error).split("\n\nDebug source", 1)[0]
    for value in sorted(_secrets(options) | _secrets_around(), key=len, reverse=True):
        text = text.replace(value, "***")
    text = " ".join(_CREDENTIALS.sub(r"\1***", shown(text)).split())
    if len(text) > LONGEST_CAUSE:
        text = f"{text[:LONGEST_CAUSE]} ..."
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _secrets(options: Mapping[str, Any]) -> set[str]:
    """The values of options, those inside of others too, except those that name servers."""
    found: set[str] = set()
    for name, value in options.items():
        if isinstance(value, Mapping):
            found |= _secrets(value)
        elif isinstance(value, str) and len(value) > 3 and not _PUBLIC.search(str(name)):
            found.add(value)
    return found


def _secrets_around() -> set[str]:
    """Credentials in the environment of the process."""
    return {value for name, value in os.environ.items() if _HIDDEN.search(name) and len(value) > 7}


class Version(NamedTuple):
    """How large an object is, and what changes when its content does.

    Attributes
    ----------
    size : int
        Bytes.
    tag : str
        Its ETag, or the time of its last change where the server has none.
    """

    size: int
    tag: str


class _Store(Protocol):
    """What is asked of a library; it raises its own errors, or those of `recordio.errors`."""

    def head(self) -> Version: ...

    def read(self, start: int, end: int, version: Version) -> Any: ...


class RemoteObject:
    """One object, as it was when it was opened.

    Parameters
    ----------
    url : str
    settings : RemoteSettings

    Attributes
    ----------
    url : str
        As messages show it.
    version : Version

    Raises
    ------
    RemoteMissingError
        If the server has no such object.
    RemoteFileError
        If it cannot be reached, or tells no size.
    """

    def __init__(self, url: str, settings: RemoteSettings) -> None:
        self.url = shown(url)
        self._options = settings.options
        self._store = self._connect(url, settings)
        self.version = self._store.head()

    def _connect(self, url: str, settings: RemoteSettings) -> _Store:
        kind = _Obstore if library_for(url, settings) == "obstore" else _Fsspec
        return kind(url, settings)

    def cause(self, error: BaseException) -> str:
        """What an error of the library says, without credentials."""
        return redacted(error, self._options)

    def read(self, start: int, end: int) -> memoryview:
        """The bytes ``[start, end)``, by one request.

        Raises
        ------
        RemoteChangedError
            If the object is not that which was opened.
        RemoteFileError
            If fewer bytes came.
        Exception
            Whatever the library raises.
        """
        data = memoryview(self._store.read(start, end, self.version)).cast("B")
        if len(data) != end - start:
            raise RemoteFileError(
                f"{len(data)} bytes came instead of {end - start}", path=self.url, offset=start
            )
        return data


def library_for(url: str, settings: RemoteSettings) -> str:
    """Which library reaches a URL: "obstore" or "fsspec"."""
    if settings.library is not None:
        return settings.library
    known = urlsplit(url).scheme in OBSTORE_SCHEMES
    return "obstore" if known and has_obstore() else "fsspec"


def has_obstore() -> bool:
    try:
        import obstore  # noqa: F401
    except ImportError:
        return False
    return True


def _changed(url: str) -> RemoteChangedError:
    return RemoteChangedError(
        "the object was replaced after it was opened: open it again to read the new one, whose"
        " records may be others",
        path=shown(url),
    )


class _Obstore:
    """An object through obstore: conditions on the ETag are the server's to check."""

    def __init__(self, url: str, settings: RemoteSettings) -> None:
        import obstore
        from obstore.exceptions import NotModifiedError, PreconditionError

        self._obstore = obstore
        self._changed_errors = (PreconditionError, NotModifiedError)
        self._url = url
        self._store, self._path = obstore_at(url, settings)

    def head(self) -> Version:
        found = self._obstore.head(self._store, self._path)
        tag = found["e_tag"]
        self._match = tag if tag and not tag.startswith("W/") else None
        return _version_of(found)

    def read(self, start: int, end: int, version: Version) -> Any:
        options: dict[str, Any] = {"range": (start, end)}
        if self._match is not None:
            options["if_match"] = self._match
        try:
            found = self._obstore.get(self._store, self._path, options=options)
        except self._changed_errors:
            raise _changed(self._url) from None
        if _version_of(found.meta) != version:
            raise _changed(self._url)
        return found.bytes()


def _version_of(found: Mapping[str, Any]) -> Version:
    """The version in what obstore says of an object."""
    tag = found["e_tag"] or f"changed {found['last_modified'].isoformat()}"
    return Version(found["size"], tag)


def obstore_at(url: str, settings: RemoteSettings, write: bool = False) -> tuple[Any, str]:
    """The store of a URL, and the path in it.

    With `write` for requests that change objects: those the library itself makes again.
    """
    from obstore.store import from_url

    scheme, _, rest = url.partition("://")
    server, _, path = rest.partition("/")
    root = f"{scheme}://{server}"
    keywords: dict[str, Any] = {}
    seconds = settings.timeout if write else min(settings.timeout, REQUEST_SECONDS)
    client: dict[str, Any] = {"allow_http": True, "timeout": timedelta(seconds=seconds)}
    client.update(settings.options.get("client_options", {}))
    if scheme in ("http", "https"):
        root, path = (url, "") if "?" in path else (root, unquote(path))
    else:
        config = {n: v for n, v in settings.options.items() if n != "client_options"}
        keywords["config"] = config or None
    retries: dict[str, Any] = {"max_retries": 0}
    if write:
        longest = timedelta(seconds=LONGEST_DELAY)
        retries = {
            "max_retries": 1_000_000,
            "retry_timeout": timedelta(seconds=settings.timeout),
            "backoff": {
                "init_backoff": timedelta(seconds=FIRST_DELAY), "max_backoff": longest, "base": 2
            },
        }  # fmt: skip
    return from_url(root, client_options=client, retry_config=retries, **keywords), path


class _Fsspec:
    """An object through fsspec, which has no conditions: versions are compared after a request.

    That of the answer, where the library shows it; otherwise the object is looked up once more.
    """

    def __init__(self, url: str, settings: RemoteSettings) -> None:
        self._url, self._seconds = url, min(settings.timeout, REQUEST_SECONDS)
        self._files, self._path = fsspec_at(url, settings)
        self._read_range = range_reader(self._files)

    def _ask(self, name: str, **keywords: Any) -> Any:
        """Call a method of the file system, for so long as one request may take."""
        if not self._files.async_impl:
            return getattr(self._files, name)(self._path, **keywords)
        return self._wait_for(getattr(self._files, f"_{name}"), self._path, **keywords)

    def _wait_for(self, function: Any, *arguments: Any, **keywords: Any) -> Any:
        """What a coroutine returns that runs for so long as one request may take."""
        from fsspec.asyn import sync

        return sync(self._files.loop, function, *arguments, timeout=self._seconds, **keywords)

    def head(self) -> Version:
        self._files.invalidate_cache()
        try:
            found = self._ask("info")
        except FileNotFoundError as error:
            # The file system of http says so whatever went wrong.
            cause, scheme = error.__cause__, urlsplit(self._url).scheme
            says_so = isinstance(cause, FileNotFoundError) or getattr(cause, "status", 0) == 404
            if scheme not in ("http", "https") or cause is None or says_so:
                raise
            raise cause from None
        size = found.get("size")
        if size is None:
            raise RemoteFileError("the server does not tell its size", path=shown(self._url))
        names = ("ETag", "etag", "e_tag", "LastModified", "Last-Modified", "mtime",
                 "last_modified", "created")  # fmt: skip
        tags = [str(found[name]) for name in names if found.get(name) is not None]
        return Version(int(size), tags[0] if tags else "")

    def read(self, start: int, end: int, version: Version) -> Any:
        if self._read_range is None:
            data, known = self._ask("cat_file", start=start, end=end), None
        else:
            data, known = self._checked_range(start, end, version)
        if known is None and self.head() != version:
            raise _changed(self._url)
        return data

    def _checked_range(self, start: int, end: int, version: Version) -> tuple[bytes, bool | None]:
        """Bytes that are those by what the server says; with them whether it says the version."""
        known: bool | None = None

        def check(answer: RangeAnswer) -> None:
            nonlocal known
            known = answer.is_of(version.tag)
            came, _, size = answer.content_range.partition("/")
            if known is False or size not in ("", "*", str(version.size)):
                raise _changed(self._url)
            wanted = f"bytes {start}-{end - 1}"
            if came != wanted:
                came = came or "bytes without saying which (no Content-Range)"
                raise RemoteFileError(
                    f"the server sent {came} instead of {wanted}",
                    path=shown(self._url),
                    offset=start,
                )

        read = self._read_range
        return self._wait_for(read, self._files, self._path, start, end, check), known


def fsspec_options(url: str, settings: RemoteSettings) -> dict[str, Any]:
    """The options as the file system of a URL calls them."""
    options = settings.options
    if urlsplit(url).scheme in ("s3", "s3a"):
        options = {S3FS_NAMES.get(name, name): value for name, value in options.items()}
        region = options.pop("region", None) or options.pop("aws_region", None)
        if region is not None:
            options["client_kwargs"] = {**options.get("client_kwargs", {}), "region_name": region}
    return options


def fsspec_at(url: str, settings: RemoteSettings) -> tuple[Any, str]:
    url_to_fs = need("fsspec.core", f"URLs such as {shown(url)}").url_to_fs
    options = fsspec_options(url, settings)
    if urlsplit(url).scheme in ("s3", "s3a"):
        # Requests that fail are made again here, for `remote_timeout`.
        once = {"retries": {"total_max_attempts": 1}}
        options["config_kwargs"] = {**once, **options.get("config_kwargs", {})}
    try:
        return url_to_fs(url, **options)
    except (ImportError, ValueError) as error:
        raise RemoteFileError(
            f"no library for it is installed ({redacted(error, options)}): {command('fsspec')}",
            path=shown(url),
        ) from None


def list_urls(url: str, suffix: str, settings: RemoteSettings) -> list[str]:
    """The objects that a URL names: itself, those below a folder, or those that match a pattern.

    Parameters
    ----------
    url : str
        One that ends with a slash is a folder; ``*`` in its last part makes it a pattern.
    suffix : str
        How the names of those in a folder or of a pattern must end.
    settings : RemoteSettings

    Returns
    -------
    list of str
        Those of a folder or pattern in the order of their names.

    Raises
    ------
    RemoteFileError
        If they cannot be listed.
    """
    folder, _, last = url.rpartition("/")
    if last and "*" not in last:
        return [url]
    options = settings.options
    try:
        names = _names_below(f"{folder}/", settings)
    except Exception as error:
        if isinstance(error, RemoteFileError | ImportError):
            raise
        raise RemoteFileError(
            f"the folder cannot be listed: {redacted(error, options)}", path=shown(url)
        ) from None
    pattern = last or "*"
    found = [n for n in names if n.endswith(suffix) and fnmatch.fnmatchcase(n, pattern)]
    return [f"{folder}/{name}" for name in sorted(found)]


def _names_below(folder: str, settings: RemoteSettings) -> list[str]:
    """Names of the objects in a folder, without those of folders in it."""
    scheme = urlsplit(folder).scheme
    cloud = scheme in OBSTORE_SCHEMES and scheme not in ("http", "https")
    if settings.library != "fsspec" and cloud and has_obstore():
        import obstore

        store, path = obstore_at(folder, settings)
        found = obstore.list_with_delimiter(store, path.rstrip("/") or None)["objects"]
        return [item["path"].rpartition("/")[2] for item in found]
    files, path = fsspec_at(folder, settings)
    files.invalidate_cache(path)
    try:
        entries = files.ls(path, detail=True)
    except FileNotFoundError:
        if not cloud:
            raise
        return []  # a folder there is what names begin with, and no name does yet
    return [e["name"].rpartition("/")[2] for e in entries if e["type"] == "file"]


def copy_object(source: str, target: str, settings: RemoteSettings) -> None:
    """Have the server copy an object within a bucket; errors are those of the library."""
    if library_for(source, settings) == "obstore":
        import obstore

        store, path = obstore_at(source, settings, write=True)
        obstore.copy(store, path, obstore_at(target, settings)[1])
        return
    files, path = fsspec_at(source, settings)
    files.cp_file(path, fsspec_at(target, settings)[1])


def delete_object(url: str, settings: RemoteSettings) -> None:
    """Remove an object, if it is there; errors are those of the library."""
    with contextlib.suppress(FileNotFoundError):
        if library_for(url, settings) == "obstore":
            import obstore

            obstore.delete(*obstore_at(url, settings, write=True))
            return
        files, path = fsspec_at(url, settings)
        files.rm_file(path)
