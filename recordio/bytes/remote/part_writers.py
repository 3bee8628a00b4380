"""How the libraries write one object in parts, so that it appears at the end or never.

A part writer is used by one thread; only `interrupt` may be called by another.
"""

from __future__ import annotations

import contextlib
import io
import threading
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from recordio.bytes.remote.asking import retried
from recordio.bytes.remote.objects import fsspec_at, library_for, obstore_at, shown
from recordio.bytes.remote.settings import RemoteSettings
from recordio.errors import RemoteFileError

if TYPE_CHECKING:
    import asyncio

__all__ = ["PART", "Interrupted", "PartWriter", "part_writer"]

#: Bytes of a part.
PART = 1 << 24
#: Parts under way at once, with obstore.
AT_ONCE = 4
#: What is not asked for again: it would be the same.
HOPELESS = (
    FileNotFoundError,
    PermissionError,
    NotImplementedError,
    TypeError,
    ValueError,
    MemoryError,
)


class Interrupted(Exception):
    """The writer was interrupted between two attempts."""


class PartWriter(Protocol):
    """One object on its way; errors are those of the library, or `GaveUp`."""

    def write(self, part: bytearray) -> None:
        """Send `PART` bytes, which nobody changes any more."""

    def finish(self, rest: bytearray) -> None:
        """Send what is left, perhaps nothing, and have the object appear."""

    def abort(self) -> None:
        """Have the server forget all parts."""

    def interrupt(self) -> None:
        """Have `write` or `finish` end soon, by an exception."""


def part_writer(url: str, settings: RemoteSettings) -> PartWriter:
    """The writer of an object.

    Raises
    ------
    RemoteFileError
        If no library writes to such a URL.
    """
    if urlsplit(url).scheme in ("http", "https"):
        raise RemoteFileError(
            "servers of http:// and https:// are only read: write to s3://, gs://, az:// or the "
            "like, or to a path of this machine",
            path=shown(url),
        )
    if library_for(url, settings) == "obstore":
        return _ObstoreWriter(url, settings)
    files, path = fsspec_at(url, settings)
    if hasattr(files, "call_s3"):
        return _S3fsWriter(files, path, settings)
    return _FsspecWriter(files, path)


class _ObstoreWriter:
    """Several parts at once, which obstore itself sends again."""

    def __init__(self, url: str, settings: RemoteSettings) -> None:
        import obstore

        store, path = obstore_at(url, settings, write=True)
        self._writer = obstore.open_writer_async(
            store, path, buffer_size=PART, max_concurrency=AT_ONCE
        )
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None
        self._begun = self._interrupted = False

    def _run(self, call: Callable[[], Awaitable[Any]], whole: bool = False) -> None:
        """Wait for what a call gives; `interrupt` ends that unless it has to be done as a whole."""
        if self._loop is None:
            from asyncio import new_event_loop  # takes longer to import than all else here

            self._loop = new_event_loop()

        async def run() -> None:
            await call()

        task = self._loop.create_task(run())
        self._task = None if whole else task
        if self._interrupted and not whole:
            task.cancel()
        self._loop.run_until_complete(task)

    def write(self, part: bytearray) -> None:
        # The first one begins the upload; ended inside of that it could not be aborted.
        self._run(lambda: self._writer.write(part), whole=not self._begun)
        self._begun = True

    def finish(self, rest: bytearray) -> None:
        if rest:
            self.write(rest)
        self._run(self._writer.flush)  # all but the rest has arrived, and can be aborted
        self._run(self._writer.close)
        self._close()

    def abort(self) -> None:
        try:
            if self._loop is not None:
                self._run(
                    lambda: self._writer.__aexit__(Interrupted, Interrupted(), None), whole=True
                )
        finally:
            self._close()

    def _close(self) -> None:
        if self._loop is not None:
            self._loop.close()

    def interrupt(self) -> None:
        self._interrupted = True
        if self._loop is not None and self._task is not None:
            with contextlib.suppress(RuntimeError):  # it is closed
                self._loop.call_soon_threadsafe(self._task.cancel)


class _S3fsWriter:
    """One part at a time, each asked for again while that fails."""

    def __init__(self, files: Any, path: str, settings: RemoteSettings) -> None:
        bucket, key, _ = files.split_path(path)
        self._files, self._path, self._timeout = files, path, settings.timeout
        self._place = {"Bucket": bucket, "Key": key}
        self._upload: str | None = None
        self._tags: list[str] = []
        self._stop = threading.Event()

    def _call(self, method: str, body: bytearray | None = None, **given: Any) -> Any:
        def request() -> Any:
            if self._stop.is_set():
                raise Interrupted
            # A file, since bytes of that size make aiohttp warn.
            content = {} if body is None else {"Body": io.BytesIO(body)}
            return self._files.call_s3(method, **self._place, **given, **content)

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
            self._files.call_s3("abort_multipart_upload", **self._place, UploadId=self._upload)

    def interrupt(self) -> None:
        self._stop.set()
        with contextlib.suppress(Exception):  # the part under way fails then
            self.abort()


class _FsspecWriter:
    """What fsspec's transactions do; whether parts are sent again is up to the library."""

    def __init__(self, files: Any, path: str) -> None:
        self._files, self._path = files, path
        self._file: Any = None

    def write(self, part: bytearray) -> None:
        if self._file is None:
            self._file = self._files.open(self._path, "wb", block_size=PART, autocommit=False)
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
