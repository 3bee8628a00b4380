"""Boxes of annotations become labels of detection records, as `ImageDetRecordIter` reads them.

A label is ``[2, B, object, object, ...]`` with B values for an object: class, xmin, ymin, xmax and
ymax in fractions of the image, and what ``mark`` adds.  No file is read or written here.
"""

from __future__ import annotations

import argparse
import collections
import io
import math
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from recordio.errors import ImageDecodeError, LabelError, RecordIOError
from recordio.extras import need
from recordio.image_size import image_size, open_image
from recordio.limits import bounded_lines

from ..image_header import read_image_header
from ..image_list import UNLISTED, Skipped
from ..outputs import url_refused
from .folders import add_check_option, read_content
from .format import Counts, Item, LeftOut

__all__ = [
    "Box",
    "BoxLabels",
    "add_box_options",
    "check_folder",
    "checked_classes",
    "item_of",
    "read_class_file",
    "upright_size",
]

HEADER = 2.0
NO_OBJECT = (-1.0, 0.0, 0.0, 0.0, 0.0)  # an empty box, which readers drop
EXIF_ORIENTATION = 0x0112
ON_THEIR_SIDE = frozenset([5, 6, 7, 8])
Size = tuple[int, int]


class Box(NamedTuple):
    """One object of an image.

    Attributes
    ----------
    name : str
        How errors call it: ``annotation 17``.
    label : int
        Number of its class.
    corners : tuple of float
        xmin, ymin, xmax and ymax in fractions of the image.
    marked : bool
        Whether it is a crowd (COCO) or difficult (VOC).
    """

    name: str
    label: int
    corners: tuple[float, float, float, float]
    marked: bool = False


def add_box_options(parser: argparse._ActionsContainer, mark: str = "", meaning: str = "") -> None:
    """The options of formats with boxes.

    Parameters
    ----------
    parser : argparse.ArgumentParser
    mark : str
        Name of the option about objects that the format marks, without dashes; empty: none does.
    meaning : str
        What such objects are, for the help.
    """
    parser.add_argument(
        "--bad-boxes",
        choices=["refuse", "clip", "drop"],
        default="refuse",
        help="boxes that are empty, or leave the image by more than a pixel.  refuse: the image is "
        "left out and reported; clip: they are cut at the edges, and those of which nothing is "
        "left are dropped; drop: they are dropped (default: refuse)",
    )
    if mark:
        parser.add_argument(
            f"--{mark}",
            dest="marked",
            choices=["drop", "keep", "mark"],
            default="drop",
            help=f"{meaning}.  drop: leave them out; keep: store them like others; mark: give "
            "every object a sixth value, 1 for these and 0 for others (default: drop)",
        )
    else:
        parser.set_defaults(marked="keep")
    parser.add_argument(
        "--background",
        action="store_true",
        help="store images without boxes as well, with one empty box of class -1, which readers "
        "drop (default: leave them out)",
    )
    add_check_option(parser)


def check_folder(path: str) -> None:
    """Refuse what is no folder of this machine."""
    if reason := url_refused(path):
        raise RecordIOError(reason, path=path)
    if not os.path.isdir(path):
        what = "is a file, not a folder" if os.path.exists(path) else "there is no such folder"
        raise RecordIOError(what, path=path)


@dataclass
class BoxLabels:
    """Makes labels of boxes, and says which boxes are not in them.

    Parameters
    ----------
    bad_boxes : ``"refuse"``, ``"clip"`` or ``"drop"``
        What becomes of boxes that are empty or leave the image.
    marked : ``"drop"``, ``"keep"`` or ``"mark"``
        What becomes of crowds and difficult objects.
    background : bool
        Whether images without boxes are stored.

    Examples
    --------
    >>> labels = BoxLabels("refuse", "drop", False)
    >>> labels.of([Box("box 0", 3, (0.25, 0, 0.5, 1))], (100, 100))
    ([2.0, 5.0, 3.0, 0.25, 0.0, 0.5, 1.0], Counter())
    >>> labels.of([Box("box 0", 3, (0.5, 0, 0.5, 1))], (100, 100))
    Traceback (most recent call last):
        ...
    recordio.errors.LabelError: box 0: its width or height is not above 0 (50, 0, 50, 100); ...
    """

    bad_boxes: str
    marked: str
    background: bool
    clipped: int = 0

    @classmethod
    def from_settings(cls, settings: argparse.Namespace) -> BoxLabels:
        """What the options of `add_box_options` ask for."""
        return cls(settings.bad_boxes, settings.marked, settings.background)

    def of(
        self, boxes: Iterable[Box], size: Size
    ) -> tuple[list[float] | None, collections.Counter[str]]:
        """The label of an image, and what is not in it.

        Parameters
        ----------
        boxes : iterable of Box
            Its objects.
        size : tuple of int
            Width and height in pixels.

        Returns
        -------
        label : list of float or None
            None if nothing is left of the boxes, and such images are not stored.
        left_out : Counter of str
            Boxes that were dropped, and the image if there is no label.

        Raises
        ------
        LabelError
            A box is not allowed.
        """
        width = 6.0 if self.marked == "mark" else 5.0
        values: list[float] = []
        left_out: collections.Counter[str] = collections.Counter()
        for box in boxes:
            if box.marked and self.marked == "drop":
                left_out["crowds or difficult objects"] += 1
                continue
            corners = self._checked(box, size)
            if corners is None:
                left_out["bad boxes"] += 1
                continue
            values += [float(box.label), *corners]
            values += [float(box.marked)] if self.marked == "mark" else []
        if not values and not self.background:
            left_out["images without boxes (--background stores them)"] += 1
            return None, left_out
        values = values or [*NO_OBJECT, 0.0][: int(width)]
        return [HEADER, width, *values], left_out

    def _checked(self, box: Box, size: Size) -> list[float] | None:
        """The corners inside of the image; None if the box is dropped."""
        if not all(map(math.isfinite, box.corners)):
            raise LabelError(f"{box.name}: a coordinate is no number or infinite")
        problem = ""
        if not _has_area(box.corners):
            problem = "its width or height is not above 0"
        elif any(
            corner < -1 / side or corner > 1 + 1 / side
            for corner, side in zip(box.corners, (*size, *size), strict=True)
        ):
            problem = "it leaves the image"
        # A pixel more or less is how tools round.
        inside = [float(min(max(corner, 0), 1)) for corner in box.corners]
        if not problem and not _has_area(inside):
            problem = "it lies outside of the image"
        if problem and self.bad_boxes == "refuse":
            shown = ", ".join(
                f"{corner * side:.6g}"
                for corner, side in zip(box.corners, (*size, *size), strict=True)
            )
            raise LabelError(
                f"{box.name}: {problem} ({shown}); --bad-boxes clips or drops such boxes"
            )
        if problem and (self.bad_boxes == "drop" or not _has_area(inside)):
            return None
        self.clipped += bool(problem)
        return inside

    def notes(self) -> list[str]:
        """What was not stored as it was, for the messages of a command."""
        if not self.clipped:
            return []
        return [f"note: {self.clipped} boxes were clipped at the edges of their images"]


def _has_area(corners: Sequence[float]) -> bool:
    """Whether a box has width and height as 32-bit floats, in which labels are stored."""
    left, top, right, bottom = np.array(corners, np.float32)
    return bool(right > left and bottom > top)


def item_of(
    folder: str,
    name: str,
    boxes_at: Callable[[Size], Sequence[Box]],
    stated: Size | None,
    labels: BoxLabels,
    settings: argparse.Namespace,
    place: str,
    beside: Counts = MappingProxyType({}),
) -> Item | Skipped | LeftOut:
    """One image with its boxes.

    Parameters
    ----------
    folder, name : str
        The folder of the images, and the path of the file in it.
    boxes_at : callable
        ``boxes_at((width, height))`` gives the objects of an image of that size.
    stated : tuple of int, optional
        The size for which the boxes were made, if the annotations tell.
    labels : BoxLabels
        Makes the label.
    settings : argparse.Namespace
        `check`: ``"header"`` to look whether the file is whole and has the stated size.
    place : str
        Where the annotations are, for the report.
    beside : mapping of str to int
        What else the annotations say about the image, which no record holds.

    Returns
    -------
    Item, Skipped or LeftOut
        `LeftOut` for an image without boxes that is not to be stored.
    """
    try:
        content = read_content(os.path.join(folder, name), settings.check)
        size = stated
        if size is None or settings.check == "header":
            size = upright_size(content)
    except OSError as error:
        return Skipped(place, f"image {name}: {error.strerror or error}")
    except RecordIOError as error:
        return Skipped(place, f"image {name}: {error.reason}")
    if stated is not None and size != stated:
        return Skipped(
            place,
            f"image {name}: its boxes are those of an image of {stated[0]} x {stated[1]} pixels, "
            f"and it has {size[0]} x {size[1]} when it stands upright",
        )
    try:
        label, left_out = labels.of(boxes_at(size), size)
    except LabelError as error:
        return Skipped(place, error.reason)
    left_out.update(beside)
    return LeftOut(left_out) if label is None else Item(label, content, name, left_out)


def upright_size(content: bytes) -> Size:
    """Width and height of an image as the iterators see it: turned as its EXIF orientation says.

    Raises
    ------
    ImageDecodeError
        The format is unknown or the header is damaged.
    """
    header = read_image_header(content)
    if header is not None and header.plain:
        return header.width, header.height
    width, height = image_size(content)
    if content.startswith(b"\xff\xd8\xff"):
        with open_image(io.BytesIO(content), ("JPEG",)) as image:
            try:
                orientation = image.getexif().get(EXIF_ORIENTATION)
            except (SyntaxError, ValueError, TypeError, OSError) as error:
                raise ImageDecodeError(f"its EXIF data are damaged: {error}") from None
        if orientation in ON_THEIR_SIDE:
            return height, width
    return width, height


def checked_classes(names: Sequence[object], path: str) -> list[str]:
    """Names of classes that `PREFIX.classes.txt` can hold, each once.

    Raises
    ------
    RecordIOError
        A name is no text, empty, or there twice.
    """
    for number, name in enumerate(names):
        if not isinstance(name, str) or not name.strip() or UNLISTED.search(name):
            raise RecordIOError(f"class {number} has the name {name!r:.60}", path=path)
    if twice := [name for name, count in collections.Counter(names).items() if count > 1]:
        raise RecordIOError(f"two classes have the name {twice[0]}", path=path)
    return [str(name) for name in names]


def read_class_file(path: str) -> list[str]:
    """Names of classes: one in each line of a text file, or ``names`` in the YAML of YOLO.

    Parameters
    ----------
    path : str
        YAML if it ends with ``.yaml`` or ``.yml``; this needs PyYAML.

    Returns
    -------
    list of str
        In the order of their numbers, from 0.
    """
    if os.path.splitext(path)[1].lower() not in (".yaml", ".yml"):
        with open(path, encoding="utf-8-sig", errors="surrogateescape") as lines:
            listed = [line.strip() for _, line in bounded_lines(lines, path)]
        while listed and not listed[-1]:
            listed.pop()
        return checked_classes(listed, path)
    otherwise = "or write the names into a text file, one in each line"
    yaml = need("yaml", f"reading {path}", otherwise)
    with open(path, encoding="utf-8") as file:
        try:
            found = yaml.safe_load(file)
        except yaml.YAMLError as error:
            raise RecordIOError(f"it is no YAML: {error}", path=path) from None
    names: Any = found.get("names") if isinstance(found, dict) else None
    if isinstance(names, dict) and sorted(names) == list(range(len(names))):
        names = [names[number] for number in range(len(names))]
    if not isinstance(names, list):
        raise RecordIOError("it has no list of names, numbered from 0", path=path)
    return checked_classes(names, path)
