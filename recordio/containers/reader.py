"""The records of a container: each content behind an image header, made on request."""

from __future__ import annotations

import errno
import operator
import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ..bytes.files import StoredFile
from ..bytes.mapping import LOST, is_lost, part_of
from ..bytes.remote.objects import redacted_url
from ..bytes.remote.settings import RemoteSettings
from ..errors import (
    CorruptRecordError,
    ImageFileError,
    KeyNotFoundError,
    LabelError,
    RecordIOError,
    TruncatedRecordError,
)
from ..frames.mirrored import RemoteRecords
from ..header import IRHeader, pack
from .container import CHANGED, Container, ContentReader
from .index import samples_of
from .samples import NO_CONTENT, NO_IMAGE, ContainedSamples


class ContainedRecords:
    """Records by position and key, as `RecordReader` gives those of a record file; copies.

    The id of a record is its number among all files of the container, of which the first one here
    has the number `first`; keys are positions.
    """

    index_path = None
    checksums = None

    def __init__(
        self,
        file: StoredFile,
        container: Container,
        settings: RemoteSettings | None = None,
        *,
        skip_errors: bool = False,
        verify: bool = False,
        samples: ContainedSamples | None = None,
    ) -> None:
        self.file: StoredFile = file
        self.container: Container = container
        self.settings: RemoteSettings | None = settings
        self.verify: bool = verify
        self._ways: dict[str, Any] = {"skip_errors": skip_errors, "verify": verify}
        self.path: str = redacted_url(file.name)
        self._version = file.version()
        own_samples = samples_of(file, container, settings) if samples is None else samples
        self.samples: ContainedSamples = own_samples
        if not skip_errors:
            for row, reason in self.samples.damage.items():
                raise CorruptRecordError(reason, path=self.path, record=row)
        label = container.choice.label_field
        if label and self.samples.labelled is False:
            raise LabelError(
                f"no sample has a label {label}: label_field= names what holds it, and labels=None "
                "reads none (commands: --label-field, --no-labels)",
                path=self.path,
            )
        self.first = 0
        self.closed: bool = False
        self.remote: RemoteRecords | None = None
        if not file.is_local and container.rows is None:
            self.remote = RemoteRecords(file.mirrored(settings), file.name, settings)
            self.remote.set_table(self.samples.offsets)

    def __reduce__(self) -> Any:  # the index is read again, so that little is sent
        file = StoredFile(self.file.name)
        return _reopened, (file, self.container, self.settings, self._ways, self.first)

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
        if self.remote is not None:
            return self.remote.mirror.view
        view = self.file.map()
        self.check_version()
        return view

    def check_version(self) -> None:
        """Raise RecordIOError if the file is not the one in which the samples were found."""
        is_file = self.file.is_local and not self.container.is_folder
        if is_file and self.file.version() != self._version:
            raise RecordIOError(CHANGED, path=self.path)

    @cached_property
    def rows(self) -> ContentReader | None:
        """The reader of contents that are no spans of the file."""
        make = self.container.rows
        if make is None:
            return None
        reader = make(self.file, self.samples, self.container.choice)
        self.check_version()
        return reader

    @cached_property
    def packed(self) -> np.ndarray:
        """Tell which contents `rows` reads: bool."""
        packed = self.samples.packed
        if self.rows is None or packed is None or self.verify:
            return np.full(len(self), self.rows is not None)
        return packed

    def images(self) -> ContainedRecords:
        """Open all images of samples that may have any number, numbered through."""
        return ContainedRecords(
            self.file, self.container, self.settings, **self._ways, samples=self.samples.images()
        )

    def header(self, row: int) -> IRHeader:
        """Make the header of a record; of a sample without images, too."""
        if self.samples.faults.get(row) != NO_IMAGE:
            try:
                self.samples.check(row, 1 << 62)
            except RecordIOError as error:
                raise error.at(**self.location(row)) from None
        labels = self.samples.labels_of(row)
        label = labels if len(labels) > 1 else float(labels[0])
        return IRHeader(0, label, self.first + row, 0)

    def path_of(self, row: int) -> str:
        """Name the file of a content in a folder."""
        return os.path.join(self.file.name, self.samples.name_of(row))

    def location(self, row: int) -> dict[str, Any]:
        """Name file, offset and number of a record, for errors."""
        if self.container.is_folder:
            return {"path": redacted_url(self.path_of(row)), "record": row}
        return {"path": self.path, "offset": int(self.samples.offsets[row]), "record": row}

    def content_sizes(self) -> tuple[np.ndarray, dict[int, str]]:
        """Count the bytes of each content, and say what is wrong with those that cannot be used.

        What a library reads is as large as the samples say, and unknown, -1, where they say 0.
        """
        samples = self.samples
        sizes, faults = samples.sizes.copy(), {}
        if self.container.is_folder:
            for row in np.flatnonzero(sizes != NO_CONTENT).tolist():
                try:
                    sizes[row] = StoredFile(self.path_of(row)).size()
                except OSError as error:
                    faults[row] = error.strerror or str(error)
        bad = samples.sizes == NO_CONTENT
        if not self.container.is_folder:
            sizes[self.packed & (sizes <= 0)] = -1
        if not self.container.is_folder and not self.packed.all():
            bad |= ~self.packed & (samples.offsets + samples.sizes > len(self.view))
        for row in np.flatnonzero(bad).tolist():
            try:
                samples.check(row, self._end(row))
            except RecordIOError as error:
                faults[row] = error.reason
        return sizes, faults

    def content(self, row: int) -> bytes | memoryview:
        """Read the content of one record."""
        location = self.location(row)
        try:
            self.samples.check(row, self._end(row))
            if self.container.is_folder:
                return self._file(row)
            if self.remote is None:
                return self._content(row)
            with self.remote.pin(self.samples.offsets[row : row + 1]):
                return bytes(self._content(row))
        except RecordIOError as error:
            changed = not self.container.is_folder and self.file.version() != self._version
            raise (RecordIOError(CHANGED) if changed else error).at(**location) from None

    def _file(self, row: int) -> bytes:
        try:
            with StoredFile(self.path_of(row)).open() as file:
                return file.read()
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM):
                raise  # what the machine lacks says nothing about the file
            raise ImageFileError(f"the image file cannot be read: {error.strerror}") from None

    def _end(self, row: int) -> int:
        """Return the end of the file, where a content is a span of it."""
        if self.container.is_folder or self.packed[row]:
            return 1 << 62
        return len(self.view)

    def _content(self, row: int) -> bytes | memoryview:
        if self.packed[row]:
            assert self.rows is not None
            return self.rows.read(int(self.samples.offsets[row]))
        return self._span(row)

    def _span(self, row: int) -> memoryview:
        begin = int(self.samples.offsets[row])
        return part_of(self.view, begin, begin + int(self.samples.sizes[row]))

    def copied_content(self, row: int) -> bytes:
        """Copy the content of one record."""
        content = self.content(row)
        copied = bytes(content)
        if isinstance(content, memoryview) and is_lost(content):
            raise TruncatedRecordError(LOST, **self.location(row))
        return copied

    def _record(self, row: int) -> bytes:
        content = self.copied_content(row)
        return pack(self.header(row), content)

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
        following = int(self.offsets[row + 1]) if row + 1 < len(self) else self._end(row)
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

    def __enter__(self) -> ContainedRecords:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


def _reopened(
    file: StoredFile,
    container: Container,
    settings: RemoteSettings | None,
    ways: dict[str, Any],
    first: int,
) -> ContainedRecords:
    records = ContainedRecords(file, container, settings, **ways)
    records.first = first
    return records
