"""Records become folders of images, one for each class; and image files that annotations name."""

from __future__ import annotations

import argparse
import errno
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from recordio import RecordIOError
from recordio.bytes.regular_files import open_regular
from recordio.formats.table import IMAGE_KINDS, IMAGE_SUFFIXES, suffixes_of
from recordio.keywords.checks import choice
from recordio.keywords.options import Options, option
from recordio.packs.classes import read_classes
from recordio.packs.scanned_container import scan_again

from ..im2rec_options import family_of
from ..image_list import ImageList
from ..outputs import new_folder, url_refused
from ..payloads import check_content, number_text
from ..record_pack import FieldRecord, Record, RecordPack, name_of
from ..scan import describe_left_out, scan_images
from .format import Export, ExportedFields
from .labels import table_line

TABLE = "labels.csv"
#: Characters that this system refuses in the name of a file, or understands as more than a name.
FORBIDDEN = re.compile(r'[\0-\x1f<>:"|?*\\]' if os.name == "nt" else "\0")


@dataclass(frozen=True, kw_only=True)
class CheckOptions(Options):
    """Option for the check of contents."""

    check: str = option(
        "header",
        "str",
        """header: leave out files that are truncated, damaged or of no known kind; formats that do
        not show this otherwise are decoded; none: accept any file (default: header).""",
        partial(choice, allowed=("header", "none")),
    )


#: Option for the suffixes of images.
SuffixOptions: Any = family_of("SuffixOptions", "Option for suffixes.", {"exts": "exts"}, exts=())


@dataclass(frozen=True, kw_only=True)
class FoldersOptions(ExportedFields):
    """Options of export --to folders."""

    classes: str | None = option(
        None,
        "path, optional",
        """A file with lines of label, TAB and folder (default: PREFIX.classes.txt; without it,
        folders are named after the labels).""",
    )


def find_images(root: str, suffixes: Sequence[str]) -> tuple[ImageList, list[str]]:
    """Return the images below a folder, and messages about the other files in it."""
    if reason := url_refused(root):
        raise RecordIOError(reason, path=root)
    suffixes = suffixes or sorted(IMAGE_SUFFIXES)
    images = scan_images(root, True, suffixes)
    left_out = describe_left_out(images.left_out, suffixes, ",")
    lines = [*[left_out] * bool(left_out), *images.notes.lines()]
    return images, [f"note: {line}" for line in lines]


def read_content(path: str, check: str) -> bytes:
    """Return the content of an image file, examined as `CheckOptions` say."""
    with open_regular(path) as file:
        content = file.read(2**29 + 1)
    if check == "header":
        check_content(content)
    return content


def write_folders(pack: RecordPack, paths: Sequence[str], settings: argparse.Namespace) -> int:
    """Write each image into the folder of its first label, and a table of all labels.

    Where labels are of objects, or rows for several classes, images have no folder of their own.
    The mask of ``0.jpg`` becomes ``0.mask.png`` beside it, and so on.
    """
    names = pack.pack.entries
    classes = pack.pack.classes if settings.classes is None else read_classes(settings.classes)
    has_classes = settings.classes is not None
    if not has_classes:
        with scan_again(pack.pack) as scanned:
            has_classes = not (scanned.is_detection or scanned.is_multi_hot)
    if not has_classes:
        pack.notes.append(
            "labels are of objects or rows for several classes: the images lie in the folder "
            f"itself, and {TABLE} has their labels (--classes FILE: the first is a class)"
        )
    count = 0
    with new_folder(paths[0]) as folder, open(os.path.join(folder, TABLE), "wb") as table:
        table.write(table_line(["path", "id", "labels"], []))
        folders: set[tuple[str, ...]] = set()

        def place(record: Record) -> tuple[list[str], list[FieldRecord]]:
            if record.kind not in IMAGE_KINDS:
                held = "nothing" if record.kind == "empty" else record.kind
                if record.kind == "empty" and len(record.labels) == 2:
                    held += " but two labels, like the records that list identities of faces"
                raise RecordIOError(
                    f"it holds {held}, no image: choose another format with --to, or leave "
                    "such records out with --skip-errors",
                    **pack.location(record),
                )
            parts = folder_of(record, classes, pack) if has_classes else []
            return parts, list(pack.fields_of(record))

        for record, (parts, beside) in pack.made(place):
            name = os.path.basename(name_of(record, names, suffixes_of(record.kind)))
            spare = f"{record.key}{suffixes_of(record.kind)[0]}"
            if tuple(parts) not in folders:
                parts = make_folder(folder, parts, number_text(record.labels[0]))
                folders.add(tuple(parts))
            where = os.path.join(folder, *parts)
            name = name if safe_parts(name) else spare
            name = write_new(where, name, spare, record, record.content)
            for field in beside:
                end = f".{field.name}{field.suffix}"
                stem, spare_stem = (os.path.splitext(path)[0] + end for path in (name, spare))
                write_new(where, stem, spare_stem, record, field.stored)
            table.write(table_line(["/".join([*parts, name]), record.header.id], record.labels))
            count += 1
    return count


def folder_of(record: Record, classes: dict[int, str], pack: RecordPack) -> list[str]:
    """Return the parts of the folder that a record belongs to."""
    label = record.labels[0]
    name = classes.get(int(label)) if label.is_integer() else None
    if name == ".":  # the images lay in the root itself
        return []
    parts = safe_parts(number_text(label) if name is None else name)
    if not parts:
        raise RecordIOError(
            f"the class name {name!r} is no folder below the output", **pack.location(record)
        )
    return parts


def safe_parts(path: str) -> list[str]:
    """Return the parts of a relative path; none if it leads elsewhere or cannot exist here."""
    parts = path.split("/")
    if FORBIDDEN.search(path) or any(part.strip(". ") == "" for part in parts):
        return []
    return parts


def make_folder(root: str, parts: list[str], spare: str) -> list[str]:
    """Make a folder; where its name is too long for this system, that of the label instead."""
    try:
        os.makedirs(os.path.join(root, *parts), exist_ok=True)
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        parts = [spare]
        os.makedirs(os.path.join(root, *parts), exist_ok=True)
    return parts


def write_new(folder: str, name: str, spare: str, record: Record, content: Any) -> str:
    """Write a file; one with the same name is kept, and this one gets its position.

    Where its name is too long for this system, it gets the `spare` one.
    """
    for attempt in (name, spare):
        stem, suffix = os.path.splitext(attempt)
        for candidate in (attempt, f"{stem}-{record.position}{suffix}"):
            try:
                with open(os.path.join(folder, candidate), "xb") as file:
                    file.write(content)
                return candidate
            except FileExistsError:
                continue
            except OSError as error:
                if error.errno != errno.ENAMETOOLONG:
                    raise
    raise RecordIOError(f"two records would become {name}", record=record.position)


def no_files(target: str) -> list[str]:
    """Return no outputs, for formats that make a folder."""
    return []


TO_FOLDERS = Export(
    "folders",
    f"images and fields in folders by label, and {TABLE}; TARGET is a new folder",
    no_files,
    write_folders,
    FoldersOptions,
)
