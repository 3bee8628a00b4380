"""The identities of face-recognition packs: which records list them, and which images are theirs.

In such a pack (the layout of the InsightFace packs) the record with key 0 has two labels, the keys
``[first, end)`` of its identity records; those hold no image, and their own two labels are the keys
of that identity's images.

Labels are 32-bit floats.  From 2**24 on one float stands for several keys, and whoever wrote the
pack rounded them.  Which key was meant is found out here and nowhere else, from what lies at the
keys in question: a few records for each range that does not say it by itself.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ..errors import KeyNotFoundError, RecordHeaderError, RecordIOError, RemoteFileError
from ..frames.reader import RecordReader
from ..header import HEADER, LABEL_OFFSET, WIDE_HEADER
from ..payload import WIDE

#: Records with some keys; None where there is none, nothing in it where it is damaged.
RecordsByKey = Callable[[Sequence[int]], list["memoryview | bytes | None"]]
DAMAGED = b""
#: Records that are read at once.
READ_AT_ONCE = 4096
#: Floats for which it is found out at once which keys they stand for.
FLOATS_AT_ONCE = 1024
LARGEST_KEY = 1 << 53
#: From here on 32-bit floats stand for several keys.
ROUNDED = 1 << 24


def records_by_key(record_of: Callable[[int], memoryview | bytes | None]) -> RecordsByKey:
    """Read records one after the other; `record_of` raises for those that cannot be read."""

    def read(key: int) -> memoryview | bytes | None:
        try:
            return record_of(key)
        except RemoteFileError:
            raise
        except (KeyNotFoundError, IndexError):
            return None
        except RecordIOError:
            return DAMAGED

    return lambda keys: [read(key) for key in keys]


def find_identities(read: RecordsByKey, last_key: int | None, path: str) -> Identities | None:
    """Find the identities of a pack, None in an ordinary one; looks at a few records.

    The largest key of the pack is None if it is not known.
    """
    (record,) = read([0])
    if record is not None and lists_widely(record):
        raise RecordHeaderError(f"the record with key 0 is not as usual: {WIDE}", path=path)
    pair = label_pair(record)
    keys = None if pair is None else identity_keys(pair, read, last_key, path)
    listed = None if keys is None else Identities(read, keys, path)
    # Two labels alone could be those of an ordinary image; that a record they point to is empty
    # and holds a range of image keys could not be.
    return None if listed is None or listed.rows(0, 1) is None else listed


def identity_keys(
    pair: tuple[int, int], read: RecordsByKey, last_key: int | None, path: str
) -> range | None:
    """Find the keys of the identity records by the labels of the record with key 0.

    None if the labels mean something else; a RecordHeaderError if they were rounded, and the
    records do not show which keys were meant.
    """
    most = LARGEST_KEY if last_key is None else last_key + 1
    if not 1 < pair[0] <= pair[1] <= float(np.float32(most)):
        return None
    lows, highs = keys_of(pair)
    first = _boundary(int(lows[0]), int(highs[0]), "begin", read, path)
    low, high = int(lows[1]), int(highs[1])
    if last_key is not None and low <= most <= high and _kind_of(*read([last_key])) != "image":
        low = high = most  # they are the last records
    end = _boundary(low, high, "end", read, path)
    if first is None or end is None or not first < end <= most:
        return None
    return range(first, end)


def _boundary(low: int, high: int, what: str, read: RecordsByKey, path: str) -> int | None:
    """The key at which identity records begin or end; None if there is none of them."""
    if low == high:
        return low
    kinds = [_kind_of(record) for record in read(range(low - 1, high + 1))]
    if "identity" not in kinds:
        return None
    keys = [key for key, two in enumerate(pairwise(kinds), low) if two in BOUNDARIES[what]]
    if len(keys) == 1:
        return keys[0]
    raise RecordHeaderError(
        f"the record with key 0 says that identity records {what} at key {low} to {high}, rounded "
        "to a 32-bit float, and the records with these keys do not show which is meant: it takes "
        "whole ones, and an index that lists all of them",
        path=path,
    )


#: Kinds of records before and at the key where identity records begin or end.
BOUNDARIES = {
    "begin": [("image", "identity")],
    "end": [("identity", "image"), ("identity", "missing")],
}


def _kind_of(record: memoryview | bytes | None) -> str:
    """Name a record of a face-recognition pack."""
    if record is None:
        return "missing"
    if not len(record):
        return "damaged"
    return "image" if label_pair(record) is None else "identity"


class Identities:
    """The identities of a pack, by the keys of the records that list them."""

    def __init__(self, read: RecordsByKey, keys: range, path: str) -> None:
        self.read = read
        self.keys: range = keys
        self.path: str = path
        self._all: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.keys)

    def are_images(self, keys: np.ndarray) -> np.ndarray:
        """Tell which keys are those of images: bool."""
        return (keys >= 1) & (keys < self.keys.start)

    def rows(self, begin: int, end: int) -> np.ndarray | None:
        """Read the ranges of some identities as they are stored: float32, (identities, 2).

        None if a record is missing or damaged, or lists no identity.
        """
        if self._all is not None:
            return self._all[begin:end]
        most = float(np.float32(self.keys.start))
        ranges = np.empty((max(end - begin, 0), 2), np.float32)
        for first in range(begin, end, READ_AT_ONCE):
            stop = min(first + READ_AT_ONCE, end)
            pairs = [label_pair(record) for record in self.read(self.keys[first:stop])]
            for pair in pairs:
                if pair is None or not 1 <= pair[0] <= pair[1] <= most:
                    return None
            ranges[first - begin : stop - begin] = pairs
        return ranges

    def read_all(self) -> bool:
        """Keep the ranges of all identities; False if one of them has none."""
        self._all = self.rows(0, len(self))
        return self._all is not None

    def ranges(self, begin: int = 0, end: int | None = None) -> np.ndarray:
        """Find the keys ``[first, end)`` of the images of identities: int64, (identities, 2).

        A RecordHeaderError says that a range was rounded, and that the labels of the images do not
        tell which was meant.
        """
        end = len(self) if end is None else end
        rows = self._rows(begin, end)
        # Identities that begin at the same float are told apart together.
        low, high = begin, end
        while low > 0 and self._begin(low) >= ROUNDED and self._begin(low - 1) == self._begin(low):
            low -= 1
        while high < len(self) and rows[-1, 1] >= ROUNDED and self._begin(high + 1) == rows[-1, 1]:
            high += 1
        begins = np.concatenate(
            [self._begins(low, begin), rows[:, 0], rows[-1:, 1], self._begins(end + 1, high + 1)]
        )
        edges = self._settled(low, begins)[begin - low : end - low + 1]
        exact, highest = keys_of(rows[:, 1])
        apart = (exact < highest) & (rows[:, 1] != begins[begin - low + 1 : end - low + 1])
        if apart.any():
            number = begin + int(np.argmax(apart))
            raise RecordHeaderError(
                f"the images that the record with key {self.keys[number]} lists end at about "
                f"{rows[number - begin, 1]:.0f}, rounded to a 32-bit float, and those of the next "
                "one do not begin there",
                path=self.path,
            )
        return np.stack([edges[:-1], np.where(exact < highest, edges[1:], exact)], -1)

    def _rows(self, begin: int, end: int) -> np.ndarray:
        rows = self.rows(begin, end)
        if rows is None:
            raise RecordHeaderError(
                f"one of the records with keys {self.keys[begin]} to {self.keys[end - 1]} is "
                "missing or damaged, or lists no identity",
                path=self.path,
            )
        return rows

    def _begins(self, begin: int, end: int) -> np.ndarray:
        """Read where identities begin as it is stored; behind the last, where the images end."""
        rows = self._rows(begin, min(end, len(self)))[:, 0]
        behind = np.full(end - begin - len(rows), self.keys.start, np.float32)
        return np.concatenate([rows, behind])

    def _begin(self, number: int) -> float:
        return float(self._begins(number, number + 1)[0])

    def _settled(self, number: int, begins: np.ndarray) -> np.ndarray:
        """The keys at which identities begin, from one of some number on."""
        low, high = keys_of(begins)
        keys = low.copy()
        rounded = np.flatnonzero(low < high)
        groups = np.split(rounded, np.flatnonzero(np.diff(begins[rounded])) + 1)
        for some in range(0, len(groups) if len(rounded) else 0, FLOATS_AT_ONCE):
            chunk = groups[some : some + FLOATS_AT_ONCE]
            # Images with the keys that the float stands for, and the one before them.
            windows = [
                range(int(low[group[0]]) - 1, min(int(high[group[0]]) + 1, self.keys.start))
                for group in chunk
            ]
            records = self.read([key for window in windows for key in window])
            labels = iter([None if record is None else first_label(record) for record in records])
            for group, window in zip(chunk, windows, strict=True):
                pairs = [pair for pair in zip(window, labels, strict=False) if pair[1] is not None]
                keys[group] = self._told_apart((number + group).tolist(), window, pairs)
        return keys

    def _told_apart(
        self, numbers: list[int], window: range, pairs: list[tuple[int, Any]]
    ) -> list[int]:
        """Tell apart identities that begin at the same float, by the labels of the images there.

        Their numbers; that behind the last one stands for the end of all images.
        """
        behind = [self.keys.start] if window.stop == self.keys.start else []
        # Usually labels number the identities.
        last = len(self) - 1
        numbered_pairs = [(key, label) for key, label in pairs if key > window[0] and label <= last]
        chosen = [
            [key for key, label in numbered_pairs if label >= number] + behind for number in numbers
        ]
        if all(chosen):
            begins = [keys[0] for keys in chosen]
            counted = [numbers[0] - 1 + bisect_right(begins, key) for key, _ in pairs]
            if counted == [label for _, label in pairs]:
                return begins
        # Else they change from one to the next, and each has images; the first has none before it.
        begins = [key for (_, left), (key, right) in pairwise(pairs) if left != right]
        before = window[0]
        if numbers[0] == 0 and pairs and pairs[0][0] != before:
            before = pairs[0][0]
            begins.insert(0, before)
        if numbers[-1] == len(self):
            begins += behind
        if len(pairs) == window.stop - before and len(begins) == len(numbers):
            return begins
        number = min(numbers[0], len(self) - 1)
        raise RecordHeaderError(
            f"the images that the record with key {self.keys[number]} lists "
            f"{'begin' if number == numbers[0] else 'end'} at key {window[0] + 1} to "
            f"{window[-1] + len(behind)}, rounded to a 32-bit float, and the labels "
            "of the images with these keys do not tell at which",
            path=self.path,
        )


def count_identities(files: Sequence[Identities]) -> int:
    """Count the identities of a pack whose files must all list the same number of them."""
    counts = sorted(set(map(len, files)))
    if len(counts) != 1:
        raise RecordHeaderError(f"the files of one pack list {counts} identities")
    return counts[0]


def joined_identities(parts: list[np.ndarray]) -> np.ndarray:
    """Join what the files of a pack list, each of which lists all identities: int64.

    The keys ``[first, end)`` are those in one file with the images of all.

    >>> joined_identities([np.array([[1, 3], [3, 4]]), np.array([[1, 1], [1, 6]])]).tolist()
    [[1, 3], [3, 9]]
    """
    if len(parts) == 1:
        return parts[0]
    ends = 1 + np.cumsum(sum(part[:, 1] - part[:, 0] for part in parts))
    return np.stack([np.concatenate([[1], ends[:-1]]), ends], -1)


def keys_of(values: Sequence[float] | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the lowest and the highest key that become each of some 32-bit floats: int64.

    >>> low, high = keys_of([5, 2**24, 2**25 + 4, 17_091_656])
    >>> low.tolist(), high.tolist()
    ([5, 16777216, 33554435, 17091655], [5, 16777217, 33554437, 17091657])
    """
    floats = np.asarray(values, np.float32)
    halves = [
        (floats.astype(np.float64) + np.nextafter(floats, np.float32(side))) / 2
        for side in (0, np.inf)
    ]
    low, high = np.ceil(halves[0]), np.floor(halves[1])
    # Half way between two floats, keys become the one of these whose last bit is 0.
    low += low.astype(np.float32) != floats
    high -= high.astype(np.float32) != floats
    return low.astype(np.int64), high.astype(np.int64)


def label_pair(record: memoryview | bytes | None) -> tuple[int, int] | None:
    """Read the two labels of a record if it has two whole numbers and no image, else None."""
    if record is None or len(record) != HEADER.size + 8 or HEADER.unpack_from(record)[0] != 2:
        return None
    first, second = struct.unpack_from("<2f", record, HEADER.size)
    return (int(first), int(second)) if first.is_integer() and second.is_integer() else None


def row_of_zero(reader: Any, offsets: np.ndarray) -> int:
    """Find the row of the record with key 0 in a file without index, in which other keys count up.

    It is 0, except in files of InsightFace: `RecBuilder` writes that record behind all others, and
    `face2rec2.py` between the images and the records that list identities. The labels of the last
    record show it, which end at the number of records, or where the images end.
    """
    if not isinstance(reader, RecordReader) or not len(offsets):
        return 0
    read = records_by_key(lambda row: reader.read_at(int(offsets[row]))[0])
    count = len(offsets)
    pair = label_pair(read([-1])[0])
    if pair is None or not 1 < pair[1] <= float(np.float32(count)):
        return 0
    rows = [count - 1]
    if pair[1] != float(np.float32(count)):
        low, high = keys_of(pair[1:])
        rows = list(range(int(low[0]) - 1, int(high[0])))
        pair = pair[1], int(np.float32(count))
    for row, record in zip(rows, read(rows), strict=True):
        if label_pair(record) == pair and 1 < pair[0] < pair[1]:
            assert record is not None  # it has two labels
            if HEADER.unpack_from(record)[2] == 0:
                return row
    return 0


def keys_without_index(zero: int, count: int) -> np.ndarray:
    """Return the keys of all records of a file without index, by the row of key 0: int64.

    >>> keys_without_index(0, 4).tolist(), keys_without_index(2, 4).tolist()
    ([0, 1, 2, 3], [1, 2, 0, 3])
    """
    keys = np.arange(count)
    keys[:zero] += 1
    keys[zero : zero + 1] = 0
    return keys


def lists_widely(record: memoryview | bytes) -> bool:
    """Tell whether a record has two whole numbers of 64 bits, which name identity records."""
    if len(record) != WIDE_HEADER.size + 16 or WIDE_HEADER.unpack_from(record)[:3] != (2, 0, 0):
        return False
    first, end = struct.unpack_from("<2d", record, WIDE_HEADER.size)
    return 1 < first < end and first.is_integer() and end.is_integer()


def first_label(record: memoryview | bytes) -> float:
    """Read the first label of a record; NaN of one that is too short for it."""
    flag = HEADER.unpack_from(record)[0] if len(record) >= HEADER.size else 1
    offset = HEADER.size if flag else LABEL_OFFSET
    return struct.unpack_from("<f", record, offset)[0] if len(record) >= offset + 4 else np.nan
