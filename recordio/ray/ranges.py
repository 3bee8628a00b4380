"""Ranges of record files, each read by one task; nothing here needs Ray."""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..bytes.files import StoredFile
from ..bytes.remote.objects import shown
from ..errors import EmptyRecordFileError, RecordIOError
from ..frames.reader import RecordReader
from ..packs.identities import face_pack, in_file_order
from ..packs.manifest import ShardManifest, is_manifest, listed_packs

__all__ = ["RecordFile", "RecordRange", "cut_ranges", "listed_record_files"]

#: Files that a process keeps open: a worker gets many ranges of one file.
OPEN_FILES = 4


@dataclass(frozen=True)
class RecordFile:
    """A file to be read; its `records` are counted without those that list identities."""

    path: str
    index: str
    records: int
    bytes: int


@dataclass(frozen=True)
class RecordRange:
    """Records `begin` to `end` of a file, in its order, without those that list identities."""

    file: RecordFile
    begin: int
    end: int

    def __len__(self) -> int:
        return self.end - self.begin

    @property
    def bytes(self) -> int:
        """Approximate bytes of the records."""
        return self.file.bytes * len(self) // max(self.file.records, 1)

    def read(self) -> Iterator[tuple[int, int, memoryview | RecordIOError]]:
        """Yield number in the file, key and content of each record, or the error of reading it.

        If the file has another number of records than before, it raises RecordIOError.
        """
        file = self.file
        table = _opened(file.path, file.index, StoredFile(file.path).version())
        if len(table.offsets) != file.records:
            raise RecordIOError(
                f"it has {len(table.offsets)} records, and had {file.records}: it was written "
                "again meanwhile",
                path=table.reader.path,
            )
        remote = table.reader.remote
        if remote is not None and remote.resident and len(self):
            mine = table.offsets[self.begin : self.end]
            remote.mirror.prefetch(int(mine[0]), int(remote.ends(mine[-1:])[0]))  # many at a time
        for number in range(self.begin, self.end):
            offset, key = int(table.offsets[number]), int(table.keys[number])
            try:
                record, _ = table.reader.read_at(offset, number)
            except RecordIOError as error:
                yield number, key, error
            else:
                yield number, key, memoryview(b"") if record is None else record


class _Table(NamedTuple):
    reader: RecordReader
    offsets: np.ndarray
    keys: np.ndarray


@functools.lru_cache(OPEN_FILES)
def _opened(path: str, index: str, version: tuple[int, int]) -> _Table:
    """Return a file with the positions of its records, as long as it stays the same."""
    reader = RecordReader(path, index)
    order = np.argsort(reader.offsets, kind="stable")
    offsets, keys = reader.offsets[order], reader.keys[order]
    found = face_pack(reader, in_file_order(reader.offsets))
    if found is not None:
        images = np.isin(offsets, found.images)
        offsets, keys = offsets[images], keys[images]
    return _Table(reader, offsets, keys)


def listed_record_files(paths: str | os.PathLike[str] | Sequence[str]) -> list[RecordFile]:
    """Return record files with their numbers of records, found in indexes or a manifest.

    `paths` are record files, folders, patterns and manifests, which may be URLs.  A file that is
    named itself needs its index beside it.
    """
    names = [paths] if isinstance(paths, (str, os.PathLike)) else paths
    found: list[RecordFile] = []
    for name in map(os.fsdecode, names):
        if is_manifest(name):
            manifest = ShardManifest.read(name)
            manifest.check_sizes()
            rows = zip(manifest.files, manifest.indexes, manifest.shards, strict=True)
            found += [
                RecordFile(path, index, shard.records, shard.bytes) for path, index, shard in rows
            ]
        else:
            found += map(_counted, listed_packs(name).files)
    if not any(file.records for file in found):
        path = ";".join(shown(os.fsdecode(name)) for name in names)
        raise EmptyRecordFileError("there are no records", path=path)
    return found


def _counted(file: StoredFile) -> RecordFile:
    path = file.name
    index = file.beside(".idx")
    if not index.exists():
        raise RecordIOError(
            "it has no index, without which a task would have to read all that is before its "
            f"records: make one with recordio index {shown(path)}",
            path=shown(path),
        )
    records = len(_opened(path, index.name, file.version()).offsets)
    return RecordFile(path, index.name, records, file.size())


def cut_ranges(files: Sequence[RecordFile], count: int) -> list[RecordRange]:
    """Cut files into about `count` ranges of about equal size, each within one file."""
    total = sum(file.bytes for file in files) or 1
    ranges = []
    for file in files:
        pieces = min(max(round(count * file.bytes / total), 1), file.records)
        edges = [file.records * piece // pieces for piece in range(pieces + 1)] if pieces else []
        ranges += [RecordRange(file, *edge) for edge in itertools.pairwise(edges)]
    return ranges
