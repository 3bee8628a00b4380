"""The objects of detection records and of rows of batches."""

import numpy as np
import pytest

from recordio import LabelError, boxes_of

LABELS = [2, 5, 7, 0.25, 0.5, 0.75, 1, 8, 0, 0, 0.5, 0.5]
OBJECTS = [[7, 0.25, 0.5, 0.75, 1], [8, 0, 0, 0.5, 0.5]]
#: A longer header, and a value more for each object.
WIDE = [4, 6, 640, 480, 7, 0.25, 0.5, 0.75, 1, 9]


def row_of(labels, padding=3):
    return np.array([3, 8, 8, len(labels), *labels, *[-1] * padding], np.float32)


@pytest.mark.parametrize(
    ("labels", "objects"),
    [
        (LABELS, OBJECTS),
        (WIDE, [[7, 0.25, 0.5, 0.75, 1, 9]]),
        ([2, 5], np.zeros((0, 5)).tolist()),
        ([4, 6, 640, 480], np.zeros((0, 6)).tolist()),
    ],
)
def test_objects_of_records_and_rows(labels, objects):
    found = boxes_of(labels)
    assert found.dtype == np.float32 and found.tolist() == objects
    assert found.shape == (len(objects), int(labels[1]))
    for padding in (0, 3):
        assert np.array_equal(boxes_of(row_of(labels, padding), in_batch=True), found)


@pytest.mark.parametrize(
    "labels",
    [3.0, [], [2], [1, 5], [2, 4, 0, 0, 1, 1], [2, 5, 1], [2.5, 5, 1], [9, 5, 1], [np.nan, 5],
     [2, np.inf, 1], [[2, 5], [2, 5]], [2, 5, *range(6)], [-2, 5]],
)  # fmt: skip
def test_other_labels_are_refused(labels):
    with pytest.raises(LabelError):
        boxes_of(labels)


@pytest.mark.parametrize(
    "row",
    [[], [3, 8, 8], [3, 8, 8, 13, *LABELS], [3, 8, 8, -1, *LABELS], [3, 8, 8, 2.5, *LABELS],
     [3, 8, 8, np.nan, *LABELS], [3, 8, 8, 1, *LABELS], [[3, 8, 8, 2, 2, 5]]],
)  # fmt: skip
def test_other_rows_are_refused(row):
    with pytest.raises(LabelError):
        boxes_of(row, in_batch=True)
