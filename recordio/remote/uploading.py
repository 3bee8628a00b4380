"""Writing one object: in parts as its bytes come, by a thread of its own, whole or not at all."""

from __future__ import annotations

import contextlib
import queue
import threading
from typing import Any

from recordio.errors import RemoteFileError
from recordio.remote.fetching import SIGNAL_SECONDS
from recordio.remote.objects import redacted, shown
from recordio.remote.part_writers import PART, Interrupted, part_writer
from recordio.remote.retrying import GaveUp
from recordio.remote.settings import RemoteSettings

__all__ = ["Upload"]

#: Parts of an object; S3 takes no more.
MOST_PARTS = 10_000
#: Seconds that giving up waits for the server to forget the parts.
ABORT_SECONDS = 2.0


class Upload:
    """An object that appears when `publish` is called.

    Memory holds the part that is being filled, one that waits, and those under way.

    Parameters
    ----------
    url : str
    settings : RemoteSettings

    Attributes
    ----------
    url : str
        As messages show it.
    published : bool
        Whether the object is there.

    Raises
    ------
    RemoteFileError
        If no library writes to such a URL.
    """

    def __init__(self, url: str, settings: RemoteSettings) -> None:
        self.url, self._settings = shown(url), settings
        try:
            self._writer = part_writer(url, settings)
        except (ImportError, RemoteFileError):
            raise
        except Exception as error:
            raise self._failure(error) from None
        self.published = False
        self._part = bytearray()
        self._sent = 0
        self._steps: queue.Queue[tuple[bytearray, bool]] = queue.Queue(1)
        self._stopped, self._over = threading.Event(), threading.Event()
        self._error: RemoteFileError | None = None
        self._thread: threading.Thread | None = None

    def write(self, data: Any) -> int:
        """Append bytes, and return how many they were.

        Raises
        ------
        RemoteFileError
            If a part could not be sent, or there are too many.
        """
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
        """Send what is left, and wait until the object is there; Ctrl-C ends the wait.

        Raises
        ------
        RemoteFileError
            If that failed.
        """
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
