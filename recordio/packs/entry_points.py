"""Entry points of the JPEG images of a pack, kept beside it: ``PREFIX.entry``.

The file names the pack that it belongs to, and ends with a checksum: one of another pack, or one
that is not whole, counts as none.  docs/formats/entry.md has its layout.  Nothing is decoded here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np

from ..containers.index import UNREADABLE, index_paths, write_beside_or_cached
from ..formats.jpeg.entry_store import EntryStore
from ..frames.companions import ENTRY_POINTS
from .open_pack import OpenPack
from .sizes import SizedFile, is_older, with_checksum, without_checksum

MAGIC = ENTRY_POINTS.magic
SUFFIX = ENTRY_POINTS.ending


def load_entry_points(pack: OpenPack, store: EntryStore, first: int) -> None:
    """Take over the points of all records of a pack: `first` and the next of the store."""
    for file, rows, numbers in _files(pack, first):
        _load(file, store, rows, numbers)


def keep_entry_points(pack: OpenPack, store: EntryStore, first: int) -> None:
    """Write the points of all records of a pack, if some are not in its file yet.

    What other processes wrote meanwhile is taken over where the store knows no more.  The file lies
    in the cache folder of indexes where nobody may write beside the pack, and of packs on servers.
    """
    for file, rows, numbers in _files(pack, first):
        before = _load(file, store, rows, numbers)
        points = [store.packed(int(row)) or b"" for row in rows]
        if sum(map(len, points)) == before or not any(points):
            continue
        sizes = np.zeros(len(file), "<u2")
        sizes[numbers] = [len(part) for part in points]
        write_beside_or_cached(
            _paths(file), with_checksum(file.bound(MAGIC), sizes.data, b"".join(points))
        )


def _files(pack: OpenPack, first: int) -> Iterator[tuple[SizedFile, np.ndarray, np.ndarray]]:
    """Yield each file, the positions of its records in the store, and their numbers in the file."""
    for file in pack.sized_files():
        numbers = pack.numbers if pack.container is None else np.arange(len(file))
        yield file, first + np.arange(len(numbers)), numbers
        first += len(numbers)


def _paths(file: SizedFile) -> list[str]:
    beside = os.path.splitext(file.beside.name)[0] + SUFFIX
    return index_paths(file.file, SUFFIX, beside)


def _load(file: SizedFile, store: EntryStore, rows: np.ndarray, numbers: np.ndarray) -> int:
    """Take over what a file has and the store has not; return the bytes of points in the file."""
    for path in _paths(file):
        if file.file.is_local and is_older(path, file.file.name):
            continue
        points = _read(path, file)
        if points is not None:
            sizes, data = points
            ends = np.cumsum(sizes, dtype=np.int64)
            for row, number in zip(rows.tolist(), numbers.tolist(), strict=True):
                size = int(sizes[number])
                own_points = store.packed(row) if size else b""
                if size and (own_points is None or len(own_points) < size):
                    store.put(row, data[ends[number] - size : ends[number]])
            return len(data)
    return 0


def _read(path: str, file: SizedFile) -> tuple[np.ndarray, memoryview] | None:
    """Read a file that is whole and belongs to the pack; None of any other."""
    try:
        data = without_checksum(path, file.bound(MAGIC))
        if data is None:
            return None
        sizes = np.frombuffer(data, "<u2", len(file))
    except UNREADABLE:
        return None
    points = data[sizes.nbytes :]
    return (sizes, points) if int(sizes.sum(dtype=np.int64)) == len(points) else None
