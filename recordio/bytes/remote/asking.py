"""Objects looked up, and ranges of them read, with as many attempts as `remote_timeout` allows."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from typing import TypeVar

from recordio.bytes.remote.fetching import in_background
from recordio.bytes.remote.objects import RemoteObject, redacted, shown
from recordio.bytes.remote.settings import FIRST_DELAY, LONGEST_DELAY, RemoteSettings
from recordio.errors import RemoteChangedError, RemoteFileError, RemoteMissingError

__all__ = ["GaveUp", "first_bytes", "is_there", "looked_up", "read_range", "retried"]

Answer = TypeVar("Answer")
Kinds = tuple[type[BaseException], ...]

logger = logging.getLogger("recordio")

#: What is not asked for again when an object is opened: it would be the same.
HOPELESS = (TypeError, ValueError, MemoryError)
#: Errors of the libraries that say that a request was denied.
DENIED = {"PermissionError", "PermissionDeniedError", "UnauthenticatedError"}


class GaveUp(Exception):
    """A request failed for as long as it was to be made again.

    Attributes
    ----------
    attempts : int
    seconds : float
        From the first attempt to the end of the last.
    cause : Exception
        Why the last attempt failed.
    """

    def __init__(self, attempts: int, seconds: float, cause: Exception) -> None:
        super().__init__(attempts, seconds, cause)
        self.attempts, self.seconds, self.cause = attempts, seconds, cause

    @property
    def effort(self) -> str:
        """What was done, for a message."""
        return f"after {self.attempts} attempts in {self.seconds:.0f} s (remote_timeout)"


def retried(
    request: Callable[[], Answer],
    timeout: float,
    *,
    final: Kinds = (),
    hopeless: Kinds = (MemoryError,),
    failed: Callable[[Exception], object] = lambda error: None,
    pause: Callable[[float], object] = time.sleep,
) -> Answer:
    """What a request returns, made again while it fails.

    Parameters
    ----------
    request : callable
    timeout : float
        Seconds after which no further attempt is begun.
    final : tuple of exception types
        What an attempt may raise that is passed on at once.
    hopeless : tuple of exception types
        What ends the attempts as well, by `GaveUp`.
    failed : callable
        Called with the error of each attempt that failed; what it raises ends the attempts.
    pause : callable
        Waits for some seconds; what it raises ends the attempts.

    Raises
    ------
    GaveUp
        If no attempt succeeded.

    Examples
    --------
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


def looked_up(url: str, settings: RemoteSettings) -> RemoteObject:
    """An object, asked for again while that fails; Ctrl-C ends the wait.

    Raises
    ------
    RemoteMissingError
        At once, if the server has no such object.
    RemoteFileError
        If it cannot be reached.
    """
    return in_background(lambda: _looked_up(url, settings))


def is_there(url: str, settings: RemoteSettings) -> bool:
    """Whether a server has an object; no, if it denies that to us, as S3 does without `list`."""
    try:
        in_background(lambda: _looked_up(url, settings, patient_when_denied=False))
    except RemoteMissingError:
        return False
    return True


def _looked_up(
    url: str, settings: RemoteSettings, patient_when_denied: bool = True
) -> RemoteObject:
    told = False

    def note(error: Exception) -> None:
        nonlocal told
        if not patient_when_denied and type(error).__name__ in DENIED:
            raise FileNotFoundError(str(error))
        if not told and not isinstance(error, HOPELESS):
            told = True
            logger.warning(
                "%s: cannot be opened yet, and is asked for again for %g s (remote_timeout): %s",
                shown(url),
                settings.timeout,
                redacted(error, settings.options),
            )

    try:
        return retried(
            lambda: RemoteObject(url, settings),
            settings.timeout,
            final=(ImportError, RemoteFileError, FileNotFoundError),
            hopeless=HOPELESS,
            failed=note,
        )
    except RemoteFileError:
        raise
    except FileNotFoundError as error:
        cause = redacted(error, settings.options)
        raise RemoteMissingError(f"there is no such object: {cause}", path=shown(url)) from None
    except GaveUp as last:
        raise RemoteFileError(
            f"the object cannot be opened, {last.effort}: {redacted(last.cause, settings.options)}",
            path=shown(url),
        ) from None


def read_range(
    remote: RemoteObject,
    start: int,
    end: int,
    timeout: float,
    failed: Callable[[Exception], object] = lambda error: None,
) -> memoryview:
    """The bytes ``[start, end)`` of an object, asked for again while that fails.

    Parameters
    ----------
    remote : RemoteObject
    start, end : int
    timeout : float
        Seconds after which no further attempt is begun.
    failed : callable
        Called with the error of each attempt that failed; what it raises ends the attempts.

    Raises
    ------
    RemoteChangedError
        At once, if the object was replaced.
    RemoteFileError
        If no attempt succeeded.
    """
    try:
        return retried(
            lambda: remote.read(start, end), timeout, final=(RemoteChangedError,), failed=failed
        )
    except GaveUp as last:
        error = last.cause
        cause = error.reason if isinstance(error, RemoteFileError) else remote.cause(error)
        raise RemoteFileError(
            f"bytes {start} to {end - 1} cannot be read, {last.effort}: {cause}",
            path=remote.url,
            offset=start,
        ) from None


def first_bytes(url: str, count: int, settings: RemoteSettings) -> bytes:
    """The first bytes of an object, or all of a shorter one; errors as those of `looked_up`."""
    remote = looked_up(url, settings)
    count = min(count, remote.version.size)
    if not count:
        return b""
    return in_background(lambda: bytes(read_range(remote, 0, count, settings.timeout)))
