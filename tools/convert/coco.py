"""COCO annotations: images with boxes become detection records.

The JSON file is read as a whole, without its outlines unless masks are made of them; images are
read one by one, untouched.
"""

from __future__ import annotations

import argparse
import collections
import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from recordio import RecordIOError
from recordio.errors import LabelError
from recordio.formats.image_header import read_header
from recordio.keywords.checks import path as path_of
from recordio.keywords.options import option, optional
from recordio.notes import Notes
from recordio.values import is_true, number, whole_number

from ..image_list import Skipped
from .annotation_files import ImageFolder
from .boxes import (
    Box,
    BoxLabels,
    BoxOptions,
    Size,
    check_folder,
    checked_classes,
    distinct_names,
    item_of,
    marked_option,
)
from .coco_fields import COCO_FIELDS, CocoFields, Id, id_of, read_captions, read_json
from .folders import read_content
from .format import WITH_IMAGE, Import, ImportSource, Item, Items, LeftOut, PixelLimit, names_among

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
    content = read_annotations(path, keeps_outlines=bool({"mask", "instances"} & set(names)))
    notes = Notes()
    by_number = by_id(content["categories"], "category", "categories", path)
    classes = checked_classes(class_names(by_number, notes), path)
    by_category = {number: label for label, number in enumerate(by_number)}
    by_image: dict[Id, list[dict[str, Any]]] = {
        number: [] for number in by_id(content["images"], "image", "images", path)
    }
    nowhere: dict[str, list[str]] = {}
    for position, annotation in enumerate(content["annotations"]):
        annotation.setdefault("id", f"at position {position}")
        image = id_of(annotation.get("image_id"))
        if image is not None and image in by_image:
            by_image[image].append(annotation)
        else:
            odd = annotation.get("image_id")
            nowhere.setdefault(f"image {odd!r:.40}", []).append(name_of(annotation))
    labels = BoxLabels.from_settings(settings, "crowd")
    fields = CocoFields(names, by_number, by_category, captions, settings.max_pixels, path)
    stored = STORED | {COCO_FIELDS[name] for name in names}
    images = ImageFolder(settings.images)
    files = [file_of(image, images) for image in content["images"]]

    def items() -> Items:
        for image, file in zip(content["images"], files, strict=True):
            number = id_of(image["id"])
            assert number is not None  # as `by_id` made sure
            location = f"{path}, image {image['id']!s:.40}"
            try:
                if isinstance(file, LabelError):
                    raise file
                images.check_owner(file, location_of(image))
            except LabelError as error:
                yield Skipped(location, error.reason)
                continue
            location = f"{path}, {file}"
            entries = by_image[number]
            boxed = [entry for entry in entries if entry.get("bbox")]

            def boxes_at(size: Size, boxed: list[dict[str, Any]] = boxed) -> list[Box]:
                return [box_of(entry, size, by_category) for entry in boxed]

            size = size_of(image)
            beside = left_out_of([image], OF_IMAGES) + left_out_of(entries, stored)
            beside["annotations without a box (bbox)"] += len(entries) - len(boxed)
            read = partial(read_content, os.path.join(settings.images, file), settings.check)
            item = item_of(read, file, boxes_at, size, labels, settings, location, +beside)
            if names and isinstance(item, Item):
                try:
                    size = size or read_header(item.content).size
                    item = item._replace(fields=fields.of(number, size, entries))
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
        category_keys = OF_CATEGORIES | (
            {"keypoints", "skeleton"} if described and described.points else set()
        )
        of_categories = left_out_of(content["categories"], category_keys)
        yield LeftOut({f"{key} of categories": number for key, number in of_categories.items()})
        yield LeftOut(
            {
                f"entries of {key}": len(value) if isinstance(value, (dict, list)) else 1
                for key, value in content.items()
                if key not in OF_FILES and value
            }
        )

    total = len(content["images"]) + len(nowhere)
    return ImportSource(
        items(),
        total,
        classes,
        lambda: [*(f"note: {line}" for line in notes.lines()), *labels.notes()],
        fields=names,
        describe=lambda: fields.meta,
    )


def by_id(
    entries: Iterable[dict[str, Any]], singular: str, plural: str, path: str
) -> dict[Id, dict[str, Any]]:
    """Return entries by id: numbers in their order, and then texts."""
    entries_by_id: dict[Id, dict[str, Any]] = {}
    for position, entry in enumerate(entries):
        number = id_of(entry.get("id"))
        if number is None:
            raise RecordIOError(
                f"{singular} {position}: its id is {entry.get('id')!r:.60}, no number and no text",
                path=path,
            )
        if number in entries_by_id:
            raise RecordIOError(
                f"two {plural} have the same id: {entries_by_id[number]['id']!r:.40} and "
                f"{entry['id']!r:.40}",
                path=path,
            )
        entries_by_id[number] = entry
    return dict(sorted(entries_by_id.items(), key=lambda item: (isinstance(item[0], str), item[0])))


def class_names(by_number: dict[Id, dict[str, Any]], notes: Notes) -> list[Any]:
    """Return the names of categories, with the ids of those that have the name of another.

    In files of Roboflow the project has the id 0, and is above all categories: others keep the
    name if it is called like one of them.
    """
    kinds = list(by_number.values())
    above = {str(kind.get("supercategory")) for kind in kinds[1:]}
    roots = [
        kind
        for kind in kinds[:1]
        if kind.get("supercategory") == "none" and above == {str(kind.get("name"))}
    ]
    for root in roots:
        notes.add(
            "category is above all others, as Roboflow writes it, and keeps its class number",
            f"{root.get('name')} (id {root['id']})",
        )
    ordered = [*(kind for kind in kinds if kind not in roots), *roots]
    names = distinct_names([(kind.get("name"), kind["id"]) for kind in ordered], notes)
    return names[-1:] + names[:-1] if roots else names  # the root has the first id


def location_of(image: dict[str, Any]) -> str:
    """Name an image by its id."""
    return f"image {image['id']!s:.40}"


def file_of(image: dict[str, Any], images: ImageFolder) -> str | LabelError:
    """Find the file of an image, or the error that says why there is none."""
    name = image.get("file_name")
    try:
        if not isinstance(name, str):
            raise LabelError(f"its file name {name!r:.80} is none of an image")
        return images.claim(name, location_of(image))
    except LabelError as error:
        return error


def left_out_of(
    entries: Iterable[dict[str, Any]], stored_keys: Collection[str]
) -> collections.Counter[str]:
    """Count the unknown fields of entries by name; empty fields and zeros do not count."""
    return collections.Counter(
        CALLED.get(key, key)
        for entry in entries
        for key, value in entry.items()
        if key not in stored_keys and (any(value) if isinstance(value, list) else value)
    )


def read_annotations(path: str, keeps_outlines: bool = False) -> dict[str, list[dict[str, Any]]]:
    """Return the lists in a file, as a rule without outlines, which take most of its memory."""

    def without_outline(entry: dict[str, Any]) -> dict[str, Any]:
        if "segmentation" in entry and not keeps_outlines:  # what is left of it is counted
            entry["segmentation"] = bool(entry["segmentation"])
        return entry

    content = read_json(path, without_outline)
    for name in ("images", "annotations", "categories"):
        entries = content.get(name) if isinstance(content, dict) else None
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise RecordIOError(
                f"it holds no list of objects called {name}, as COCO's instances_*.json do",
                path=path,
            )
    return content


def name_of(annotation: dict[str, Any]) -> str:
    """Return the name of an annotation in errors: its id, or its position in the file."""
    return f"annotation {annotation['id']!s:.40}"


def size_of(image: dict[str, Any]) -> Size | None:
    """Return width and height as the file says; None where the image itself has to be asked."""
    width, height = whole_number(image.get("width")), whole_number(image.get("height"))
    return (width, height) if width and height and min(width, height) > 0 else None


def box_of(annotation: dict[str, Any], size: Size, by_category: dict[Id, int]) -> Box:
    """Return the box of an annotation, whose corners are in pixels: x, y, width, height."""
    name = name_of(annotation)
    category, box = id_of(annotation.get("category_id")), annotation["bbox"]
    if category not in by_category:
        raise LabelError(f"{name}: there is no category {annotation.get('category_id')!r:.40}")
    listed = box if isinstance(box, list) else []
    values = [coordinate for value in listed if (coordinate := number(value)) is not None]
    if not len(values) == len(listed) == 4:
        raise LabelError(f"{name}: its bbox {box!r:.60} is none of 4 finite numbers")
    try:
        x, y, width, height = map(float, values)
    except OverflowError:
        raise LabelError(f"{name}: its bbox {box!r:.60} is too large") from None
    corners = (x / size[0], y / size[1], (x + width) / size[0], (y + height) / size[1])
    return Box(name, by_category[category], corners, is_true(annotation.get("iscrowd")))


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
>>> annotations = {"images": [image], "annotations": [box], "categories": [kind]}
>>> _ = (folder / "a.json").write_text(json.dumps(annotations))
>>> recordio.convert.from_coco(folder / "a.json", folder / "photos" / "cat", folder / "a").records
1""",
)
