"""Annotations of Pascal VOC: an XML file for each image; images with boxes become records.

LabelImg and many others write the same.  Nothing of XML but elements and text is understood.
"""

from __future__ import annotations

import argparse
import collections
import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NoReturn
from xml.etree import ElementTree

import numpy as np

from recordio import RecordIOError
from recordio.bytes.regular_files import open_regular
from recordio.errors import LabelError
from recordio.formats.encode import encode_as_opencv
from recordio.formats.general import turned
from recordio.formats.image_header import check_pixels, open_image, read_header
from recordio.keywords.checks import boolean
from recordio.keywords.checks import path as a_path
from recordio.keywords.options import option, optional
from recordio.limits import bounded_lines
from recordio.lists import safe_name
from recordio.packs.fields_meta import FieldMeta

from ..im2rec_options import DEFAULT_EXTENSIONS
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
    read_class_file,
)
from .format import WITH_IMAGE, Import, ImportSource, Item, Items, MetadataLimit, names_among

__all__ = ["FROM_VOC", "read_limited"]

CORNERS = ("xmin", "ymin", "xmax", "ymax")
#: Elements that are read, and those that say where an image came from.
OF_IMAGES = frozenset(["filename", "folder", "object", "owner", "path", "size", "source"])
OF_OBJECTS = frozenset(["bndbox", "difficult", "name"])
#: Texts of tools where there is nothing to say.
NOTHING = frozenset(["", "0", "Unspecified"])
CALLED = {"segmented": "segmentation masks (segmented)"}


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
        """The first word of each line names an annotation, without .xml: a file of ImageSets/Main
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
    every = sorted(name for name in os.listdir(folder) if name.lower().endswith(".xml"))
    if not every:
        raise RecordIOError("no file in it ends with .xml", path=folder)
    if settings.classes is None:
        classes = checked_classes(class_names(folder, every, settings.max_metadata_bytes), folder)
    else:
        classes = read_class_file(settings.classes)
    chosen = every if settings.ids is None else [f"{name}.xml" for name in read_ids(settings.ids)]
    numbers = {name: number for number, name in enumerate(classes)}
    labels = BoxLabels.from_settings(settings, "difficult")

    def items() -> Items:
        for name in chosen:
            path = os.path.join(folder, name)
            try:
                root = read_xml(path, settings.max_metadata_bytes)
                size = stated_size(root)
                image = image_name(root, name, settings.images)
                objects = [
                    read_object(number, entry, numbers)
                    for number, entry in enumerate(root.iterfind("object"))
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
            item = item_of(settings.images, image, boxes_at, size, labels, settings, path, beside)
            if masks and isinstance(item, Item):
                try:
                    found = masks_of(name.removesuffix(".xml"), masks)
                    left_out = collections.Counter(item.left_out)
                    if found:
                        del left_out[CALLED["segmented"]]
                    item = item._replace(fields=found, left_out=left_out)
                except RecordIOError as error:
                    item = Skipped(path, error.reason)
            yield item

    return ImportSource(
        items(),
        len(chosen),
        classes,
        labels.notes,
        fields=settings.fields,
        describe=partial(described, settings.fields, classes),
    )


def described(names: Sequence[str], classes: Sequence[str]) -> dict[str, FieldMeta]:
    """Describe the masks; their numbers are VOC's own if all classes are."""
    known_to_voc = VOC_CLASSES.split()
    is_voc = set(classes) <= set(known_to_voc)
    values = dict(enumerate(("background", *known_to_voc))) if is_voc else {}
    known = {
        "mask": FieldMeta(kind="mask", dtype="uint8", ignore=BORDER, classes=values),
        "instances": FieldMeta(kind="mask", dtype="uint8", ignore=BORDER),
    }
    return {name: known[name] for name in names}


def masks_of(stem: str, folders: Mapping[str, str]) -> dict[str, tuple[Sequence[float], bytes]]:
    """Read the masks of an image that has any: numbers of the palette, as grey PNG, upright."""
    found: dict[str, tuple[Sequence[float], bytes]] = {}
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
        found[name] = (0.0,), encode_as_opencv(np.ascontiguousarray(numbers), ".png", 1)
    return found


def left_out_of(root: ElementTree.Element) -> collections.Counter[str]:
    """Count the entries of an annotation that no record holds."""
    others = [entry for entry in root if entry.tag not in OF_IMAGES]
    for found in root.iterfind("object"):
        others += [entry for entry in found if entry.tag not in OF_OBJECTS]
    return collections.Counter(
        CALLED.get(entry.tag, entry.tag)
        for entry in others
        if len(entry) or (entry.text or "").strip() not in NOTHING
    )


class PlainBuilder(ElementTree.TreeBuilder):
    """Builder of elements that refuses declarations, such as entities that grow without end."""

    def doctype(self, name: str, pubid: str | None, system: str | None) -> NoReturn:
        """Refuse a DOCTYPE, for which `XMLParser` calls this."""
        raise RecordIOError("it has a DOCTYPE, which annotations do not need")


def read_xml(path: str, limit: int) -> ElementTree.Element:
    """Return the root of an annotation file."""
    parser = ElementTree.XMLParser(target=PlainBuilder())
    try:
        parser.feed(read_limited(path, limit))
        root = parser.close()
    except ElementTree.ParseError as error:
        raise RecordIOError(f"it is no XML: {error}", path=path) from None
    except (ValueError, LookupError) as error:  # an encoding that is not known
        if isinstance(error, RecordIOError):
            raise
        raise RecordIOError(f"it cannot be read: {error}", path=path) from None
    return root


def class_names(folder: str, names: Sequence[str], limit: int) -> list[str]:
    """Return the names of all objects, sorted; files that cannot be read are reported later."""
    found: set[str] = set()
    for name in names:
        try:
            root = read_xml(os.path.join(folder, name), limit)
        except (OSError, RecordIOError):
            continue
        found.update(text_of(entry, "name") for entry in root.iterfind("object"))
    return sorted(found - {""})


def read_ids(path: str) -> list[str]:
    """Return the first words of the lines of a file."""
    with open(path, encoding="utf-8-sig", errors="surrogateescape") as lines:
        words = [line.split() for _, line in bounded_lines(lines, path)]
    return [found[0].removesuffix(".xml") for found in words if found]


def text_of(entry: ElementTree.Element, name: str) -> str:
    """Return the text of an element inside another, without outer space; empty if there is none."""
    return (entry.findtext(name) or "").strip()


def stated_size(root: ElementTree.Element) -> Size | None:
    """Return width and height in the file; None where they are missing or 0, which tools write."""
    try:
        width, height = (int(text_of(root, f"size/{side}") or 0) for side in ("width", "height"))
    except ValueError:
        raise LabelError("its size is no whole number of pixels") from None
    return (width, height) if width > 0 and height > 0 else None


def image_name(root: ElementTree.Element, annotation: str, images: str) -> str:
    """Return the image that a file is about: the one that it names, or that is named like it."""
    named = text_of(root, "filename")
    if named and safe_name(named) != named:
        raise RecordIOError(f"its file name {named!r:.80} leads elsewhere")
    stem = os.path.splitext(annotation)[0]
    names = [named] if named else []
    names += [f"{stem}{suffix}" for suffix in DEFAULT_EXTENSIONS]
    for name in names:
        if os.path.isfile(os.path.join(images, name)):
            return name
    raise RecordIOError(f"there is no image {names[0]} in {images}")


def read_object(number: int, entry: ElementTree.Element, numbers: dict[str, int]) -> Box:
    """Return one object, its corners as they are written."""
    name = text_of(entry, "name")
    location = f"object {number} ({name[:40]})"
    if name not in numbers:
        raise LabelError(f"{location}: this class is none of the {len(numbers)} known ones")
    try:
        left, top, right, bottom = (float(text_of(entry, f"bndbox/{side}")) for side in CORNERS)
    except ValueError:
        raise LabelError(
            f"{location}: its bndbox has not four numbers {', '.join(CORNERS)}"
        ) from None
    marked = text_of(entry, "difficult") not in ("", "0")
    return Box(location, numbers[name], (left, top, right, bottom), marked)


def in_fractions(box: Box, size: Size, zero_based: bool) -> Box:
    """Return a box whose corners are fractions of the image instead of pixels."""
    width, height = size
    left, top, right, bottom = box.corners
    if not zero_based:  # the first pixel is 1, and the last one belongs to the box
        left, top = left - 1, top - 1
    return box._replace(corners=(left / width, top / height, right / width, bottom / height))


def read_limited(path: str, limit: int) -> bytes:
    """Return the bytes of a file that must not be large."""
    with open_regular(path) as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise RecordIOError(
            f"it has more than {limit} bytes; raise --max-metadata-bytes to allow it", path=path
        )
    return data


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
