"""Augmented manifests of SageMaker Ground Truth: a JSON object in each line names an image.

``{"source-ref": "s3://bucket/1.jpg", "NAME": 0, "NAME-metadata": {"class-name": "cat", ...}}``
has a class; multi-label classification has a list of numbers, and object detection has boxes.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from recordio import RecordIOError
from recordio.bytes.files import StoredFile, open_bytes
from recordio.errors import LabelError, RemoteFileError
from recordio.keywords.checks import path as a_path
from recordio.keywords.options import option, optional
from recordio.list_files import safe_name
from recordio.notes import Notes
from recordio.values import is_true, number, whole_number

from ..image_list import Skipped
from ..payloads import check_content
from .annotation_files import ImageFolder, decoded, parts_of
from .boxes import (
    Box,
    BoxLabels,
    BoxOptions,
    Size,
    check_folder,
    checked_classes,
    distinct_names,
    item_of,
    read_class_file,
)
from .folders import read_content
from .format import WITH_IMAGE, Import, ImportSource, Item, Items

METADATA = "-metadata"
SOURCES = ("source-ref", "source")
#: A class with a higher number is none: labels have a place for each, or a name.
MOST_CLASSES = 1 << 16
ONE, SEVERAL, BOXES, VECTOR = "a class", "a list of classes", "boxes", "a list of numbers"


@dataclass(frozen=True, kw_only=True)
class ManifestOptions(BoxOptions):
    """Options of from-manifest."""

    images: str | None = option(
        None,
        "path, optional",
        """The folder of the images: the ends of their paths in the manifest are looked for there
        (default: the folder of the manifest, and URLs are fetched).""",
        optional(a_path),
    )
    label: str | None = option(
        None,
        "str, optional",
        "The attribute with the labels (default: the only one, or the only one with metadata).",
    )
    classes: str | None = option(
        None,
        "path, optional",
        """Names of the classes in the order of their numbers, one in each line; classes that have
        names in the manifest get the numbers of these (default: the numbers in the manifest, and
        its class-name and class-map).""",
        optional(a_path),
    )


class Entry(NamedTuple):
    """One line: the image, its labels and what is said about them."""

    line: int
    source: Any
    value: Any
    about: Mapping[str, Any]
    others: Sequence[str]  # attributes with other labels

    @property
    def kind(self) -> str:
        """Tell the kind of the labels."""
        if isinstance(self.value, dict) and "annotations" in self.value:
            return BOXES
        if isinstance(self.value, list):
            several = "class-map" in self.about or "multilabel" in str(self.about.get("type"))
            return SEVERAL if several else VECTOR
        return ONE

    @property
    def names(self) -> dict[int, str]:
        """Give the names of classes that the line has."""
        listed = self.about.get("class-map")
        pairs = list(listed.items()) if isinstance(listed, dict) else []
        if self.kind == ONE:
            pairs = [(self.value, self.about.get("class-name"))]
        return {
            key: str(name)
            for text, name in pairs
            if (key := whole_number(text)) is not None and name is not None and key >= 0
        }


def open_manifest(settings: argparse.Namespace) -> ImportSource:
    """Read the manifest; images are read one by one."""
    path = settings.manifest
    entries = read_manifest(path, settings.label)
    kinds = collections.Counter(entry.kind for entry in entries)
    kind = kinds.most_common(1)[0][0] if kinds else ONE
    notes = Notes()
    by_name: dict[str, int] = {}
    if settings.classes is None:
        classes = classes_of([entry for entry in entries if entry.kind == kind], path, notes)
    else:
        classes = read_class_file(settings.classes)
        by_name = {name: key for key, name in enumerate(classes)}
    labels = BoxLabels.from_settings(settings)
    sources = Sources(path, settings)
    for entry in entries:
        sources.look_at(entry)
    width = len(classes) or most_of(entries, kind, path) + 1
    lengths = {len(entry.value) for entry in entries if kind == entry.kind == VECTOR}
    if len(lengths) > 1:
        raise RecordIOError(
            f"its lists of numbers have {min(lengths)} to {max(lengths)} values, and no metadata "
            "with a class-map says that these are classes",
            path=path,
        )

    def items() -> Items:
        for entry in entries:
            location = f"{path}, line {entry.line}"
            try:
                name, read = sources.of(entry)
                class_of = partial(class_in, entry.names, by_name, classes)
                if entry.kind != kind:
                    raise LabelError(f"it has {entry.kind}, where most lines have {kind}")
                beside = left_out_of(entry)
                if kind == BOXES:
                    size, boxes = stated_size(entry.value), boxes_of(entry, class_of)
                    boxes_at = partial(in_fractions, boxes)
                    yield item_of(read, name, boxes_at, size, labels, settings, location, beside)
                    continue
                yield Item(labels_of(entry, class_of, classes, width), read(), name, beside)
            except OSError as error:
                yield Skipped(location, error.strerror or str(error))
            except RecordIOError as error:
                yield Skipped(location, error.reason)

    def all_notes() -> list[str]:
        return [*(f"note: {line}" for line in notes.lines()), *labels.notes()]

    return ImportSource(items(), len(entries), classes, all_notes)


class Sources:
    """The images of a manifest: files of a folder, or URLs."""

    def __init__(self, path: str, settings: argparse.Namespace) -> None:
        self._manifest, self._check = StoredFile.at(path), settings.check
        self._folder = settings.images
        if self._folder is not None:
            check_folder(self._folder)
        elif self._manifest.is_local:
            self._folder = os.path.dirname(os.path.abspath(self._manifest.name))
        self._fetches = settings.images is None
        self._images = ImageFolder(self._folder or "")
        self._owners: dict[str, int] = {}
        self._names: dict[int, str | RecordIOError] = {}

    def look_at(self, entry: Entry) -> None:
        """Find the image of a line, which is used only if no other line has it."""
        try:
            self._names[entry.line] = self._find(entry)
        except RecordIOError as error:
            self._names[entry.line] = error

    def _find(self, entry: Entry) -> str:
        """Return the path of an image below the folder, or its URL."""
        source = entry.source
        if not isinstance(source, str) or not safe_name(source.strip()):
            raise LabelError(f"its source-ref {source!r:.80} names no image")
        source = source.strip()
        if self._fetches and "://" not in source and self._folder is None:
            source = self._manifest.neighbour(source).name
        if self._fetches and "://" in source and not source.startswith("file://"):
            self._owners.setdefault(source, entry.line)
            return source
        return self._images.claim(source, f"line {entry.line}")

    def of(self, entry: Entry) -> tuple[str, Any]:
        """Return the name of the image of a line, and a function that reads it."""
        name = self._names[entry.line]
        if isinstance(name, RecordIOError):
            raise name
        if "://" not in name:
            self._images.check_owner(name, f"line {entry.line}")
            return name, partial(read_content, os.path.join(self._images.folder, name), self._check)
        if self._owners[name] != entry.line:
            raise LabelError(f"it names {name}, as line {self._owners[name]} does")
        return "/".join(parts_of(name)), partial(fetched, name, self._check)


def fetched(url: str, check: str) -> bytes:
    """Return the content of an image on a server, examined as `CheckOptions` say."""
    try:
        with StoredFile.at(url).open() as file:
            content = file.read(2**29 + 1)
    except RemoteFileError as error:
        raise RecordIOError(f"{error}; --images reads the images from a folder") from None
    if check == "header":
        check_content(content)
    return content


def read_manifest(path: str, label: str | None) -> list[Entry]:
    """Read all lines."""
    with open_bytes(path)[0] as file:
        text = decoded(file.read(), path)
    rows: list[tuple[int, dict[str, Any]]] = []
    for position, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise RecordIOError(f"it is no JSON: {error}", path=path, line=position) from None
        if not isinstance(row, dict) or not any(key in row for key in SOURCES):
            raise RecordIOError(
                "it is no JSON object with source-ref, as each line of an augmented manifest is",
                path=path,
                line=position,
            )
        rows.append((position, row))
    label = label or label_among([row for _, row in rows], path)
    return [entry_of(position, row, label) for position, row in rows]


def label_among(rows: Sequence[Mapping[str, Any]], path: str) -> str:
    """Return the name of the attribute with the labels."""
    names = {key.removesuffix(METADATA): None for row in rows for key in row if key not in SOURCES}
    described = {key.removesuffix(METADATA): None for row in rows for key in row if METADATA in key}
    for attributes in (names, described):
        if len(attributes) == 1:
            return next(iter(attributes))
    if not rows:
        return ""
    raise RecordIOError(
        f"choose the attribute with the labels, --label NAME, among {', '.join(names):.400}"
        if names
        else "no line has labels beside source-ref",
        path=path,
    )


def entry_of(position: int, row: dict[str, Any], label: str) -> Entry:
    """Take the labels of a line; lists may be texts."""
    value, about = row.get(label), row.get(label + METADATA)
    if isinstance(value, str) and value.strip().startswith("["):
        with contextlib.suppress(ValueError, RecursionError):  # reported with its line
            value = json.loads(value)
    others = [key for key in row if key not in (label, *SOURCES) and not key.endswith(METADATA)]
    about = about if isinstance(about, dict) else {}
    return Entry(position, row.get("source-ref"), value, about, others)


def classes_of(entries: Sequence[Entry], path: str, notes: Notes) -> list[str]:
    """Return the names of the classes in the order of their numbers, if there are names."""
    names: dict[int, str] = {}
    for entry in entries:
        for key, name in entry.names.items():
            if names.setdefault(key, name) != name:
                raise RecordIOError(
                    f"class {key} is called {names[key]!r:.60} and {name!r:.60}: give the names "
                    "with --classes",
                    path=path,
                    line=entry.line,
                )
    if not names:  # classes without numbers, if all are
        if any(entry.kind != ONE or number(entry.value) is not None for entry in entries):
            return []
        return checked_classes(sorted({name_of(entry) for entry in entries} - {""}), path)
    most = max(max(names), most_of(entries, entries[0].kind, path))
    if most >= MOST_CLASSES:
        raise RecordIOError(
            f"its class {most} is too high a number to be one of a class", path=path
        )
    for key in range(most + 1):
        if key not in names:
            notes.add("classes have no name, and are called by their numbers", str(key))
    pairs = [(names.get(key, str(key)), key) for key in range(most + 1)]
    return checked_classes(distinct_names(pairs, notes), path)


def name_of(entry: Entry) -> str:
    """Return the name of a class that has no number; empty if there is none."""
    if entry.kind != ONE or number(entry.value) is not None:
        return ""
    name = entry.value if entry.value is not None else entry.about.get("class-name")
    return name.strip() if isinstance(name, str) else ""


def most_of(entries: Sequence[Entry], kind: str, path: str) -> int:
    """Return the highest number of a class that stands in labels, -1 if there is none."""
    most = -1
    for entry in entries:
        if entry.kind != kind:
            continue
        values: Sequence[Any] = ()
        if kind == SEVERAL:
            values = entry.value
        elif kind == ONE:
            values = (entry.value,)
        elif kind == BOXES and isinstance(entry.value["annotations"], list):
            values = [
                box.get("class_id") for box in entry.value["annotations"] if isinstance(box, dict)
            ]
        keys = [key for value in values if (key := whole_number(value)) is not None]
        most = max([most, *keys])
    if kind == SEVERAL and most >= MOST_CLASSES:
        raise RecordIOError(
            f"its class {most} is too high a number to be one of a class", path=path
        )
    return most


def class_in(
    names: Mapping[int, str], by_name: Mapping[str, int], classes: Sequence[str], value: Any
) -> int:
    """Return the number of a class, by its name if the names are given; refuse unknown ones."""
    label = whole_number(value)
    name = None if label is None else names.get(label)
    if by_name and name is not None:
        label = by_name.get(name)
    if label is None or not 0 <= label < (len(classes) or MOST_CLASSES):
        hint = f": {len(classes)} are known" if classes else ""
        raise LabelError(f"there is no class {name or value!r:.60}{hint}")
    return label


def labels_of(
    entry: Entry, class_of: Callable[[Any], int], classes: Sequence[str], width: int
) -> list[float]:
    """Return the labels of an image: a number, numbers, or 1 in the place of each class."""
    value = entry.value
    if entry.kind == ONE:
        if (name := name_of(entry)) and name in classes:
            return [classes.index(name)]
        if (as_number := number(value)) is None:
            reason = entry.about.get("failure-reason")
            failed = f": {reason!s:.200}" if reason else ""
            raise LabelError(f"its label {value!r:.60} is no number and no class{failed}")
        return [class_of(value) if classes else as_number]
    if entry.kind == VECTOR:
        values = [as_number for item in value if (as_number := number(item)) is not None]
        if len(values) != len(value) or not values:
            raise LabelError(f"its labels {value!r:.60} are no finite numbers")
        return values
    labels = [0.0] * width
    for item in value:
        labels[class_of(item)] = 1.0
    return labels


def boxes_of(entry: Entry, class_of: Callable[[Any], int]) -> list[Box]:
    """Return the boxes of an image, left, top, right and bottom in pixels."""
    listed = entry.value["annotations"]
    if not isinstance(listed, list):
        raise LabelError(f"its annotations {listed!r:.60} are no list")
    boxes = []
    for position, box in enumerate(listed):
        name = f"annotation {position}"
        box = box if isinstance(box, dict) else {}
        sides = [number(box.get(side)) for side in ("left", "top", "width", "height")]
        try:
            label = class_of(box.get("class_id"))
        except LabelError as error:
            raise LabelError(f"{name}: {error.reason}") from None
        try:
            left, top, width, height = (float(side) for side in sides if side is not None)
        except (ValueError, OverflowError):
            raise LabelError(f"{name}: it has not four numbers left, top, width, height") from None
        boxes.append(Box(name, label, (left, top, left + width, top + height)))
    return boxes


def in_fractions(boxes: Sequence[Box], size: Size) -> list[Box]:
    """Return boxes whose corners are fractions of the image instead of pixels."""
    return [
        box._replace(corners=(left / size[0], top / size[1], right / size[0], bottom / size[1]))
        for box in boxes
        for left, top, right, bottom in [box.corners]
    ]


def stated_size(value: Mapping[str, Any]) -> Size | None:
    """Return width and height in a line; None where the image itself has to be asked."""
    listed = value.get("image_size")
    size = listed[0] if isinstance(listed, list) and len(listed) == 1 else listed
    size = size if isinstance(size, dict) else {}
    width, height = whole_number(size.get("width")), whole_number(size.get("height"))
    return (width, height) if width and height and min(width, height) > 0 else None


def left_out_of(entry: Entry) -> collections.Counter[str]:
    """Count what no record holds: other attributes, and confidences above 0."""
    objects = entry.about.get("objects")
    metadata = [entry.about, *(objects if isinstance(objects, list) else [])]
    counts = collections.Counter(entry.others)
    counts["confidences"] += sum(
        isinstance(facts, dict) and is_true(facts.get("confidence")) for facts in metadata
    )
    listed = entry.about.get("confidence-map")
    counts["confidences"] += len(listed) if isinstance(listed, dict) else 0
    return +counts


FROM_MANIFEST = Import(
    "manifest",
    "augmented manifests of SageMaker (JSON lines)",
    [("manifest", "the file, plain or gzip, or an fsspec URL", False)],
    open_manifest,
    ManifestOptions,
    "Each image becomes a record, untouched.  Its label is the number of its class; of several\n"
    "classes, 1 in the place of each and 0 elsewhere; or the boxes, as ImageDetRecordIter reads\n"
    "them: [2, 5, class, xmin, ymin, xmax, ymax, ...] in fractions of the image.\n"
    "PREFIX.classes.txt names the classes.",
    example=WITH_IMAGE
    + """>>> import json
>>> line = {"source-ref": "s3://bucket/cat/1.png", "animal": 0}
>>> line["animal-metadata"] = {"class-name": "cat", "type": "groundtruth/image-classification"}
>>> _ = (folder / "a.manifest").write_text(json.dumps(line))
>>> recordio.convert.from_manifest(
...     folder / "a.manifest", folder / "a", images=folder / "photos"
... ).records
1""",
)
