"""Sizes of images that a file beside a pack keeps, for searches and counts; nothing is measured.

Whether the file belongs to the pack is found out in the background, a block of records at a time.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from recordio.bytes.files import StoredFile
from recordio.errors import RecordIOError
from recordio.packs.open_pack import OpenPack
from recordio.packs.sizes import SUFFIX, SizedFile, kept_sizes

from .lines import BLOCK, Background, NotCounted
from .locations import MOST_SORTED, Locations


class KeptSizes(Background):
    """Width and height of the images of a pack, as far as they are kept.

    When `cancelled` is true the work in the background ends.
    """

    def __init__(
        self, opened: OpenPack, locations: Locations, cancelled: Callable[[], bool]
    ) -> None:
        super().__init__()
        self._opened, self._locations, self._cancelled = opened, locations, cancelled
        self._table: np.ndarray | None = None
        #: Offsets in the order of the file, where that of the positions is another one.
        self._sorted: np.ndarray | None = None

    def has_sizes(self, seconds: float | None = None) -> bool:
        """Return True if there are any; False, too, if that takes longer than some seconds."""
        self.start()
        self.join(seconds)
        return self._table is not None

    def of(self, first: int, table: np.ndarray) -> np.ndarray:
        """Return the sizes of records, by a table of keys and offsets: float64, (records, 2).

        They are not numbers where a record has no image whose size can be read.
        """
        assert self._table is not None
        rows: slice | np.ndarray = slice(first, first + len(table))
        if self._sorted is not None:
            rows = np.searchsorted(self._sorted, table[:, 1])
        sizes = self._table[rows]
        return np.where(sizes > 0, sizes, np.nan)

    def work(self) -> None:
        """Find them."""
        # A damaged index is shown where records are read; of a closed pack the files are closed.
        with contextlib.suppress(RecordIOError, NotCounted, OSError, ValueError):
            if self._locations.counted(self._cancelled) is not None:
                self._find()

    def _find(self) -> None:
        files = self._opened.sized_files() if self._opened.samples is not None else [self._listed()]
        tables = [table for table in map(kept_sizes, files) if table is not None]
        if files and len(tables) == len(files) and not self._cancelled():
            self._sorted = getattr(files[0], "sorted", None)
            self._table = tables[0] if len(tables) == 1 else np.concatenate(tables)

    def _listed(self) -> SizedFile:
        file = self._opened.file
        return _ListedRecords(file, self._opened.remote, self._locations, self._cancelled)


class _ListedRecords(SizedFile):
    """A record file whose offsets are read a block at a time."""

    def __init__(
        self, file: StoredFile, remote: Any, locations: Locations, cancelled: Callable[[], bool]
    ) -> None:
        self.file, self.remote, self.beside = file, remote, file.beside(SUFFIX)
        self.sorted: np.ndarray | None = None
        self._locations, self._cancelled = locations, cancelled

    def __len__(self) -> int:
        return self._locations.count or 0

    def offset_pieces(self) -> Iterator[np.ndarray]:
        """Give the offsets in the order of the file; all at once if positions have another one."""
        last = -1
        for piece in self._blocks():
            if len(piece) and (piece[0] < last or (piece[1:] < piece[:-1]).any()):
                break
            last = int(piece[-1]) if len(piece) else last
        else:
            yield from self._blocks()
            return
        if len(self) <= MOST_SORTED:
            self.sorted = np.sort(np.concatenate([*self._blocks()]))
            yield self.sorted

    def _blocks(self) -> Iterator[np.ndarray]:
        for first in range(0, len(self), BLOCK):
            if self._cancelled():
                return
            yield self._locations.table(first, first + BLOCK)[:, 1]
