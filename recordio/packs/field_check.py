"""Look whether the packs of a set belong together: keys, and the sizes of images and masks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..errors import RecordIOError
from ..frames.check import Problem, verify
from .open_pack import FieldPack, OpenPack
from .sizes import measured_sizes

__all__ = ["field_problems"]

#: Keys that a problem names.
SHOWN = 5


def field_problems(pack: OpenPack) -> list[Problem]:
    """List what is wrong with the fields of a pack, or with how they fit it."""
    found = []
    for name in pack.field_names:
        try:
            field = pack.field(name)
            damage = list(_damage(field))
            found += damage or list(_misfits(pack, field))
        except RecordIOError as error:
            found.append(Problem("field", f"field {name}: {error}"))
    return found


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
    images = np.concatenate([measured_sizes(one) for one in pack.sized_files()])
    images = pack.without_identities(images)
    masks = np.concatenate([measured_sizes(one) for one in field.sized_files()])
    masks = np.append(masks, np.zeros((1, 2), masks.dtype), axis=0)[field.rows]
    other = np.flatnonzero((images != masks).any(axis=1) & images.any(axis=1) & masks.any(axis=1))
    if len(other):
        row = int(other[0])
        (width, height), (mask_width, mask_height) = images[row].tolist(), masks[row].tolist()
        yield _problem(
            about,
            f"another size than the image ({mask_width}x{mask_height}, not {width}x{height})",
            field.keys[other],
        )


def _problem(about: str, what: str, keys: np.ndarray) -> Problem:
    named = ", ".join(map(str, keys[:SHOWN].tolist())) + (", ..." if len(keys) > SHOWN else "")
    return Problem("field", f"{about}: {len(keys)} with {what}: keys {named}")
