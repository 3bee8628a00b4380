"""Labels of YOLO: a text file for each image; images with boxes become detection records.

A line is ``class x y width height``, the centre and size of a box in fractions of the image.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass

from recordio import RecordIOError
from recordio.errors import LabelError
from recordio.keywords.checks import path as a_path
from recordio.keywords.options import option, optional

from ..image_list import Skipped
from .boxes import Box, BoxLabels, BoxOptions, Size, check_folder, item_of, read_class_file
from .folders import SuffixOptions, find_images
from .format import WITH_IMAGE, Import, ImportSource, Items, MetadataLimit
from .voc import read_limited

__all__ = ["FROM_YOLO"]

LARGEST_CLASS = 1 << 24


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


def open_yolo(settings: argparse.Namespace) -> ImportSource:
    """Find the images, and the label files that are named like them."""
    for path in (settings.labels, settings.images):
        check_folder(path)
    found, notes = find_images(settings.images, settings.exts)
    classes = [] if settings.classes is None else read_class_file(settings.classes)
    labels = BoxLabels.from_settings(settings)

    def items() -> Items:
        for entry in found.entries:
            path = os.path.join(settings.labels, f"{os.path.splitext(entry.path)[0]}.txt")
            try:
                boxes = read_boxes(path, len(classes), settings.max_metadata_bytes)
            except FileNotFoundError:
                boxes = []  # how the format has images without objects
            except OSError as error:
                yield Skipped(path, error.strerror or str(error))
                continue
            except RecordIOError as error:
                yield Skipped(path, error.reason)
                continue

            def boxes_at(size: Size, boxes: list[Box] = boxes) -> list[Box]:
                return boxes

            yield item_of(settings.images, entry.path, boxes_at, None, labels, settings, path)
        yield from found.skipped

    def all_notes() -> list[str]:
        return [
            *notes,
            *unused(settings.labels, {entry.path for entry in found.entries}),
            *labels.notes(),
        ]

    return ImportSource(items(), len(found.entries) + len(found.skipped), classes, all_notes)


def read_boxes(path: str, classes: int, limit: int) -> list[Box]:
    """Return the boxes in a label file; with `classes` names, no higher number is allowed."""
    boxes = []
    try:
        text = read_limited(path, limit).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RecordIOError(f"it is no text: {error}") from None
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words:
            continue
        try:
            label, (x, y, width, height) = int(words[0]), map(float, words[1:])
        except ValueError:
            raise LabelError(
                f"line {number}: expected 5 numbers, class x y width height, not {line!r:.60}"
            ) from None
        if not 0 <= label < (classes or LARGEST_CLASS):
            most = f"the names are {classes}" if classes else f"at most {LARGEST_CLASS} are stored"
            raise LabelError(f"line {number}: there is no class {label}: {most}")
        corners = (x - width / 2, y - height / 2, x + width / 2, y + height / 2)
        boxes.append(Box(f"line {number}", label, corners))
    return boxes


def unused(folder: str, images: set[str]) -> list[str]:
    """Return messages about label files without an image."""
    stems = {os.path.splitext(path)[0] for path in images}
    names = []
    for where, folders, files in os.walk(folder):
        folders.sort()
        inside = os.path.relpath(where, folder).replace(os.sep, "/")
        for name in sorted(files):
            stem, suffix = os.path.splitext(name if inside == "." else f"{inside}/{name}")
            if suffix.lower() == ".txt" and stem not in stems and name != "classes.txt":
                names.append(f"{stem}{suffix}")
    if not names:
        return []
    return [f"note: {len(names)} label files have no image; the first is {names[0]}"]


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
