"""Annotations of Pascal VOC: an XML file for each image; images with boxes become records.

LabelImg and many others write the same.  Nothing of XML but elements and text is understood.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import io
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NoReturn
from xml.etree import ElementTree

import numpy as np

from recordio import RecordIOError
from recordio.bytes.regular_files import open_regular
from recordio.errors import LabelError
from recordio.file_limits import bounded_lines
from recordio.formats.encode import encode_as_opencv
from recordio.formats.general import turned
from recordio.formats.image_header import check_pixels, open_image, read_header
from recordio.keywords.checks import boolean
from recordio.keywords.checks import path as a_path
from recordio.keywords.options import option, optional
from recordio.list_files import safe_name
from recordio.notes import Notes
from recordio.packs.fields_meta import FieldMeta
from recordio.values import is_true, number, whole_number

from ..image_list import Skipped
from .annotation_files import ImageFolder, decoded, files_below, read_limited
from .boxes import (
    Box,
    BoxLabels,
    BoxOptions,
    Size,
    check_folder,
    checked_classes,
    item_of,
    marked_option,
    read_class_file,
)
from .folders import read_content
from .format import WITH_IMAGE, Import, ImportSource, Item, Items, MetadataLimit, names_among

CORNERS = ("xmin", "ymin", "xmax", "ymax")
#: Elements that are read, and those that say where an image came from.
OF_IMAGES = frozenset(["filename", "folder", "object", "owner", "path", "size", "source"])
OF_OBJECTS = frozenset(["bndbox", "difficult", "name"])
CALLED = {"segmented": "segmentation masks (segmented)"}
#: Names of images that name none: those of tools that had nothing to say, and ImageNet's ``%s``.
NO_NAME = re.compile(r"(none|null|unknown|unspecified|[^%]*%\d*[sd])?(\.\w+)?", re.IGNORECASE)
#: The encoding in the first line of XML, as far as it is ASCII.
DECLARED = re.compile(rb"""<\?xml[^>]*?\sencoding\s*=\s*["']([\w.:-]+)["']""")

#: The folders of the masks, which are PNG files with a palette.
MASK_FOLDERS = {"mask": "SegmentationClass", "instances": "SegmentationObject"}
#: The classes of VOC from 2007 on, in the order of their numbers in masks, from 1; and borders.
VOC_CLASSES = (
    "aeroplane bicycle bird boat bottle bus car cat chair cow diningtable dog horse motorbike "
    "person pottedplant sheep sofa train tvmonitor"
)
BORDER = 255


@dataclass(frozen=True, kw_only=True)
class VocOptions(BoxOptions, MetadataLimit):
    """Options of from-voc."""

    ids: str | None = option(
        None,
        "path, optional",
        """Each line, or its first word, names an annotation, without .xml: a file of ImageSets/Main
        (default: all annotations, sorted).""",
        optional(a_path),
    )
    classes: str | None = option(
        None,
        "path, optional",
        """Names of the classes in the order of their numbers, one in each line (default: all names
        in ANNOTATIONS, sorted).""",
        optional(a_path),
    )
    zero_based: bool = option(
        False,
        "bool",
        """The first pixel is 0 and xmax and ymax are the edges of the box (default: as in VOC, the
        first pixel is 1 and xmax and ymax are the last pixels in the box).""",
        boolean,
    )
    difficult: str = marked_option("Objects that are marked as difficult")
    fields: tuple[str, ...] = option(
        (),
        "sequence of str",
        """Fields to write beside the images, as PREFIX.NAME.rec.  mask: the class of each pixel, of
        SegmentationClass beside ANNOTATIONS, numbered as there, 255 for borders; instances: the
        object at each pixel, of SegmentationObject (default: none).""",
        partial(names_among, among=tuple(MASK_FOLDERS)),
    )


def open_voc(settings: argparse.Namespace) -> ImportSource:
    """Find the annotations, and read all of them once for the names of the classes."""
    folder = settings.annotations
    beside = os.path.dirname(os.path.abspath(folder))
    masks = {name: os.path.join(beside, MASK_FOLDERS[name]) for name in settings.fields}
    for path in (folder, settings.images, *masks.values()):
        check_folder(path)
    notes = Notes()
    every, in_the_way = files_below(folder, ".xml", notes)
    if not every:
        raise RecordIOError("no file in it ends with .xml", path=folder)
    chosen = every if settings.ids is None else chosen_by(read_ids(settings.ids), every, notes)
    images = ImageFolder(settings.images)
    seen = Seen(folder, settings.max_metadata_bytes, images, notes)
    chosen_names = set(chosen)
    for name in dict.fromkeys([*every, *chosen]):
        if name in chosen_names or settings.classes is None:
            seen.look_at(name, name in chosen_names)
    if settings.classes is None:
        classes = checked_classes(sorted(seen.classes - {""}), folder)
        for name in seen.unreadable:
            notes.add(
                "annotations cannot be read, and classes that only these have are missing, which "
                "moves the numbers of others: mend them, or give all names with --classes",
                name,
            )
    else:
        classes = read_class_file(settings.classes)
    numbers = {name: number for number, name in enumerate(classes)}
    labels = BoxLabels.from_settings(settings, "difficult")

    def items() -> Items:
        for name in chosen:
            path = os.path.join(folder, name)
            try:
                root = read_xml(path, settings.max_metadata_bytes)
                size = stated_size(root)
                image = seen.image_of(name)
                entries = root.findall("object")
                objects = [
                    read_object(number, entry, numbers)
                    for number, entry in enumerate(entries)
                    if is_boxed(entry)
                ]
            except OSError as error:
                yield Skipped(path, error.strerror or str(error))
                continue
            except RecordIOError as error:
                yield Skipped(path, error.reason)
                continue

            def boxes_at(size: Size, objects: list[Box] = objects) -> list[Box]:
                return [in_fractions(box, size, settings.zero_based) for box in objects]

            beside = left_out_of(root)
            beside["objects without a box (bndbox)"] += len(entries) - len(objects)
            read = partial(read_content, os.path.join(settings.images, image), settings.check)
            item = item_of(read, image, boxes_at, size, labels, settings, path, +beside)
            if masks and isinstance(item, Item):
                try:
                    mask_fields = masks_of(os.path.splitext(name)[0], masks)
                    left_out = collections.Counter(item.left_out)
                    if mask_fields:
                        del left_out[CALLED["segmented"]]
                    item = item._replace(fields=mask_fields, left_out=left_out)
                except RecordIOError as error:
                    item = Skipped(path, error.reason)
            yield item
        yield from in_the_way

    return ImportSource(
        items(),
        len(chosen) + len(in_the_way),
        classes,
        lambda: [*(f"note: {line}" for line in notes.lines()), *labels.notes()],
        fields=settings.fields,
        describe=partial(described, settings.fields, classes),
    )


def described(names: Sequence[str], classes: Sequence[str]) -> dict[str, FieldMeta]:
    """Describe the masks; their numbers are VOC's own if all classes are."""
    known_to_voc = VOC_CLASSES.split()
    is_voc = set(classes) <= set(known_to_voc)
    values = dict(enumerate(("background", *known_to_voc))) if is_voc else {}
    metas = {
        "mask": FieldMeta(kind="mask", dtype="uint8", ignore=BORDER, classes=values),
        "instances": FieldMeta(kind="mask", dtype="uint8", ignore=BORDER),
    }
    return {name: metas[name] for name in names}


def masks_of(stem: str, folders: Mapping[str, str]) -> dict[str, tuple[Sequence[float], bytes]]:
    """Read the masks of an image that has any: numbers of the palette, as grey PNG, upright."""
    masks: dict[str, tuple[Sequence[float], bytes]] = {}
    for name, folder in folders.items():
        path = os.path.join(folder, f"{stem}.png")
        if not os.path.exists(path):
            continue
        with open_regular(path) as file:
            content = file.read()
        header = read_header(content)
        check_pixels(header.size)
        with open_image(io.BytesIO(content)) as image:
            if image.mode not in ("P", "L", "1"):
                raise LabelError(f"the mask {path} has colours and no palette ({image.mode})")
            numbers = turned(np.asarray(image, np.uint8), header.orientation)
        masks[name] = (0.0,), encode_as_opencv(np.ascontiguousarray(numbers), ".png", 1)
    return masks


def left_out_of(root: ElementTree.Element) -> collections.Counter[str]:
    """Count the entries of an annotation that no record holds."""
    entries = [entry for entry in root if entry.tag not in OF_IMAGES]
    for item in root.iterfind("object"):
        entries += [entry for entry in item if entry.tag not in OF_OBJECTS]
    return collections.Counter(
        CALLED.get(entry.tag, entry.tag) for entry in entries if len(entry) or is_true(entry.text)
    )


class PlainBuilder(ElementTree.TreeBuilder):
    """Builder of elements that refuses declarations, such as entities that grow without end."""

    def doctype(self, name: str, pubid: str | None, system: str | None) -> NoReturn:
        """Refuse a DOCTYPE, for which `XMLParser` calls this."""
        raise RecordIOError("it has a DOCTYPE, which annotations do not need")


def read_xml(path: str, limit: int) -> ElementTree.Element:
    """Return the root of an annotation file."""
    data = read_limited(path, limit)
    match = DECLARED.match(data.lstrip())
    declared = match[1].decode("ascii") if match else ""
    if re.match("utf.?(16|32)|ucs", declared, re.IGNORECASE):
        declared = ""  # by programs that wrote it into a text, and saved that as UTF-8
    parser = ElementTree.XMLParser(target=PlainBuilder())
    try:
        parser.feed(decoded(data, path, declared))  # of a text, the declaration is ignored
        return parser.close()
    except ElementTree.ParseError as error:
        raise RecordIOError(f"it is no XML: {error}", path=path) from None


class Seen:
    """All annotations, looked at once for the names of the classes and the images."""

    def __init__(self, folder: str, limit: int, images: ImageFolder, notes: Notes) -> None:
        self.classes: set[str] = set()
        self.unreadable: list[str] = []
        self._folder, self._limit, self._images, self._notes = folder, limit, images, notes
        self._image_names: dict[str, str | LabelError] = {}

    def look_at(self, name: str, is_chosen: bool) -> None:
        """Read an annotation; one that cannot be read is reported later, if it is chosen."""
        try:
            root = read_xml(os.path.join(self._folder, name), self._limit)
        except (OSError, RecordIOError):
            self.unreadable.append(name)
            return
        self.classes.update(text_of(entry, "name") for entry in root.iterfind("object"))
        if is_chosen:
            try:
                self._image_names[name] = self._find(root, name)
            except LabelError as error:
                self._image_names[name] = error

    def image_of(self, name: str) -> str:
        """Return the image of an annotation, which must be that of no other."""
        image = self._image_names.get(name)
        if image is None:
            raise LabelError("it was changed while it was read")
        if isinstance(image, LabelError):
            raise image
        self._images.check_owner(image, name)
        return image

    def _find(self, root: ElementTree.Element, name: str) -> str:
        """Find the image that a file names, or that is named like it if it names none."""
        stem = os.path.splitext(name)[0]
        inside, _, own = stem.rpartition("/")
        folder = text_of(root, "folder")
        within = [*dict.fromkeys([inside, "", folder if safe_name(folder) == folder else ""])]
        faults: dict[str, str] = {}
        for tag in ("filename", "path"):
            text = text_of(root, tag)
            try:
                if text:
                    image = self._images.claim(text, name, within, own)
                    if faults:
                        self._notes.add("images are those of <path>: <filename> is not there", name)
                    return image
            except LabelError as error:
                if not NO_NAME.fullmatch(text):
                    faults[tag] = error.reason
        if not faults:
            return self._images.claim(own, name, within, own)
        tag, fault = next(iter(faults.items()))
        with contextlib.suppress(LabelError):
            like = self._images.find(own, within)
            fault += (
                f"; {like} has the name of the annotation, and may be another image: correct "
                f"<{tag}>, or leave it empty"
            )
        raise LabelError(fault)


def chosen_by(ids: Sequence[str], every: Sequence[str], notes: Notes) -> list[str]:
    """Return the annotations that lines name, each once: by path, or by name in any folder."""
    by_stem: dict[str, list[str]] = {}
    for name in every:
        stem = os.path.splitext(name)[0]
        for key in {stem, os.path.basename(stem)}:
            by_stem.setdefault(key, []).append(name)
    chosen: dict[str, None] = {}
    for line in ids:
        # A name may have blanks; the lists of ImageSets have a number behind it.
        words = [word.removesuffix(".xml") for word in (line, line.split()[0])]
        word = words[0] if words[0] in by_stem else words[1]
        exact = [name for name in by_stem.get(word, []) if os.path.splitext(name)[0] == word]
        matches = exact or by_stem.get(word, [])
        name = matches[0] if len(matches) == 1 else f"{word}.xml"
        if name in chosen:
            notes.add("ids stand in their file more than once", word)
        chosen[name] = None
    return list(chosen)


def read_ids(path: str) -> list[str]:
    """Return the lines of a file."""
    with open(path, "rb") as file:
        text = decoded(file.read(), path, errors="surrogateescape")
    lines = io.StringIO(text, newline=None)
    return [line.strip() for _, line in bounded_lines(lines, path) if line.strip()]


def text_of(entry: ElementTree.Element, name: str) -> str:
    """Return the text of an element inside another, without outer space; empty if there is none."""
    return (entry.findtext(name) or "").strip()


def stated_size(root: ElementTree.Element) -> Size | None:
    """Return width and height in the file; None where the image itself has to be asked."""
    width, height = (whole_number(text_of(root, f"size/{side}")) for side in ("width", "height"))
    return (width, height) if width and height and min(width, height) > 0 else None


def is_boxed(entry: ElementTree.Element) -> bool:
    """Tell whether an object has anything of a box."""
    box = entry.find("bndbox")
    return box is not None and any((side.text or "").strip() for side in box)


def read_object(position: int, entry: ElementTree.Element, numbers: dict[str, int]) -> Box:
    """Return one object, its corners as they are written."""
    name = text_of(entry, "name")
    location = f"object {position} ({name[:40]})"
    if name not in numbers:
        raise LabelError(f"{location}: this class is none of the {len(numbers)} known ones")
    sides = [number(text_of(entry, f"bndbox/{side}")) for side in CORNERS]
    try:
        left, top, right, bottom = (float(side) for side in sides if side is not None)
    except (ValueError, OverflowError):
        raise LabelError(
            f"{location}: its bndbox has not four numbers {', '.join(CORNERS)}"
        ) from None
    marked = is_true(text_of(entry, "difficult"))
    return Box(location, numbers[name], (left, top, right, bottom), marked)


def in_fractions(box: Box, size: Size, zero_based: bool) -> Box:
    """Return a box whose corners are fractions of the image instead of pixels."""
    width, height = size
    left, top, right, bottom = box.corners
    if not zero_based:  # the first pixel is 1, and the last one belongs to the box
        left, top = left - 1, top - 1
    return box._replace(corners=(left / width, top / height, right / width, bottom / height))


FROM_VOC = Import(
    "voc",
    "annotations of Pascal VOC (XML)",
    [
        ("annotations", "the folder of the XML files, such as VOC2012/Annotations", False),
        ("images", "the folder of the images, such as VOC2012/JPEGImages", False),
    ],
    open_voc,
    VocOptions,
    "Each image becomes a record with its boxes, which ImageDetRecordIter reads: the image\n"
    "untouched, and the label [2, 5, class, xmin, ymin, xmax, ymax, ...] in fractions of the\n"
    "image.  PREFIX.classes.txt names the classes.",
    example=WITH_IMAGE
    + """>>> size = "<size><width>6</width><height>4</height></size>"
>>> box = "<xmin>1</xmin><ymin>1</ymin><xmax>3</xmax><ymax>3</ymax>"
>>> cat = f"<object><name>cat</name><bndbox>{box}</bndbox></object>"
>>> (folder / "xml").mkdir()
>>> _ = (folder / "xml" / "1.xml").write_text(
...     f"<annotation><filename>1.png</filename>{size}{cat}</annotation>"
... )
>>> recordio.convert.from_voc(folder / "xml", folder / "photos" / "cat", folder / "a").records
1""",
)
