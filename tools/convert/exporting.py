"""Records become files of another format.

This only looks after what is replaced; the formats do the work.
"""

from __future__ import annotations

import argparse
import os
import time
from dataclasses import dataclass

from recordio.errors import EmptyRecordFileError, RecordIOError

from ..outputs import check_outputs, naming_output
from ..record_pack import RecordPack
from .format import Export

__all__ = ["ExportReport", "export_records"]


@dataclass
class ExportReport:
    """What `export_records` did.

    Attributes
    ----------
    paths : list of str
        The files, or the folder.
    records : int
        Records written.
    left_out : int
        Records that hold no data: those of face-recognition packs that list identities.
    seconds : float
        Wall-clock time.
    """

    paths: list[str]
    records: int
    left_out: int
    seconds: float


def export_records(
    pack: RecordPack, target: str, export: Export, settings: argparse.Namespace
) -> ExportReport:
    """Write the records of a pack in another format; the output appears whole or not at all.

    Parameters
    ----------
    pack : RecordPack
        The records.
    target : str
        What to write: a file, a prefix or a folder, as the format has it.
    export : Export
        The format.
    settings : argparse.Namespace
        Its options, and `force`: whether existing files are replaced.

    Returns
    -------
    ExportReport

    Raises
    ------
    RecordIOError
        A record does not fit the format, a file exists, or there are no records.
    OSError
        A file cannot be read or written.
    """
    start = time.perf_counter()
    if target == "-":
        raise RecordIOError("exports are written to files, not to standard output", path=target)
    paths = list(export.outputs(target))
    check_outputs(paths, settings.force)
    for path in paths:
        if os.path.exists(path) and os.path.samefile(path, pack.path):
            raise RecordIOError("the record file itself would be replaced", path=path)
    if not len(pack):
        raise EmptyRecordFileError(
            "there is nothing to export: the file holds no records", path=pack.path
        )
    left_out = pack.without_images
    with naming_output(paths[0] if paths else target):
        records = export.write(pack, paths or [target], settings)
    return ExportReport(paths or [target], records, left_out, time.perf_counter() - start)
