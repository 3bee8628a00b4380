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
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from recordio.errors import LabelError, RecordIOError
from recordio.extras import need
from recordio.file_limits import bounded_lines
from recordio.formats.image_header import read_header
from recordio.keywords.checks import boolean, choice
from recordio.keywords.options import option
from recordio.list_files import UNLISTED
from recordio.notes import Notes
from recordio.values import whole_number

from ..image_list import Skipped
from ..outputs import url_refused
from .annotation_files import decoded
from .folders import CheckOptions
from .format import Counts, Item, LeftOut

HEADER = 2.0
NO_OBJECT = (-1.0, 0.0, 0.0, 0.0, 0.0)  # an empty box, which readers drop
Size = tuple[int, int]


class Box(NamedTuple):
    """Object of an image."""

    name: str  # in errors: ``annotation 17``
    label: int
    #: xmin, ymin, xmax and ymax in fractions of the image.
    corners: tuple[float, float, float, float]
    marked: bool = False  # a crowd (COCO) or difficult (VOC)


@dataclass(frozen=True, kw_only=True)
class BoxOptions(CheckOptions):
    """Options of formats with boxes."""

    bad_boxes: str = option(
        "refuse",
        "str",
        """Boxes that are empty, or leave the image by more than a pixel. refuse: leave the image
        out and report it; clip: cut boxes at the edges, and drop those that become empty; drop:
        drop the boxes (default: refuse).""",
        partial(choice, allowed=("refuse", "clip", "drop")),
    )
    background: bool = option(
        False,
        "bool",
        """Also store images without boxes, with one empty box of class -1, which readers drop
        (default: leave them out).""",
        boolean,
    )


def marked_option(meaning: str) -> Any:
    """Make the option for objects that a format marks; the text says which these are."""
    return option(
        "drop",
        "str",
        f"""{meaning}.  drop: leave them out; keep: store them like others; mark: give every object
        a sixth value, 1 for these and 0 for others (default: drop).""",
        partial(choice, allowed=("drop", "keep", "mark")),
    )


def check_folder(path: str) -> None:
    """Refuse a path that is no folder of this machine."""
    if reason := url_refused(path):
        raise RecordIOError(reason, path=path)
    if not os.path.isdir(path):
        what = "is a file, not a folder" if os.path.exists(path) else "there is no such folder"
        raise RecordIOError(what, path=path)


@dataclass
class BoxLabels:
    """Maker of labels from boxes, which counts the boxes that are not in them."""

    bad_boxes: str  # "refuse", "clip" or "drop": boxes that are empty or leave the image
    marked: str  # "drop", "keep" or "mark": crowds and difficult objects
    background: bool  # images without boxes are stored
    clipped: int = 0

    @classmethod
    def from_settings(cls, settings: Any, mark: str = "") -> BoxLabels:
        """Make one by `BoxOptions`; `mark` is the name of the option about marked objects."""
        marked = getattr(settings, mark) if mark else "keep"
        return cls(settings.bad_boxes, marked, settings.background)

    def of(
        self, boxes: Iterable[Box], size: Size
    ) -> tuple[list[float] | None, collections.Counter[str]]:
        """Return the label of an image of a width and height in pixels, and what is not in it.

        The label is None if nothing is left of the boxes, and such images are not stored.
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
        """Return the corners inside of the image; None if the box is dropped."""
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
            corners = ", ".join(
                f"{corner * side:.6g}"
                for corner, side in zip(box.corners, (*size, *size), strict=True)
            )
            raise LabelError(
                f"{box.name}: {problem} ({corners}); --bad-boxes clips or drops such boxes"
            )
        if problem and (self.bad_boxes == "drop" or not _has_area(inside)):
            return None
        self.clipped += bool(problem)
        return inside

    def notes(self) -> list[str]:
        """Describe, for the messages of a command, what was not stored as it was."""
        if not self.clipped:
            return []
        return [f"note: {self.clipped} boxes were clipped at the edges of their images"]


def _has_area(corners: Sequence[float]) -> bool:
    """Return True if a box has width and height as 32-bit floats, in which labels are stored."""
    with np.errstate(over="ignore"):
        left, top, right, bottom = np.array(corners, np.float32)
    return bool(right > left and bottom > top)


def item_of(
    read: Callable[[], bytes],
    name: str,
    boxes_at: Callable[[Size], Sequence[Box]],
    stated: Size | None,
    labels: BoxLabels,
    settings: argparse.Namespace,
    location: str,
    beside: Counts = MappingProxyType({}),
) -> Item | Skipped | LeftOut:
    """Make the item of an image with its boxes; LeftOut for one without boxes that is not stored.

    `read` gives the content, examined as the options say.  ``boxes_at((width, height))`` gives the
    objects of an image of that size; `stated` is the size for which the boxes were made, if the
    annotations have it.  `location` names the annotations in the report, and `beside` counts what
    else they say about the image, which no record holds.
    """
    try:
        content = read()
        size = stated
        if size is None or settings.check == "header":
            size = read_header(content).size
    except OSError as error:
        return Skipped(location, f"image {name}: {error.strerror or error}")
    except RecordIOError as error:
        return Skipped(location, f"image {name}: {error.reason}")
    if stated is not None and size != stated:
        return Skipped(
            location,
            f"image {name}: its boxes are those of an image of {stated[0]} x {stated[1]} pixels, "
            f"and it has {size[0]} x {size[1]} when it stands upright",
        )
    try:
        label, left_out = labels.of(boxes_at(size), size)
    except LabelError as error:
        return Skipped(location, error.reason)
    left_out.update(beside)
    return LeftOut(left_out) if label is None else Item(label, content, name, left_out)


def class_name(name: Any) -> Any:
    """Return the name of a class as text where it is a whole number."""
    return name if whole_number(name) is None else str(name)


def checked_classes(names: Sequence[object], path: str) -> list[str]:
    """Return names of classes that `PREFIX.classes.txt` can hold, each once; refuse others."""
    classes = [class_name(name) for name in names]
    for number, name in enumerate(classes):
        if not isinstance(name, str) or not name.strip() or UNLISTED.search(name):
            raise RecordIOError(f"class {number} has the name {name!r:.60}", path=path)
    if twice := [name for name, count in collections.Counter(classes).items() if count > 1]:
        raise RecordIOError(f"two classes have the name {twice[0]}", path=path)
    return [str(name) for name in classes]


def distinct_names(pairs: Iterable[tuple[Any, object]], notes: Notes) -> list[Any]:
    """Return names of classes; one that another has before it gets its id to it, and is noted."""
    seen: set[str] = set()
    names = []
    for name, number in pairs:
        if isinstance(name, str) and name in seen:
            name = f"{name} (id {number})"
            notes.add("classes have the name of another, and got their id to it", name)
        seen.add(str(name))
        names.append(name)
    return names


def read_class_file(path: str) -> list[str]:
    """Read names of classes: lines of a text file, or ``names`` in the YAML of YOLO.

    YAML ends with ``.yaml`` or ``.yml`` and needs PyYAML.  Names are in the order of their numbers,
    from 0.
    """
    if is_yaml(path):
        names = read_yaml(path).get("names")
        if isinstance(names, dict):
            by_number = {whole_number(key): name for key, name in names.items()}
            names = [by_number.get(number) for number in range(len(names))]
            if set(by_number) != set(range(len(by_number))):
                names = None
        if not isinstance(names, list):
            raise RecordIOError("it has no list of names, numbered from 0", path=path)
        return checked_classes(names, path)
    with open(path, "rb") as file:
        lines = io.StringIO(decoded(file.read(), path), newline=None)
    listed = [line.strip() for _, line in bounded_lines(lines, path)]
    while listed and not listed[-1]:
        listed.pop()
    return checked_classes(listed, path)


def is_yaml(path: str) -> bool:
    """Tell by its ending whether a file of classes is YAML."""
    return os.path.splitext(path)[1].lower() in (".yaml", ".yml")


def read_yaml(path: str) -> dict[Any, Any]:
    """Read the description of a set for YOLO, whose ``nc`` counts the names."""
    otherwise = "or write the names into a text file, one in each line"
    yaml = need("yaml", f"reading {path}", otherwise)
    with open(path, "rb") as file:
        text = decoded(file.read(), path)
    try:
        description = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise RecordIOError(f"it is no YAML: {error}", path=path) from None
    if not isinstance(description, dict):
        raise RecordIOError("it has no list of names, numbered from 0", path=path)
    count, names = description.get("nc"), description.get("names")
    if count is not None and isinstance(names, (list, dict)) and whole_number(count) != len(names):
        raise RecordIOError(f"it has {len(names)} names, and nc is {count!r:.40}", path=path)
    return description
