"""Labels of detection images as arrays of objects, from records, list files and lists in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from recordio.boxes import LEAST_HEADER, LEAST_OBJECT, boxes_of
from recordio.bytes.remote.settings import RemoteSettings
from recordio.errors import LabelError
from recordio.lists import read_entries

from ..providers.image_sources import listed_items

__all__ = ["Vectors", "described_files", "listed_labels_of", "objects_of"]

#: Fewest values of a label that has an object.
LEAST_VALUES = LEAST_HEADER + LEAST_OBJECT

#: Ascending ids, where the values of each begin, and the values.
Vectors = tuple[np.ndarray, np.ndarray, np.ndarray]


def objects_of(values: Any, raw_width: int = -1) -> np.ndarray:
    """Return the objects of a label as float32 rows, (objects, B); those without area are left out.

    A label is ``[A, B, A - 2 more values, objects of B values]``, of `raw_width` values if that is
    above 0.  It is a LabelError if the values contradict each other or no object has an area.
    """
    label = np.atleast_1d(np.asarray(values, np.float32))
    if raw_width > 0 and len(label) != raw_width:
        raise LabelError(f"the label has {len(label)} values, label_width is {raw_width}")
    if len(label) < LEAST_VALUES:
        raise LabelError(
            f"the label has {len(label)} values, fewer than the {LEAST_VALUES} of a header and one "
            "object"
        )
    objects = boxes_of(label)
    objects = objects[(objects[:, 3] > objects[:, 1]) & (objects[:, 4] > objects[:, 2])]
    if not len(objects):
        raise LabelError("no object of the label has an area")
    return objects


def described_files(
    imglist: Sequence[Any] | None, path_imglist: str, remote: RemoteSettings | None = None
) -> tuple[list[str], np.ndarray, Vectors]:
    """Return paths, ids and labels of the images of a list in memory or of a list file."""
    if imglist is not None:
        names, rows = listed_items(imglist)
        ids = list(range(len(names)))
    else:
        entries = [entry for _, entry in read_entries(path_imglist, settings=remote)]
        ids = [entry.id for entry in entries]
        rows = [entry.labels for entry in entries]
        names = [entry.path for entry in entries]
    keys, counts = np.unique(np.array(ids, np.uint64), return_counts=True)
    if (counts > 1).any():
        raise LabelError(
            "the id comes twice in the list", path=path_imglist, record_id=int(keys[counts > 1][0])
        )
    table = dict(zip(ids, rows, strict=True))
    ordered = [np.array(table[int(key)], np.float32) for key in keys]
    starts = np.cumsum([0, *map(len, ordered)]).astype(np.int64)
    values = np.concatenate([np.zeros(0, np.float32), *ordered])
    return names, np.array(ids, np.uint64), (keys, starts, values)


def listed_labels_of(listed: Vectors, path: str) -> Iterator[tuple[dict[str, Any], Any]]:
    """Return location and label of every line of a list."""
    ids, starts, values = listed
    for row, key in enumerate(ids.tolist()):
        yield {"path": path, "record_id": key}, values[starts[row] : starts[row + 1]]
