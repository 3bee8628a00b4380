"""Objects written in parts as their bytes come, and published together: whole, or not at all.

A main object never stands beside a wrong index.  Nothing here knows what is in them.
"""

from __future__ import annotations

import contextlib
import os
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlsplit

from recordio.bytes.remote.fetching import SIGNAL_SECONDS, in_background
from recordio.bytes.remote.library import (
    HOPELESS,
    GaveUp,
    Interrupted,
    Library,
    PartWriter,
    Version,
    redacted,
    redacted_url,
    retried,
)
from recordio.bytes.remote.objects import library_of, looked_up
from recordio.bytes.remote.settings import RemoteSettings
from recordio.bytes.storage import Output
from recordio.bytes.temporary import REPLACED_SUFFIX
from recordio.errors import RecordIOError, RemoteFileError, RemoteMissingError
from recordio.exit_hooks import at_end

#: Bytes of a part.
PART = 1 << 24
#: Parts of an object; S3 takes no more.
MOST_PARTS = 10_000
#: Seconds that giving up waits for the server to forget the parts.
ABORT_SECONDS = 2.0


class RemoteOutput(Output):
    """Write one object, or several that belong together, and publish them.

    The first is the main one, and the others (an index, say) describe it.  Companions of the old
    main object that the new one does not have, `without`, are removed.  `files` has an `Upload` for
    each URL, and `paths` the URLs as messages show them.

    Parts are sent while they are written, and nobody sees them before `commit`:

    * Old companions are moved away first, then the main object is replaced, then the new companions
      appear.  A reader hence never finds a companion of another version; for a moment it finds
      none, and says so.
    * If the main object cannot be published, the old companions are moved back.  If only a
      companion cannot, the error names it, and the main object is there without it.
    * An error, Ctrl-C, `discard`, dropping the object, or the end of the process has the server
      forget the parts.  SIGKILL or a lost connection can leave parts, which nobody sees and which a
      life-cycle rule of the bucket removes, or an old companion as ``URL.00000000.replaced``.
    """

    def __init__(
        self, *urls: str, without: Sequence[str] = (), settings: RemoteSettings | None = None
    ) -> None:
        super().__init__()
        self.files: tuple[Upload, ...]
        if len(set(urls)) != len(urls):
            raise RecordIOError(
                "the same URL is given twice as an output", path=redacted_url(urls[0])
            )
        self._settings = RemoteSettings() if settings is None else settings
        self._urls, self._without = urls, tuple(without)
        self.paths: tuple[str, ...] = tuple(map(redacted_url, urls))
        self.files = tuple(Upload(url, self._settings) for url in urls)
        self._cleanup = at_end(self, _discard, self.files, self._owner)

    def commit(self) -> None:
        """Publish all objects; on an error give them up, see above."""
        self.check_usable()
        self.closed: bool = True
        try:
            self._publish()
        finally:
            self._cleanup()

    def _publish(self) -> None:
        main, *companions = self.files
        aside: list[str] = []
        before = self._version() if len(self._urls) > 1 or self._without else None
        try:
            for url in (*self._urls[1:], *self._without):
                if self._copy(url, _replaced(url)):
                    aside.append(url)
                    remove(url, self._settings)
            main.publish()
        except BaseException:
            main.discard()
            with contextlib.suppress(RemoteFileError):
                # Not beside a main object that appeared all the same.
                if aside and self._version() == before:
                    for url in aside:
                        self._copy(_replaced(url), url)
                        remove(_replaced(url), self._settings)
            raise
        for companion in companions:
            companion.publish()
        for url in aside:
            with contextlib.suppress(RemoteFileError):
                remove(_replaced(url), self._settings)

    def _version(self) -> Version | None:
        """Look up the version of the main object; None if there is none."""
        try:
            return looked_up(self._urls[0], self._settings).version
        except RemoteMissingError:
            return None

    def _copy(self, source: str, target: str) -> bool:
        """Copy an object; False if there is none."""
        try:
            _change(source, self._settings, lambda library: library.copy(target))
        except RemoteMissingError:
            return False
        return True

    def discard(self) -> None:
        """Give up, and leave the objects as they are; may be called again."""
        self.closed = True
        self._cleanup()


def part_writer(url: str, settings: RemoteSettings) -> PartWriter:
    """Begin to write an object, by the library that reaches it."""
    if urlsplit(url).scheme in ("http", "https"):
        raise RemoteFileError(
            "servers of http:// and https:// are only read: write to s3://, gs://, az:// or the "
            "like, or to a path of this machine",
            path=redacted_url(url),
        )
    return library_of(url, settings)(url, settings).writer(PART)


class Upload:
    """An object that appears when `publish` is called, and `published` says that it did.

    Memory holds the part that is being filled, one that waits, and those under way.  Whatever fails
    is a RemoteFileError.  `url` is what messages show.
    """

    def __init__(self, url: str, settings: RemoteSettings) -> None:
        self.url: str = redacted_url(url)
        self._settings = settings
        try:
            self._writer = part_writer(url, settings)
        except (ImportError, RemoteFileError):
            raise
        except Exception as error:
            raise self._failure(error) from None
        self.published: bool = False
        self._part = bytearray()
        self._sent = 0
        self._steps: queue.Queue[tuple[bytearray, bool]] = queue.Queue(1)
        self._stopped, self._over = threading.Event(), threading.Event()
        self._error: RemoteFileError | None = None
        self._thread: threading.Thread | None = None

    def write(self, data: Any) -> int:
        """Append bytes, and return how many they were."""
        view = memoryview(data).cast("B")
        begin = 0
        while begin < len(view):
            taken = view[begin : begin + PART - len(self._part)]
            self._part += taken
            begin += len(taken)
            if len(self._part) == PART:
                self._hand_over(last=False)
        return len(view)

    def publish(self) -> None:
        """Send what is left, and wait until the object is there; Ctrl-C ends the wait."""
        self._hand_over(last=True)
        while not self._over.wait(SIGNAL_SECONDS):
            pass
        if self._error is not None:
            raise self._error

    def discard(self) -> None:
        """Give up what is not published; idempotent."""
        if self._thread is None or self._over.is_set():
            return
        self._stopped.set()
        self._writer.interrupt()
        with contextlib.suppress(queue.Full):
            self._steps.put_nowait((bytearray(), False))
        self._over.wait(ABORT_SECONDS)

    def _hand_over(self, last: bool) -> None:
        self._sent += 1
        if self._sent > MOST_PARTS:
            raise RemoteFileError(
                f"objects have at most {MOST_PARTS * PART} bytes: write several files, by "
                "`im2rec --chunks` or `recordio shard`",
                path=self.url,
            )
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="remote-upload", daemon=True)
            self._thread.start()
        part, self._part = self._part, bytearray()
        while not self._over.is_set():
            with contextlib.suppress(queue.Full):
                self._steps.put((part, last), timeout=SIGNAL_SECONDS)
                return
        raise self._error or ValueError(f"the output to {self.url} is closed")

    def _serve(self) -> None:
        try:
            last = False
            while not last:
                part, last = self._steps.get()
                if self._stopped.is_set():
                    raise Interrupted
                if last:
                    self._writer.finish(part)
                else:
                    self._writer.write(part)
            self.published = True
        except BaseException as error:  # that of a cancelled task is no Exception
            self._error = self._failure(error)
            with contextlib.suppress(Exception):
                self._writer.abort()
        finally:
            self._over.set()

    def _failure(self, error: BaseException) -> RemoteFileError:
        effort = ""
        if isinstance(error, GaveUp):
            effort, error = f", {error.effort}" if error.attempts > 1 else "", error.cause
        cause = redacted(error, self._settings.options)
        return RemoteFileError(f"it cannot be written{effort}: {cause}", path=self.url)


def remove(url: str, settings: RemoteSettings | None = None) -> None:
    """Remove an object, if it is there; Ctrl-C ends the wait."""
    with contextlib.suppress(RemoteMissingError):
        _change(url, settings or RemoteSettings(), lambda library: library.delete())


def _change(url: str, settings: RemoteSettings, request: Callable[[Library], None]) -> None:
    """Make a request that changes an object, again while it fails."""

    def change() -> None:
        kind = library_of(url, settings)
        hopeless = (Exception,) if kind.repeats_changes else HOPELESS
        retried(
            lambda: request(kind(url, settings)),
            settings.timeout,
            final=(FileNotFoundError,),
            hopeless=hopeless,
        )

    try:
        in_background(change)
    except FileNotFoundError as error:
        raise RemoteMissingError(
            redacted(error, settings.options), path=redacted_url(url)
        ) from None
    except GaveUp as last:
        cause = redacted(last.cause, settings.options)
        raise RemoteFileError(
            f"it cannot be moved or removed, {last.effort}: {cause}", path=redacted_url(url)
        ) from None


def _replaced(url: str) -> str:
    return f"{url}.00000000{REPLACED_SUFFIX}"


def _discard(uploads: tuple[Any, ...], owner: int) -> None:
    if os.getpid() == owner:
        for upload in uploads:
            upload.discard()
