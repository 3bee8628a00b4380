"""Copies of a pack that keep keys, ids and labels: the files beside it are copied too."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from ..bytes.files import StoredFile
from ..bytes.mapping import check_kept
from ..bytes.remote.settings import RemoteSettings
from ..errors import FieldError
from ..frames.check import Lines, Problem, Report, matched_keys, whole_records
from ..frames.checksums import Checksums, read_checksums
from ..frames.companions import CHECKSUMS, CLASSES, COMPANIONS, FIELDS, INDEX
from ..frames.index_file import read_index
from ..frames.record_bytes import map_records
from ..packs.classes import classes_file
from ..packs.field_files import check_left, field_file, field_names
from ..packs.fields_meta import format_fields, read_fields
from ..packs.pack_writer import Content, FrameWriter, PackWriter


class KeptKeys(PackWriter):
    """The writer of a copy of a pack: its record file, its index, and all that comes along.

    `names` are the fields to copy, by default all.  Where records may be `left_out` those of fields
    are looked at one by one by `copy_fields`, and byte by byte they are copied otherwise.
    """

    def __init__(
        self,
        source: str,
        path: str,
        index: str,
        names: Sequence[str] | None = None,
        left_out: bool = False,
        checksums: bool = False,
    ) -> None:
        file, out = StoredFile.at(source), StoredFile.at(path)
        self._left_out = left_out
        #: Files to copy, by their new names; the content where they are made anew.
        self._copied: dict[str, Content] = {}
        #: Those of each field.
        self.copied_fields: dict[str, dict[str, StoredFile]] = {}
        self._is_there = file.beside("").name == out.beside("").name
        if not self._is_there:
            self._plan(file, out, field_names(file) if names is None else names)
        super().__init__(
            path, index, checksums=checksums, companions=self._copied, believed=True, kept=True
        )

    def _void(self, paths: list[str], settings: RemoteSettings) -> list[str]:
        return [] if self._is_there else super()._void(paths, settings)

    def _plan(self, file: StoredFile, out: StoredFile, fields: Sequence[str]) -> None:
        for row in COMPANIONS:
            if row.kept and file.beside(row.ending).exists():
                self._copied[out.beside(row.ending).name] = file.beside(row.ending)
        if (classes := classes_file(file)) is not None:
            self._copied[out.beside(CLASSES.ending).name] = classes
        described = read_fields(file) or {}
        if named := {name: described[name] for name in fields if name in described}:
            self._copied[out.beside(FIELDS.ending).name] = format_fields(named)
        check_left(out, fields, bool(named))
        for name in fields:
            old, new = field_file(file, name), field_file(out, name)
            if not old.exists():
                raise FieldError("there is no such field beside the pack", path=old.name)
            ends = [row.ending for row in (INDEX, CHECKSUMS) if old.beside(row.ending).exists()]
            files = {new.name: old, **{new.beside(end).name: old.beside(end) for end in ends}}
            self.copied_fields[name] = files
            self._copied |= files

    def copy_fields(self, keys: np.ndarray) -> list[Problem]:
        """Copy the records of fields with the `keys` of those that were copied.

        What is wrong with them is returned.
        """
        problems: list[Problem] = []
        for name, files in self.copied_fields.items() if self._left_out else ():
            problems += _copy_field(name, [*files.values()], self.part([*files]), keys)
        return problems


def _copy_field(
    name: str, parts: Sequence[StoredFile], writer: FrameWriter, keys: np.ndarray
) -> list[Problem]:
    """Copy the whole records of a field whose keys are among these; say what is wrong with it."""
    names = {os.path.splitext(part.name)[1]: part.name for part in parts}
    index, checksums = names.get(INDEX.ending), names.get(CHECKSUMS.ending)
    if index is None:
        raise FieldError(
            "it has no index, so nobody knows which of its records belong to those that are left: "
            "`recordio index` writes one",
            path=parts[0].name,
        )
    report = Report(parts[0].name, index_path=index)
    table = None if checksums is None else read_checksums(checksums)
    copy_whole(report, read_index(index), table, writer, keys)
    return [Problem("field", f"field {name}, {report.path}: {fault}") for fault in report.problems]


def copy_whole(
    report: Report,
    listed: Lines | None,
    table: Checksums | None,
    writer: FrameWriter,
    wanted_keys: np.ndarray | None = None,
) -> np.ndarray:
    """Copy the whole records of a file to another, with index and checksums; return their keys.

    With a `table` of checksums a record is whole if it matches, and the checksums are written as
    well.  With `wanted_keys`, other records are left out.
    """
    view = map_records(StoredFile(report.path))
    chosen = None
    if wanted_keys is not None and listed is not None:
        chosen = listed[1][np.isin(listed[0], wanted_keys)]
    old, new = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for offsets, end in whole_records(view, report, table, listed and listed[1]):
        keep = np.ones(len(offsets), bool) if chosen is None else np.isin(offsets, chosen)
        edges = np.flatnonzero(np.diff(keep, prepend=False, append=False)).reshape(-1, 2)
        bounds = np.append(offsets, end)
        for first, last in edges.tolist():
            begin = int(bounds[first])
            frames = view[begin : int(bounds[last])]
            old.append(offsets[first:last])
            new.append(writer.write_frames(frames, np.diff(bounds[first : last + 1])))
            check_kept(frames, path=report.path, offset=begin)
    before, after = np.concatenate(old), np.concatenate(new)
    keys = matched_keys(before, listed, report.index_path)
    sums = None if table is None else table.entries["crc"][np.isin(table.offsets, before)]
    writer.list_records(keys, after, sums)
    return keys
