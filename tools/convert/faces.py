"""Face-recognition packs in InsightFace's layout, from a folder of people or a list of faces.

Images come first, with keys from 1 on, person by person; the records that list people are those of
all face packs here.  Beside the pack stands ``property``, which training scripts read.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from recordio.bytes.files import open_output, remove_output
from recordio.errors import LabelError, RecordIOError
from recordio.file_limits import bounded_lines
from recordio.formats.decode import decode_image
from recordio.formats.encode import encode_image
from recordio.keywords.checks import integer
from recordio.keywords.options import option
from recordio.list_files import ListEntry
from recordio.operations.output import Plan, write_packs
from recordio.packs.classes import format_classes
from recordio.packs.identity_frames import face_keys
from recordio.packs.labels import MOST_CLASSES
from recordio.packs.scanned_pack import ScannedPack
from recordio.values import whole_number

from ..image_list import Skipped, format_line, read_list, write_skipped
from ..outputs import temporary_folder
from .folders import CheckOptions, SuffixOptions, find_images, read_content
from .format import WITH_IMAGE, Import, ImportSource, Item, Items, LeftOut, PixelLimit
from .importing import ImportReport, import_records

#: Side of an aligned face, and where in it ArcFace's networks expect both eyes, the tip of the nose
#: and both corners of the mouth.
SIDE = 112
PLACES = np.array(
    [
        [38.2946, 51.6963],
        [73.5318, 51.5014],
        [56.0252, 71.7366],
        [41.5493, 92.3655],
        [70.7299, 92.2041],
    ]
)
#: Fields of a line: flag, path and label; with a box; and with landmarks, first all x, then all y.
WIDTHS = (3, 7, 17)
FLAGS = {"0": False, "1": True}
#: Folders that systems and programs make beside others, in lower case; and all with a dot or an @.
OTHERS = {"__macosx", "$recycle.bin", "system volume information", "lost+found"}


@dataclass(frozen=True, kw_only=True)
class FaceOptions(CheckOptions, SuffixOptions, PixelLimit):
    """Options of from-faces."""

    root: str = option(
        "",
        "path",
        "For a list: the folder where relative paths begin (default: the current one).",
        lambda name, value: os.fspath(value),
    )
    quality: int = option(
        95,
        "int",
        "For a list: quality of the JPEG images that are aligned (default: 95).",
        partial(integer, low=1, high=100),
    )


def open_faces(settings: argparse.Namespace) -> ImportSource:
    """Read a list, or find the images of each person in a folder."""
    if os.path.isfile(settings.source):
        return ImportSource(listed_faces(settings))
    scan, notes = find_images(settings.source, settings.exts)
    people: dict[str, int] = {}
    images: list[tuple[str, int]] = []
    left_out = 0
    loose = []
    for entry in scan.entries:
        *folders, _ = parts = entry.path.split("/")
        if any(map(is_other, parts)):
            left_out += 1
        elif not folders:
            loose.append(Skipped(entry.path, "it lies in no folder, so it is of no person"))
        else:
            images.append((entry.path, people.setdefault(folders[0], len(people))))

    def items() -> Items:
        for path, person in images:
            try:
                content = read_content(os.path.join(settings.source, path), settings.check)
                yield Item((person,), content, path)
            except OSError as error:
                yield Skipped(path, error.strerror or str(error))
            except RecordIOError as error:
                yield Skipped(path, error.reason)
        yield from loose
        yield from scan.skipped
        if left_out:
            yield LeftOut({"images in hidden folders and those of the system": left_out})

    total = len(images) + len(loose) + len(scan.skipped)
    return ImportSource(items(), total, list(people), lambda: notes)


def is_other(name: str) -> bool:
    """Tell whether a folder or file is hidden or the system's, and so no person's."""
    return name.startswith((".", "@")) or name.lower() in OTHERS


def listed_faces(settings: argparse.Namespace) -> Items:
    """Yield the faces of a list as InsightFace's ``face2rec2.py`` reads it, aligned if need be."""
    source = settings.source
    with open(source, encoding="utf-8", errors="surrogateescape") as file:
        for number, line in bounded_lines(file, source):
            if not line.strip():
                continue
            try:
                yield listed_face(line.rstrip("\r\n"), settings)
            except OSError as error:
                reason = f"{error.filename}: {error.strerror or error}"
                yield Skipped(f"{source}, line {number}", reason)
            except RecordIOError as error:
                yield Skipped(f"{source}, line {number}", error.reason)


def listed_face(line: str, settings: argparse.Namespace) -> Item:
    """Read the face of one line."""
    fields = line.split("\t")
    if len(fields) not in WIDTHS or fields[0].strip() not in FLAGS:
        raise RecordIOError(
            "expected flag (1: aligned, 0: not), path and label, with TABs between them, and after "
            f"these 4 values of a box, and 10 of landmarks: {len(fields)} fields"
        )
    try:
        label = whole_number(fields[2])
        landmarks = np.array([float(field) for field in fields[7:]]).reshape(2, -1).T
    except ValueError:
        raise LabelError("a landmark is no number") from None
    if label is None:
        raise LabelError(f"its label {fields[2]!r:.40} is no whole number")
    if not 0 <= label < MOST_CLASSES:
        raise LabelError(f"its label {label} numbers no person: those count from 0")
    content = read_content(os.path.join(settings.root, fields[1]), settings.check)
    if not FLAGS[fields[0].strip()]:
        if not len(landmarks):
            raise RecordIOError("it is not aligned, and the line has no landmarks to align it by")
        pixels = decode_image(content, max_pixels=settings.max_pixels)
        content = encode_image(aligned(pixels, landmarks), "jpeg", quality=settings.quality)
    return Item((label,), content, fields[1])


def aligned(image: np.ndarray, landmarks: np.ndarray) -> np.ndarray:
    """Turn, scale and cut out a face, so that its five landmarks come near `PLACES`.

    The change is the similarity with the least squares of distances; pixels are interpolated
    between four, and those beside the image are black.
    """
    # Points as complex numbers: a similarity is place = factor * point + shift.
    points, places = landmarks @ (1, 1j), PLACES @ (1, 1j)
    spread = points - points.mean()
    size = np.vdot(spread, spread).real
    if not np.isfinite(size) or size == 0:
        raise RecordIOError("its landmarks are one point, or not finite: it cannot be aligned")
    factor = np.vdot(spread, places - places.mean()) / size
    if factor == 0:
        raise RecordIOError("its landmarks are those of no face: it cannot be aligned")
    rows, columns = np.mgrid[:SIDE, :SIDE]
    positions = (columns + 1j * rows - places.mean()) / factor + points.mean()
    height, width = image.shape[:2]
    padded = np.zeros((height + 2, width + 2, 3), np.float32)  # black around it
    padded[1:-1, 1:-1] = image
    x = np.clip(positions.real + 1, 0, width + 1)
    y = np.clip(positions.imag + 1, 0, height + 1)
    left, top = np.minimum(x.astype(int), width), np.minimum(y.astype(int), height)
    right, low = (x - left)[..., None], (y - top)[..., None]
    upper = padded[top, left] * (1 - right) + padded[top, left + 1] * right
    lower = padded[top + 1, left] * (1 - right) + padded[top + 1, left + 1] * right
    return np.rint(upper * (1 - low) + lower * low).astype(np.uint8)


def property_file(prefix: str) -> str:
    """Return the path of the file with the number of people and the size of the images."""
    return os.path.join(os.path.dirname(prefix), "property")


def write_faces(
    source: ImportSource,
    prefix: str,
    *,
    cancelled: Callable[[], bool] = lambda: False,
    **settings: Any,
) -> ImportReport:
    """Write the items of a source as a face-recognition pack, with ``property`` beside it.

    The images are written as an ordinary pack before, since record 0 and the keys need all labels.
    """
    start = time.perf_counter()
    with temporary_folder(prefix) as folder:
        plain = os.path.join(folder, "images")
        report = import_records(source, plain, cancelled=cancelled, **settings)
        names = {entry.id: entry.path for entry in read_list(f"{plain}.lst").entries}
        with ScannedPack(f"{plain}.rec") as images:
            rows = np.arange(len(images))
            labels = images.labels.first_of(rows).astype(np.int64)
            people = max(len(source.classes), int(labels.max()) + 1)
            keys, _ = face_keys(labels, people)
            order, tables = np.argsort(keys), (keys, labels, images.ids)
            lines = [
                format_line(ListEntry(key, (label,), names[number]))
                for key, label, number in zip(
                    *(table[order].tolist() for table in tables), strict=True
                )
                if number in names
            ]
            companions = {".lst": "".join(lines).encode("utf-8", "surrogateescape")}
            if source.classes:
                companions[".classes.txt"] = format_classes(dict(enumerate(source.classes)))
            plan = Plan(f"{prefix}.rec", np.zeros(len(rows), np.int32), rows, companions)
            written = write_packs([images], [plan], identities=people, cancelled=cancelled)
            sizes = np.unique(images.image_sizes, axis=0).tolist()
    notes = [*report.notes, *write_property(property_file(prefix), people, sizes)]
    write_skipped(prefix, report.skipped)
    seconds = time.perf_counter() - start
    size = written.outputs[0].bytes
    return replace(report, path=f"{prefix}.rec", bytes_written=size, notes=notes, seconds=seconds)


def write_property(path: str, people: int, sizes: list[list[int]]) -> list[str]:
    """Write the number of people and the size of all images, or say why not.

    A file of an older pack is removed.
    """
    if len(sizes) == 1 and min(sizes[0]) > 0:
        width, height = sizes[0]
        with open_output(path) as output:
            output.write(f"{people},{height},{width}\n".encode())
        return []
    remove_output(path)
    return [
        f"note: {path} is not written: it has one size for all images, and these have {len(sizes)};"
        " scripts that read it need faces that are aligned"
    ]


FROM_FACES = Import(
    "faces",
    "a folder of people, or a list of faces, as a face-recognition pack",
    [
        (
            "source",
            "the folder, with a folder of images for each person; or a list as InsightFace's "
            "face2rec2.py reads it: flag, path, label, box and landmarks",
            False,
        )
    ],
    open_faces,
    FaceOptions,
    """The pack has the layout of InsightFace: record 0, the images with keys from 1 on, and a
    record for each person. The file property beside it has the number of people and the size of
    the images, which stay untouched; a face of a list whose flag is 0 is aligned to 112 x 112 by
    its landmarks. Hidden folders and those of the system are no people.""",
    example=WITH_IMAGE
    + """>>> recordio.convert.from_faces(folder / "photos", folder / "train").records
1
>>> (folder / "property").read_text()
'1,4,6\\n'
""",
    write=write_faces,
    beside=lambda prefix: [property_file(prefix)],
)
