"""The files of one container, read as one: samples, ids and positions go on from file to file."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from ..bytes.files import StoredFile
from ..bytes.remote.settings import RemoteSettings
from ..errors import LabelError, RecordIOError
from ..frames.mirrored import RemoteRecords
from ..notes import Notes
from .container import Container
from .reader import ContainedRecords
from .samples import ContainedSamples

#: Containers that are opened at once.
LOOKUPS = 16


def open_contained(
    files: Sequence[StoredFile],
    container: Container,
    settings: RemoteSettings | None = None,
    **keywords: Any,
) -> list[ContainedRecords]:
    """Open the files of a container; many are indexed at once, and samples are numbered through."""
    with ThreadPoolExecutor(LOOKUPS, "containers") as pool:
        readers = list(
            pool.map(lambda file: ContainedRecords(file, container, settings, **keywords), files)
        )
    first = 0
    for reader in readers:
        reader.first = first
        first += len(reader)
    check_labelled([reader.samples for reader in readers], [reader.path for reader in readers])
    return readers


def check_labelled(parts: Sequence[ContainedSamples], paths: Sequence[str]) -> None:
    """Raise LabelError if samples have labels in some files and in others not."""
    files = {part.labelled: path for part, path in zip(parts, paths, strict=True)}
    if {True, False} <= files.keys():
        raise LabelError(
            f"its samples have no labels, and those of {files[True]} have: give label_field= where "
            "they have another name, or each of both as a Pack, without labels as "
            "Pack(..., labels=None)",
            path=files[False],
        )


def joined(parts: Sequence[ContainedSamples], paths: Sequence[str]) -> ContainedSamples:
    """Put the samples of several files one after the other; their offsets are their numbers.

    >>> of = ContainedSamples.of
    >>> joined([of([9], [5], [[1]]), of([4, 8], [4, 1], [[2], [3]])], "ab").labels
    array([1., 2., 3.], dtype=float32)
    """
    firsts = np.cumsum([0, *map(len, parts)]).tolist()
    pairs = list(zip(firsts, parts, strict=False))
    classes: dict[int, str] = {}
    for path, part in zip(paths, parts, strict=True):
        for label, name in part.classes.items():
            if classes.setdefault(label, name) != name:
                raise RecordIOError(
                    f"class {label} is {name!r} here and {classes[label]!r} in {paths[0]}",
                    path=path,
                )
    left_out: dict[str, int] = {}
    notes = Notes()
    for part in parts:
        for kind, count in part.left_out.items():
            left_out[kind] = left_out.get(kind, 0) + count
        notes.update(part.notes)
    return ContainedSamples(
        np.arange(firsts[-1]),
        np.concatenate([part.sizes for part in parts]),
        np.concatenate([part.labels for part in parts]),
        None
        if all(part.starts is None for part in parts)
        else _starts([part.label_starts() for part in parts]),
        np.concatenate([part.names for part in parts]),
        _starts([_name_starts(part) for part in parts]),
        classes,
        {first + row: why for first, part in pairs for row, why in part.faults.items()},
        left_out,
        {first + row: why for first, part in pairs for row, why in part.damage.items()},
        notes,
        next((part.labelled for part in parts if part.labelled is not None), None),
    )


def _name_starts(part: ContainedSamples) -> np.ndarray:
    return np.zeros(len(part) + 1, np.int64) if part.name_starts is None else part.name_starts


def _starts(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Put tables of beginnings, each with its end, one after the other."""
    counts = np.concatenate([np.diff(starts) for starts in parts])
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


class JoinedRecords(ContainedRecords):
    """The records of several files, in their order, with the interface of one."""

    def __init__(self, parts: Sequence[ContainedRecords], path: str) -> None:
        self.parts: Sequence[ContainedRecords] = parts
        self.path: str = path
        self.file: StoredFile = parts[0].file
        self.container: Container = parts[0].container
        self.first: int = 0
        self.closed: bool = False
        self.remote: RemoteRecords | None = None
        self.samples: ContainedSamples = joined(
            [part.samples for part in parts], [part.path for part in parts]
        )
        self._firsts = np.array([part.first for part in parts])

    def part_of(self, row: int) -> tuple[ContainedRecords, int]:
        """Find the file that holds a sample, and its number there."""
        number = int(np.searchsorted(self._firsts, row, "right")) - 1
        return self.parts[number], row - int(self._firsts[number])

    def content(self, row: int) -> bytes | memoryview:
        """Read the content of one record."""
        part, row = self.part_of(row)
        return part.content(row)

    def copied_content(self, row: int) -> bytes:
        """Copy the content of one record."""
        part, row = self.part_of(row)
        return part.copied_content(row)

    def location(self, row: int) -> dict[str, Any]:
        """Name file, offset and number of a record, for errors."""
        part, row = self.part_of(row)
        return part.location(row)

    def content_sizes(self) -> tuple[np.ndarray, dict[int, str]]:
        """Count the bytes of each content; see `ContainedRecords.content_sizes`."""
        sizes_and_faults = [part.content_sizes() for part in self.parts]
        faults = {
            part.first + row: why
            for part, (_, of_part) in zip(self.parts, sizes_and_faults, strict=True)
            for row, why in of_part.items()
        }
        return np.concatenate([sizes for sizes, _ in sizes_and_faults]), faults

    def _record(self, row: int) -> bytes:
        part, row = self.part_of(row)
        return part._record(row)

    def _end(self, row: int) -> int:
        return len(self)

    def close(self) -> None:
        """Let the files go."""
        for part in self.parts:
            part.close()
        self.closed = True
