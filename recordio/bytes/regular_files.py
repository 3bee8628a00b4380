"""Open files that are read by position: only regular files are accepted.

A pipe would be waited for until somebody writes into it, and has no positions.  Texts that are read
once from beginning to end (`recordio.bytes.files.open_text`) may come through one.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import BinaryIO, cast


def open_regular(path: str | os.PathLike[str], buffering: int = -1) -> BinaryIO:
    """Open a regular file for reading, without ever waiting; anything else is an OSError."""
    return cast(BinaryIO, open(path, "rb", buffering=buffering, opener=_opened))


def _opened(path: str, flags: int) -> int:
    """Open a descriptor, of a regular file alone."""
    descriptor = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))  # a pipe must not block
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):  # of a folder `open` itself tells
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "it is no regular file; give a file on a disk", path)
