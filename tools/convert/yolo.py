"""Labels of YOLO: a text file for each image; images with boxes become detection records.

A line is ``class x y width height``, the centre and size of a box in fractions of the image, or
has more numbers: a confidence, the corners of a polygon, or key points.
"""

from __future__ import annotations

import argparse
import collections
import os
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from recordio import RecordIOError
from recordio.containers.names import stem_of
from recordio.errors import LabelError
from recordio.keywords.checks import choice
from recordio.keywords.checks import path as a_path
from recordio.keywords.options import option, optional
from recordio.notes import Notes
from recordio.values import number, whole_number

from ..image_list import Skipped
from .annotation_files import decoded, files_below, read_limited
from .boxes import (
    Box,
    BoxLabels,
    BoxOptions,
    Size,
    check_folder,
    is_yaml,
    item_of,
    read_class_file,
    read_yaml,
)
from .folders import SuffixOptions, find_images, read_content
from .format import WITH_IMAGE, Import, ImportSource, Items, MetadataLimit

LARGEST_CLASS = 1 << 24
FORMS = (
    "5 columns are class x y width height, 6 are these and a confidence, 7, 9, 11, ... are class "
    "x1 y1 x2 y2 x3 y3 ... of a polygon, or class x y width height and key points x y or x y v"
)
#: What no record holds of long lines.
BESIDE_BOXES = {"polygon": "polygons", "pose": "lists of key points"}
#: Numbers may leave the image by so much: a polygon that is read as a pose leaves it by more.
SLACK = 0.1


@dataclass(frozen=True, kw_only=True)
class YoloOptions(BoxOptions, SuffixOptions, MetadataLimit):
    """Options of from-yolo."""

    classes: str | None = option(
        None,
        "path, optional",
        """Names of the classes: a text file with one in each line, or the data.yaml of a set, which
        needs PyYAML (default: classes have numbers only).""",
        optional(a_path),
    )
    long_lines: str = option(
        "auto",
        "str",
        """Lines of 7 columns and more.  polygon: class x1 y1 x2 y2 ..., of which the box is
        stored; pose: class x y width height, and key points, which are left out; auto: as
        kpt_shape in the data.yaml or the lines of the whole set say, and an error where they are
        like both (default: auto).""",
        partial(choice, allowed=("auto", "polygon", "pose")),
    )


class Line(NamedTuple):
    """One line of a label file: its class, and the numbers after it."""

    number: int
    label: int
    values: list[float]


def open_yolo(settings: argparse.Namespace) -> ImportSource:
    """Find the images, and the label files that are named like them."""
    for path in (settings.labels, settings.images):
        check_folder(path)
    scan, left_out = find_images(settings.images, settings.exts)
    classes = [] if settings.classes is None else read_class_file(settings.classes)
    labels = BoxLabels.from_settings(settings)
    files, notes, in_the_way = label_files(settings.labels)
    images = [entry.path for entry in scan.entries]
    of_images = {image: name for image in images if (name := name_among(files, image))}
    note_unused(files, of_images, settings, notes)
    limit = settings.max_metadata_bytes
    form = settings.long_lines
    if form == "auto":
        form = form_of(settings, sorted(set(of_images.values())))

    def items() -> Items:
        for entry in scan.entries:
            name = of_images.get(entry.path, f"{stem_of(entry.path)}.txt")
            path = os.path.join(settings.labels, name)
            try:
                lines = read_lines(path, limit)
                boxes = [box_of(line, form, len(classes)) for line in lines]
            except FileNotFoundError:
                lines, boxes = [], []  # how the format has images without objects
            except OSError as error:
                yield Skipped(path, error.strerror or str(error))
                continue
            except RecordIOError as error:
                yield Skipped(path, error.reason)
                continue

            def boxes_at(size: Size, boxes: list[Box] = boxes) -> list[Box]:
                return boxes

            beside = collections.Counter(
                "confidences" if len(line.values) == 5 else BESIDE_BOXES[form]
                for line in lines
                if len(line.values) > 4
            )
            read = partial(read_content, os.path.join(settings.images, entry.path), settings.check)
            yield item_of(read, entry.path, boxes_at, None, labels, settings, path, beside)
        yield from scan.skipped
        yield from in_the_way

    def all_notes() -> list[str]:
        lines = [*left_out, *(f"note: {line}" for line in notes.lines()), *labels.notes()]
        return list(dict.fromkeys(lines))  # both folders may be one

    total = len(scan.entries) + len(scan.skipped) + len(in_the_way)
    return ImportSource(items(), total, classes, all_notes)


def label_files(folder: str) -> tuple[dict[str, str], Notes, list[Skipped]]:
    """Return the label files below a folder by the images that they belong to."""
    notes = Notes()
    names, in_the_way = files_below(folder, ".txt", notes)
    files: dict[str, str] = {}
    for name in names:
        key = unicodedata.normalize("NFC", stem_of(name))
        if key in files:
            notes.add(f"label files are of an image that {files[key]} is of, and unused", name)
        files.setdefault(key, name)
    return files, notes, in_the_way


def name_among(files: Mapping[str, str], image: str) -> str:
    """Return the label file of an image, 1.txt or 1.jpg.txt for 1.jpg; empty if it has none."""
    image = unicodedata.normalize("NFC", image)
    return files.get(stem_of(image)) or files.get(image, "")


def note_unused(
    files: Mapping[str, str],
    of_images: Mapping[str, str],
    settings: argparse.Namespace,
    notes: Notes,
) -> None:
    """Note label files without an image; if no file has any, a folder is a wrong one."""
    used = {*of_images.values(), "classes.txt"}
    if settings.classes is not None:
        used.add(os.path.relpath(settings.classes, settings.labels).replace(os.sep, "/"))
    unused = [name for name in files.values() if name not in used]
    if unused and not of_images:
        raise RecordIOError(
            f"not one of {len(unused)} label files has an image in {settings.images}; the first, "
            f"{unused[0]}, belongs to an image {stem_of(unused[0])} there: give folders in which "
            "the paths are the same",
            path=settings.labels,
        )
    for name in unused:
        notes.add("label files have no image", name)


def form_of(settings: argparse.Namespace, names: Sequence[str]) -> str:
    """Return the form of long lines, "polygon" or "pose"; "auto" if they are like both, or none.

    Key points are as many in every line, and their boxes do not leave the image.
    """
    names_file = settings.classes
    if names_file and is_yaml(names_file) and read_yaml(names_file).get("kpt_shape"):
        return "pose"
    fits = {"polygon": True, "pose": True}
    columns = set()
    for name in names:
        try:
            path = os.path.join(settings.labels, name)
            lines = read_lines(path, settings.max_metadata_bytes)
        except (OSError, RecordIOError):
            continue  # reported later
        for line in lines:
            if len(line.values) > 5:
                columns.add(len(line.values))
                fits["polygon"] &= is_polygon(line.values)
                fits["pose"] &= is_pose(line.values)
    fits["pose"] &= len(columns) == 1
    forms = [form for form, is_it in fits.items() if is_it]
    return forms[0] if len(forms) == 1 else "auto"


def is_polygon(values: Sequence[float]) -> bool:
    """Tell whether numbers may be the corners of a polygon."""
    return len(values) % 2 == 0 and all(-SLACK <= value <= 1 + SLACK for value in values)


def is_pose(values: Sequence[float]) -> bool:
    """Tell whether numbers may be a box and key points, x y or x y v, with v of 0, 1 or 2."""
    x, y, width, height, *points = values
    box = (x - width / 2, y - height / 2, x + width / 2, y + height / 2)
    if min(width, height) < 0 or not is_polygon(box):
        return False
    placed = [value for position, value in enumerate(points) if position % 3 < 2]
    return is_polygon(points) or (
        len(points) % 3 == 0 and is_polygon(placed) and {*points[2::3]} <= {0, 1, 2}
    )


def read_lines(path: str, limit: int) -> list[Line]:
    """Return the numbers in a label file."""
    lines = []
    for position, line in enumerate(decoded(read_limited(path, limit), path).splitlines(), 1):
        words = line.split()
        if not words:
            continue
        label, values = whole_number(words[0]), [number(word) for word in words[1:]]
        try:
            numbers = [float(value) for value in values if value is not None]
        except OverflowError:
            numbers = []
        if label is None or len(numbers) != len(words) - 1 or len(numbers) < 4:
            raise LabelError(
                f"line {position}: expected 5 or more finite numbers, class x y width height, not "
                f"{line!r:.60}"
            )
        lines.append(Line(position, label, numbers))
    return lines


def box_of(line: Line, form: str, classes: int) -> Box:
    """Return the box of a line; with `classes` names, no higher number is allowed."""
    name, values = f"line {line.number}", line.values
    if not 0 <= line.label < (classes or LARGEST_CLASS):
        most = f"the names are {classes}" if classes else f"at most {LARGEST_CLASS} are stored"
        raise LabelError(f"{name}: there is no class {line.label}: {most}")
    if len(values) > 5 and form == "polygon" and len(values) % 2 == 0:
        across, down = values[::2], values[1::2]
        return Box(name, line.label, (min(across), min(down), max(across), max(down)))
    is_box = len(values) == 4 or (len(values) == 5 and 0 <= values[4] <= 1)
    if not is_box and not (len(values) > 5 and form == "pose" and is_pose(values)):
        raise LabelError(
            f"{name}: it has {len(values) + 1} columns, and is not clear: {FORMS}; --long-lines "
            "polygon or pose says what lines of 7 and more are"
        )
    x, y, width, height = values[:4]
    return Box(name, line.label, (x - width / 2, y - height / 2, x + width / 2, y + height / 2))


FROM_YOLO = Import(
    "yolo",
    "label files of YOLO",
    [
        ("labels", "the folder of the label files, such as labels/train", False),
        ("images", "the folder of the images, such as images/train, with the same names", False),
    ],
    open_yolo,
    YoloOptions,
    "Each image becomes a record with its boxes, which ImageDetRecordIter reads: the image\n"
    "untouched, and the label [2, 5, class, xmin, ymin, xmax, ymax, ...] in fractions of the\n"
    "image.  An image without a label file has no boxes.",
    example=WITH_IMAGE
    + """>>> (folder / "labels").mkdir()
>>> _ = (folder / "labels" / "1.txt").write_text("0 0.5 0.5 0.2 0.4")
>>> recordio.convert.from_yolo(folder / "labels", folder / "photos" / "cat", folder / "a").records
1""",
)
