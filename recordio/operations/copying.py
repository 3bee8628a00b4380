"""Frames of records copied from several packs, with labels and ids changed in the copy.

Frames are copied as they are, many at a time, and changed words are put into the copy; only a
record that is stored in several parts, or would be, is taken apart and encoded again.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..bytes.mapping import check_kept
from ..frames.encoder import encode
from ..frames.head import HEAD_WORDS, MAGIC_WORD
from ..header import ID_OFFSET, pack, unpack
from ..packs.scanned_pack import CHUNK, ScannedPack, spans

#: Bytes copied at a time.
BLOCK = 8 << 20
#: From this many words on, a stretch of records is copied on its own and not word by word.
LONG_RUN = 256


class Vectors(NamedTuple):
    """New labels of all records of a pack, at least one for each.

    Those of record i are ``values[starts[i] : ends[i]]``.
    """

    starts: np.ndarray
    ends: np.ndarray
    values: np.ndarray

    def of(self, record: int) -> np.ndarray:
        """Return the labels of one record."""
        return self.values[self.starts[record] : self.ends[record]]


@dataclass(frozen=True)
class Edit:
    """Changes in the records of one source.

    `labels` are new values of its `ScannedPack.labels`; `vectors`, instead of them, are all labels
    of each record, which may become more or fewer.  `shift` is added to the id in each header,
    where the copy is not given other ids.
    """

    labels: np.ndarray | None = None
    shift: int = 0
    vectors: Vectors | None = None

    @property
    def is_none(self) -> bool:
        """True if records stay as they are."""
        return self.labels is None and self.shift == 0 and self.vectors is None

    def first_labels(self, source: ScannedPack, records: np.ndarray) -> np.ndarray:
        """Return the first class label of some records as it becomes; NaN for those without."""
        if self.vectors is not None:
            return self.vectors.values[self.vectors.starts[records]]
        table = source.labels
        if self.labels is not None:
            table = table._replace(values=self.labels)
        return table.first_of(records)


class Copier:
    """Frames of records of some sources, with what changes in them.

    So many bytes as `window` says are put together at a time, and read in the order of the files: a
    disk likes that where records are written in a random order.
    """

    def __init__(
        self, sources: Sequence[ScannedPack], edits: Sequence[Edit], window: int | None = None
    ) -> None:
        self.sources: Sequence[ScannedPack] = sources
        self.edits: Sequence[Edit] = edits
        self.window: int = window or BLOCK

    def blocks(
        self, packs: np.ndarray, records: np.ndarray, first: int, ids: np.ndarray | None = None
    ) -> Iterator[tuple[memoryview | bytes, np.ndarray]]:
        """Yield frames of some megabytes, and the length of each, from record number `first` on.

        The `ids` in the headers become these, one for each record, if they are given.
        """
        for start in range(first, len(records), CHUNK):
            rows = slice(start, start + CHUNK)
            some, numbers = packs[rows], records[rows]
            new_ids = None if ids is None else ids[rows].astype(np.uint64)
            lengths, apart = self._lengths(some, numbers, new_ids)
            block = np.cumsum(lengths) // self.window
            cut = np.flatnonzero((block[1:] != block[:-1]) | (apart[1:] != apart[:-1])) + 1
            for begin, end in zip([0, *cut.tolist()], [*cut.tolist(), len(some)], strict=True):
                part = slice(begin, end)
                mine = None if new_ids is None else new_ids[part]
                if apart[begin]:
                    frames = self._all_encoded(some[part], numbers[part], mine)
                    yield b"".join(frames), np.array([len(frame) for frame in frames])
                else:
                    copied = self._copied(some[part], numbers[part], lengths[part], mine)
                    yield copied, lengths[part]

    def _lengths(
        self, packs: np.ndarray, records: np.ndarray, new_ids: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Count the bytes of each frame, and find records that have to be encoded again."""
        lengths = np.empty(len(records), np.int64)
        apart = np.zeros(len(records), bool)
        for number, rows in self._by_source(packs):
            source, edit, chosen = self.sources[number], self.edits[number], records[rows]
            lengths[rows] = source.ends[chosen] - source.offsets[chosen]
            if not source.is_framed:
                apart[rows] = True
                continue
            ids = self._ids(number, chosen, None if new_ids is None else new_ids[rows])
            if ids is not None or not edit.is_none:
                apart[rows] = ~source.whole[chosen] | (edit.vectors is not None)
            if ids is not None:
                holds_magic = (ids & 0xFFFFFFFF == MAGIC_WORD) | (
                    ids >> np.uint64(32) == MAGIC_WORD
                )
                apart[rows] |= holds_magic & source.headed[chosen]
        return lengths, apart

    def _by_source(self, packs: np.ndarray) -> Iterator[tuple[int, slice | np.ndarray]]:
        """Yield the number of each source that has records here, and their rows."""
        numbers = np.flatnonzero(np.bincount(packs)).tolist()
        for number in numbers:
            yield number, slice(None) if len(numbers) == 1 else np.flatnonzero(packs == number)

    def _ids(
        self, number: int, records: np.ndarray, new_ids: np.ndarray | None
    ) -> np.ndarray | None:
        """Return the ids that records of one source get; None where they keep theirs."""
        shift = self.edits[number].shift
        if new_ids is not None or not shift:
            return new_ids
        return self.sources[number].ids[records] + np.uint64(shift)

    def _copied(
        self,
        packs: np.ndarray,
        records: np.ndarray,
        lengths: np.ndarray,
        new_ids: np.ndarray | None,
    ) -> memoryview:
        counts = lengths // 4
        positions = np.cumsum(counts) - counts
        out = np.empty(int(counts.sum()), "<u4")
        for number, rows in self._by_source(packs):
            chosen, at, sizes = records[rows], positions[rows], counts[rows]
            ids = self._ids(number, chosen, None if new_ids is None else new_ids[rows])
            if (np.diff(chosen) < 0).any():
                order = np.argsort(chosen, kind="stable")
                chosen, at, sizes = chosen[order], at[order], sizes[order]
                ids = None if ids is None else ids[order]
            piece = np.cumsum(sizes) * 4 // BLOCK
            cut = [0, *(np.flatnonzero(np.diff(piece)) + 1).tolist(), len(chosen)]
            for begin, end in itertools.pairwise(cut):
                part = slice(begin, end)
                self._copy(out, at[part], number, chosen[part], sizes[part])
            self._change(out, at + HEAD_WORDS, number, chosen, ids)
        return out.data.cast("B")

    def _copy(
        self,
        out: np.ndarray,
        positions: np.ndarray,
        number: int,
        records: np.ndarray,
        counts: np.ndarray,
    ) -> None:
        """Copy frames of one source to their positions."""
        source = self.sources[number]
        begin = source.offsets[records] // 4
        after, there = begin + counts, positions + counts
        cut = np.flatnonzero((begin[1:] != after[:-1]) | (positions[1:] != there[:-1])) + 1
        first, last = np.append(0, cut), np.append(cut, len(records)) - 1
        if len(first) * LONG_RUN <= int(counts.sum()):
            runs = (begin[first], after[last], positions[first], there[last])
            for old, old_end, new, new_end in zip(*(run.tolist() for run in runs), strict=True):
                out[new:new_end] = source.words[old:old_end]
        elif (positions[1:] == there[:-1]).all():
            together = out[positions[0] : there[-1]]
            np.take(source.words, spans(begin, counts), out=together, mode="clip")
        else:
            out[spans(positions, counts)] = source.words[spans(begin, counts)]
        check_kept(source.data, path=source.path)

    def _change(
        self,
        out: np.ndarray,
        positions: np.ndarray,
        number: int,
        records: np.ndarray,
        ids: np.ndarray | None,
    ) -> None:
        """Put new labels and ids into frames; `positions` are those of their payloads."""
        edit, source = self.edits[number], self.sources[number]
        if edit.labels is not None:
            table = source.labels
            numbers = table.numbers_of(records)
            owners = np.repeat(positions, table.starts[records + 1] - table.starts[records])
            out[owners + table.positions[numbers]] = edit.labels[numbers].view("<u4")
        if ids is not None:
            headed = source.headed[records]
            words = np.ascontiguousarray(ids[headed], "<u8").view("<u4")
            positions = positions[headed] + ID_OFFSET // 4
            out[positions], out[positions + 1] = words[::2], words[1::2]

    def _all_encoded(
        self, packs: np.ndarray, records: np.ndarray, new_ids: np.ndarray | None
    ) -> list[bytes]:
        """Encode the frames of some records, which are read in the order of their files."""
        frames = [b""] * len(records)
        for row in np.lexsort((records, packs)).tolist():
            number, record = int(packs[row]), records[row : row + 1]
            ids = self._ids(number, record, None if new_ids is None else new_ids[row : row + 1])
            frames[row] = self._encoded(
                number, int(record[0]), None if ids is None else int(ids[0])
            )
        return frames

    def _encoded(self, number: int, record: int, record_id: int | None) -> bytes:
        """Encode the frame of one record that has no frame, or several parts, or will have."""
        edit, source = self.edits[number], self.sources[number]
        payload = source.copied(record)
        if edit.labels is not None:
            for label in source.labels.numbers_of(np.array([record])).tolist():
                offset = 4 * int(source.labels.positions[label])
                struct.pack_into("<f", payload, offset, edit.labels[label])
        if edit.vectors is not None:
            header, content = unpack(payload)
            labels = edit.vectors.of(record)
            label = float(labels[0]) if len(labels) == 1 else labels
            payload = bytearray(pack(header._replace(label=label), content))
        if record_id is not None and source.headed[record]:
            struct.pack_into("<Q", payload, ID_OFFSET, record_id)
        return encode(payload)
