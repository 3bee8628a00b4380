"""Steps of functions that make packs of packs: targets, plans, and changed labels and ids."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from typing import Any, Unpack

import numpy as np

from ..errors import EmptyRecordFileError, LabelError, RecordIOError
from ..packs.classes import SUFFIX, format_classes
from ..packs.labels import LabelChange, agreed_names, label_changes
from ..packs.names import pack_prefix
from ..packs.scanned_container import scan_pack
from ..packs.scanned_pack import ScannedPack, different
from .options import RunOptions
from .output import PackReport, Plan, write_packs

#: Bytes that are put together before they are written, where records change their order.
WINDOW = 128 << 20
#: Tools number images up to here.
LARGEST_ID = 2**63 - 1


def rewrite(
    path: str | os.PathLike[str],
    out: str | os.PathLike[str],
    choose: Callable[[ScannedPack], np.ndarray],
    *,
    window: int | None = None,
    skip_errors: bool = False,
    **run: Unpack[RunOptions],
) -> PackReport:
    """Make a pack of those records of another whose numbers `choose` returns, in that order."""
    target = output_path(out)
    with scan_pack(path, skip_errors) as pack:
        check_target(pack, target)
        records = choose(pack)
        need_records(pack)
        plan = plan_of(pack, target, records)
        return write_packs([pack], [plan], window=window, **run)


def output_path(path: str | os.PathLike[str]) -> str:
    """Return the record file to write, whose name may be given without ``.rec``."""
    return f"{pack_prefix(os.fsdecode(path))}.rec"


def check_target(pack: ScannedPack, path: str) -> None:
    """Refuse an output that cannot be, before a long pass over the source."""
    with contextlib.suppress(FileNotFoundError):
        if any(file.is_local and os.path.samefile(path, file.name) for file in pack.files):
            raise RecordIOError("the source would be overwritten: give another output", path=path)
    need_folder(path)


def need_folder(path: str) -> None:
    """Refuse an output whose folder does not exist."""
    folder = os.path.dirname(path)
    if folder and not os.path.isdir(folder):
        raise FileNotFoundError(
            2, "the folder for the output does not exist; make it first", folder
        )


def need_records(pack: ScannedPack) -> None:
    """Refuse a pack without records, of which nothing can be made."""
    if not len(pack):
        raise EmptyRecordFileError("there is no record in it", path=pack.path)


def plan_of(pack: ScannedPack, path: str, records: np.ndarray) -> Plan:
    """Plan a pack of some records of another."""
    companions = class_files([pack], [LabelChange()])
    return Plan(path, np.zeros(len(records), np.int32), records, companions)


def label_edits(
    sources: Sequence[ScannedPack], labels: Sequence[Any], classes: Sequence[int | None]
) -> tuple[list[np.ndarray | None], list[LabelChange], int | None]:
    """Find new values of the class labels of packs, by what was asked for each; see `LabelSource`.

    They come with what changes, and with the least number of identities as `write_packs` takes it.
    Where labels stay there are no values.
    """
    for source, asked in zip(sources, labels, strict=True):
        if asked is not None and not (isinstance(asked, str) and asked == "keep"):
            source.need_labels()
    described = [
        source.label_source(asked, count)
        for source, asked, count in zip(sources, labels, classes, strict=True)
    ]
    changes, num_classes = label_changes(described)
    values = [_apply(*pair) for pair in zip(sources, changes, strict=True)]
    if any(change.absent for change in changes):
        return values, changes, 0  # an image without label belongs to no identity
    faces = any(source.identities is not None for source in sources)
    return values, changes, num_classes() if faces and not _only_kept(changes) else None


def _only_kept(changes: Sequence[LabelChange]) -> bool:
    return all(change.keeps for change in changes)


def _apply(source: ScannedPack, change: LabelChange) -> np.ndarray | None:
    if change.keeps:
        return None
    table = source.labels
    values, is_known = change.apply(table.values)
    if not is_known.all():
        row = int(np.argmin(is_known))
        number = int(np.searchsorted(table.starts, row, "right")) - 1
        raise LabelError(
            f"its label {table.values[row]:g} is not in labels: add it", **source.location(number)
        )
    return None if np.array_equal(values, table.values, equal_nan=True) else values


def id_shifts(sources: Sequence[ScannedPack]) -> list[int]:
    """Find what is added to the ids of each pack, so that no two packs have one in common.

    The ids of a pack stay as they are, unless one of them is also that of a record of a pack
    before: then the largest id of the packs before, plus one, is added to all of its ids.
    """
    taken = np.empty(0, np.uint64)
    shifts = []
    for source in sources:
        ids = different(source.ids[source.headed])
        shift = 0
        if len(np.intersect1d(taken, ids, assume_unique=True)):
            shift = int(taken[-1]) + 1
            if int(ids[-1]) + shift > LARGEST_ID:
                raise RecordIOError(
                    f"its ids, up to {ids[-1]}, collide with those of the packs before, and with "
                    f"{shift} added to them they would not fit into 63 bits",
                    path=source.path,
                )
        shifts.append(shift)
        taken = np.sort(np.concatenate([taken, ids + np.uint64(shift)]))
    return shifts


def class_files(sources: Sequence[ScannedPack], changes: Sequence[LabelChange]) -> dict[str, bytes]:
    """Name the classes of a pack made of others in its companion; none if nothing is known."""
    names = agreed_names(
        [(pack.prefix, pack.classes, change) for pack, change in zip(sources, changes, strict=True)]
    )
    return {SUFFIX: format_classes(names)} if names else {}
