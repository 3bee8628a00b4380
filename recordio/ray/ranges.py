"""Ranges of record files, each read by one task; nothing here needs Ray."""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..bytes.files import StoredFile
from ..bytes.remote.objects import redacted_url
from ..containers.table import contained_files
from ..errors import EmptyRecordFileError, RecordIOError
from ..packs.manifest import listed_packs, named_manifest
from ..packs.open_pack import OpenPack, open_listed

#: Files that a process keeps open: a worker gets many ranges of one file.
OPEN_FILES = 4


@dataclass(frozen=True)
class RecordFile:
    """A file to be read; its `records` are counted without those that list identities.

    `first` is the id of the first one in a file of a container, whose ids are made up.
    """

    path: str
    index: str
    records: int
    bytes: int
    first: int = 0


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
        pack = _opened(file.path, file.index, StoredFile(file.path).version(), file.first)
        if len(pack) != file.records:
            raise RecordIOError(
                f"it has {len(pack)} records, and had {file.records}: it was written "
                "again meanwhile",
                path=pack.path,
            )
        remote = pack.reader.remote
        if remote is not None and remote.resident and len(self):
            mine = pack.offsets[self.begin : self.end]
            remote.mirror.prefetch(int(mine[0]), int(remote.ends(mine[-1:])[0]))  # many at a time
        for row, key in enumerate(pack.keys[self.begin : self.end].tolist(), self.begin):
            try:
                yield row, key, pack.record(row)
            except RecordIOError as error:
                yield row, key, error


@functools.lru_cache(OPEN_FILES)
def _opened(path: str, index: str, version: tuple[int, int], first: int = 0) -> OpenPack:
    """Return a file with the positions of its records, as long as it stays the same."""
    pack = OpenPack(path, index or None)
    if pack.container is not None:
        pack.reader.first = first
    return pack


def listed_record_files(paths: str | os.PathLike[str] | Sequence[str]) -> list[RecordFile]:
    """Return record files with their numbers of records, found in indexes or a manifest.

    `paths` are record files, folders, patterns and manifests, which may be URLs.  A file that is
    named itself needs its index beside it.
    """
    names = [paths] if isinstance(paths, (str, os.PathLike)) else paths
    files: list[RecordFile] = []
    for name in map(os.fsdecode, names):
        manifest = named_manifest(name)
        if manifest is not None:
            rows = zip(manifest.files, manifest.indexes, manifest.shards, strict=True)
            files += [
                RecordFile(path, index, shard.records, shard.bytes) for path, index, shard in rows
            ]
        else:
            files += _listed(name)
    if not any(file.records for file in files):
        path = ";".join(redacted_url(os.fsdecode(name)) for name in names)
        raise EmptyRecordFileError("there are no records", path=path)
    return files


def _listed(name: str) -> list[RecordFile]:
    """Count the records of the files that a name stands for."""
    if contained_files(name) is None:
        return [_counted(file) for file in listed_packs(name).files]
    return [
        RecordFile(
            pack.file.name, "", len(pack), max(int(pack.samples.sizes.sum()), 1), pack.reader.first
        )
        for pack in open_listed(name)
        if pack.samples is not None
    ]


def _counted(file: StoredFile) -> RecordFile:
    path = file.name
    index = file.beside(".idx")
    if not index.exists():
        raise RecordIOError(
            "it has no index, without which a task would have to read all that is before its "
            f"records: make one with recordio index {redacted_url(path)}",
            path=redacted_url(path),
        )
    records = len(_opened(path, index.name, file.version()))
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
