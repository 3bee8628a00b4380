"""Fields of packs, copied along with them: every new pack has the fields of its records."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..errors import FieldError, LabelError
from ..packs.fields_meta import SUFFIX, agreed, format_fields
from ..packs.labels import LabelChange
from ..packs.pack_writer import FrameWriter
from ..packs.row_tables import rows_of
from ..packs.scanned_container import scan_field
from ..packs.scanned_pack import ScannedPack
from .copying import Copier, Edit

#: Values of a key point.
POINT = 3


def common_fields(sources: Sequence[ScannedPack], asked: Sequence[str] | None) -> tuple[str, ...]:
    """Return the fields that packs of these sources have: those asked for, or all of theirs.

    Sources with other fields than the first are a FieldError, since the new pack could not have
    each of them for every record.
    """
    if asked is not None:
        return tuple(dict.fromkeys(asked))
    names = sources[0].field_names
    for source in sources[1:]:
        different = sorted(set(names) ^ set(source.field_names))
        if different:
            raise FieldError(
                f"of it and {sources[0].path} only one has the field {different[0]}: name the "
                "fields to keep, fields=[...]",
                path=source.path,
            )
    return tuple(names)


def described_fields(
    sources: Sequence[ScannedPack], names: Sequence[str], changes: Sequence[LabelChange | None]
) -> dict[str, bytes]:
    """Describe the fields of packs made of these sources in their companion; none if nothing is.

    Sources whose descriptions contradict one another are a FieldError.
    """
    tables = []
    for source, change in zip(sources, changes, strict=True):
        table = dict(source.fields_meta)
        for name, meta in table.items():
            if meta.kind == "boxes" and change is not None:
                table[name] = replace(meta, classes=change.of_names(meta.classes))
        tables.append((source.path, table))
    metas = agreed(names, tables)
    return {SUFFIX: format_fields(metas)} if metas else {}


class FieldCopies:
    """One field of some packs, to be copied as the records of the packs are."""

    def __init__(
        self,
        name: str,
        sources: Sequence[ScannedPack],
        edits: Sequence[Edit],
        changes: Sequence[LabelChange | None],
        window: int | None,
    ) -> None:
        self.name = name
        self.sources = sources
        self.packs: list[ScannedPack] = [scan_field(source, name) for source in sources]
        #: For each record of each source the row of its field, -1 where there is none.
        self.rows: list[np.ndarray] = [
            rows_of(source.keys, pack.keys)
            for source, pack in zip(sources, self.packs, strict=True)
        ]
        labels = [self._labels(*each) for each in zip(sources, self.packs, changes, strict=True)]
        own = [Edit(values, edit.shift) for values, edit in zip(labels, edits, strict=True)]
        self._copier = Copier(self.packs, own, window)

    def _labels(
        self, source: ScannedPack, pack: ScannedPack, change: LabelChange | None
    ) -> np.ndarray | None:
        """Change the classes of boxes as the labels of the images change; None where they stay."""
        if (change is not None and change.keeps) or not self._has_boxes(source, pack):
            return None
        if change is None:
            raise FieldError(
                f"field {self.name} has boxes, whose classes a list does not change: give a "
                "mapping of labels, or name the fields to keep, fields=[...]",
                path=pack.path,
            )
        values, is_known = change.apply(pack.labels.values)
        if not is_known.all():
            label = pack.labels.values[int(np.argmin(is_known))]
            raise LabelError(
                f"field {self.name} has boxes of class {label:g}, which is not in labels: add it, "
                "or name the fields to keep, fields=[...]",
                path=pack.path,
            )
        return values

    def _has_boxes(self, source: ScannedPack, pack: ScannedPack) -> bool:
        """Return whether the field has boxes; without a description their width tells it."""
        if self.name in source.fields_meta:
            return source.fields_meta[self.name].kind == "boxes"
        if not pack.is_detection:
            return False
        if (pack.object_widths % POINT == 0).any():
            raise FieldError(
                f"the objects in field {self.name} may be boxes, whose classes are to change, or "
                f"key points: say so in {source.prefix}{SUFFIX}, or name the fields to keep, "
                "fields=[...]",
                path=pack.path,
            )
        return True

    @property
    def problems(self) -> list[str]:
        """Say which records of the field are left out."""
        return [pack.said(problem) for pack in self.packs for problem in pack.problems]

    def chosen(self, packs: np.ndarray, records: np.ndarray) -> np.ndarray:
        """Find the rows of the field for records of the sources; -1 where one is left out.

        A record without the field is a FieldError, unless errors are skipped.
        """
        rows = np.empty(len(records), np.int64)
        for number, (source, table) in enumerate(zip(self.sources, self.rows, strict=True)):
            mine = packs == number
            rows[mine] = table[records[mine]]
            bare = np.flatnonzero(mine & (rows < 0))
            if len(bare) and not source.skip_errors:
                raise self._absence(source, self.packs[number], int(records[bare[0]]), len(bare))
        return rows

    def _absence(self, source: ScannedPack, pack: ScannedPack, row: int, count: int) -> FieldError:
        more = f" (and so for {count - 1} more)" if count > 1 else ""
        where: dict[str, Any] = source.location(row)
        return FieldError(
            f"its field {self.name} is missing: {pack.path} has no record with the key "
            f"{source.keys[row]}{more}; name the fields to keep, fields=[...], or skip errors",
            **where,
        )

    def words(self) -> Iterator[Any]:
        """Yield what tells these fields from others."""
        yield self.name
        for pack in self.packs:
            yield from (os.path.realpath(pack.path), pack.versions, pack.offsets, pack.ends)

    def write(
        self,
        packs: np.ndarray,
        records: np.ndarray,
        keys: np.ndarray,
        writer: FrameWriter,
        keys_are_ids: bool = False,
    ) -> Iterator[None]:
        """Write the field of some records, block by block."""
        rows = self.chosen(packs, records)
        there = rows >= 0
        keys = keys[there]
        ids = keys if keys_are_ids else None
        for frames, lengths in self._copier.blocks(packs[there], rows[there], 0, ids):
            writer.write_frames(frames, lengths, keys[: len(lengths)])
            keys = keys[len(lengths) :]
            yield

    def close(self) -> None:
        """Let the files go."""
        for pack in self.packs:
            pack.close()
