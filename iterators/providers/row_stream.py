"""Rows of one or two CSV files by number, streamed with bounded memory.

`RowStream` finds the rows of one file, cheaply as long as their numbers go up; `StreamedRows` makes
batches of one or two in step.  Parsing, and threads that do it ahead, are in `recordio.text.csv`.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from recordio.errors import TextFormatError
from recordio.text.csv import CSVReader

from ..core.batch import DataDesc
from ..core.pool import BufferPool
from .reorder import Axes


class RowStream:
    """Rows of one file by number, cheap as long as the numbers go up.

    Any other row costs a search and the start of new threads, except for those from
    `first`, where the part begins: they are kept, because the last batch of every epoch is filled
    with them.  Rows of one number have no axis of their own in the batch if `scalar`.
    """

    def __init__(
        self, name: str, reader: CSVReader, first: int, axes: Axes, scalar: bool = False
    ) -> None:
        self.name = name
        self.reader = reader
        self.first = first
        self.axes = axes
        self.scalar = scalar
        self.batch_size: int = 0
        self.head: np.ndarray = np.empty((0, *reader.shape), reader.dtype)
        self.head_bad: dict[int, TextFormatError] = {}
        self.rows: Iterator[np.ndarray] | None = None
        self.chunk: np.ndarray = self.head
        self.bad: dict[int, TextFormatError] = {}  # rows of the chunk that cannot be read
        self.chunk_begin: int = 0  # number of the first row of `chunk`
        self.at: int = 0  # number of the next row
        self.shared_end: int = 0  # rows of the chunk before this one are somebody's batch
        # What was read last to replace bad rows: first row, rows, bad ones.
        self.spare: tuple[int, np.ndarray, dict[int, TextFormatError]] = (0, self.head, {})

    @property
    def row_shape(self) -> tuple[int, ...]:
        """Shape of a row in the batch, before its axes are put in order."""
        return () if self.scalar else self.reader.shape

    def prepare(self, batch_size: int, keep: int, allocate: Callable[[int], Any] | None) -> None:
        """Get ready for batches of that size, `keep` of which may wait to be used again."""
        self.batch_size = batch_size
        self.may_share: bool = allocate is None
        nbytes = math.prod((batch_size, *self.reader.shape)) * self.reader.dtype.itemsize
        self.pool: BufferPool = BufferPool(nbytes, keep, allocate)

    def describe(self) -> DataDesc:
        """Describe a batch."""
        shape = self.axes.shape((self.batch_size, *self.row_shape))
        return DataDesc(self.name, shape, self.reader.dtype, self.axes.layout)

    def batch(self, rows: np.ndarray) -> tuple[np.ndarray, dict[int, TextFormatError]]:
        """A batch whose first slots are `rows`, the others zero; and its bad slots."""
        whole = self.shared(rows)
        if whole is not None:
            return whole
        batch = np.frombuffer(self.pool.take(), self.reader.dtype)
        table = batch.reshape(self.batch_size, *self.reader.shape)
        failed: dict[int, TextFormatError] = {}
        begin = 0
        while begin < len(rows):
            # Rows go up by one until they start again further up in the file.
            end = len(rows)
            if rows[-1] - rows[begin] != end - begin - 1:
                steps = np.flatnonzero(np.diff(rows[begin:]) != 1)
                end = begin + 1 + int(steps[0]) if len(steps) else end
            bad = self.fill(table[begin:end], int(rows[begin]))
            if bad:
                failed.update((begin + slot, error) for slot, error in bad)
            begin = end
        if len(rows) < self.batch_size:
            table[len(rows) :] = 0
        return self.axes.convert(batch.reshape(self.batch_size, *self.row_shape)), failed

    def shared(self, rows: np.ndarray) -> tuple[np.ndarray, dict[int, TextFormatError]] | None:
        """Return a whole batch that lies in the chunk as a view of it; None if there is none.

        Its rows are given away: whoever has the batch may change them.  The first chunk is kept, so
        that a file of one chunk is parsed once and not in every epoch.
        """
        row, count = self.at, self.batch_size
        begin = row - self.chunk_begin
        if not self.may_share or self.chunk_begin <= self.first or begin + count > len(self.chunk):
            return None
        # Rows go up by one until, at the end, they start again further up in the file.
        if len(rows) != count or rows[0] != row or rows[-1] != row + count - 1:
            return None
        self.at = self.shared_end = row + count
        batch = self.chunk[begin : begin + count].reshape(count, *self.row_shape)
        return self.axes.convert(batch), dict(_among(self.bad, row, count, 0))

    def fill(self, target: np.ndarray, row: int) -> list[tuple[int, TextFormatError]]:
        """Fill `target` with the rows from `row` on; returns the slots of bad ones."""
        kept = row - self.first
        if row < self.at and kept >= 0 and kept + len(target) <= len(self.head):
            target[...] = self.head[kept : kept + len(target)]
            return _among(self.head_bad, row, len(target), 0)
        self.seek(row)
        filled, bad = 0, []
        while filled < len(target):
            offset = self.at - self.chunk_begin
            count = min(len(self.chunk) - offset, len(target) - filled)
            if not count:
                self.advance()
                continue
            target[filled : filled + count] = self.chunk[offset : offset + count]
            bad += _among(self.bad, self.at, count, filled)
            filled += count
            self.at += count
        return bad

    def seek(self, row: int) -> None:
        """Make `row` the next one."""
        low = max(self.chunk_begin, self.shared_end)
        if self.rows is None or not low <= row <= self.chunk_begin + len(self.chunk):
            self.stop()
            self.chunk_begin = self.shared_end = row
            self.rows = self.reader.rows(row, self.bad)
        self.at = row

    def advance(self) -> None:
        """Go to the next chunk, keeping what belongs to the head."""
        assert self.rows is not None
        self.chunk_begin += len(self.chunk)
        self.at = self.chunk_begin
        self.chunk = self.chunk[:0]
        self.bad.clear()
        chunk = next(self.rows, None)
        if chunk is None:
            raise TextFormatError(
                f"the file had more rows when it was opened; now there are {self.chunk_begin}",
                path=self.reader.path,
            )
        self.chunk = chunk
        missing = self.batch_size - len(self.head)
        begin = self.first + len(self.head) - self.chunk_begin
        if missing > 0 and 0 <= begin < len(chunk):
            head = np.concatenate([self.head, chunk[begin : begin + missing]])
            end = self.first + len(head)
            self.head_bad.update((row, error) for row, error in self.bad.items() if row < end)
            self.head = head  # last, because an interrupt may come anywhere

    def row(self, row: int) -> np.ndarray:
        """One row, to replace a bad one; raises what is wrong with it.

        Where the next batch goes on does not change.
        """
        if self.rows is not None and row == self.at == self.chunk_begin + len(self.chunk):
            self.advance()  # as the next batch would
        left = max(self.shared_end - self.chunk_begin, 0)
        pieces = [
            (self.chunk_begin + left, self.chunk[left:], self.bad),
            (self.first, self.head, self.head_bad),
            self.spare,
        ]
        piece = next((rows for rows in pieces if 0 <= row - rows[0] < len(rows[1])), None)
        if piece is None:
            spare_bad: dict[int, TextFormatError] = {}
            chunks = self.reader.rows(row, spare_bad)
            chunk = next(chunks, None)
            chunks.close()  # type: ignore[attr-defined]
            if chunk is None:
                raise TextFormatError(
                    f"the file had more rows when it was opened; now row {row} is missing",
                    path=self.reader.path,
                )
            self.spare = piece = row, chunk, spare_bad
        first, rows, bad = piece
        if row in bad:
            # A copy, because an error that was raised keeps the frames that it went through.
            raise copy.copy(bad[row])
        return rows[row - first]

    def stop(self) -> None:
        """End the threads that parse; the next row starts new ones."""
        rows, self.rows = self.rows, None
        self.chunk = self.chunk[:0]
        self.bad.clear()
        if rows is not None:
            rows.close()  # type: ignore[attr-defined]


def _among(
    bad: dict[int, TextFormatError], row: int, count: int, slot: int
) -> list[tuple[int, TextFormatError]]:
    """Bad ones of `count` rows that go to `slot` and behind it."""
    if not bad:
        return []
    return [(slot + k, bad[row + k]) for k in range(count) if row + k in bad]


class StreamedRows:
    """Batches made of one or two streams in step: of data, and perhaps of labels.

    Where there are none, labels are 0 under the name of `constant_label`.
    """

    def __init__(
        self,
        count: int,
        streams: list[RowStream],
        constant_label: str | None = None,
        owns_readers: bool = True,
    ) -> None:
        self.count = count
        self.streams = streams
        self.constant_label = constant_label
        self.owns_readers = owns_readers
        self.batch_size: int = 0

    def __len__(self) -> int:
        return self.count

    def prepare(self, batch_size: int, depth: int, allocate: Callable[[int], Any] | None) -> None:
        """Get ready for batches of that size."""
        self.batch_size = batch_size
        for stream in self.streams:
            stream.prepare(batch_size, depth + 2, allocate)

    def describe(self) -> tuple[list[DataDesc], list[DataDesc]]:
        """Describe the data and label arrays of a batch."""
        data, *label = [stream.describe() for stream in self.streams]
        if self.constant_label is not None:
            label = [DataDesc(self.constant_label, (self.batch_size,), data.dtype, "N")]
        return [data], label

    def threads(self) -> int:
        """None: the readers have threads of their own that parse ahead, and copying needs none."""
        return 0

    def settings(self) -> dict[str, str]:
        """Return what a saved state must agree with."""
        return {stream.name: f"{self.count} rows, {stream.row_shape}" for stream in self.streams}

    def __call__(
        self, rows: np.ndarray, epoch: int
    ) -> tuple[list[Any], list[Any], np.ndarray, list[Any]]:
        """Data, labels, row numbers and bad slots of a batch."""
        try:
            made = [stream.batch(rows) for stream in self.streams]
        except BaseException:
            # After a file that cannot be read, and after an interrupt anywhere, start again.
            self.stop()
            raise
        (data, failed), *label = made
        for _, bad in label:
            failed = {**bad, **failed}  # a row that is bad in both is named once
        labels = [array for array, _ in label]
        if self.constant_label is not None:
            labels = [np.zeros(self.batch_size, data.dtype)]
        ids = rows.astype(np.uint64)
        if len(rows) < self.batch_size:
            ids = np.concatenate([ids, np.zeros(self.batch_size - len(rows), np.uint64)])
        return [data], labels, ids, sorted(failed.items())

    def replace(
        self, row: int, data: list[Any], label: list[Any], ids: np.ndarray, slot: int
    ) -> None:
        """Put another row into a slot of a batch, or raise what is wrong with that row."""
        try:
            values = [stream.row(row) for stream in self.streams]
        except TextFormatError:
            raise
        except BaseException:
            self.stop()
            raise
        for stream, batch, value in zip(self.streams, [*data, *label], values, strict=False):
            stream.axes.rows(batch)[slot] = value.reshape(stream.row_shape)
        ids[slot] = row

    def stop(self) -> None:
        """End the threads that parse, until the next batch."""
        for stream in self.streams:
            stream.stop()

    def another(self) -> StreamedRows:
        """Return these rows by streams of their own from the same readers."""
        streams = [
            RowStream(stream.name, stream.reader, stream.first, stream.axes, stream.scalar)
            for stream in self.streams
        ]
        return StreamedRows(self.count, streams, self.constant_label, owns_readers=False)

    def close(self) -> None:
        """End the threads that parse, for good."""
        self.stop()
        if self.owns_readers:
            for stream in self.streams:
                stream.reader.close()
