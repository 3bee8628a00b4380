"""The kinds of fields that nobody names: found by what is packed of each.

A folder of images may hold masks or depths, and a table anything; its contents tell which.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from recordio.formats.headers import png_facts
from recordio.formats.table import IMAGE_KINDS, kind_of
from recordio.packs.fields_meta import FieldMeta

__all__ = ["FoundKinds", "kind_of_value"]

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


def _image(content: bytes, kind: str) -> FieldMeta:
    facts = png_facts(memoryview(content)) if kind == "png" else None
    if facts is None:
        return FieldMeta(kind="image")
    bits, channels, _ = facts
    if bits == DEEP:
        return FieldMeta(kind="image", dtype="uint16" if channels == 1 else None)
    is_mask = channels == 1 or content[COLOUR_TYPE] == PALETTE
    return FieldMeta(kind="mask", dtype="uint8") if is_mask else FieldMeta(kind="image")


class FoundKinds:
    """The kinds of some fields, known when all records were looked at; any thread may look.

    >>> found = FoundKinds(["caption"])
    >>> found.look("caption", [0.0], b"a cat")
    >>> found.described()["caption"].kind
    'text'
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._found: dict[str, dict[str, FieldMeta]] = {name: {} for name in names}

    def look(self, name: str, labels: Sequence[float], content: bytes) -> None:
        """Take note of a record of a field."""
        meta = kind_of_value(labels, content)
        self._found[name].setdefault(f"{meta.kind} {meta.dtype}", meta)

    def described(self) -> dict[str, FieldMeta]:
        """Describe each field; one of several kinds as what they have in common, or as bytes."""
        return {name: _common(list(found.values())) for name, found in self._found.items()}


def _common(found: list[FieldMeta]) -> FieldMeta:
    kinds = {meta.kind for meta in found}
    if len(found) == 1:
        return found[0]
    if kinds and kinds <= {"mask", "image"}:
        return FieldMeta(kind="image")
    return FieldMeta(kind="text" if kinds == {"text", "json"} else "bytes")
