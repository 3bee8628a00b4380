"""Objects through fsspec and its libraries, for every other scheme; ETags are compared here.

fsspec has no conditions, and its ``cat_file`` returns bytes and nothing else.  Bytes of another
position or version would pass for those that were asked for, so the answers of s3fs and aiohttp are
read here, with their headers; with other libraries the object is looked up after each request.
"""

from __future__ import annotations

import contextlib
import io
import threading
from collections.abc import Awaitable, Callable
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import urlsplit

from recordio.bytes.remote.library import (
    CLOUDS,
    HOPELESS,
    Access,
    Interrupted,
    Library,
    PartWriter,
    Version,
    no_ranges,
    object_was_replaced,
    redacted,
    redacted_url,
    request_seconds,
    retried,
)
from recordio.errors import RemoteFileError
from recordio.extras import command, need

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
#: Names under which file systems tell the version of an object, the best first.
TAGS = ("ETag", "etag", "e_tag", "LastModified", "Last-Modified", "mtime", "last_modified",
        "created")  # fmt: skip


class Fsspec(Library):
    """An object or a folder of a file system of fsspec."""

    def __init__(self, url: str, access: Access) -> None:
        super().__init__(url, access)
        self._seconds = request_seconds(access)
        self._files, self._path = _fsspec_at(url, access)
        self._read_range = _range_reader(self._files)

    @classmethod
    def reaches(cls, url: str) -> bool:
        return True

    def _call(self, name: str, **keywords: Any) -> Any:
        """Call a method of the file system, for so long as one request may take."""
        if not self._files.async_impl:
            return getattr(self._files, name)(self._path, **keywords)
        return self._wait_for(getattr(self._files, f"_{name}"), self._path, **keywords)

    def _wait_for(self, function: Any, *arguments: Any, **keywords: Any) -> Any:
        """Run a coroutine for so long as one request may take."""
        from fsspec.asyn import sync

        return sync(self._files.loop, function, *arguments, timeout=self._seconds, **keywords)

    def head(self) -> Version:
        self._files.invalidate_cache()
        try:
            facts = self._call("info")
        except FileNotFoundError as error:
            # The file system of http says so whatever went wrong.
            cause, scheme = error.__cause__, urlsplit(self._url).scheme
            says_so = isinstance(cause, FileNotFoundError) or getattr(cause, "status", 0) == 404
            if scheme not in ("http", "https") or cause is None or says_so:
                raise
            raise cause from None
        size = facts.get("size")
        if size is None:
            raise RemoteFileError("the server does not tell its size", path=redacted_url(self._url))
        tags = [str(facts[name]) for name in TAGS if facts.get(name) is not None]
        return Version(int(size), tags[0] if tags else "")

    def read(self, start: int, end: int, version: Version) -> Any:
        if self._read_range is None:
            data, is_same = self._call("cat_file", start=start, end=end), None
        else:
            data, is_same = self._checked_range(start, end, version)
        if is_same is None and self.head() != version:
            raise object_was_replaced(self._url)
        return data

    def _checked_range(self, start: int, end: int, version: Version) -> tuple[bytes, bool | None]:
        """Read bytes that are those by the server's headers; True if these tell the version."""
        is_same: bool | None = None

        def check(answer: RangeAnswer) -> None:
            nonlocal is_same
            is_same = answer.is_of(version.tag)
            came, _, size = answer.content_range.partition("/")
            if is_same is False or size not in ("", "*", str(version.size)):
                raise object_was_replaced(self._url)
            expected_range = f"bytes {start}-{end - 1}"
            if came != expected_range and answer.is_whole:
                raise no_ranges(self._url, start)
            if came != expected_range:
                came = came or "bytes without saying which (no Content-Range)"
                raise RemoteFileError(
                    f"the server sent {came} instead of {expected_range}",
                    path=redacted_url(self._url),
                    offset=start,
                )

        read = self._read_range
        return self._wait_for(read, self._files, self._path, start, end, check), is_same

    def names(self) -> list[str]:
        self._files.invalidate_cache(self._path)
        try:
            entries = self._files.ls(self._path, detail=True)
        except FileNotFoundError:
            if urlsplit(self._url).scheme not in CLOUDS:
                raise
            return []  # a folder there is what names begin with, and no name does yet
        return [e["name"].rpartition("/")[2] for e in entries if e["type"] == "file"]

    def copy(self, target: str) -> None:
        self._files.cp_file(self._path, _fsspec_at(target, self._access)[1])

    def delete(self) -> None:
        self._files.rm_file(self._path)

    def writer(self, part: int) -> PartWriter:
        if hasattr(self._files, "call_s3"):
            return _S3fsWriter(self._files, self._path, self._access.timeout)
        return _FsspecWriter(self._files, self._path, part)

    @classmethod
    def is_folder(cls, url: str, access: Access) -> bool:
        files, path = filesystem(url, access)
        return bool(files.isdir(path))

    @classmethod
    def stream(cls, url: str, access: Access) -> BinaryIO:
        files, path = filesystem(url, access)
        opened: BinaryIO = files.open(path, "rb")
        return opened


# -- file systems ---------------------------------------------------------------------------------


def filesystem(url: str, access: Access | None = None) -> tuple[Any, str]:
    """Open the file system of a URL, and name the path in it; ImportError says what to install."""
    url_to_fs = need("fsspec.core", f"URLs such as {url}").url_to_fs
    try:
        return url_to_fs(url, **_options(url, access))
    except ImportError as error:
        brought = urlsplit(url).scheme in ("http", "https", "s3", "s3a")
        hint = f": {command('fsspec')}" if brought else ""
        raise ImportError(f"{url}: {error}{hint}") from error


def _fsspec_at(url: str, access: Access) -> tuple[Any, str]:
    """Do the same for single requests, which are made again here, and with errors of ours."""
    url_to_fs = need("fsspec.core", f"URLs such as {redacted_url(url)}").url_to_fs
    options = _options(url, access)
    if urlsplit(url).scheme in ("s3", "s3a"):
        once = {"retries": {"total_max_attempts": 1}}
        options["config_kwargs"] = {**once, **options.get("config_kwargs", {})}
    try:
        return url_to_fs(url, **options)
    except (ImportError, ValueError) as error:
        raise RemoteFileError(
            f"no library for it is installed ({redacted(error, options)}): {command('fsspec')}",
            path=redacted_url(url),
        ) from None


def _options(url: str, access: Access | None) -> dict[str, Any]:
    """Give options the names that the file system of a URL has for them."""
    options = {} if access is None else access.options
    if urlsplit(url).scheme in ("s3", "s3a"):
        options = {S3FS_NAMES.get(name, name): value for name, value in options.items()}
        region = options.pop("region", None) or options.pop("aws_region", None)
        if region is not None:
            options["client_kwargs"] = {**options.get("client_kwargs", {}), "region_name": region}
    return options


# -- ranges, with the headers of the answer -------------------------------------------------------


class RangeAnswer(NamedTuple):
    """The headers before some bytes; each is empty if the server did not send it."""

    content_range: str
    etag: str
    changed: str
    is_whole: bool = False  # by its status it is the whole object

    def is_of(self, tag: str) -> bool | None:
        """Compare them with a version's tag; None if that cannot be said.

        >>> answer = RangeAnswer("bytes 0-9/100", '"7f"', "")
        >>> answer.is_of('"7f"'), answer.is_of('"80"'), answer.is_of("Sat, 21 Nov 2026")
        (True, False, None)
        """
        if tag and tag in (self.etag, self.changed):
            return True
        return False if self.etag and tag.startswith(_ETAG) else None


#: How ETags begin, and times do not.
_ETAG = ('"', 'W/"')


#: ``check(answer)`` is called before the bytes are read; what it raises ends the request.
Check = Callable[[RangeAnswer], None]
#: ``read(files, path, start, end, check)`` gives the bytes ``[start, end)``.
RangeReader = Callable[[Any, str, int, int, Check], Awaitable[bytes]]


def _range_reader(files: Any) -> RangeReader | None:
    """Find the function that reads ranges with headers; None if there is only ``cat_file``."""
    names = {files.protocol} if isinstance(files.protocol, str) else set(files.protocol)
    if not files.async_impl:
        return None
    return _read_http if "http" in names else _read_s3 if "s3" in names else None


async def _read_http(files: Any, url: str, start: int, end: int, check: Check) -> bytes:
    headers = {**files.kwargs.get("headers", {}), "Range": f"bytes={start}-{end - 1}"}
    headers["Accept-Encoding"] = "identity"
    session = await files.set_session()
    asked = session.get(files.encode_url(url), **{**files.kwargs, "headers": headers})
    async with asked as answer:
        files._raise_not_found_for_status(answer, url)
        fields = answer.headers
        span = fields.get("Content-Range", "")
        whole = answer.status != 206
        if whole and answer.content_length is not None:
            span = f"bytes 0-{answer.content_length - 1}/{answer.content_length}"
        check(RangeAnswer(span, fields.get("ETag", ""), fields.get("Last-Modified", ""), whole))
        data: bytes = await answer.read()
        return data


async def _read_s3(files: Any, path: str, start: int, end: int, check: Check) -> bytes:
    bucket, key, version = files.split_path(path)
    which = {} if version is None else {"VersionId": version}
    answer = await files._call_s3(
        "get_object", Bucket=bucket, Key=key, Range=f"bytes={start}-{end - 1}", **which
    )
    body = answer["Body"]
    try:
        span, changed = answer.get("ContentRange", ""), str(answer.get("LastModified", ""))
        check(RangeAnswer(span, answer.get("ETag", ""), changed))
        data: bytes = await body.read()
        return data
    finally:
        body.close()


# -- objects in parts -----------------------------------------------------------------------------


class _S3fsWriter:
    """One part at a time, each sent again while that fails."""

    def __init__(self, files: Any, path: str, timeout: float) -> None:
        bucket, key, _ = files.split_path(path)
        self._files, self._path, self._timeout = files, path, timeout
        self._target = {"Bucket": bucket, "Key": key}
        self._upload: str | None = None
        self._tags: list[str] = []
        self._stop = threading.Event()

    def _call(self, method: str, body: bytearray | None = None, **parameters: Any) -> Any:
        def request() -> Any:
            if self._stop.is_set():
                raise Interrupted
            # A file, since bytes of that size make aiohttp warn.
            content = {} if body is None else {"Body": io.BytesIO(body)}
            return self._files.call_s3(method, **self._target, **parameters, **content)

        hopeless = (*HOPELESS, Interrupted)
        return retried(request, self._timeout, hopeless=hopeless, pause=self._pause)

    def _pause(self, seconds: float) -> None:
        if self._stop.wait(seconds):
            raise Interrupted

    def write(self, part: bytearray) -> None:
        if self._upload is None:
            self._upload = self._call("create_multipart_upload")["UploadId"]
        sent = self._call(
            "upload_part", part, UploadId=self._upload, PartNumber=len(self._tags) + 1
        )
        self._tags.append(sent["ETag"])

    def finish(self, rest: bytearray) -> None:
        if self._upload is None:
            self._call("put_object", rest)
        else:
            if rest:
                self.write(rest)
            parts = [{"PartNumber": n, "ETag": tag} for n, tag in enumerate(self._tags, 1)]
            self._call(
                "complete_multipart_upload",
                UploadId=self._upload,
                MultipartUpload={"Parts": parts},
            )
        self._upload = None
        self._files.invalidate_cache(self._path)

    def abort(self) -> None:
        if self._upload is not None:
            self._files.call_s3("abort_multipart_upload", **self._target, UploadId=self._upload)

    def interrupt(self) -> None:
        self._stop.set()
        with contextlib.suppress(Exception):  # the part under way fails then
            self.abort()


class _FsspecWriter:
    """A transaction of fsspec; whether parts are sent again is up to the library behind it."""

    def __init__(self, files: Any, path: str, part: int) -> None:
        self._files, self._path, self._part = files, path, part
        self._file: Any = None

    def write(self, part: bytearray) -> None:
        if self._file is None:
            self._file = self._files.open(self._path, "wb", block_size=self._part, autocommit=False)
        self._file.write(part)

    def finish(self, rest: bytearray) -> None:
        self.write(rest)
        self._file.close()
        self._file.commit()

    def abort(self) -> None:
        if self._file is not None:
            self._file.discard()

    def interrupt(self) -> None:
        pass
