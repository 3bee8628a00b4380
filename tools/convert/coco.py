"""COCO annotations: images with boxes become detection records.

The JSON file is read as a whole, without its outlines unless masks are made of them; images are
read one by one, untouched.
"""

from __future__ import annotations

import argparse
import collections
import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from recordio import RecordIOError
from recordio.bytes.files import open_bytes
from recordio.errors import LabelError
from recordio.keywords.checks import path as path_of
from recordio.keywords.options import option, optional
from recordio.lists import safe_name

from ..image_list import Skipped
from .boxes import (
    Box,
    BoxLabels,
    BoxOptions,
    Size,
    check_folder,
    checked_classes,
    item_of,
    marked_option,
)
from .coco_fields import COCO_FIELDS, CocoFields, read_captions
from .format import WITH_IMAGE, Import, ImportSource, Item, Items, LeftOut, PixelLimit, names_among

__all__ = ["FROM_COCO"]

#: Fields that are stored, follow from others, or tell the origin of a file or an image.
STORED = frozenset(["id", "image_id", "category_id", "bbox", "iscrowd", "area", "num_keypoints"])
OF_IMAGES = frozenset(
    ["id", "file_name", "width", "height", "license", "coco_url", "flickr_url", "date_captured"]
)
OF_CATEGORIES = frozenset(["id", "name"])
OF_FILES = frozenset(["images", "annotations", "categories", "info", "licenses", "type"])
#: Names of entries in the numbers at the end; others have their key.
CALLED = {"segmentation": "outlines (segmentation)", "keypoints": "lists of key points (keypoints)"}


@dataclass(frozen=True, kw_only=True)
class CocoOptions(BoxOptions, PixelLimit):
    """Options of from-coco."""

    fields: tuple[str, ...] = option(
        (),
        "sequence of str",
        """Fields to write beside the images, as PREFIX.NAME.rec. mask: the class of each pixel
        plus 1, 0 for none, 255 for crowds; instances: the number of the object at each pixel, from
        1; keypoints; caption: those of `captions` (default: none).""",
        partial(names_among, among=tuple(COCO_FIELDS)),
    )
    captions: str | None = option(
        None,
        "path, optional",
        "The JSON file with the captions of the images, for the field caption.",
        optional(path_of),
    )
    crowd: str = marked_option("Boxes around crowds (iscrowd)")


def open_coco(settings: argparse.Namespace) -> ImportSource:
    """Read the annotations."""
    path = settings.annotations
    check_folder(settings.images)
    names = settings.fields
    if (settings.captions is not None) != ("caption" in names):
        raise RecordIOError(
            "captions are a file of their own: --captions FILE and the field caption need each "
            "other",
            path=path,
        )
    captions = {} if settings.captions is None else read_captions(settings.captions)
    found = read_annotations(path, keeps_outlines=bool({"mask", "instances"} & set(names)))
    categories = {
        number_of(category, "id", f"category {position}", path): category.get("name")
        for position, category in enumerate(found["categories"])
    }
    if len(categories) < len(found["categories"]):
        raise RecordIOError("two categories have the same id", path=path)
    numbers = sorted(categories)
    classes = checked_classes([categories[number] for number in numbers], path)
    by_category = {number: label for label, number in enumerate(numbers)}
    by_image: dict[int, list[dict[str, Any]]] = {
        number_of(image, "id", f"image {position}", path): []
        for position, image in enumerate(found["images"])
    }
    if len(by_image) < len(found["images"]):
        raise RecordIOError("two images have the same id", path=path)
    nowhere: dict[str, list[str]] = {}
    for position, annotation in enumerate(found["annotations"]):
        annotation.setdefault("id", f"at position {position}")
        image = annotation.get("image_id")
        if type(image) is int and image in by_image:
            by_image[image].append(annotation)
        else:
            nowhere.setdefault(f"image {image!r:.40}", []).append(name_of(annotation))
    labels = BoxLabels.from_settings(settings, "crowd")
    by_number = dict(zip(categories, found["categories"], strict=True))
    fields = CocoFields(names, by_number, by_category, captions, settings.max_pixels, path)
    stored = STORED | {COCO_FIELDS[name] for name in names}

    def items() -> Items:
        for image in found["images"]:
            name = image.get("file_name")
            if not isinstance(name, str) or not name or safe_name(name) != name:
                yield Skipped(
                    f"{path}, image {image['id']}",
                    f"its file name {name!r:.80} is none that leads below the folder of images",
                )
                continue
            location = f"{path}, {name}"
            entries = by_image[image["id"]]

            def boxes_at(size: Size, entries: list[dict[str, Any]] = entries) -> list[Box]:
                return [box_of(entry, size, by_category) for entry in entries]

            try:
                size = size_of(image)
            except LabelError as error:
                yield Skipped(location, error.reason)
                continue
            beside = left_out_of([image], OF_IMAGES) + left_out_of(entries, stored)
            item = item_of(
                settings.images, name, boxes_at, size, labels, settings, location, beside
            )
            if names and isinstance(item, Item):
                try:
                    item = item._replace(fields=fields.of(image["id"], size, entries))
                except RecordIOError as error:
                    item = Skipped(location, error.reason)
            yield item
        for name, lost in nowhere.items():
            yield Skipped(
                f"{path}, {name}",
                f"{len(lost)} annotations belong to it, and no image with this id is listed;"
                f" the first is {lost[0]}",
            )
        described = fields.meta.get("keypoints")
        known = OF_CATEGORIES | (
            {"keypoints", "skeleton"} if described and described.points else set()
        )
        of_categories = left_out_of(found["categories"], known)
        yield LeftOut({f"{key} of categories": number for key, number in of_categories.items()})
        yield LeftOut(
            {
                f"entries of {key}": len(value) if isinstance(value, (dict, list)) else 1
                for key, value in found.items()
                if key not in OF_FILES and value
            }
        )

    total = len(found["images"]) + len(nowhere)
    return ImportSource(
        items(), total, classes, labels.notes, fields=names, describe=lambda: fields.meta
    )


def left_out_of(
    entries: Iterable[dict[str, Any]], known: Collection[str]
) -> collections.Counter[str]:
    """Count the unknown fields of entries by name; empty fields and zeros do not count."""
    return collections.Counter(
        CALLED.get(key, key)
        for entry in entries
        for key, value in entry.items()
        if key not in known and (any(value) if isinstance(value, list) else value)
    )


def read_annotations(path: str, keeps_outlines: bool = False) -> dict[str, list[dict[str, Any]]]:
    """Return the lists in a file, as a rule without outlines, which take most of its memory."""

    def without_outline(entry: dict[str, Any]) -> dict[str, Any]:
        if "segmentation" in entry and not keeps_outlines:  # what is left of it is counted
            entry["segmentation"] = bool(entry["segmentation"])
        return entry

    with open_bytes(path)[0] as file:
        try:
            found = json.load(file, object_hook=without_outline)
        except (ValueError, RecursionError) as error:
            raise RecordIOError(f"it is no JSON: {error}", path=path) from None
    for name in ("images", "annotations", "categories"):
        entries = found.get(name) if isinstance(found, dict) else None
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise RecordIOError(
                f"it holds no list of objects called {name}, as COCO's instances_*.json do",
                path=path,
            )
    return found


def number_of(entry: dict[str, Any], key: str, name: str, path: str) -> int:
    """Return a whole number of an entry."""
    value = entry.get(key)
    if type(value) is not int:
        raise RecordIOError(f"{name}: its {key} is {value!r:.60}, no whole number", path=path)
    return value


def name_of(annotation: dict[str, Any]) -> str:
    """Return the name of an annotation in errors: its id, or its position in the file."""
    return f"annotation {annotation['id']!s:.40}"


def size_of(image: dict[str, Any]) -> Size:
    """Return width and height of an image, as the file says."""
    width, height = image.get("width"), image.get("height")
    if type(width) is not int or type(height) is not int or width < 1 or height < 1:
        raise LabelError(
            f"image {image['id']}: its size is {width!r:.40} x {height!r:.40}, not in pixels"
        )
    return width, height


def box_of(annotation: dict[str, Any], size: Size, by_category: dict[int, int]) -> Box:
    """Return the box of an annotation, whose corners are in pixels: x, y, width, height."""
    name = name_of(annotation)
    category, box = annotation.get("category_id"), annotation.get("bbox")
    if type(category) is not int or category not in by_category:
        raise LabelError(f"{name}: there is no category {category!r:.40}")
    if not isinstance(box, list) or [type(v) in (int, float) for v in box] != [True] * 4:
        raise LabelError(f"{name}: its bbox {box!r:.60} is none of 4 numbers")
    try:
        x, y, width, height = map(float, box)
    except OverflowError:
        raise LabelError(f"{name}: its bbox {box!r:.60} is too large") from None
    corners = (x / size[0], y / size[1], (x + width) / size[0], (y + height) / size[1])
    return Box(name, by_category[category], corners, bool(annotation.get("iscrowd")))


FROM_COCO = Import(
    "coco",
    "COCO annotations of boxes",
    [
        ("annotations", "the JSON file, plain or gzip, or an fsspec URL", False),
        ("images", "the folder to which the file names of the images are relative", False),
    ],
    open_coco,
    CocoOptions,
    "Each image becomes a record with its boxes, which ImageDetRecordIter reads: the image\n"
    "untouched, and the label [2, 5, class, xmin, ymin, xmax, ymax, ...] in fractions of the\n"
    "image.  Classes are numbered from 0 in the order of the category ids; PREFIX.classes.txt\n"
    "names them.",
    example=WITH_IMAGE
    + """>>> import json
>>> image = {"id": 1, "file_name": "1.png", "width": 6, "height": 4}
>>> box = {"id": 1, "image_id": 1, "category_id": 7, "bbox": [1, 1, 3, 2]}
>>> kind = {"id": 7, "name": "cat"}
>>> found = {"images": [image], "annotations": [box], "categories": [kind]}
>>> _ = (folder / "a.json").write_text(json.dumps(found))
>>> recordio.convert.from_coco(folder / "a.json", folder / "photos" / "cat", folder / "a").records
1""",
)
