"""The records of a pack one after the other, for commands, and the names of their files."""

from __future__ import annotations

import collections
import copy
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np

from recordio import IRHeader, unpack
from recordio.bytes.mapping import check_kept
from recordio.errors import LabelError, RecordHeaderError, RecordIOError
from recordio.list_files import ListEntry
from recordio.packs.open_pack import FieldPack, open_pack
from recordio.payload import WIDE, has_wide_header, read_payload

from .console import progress_bar
from .field_kinds import file_of
from .payloads import labels_of

Made = TypeVar("Made")


class Record(NamedTuple):
    """One record of a pack."""

    #: Position of its line in the index, or of the record in the file without one.
    position: int
    #: Key in the index; the position without one.
    key: int
    header: IRHeader
    #: What follows the header, and what `recordio.formats.kinds.kind_of` says about it.
    content: memoryview
    kind: str

    @property
    def labels(self) -> list[float]:
        """The labels in the header."""
        return labels_of(self.header)


class FieldRecord(NamedTuple):
    """The field of one record."""

    name: str
    #: Suffix and content of a file of it.
    suffix: str
    stored: bytes


class RecordPack:
    """The records of an open pack, or some of them, in the order of its index.

    `cancelled` is asked between records; when it is true, iterating ends with `KeyboardInterrupt`.

    >>> import pathlib, tempfile
    >>> from recordio import RecordWriter, pack
    >>> path = pathlib.Path(tempfile.mkdtemp(), "a.rec")
    >>> with RecordWriter(path) as writer:
    ...     _ = writer.write(pack(IRHeader(0, 3.0, 7, 0), b"content"))
    >>> for record in RecordPack(str(path)):
    ...     print(record.position, record.header.id, record.labels, bytes(record.content))
    0 7 [3.0] b'content'
    """

    def __init__(
        self,
        path: str,
        progress: bool | None = None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> None:
        self.pack = open_pack(path)
        self.path, self.reader = self.pack.path, self.pack.reader
        self._progress = progress  # None: where standard error is a terminal
        self._cancelled = cancelled
        self._part: np.ndarray | None = None
        #: The fields that are read, with the rows that have none.
        self._fields: dict[str, tuple[FieldPack, set[int]]] = {}
        #: Records of each field that were read.
        self.field_counts: collections.Counter[str] = collections.Counter()
        #: True if records that cannot be used are left out, and which these are, with the reasons.
        self.skip_errors: bool = False
        self.problems: list[str] = []
        #: What whoever asked for an export should know of it.
        self.notes: list[str] = []

    def __len__(self) -> int:
        return len(self.positions())

    def __iter__(self) -> Iterator[Record]:
        """Read the records with their headers, but for those that list identities."""
        for record, _ in self.made(lambda record: None):
            yield record

    def made(self, make: Callable[[Record], Made]) -> Iterator[tuple[Record, Made]]:
        """Read the records, and what a function makes of each.

        A record that cannot be read, or used, is noted in `problems` where errors are skipped; it
        is an error if all are.
        """
        before, count = len(self.problems), len(self.positions())
        for position in self.watched(self.positions()):
            try:
                record, whole = self._record(position)
                result = make(record)
            except RecordIOError as error:
                if not self.skip_errors:
                    raise
                self.problems.append(str(error))
                if len(self.problems) - before == count:
                    raise RecordIOError(
                        f"none of its records can be stored ({count}); the last: {error}",
                        path=self.path,
                    ) from None
                continue
            yield record, result
            check_kept(whole, path=self.path, record=position)

    def usable(self, make: Callable[[Record], Any]) -> Self:
        """Return the pack without the records of which a function can make nothing."""
        if not self.skip_errors:
            return self
        return self.part(np.array([record.position for record, _ in self.made(make)], np.int64))

    def _record(self, position: int) -> tuple[Record, memoryview]:
        """Read a record, in parts and as a whole."""
        whole = self.reader[position]
        header, content, kind = read_payload(whole)
        if header is None:
            wide = has_wide_header(whole)
            raise RecordHeaderError(
                WIDE
                if wide
                else "it has no image header; recordio cat --raw gives records as they are",
                path=self.path,
                record=position,
            )
        return Record(position, int(self.reader.keys[position]), header, content, kind), whole

    def watched(self, positions: Any) -> Iterator[int]:
        """Count positions with a progress bar, as long as nobody cancels."""
        name = os.path.basename(self.path)
        with progress_bar(len(positions), name, "records", self._progress) as advance:
            for position in positions:
                if self._cancelled():
                    raise KeyboardInterrupt
                yield int(position)
                advance(1)

    def location(self, record: Record) -> dict[str, Any]:
        """Name path, number and id of a record, for errors."""
        return {"path": self.path, "record": record.position, "record_id": record.header.id}

    @property
    def without_images(self) -> int:
        """Number of records that only describe the others, as in face-recognition packs."""
        return len(self.reader) - len(self)

    def part(self, positions: np.ndarray) -> Self:
        """Return some of the records, by their positions in the whole pack."""
        result = copy.copy(self)
        result._part = positions
        return result

    def everything(self) -> Any:
        """Return the positions of all records; of a part those in it."""
        return range(len(self.reader)) if self._part is None else self._part

    def positions(self) -> Any:
        """Return positions of records without those that list identities; of a part those in it."""
        if self._part is not None:
            return self._part
        faces = self.pack.faces
        if faces is None:
            return range(len(self.reader))
        return np.flatnonzero(faces.are_images(self.reader.keys))

    def open_fields(self, names: Sequence[str]) -> None:
        """Open the fields that `fields_of` is to read."""
        fields = {name: self.pack.field(name) for name in names}
        self._fields = {name: (pack, set(pack.missing.tolist())) for name, pack in fields.items()}

    def fields_of(self, record: Record) -> Iterator[FieldRecord]:
        """Read the fields of a record, but those that are missing."""
        row = record.position
        if self._fields and self.pack.container is None:
            row = int(np.searchsorted(self.pack.offsets, self.reader.offsets[row]))
        for name, (field, missing) in self._fields.items():
            if row in missing:
                continue
            whole = field.record(row)
            header, content = unpack(whole)
            labels = labels_of(header)
            try:
                file = file_of(self.pack.fields_meta.get(name), labels, content)
            except (ValueError, IndexError, OverflowError, ZeroDivisionError) as error:
                raise LabelError(
                    f"its field {name} has no label of objects: {error}", **field.location(row)
                ) from None
            self.field_counts[name] += 1
            yield FieldRecord(name, *file)
            check_kept(whole, **field.location(row))


def name_of(record: Record, names: dict[int, ListEntry], suffixes: tuple[str, ...]) -> str:
    """Return the path of the file that a record was made of, or else its key and a suffix.

    A line of the list counts only if its label is that of the record; names without one of the
    suffixes get the first.
    """
    entry = names.get(record.header.id)
    if entry is None:
        return f"{record.key}{suffixes[0]}"
    label = entry.labels[0]  # six digits behind the point
    if abs(label - record.labels[0]) > 1e-6 + 1e-5 * abs(label):
        return f"{record.key}{suffixes[0]}"
    stem, suffix = os.path.splitext(entry.path)
    return entry.path if suffix.lower() in suffixes else f"{stem}{suffixes[0]}"
