"""Temporary names for output, and the removal of files that killed processes left.

A process keeps a lock on what it makes here for as long as it lives, and the system frees that lock
when the process ends in any way.  What stands under such a name without a lock was left behind, and
makes room for the next output to the same target.  Only these names are ever removed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat

#: Ends the name of what is not published yet: ``train.rec.00000000.partial``.
TEMPORARY_SUFFIX = ".partial"
#: Ends the name of the old version of a file for the moment in which its group is replaced.
REPLACED_SUFFIX = ".replaced"
#: Ends the target of the journal of a run that another run can go on with: ``train.rec.journal``.
JOURNAL_SUFFIX = ".journal"
_FIRST = f".{0:08x}{TEMPORARY_SUFFIX}"


class Temporary:
    """A new file or folder beside its target, under the first number that no living process uses.

    Nothing is made before `make`, so that whoever is to remove it can be told before.  `path` says
    where it is, and `descriptor` is that of a file, open for writing and the caller's to close.

    >>> import pathlib, tempfile
    >>> target = pathlib.Path(tempfile.mkdtemp(), "a.rec")
    >>> first, second = Temporary(str(target)), Temporary(str(target))
    >>> for file in (first, second):
    ...     os.close(file.make())
    ...     os.path.basename(file.path)
    'a.rec.00000000.partial'
    'a.rec.00000001.partial'
    >>> for file in (first, second):
    ...     file.remove()
    >>> os.listdir(target.parent)
    []
    """

    def __init__(self, target: str, folder: bool = False) -> None:
        self.path: str = ""
        self.descriptor: int | None = None
        self._target = target
        self._lock: int | None = None
        self._status: os.stat_result | None = None
        self._is_folder = folder

    def make(self) -> int | None:
        """Make it, instead of what a killed run left to go on with; returns a file's descriptor."""
        _remove_abandoned(f"{self._target}{JOURNAL_SUFFIX}{_FIRST}")
        number = 0
        while True:
            self._status = None
            self.path = f"{self._target}.{number:08x}{TEMPORARY_SUFFIX}"
            try:
                if self._make():
                    return self.descriptor
            except FileExistsError:
                if _remove_abandoned(self.path):
                    continue
            except BaseException:
                self._close()
                self.remove()
                raise
            number += 1

    def take_over(self) -> int | None:
        """Take what a killed process left under the first name, and return the file's descriptor.

        None without such a file, if a living process holds it, or where there are no locks to tell.
        """
        self.path = self._target + _FIRST
        try:
            descriptor = _open_file(self.path)
        except OSError:
            return None
        if descriptor is None:
            return None
        self.descriptor = descriptor
        self._status = os.fstat(self.descriptor)
        self._lock = os.dup(self.descriptor)
        regular = stat.S_ISREG(self._status.st_mode)
        if regular and _try_lock(self._lock) and _is_at(self._status, self.path):
            return self.descriptor
        self._close()
        self.release()
        self.path = ""
        return None

    def _make(self) -> bool:
        """Make and lock it; False if a process that found it without its lock is taking it away."""
        if not self._create():
            return False
        locked = None if self._lock is None else _try_lock(self._lock)
        if locked is None:
            return True  # no locks here: nobody will take it for abandoned either
        if locked and _is_at(self._status, self.path):
            return True
        self._close()
        self.release()
        return False

    def _create(self) -> bool:
        """Make it and note what it is; False if it is gone already."""
        if self._is_folder:
            os.mkdir(self.path)
            try:
                self._status = os.lstat(self.path)
                self._lock = _open_folder(self.path)
            except FileNotFoundError:
                return False
            return True
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        self.descriptor = os.open(self.path, flags | getattr(os, "O_CLOEXEC", 0), 0o666)
        self._status = os.fstat(self.descriptor)
        # Shares the lock, and keeps it when the file itself is closed.
        self._lock = os.dup(self.descriptor) if _HAS_LOCKS else None
        return True

    def _close(self) -> None:
        descriptor, self.descriptor = self.descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def release(self) -> None:
        """Give the lock back: it has its final name now, or is gone."""
        lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)

    def remove(self) -> None:
        """Remove it, if it still has this name; errors of the system are ignored."""
        if not self.path:
            return
        if self._status is not None and _is_at(self._status, self.path):
            _remove(self.path)
            self.release()
        else:  # published, or interrupted before it was noted as ours
            self.release()
            _remove_abandoned(self.path)


def _remove_abandoned(path: str) -> bool:
    """Remove what is at a temporary path unless a process holds it; True if the path is free."""
    try:
        lock = _open_folder(path) if os.path.isdir(path) else _open_file(path)
    except FileNotFoundError:
        return True
    except OSError:  # somebody else's
        return False
    if lock is None:
        return False
    try:
        if _try_lock(lock) and _is_at(os.fstat(lock), path):
            _remove(path)
        return not os.path.lexists(path)
    finally:
        os.close(lock)


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path, ignore_errors=True)
        else:
            os.unlink(path)


def _is_at(status: os.stat_result | None, path: str) -> bool:
    """Tell whether the file with this status is still the one at a path."""
    try:
        return status is not None and os.path.samestat(status, os.lstat(path))
    except FileNotFoundError:
        return False


try:
    import fcntl

    _HAS_LOCKS = True

    def _open_folder(path: str) -> int | None:
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)

    def _open_file(path: str) -> int | None:
        return os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW)  # a pipe must not block

    def _try_lock(descriptor: int) -> bool | None:
        """True with the lock, False if somebody else has it, None where there are no locks."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            return None
        return True

except ImportError:  # Windows: what is left there stays, and numbers go on
    _HAS_LOCKS = False

    def _open_folder(path: str) -> int | None:
        return None

    _open_file = _open_folder

    def _try_lock(descriptor: int) -> bool | None:
        return None
