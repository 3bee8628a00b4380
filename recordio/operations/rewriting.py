"""What the functions have in common that write the records of one pack again."""

from __future__ import annotations

import contextlib
import os

import numpy as np

from ..errors import EmptyRecordFileError, RecordIOError
from ..packs.labels import LabelChange
from ..packs.source import SourcePack
from .changes import class_files
from .output import Plan

__all__ = ["WINDOW", "check_target", "need_folder", "need_records", "plan_of"]

#: Bytes that are put together before they are written, where records change places.
WINDOW = 128 << 20


def check_target(pack: SourcePack, path: str) -> None:
    """Refuse an output that cannot be, before a long pass over the source.

    Raises
    ------
    RecordIOError
        If it is the source.
    FileNotFoundError
        If its folder does not exist.
    """
    with contextlib.suppress(FileNotFoundError):
        if pack.file.is_local and os.path.samefile(path, pack.path):
            raise RecordIOError("the source would be overwritten: give another output", path=path)
    need_folder(path)


def need_folder(path: str) -> None:
    """Refuse an output whose folder does not exist."""
    folder = os.path.dirname(path)
    if folder and not os.path.isdir(folder):
        raise FileNotFoundError(
            2, "the folder for the output does not exist; make it first", folder
        )


def need_records(pack: SourcePack) -> None:
    """Refuse a pack without records, of which nothing can be made."""
    if not len(pack):
        raise EmptyRecordFileError("there is no record in it", path=pack.path)


def plan_of(pack: SourcePack, path: str, records: np.ndarray) -> Plan:
    """A pack of some records of another."""
    companions = class_files([pack], [LabelChange()])
    return Plan(path, np.zeros(len(records), np.int32), records, companions)
