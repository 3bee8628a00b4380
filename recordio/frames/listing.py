"""Check that an index lists the records of its file once each, as far as a few heads tell.

An index whose copy stopped at a line end, or one of another file, would make an epoch shorter
without a word.  The end of the record that it lists last shows the first, the second is asked of a
few more places.  `recordio.verify` compares every record.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from recordio.errors import IndexFileError

#: Heads that are read to tell an index of another file from a damaged record.
PROBES = 16


def listing_fault(
    offsets: np.ndarray,
    index: str | None,
    path: str,
    size: int,
    end_at: Callable[[int], int | None],
) -> IndexFileError | None:
    """Say what is wrong with the offsets of an index, all of them inside the file; else None.

    ``end_at(offset)`` is where the record at an offset ends; None where no whole record begins.

    >>> from recordio.frames.encoder import encode
    >>> ends = {0: 12, 12: 24, 24: 36}
    >>> print(listing_fault(np.array([0, 12, 24]), "a.idx", "a.rec", 36, ends.get))
    None
    >>> print(listing_fault(np.array([0, 12]), "a.idx", "a.rec", 36, ends.get).reason[:58])
    the last record that it lists ends at 24, and a.rec has 36
    """
    if not len(offsets):
        lacking = f"it lists no record, and {path} has {size} bytes" if size else ""
        return _fault(lacking, index, path) if size else None
    ordered = offsets if (offsets[1:] >= offsets[:-1]).all() else np.sort(offsets)
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    if len(twice):
        line = int(np.flatnonzero(offsets == twice[0])[1]) + 1
        more = f", and lists {len(twice) - 1} more such lines" if len(twice) > 1 else ""
        return _fault(f"it lists the record at offset {twice[0]} again{more}", index, path, line)
    last = int(ordered[-1])
    end = end_at(last)
    if end == size:
        return None
    if end is not None:
        return _fault(
            f"the last record that it lists ends at {end}, and {path} has {size} bytes: it was not "
            "written or copied to its end, or is that of another file",
            index,
            path,
        )
    if _is_foreign(ordered, size, end_at):
        return _fault(
            f"no record of {path} begins at offset {last}, nor at others that it lists: it is that "
            "of another file",
            index,
            path,
            int(np.flatnonzero(offsets == last)[0]) + 1,
        )
    return None  # the record is damaged, which is said when it is read


def _is_foreign(ordered: np.ndarray, size: int, end_at: Callable[[int], int | None]) -> bool:
    """Tell an index that leads nowhere from a damaged record; every file has a record at 0."""
    later = ordered[ordered > 0]
    probed = later[np.unique(np.linspace(0, len(later) - 1, PROBES).astype(np.int64))]
    if not len(later) or any(end_at(int(offset)) is not None for offset in probed):
        return False
    end = end_at(0)
    return end is not None and end != size and end not in ordered


def _fault(reason: str, index: str | None, path: str, line: int | None = None) -> IndexFileError:
    return IndexFileError(f"{reason}; {rewriting(path)}", path=index, line=line)


def rewriting(path: str) -> str:
    """Name the command that writes the index of a record file again."""
    return f"`recordio index {path} --force` writes the index of all its records"
