"""The kinds of fields that no option names, found from their contents, and their files.

A folder of images may hold masks or depths, and a table anything; its contents tell which.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from recordio.formats.image_header import read_header
from recordio.formats.table import IMAGE_KINDS, kind_of, suffixes_of
from recordio.packs.fields_meta import FieldMeta

#: Where the colour type stands in a PNG file, and the one of a palette.
COLOUR_TYPE, PALETTE = 25, 3
#: Values of a box, and bits of a value that needs 16 of them.
BOX, DEEP = 5, 16


def kind_of_value(labels: Sequence[float], content: bytes) -> FieldMeta:
    """Describe one record of a field by its labels and its content.

    A PNG image of one channel, or with a palette, of 8 bits counts as a mask.

    >>> kind_of_value([0.0], b"a cat"), kind_of_value([2, 5, 1, 0, 0, 1, 1], b"").kind
    (FieldMeta(kind='text', dtype=None, ignore=None, classes={}, ...), 'boxes')
    """
    if len(labels) > 1:
        is_box = labels[1] == BOX
        return FieldMeta(kind="boxes", format="xyxy") if is_box else FieldMeta(kind="keypoints")
    kind = kind_of(content)
    if kind in IMAGE_KINDS:
        return _image(content, kind)
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return FieldMeta(kind="bytes")
    if text.lstrip()[:1] in ("{", "["):
        try:
            json.loads(text)
        except (ValueError, RecursionError):
            return FieldMeta(kind="text")
        return FieldMeta(kind="json")
    return FieldMeta(kind="text")


def file_of(meta: FieldMeta | None, labels: Sequence[float], content: Any) -> tuple[str, bytes]:
    """Return the suffix and the content of a file that holds one record of a field.

    Objects become rows of numbers in JSON, as the tables of ``im2rec --field`` have them.

    >>> file_of(None, [2, 5, 1, 0, 0, 0.5, 1], b""), file_of(FieldMeta(kind="text"), [0], b"a cat")
    (('.json', b'[[1.0, 0.0, 0.0, 0.5, 1.0]]'), ('.txt', b'a cat'))
    """
    content = bytes(content)
    holds = (kind_of_value(labels, content) if meta is None else meta).content
    if holds == "objects":
        header, width = map(int, labels[:2])
        values = [float(str(np.float32(value))) for value in labels[header:]]
        rows = [values[first : first + width] for first in range(0, len(values), width)]
        return ".json", json.dumps(rows).encode()
    if (kind := kind_of(content)) in IMAGE_KINDS:
        return suffixes_of(kind)[0], content
    return {"text": ".txt", "json": ".json"}.get(holds, ".bin"), content


def _image(content: bytes, kind: str) -> FieldMeta:
    if kind != "png":
        return FieldMeta(kind="image")
    header = read_header(content)
    bits, channels = header.bits, header.channels
    if bits == DEEP:
        return FieldMeta(kind="image", dtype="uint16" if channels == 1 else None)
    is_mask = channels == 1 or content[COLOUR_TYPE] == PALETTE
    return FieldMeta(kind="mask", dtype="uint8") if is_mask else FieldMeta(kind="image")


class FoundKinds:
    """The kinds of some fields, known when all records were looked at; any thread may look.

    >>> kinds = FoundKinds(["caption"])
    >>> kinds.look("caption", [0.0], b"a cat")
    >>> kinds.described()["caption"].kind
    'text'
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._metas: dict[str, dict[str, FieldMeta]] = {name: {} for name in names}

    def look(self, name: str, labels: Sequence[float], content: bytes) -> None:
        """Take note of a record of a field."""
        meta = kind_of_value(labels, content)
        self._metas[name].setdefault(f"{meta.kind} {meta.dtype}", meta)

    def described(self) -> dict[str, FieldMeta]:
        """Describe each field; one of several kinds as what they have in common, or as bytes."""
        return {name: _common(list(metas.values())) for name, metas in self._metas.items()}


def _common(metas: list[FieldMeta]) -> FieldMeta:
    kinds = {meta.kind for meta in metas}
    if len(metas) == 1:
        return metas[0]
    if kinds and kinds <= {"mask", "image"}:
        return FieldMeta(kind="image")
    return FieldMeta(kind="text" if kinds == {"text", "json"} else "bytes")
