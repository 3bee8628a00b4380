"""Fields of a pack as its pages show them: the kind of each, and its content in a record.

`iterators.providers.show` says how a field is drawn, here as on contact sheets; this reads records.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import numpy as np

from iterators.core.field_specs import (
    Boxes,
    FieldKind,
    Image,
    Json,
    Keypoints,
    Mask,
    Objects,
    Text,
    field_of,
)
from iterators.images.contact_sheet import COLOURS, Layer
from iterators.images.fields.pixel_fields import decode_values
from iterators.providers.show import DRAWN, layer_of
from recordio.boxes import boxes_of, objects_of
from recordio.errors import FieldError, ImageDecodeError, RecordIOError
from recordio.formats.table import IMAGE_KINDS, kind_of
from recordio.header import unpack
from recordio.packs.open_pack import FieldPack, OpenPack

from ..payloads import describe
from .contents import read_content

#: Records that are looked at for the kind of a field.
LOOKED_AT = 8
#: Characters of a field that the page of a record shows.
MOST_WORDS = 1000
#: Values of a mask in its legend.
MOST_VALUES = 24
POINT = 3


class Stored(NamedTuple):
    """Record of a field: its labels, its content, and the kind of that."""

    labels: np.ndarray
    content: memoryview
    kind: str


class Swatch(NamedTuple):
    """Line of the legend of a mask: the number of a colour, a name, and the share of the pixels."""

    colour: int  # -1 for pixels that are to be ignored
    name: str
    share: float


class FieldOnPage(NamedTuple):
    """Field of a record."""

    name: str
    kind: str
    words: str
    text: str = ""  # what a caption has
    is_picture: bool = False
    legend: tuple[Swatch, ...] = ()


class ShownFields:
    """The fields of a pack; opening them reads the indexes, and looks into a few records."""

    def __init__(self, opened: OpenPack) -> None:
        self._opened = opened
        self._packs: dict[str, FieldPack] = {}
        #: What the fields are, by name; those that cannot be told are missing.
        self.kinds: dict[str, FieldKind] = {}
        #: What is wrong with the others.
        self.notes: list[str] = []
        versions = []
        try:
            names = opened.field_names
        except (RecordIOError, OSError) as error:
            names = []
            self.notes.append(f"fields are not shown: {error}")
        for name in names:
            try:
                self._packs[name] = opened.field(name)
                versions.append(self._packs[name].version())
                meta = opened.fields_meta.get(name)
                said = None if meta is None or meta.kind == "bytes" else field_of(name, meta)
                kind = self._found_kind(name) if meta is None else said
                if kind is not None:
                    self.kinds[name] = kind
            except (RecordIOError, OSError) as error:
                self.notes.append(f"field {name} is not shown: {error}")
        #: A number that changes with the content of the fields.
        self.version = zlib.crc32(repr(versions).encode())

    @property
    def drawn(self) -> list[str]:
        """Names of the fields that are drawn over an image."""
        return [name for name, kind in self.kinds.items() if isinstance(kind, DRAWN)]

    def whole(self) -> dict[str, FieldKind]:
        """Return the kinds of fields that every image has, and that training shows."""
        kinds = {n: kind for n, kind in self.kinds.items() if isinstance(kind, (*DRAWN, Text))}
        return {name: kind for name, kind in kinds.items() if not len(self._packs[name].missing)}

    def layers(self, key: int, shape: tuple[int, ...], hidden: Collection[str] = ()) -> list[Layer]:
        """Return what is drawn over the picture of a record, which has any size.

        A field that is damaged is left out: the page of the record says so.
        """
        layers = []
        for name in self.drawn:
            if name not in hidden:
                try:
                    stored = self._stored(name, key)
                    value = None if stored is None else self._value(name, stored, shape)
                except (RecordIOError, OSError):
                    continue
                meta = self._opened.fields_meta.get(name)
                layer = None if value is None else layer_of(self.kinds[name], value, shape, meta)
                layers += [] if layer is None else [layer]
        return layers

    def texts(self, key: int) -> list[str]:
        """Return the texts of a record, without those that cannot be read."""
        names = [name for name, kind in self.kinds.items() if isinstance(kind, Text)]
        return [field.text for field in self.on_page(key, None, names) if field.text]

    def on_page(
        self, key: int, size: tuple[int, int] | None, names: Collection[str] | None = None
    ) -> list[FieldOnPage]:
        """Return what a record of an image of some size has of each field."""
        fields = []
        for name in self._packs if names is None else names:
            try:
                stored = self._stored(name, key)
                if stored is not None:
                    fields.append(self._on_page(name, stored, size))
            except (RecordIOError, OSError) as error:
                fields.append(FieldOnPage(name, "", getattr(error, "reason", str(error))))
        return fields

    def picture(self, name: str, key: int) -> Any:
        """Return the content of a field that is an image, or its values as grey levels."""
        stored = self._stored(name, key) if name in self.kinds else None
        if stored is None or stored.kind not in IMAGE_KINDS:
            raise ImageDecodeError("no image")
        if getattr(self.kinds[name], "dtype", None) != "uint16":
            return stored.content
        values = decode_values(bytes(stored.content), exact=False).astype(np.float32)
        grey = np.rint(values * (255 / max(float(values.max(initial=0)), 1)))
        return grey.astype(np.uint8)[..., None]

    # -- records ----------------------------------------------------------------------------------

    def _stored(self, name: str, key: int) -> Stored | None:
        """Read a field of the record with a key; None of a record that is no image of the pack."""
        keys = self._opened.keys
        rows = [key] if 0 <= key < len(keys) and keys[key] == key else np.flatnonzero(keys == key)
        return None if not len(rows) else self._read(name, int(rows[-1]))

    def _read(self, name: str, row: int) -> Stored:
        header, content = unpack(self._packs[name].record(row))
        labels = np.atleast_1d(np.asarray(header.label, np.float32))
        return Stored(labels, memoryview(content), kind_of(content))

    def _found_kind(self, name: str) -> FieldKind | None:
        """Tell the kind of a field by its first records; None if nothing is in them."""
        for row in np.flatnonzero(self._packs[name].rows >= 0)[:LOOKED_AT].tolist():
            try:
                kind = _kind_of(self._read(name, row))
            except RecordIOError:
                continue
            if kind is not None:
                return kind
        return None

    def _value(self, name: str, stored: Stored, shape: tuple[int, ...]) -> np.ndarray:
        """Return a field as it is in a batch of pictures of some shape."""
        kind, (height, width) = self.kinds[name], shape[:2]
        if isinstance(kind, Mask):
            values = decode_values(bytes(stored.content))
            return values[_nearest(len(values), height)][:, _nearest(values.shape[1], width)]
        if isinstance(kind, Boxes):
            objects = boxes_of(stored.labels)
            sides = np.array([width, height, width, height], np.float32)
            return np.append(objects[:, :1], objects[:, 1:5] * sides, 1)
        objects = objects_of(stored.labels, POINT)
        if not np.isfinite(objects).all():
            raise FieldError("a coordinate is not a finite number")
        if objects.shape[1] % POINT:
            raise FieldError(f"an instance has {objects.shape[1]} values: expected x, y, v each")
        return objects.reshape(len(objects), -1, POINT) * np.array([width, height, 1], "f4")

    def _on_page(self, name: str, stored: Stored, size: tuple[int, int] | None) -> FieldOnPage:
        kind = self.kinds.get(name)
        word = "" if kind is None else kind.word
        if isinstance(kind, Objects):
            shape = (1, 1) if size is None else size[::-1]
            return FieldOnPage(name, word, _counted(kind, self._value(name, stored, shape)))
        if stored.kind in IMAGE_KINDS:
            words = f"{stored.kind}, {describe(stored.content, stored.kind)}"
            legend: tuple[Swatch, ...] = ()
            if isinstance(kind, Mask):
                values = decode_values(bytes(stored.content))
                if size is not None and values.shape != size[::-1]:
                    words += ", another size than the image"
                meta = self._opened.fields_meta.get(name)
                legend = _legend(values, kind, {} if meta is None else meta.classes)
            is_picture = kind is not None and not isinstance(kind, DRAWN)
            return FieldOnPage(name, word, words, "", is_picture, legend)
        text = read_content(stored.content, stored.kind).text
        text = text if len(text) <= MOST_WORDS else f"{text[:MOST_WORDS]}..."
        return FieldOnPage(name, word, text, text if isinstance(kind, Text) else "")


def _kind_of(stored: Stored) -> FieldKind | None:
    """Tell the kind of a field by one record; None if it holds nothing."""
    if stored.kind in IMAGE_KINDS:
        try:
            values = decode_values(bytes(stored.content))
        except ImageDecodeError:
            return Image()
        return Image(dtype="uint16") if values.dtype == np.uint16 else Mask()
    if len(stored.labels) > 1:
        objects = objects_of(stored.labels, POINT)
        if not len(objects):
            return None
        seen = objects[:, 2::POINT]
        is_points = objects.shape[1] % POINT == 0 and np.isin(seen, (0, 1, 2)).all()
        return Keypoints() if is_points else Boxes()
    if stored.kind == "empty":
        return None
    try:
        json.loads(bytes(stored.content))
    except (ValueError, RecursionError):
        return Text()
    return Json() if bytes(stored.content[:1]) in (b"{", b"[") else Text()


def _counted(kind: Objects, objects: np.ndarray) -> str:
    if isinstance(kind, Boxes):
        return f"{len(objects)} object{'s' if len(objects) != 1 else ''}"
    seen = objects[..., 2]
    words = f"{len(objects)} instance{'s' if len(objects) != 1 else ''}"
    if len(objects):
        words += f" of {objects.shape[1]} points, {(seen > 1).sum()} seen, "
        words += f"{(seen == 1).sum()} hidden"
    return words


def _legend(values: np.ndarray, kind: Mask, names: Mapping[int, str]) -> tuple[Swatch, ...]:
    """List the values of a mask, without the background, the most frequent first."""
    classes, counts = np.unique(values, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    lines = []
    for value, count in zip(classes[order].tolist(), counts[order].tolist(), strict=True):
        share = count / values.size
        if value == kind.ignore:
            lines.append(Swatch(-1, "ignored", share))
        elif value:
            lines.append(Swatch((value - 1) % len(COLOURS), names.get(value, str(value)), share))
    return tuple(lines[:MOST_VALUES])


def _nearest(count: int, target: int) -> np.ndarray:
    """Find the pixel in whose middle, or nearest to it, the middle of each target pixel lies."""
    return (2 * np.arange(target) + 1) * count // (2 * target)
