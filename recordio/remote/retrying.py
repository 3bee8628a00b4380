"""Requests that are made again while they fail, with growing pauses, until their time is up."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

__all__ = ["FIRST_DELAY", "LONGEST_DELAY", "GaveUp", "retried"]

Answer = TypeVar("Answer")
Kinds = tuple[type[BaseException], ...]

#: Seconds between two attempts: the first, and the longest.
FIRST_DELAY, LONGEST_DELAY = 0.1, 5.0


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
