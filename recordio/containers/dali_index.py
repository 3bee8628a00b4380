"""Indexes of WebDataset tars that DALI's ``wds2idx`` wrote: ``PREFIX.idx`` beside ``PREFIX.tar``.

The first line is ``v1.2 COUNT``; then comes a line for each sample, ``ENDING OFFSET SIZE NAME`` for
each of its files.  An index that is older than its archive, or does not fit it, is not used.
"""

from __future__ import annotations

import contextlib
import logging

import numpy as np

from ..bytes.files import StoredFile
from ..bytes.remote.mirror import Mirror, blocks_of
from ..bytes.remote.settings import RemoteSettings
from ..errors import RecordIOError
from .tar_members import TarScan, read_header

VERSION = b"v1.2"
#: No larger index is read: 64 bytes a file are usual.
MOST_BYTES = 1 << 31
#: Headers that are fetched at once.
AT_ONCE = 4096

logger: logging.Logger = logging.getLogger("recordio")


def take_index(
    file: StoredFile,
    scan: TarScan,
    view: memoryview,
    mirror: Mirror | None,
    settings: RemoteSettings | None,
) -> bool:
    """Have a scan take its files from the index beside an archive; False without one to use."""
    index = file.beside(".idx")
    try:
        if file.is_local and index.version()[1] < file.version()[1]:
            return False  # or there is none
        if not index.first_bytes(len(VERSION) + 1, settings).startswith(VERSION + b" "):
            return False
        text = bytes(index.map(settings)[:MOST_BYTES])
    except (OSError, RecordIOError):
        return False
    reason = _take(text, scan, view, mirror)
    if reason:
        logger.warning("%s: is not used, as it does not fit its archive: %s", index.name, reason)
    return not reason


def _take(text: bytes, scan: TarScan, view: memoryview, mirror: Mirror | None) -> str:
    """Take the files of an index; returns why it is not right."""
    head, _, lines = text.partition(b"\n")
    count = head.removeprefix(VERSION + b" ").strip()
    if not lines.endswith(b"\n"):
        return "it is cut"
    odd = scan.take_lines(view, lines, mirror is None)
    if isinstance(odd, str):
        return odd
    if not count.isdigit() or int(count) != scan.rows:
        return f"it has {scan.rows} samples, and says that it has {count.decode(errors='replace')}"
    return _compare(odd, lines, view, mirror) or _check_end(scan.position, view, mirror)


def _compare(files: np.ndarray, lines: bytes, view: memoryview, mirror: Mirror | None) -> str:
    """Compare some files with their headers; returns what is wrong."""
    for begin in range(0, len(files), AT_ONCE):
        some = files[begin : begin + AT_ONCE]
        with contextlib.ExitStack() as stack:
            if mirror is not None:
                headers = blocks_of(some[:, 0] - 512, some[:, 0])
                stack.enter_context(mirror.pin(headers, urgent=True))
            for offset, size, at, length in some.tolist():
                name, nbytes = read_header(view[offset - 512 : offset]) or (b"", -1)
                if nbytes != size or (length < 100 and name != lines[at : at + length]):
                    return f"there is no such header before offset {offset}"
    return ""


def _check_end(end: int, view: memoryview, mirror: Mirror | None) -> str:
    """Check that nothing follows the last file; returns what is wrong."""
    with contextlib.ExitStack() as stack:
        if mirror is not None:
            stack.enter_context(mirror.pin_bytes(end, min(end + 512, len(view))))
        return "" if view[end : end + 512] == bytes(512) else "there is more behind its last file"
