"""Positions, keys and offsets of the records of a pack, without a table of all of them.

`IndexLocations` reads the lines of an index where they are needed, `FrameLocations` follows the
heads of records where there is no index.  Both count in a thread of their own while pages are
shown already.  `SampleLocations` are those of a container, whose samples are in tables.
"""

from __future__ import annotations

import bisect
import contextlib
import functools
import threading
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from recordio.bytes.files import StoredFile
from recordio.containers.reader import ContainedRecords
from recordio.errors import IndexFileError, KeyNotFoundError, RecordIOError
from recordio.frames.reader import RecordReader
from recordio.frames.walk import walk

from .lines import BLOCK, Lines, NotCounted

#: Packs with more records are shown by key only if their keys ascend.
MOST_SORTED = 1 << 22
#: What larger numbers become when many are read at once.
LARGEST = (1 << 63) - 1


class Location(NamedTuple):
    """Position, key and offset of a record."""

    position: int
    key: int
    offset: int


class Locations:
    """All records of a pack, a block at a time."""

    #: Reads the keys and offsets of a block: int64, (records, 2).
    block: Callable[[int], np.ndarray]

    @property
    def count(self) -> int | None:
        """Number of records; None while they are counted."""
        raise NotImplementedError

    def wait_for(self, position: int, seconds: float) -> None:
        """Wait until a position is known, or all are counted; `NotCounted` if it takes longer."""
        raise NotImplementedError

    def counted(self, cancelled: Callable[[], bool]) -> int | None:
        """Wait until all are counted, and return their number; None if it was cancelled before."""
        while self.count is None and not cancelled():
            with contextlib.suppress(NotCounted):
                self.wait_for(1 << 62, 0.2)
        return self.count

    def table(self, first: int, stop: int) -> np.ndarray:
        """Read keys and offsets of some positions, fewer at the end: int64, (records, 2)."""
        pieces = [np.empty((0, 2), np.int64)]
        while first < stop and not (self.count is not None and first >= self.count):
            number, skipped = divmod(first, BLOCK)
            rows = self.block(number)
            pieces.append(rows[skipped : skipped + stop - first])
            first = (number + 1) * BLOCK
            if len(rows) < BLOCK:
                break
        return np.concatenate(pieces)

    def read(self, first: int, stop: int) -> list[Location]:
        """Read the locations of some positions, fewer at the end."""
        rows = self.table(first, stop).tolist()
        return [Location(first + i, key, offset) for i, (key, offset) in enumerate(rows)]

    def from_key(self, key: int, count: int) -> list[Location]:
        """Read the locations of the next keys from one on, in the order of the keys."""
        return self.read(max(key, 0), max(key, 0) + count)

    def close(self) -> None:
        """Let the index go; the reader belongs to the pack."""


class IndexLocations(Locations):
    r"""Locations that an index lists: position i is its line i.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "a.idx")
    >>> _ = path.write_text("7\t0\n3\t16\n5\t40\n")
    >>> locations = IndexLocations(str(path))
    >>> locations.read(1, 9)
    [Location(position=1, key=3, offset=16), Location(position=2, key=5, offset=40)]
    >>> locations.survey()
    >>> locations.count, locations.position_of(5)
    (3, 2)
    >>> [location.key for location in locations.from_key(4, 9)]
    [5, 7]
    >>> locations.close()
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.lines = Lines(path)
        self.block = functools.lru_cache(maxsize=64)(self._parsed)

    @property
    def count(self) -> int | None:
        """Number of records; None while they are counted."""
        return self.lines.count

    @property
    def share(self) -> float:
        """Share that was counted, 0 to 1."""
        return self.lines.share

    def survey(self, cancelled: Callable[[], bool] = lambda: False) -> None:
        """Count; the work of a thread."""
        self.lines.survey(cancelled)

    def wait_for(self, position: int, seconds: float) -> None:
        """Wait until a position is known, or all are counted; `NotCounted` if it takes longer."""
        self.lines.wait_for(position, seconds)

    def _parsed(self, number: int) -> np.ndarray:
        """Read keys and offsets of a block: int64, (lines, 2)."""
        text = self.lines.text(number)
        letters = np.frombuffer(text, np.uint8)
        between = letters[(letters == ord("\t")) | (letters == ord("\n"))]
        usual = text.endswith(b"\n") and len(between) % 2 == 0
        if usual and (between.reshape(-1, 2) == (ord("\t"), ord("\n"))).all():
            with contextlib.suppress(ValueError, DeprecationWarning), warnings.catch_warnings():
                warnings.simplefilter("error")  # what is no number ends the parser with a warning
                words = np.fromstring(text.decode("ascii"), np.int64, sep=" ")
                if len(words) == len(between) and (np.abs(words.clip(-LARGEST)) < LARGEST).all():
                    return words.reshape(-1, 2)
        lines = self.lines.block(number)
        rows = np.empty((len(lines), 2), np.int64)
        for row, line in enumerate(lines):
            try:
                key, offset = (int(word) for word in line.split(b"\t", 2)[:2])
                rows[row] = key, offset
            except (ValueError, OverflowError):
                raise IndexFileError(
                    f"expected KEY<tab>OFFSET, found {line[:60]!r}; recordio.build_index() writes "
                    "the index again",
                    path=self.path,
                    line=number * BLOCK + row + 1,
                ) from None
        return rows

    def position_of(self, key: int) -> int:
        """Find the position of a key; `KeyNotFoundError` if there is none."""
        for guess in (key, key - 1):
            if guess >= 0 and self._has(guess, key):
                return guess
        if self.count is None:
            raise NotCounted(self.share)
        row = self._insertion(key)
        if self._has(row, key):
            return row
        text = b"%d\t" % key
        if self.lines.bytes_at(0, len(text)) == text:
            return 0
        offset = self.lines.find(b"\n" + text)
        if offset < 0:
            raise KeyNotFoundError(f"no record has the key {key}", path=self.path)
        return self.lines.number_of(offset + 1)

    def _has(self, position: int, key: int) -> bool:
        try:
            locations = self.read(position, position + 1)
        except NotCounted:
            return False
        return bool(locations) and locations[0].key == key

    def _insertion(self, value: int, column: int = 0) -> int:
        """Find the first position whose key (or offset) is not less, if they ascend."""
        blocks = range(-(-(self.count or 0) // BLOCK))
        number = bisect.bisect_right(blocks, value, key=lambda n: self.block(n)[0, column]) - 1
        if number < 0:
            return 0
        return number * BLOCK + int(np.searchsorted(self.block(number)[:, column], value))

    def position_at(self, offset: int) -> int | None:
        """Find the position of the record at an offset, where positions follow offsets."""
        if self.count is None:
            return None
        row = self._insertion(offset, 1)
        locations = self.read(row, row + 1)
        return row if locations and locations[0].offset == offset else None

    def from_key(self, key: int, count: int) -> list[Location]:
        """Read the locations of the next keys from one on, in the order of the keys."""
        if self.count is None:
            raise NotCounted(self.share)
        if self.count > MOST_SORTED:
            first = self._insertion(key)
            locations = self.read(first, first + count)
            met = [location.key for location in locations]
            if met != sorted(met) or (met and met[0] < key):
                raise RecordIOError(
                    "its keys do not ascend, and it has too many records to sort them: go by "
                    "position, or jump to one key",
                    path=self.path,
                )
            return locations
        keys, order = self._sorted
        rows = order[np.searchsorted(keys, key) :][:count].tolist()
        return [location for row in rows for location in self.read(row, row + 1)]

    def close(self) -> None:
        """Let the index go."""
        self.lines.close()

    @functools.cached_property
    def _sorted(self) -> tuple[np.ndarray, np.ndarray]:
        blocks = [self.block(n)[:, 0] for n in range(-(-(self.count or 0) // BLOCK))]
        keys = np.concatenate([np.empty(0, np.int64), *blocks])
        order = np.argsort(keys, kind="stable")
        return keys[order], order


class FrameLocations(Locations):
    """Locations in a record file without an index, found by following it: keys are positions.

    A stretch of damage has a position of its own, as in `recordio.verify`, and is shown there.
    """

    def __init__(self, reader: RecordReader) -> None:
        self.reader = reader
        self._count: int | None = None
        self._size = StoredFile(reader.path).size()
        self._starts = [0]
        self._grown = threading.Condition()
        self.block = functools.lru_cache(maxsize=64)(self._followed)

    @property
    def count(self) -> int | None:
        """Number of records; None while they are counted."""
        return self._count

    @property
    def share(self) -> float:
        """Share that was counted, 0 to 1."""
        return 1.0 if self.count is not None else self._starts[-1] / max(self._size, 1)

    def survey(self, cancelled: Callable[[], bool] = lambda: False) -> None:
        """Count; the work of a thread."""
        while not cancelled():
            offsets, end = self._follow(self._starts[-1])
            with self._grown:
                if len(offsets) < BLOCK:
                    self._count = (len(self._starts) - 1) * BLOCK + len(offsets)
                else:
                    self._starts.append(end)
                self._grown.notify_all()
            if self.count is not None:
                break

    def _follow(self, offset: int) -> tuple[np.ndarray, int]:
        """Find offsets of a block of records, and where the next begins."""
        offsets = np.empty(0, np.int64)
        for piece in walk(StoredFile(self.reader.path).map(), offset):
            offsets, offset = np.append(offsets, piece.offsets), piece.end
            if len(offsets) > BLOCK:
                return offsets[:BLOCK], int(offsets[BLOCK])
            if len(offsets) == BLOCK:
                break
        return offsets, offset

    def _followed(self, number: int) -> np.ndarray:
        """Read keys and offsets of a block: int64, (records, 2)."""
        offsets = np.empty(0, np.int64)
        if number < len(self._starts):
            offsets = self._follow(self._starts[number])[0]
        elif self.count is None:
            raise NotCounted(self.share)
        first = number * BLOCK
        return np.stack([np.arange(first, first + len(offsets)), offsets], -1)

    def wait_for(self, position: int, seconds: float) -> None:
        """Wait until a position is known, or all are counted; `NotCounted` if it takes longer."""
        with self._grown:
            if not self._grown.wait_for(
                lambda: self.count is not None or position // BLOCK < len(self._starts), seconds
            ):
                raise NotCounted(self.share)

    def position_of(self, key: int) -> int:
        """Find the position of a key; `KeyNotFoundError` if there is none."""
        if key < 0 or not self.read(key, key + 1):
            raise KeyNotFoundError(f"no record has the key {key}", path=self.reader.path)
        return key

    def position_at(self, offset: int) -> int | None:
        """Find the position of the record at an offset, where positions follow offsets."""
        number = bisect.bisect_right(self._starts, offset) - 1
        if self.count is None and number == len(self._starts) - 1:
            return None
        offsets = self.block(number)[:, 1]
        row = int(np.searchsorted(offsets, offset))
        return number * BLOCK + row if offset in offsets[row : row + 1] else None


class SampleLocations(Locations):
    """Locations of the samples of a container: keys are positions."""

    share = 1.0

    def __init__(self, reader: ContainedRecords) -> None:
        self.reader = reader
        self.offsets = np.asarray(reader.offsets)

    @property
    def count(self) -> int:
        """Number of samples."""
        return len(self.offsets)

    def survey(self, cancelled: Callable[[], bool] = lambda: False) -> None:
        """Count; there is nothing to do."""

    def wait_for(self, position: int, seconds: float) -> None:
        """Wait until a position is known, as all of them are."""

    def block(self, number: int) -> np.ndarray:  # type: ignore[override]
        """Read keys and offsets of a block: int64, (records, 2)."""
        rows = np.arange(number * BLOCK, min((number + 1) * BLOCK, self.count))
        return np.stack([rows, self.offsets[rows]], -1)

    def position_of(self, key: int) -> int:
        """Find the position of a key; `KeyNotFoundError` if there is none."""
        return self.reader.position_of(key)

    def position_at(self, offset: int) -> int | None:
        """Find the position of the record at an offset."""
        row = int(np.searchsorted(self.offsets, offset))
        return row if offset in self.offsets[row : row + 1] else None
