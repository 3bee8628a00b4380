"""Records become files of another format.

This only looks after what is replaced; the formats do the work.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from recordio.bytes.storage import naming_output
from recordio.errors import EmptyRecordFileError, RecordIOError
from recordio.keywords.checks import boolean
from recordio.keywords.options import Options, option
from recordio.packs.names import pack_prefix

from ..outputs import check_outputs, temporary_folder
from ..record_pack import RecordPack
from .format import Export, ExportedFields
from .shards import older_shards, plan_shards

#: With which the names of folders may end.
SEPARATORS = tuple(filter(None, (os.sep, os.altsep)))


@dataclass(frozen=True, kw_only=True)
class ExportSettings(Options):
    """Options of all exports."""

    skip_errors: bool = option(
        False,
        "bool",
        "Leave out records that cannot be read or stored, and report them, instead of stopping.",
        boolean,
    )


@dataclass
class ExportReport:
    """Result of `recordio.convert.export`.

    Attributes
    ----------
    paths : list of str
        Paths of the files, or of the folder.
    records : int
        Number of records in them.
    left_out : int
        Number of records that list identities of a face-recognition pack, which are not written.
    fields : dict of str to int
        Number of records in each field that was written.
    fields_left_out : list of str
        Names of the fields that the format cannot store, or that were not chosen.
    seconds : float
        Duration of the export.
    problems : list of str
        Why records were left out that cannot be read or stored, where errors are skipped.
    notes : list of str
        What was not done as might be expected.
    """

    paths: list[str]
    records: int
    left_out: int
    seconds: float
    fields: dict[str, int] = field(default_factory=dict)
    fields_left_out: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def export_records(
    pack: RecordPack, target: str, export: Export, settings: argparse.Namespace
) -> ExportReport:
    """Write the records of a pack in another format; the output appears whole or not at all.

    With `pack.skip_errors` records that cannot be read or stored are left out.

    `target` is a file, a prefix or a folder, depending on the format.  The settings have the
    options of the format, `force` to replace existing files and, for some formats, `shard_records`
    and `shard_bytes`.
    """
    start = time.perf_counter()
    if target == "-":
        raise RecordIOError("exports are written to files, not to standard output", path=target)
    if not len(pack):
        raise EmptyRecordFileError(
            "there is nothing to export: the file holds no records", path=pack.path
        )
    _check_target(pack, target, export)
    positions = pack.everything() if getattr(settings, "raw", False) else pack.positions()
    sizes = (getattr(settings, "shard_records", None), getattr(settings, "shard_bytes", None))
    shards = None
    if export.outputs(target):
        shards = plan_shards(target, pack.reader, positions, *sizes)
    names = [target] if shards is None else [name for name, _ in shards]
    paths = [path for name in names for path in export.outputs(name)]
    check_outputs(paths, settings.force)
    for path in paths:
        if os.path.exists(path) and os.path.samefile(path, pack.path):
            raise RecordIOError("the record file itself would be replaced", path=path)
    chosen = _open_fields(pack, export, settings)
    left_out = pack.without_images
    if shards is not None and sizes != (None, None):
        for path in older_shards(target, names):
            raise RecordIOError(
                "an older shard, which would be read with the new ones: remove it, or give another "
                "target",
                path=path,
            )
    with naming_output(paths[0] if paths else target):
        if shards is None:
            records = export.write(pack, paths or [target], settings)
        else:
            records = _write_shards(pack, shards, export, settings)
    return ExportReport(
        paths or [target],
        records,
        left_out,
        time.perf_counter() - start,
        {name: pack.field_counts[name] for name in chosen},
        [name for name in pack.pack.field_names if name not in chosen],
        pack.problems,
        pack.notes,
    )


def _open_fields(pack: RecordPack, export: Export, settings: argparse.Namespace) -> list[str]:
    """Open the fields that are written; none where the format has none, or records stay raw."""
    if not issubclass(export.options, ExportedFields) or getattr(settings, "raw", False):
        if getattr(settings, "fields", None):
            raise ValueError("raw=True writes records as they are: drop fields")
        return []
    asked = settings.fields
    names = list(pack.pack.field_names if asked is None else asked)
    pack.open_fields(names)
    return names


def _check_target(pack: RecordPack, target: str, export: Export) -> None:
    """Refuse a folder where files are written."""
    files = export.outputs(target)
    if not files or not (target.endswith(SEPARATORS) or any(map(os.path.isdir, files))):
        return
    name = os.path.basename(pack_prefix(pack.path)) + export.suffix
    example = export.outputs(os.path.join(target, name))[0]
    raise RecordIOError(
        f"this is a folder, and --to {export.name} writes files: name one, such as {example}",
        path=target,
    )


def _write_shards(
    pack: RecordPack,
    shards: Sequence[tuple[str, np.ndarray]],
    export: Export,
    settings: argparse.Namespace,
) -> int:
    """Write all shards into a folder beside them, and rename them when all are whole."""
    records = 0
    renamed: list[tuple[str, str]] = []
    with temporary_folder(export.outputs(shards[0][0])[0]) as folder:
        for name, positions in shards:
            targets = export.outputs(name)
            paths = [os.path.join(folder, os.path.basename(path)) for path in targets]
            records += export.write(pack.part(positions), paths, settings)
            renamed += zip(paths, targets, strict=True)
        for path, target in renamed:
            os.replace(path, target)
    return records
