"""Fields of COCO annotations: masks of classes or objects, key points and captions of an image."""

from __future__ import annotations

import collections
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from recordio import RecordIOError
from recordio.bytes.files import open_bytes
from recordio.errors import LabelError
from recordio.formats.encode import encode_as_opencv
from recordio.formats.image_header import check_pixels
from recordio.packs.fields_meta import FieldMeta, mirrored_points
from recordio.values import is_true, number

from .annotation_files import decoded
from .boxes import HEADER, Size, class_name
from .outlines import mask_of

#: The id of an image or a category: a number if it can be read as one, or a text.
Id: TypeAlias = float | str

#: The fields, and the entry of an annotation that each is made of.
COCO_FIELDS = {
    "mask": "segmentation",
    "instances": "segmentation",
    "keypoints": "keypoints",
    "caption": "caption",
}
#: The value of pixels that belong to a crowd, and the most classes and objects beside it.
IGNORED, MOST = 255, 254


class CocoFields:
    """Maker of the fields of each image."""

    def __init__(
        self,
        names: Sequence[str],
        categories: Mapping[Id, Mapping[str, Any]],
        labels: Mapping[Id, int],
        captions: Mapping[Id, list[str]],
        max_pixels: int,
        path: str,
    ) -> None:
        self.names, self._labels, self._captions = names, labels, captions
        self._max_pixels = max_pixels
        if "mask" in names and len(categories) > MOST:
            raise RecordIOError(
                f"it has {len(categories)} categories, and a mask holds {MOST} classes: leave the "
                "field mask out",
                path=path,
            )
        try:
            #: What the fields are: names of classes and of points, what is joined, and mirrored.
            self.meta = described(names, categories, labels)
        except (TypeError, ValueError, AttributeError) as error:
            raise RecordIOError(
                f"its categories have names, keypoints or a skeleton that are none: {error}",
                path=path,
            ) from None
        points = {len(kind["keypoints"]) for kind in categories.values() if kind.get("keypoints")}
        if "keypoints" in names and len(points) > 1:
            raise RecordIOError(
                "its categories have different numbers of key points: leave the field keypoints "
                "out, or split the file",
                path=path,
            )
        self._points = points.pop() if points else 0

    def of(
        self, image: Id | None, size: Size, entries: Sequence[dict[str, Any]]
    ) -> dict[str, tuple[Sequence[float], bytes]]:
        """Make the fields of an image; one without captions has no caption."""
        fields: dict[str, tuple[Sequence[float], bytes]] = {}
        if {"mask", "instances"} & set(self.names):
            check_pixels(size, self._max_pixels, "--max-pixels")
            fields |= self._masks(size, [entry for entry in entries if entry.get("segmentation")])
        if "keypoints" in self.names:
            fields["keypoints"] = self._keypoints(size, entries), b""
        if image is not None and "caption" in self.names and self._captions.get(image):
            fields["caption"] = (0.0,), "\n".join(self._captions[image]).encode()
        return fields

    def _masks(
        self, size: Size, entries: Sequence[dict[str, Any]]
    ) -> Iterator[tuple[str, tuple[Sequence[float], bytes]]]:
        """Paint crowds first, then objects, the largest first, so that small ones are seen."""
        width, height = size
        classes, objects = np.zeros((2, height, width), np.uint8)
        shapes = []
        for value, entry in enumerate(entries, 1):
            if is_true(entry.get("iscrowd")):
                value = IGNORED
            elif value > MOST and "instances" in self.names:
                raise LabelError(
                    f"it has {len(entries)} objects with outlines, and a mask holds {MOST}: leave "
                    "the field instances out"
                )
            try:
                mask = mask_of(entry["segmentation"], size)
            except LabelError as error:
                raise LabelError(f"annotation {entry['id']!s:.40}: {error.reason}") from None
            category = id_of(entry.get("category_id"))
            if category is None or category not in self._labels:  # an outline without a box
                raise LabelError(
                    f"annotation {entry['id']!s:.40}: there is no category "
                    f"{entry.get('category_id')!r:.40}"
                )
            kind = self._labels[category] + 1
            shapes.append((not is_true(entry.get("iscrowd")), -int(mask.sum()), mask, kind, value))
        for is_object, _, mask, kind, value in sorted(shapes, key=lambda shape: shape[:2]):
            classes[mask] = kind if is_object else IGNORED
            objects[mask] = value
        painted = {"mask": classes, "instances": objects}
        for name in painted:
            if name in self.names:
                yield name, ((0.0,), encode_as_opencv(painted[name], ".png", 1))

    def _keypoints(self, size: Size, entries: Sequence[dict[str, Any]]) -> list[float]:
        values: list[float] = []
        points = self._points
        for entry in entries:
            listed = entry.get("keypoints")
            if not isinstance(listed, list) or is_true(entry.get("iscrowd")):
                if listed is not None and not isinstance(listed, list):
                    raise LabelError(f"annotation {entry['id']!s:.40}: its keypoints are no list")
                continue
            if not any(map(is_true, listed)):
                continue  # nobody labelled them
            numbers = [number(value) for value in listed]
            if len(listed) % 3 or None in numbers:
                raise LabelError(
                    f"annotation {entry['id']!s:.40}: its keypoints {listed!r:.60} are no numbers "
                    "x, y, v for each"
                )
            points = points or len(listed) // 3
            if len(listed) != 3 * points:
                raise LabelError(
                    f"annotation {entry['id']!s:.40}: it has {len(listed) // 3} key points, not "
                    f"{points}"
                )
            values += self._in_fractions(numbers, size, entry)
        self._points = points
        return [HEADER, float(3 * points or 6), *values]

    def _in_fractions(
        self, listed: list[Any], size: Size, entry: dict[str, Any]
    ) -> Iterator[float]:
        for x, y, seen in zip(listed[::3], listed[1::3], listed[2::3], strict=True):
            inside = seen == 0 or (0 <= x <= size[0] and 0 <= y <= size[1])
            if seen not in (0, 1, 2) or not inside:
                raise LabelError(
                    f"annotation {entry['id']!s:.40}: the key point {x!r:.20}, {y!r:.20}, "
                    f"{seen!r:.20} leaves the image, or its last number is not 0, 1 or 2"
                )
            yield from (0.0, 0.0, 0.0) if seen == 0 else (x / size[0], y / size[1], float(seen))


def described(
    names: Sequence[str], categories: Mapping[Id, Mapping[str, Any]], labels: Mapping[Id, int]
) -> dict[str, FieldMeta]:
    """Describe fields; key points by what all categories that have some say alike."""
    point_sets = [
        (category["keypoints"], category.get("skeleton") or [])
        for category in categories.values()
        if category.get("keypoints")
    ]
    points = FieldMeta(kind="keypoints")
    if "keypoints" in names and point_sets and all(each == point_sets[0] for each in point_sets):
        listed, joined = point_sets[0]
        skeleton = tuple((first - 1, second - 1) for first, second in joined)  # counted from 1
        swap = mirrored_points(listed)
        points = FieldMeta(kind="keypoints", points=listed, skeleton=skeleton, swap=swap)
    classes = {
        labels[number] + 1: class_name(category["name"]) for number, category in categories.items()
    }
    metas = {
        "mask": FieldMeta(kind="mask", dtype="uint8", ignore=IGNORED, classes=classes),
        "instances": FieldMeta(kind="mask", dtype="uint8", ignore=IGNORED),
        "keypoints": points,
        "caption": FieldMeta(kind="text"),
    }
    return {name: metas[name] for name in names}


def read_captions(path: str) -> dict[Id, list[str]]:
    """Read the captions of each image from COCO's captions_*.json, in the order of the file."""
    try:
        pairs = [(entry["image_id"], entry["caption"]) for entry in read_json(path)["annotations"]]
    except (KeyError, TypeError) as error:
        raise RecordIOError(
            f"it holds no annotations with image_id and caption, as COCO's captions_*.json do: "
            f"{error!r:.80}",
            path=path,
        ) from None
    captions: dict[Id, list[str]] = collections.defaultdict(list)
    for value, caption in pairs:
        image = id_of(value)
        if image is None or not isinstance(caption, str):
            raise RecordIOError(f"the caption {caption!r:.60} is no text of an image", path=path)
        captions[image].append(" ".join(caption.split()))  # a line of its own
    return dict(captions)


def read_json(path: str, hook: Callable[[dict[str, Any]], Any] | None = None) -> Any:
    """Read a JSON file, plain or gzip; `hook` changes objects as they are read."""
    with open_bytes(path)[0] as file:
        text = decoded(file.read(), path)
    try:
        return json.loads(text, object_hook=hook)
    except (ValueError, RecursionError) as error:
        raise RecordIOError(f"it is no JSON: {error}", path=path) from None


def id_of(value: Any) -> Id | None:
    """Return what an id is joined by: its number in any form, or its text; None of others.

    >>> [id_of(value) for value in (12, 12.0, "000012", " a1 ", "", None, [1])]
    [12, 12, 12, 'a1', None, None, None]
    """
    as_number = number(value)
    return (value.strip() or None) if as_number is None and isinstance(value, str) else as_number
