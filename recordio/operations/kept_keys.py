"""Copies of a pack whose keys, ids and labels stay: what stands beside it comes along."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import IO

import numpy as np

from ..bytes.files import StoredFile
from ..bytes.mapping import check_kept
from ..bytes.storage import AtomicOutput, copy_bytes
from ..errors import FieldError
from ..frames.check import Lines, Problem, Report, matched_keys, whole_records
from ..frames.checksums import Checksums, format_checksums, read_checksums
from ..frames.companions import CHECKSUMS, CLASSES, COMPANIONS, FIELDS, INDEX, stale_files
from ..frames.index_file import format_index, read_index
from ..frames.record_bytes import map_records
from ..packs.classes import classes_file
from ..packs.field_files import field_file, field_names, left_fields
from ..packs.fields_meta import format_fields, read_fields
from ..packs.names import pack_prefix
from .field_copies import check_beside

__all__ = ["KeptKeys", "copy_whole"]


class KeptKeys(AtomicOutput):
    """The output of a copy of a pack: its record file, its index, and all that comes along.

    `files` begin with those of `paths`, the record file, the index and more; the others are written
    by `finish`.  `fields` are those to copy, by default all.  Where records may be `left_out` those
    of fields are looked at one by one, and byte by byte they are copied otherwise.
    """

    def __init__(
        self,
        source: str,
        paths: Sequence[str],
        fields: Sequence[str] | None = None,
        left_out: bool = False,
    ) -> None:
        file, out = StoredFile.at(source), StoredFile.at(paths[0])
        self._main: StoredFile = file
        self._left_out = left_out
        self._own = len(paths)
        #: Files to copy, by their new names; the content where they are made anew.
        self._copied: dict[str, StoredFile | bytes] = {}
        self._fields: dict[str, list[StoredFile]] = {}
        without: list[str] = []
        if file.beside("").name != out.beside("").name:  # else it stands there already
            self._plan(file, out, field_names(file) if fields is None else fields)
            new = [*paths, *self._copied]
            without = stale_files(paths[0], new, believed=True, kept=True)
            for name in self._fields:
                index = field_file(out, name).beside(INDEX.ending).name
                without += stale_files(field_file(out, name).name, new)
                without += [index] * (index not in new)
        super().__init__(*paths, *self._copied, without=without)

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the fields that are copied."""
        return tuple(self._fields)

    def _plan(self, file: StoredFile, out: StoredFile, fields: Sequence[str]) -> None:
        for row in COMPANIONS:
            if row.kept and file.beside(row.ending).exists():
                self._copied[out.beside(row.ending).name] = file.beside(row.ending)
        if (classes := classes_file(file)) is not None:
            self._copied[out.beside(CLASSES.ending).name] = classes
        described = read_fields(file) or {}
        if named := {name: described[name] for name in fields if name in described}:
            self._copied[out.beside(FIELDS.ending).name] = format_fields(named)
        check_beside(pack_prefix(out.name), fields, left_fields(out, bool(named)))
        for name in fields:
            old, new = field_file(file, name), field_file(out, name)
            if not old.exists():
                raise FieldError("there is no such field beside the pack", path=old.name)
            there = [old.beside(row.ending) for row in (INDEX, CHECKSUMS)]
            self._fields[name] = [old, *(one for one in there if one.exists())]
            for one in self._fields[name]:
                end = os.path.splitext(one.name.partition("?")[0])[1]
                self._copied[new.beside(end).name] = one

    def finish(self, keys: np.ndarray | None = None) -> list[Problem]:
        """Write what comes along; of fields the records with the `keys` of those that were copied.

        Without keys all of their records are copied.  What is wrong with them is returned.
        """
        files = dict(zip(self._copied, self.files[self._own :], strict=True))
        found: list[Problem] = []
        for name, parts in self._fields.items() if self._left_out else ():
            mine = [files.pop(path) for path, old in self._copied.items() if old in parts]
            found += _copy_field(name, parts, mine, keys)
        for path, file in files.items():
            source = self._copied[path]
            if isinstance(source, bytes):
                file.write(source)
            else:
                with source.open(0) as old:
                    copy_bytes(old, file)
        return found


def _copy_field(
    name: str, parts: Sequence[StoredFile], files: Sequence[IO[bytes]], keys: np.ndarray | None
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
    copy_whole(report, read_index(index), table, files, keys)
    return [Problem("field", f"field {name}, {report.path}: {one}") for one in report.problems]


def copy_whole(
    report: Report,
    listed: Lines | None,
    table: Checksums | None,
    files: Sequence[IO[bytes]],
    wanted: np.ndarray | None = None,
) -> np.ndarray:
    """Copy the whole records of a file to others, its index and checksums; return their keys.

    With a `table` of checksums a record is whole if it matches, and the checksums are written as
    well.  Where some keys are `wanted`, other records are left out.
    """
    view = map_records(StoredFile(report.path))
    chosen = None
    if wanted is not None and listed is not None:
        chosen = listed[1][np.isin(listed[0], wanted)]
    old, new = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    written = 0
    for offsets, end in whole_records(view, report, table, listed and listed[1]):
        keep = np.ones(len(offsets), bool) if chosen is None else np.isin(offsets, chosen)
        edges = np.flatnonzero(np.diff(keep, prepend=False, append=False)).reshape(-1, 2)
        bounds = np.append(offsets, end)
        for first, last in edges.tolist():
            begin, behind = int(bounds[first]), int(bounds[last])
            old.append(offsets[first:last])
            new.append(offsets[first:last] - begin + written)
            written += files[0].write(view[begin:behind])
            check_kept(view[begin:behind], path=report.path, offset=begin)
    before, after = np.concatenate(old), np.concatenate(new)
    keys = matched_keys(before, listed, report.index_path)
    for piece in format_index(keys, after):
        files[1].write(piece)
    if table is not None:
        entries = table.entries[np.isin(table.offsets, before)]
        entries["offset"] = after
        for piece in format_checksums(entries, written):
            files[2].write(piece)
    return keys
