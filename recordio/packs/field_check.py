"""Check whether a pack and its fields match: keys, and the sizes of images and masks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ..boxes import LEAST_HEADER, LEAST_OBJECT
from ..errors import RecordIOError
from ..formats.table import IMAGE_KINDS
from ..frames.check import Problem, verify
from ..payload import read_payload
from .fields_meta import FieldMeta
from .open_pack import FieldPack, OpenPack
from .scanned_container import scan_again
from .sizes import measured_sizes

#: Keys that a problem names.
SHOWN = 5
#: Values of a key point.
POINT = 3


def field_problems(pack: OpenPack) -> list[Problem]:
    """List what is wrong with the fields of a pack, or with how they fit it.

    Contents are compared with what ``PREFIX.fields.json`` says of them, and no pixel is decoded.
    """
    problems = []
    try:
        names = pack.field_names
    except RecordIOError as error:
        return [Problem("field", str(error))]
    for name in names:
        try:
            field = pack.field(name)
            problems += list(_damage(field)) or [
                *_misfits(pack, field),
                *(_unlike(pack, field) or _faulty(pack, field)),
            ]
        except RecordIOError as error:
            problems.append(Problem("field", f"field {name}: {error}"))
    return problems


def _damage(field: FieldPack) -> Iterator[Problem]:
    if field.container is not None:
        return
    index = None if field.index is None else field.index.name
    report = verify(field.file.name, index, field.checksums_path)
    for problem in report.problems:
        yield Problem("field", f"field {field.name}, {field.path}: {problem}")


def _misfits(pack: OpenPack, field: FieldPack) -> Iterator[Problem]:
    about = f"field {field.name}"
    if len(field.missing):
        yield _problem(about, "no record", field.keys[field.missing])
    if field.container is None and len(field.foreign):
        yield _problem(about, "no image, but a record", field.foreign)
    images = np.concatenate([measured_sizes(file) for file in pack.sized_files()])
    images = pack.without_identities(images)
    masks = np.concatenate([measured_sizes(file) for file in field.sized_files()])
    masks = np.append(masks, np.zeros((1, 2), masks.dtype), axis=0)[field.rows]
    unequal = np.flatnonzero((images != masks).any(axis=1) & images.any(axis=1) & masks.any(axis=1))
    if len(unequal):
        row = int(unequal[0])
        (width, height), (mask_width, mask_height) = images[row].tolist(), masks[row].tolist()
        yield _problem(
            about,
            f"another size than the image ({mask_width}x{mask_height}, not {width}x{height})",
            field.keys[unequal],
        )


def _faulty(pack: OpenPack, field: FieldPack) -> Iterator[Problem]:
    """Find boxes that cannot be right; without a description their width tells boxes."""
    meta = pack.fields_meta.get(field.name)
    if meta is not None and meta.kind != "boxes":
        return
    with scan_again(field) as scanned:
        scanned.problems.clear()  # found by others
        if not scanned.is_detection:
            return
        if meta is None and (scanned.object_widths % POINT == 0).any():
            return
        scanned.note_faulty_objects()
        for problem in scanned.problems:
            reason = f"field {field.name}, {field.path}: {problem.reason}"
            yield replace(problem, kind="field", reason=reason)


def _unlike(pack: OpenPack, field: FieldPack) -> list[Problem]:
    """Find records that are not of the kind that is written down."""
    meta = pack.fields_meta.get(field.name)
    if meta is None:
        return []
    rows: dict[str, list[int]] = {}
    for row in np.flatnonzero(field.rows >= 0).tolist():
        reason = _difference(meta, field.record(row))
        if reason:
            rows.setdefault(reason, []).append(row)
    return [
        _problem(f"field {field.name}", f"{reason}, of kind {meta.kind}", field.keys[wrong])
        for reason, wrong in rows.items()
    ]


def _difference(meta: FieldMeta, record: memoryview) -> str:
    """Say in which respect a record is not what it is said to be; "" if it is."""
    header, content, kind = read_payload(record)
    if header is None:
        return "no image header"
    if meta.content == "objects":
        width = _object_width(header.label)
        points = len(meta.points)
        if meta.kind == "keypoints" and points and width not in (None, 0, POINT * points):
            return f"other than {points} points"
        wrong = width is None or (width < LEAST_OBJECT and width > 0 and meta.kind == "boxes")
        return "no label of objects" if wrong else ""
    if meta.content == "pixels":
        return "" if kind in IMAGE_KINDS else f"{kind} content"
    if meta.content == "bytes":
        return ""
    try:
        text = str(content, "utf-8")
        if meta.content == "json":
            json.loads(text)
    except (ValueError, RecursionError):
        return "other content"
    return ""


def _object_width(label: Any) -> int | None:
    """Count the values of an object in a label, 0 where it lists none; None of any other label."""
    values = np.atleast_1d(label).astype(float)
    if len(values) < LEAST_HEADER or not np.isfinite(values[:2]).all():
        return None
    header, width = values[:2].tolist()
    rest = len(values) - header
    whole = header.is_integer() and width.is_integer() and width >= POINT
    return int(width) * bool(rest) if whole and rest >= 0 == rest % width else None


def _problem(about: str, what: str, keys: np.ndarray) -> Problem:
    named = ", ".join(map(str, keys[:SHOWN].tolist())) + (", ..." if len(keys) > SHOWN else "")
    return Problem("field", f"{about}: {len(keys)} with {what}: keys {named}")
