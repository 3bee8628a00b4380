"""What changes in records that are put into another pack: labels, ids, and names of classes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import LabelError, RecordIOError
from ..packs.classes import SUFFIX, find_classes, format_classes
from ..packs.labels import LabelChange, label_changes
from ..packs.names import pack_prefix
from ..packs.source import SourcePack, different

__all__ = ["class_files", "id_shifts", "label_edits", "output_path"]

#: Tools number images up to here.
LARGEST_ID = 2**63 - 1


def output_path(path: str | os.PathLike[str]) -> str:
    """The record file to write, whose name may be given without ``.rec``.

    Examples
    --------
    >>> output_path("data/train"), output_path("data/train.rec")
    ('data/train.rec', 'data/train.rec')
    """
    return f"{pack_prefix(os.fsdecode(path))}.rec"


def label_edits(
    sources: Sequence[SourcePack], labels: Sequence[Any], classes: Sequence[int | None]
) -> tuple[list[np.ndarray | None], list[LabelChange], int | None]:
    """What the labels of packs become, each by what was asked for it; see `LabelSource`.

    Returns
    -------
    values : list of (numpy.ndarray of float32 or None)
        For each pack the new values of its `SourcePack.labels`; None where they stay.
    changes : list of LabelChange
    identities : int or None
        At least how many identities a pack of them lists, as `write_packs` wants it: none if one
        of the packs has no labels any more.

    Raises
    ------
    LabelError
        If a label is unknown to what was asked for: the error names pack and record.
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


def _apply(source: SourcePack, change: LabelChange) -> np.ndarray | None:
    if change.keeps:
        return None
    table = source.labels
    values, known = change.apply(table.values)
    if not known.all():
        row = int(np.argmin(known))
        number = int(np.searchsorted(table.starts, row, "right")) - 1
        raise LabelError(
            f"nothing is said about its label {table.values[row]:g}", **source.place(number)
        )
    return None if np.array_equal(values, table.values, equal_nan=True) else values


def id_shifts(sources: Sequence[SourcePack]) -> list[int]:
    """What is added to the ids of each pack, so that no two packs have one in common.

    The ids of a pack stay as they are, unless one of them is also that of a record of a pack
    before: then the largest id of the packs before, plus one, is added to all of its ids.

    Raises
    ------
    RecordIOError
        If ids would become larger than 2**63 - 1.
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


def class_files(sources: Sequence[SourcePack], changes: Sequence[LabelChange]) -> dict[str, bytes]:
    """The companion that names the classes of a pack made of others; none if nothing is known.

    Raises
    ------
    RecordIOError
        If labels that are kept have different names in two packs.
    """
    names: dict[int, str] = {}
    for source, change in zip(sources, changes, strict=True):
        for label, name in change.of_names(find_classes(source.file)).items():
            if names.setdefault(label, name) != name and change.table is None:
                raise RecordIOError(
                    f"class {label} is {name!r} here and {names[label]!r} in a pack before: "
                    "append the classes, map them, or remove this file",
                    path=source.prefix + SUFFIX,
                )
    return {SUFFIX: format_classes(names)} if names else {}
