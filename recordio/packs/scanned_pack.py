"""A pack whose file was scanned: where each record begins and ends, headers and labels as tables.

Everything is a table with a row for each record, filled a chunk at a time by NumPy; no content is
read before it is asked for.
"""

from __future__ import annotations

import copy
import logging
import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..boxes import FAULTS, LEAST_HEADER, LEAST_OBJECT, are_objects, faults_of
from ..bytes.mapping import check_kept
from ..errors import CorruptRecordError, IndexFileError, RecordHeaderError, TruncatedRecordError
from ..frames.check import Problem, readable_lines
from ..frames.frame import scan_offsets
from ..frames.head import HEAD, HEAD_WORDS, flag_of, length_of
from ..frames.listing import rewriting
from ..frames.record_bytes import map_records
from ..frames.walk import Piece, walk
from ..header import HEADER, HEADER_FIELDS, LABEL_OFFSET
from ..payload import WIDE, has_wide_header, read_payload, rests_on_labels
from .identities import (
    ROUNDED,
    identity_keys,
    keys_without_index,
    label_pair,
    records_by_key,
    row_of_zero,
)
from .labels import LabelSource
from .names import pack_files
from .open_pack import OpenPack

logger: logging.Logger = logging.getLogger("recordio")

#: Records whose tables are worked on at a time.
CHUNK = 1 << 16
#: Words of the image header, and where a single label stands in it.
HEADER_WORDS: int = HEADER.size // 4
LABEL_WORD: int = LABEL_OFFSET // 4
#: More labels than these are rather the first bytes of something else than an image header.
USUAL_LABELS = 4096


class ClassLabels(NamedTuple):
    """The class labels of all records of a pack, one after the other."""

    #: Those of record i are numbers ``starts[i]`` to ``starts[i + 1] - 1``: int64.
    starts: np.ndarray
    #: Positions in their record, in words of 4 bytes from its beginning: int64.
    positions: np.ndarray
    #: The labels: float32.
    values: np.ndarray

    def numbers_of(self, records: np.ndarray) -> np.ndarray:
        """Return the numbers of the labels of some records."""
        first = self.starts[records]
        return spans(first, self.starts[records + 1] - first)

    def first_of(self, records: np.ndarray) -> np.ndarray:
        """Return the first class label of some records; NaN for those without."""
        first = self.starts[records]
        has = first < self.starts[records + 1]
        labels = np.full(len(records), np.nan, np.float32)
        labels[has] = self.values[first[has]]
        return labels


class ScannedPack(OpenPack):
    """A pack whose file is all there, and whose index is compared with it.

    Opening finds every record, or notes in `problems` what is left out when errors are skipped.

    >>> import tempfile
    >>> from recordio import IRHeader, RecordWriter, pack
    >>> path = f"{tempfile.mkdtemp()}/a.rec"
    >>> with RecordWriter(path) as writer:
    ...     for number in range(3):
    ...         _ = writer.write(pack(IRHeader(0, number * 2, number, 0), b"content"))
    >>> with ScannedPack(path) as source:
    ...     len(source), source.labels.values.tolist(), bytes(source.record(2))[-7:]
    (3, [0.0, 2.0, 4.0], b'content')
    """

    def __init__(
        self, path: str | os.PathLike[str], skip_errors: bool = False, everything: bool = False
    ) -> None:
        files = pack_files(path)
        super().__init__(*files, skip_errors=skip_errors, everything=everything, trusted=False)
        #: What is left out, and why: only where errors are skipped.
        self.problems: list[Problem] = []
        #: All bytes of the file, mapped.
        self.data: memoryview = map_records(self.file)
        #: The file as words of 4 bytes, little-endian: records begin at whole words.
        self.words: np.ndarray = np.frombuffer(self.data, "<u4", len(self.data) // 4)
        #: Sizes and times of change of both files, by which a run that goes on knows them.
        self.versions: list[tuple[int, int] | None] = [
            self.file.version(),
            self.index.version() if self.index else None,
        ]
        self._find_records()
        #: How many identities a face-recognition pack has; None for an ordinary pack.
        self.identities: int | None = None
        if not everything:
            self._leave_out_identities()

    # -- where the records are --------------------------------------------------------------------

    def _find_records(self) -> None:
        try:
            offsets = scan_offsets(self.data, self.path)
            ends = np.append(offsets[1:], len(self.data))[: len(offsets)]
            numbers = np.arange(len(offsets))
            damage: list[Any] = []
        except (CorruptRecordError, TruncatedRecordError):
            if not self.skip_errors:
                raise
            (offsets, ends, numbers), damage = whole_records(self.data)
        zero = 0 if damage else row_of_zero(self.reader, offsets)
        keys = numbers if damage else keys_without_index(zero, len(numbers))
        if self.lines is not None:  # the index says which records are missing
            keys, numbers, rows = self._listed(offsets, *self.lines)
            offsets, ends = offsets[rows], ends[rows]
        else:
            self.problems += [
                Problem(p.kind, p.reason, begin, int(p.numbers[0]), p.end - begin)
                for p in damage
                for begin in p.offsets.tolist()
            ]
        self.offsets = self.all_offsets = offsets
        self.keys = self.all_keys = keys
        #: Where each record ends, and its number in the file: int64.
        self.ends: np.ndarray = ends
        self.numbers = numbers

    def number_of(self, row: int) -> int:
        """Return the number of a record in the file, damaged ones counted."""
        return int(self.numbers[row])

    def _listed(
        self, offsets: np.ndarray, keys: np.ndarray, listed: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return keys and numbers of the records that are listed, by offset, and rows among all."""
        order = np.argsort(listed, kind="stable")  # the number is the position in this order
        keys, lines, listed = keys[order], order + 1, listed[order]
        rows = np.searchsorted(offsets, listed)
        is_record = rows < len(offsets)
        is_record[is_record] = offsets[rows[is_record]] == listed[is_record]
        for number in sorted(np.flatnonzero(~is_record).tolist(), key=lines.__getitem__):
            line, offset = int(lines[number]), int(listed[number])
            if not self.skip_errors:
                raise IndexFileError(
                    f"no record begins at offset {offset} of {self.path}; "
                    "recordio.build_index() writes the index again",
                    path=self.index_path,
                    line=line,
                )
            reason = f"line {line} of {self.index_path}: no whole record begins there"
            self.problems.append(
                Problem("index_offset", reason, offset, number, key=int(keys[number]))
            )
        self._check_listing(offsets, rows[is_record])
        return keys[is_record], np.flatnonzero(is_record), rows[is_record]

    def _check_listing(self, offsets: np.ndarray, rows: np.ndarray) -> None:
        """Compare the rows of the records that are listed, ascending, with those of all."""
        times = np.bincount(rows, minlength=len(offsets))
        for kind, wrong, words in (
            ("not_listed", times == 0, "does not list {} records, this one first"),
            ("listed_twice", times > 1, "lists {} records more than once, this one first"),
        ):
            if not wrong.any():
                continue
            offset = int(offsets[np.argmax(wrong)])
            reason = words.format(np.count_nonzero(wrong))
            if not self.skip_errors:
                raise IndexFileError(
                    f"it {reason}: offset {offset} of {self.path}; {rewriting(self.path)}",
                    path=self.index_path,
                )
            self.problems.append(Problem(kind, f"{self.index_path} {reason}", offset))

    def _leave_out_identities(self) -> None:
        """Keep the images of a face-recognition pack, and note how many identities it has."""
        if self.problems:
            self._leave_out_among_damage()
        elif self.faces is not None:
            self.identities = len(self.faces)
            self._keep(self.faces.are_images(self.keys))

    def _leave_out_among_damage(self) -> None:
        """Keep them where identity records may be damaged, which are written again in any case."""
        pair = label_pair(self.read_keys([0])[0])
        if pair is None:
            return
        last_key = max([int(self.keys.max()), *(problem.key or 0 for problem in self.problems)])
        if self.index is None:  # numbers of records are keys no more
            if pair[1] >= ROUNDED:
                raise RecordHeaderError(
                    "its keys were rounded to 32-bit floats, and behind a damaged record only an "
                    "index says which record has which",
                    path=self.path,
                )
            last_key = max(last_key, pair[1])
        keys = identity_keys(pair, self.read_keys, last_key, self.path)
        if keys is not None:
            self.identities = len(keys)
            self._keep((self.keys >= 1) & (self.keys < keys.start))

    def read_keys(self, keys: Sequence[int]) -> list[memoryview | bytes | None]:
        """Read records by their keys, as `records_by_key` gives them."""
        offsets, order = self.all_offsets, self._key_order
        if not len(offsets):
            return [None] * len(keys)
        # The last one with a key.
        positions = np.searchsorted(self.all_keys, keys, "right", order) - 1
        rows = positions if order is None else order[positions]
        rows = np.where((positions >= 0) & (self.all_keys[rows] == keys), rows, len(offsets))
        return records_by_key(lambda row: self.reader.read_at(int(offsets[row]))[0])(rows.tolist())

    @cached_property
    def _key_order(self) -> np.ndarray | None:
        """Rows by their keys; None where these ascend."""
        keys = self.all_keys
        return None if (keys[1:] >= keys[:-1]).all() else np.argsort(keys, kind="stable")

    def part(self, rows: np.ndarray) -> ScannedPack:
        """Return the same pack with some of its records only, by their rows, ascending."""
        part = copy.copy(self)
        part._keep(rows)
        return part

    def _keep(self, chosen: np.ndarray) -> None:
        for table in self.TABLES:
            if table in self.__dict__:
                setattr(self, table, getattr(self, table)[chosen])
        self.__dict__.pop("labels", None)
        self.__dict__.pop("is_detection", None)

    #: Tables with a row for each record; the last one is made when needed.
    TABLES: tuple[str, ...] = ("offsets", "ends", "keys", "numbers", "_heads")
    #: Records lie in frames of the file, which can be copied as they are.
    is_framed = True

    # -- what is in them --------------------------------------------------------------------------

    @property
    def frame_sizes(self) -> np.ndarray:
        """Bytes that each record takes in a record file: int64."""
        return self.ends - self.offsets

    def contents(self, begin: int, end: int) -> Iterator[memoryview]:
        """Yield the contents of some records; those without image header are whole records."""
        # A view of its own: without the GIL threads cannot slice the same one (CPython gh-155606).
        data = self.words.view(np.uint8).data
        rows = slice(begin, end)
        starts = self.offsets[rows] + HEAD.itemsize + self.header_sizes(rows)
        stops = self.offsets[rows] + HEAD.itemsize + self.sizes[rows]
        records = zip(self.whole[rows].tolist(), starts.tolist(), stops.tolist(), strict=True)
        for number, (whole, start, stop) in enumerate(records, begin):
            yield data[start:stop] if whole else read_payload(self.record(number)).content
        part = data[int(self.offsets[begin]) : int(self.ends[end - 1])]
        check_kept(part, **self.location(begin))

    def copied(self, row: int) -> bytearray:
        """Copy a whole record, with its image header."""
        record = bytearray(self.record(row))
        check_kept(self.data, **self.location(row))
        return record

    def said(self, problem: Problem) -> str:
        """Say where a problem is, and what it is."""
        return f"{self.path}: {problem}"

    def problem(self, number: int, kind: str, reason: str) -> None:
        """Note why a record is left out that is whole."""
        where, key = self.location(number), int(self.keys[number])
        self.problems.append(Problem(kind, reason, where.get("offset"), where["record"], key=key))

    @cached_property
    def _heads(self) -> np.ndarray:
        """The image header of each record, and the sizes, as fields of one table."""
        heads = np.zeros(len(self), ROW)
        unsure: list[int] = []
        for first in range(0, len(self), CHUNK):
            rows = slice(first, first + CHUNK)
            unsure += self._read_heads(self.offsets[rows] // 4, first, heads[rows])
        strange = [row for row in unsure if heads["header"]["id"][row] != self.keys[row]]
        if strange and (~heads["headed"] & (heads["size"] > 0)).any():
            # Where others have no header, these are rather data that begin like one.
            heads["headed"][strange] = False
            location = "{path}, offset {offset}, record {record}".format(
                **self.location(strange[0])
            )
            logger.warning(
                "%s: it begins like an image header with a second id, and so do %d more, but "
                "others have no header: these are taken for data without one, and have no label "
                "and no id",
                location,
                len(strange) - 1,
            )
        heads["header"][~heads["headed"]] = 0
        return heads

    def _read_heads(self, begin: np.ndarray, first: int, heads: np.ndarray) -> list[int]:
        """Fill in some rows; returns the numbers of those whose header rests on its labels."""
        lrec = self.words[begin + 1]
        heads["size"] = length_of(lrec)
        heads["whole"] = flag_of(lrec) == 0
        long = np.flatnonzero(heads["whole"] & (heads["size"] >= HEADER.size))
        words = self.words[begin[long, None] + np.arange(HEAD_WORDS, HEAD_WORDS + HEADER_WORDS)]
        heads["header"][long] = np.ascontiguousarray(words).view(HEADER_FIELDS)[:, 0]
        sizes = heads["size"][long].astype(np.int64)
        flags = heads["header"]["flag"][long].astype(np.int64)
        fits = HEADER.size + 4 * flags <= sizes
        heads["headed"][long] = fits
        unsure = []
        doubtful = long[fits & ((heads["header"]["id2"][long] != 0) | (flags > USUAL_LABELS))]
        for row in [*np.flatnonzero(~heads["whole"]).tolist(), *doubtful.tolist()]:
            record = self.record(first + row)
            heads["size"][row] = len(record)
            payload = read_payload(record)
            heads["headed"][row] = payload.header is not None
            if payload.header is not None:
                heads["header"][row] = HEADER.unpack_from(record)
            if rests_on_labels(payload):
                unsure.append(first + row)
        return unsure

    @property
    def image_sizes(self) -> np.ndarray:
        """Width and height of the image of every record; see `OpenPack.image_sizes`."""
        return self.all_image_sizes[np.searchsorted(self.all_offsets, self.offsets)]

    @property
    def headed(self) -> np.ndarray:
        """Mark the records that have an image header: bool, (records,)."""
        return self._heads["headed"]

    @property
    def whole(self) -> np.ndarray:
        """Mark the records that are stored in one part: bool, (records,)."""
        return self._heads["whole"]

    @property
    def sizes(self) -> np.ndarray:
        """Bytes in each record, with its image header: uint32, (records,)."""
        return self._heads["size"]

    @property
    def headers(self) -> np.ndarray:
        """The image header of each record: (records,), with fields named as in `IRHeader`."""
        return self._heads["header"]

    @property
    def flags(self) -> np.ndarray:
        """Labels after the header of each record, 0 for one label in it: uint32, (records,)."""
        return self._heads["header"]["flag"]

    def header_sizes(self, records: Any) -> np.ndarray:
        """Bytes before the content of some records, labels included: int64; 0 without header."""
        flags = self.flags[records].astype(np.int64)
        return np.where(self.headed[records], HEADER.size + 4 * flags, 0)

    @property
    def ids(self) -> np.ndarray:
        """The id in the header of each record, 0 without header: uint64, (records,)."""
        return self._heads["header"]["id"]

    @cached_property
    def is_detection(self) -> bool:
        """True if every record has labels of objects: a header, then objects of one width.

        Labels without objects, ``[2, 5]``, are among them.
        """
        flags = self.flags[self.headed].astype(np.int64)
        if not len(flags) or flags.min() < LEAST_HEADER:
            return False
        return bool(self._object_layout(np.flatnonzero(self.headed))[2].all())

    @cached_property
    def is_multi_hot(self) -> bool:
        """True if every record has a row of 0 and 1, one for each of several classes with names."""
        count, rows = len(self.classes), np.flatnonzero(self.headed)
        if count < 2 or not len(rows) or self.is_detection or (self.flags[rows] != count).any():
            return False
        return bool(np.isin(self.vectors(rows)[1], (0, 1)).all())

    def note_faulty_objects(self) -> None:
        """Note the records of a detection pack with objects that cannot be right, each once."""
        faults_by_number: dict[int, int] = {}
        owners, positions = self._object_places()
        for start in range(0, len(owners), CHUNK):
            rows = slice(start, start + CHUNK)
            faults = faults_of(self._object_values(owners[rows], positions[rows]))
            for row in np.flatnonzero(faults).tolist():
                faults_by_number.setdefault(int(owners[start + row]), int(faults[row]))
        for number, fault in faults_by_number.items():
            self.problem(number, "label", FAULTS[fault])

    def count_objects(self) -> int:
        """Count the objects in the labels of all records, of any width: boxes or key points."""
        records = np.flatnonzero(self.headed & (self.flags >= LEAST_HEADER))
        pairs = [self.label_words(records, HEADER_WORDS + position) for position in range(2)]
        header, width = (words.view("<f4").astype(float) for words in pairs)
        room = self.flags[records] - header
        right = (header >= LEAST_HEADER) & (width >= 1) & (room >= 0)
        return int((room[right] // width[right]).sum())

    @property
    def object_widths(self) -> np.ndarray:
        """The different numbers of values of an object, of a detection pack: int64."""
        return np.unique(self._object_layout(np.flatnonzero(self.headed))[1])

    def _object_layout(self, records: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Width of the header and of an object, and whether the labels consist of these."""
        count = self.flags[records].astype(np.int64)
        pairs = [self.label_words(records, HEADER_WORDS + position) for position in range(2)]
        header, width = (np.nan_to_num(words.view("<f4"), nan=-1).astype(float) for words in pairs)
        right = (header >= LEAST_HEADER) & (header <= count)
        # A header alone says less: one of other objects counts beside labels that have some.
        alone = (header == count) & (header < count).any() & (width < count.max(initial=0))
        right &= (width >= LEAST_OBJECT) & ((width <= np.maximum(count, LEAST_OBJECT)) | alone)
        header = np.where(right, header, LEAST_HEADER).astype(np.int64)
        width = np.where(right, width, LEAST_OBJECT).astype(np.int64)
        return header, width, right & ((count - header) % width == 0)

    def _object_places(self) -> tuple[np.ndarray, np.ndarray]:
        """List the records that objects belong to, and where in these each object begins."""
        records = np.flatnonzero(self.headed)
        header, width, _ = self._object_layout(records)
        counts = (self.flags[records] - header) // width
        within = spans(np.zeros(len(records), np.int64), counts)
        first, step = np.repeat(HEADER_WORDS + header, counts), np.repeat(width, counts)
        return np.repeat(records, counts), first + step * within

    def _object_values(self, records: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """Read class and corners of objects: float32, (objects, 5)."""
        columns = [self.label_words(records, positions + i) for i in range(LEAST_OBJECT)]
        return np.stack(columns, axis=1).view("<f4")

    def label_words(self, records: np.ndarray, positions: Any) -> np.ndarray:
        """Words of records, by number of the record and position in it: uint32."""
        positions = np.broadcast_to(positions, records.shape)
        at = self.offsets[records] // 4 + HEAD_WORDS + positions
        words = self.words[np.minimum(at, len(self.words) - 1)]
        for row in np.flatnonzero(~self.whole[records]).tolist():
            words[row] = np.frombuffer(
                self.record(int(records[row])), "<u4", 1, 4 * positions[row]
            )[0]
        return words

    @cached_property
    def labels(self) -> ClassLabels:
        """The class labels: the first label of each record, or the ids of its objects.

        Records without image header have none, and what marks an image without objects is none.
        """
        if self.is_detection:
            owners, positions = self._object_places()
        else:
            owners = np.flatnonzero(self.headed)
            # A single label stands in the header, after the flag; a vector after the header.
            positions = np.where(self.flags[owners] == 0, LABEL_WORD, HEADER_WORDS)
        values = np.empty(len(owners), np.float32)
        counts = np.ones(len(owners), bool)
        for start in range(0, len(owners), CHUNK):
            rows = slice(start, start + CHUNK)
            values[rows] = self.label_words(owners[rows], positions[rows]).view("<f4")
            if self.is_detection and (values[rows] < 0).any():
                counts[rows] = are_objects(self._object_values(owners[rows], positions[rows]))
        if not counts.all():
            owners, positions, values = owners[counts], positions[counts], values[counts]
        starts = np.searchsorted(owners, np.arange(len(self) + 1))
        return ClassLabels(starts, positions, values)

    def vectors(self, records: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return numbers of labels of any meaning, and all of these labels: int64, float32."""
        flags = self.flags[records].astype(np.int64)
        counts = np.where(self.headed[records], np.maximum(flags, 1), 0)
        positions = spans(np.where(flags == 0, LABEL_WORD, HEADER_WORDS), counts)
        return counts, self.label_words(np.repeat(records, counts), positions).view("<f4")

    def need_labels(self) -> None:
        """See that every record has an image header; leave those without out, or raise."""
        bare = np.flatnonzero(~self.headed)
        for number in bare.tolist():
            wide = has_wide_header(self.record(number))
            reason = WIDE if wide else "it has no image header, hence no label"
            if not self.skip_errors:
                raise RecordHeaderError(reason, **self.location(number))
            self.problem(number, "no_header", reason)
        if len(bare):
            self._keep(self.headed)

    def distinct(self) -> np.ndarray:
        """The different class labels, ascending: float32."""
        return different(self.labels.values)

    def label_source(self, labels: Any = "keep", classes: Any = None) -> LabelSource:
        """Return the pack as `label_changes` takes it."""
        return LabelSource(
            self.path, self.distinct, labels, classes, self.identities, lambda: self.classes
        )


def whole_records(
    data: Any, index: str | None = None
) -> tuple[tuple[np.ndarray, np.ndarray, np.ndarray], list[Piece]]:
    """Find offsets, ends and numbers of the whole records of a damaged file, and the damage.

    An index that can be read gives the numbers; see `recordio.frames.walk.walk`.
    """
    runs, damage = [np.empty((3, 0), np.int64)], []
    lines = readable_lines(index)
    for piece in walk(data, listed=None if lines is None else lines[1]):
        if piece.is_damage:
            damage.append(piece)
        else:
            ends = np.append(piece.offsets, piece.end)[1:]
            runs.append(np.stack([piece.offsets, ends, piece.numbers]))
    offsets, ends, numbers = np.concatenate(runs, axis=1)
    return (offsets, ends, numbers), damage


#: What is known of a record: its header, its bytes, and whether it has a header and one part.
ROW = np.dtype([("header", HEADER_FIELDS), ("size", np.uint32), ("headed", bool), ("whole", bool)])


def different(values: np.ndarray) -> np.ndarray:
    """Each value once, ascending; on many different ones far faster than `numpy.unique`.

    >>> different(np.array([3, 1, 3])).tolist()
    [1, 3]
    """
    values = np.sort(values)
    return values[np.append(True, values[1:] != values[:-1])[: len(values)]]


def spans(starts: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Numbers ``start, start + 1, ...``, `count` of them for each pair, one after the other.

    >>> spans(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    before = np.cumsum(counts) - counts
    return np.repeat(starts - before, counts) + np.arange(int(counts.sum()))
