"""Records of a mirrored file: the bytes of each, fetched before they are read."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from recordio.bytes.files import StoredFile
from recordio.bytes.mapping import part_of
from recordio.bytes.remote.mirror import Mirror, Pin, blocks_of
from recordio.bytes.remote.objects import redacted_url
from recordio.bytes.remote.settings import RemoteSettings
from recordio.errors import IndexFileError, RemoteMissingError
from recordio.frames.encoder import MAX_RECORD_LENGTH
from recordio.frames.head import HEAD, part_at
from recordio.frames.index_file import read_index
from recordio.frames.listing import listing_fault
from recordio.frames.record_bytes import HEAD_BYTES, refuse_other_kinds

#: Bytes that are asked for ahead when a file is read from its start to its end.
AHEAD = 1 << 25
#: Records that are taken at a time.
RUN = 128
#: A record has at most this many bytes, so that a gap in an index is not fetched.
MOST_RECORD = MAX_RECORD_LENGTH + 1


class RemoteRecords:
    """The records of one mirrored file; `url` is the full one."""

    def __init__(self, mirror: Mirror, url: str, settings: RemoteSettings | None) -> None:
        self.mirror: Mirror = mirror
        self.url: str = url
        self._settings = settings
        self._table: np.ndarray | None = None
        self._asked = 0
        self._before = dict(mirror.counters)

    def counters(self) -> dict[str, float]:
        """Give the numbers of the mirror since the file was opened; see `Mirror`."""
        return {name: now - self._before[name] for name, now in self.mirror.counters.items()}

    @property
    def resident(self) -> bool:
        """True if records may be handed out as views of the mirror."""
        return self.mirror.resident

    def set_table(self, offsets: np.ndarray) -> None:
        """Take the offsets of all records, in any order."""
        ascending = len(offsets) < 2 or bool((offsets[1:] >= offsets[:-1]).all())
        self._table = offsets if ascending else np.sort(offsets)

    def offsets(self) -> np.ndarray:
        """Read the offsets of all records, ascending, from the index beside the file.

        Without one it is an error: finding the records would read all of the file.
        """
        index = StoredFile(self.url).beside(".idx")
        url = redacted_url(index.name)
        try:
            offsets = np.sort(index.parsed(read_index, self._settings)[1])
        except RemoteMissingError:
            with self.mirror.pin_bytes(0, min(HEAD_BYTES, self.mirror.size)):
                refuse_other_kinds(self.url, self.mirror.view)
            raise IndexFileError(
                "there is no such index, and without one all of the record file would have to be "
                f"read to find its records: `recordio index {redacted_url(self.url)}` makes it",
                path=url,
            ) from None
        outside = offsets[offsets >= self.mirror.size]
        if len(outside):
            raise IndexFileError(
                f"offset {outside[0]} lies outside {self.mirror.url} of {self.mirror.size} bytes: "
                "the index is that of another file; "
                f"`recordio index {self.mirror.url}` writes it again",
                path=url,
            )
        fault = listing_fault(offsets, url, self.mirror.url, self.mirror.size, self.end_at)
        if fault is not None:
            raise fault
        return offsets

    def ends(self, begins: np.ndarray) -> np.ndarray:
        """Find the ends, at the latest, of records that begin at some of the offsets."""
        table = self._table
        if table is None:
            raise ValueError("it is not known where the records begin")
        following = np.searchsorted(table, begins, side="right")
        ends = np.append(table, self.mirror.size)[following]
        return np.minimum(ends, np.minimum(begins + MOST_RECORD, self.mirror.size))

    def blocks(self, begins: np.ndarray) -> np.ndarray:
        """List the blocks in which records lie, ascending."""
        return blocks_of(begins, self.ends(begins))

    def pin(self, begins: np.ndarray, stripe: int = 1, urgent: bool = True) -> Pin:
        """Pin records; see `Mirror.pin`."""
        if not len(begins):
            return self.mirror.pin(np.zeros(0, np.int64))
        return self.mirror.pin(self.blocks(begins), stripe, urgent)

    def pin_at(self, offset: int) -> Pin:
        """Pin the record whose head stands at an offset, and wait for it."""
        size = self.mirror.size
        if not 0 <= offset < size:
            return self.mirror.pin(np.zeros(0, np.int64))
        if self._table is not None:
            position = int(np.searchsorted(self._table, offset))
            if position < len(self._table) and self._table[position] == offset:
                return self.pin(np.array([offset]))
        end, _ = self._walked(offset)
        return self.mirror.pin_bytes(offset, max(end, offset + HEAD.itemsize))

    def end_at(self, offset: int) -> int | None:
        """Find the end of the record at an offset by its heads; None if no whole one is there."""
        end, is_whole = self._walked(offset)
        return end if is_whole and end <= self.mirror.size else None

    def _walked(self, offset: int) -> tuple[int, bool]:
        """Follow the heads of the parts of a record: where they lead, and whether to its end."""
        size = self.mirror.size
        end, last = offset, False
        while not last and end + HEAD.itemsize <= size:
            with self.mirror.pin_bytes(end, end + HEAD.itemsize):
                part = part_at(part_of(self.mirror.view, 0, size), end)
            if part is None:
                return end, False
            end, last = part
        return end, last

    def prefetch_from(self, offset: int) -> None:
        """Have what follows an offset fetched, where a file is read from its start to its end."""
        if self.mirror.resident and self.mirror.complete:
            return
        if not self._asked - AHEAD <= offset <= self._asked:
            self._asked = offset  # somebody reads elsewhere now
        ahead = AHEAD if self.mirror.resident else min(AHEAD, self.mirror.folder.limit // 4)
        end = min(offset + ahead, self.mirror.size)
        if end - self._asked >= ahead // 4 or end == self.mirror.size > self._asked:
            self.mirror.prefetch(self._asked, end)
            self._asked = end

    def read_many(
        self,
        take_many: Callable[[np.ndarray, bool], list[Any]],
        offsets: np.ndarray,
        positions: np.ndarray,
        copy: bool,
    ) -> list[memoryview] | list[bytes]:
        """Read records at many positions; the next ones are fetched while records are taken.

        ``take_many(positions, copy)`` gives records that are there; `offsets` are those of all, by
        position.
        """
        owned = copy or not self.resident
        pieces = [positions[begin : begin + RUN] for begin in range(0, len(positions), RUN)]
        pins = deque(self._pin_positions(offsets, piece) for piece in pieces[:2])
        records: list[Any] = []
        try:
            for number, piece in enumerate(pieces):
                with pins[0]:
                    taken = take_many(piece, owned)
                records += taken if owned == copy else map(memoryview, taken)
                pins.popleft()
                if number + 2 < len(pieces):
                    pins.append(self._pin_positions(offsets, pieces[number + 2]))
        finally:
            for pin in pins:
                pin.release()
        return records

    def _pin_positions(self, offsets: np.ndarray, positions: np.ndarray) -> Pin:
        count = len(offsets)
        rows = np.where(positions < 0, positions + count, positions)
        return self.pin(offsets[rows[(rows >= 0) & (rows < count)]])

    def in_order(
        self, offsets: np.ndarray, read_many: Callable[[range], list[memoryview]]
    ) -> Iterator[memoryview]:
        """Yield the records that begin at `offsets`, read by position, and ask for the next."""
        for begin in range(0, len(offsets), RUN):
            if begin + RUN < len(offsets):
                self.pin(offsets[begin + RUN : begin + 3 * RUN], urgent=False).unpin()
            yield from read_many(range(begin, min(begin + RUN, len(offsets))))

    def from_start(
        self, read_at: Callable[[int, int], tuple[memoryview | None, int]]
    ) -> Iterator[memoryview]:
        """Yield all records of the file, each read where the one before it ends."""
        offset = record = 0
        while True:
            self.prefetch_from(offset)
            payload, offset = read_at(offset, record)
            if payload is None:
                return
            yield payload
            record += 1

    def __reduce__(self) -> Any:
        raise TypeError("pickle the reader instead")
