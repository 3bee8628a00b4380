"""Labels of detection records: the objects that they list, and which of these cannot be right."""

from __future__ import annotations

from typing import Any

import numpy as np

from .errors import LabelError

#: Fewest values of a header and of an object.
LEAST_HEADER, LEAST_OBJECT = 2, 5
#: Values before the labels in a row of a batch; the last says how many labels follow.
VALUES_BEFORE_OBJECTS = 4
#: Class of the empty box that marks an image without objects.
NO_CLASS = -1
#: Boxes may leave the image a little; coordinates beyond these are pixels, not fractions.  The
#: readers of batches have the same bounds (`iterators.images.augment.det_geometry`).
LOWEST, HIGHEST = -1, 2
#: Faults of objects, by their numbers; the readers of batches use the same words.
FAULTS = (
    "",
    "an object's class is not a finite number",
    "an object's coordinate is not a finite number",
    "an object's coordinate is below -1 or above 2: boxes are in fractions of the image, not in "
    "pixels",
)


def boxes_of(labels: Any, *, in_batch: bool = False) -> np.ndarray:
    """Return the objects of a detection record, or of a sample in a batch, as an array.

    Parameters
    ----------
    labels : array_like of float
        The labels of a record, as in ``IRHeader.label``: ``[A, B, A - 2 more values, objects of B
        values]``.
    in_batch : bool
        `labels` is a row of the labels of `ImageDetRecordIter`: ``[channels, rows, columns, L, L
        labels, padding]``.

    Returns
    -------
    numpy.ndarray of float32, (objects, B)
        For each object its class, xmin, ymin, xmax, ymax in fractions of the image, and any further
        values.  Objects without area, which readers drop, are included for a record, but for those
        of class -1: they mark an image without objects.

    Raises
    ------
    LabelError
        If the labels are not a header and objects of one size, or an object cannot be right: its
        class or a coordinate is not finite, or a coordinate is below -1 or above 2, as pixels are.

    Examples
    --------
    >>> from recordio import IRHeader, boxes_of, pack, unpack
    >>> labels = [2, 5, 7, 0.25, 0.5, 0.75, 1, 8, 0, 0, 0.5, 0.5]
    >>> header, content = unpack(pack(IRHeader(0, labels, 0, 0), b"an image"))
    >>> boxes_of(header.label).tolist()
    [[7.0, 0.25, 0.5, 0.75, 1.0], [8.0, 0.0, 0.0, 0.5, 0.5]]
    >>> row = [3, 300, 400, 7, 2, 5, 7, 0.25, 0.5, 0.75, 1, -1, -1, -1, -1, -1]
    >>> boxes_of(row, in_batch=True).tolist()
    [[7.0, 0.25, 0.5, 0.75, 1.0]]
    """
    values = np.atleast_1d(np.asarray(labels, np.float32))
    if in_batch:
        count = (
            values[VALUES_BEFORE_OBJECTS - 1]
            if values.ndim == 1 and len(values) >= VALUES_BEFORE_OBJECTS
            else -1
        )
        if not (0 <= count <= len(values) - VALUES_BEFORE_OBJECTS and float(count).is_integer()):
            raise LabelError(
                f"labels of shape {values.shape} are no row of a batch with boxes: channels, rows, "
                "columns, number of labels, labels"
            )
        values = values[VALUES_BEFORE_OBJECTS : VALUES_BEFORE_OBJECTS + int(count)]
    objects = objects_of(values, LEAST_OBJECT)
    check_objects(objects)
    return objects[are_objects(objects)]


def are_objects(rows: np.ndarray) -> np.ndarray:
    """Tell objects from the empty box of class -1 that marks an image without objects: bool.

    >>> are_objects(np.array([[-1, 0, 0, 0, 0], [0, 0, 0, 0, 0], [-1, 0, 0, 1, 1]])).tolist()
    [False, True, True]
    """
    is_empty = (rows[:, 3] <= rows[:, 1]) | (rows[:, 4] <= rows[:, 2])
    return ~((rows[:, 0] == NO_CLASS) & is_empty)


def faults_of(rows: np.ndarray) -> np.ndarray:
    """Number what is wrong with each object, as in `FAULTS`; 0 where nothing is.

    >>> faults_of(np.array([[0, 0, 0, 1, 1], [np.nan, 0, 0, 1, 1], [0, 10, 10, 30, 30]])).tolist()
    [0, 1, 3]
    """
    corners = rows[:, 1:LEAST_OBJECT]
    return np.select(
        [
            ~np.isfinite(rows[:, 0]),
            ~np.isfinite(corners).all(axis=1),
            ((corners < LOWEST) | (corners > HIGHEST)).any(axis=1),
        ],
        [1, 2, 3],
    )


def check_objects(rows: np.ndarray) -> None:
    """Raise LabelError for an object that cannot be right."""
    if len(wrong := np.flatnonzero(faults := faults_of(rows))):
        raise LabelError(FAULTS[faults[wrong[0]]])


def check_listed(labels: Any) -> None:
    """Raise LabelError for objects that cannot be right in labels; other labels pass."""
    try:
        objects = objects_of(np.atleast_1d(np.asarray(labels, np.float32)), LEAST_OBJECT)
    except LabelError:
        return
    check_objects(objects)


def objects_of(values: np.ndarray, least: int) -> np.ndarray:
    """Return the objects in labels, of at least so many values each: float32, (objects, values).

    >>> objects_of(np.array([2, 3, 0.5, 0.5, 2], np.float32), 3).tolist()
    [[0.5, 0.5, 2.0]]
    """
    if values.ndim != 1 or len(values) < LEAST_HEADER:
        raise LabelError(
            f"labels of shape {values.shape} list no objects, which need a header of at least "
            f"{LEAST_HEADER} values"
        )
    header, width = values[:2].tolist()
    if (
        not (header.is_integer() and width.is_integer())
        or not LEAST_HEADER <= header <= len(values)
        or width < least
        or (len(values) - header) % width
    ):
        raise LabelError(
            f"a label of {len(values)} values cannot have a header of {header:g} and objects of "
            f"{width:g}"
        )
    return values[int(header) :].reshape(-1, int(width))
