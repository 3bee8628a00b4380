"""Contents of a container for the image stage: spans, files of a folder, or rows of a library."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from recordio.containers.samples import ContainedSamples
from recordio.packs.open_pack import FieldPack, OpenPack

from .fetched import pin_records
from .source import ImageFiles, LabelTable, LibraryRows, Source, SpanFiles, SpansAndRows


def container_source(packs: Sequence[OpenPack]) -> Source:
    """Open the contents of some files of one kind of container, numbered through."""
    starts = np.cumsum([0, *map(len, packs)]).astype(np.int64)
    readers = [pack.reader for pack in packs]
    samples: list[ContainedSamples] = [reader.samples for reader in readers]
    ids = np.concatenate([reader.ids for reader in readers])
    container = readers[0].container
    whole = not any(one.faults or one.starts is not None for one in samples)
    if container.is_folder and whole:
        paths = [
            os.path.join(reader.file.name, name)
            for reader, one in zip(readers, samples, strict=True)
            for name in one.all_names()
        ]
        labels = np.concatenate([one.first_labels() for one in samples])
        return ImageFiles(paths, ids, np.ascontiguousarray(labels[:, None]))
    table = _labels(ids, samples)

    def located(number: int) -> tuple[int, int]:
        file = int(np.searchsorted(starts, number, side="right")) - 1
        return file, number - int(starts[file])

    packed = np.concatenate([reader.packed for reader in readers])

    def rows() -> Source:
        def read(number: int) -> bytes:
            file, row = located(number)
            pack = packs[file]
            if isinstance(pack, FieldPack) and row in samples[file].faults:
                raise pack.absence(row)
            return readers[file].content(row)

        def location(number: int) -> dict[str, Any]:
            file, row = located(number)
            return packs[file].location(row)

        return LibraryRows(read, location, table)

    if container.is_folder or packed.all():
        return rows()

    def fault(number: int) -> str | Exception:
        file, row = located(number)
        pack = packs[file]
        if isinstance(pack, FieldPack):
            return pack.absence(row)
        return samples[file].faults.get(row, "it has no content")

    kind = _FetchedSpans if any(pack.remote is not None for pack in packs) else SpanFiles
    source = kind(
        [pack.path for pack in packs],
        [reader.view for reader in readers],
        np.concatenate([pack.offsets for pack in packs]),
        starts[:-1],
        np.concatenate([one.sizes for one in samples]),
        table,
        None,
        fault,
    )
    if isinstance(source, _FetchedSpans):
        source.packs, source.starts = packs, starts[:-1]
    return SpansAndRows(source, rows(), packed) if packed.any() else source


class _FetchedSpans(SpanFiles):
    """Spans of files on servers; whoever reads without the GIL has to pin them meanwhile."""

    packs: Sequence[OpenPack]
    starts: np.ndarray

    def read(self, number: int) -> bytes:
        """Copy the bytes of one image, which are fetched before."""
        with pin_records(self.packs, self.starts, np.array([number])):
            return super().read(number)


def _labels(ids: np.ndarray, samples: Sequence[ContainedSamples]) -> LabelTable:
    starts = [one.label_starts() for one in samples]
    ends = np.cumsum([0, *(int(table[-1]) for table in starts)])
    joined = [table[:-1] + end for table, end in zip(starts, ends, strict=False)]
    labels = np.concatenate([one.labels for one in samples])
    return LabelTable(ids, np.concatenate([*joined, ends[-1:]]).astype(np.int64), labels)
