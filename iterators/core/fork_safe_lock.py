"""`ForkSafeLock`: threads that share an iterator use it one at a time, in forked children too."""

from __future__ import annotations

import os
import threading


class ForkSafeLock:
    """A lock that a forked child does not inherit locked, and that is never pickled or copied.

    ``with access.lock:`` waits for the other threads.  The same thread may enter again, so that a
    signal handler cannot block.
    """

    def __init__(self) -> None:
        self._process = os.getpid()
        self._lock = threading.RLock()

    @property
    def lock(self) -> threading.RLock:
        """The lock of this process."""
        if self._process != os.getpid():  # the thread that held it does not exist here
            self._process, self._lock = os.getpid(), threading.RLock()
        return self._lock

    def __reduce__(self) -> tuple[type[ForkSafeLock], tuple[()]]:
        return ForkSafeLock, ()
