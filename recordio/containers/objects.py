"""Boxes and key points of a sample as JSON: rows of numbers, which become labels of a record."""

from __future__ import annotations

import json
import math
from typing import Any

from ..boxes import LEAST_HEADER, LEAST_OBJECT
from ..errors import LabelError
from ..list_files import check_labels

#: Bytes of JSON that is looked at.
MOST_ROWS = 1 << 22

#: Values of a key point: x, y, v.
POINT = 3


def has_rows(ending: str) -> bool:
    """Tell whether a file with an ending may hold such rows.

    >>> has_rows("boxes.json"), has_rows("boxes.txt")
    (True, False)
    """
    return ending.rpartition(".")[2].lower() == "json"


def labels_of_rows(content: Any) -> list[float] | None:
    """Return the labels of a record that JSON says; None of any other JSON.

    A row is ``[class, x1, y1, x2, y2]`` or ``[x, y, v, ...]``, in fractions of the image, and all
    of a sample are as long.  Numbers that labels cannot be are a LabelError.

    >>> labels_of_rows(b"[[1, 0.25, 0, 0.75, 1]]"), labels_of_rows(b"[]"), labels_of_rows(b"{}")
    ([2.0, 5.0, 1.0, 0.25, 0.0, 0.75, 1.0], [2.0, 5.0], None)
    """
    try:
        rows = json.loads(bytes(content))
    except (ValueError, RecursionError):
        return None  # whoever delivers it says so
    return labels_of_row_lists(rows) if isinstance(rows, list) else None


def labels_of_row_lists(rows: list[Any]) -> list[float] | None:
    """Return the same labels of a list that may have such rows; None of any other.

    >>> labels_of_row_lists([[1, 0.25, 0, 0.75, 1]]), labels_of_row_lists([1, 2])
    ([2.0, 5.0, 1.0, 0.25, 0.0, 0.75, 1.0], None)
    """
    if not all(isinstance(row, list) and row for row in rows):
        return None
    if not all(type(value) in (int, float) for row in rows for value in row):
        return None
    width = len(rows[0]) if rows else LEAST_OBJECT
    if width != LEAST_OBJECT and width % POINT:
        return None
    if any(len(row) != width for row in rows):
        raise LabelError("its objects have different numbers of values")
    labels = [LEAST_HEADER, width, *(value for row in rows for value in row)]
    check_labels(labels)  # before: it refuses whole numbers that no float can hold
    if not all(map(math.isfinite, labels)):
        raise LabelError("an object has a value that is no finite number")
    return list(map(float, labels))
