"""Boxes of objects drawn on images, to look at them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..images.contact_sheet import COLOURS

__all__ = ["drawn_boxes"]


def drawn_boxes(
    image: np.ndarray,
    objects: np.ndarray,
    color: Any = None,
    thickness: int = 2,
    names: Mapping[int, str] | None = None,
) -> np.ndarray:
    """An image with the boxes of its objects.

    Parameters
    ----------
    image : numpy.ndarray of uint8, (height, width, 3)
        BGR, as OpenCV shows it.
    objects : numpy.ndarray, (objects, 5 or more)
        Class, xmin, ymin, xmax, ymax in fractions of the image; rows with a negative class are
        padding.
    color : (int, int, int), optional
        RGB; by default one for each class.
    thickness : int
        Of the lines, in pixels.
    names : mapping of int to str, optional
        Names of classes to write beside the boxes.

    Returns
    -------
    numpy.ndarray of uint8

    Examples
    --------
    >>> image = drawn_boxes(np.zeros((9, 9, 3), np.uint8), np.array([[0, 0.2, 0.2, 0.8, 0.8]]))
    >>> (image > 0).any()
    np.True_
    """
    import cv2

    drawn = np.ascontiguousarray(image).copy()
    height, width = drawn.shape[:2]
    for row in objects[objects[:, 0] >= 0]:
        kind = int(row[0])
        box = (row[1:5] * (width, height, width, height)).astype(int).tolist()
        colour = COLOURS[kind % len(COLOURS)] if color is None else tuple(color)
        cv2.rectangle(drawn, box[:2], box[2:], colour[::-1], thickness)
        if names is not None and kind in names:
            place = (box[0] + 5, box[1] + 15)
            cv2.putText(drawn, names[kind], place, cv2.FONT_HERSHEY_SIMPLEX, 0.5, (255,) * 3, 2)
    return drawn
