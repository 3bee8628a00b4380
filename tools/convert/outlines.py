"""Outlines of COCO annotations as masks: polygons and run lengths, to the pixels of pycocotools.

A mask is bool (height, width).  What is malformed, or too large, is a LabelError.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from recordio.errors import LabelError
from recordio.values import number, whole_number

from .boxes import Size

#: Points of a grid that is finer than the pixels, on which an outline is followed.
SCALE = 5
#: Most points of one outline: no honest one is so long.
MOST_POINTS = 1 << 24
#: Characters of run lengths as text: six bits each, and the most of one number.
FIRST_CHARACTER, CHARACTERS, MOST_CHARACTERS = 48, 64, 8


def mask_of(outline: Any, size: Size) -> np.ndarray:
    """Return the pixels inside of polygons, or those of run lengths.

    >>> mask_of([[1, 0, 3, 0, 3, 2, 1, 2]], (4, 3)).astype(int).tolist()
    [[0, 1, 1, 0], [0, 1, 1, 0], [0, 0, 0, 0]]
    >>> mask_of({"size": [2, 3], "counts": [1, 2, 3]}, (3, 2)).astype(int).tolist()
    [[0, 1, 0], [1, 0, 0]]
    """
    width, height = size
    if isinstance(outline, dict):
        return _of_run_lengths(outline, size)
    if not isinstance(outline, list) or not outline:
        raise LabelError(f"its segmentation {outline!r:.60} is no list of polygons and no RLE")
    inside = np.zeros(width * height, bool)
    for polygon in outline:
        inside |= _of_polygon(polygon, size)
    return inside.reshape(width, height).T


def _of_polygon(polygon: Any, size: Size) -> np.ndarray:
    """Fill one polygon, x, y, x, y, ...; the pixels are column by column."""
    width, height = size
    if not isinstance(polygon, list) or len(polygon) < 6 or len(polygon) % 2:
        raise LabelError(f"its polygon {polygon!r:.60} is no list of at least 3 points x, y")
    values = [number(value) for value in polygon]
    if None in values:
        raise LabelError(f"its polygon {polygon!r:.60} holds something else than finite numbers")
    try:
        points = np.array(values, np.float64).reshape(-1, 2)
    except OverflowError:
        raise LabelError("a point of its polygon is too far away") from None
    if not (np.abs(points) < 1 << 24).all():
        raise LabelError("a point of its polygon is too far away")
    corners = np.trunc(SCALE * points + 0.5).astype(np.int64)
    across, down = _followed(corners)
    # A column is entered or left where the outline passes the middle of its pixels.
    moved = np.flatnonzero(across[1:] != across[:-1]) + 1
    column = (np.minimum(across[moved], across[moved - 1]) + 0.5) / SCALE - 0.5
    row = (np.minimum(down[moved], down[moved - 1]) + 0.5) / SCALE - 0.5
    there = (column == np.floor(column)) & (column >= 0) & (column <= width - 1)
    rows = np.ceil(np.clip(row[there], 0, height)).astype(np.int64)
    passed = column[there].astype(np.int64) * height + rows
    crossings = np.bincount(passed, minlength=width * height + 1)[: width * height]
    return np.cumsum(crossings) % 2 == 1


def _followed(corners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Follow a closed outline from corner to corner, one step of the grid at a time."""
    begin, end = corners, np.roll(corners, -1, axis=0)
    distance = np.abs(end - begin)
    steps = distance.max(axis=1)
    if int(steps.sum()) + len(steps) > MOST_POINTS:
        raise LabelError("its polygon is too long: it leaves the image by far")
    edge = np.repeat(np.arange(len(steps)), steps + 1)
    first = np.cumsum(steps + 1) - (steps + 1)
    along = np.arange(len(edge)) - first[edge]
    is_flat = distance[:, 0] >= distance[:, 1]
    axis = np.where(is_flat, 0, 1)
    rows = np.arange(len(steps))
    # Every edge is followed from its lesser end, so that it has the same points both ways.
    turned = begin[rows, axis] > end[rows, axis]
    low = np.where(turned[:, None], end, begin)
    high = np.where(turned[:, None], begin, end)
    with np.errstate(invalid="ignore", divide="ignore"):
        slope = (high - low)[rows, 1 - axis] / steps
    slope = np.where(steps == 0, 0.0, slope)
    along = np.where(turned[edge], steps[edge] - along, along)
    main = low[rows, axis][edge] + along
    cross = np.trunc(low[rows, 1 - axis][edge] + slope[edge] * along + 0.5).astype(np.int64)
    flat = is_flat[edge]
    return np.where(flat, main, cross), np.where(flat, cross, main)


def _of_run_lengths(outline: dict[str, Any], size: Size) -> np.ndarray:
    width, height = size
    sides = outline.get("size")
    if not isinstance(sides, list) or [*map(whole_number, sides)] != [height, width]:
        raise LabelError(
            f"its RLE is of size {outline.get('size')!r:.40}, and the image has [{height}, {width}]"
        )
    counts = outline.get("counts")
    if isinstance(counts, str):
        counts = run_lengths_of_text(counts)
    listed = counts if isinstance(counts, (list, tuple)) else []
    numbers = [length for count in listed if (length := whole_number(count)) is not None]
    if not numbers or len(numbers) != len(listed):
        raise LabelError(f"its RLE has the counts {counts!r:.60}: no whole numbers and no text")
    counts = numbers
    if any(count < 0 for count in counts) or sum(counts) != width * height:
        raise LabelError(
            f"the counts of its RLE are those of {sum(counts)} pixels, or some are negative: the "
            f"image has {width * height}"
        )
    values = np.arange(len(counts)) % 2 == 1
    return np.repeat(values, counts).reshape(width, height).T


def run_lengths_of_text(text: str) -> Sequence[int]:
    """Read run lengths that pycocotools wrote as text.

    >>> run_lengths_of_text("123N")
    [1, 2, 3, 0]
    """
    counts: list[int] = []
    number = shift = 0
    for character in text:
        bits = ord(character) - FIRST_CHARACTER
        if not 0 <= bits < CHARACTERS or shift >= 5 * MOST_CHARACTERS:
            raise LabelError(f"the counts of its RLE, {text!r:.60}, are no run lengths")
        number |= (bits & 31) << shift
        shift += 5
        if bits & 32:
            continue
        if bits & 16:
            number -= 1 << shift
        # From the fourth on, the difference to the last but one is written.
        counts.append(number + counts[-2] if len(counts) > 2 else number)
        number = shift = 0
    if shift:
        raise LabelError(f"the counts of its RLE, {text!r:.60}, end within a number")
    return counts
