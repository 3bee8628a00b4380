"""The records of a container: each content behind an image header with its label, made when asked for."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ..bytes.files import StoredFile
from ..bytes.mapping import LOST, is_lost
from ..bytes.remote.objects import shown
from ..bytes.remote.settings import RemoteSettings
from ..errors import KeyNotFoundError, RecordIOError, TruncatedRecordError
from ..frames.mirrored import RemoteRecords
from ..header import IRHeader, pack
from .container import Container, Rows
from .index import samples_of

__all__ = ["ContainedRecords"]


class ContainedRecords:
    """What `RecordReader` is for a record file: positions, keys and records, which are bytes here.

    The id of a record is its number among all files of the container, of which the first one here
    has the number `first`; keys are positions.
    """

    index_path = None
    checksums = None

    def __init__(
        self, file: StoredFile, container: Container, settings: RemoteSettings | None = None
    ) -> None:
        self.file, self.container, self._settings = file, container, settings
        self.path = shown(file.name)
        self.samples = samples_of(file, container, settings)
        self.first = 0
        self.closed = False
        self.remote: RemoteRecords | None = None
        if not file.is_local and container.rows is None:
            self.remote = RemoteRecords(file.mirrored(settings), file.name, settings)
            self.remote.set_table(self.samples.offsets)

    def __len__(self) -> int:
        return len(self.samples)

    @property
    def offsets(self) -> np.ndarray:
        """Offset of each content in the file, or the number by which a library reads it: int64."""
        return self.samples.offsets

    @property
    def keys(self) -> np.ndarray:
        """Keys of the records: int64."""
        return np.arange(len(self))

    @property
    def ids(self) -> np.ndarray:
        """Ids of the records: uint64."""
        return np.arange(self.first, self.first + len(self), dtype=np.uint64)

    @cached_property
    def view(self) -> memoryview:
        """All bytes of the file, mapped; of one on a server those that are there."""
        return self.file.map() if self.remote is None else self.remote.mirror.view

    @cached_property
    def rows(self) -> Rows | None:
        """What reads the contents where they are no spans of the file."""
        make = self.container.rows
        return None if make is None else make(self.file, self.samples)

    def path_of(self, row: int) -> str:
        """Name the file of a content in a folder."""
        return os.path.join(self.file.name, self.samples.name_of(row))

    def content(self, row: int) -> bytes | memoryview:
        """Read the content of one record."""
        location = {"path": self.path, "offset": int(self.samples.offsets[row]), "record": row}
        try:
            self.samples.check(row, self._end())
            if self.container.is_folder:
                with StoredFile(self.path_of(row)).open() as file:
                    return file.read()
            if self.rows is not None:
                return self.rows.read(int(self.samples.offsets[row]))
            if self.remote is None:
                return self._span(row)
            with self.remote.pin(self.samples.offsets[row : row + 1]):
                return bytes(self._span(row))
        except RecordIOError as error:
            raise error.at(**location) from None

    def _end(self) -> int:
        """Return the end of the file, where contents are spans of it."""
        if self.container.is_folder or self.container.rows is not None:
            return 1 << 62
        return len(self.view)

    def _span(self, row: int) -> memoryview:
        begin = int(self.samples.offsets[row])
        return self.view[begin : begin + int(self.samples.sizes[row])]

    def _record(self, row: int) -> bytes:
        content = self.content(row)
        labels = self.samples.labels_of(row)
        label = labels if len(labels) > 1 else float(labels[0])
        record = pack(IRHeader(0, label, self.first + row, 0), bytes(content))
        if isinstance(content, memoryview) and is_lost(content):
            raise TruncatedRecordError(LOST, path=self.path, record=row)
        return record

    def __getitem__(self, item: Any) -> Any:
        """One record by position, or a list of records for a slice or a sequence of positions."""
        if isinstance(item, slice):
            return self.read_many(range(*item.indices(len(self))))
        try:
            position = operator.index(item)
        except TypeError:
            return self.read_many(item)
        row = position + len(self) if position < 0 else position
        if not 0 <= row < len(self):
            raise IndexError(f"no record {position}: {self.path} has {len(self)}")
        return memoryview(self._record(row))

    def __iter__(self) -> Iterator[memoryview]:
        for row in range(len(self)):
            yield self[row]

    def read_many(self, positions: Sequence[int] | np.ndarray, *, copy: bool = False) -> list[Any]:
        """Read records at many positions; see `RecordReader.read_many`."""
        records = [self[int(position)] for position in positions]
        return [bytes(record) for record in records] if copy else records

    def read_at(
        self, offset: int, record: int | None = None, *, copy: bool = False
    ) -> tuple[Any, int]:
        """Read the record whose content begins at an offset, and say where the next one does."""
        row = record
        if row is None or row >= len(self) or self.offsets[row] != offset:
            row = int(np.searchsorted(self.offsets, offset))
            if row == len(self) or self.offsets[row] != offset:
                raise RecordIOError("no record begins there", path=self.path, offset=offset)
        following = int(self.offsets[row + 1]) if row + 1 < len(self) else self._end()
        content = self._record(row)
        return (content if copy else memoryview(content)), following

    def position_of(self, key: int) -> int:
        """Return the position of a key, which is the same."""
        number = operator.index(key)
        if not 0 <= number < len(self):
            raise KeyNotFoundError(f"no record has the key {number}", path=self.path)
        return number

    def offset_of(self, position: int) -> int:
        """Return where the content at a position begins."""
        return int(self.offsets[position])

    def by_key(self, key: int) -> memoryview:
        """Read the record with a key."""
        return self[self.position_of(key)]

    def close(self) -> None:
        """Let the file go."""
        if "rows" in self.__dict__ and self.rows is not None:
            self.rows.close()
        self.__dict__.pop("view", None)
        self.closed = True

    def __reduce__(self) -> Any:
        return _opened_again, (self.file.name, self.container, self._settings, self.first)

    def __enter__(self) -> ContainedRecords:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


def _opened_again(
    name: str, container: Container, settings: RemoteSettings | None, first: int
) -> ContainedRecords:
    records = ContainedRecords(StoredFile(name), container, settings)
    records.first = first
    return records
