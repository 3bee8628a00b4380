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
    """Draw the boxes of objects on a copy of a BGR image, (height, width, 3), as OpenCV shows it.

    `objects` has rows of class, xmin, ymin, xmax, ymax in fractions of the image; those with a
    negative class are padding.  `color` is RGB, by default one for each class; `names` are written
    beside the boxes.
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
            corner = (box[0] + 5, box[1] + 15)
            cv2.putText(drawn, names[kind], corner, cv2.FONT_HERSHEY_SIMPLEX, 0.5, (255,) * 3, 2)
    return drawn
