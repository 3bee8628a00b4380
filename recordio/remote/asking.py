"""Objects looked up, and ranges of them read, with as many attempts as `remote_timeout` allows."""

from __future__ import annotations

import logging
from collections.abc import Callable

from recordio.errors import RemoteChangedError, RemoteFileError, RemoteMissingError
from recordio.remote.fetching import in_background
from recordio.remote.objects import RemoteObject, redacted, shown
from recordio.remote.retrying import GaveUp, retried
from recordio.remote.settings import RemoteSettings

__all__ = ["first_bytes", "is_there", "looked_up", "read_range"]

logger = logging.getLogger("recordio")

#: What is not asked for again when an object is opened: it would be the same.
HOPELESS = (TypeError, ValueError, MemoryError)
#: Errors of the libraries that say that a request was denied.
DENIED = {"PermissionError", "PermissionDeniedError", "UnauthenticatedError"}


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
