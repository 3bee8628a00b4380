"""`show`: a batch of images as a contact sheet, to look at in a notebook.

What normalisation did to the pixels is known to the provider that made a batch, and undone by its
method `show`; of a batch alone the numbers are shown as well as that goes, and the title says how.
`tiles_of` and `layer_of` say what is drawn of a batch and of a field, for sheets and for pages.
"""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from recordio.boxes import boxes_of
from recordio.errors import LabelError
from recordio.packs.classes import SUFFIX, read_classes
from recordio.packs.fields_meta import KINDS, FieldMeta
from recordio.packs.open_pack import open_pack

from ..core.batch import DataBatch, axes_of
from ..core.device import NumpyDevice
from ..core.field_specs import (
    Boxes,
    FieldKind,
    Keypoints,
    Mask,
    Objects,
    Text,
    checked_fields,
    field_of,
)
from ..core.layout import LayoutError, plan
from ..images.contact_sheet import IGNORED, Layer, Tile, contact_sheet
from ..samples import Dataset, Sample

if TYPE_CHECKING:
    from PIL.Image import Image

#: Images of a batch that a notebook shows by itself.
MOST_PICTURES = 16

#: Fields that are drawn over the image; texts stand below it.
DRAWN = (Mask, Objects)
#: Names of labels: as they are, or where they are.
Classes = Mapping[int, str] | Sequence[str] | str | os.PathLike[str] | None
#: ``pixels(images, source)``: normalised images, (batch, height, width, channels), as grey levels.
Pixels = Callable[[np.ndarray, Any], np.ndarray]


def show(
    batch: DataBatch | Sample,
    *,
    classes: Classes = None,
    columns: int = 8,
    fields: Mapping[str, FieldKind] | None = None,
) -> Image:
    """Draw the images of a batch side by side, with their labels and fields; padding is faint.

    Masks are drawn over the images, one colour for each value and stripes where it is to be
    ignored; key points as discs, or rings where they are hidden; boxes, and texts below.

    Parameters
    ----------
    batch : DataBatch or Sample
        A `Dataset` of `ImageRecordDataset`, a row of it, or a field of one, such as ``d.input`` or
        ``d.mask[8:16]``: at most 16 rows of it, with what is known of their parts.  Or a batch of
        an image provider: 4 axes, 1, 3 or 4 channels, on any device.  Pixels of uint8, and
        floats from 0 to 255, are shown as they are; floats from 0 to 1 times 255; anything else,
        normalised pixels for example, is stretched from its least value to its greatest, and the
        title says so.  `ImageRecordIter.show` undoes the normalisation instead.
    classes : mapping of int to str, sequence of str, or path, optional
        Names of the labels, or the pack or ``.classes.txt`` file that they are taken from.
    columns : int
        Images in a row, at least 1.
    fields : mapping of str to field, optional
        The kinds of the arrays and lists of the batch, from `iterators.fields`, by name; by default
        those of the provider that made the batch.

    Returns
    -------
    PIL.Image.Image
        RGB; notebooks show it by themselves.

    Raises
    ------
    ValueError
        If the batch holds no images, a field does not have the shape that it should, or there are
        no names of classes beside the pack.
    KeyError
        If the batch has no array or list with the name of a field.
    RecordIOError
        If the file of class names is damaged.

    Examples
    --------
    >>> from iterators import ArrayDataProvider, show
    >>> images = np.zeros((4, 3, 80, 80), np.uint8)
    >>> with ArrayDataProvider(images, np.arange(4), batch_size=4) as provider:
    ...     show(provider.next()).size
    (340, 124)
    """
    if fields is not None:
        checked = checked_fields("fields", fields)
        fields = {name: kind for name, kind in checked.items() if kind is not None}
        if len(fields) < len(checked):
            raise ValueError(f"fields={checked!r:.60}: give the kind of each, such as Mask()")
    if isinstance(batch, Sample):
        return _show_samples(batch, classes, columns, fields or {})
    return show_batch(batch, None, "", classes, columns, fields=fields)


def show_batch(
    batch: DataBatch,
    pixels: Pixels | None,
    title: str,
    classes: Classes,
    columns: int,
    most: int | None = None,
    fields: Mapping[str, FieldKind] | None = None,
    described: Mapping[str, FieldMeta] = MappingProxyType({}),
) -> Image:
    """A batch, or the first `most` of its images, with fields, as a contact sheet; see `show`."""
    names = _names(classes)
    tiles, note = tiles_of(batch, pixels, names, most, fields, described)
    count = batch.count_samples()
    words = [title, f"{count} images", f"pad {batch.pad}" if batch.pad else "", note]
    return contact_sheet(tiles, ", ".join(part for part in words if part), columns, names)


def tiles_of(
    batch: DataBatch,
    pixels: Pixels | None,
    names: Mapping[int, str],
    most: int | None = None,
    fields: Mapping[str, FieldKind] | None = None,
    described: Mapping[str, FieldMeta] = MappingProxyType({}),
) -> tuple[list[Tile], str]:
    """The images of a batch with what is drawn over them, and how numbers became grey levels.

    `described` has the names of classes and the skeletons of fields, by their names in the pack.
    """
    fields = batch.kinds if fields is None else fields
    parts = [part[:most] for part in _images(batch)][:most]
    note = ""
    if pixels is not None:
        ends = np.cumsum([len(part) for part in parts])
        sources = [None] * len(parts) if batch.source is None else np.split(batch.source, ends)
        parts = [pixels(*part) for part in zip(parts, sources, strict=False)]
    elif parts[0].dtype != np.uint8:
        parts, note = _stretched(parts)
    images = [np.clip(np.rint(one), 0, 255).astype(np.uint8) for part in parts for one in part]
    count = batch.count_samples()
    values = {
        name: _values(batch, name, kind)
        for name, kind in fields.items()
        if isinstance(kind, (*DRAWN, Text)) and not _is_of_a_later_view(name, fields)
    }
    tiles = []
    for number, image in enumerate(images):
        caption, layers = _labelled(batch, number, image.shape, names)
        padding = number >= count
        for name, own in values.items():
            if isinstance(fields[name], Text) and not padding:
                caption = f"{caption} {' '.join(own[number].split())}".strip()
            meta = described.get(name) or described.get(name[:-1])  # of the first view
            if (layer := layer_of(fields[name], own[number], image.shape, meta)) is not None:
                layers.append(layer)
        caption = f"pad {caption}".rstrip() if padding else caption
        tiles.append(Tile(image, caption, layers, padding))
    return tiles, note


def _values(batch: DataBatch, name: str, kind: FieldKind) -> Any:
    """A field of a batch, by sample."""
    values = batch[name]
    if not kind.is_array:
        return values
    values = NumpyDevice().send(values)
    if isinstance(kind, Objects) and kind.packed:
        return np.split(values, NumpyDevice().send(batch[f"{name}_offsets"])[1:-1])
    return values


def layer_of(
    kind: FieldKind, value: Any, shape: tuple[int, ...], meta: FieldMeta | None = None
) -> Layer | None:
    """Return what is drawn of a field over its image; None of fields that are not drawn.

    Shapes that cannot be drawn over an image of `shape` are a ValueError.
    """
    height, width = shape[:2]
    if isinstance(kind, Mask):
        if value.shape != (height, width):
            raise ValueError(f"a mask of {value.shape} pixels is none of {height} x {width}")
        values = value.astype(np.int64)
        return Layer("mask", np.where(values == kind.ignore, IGNORED, values))
    if isinstance(kind, Keypoints):
        if value.ndim != 3 or value.shape[2] != 3:
            raise ValueError(f"an array {value.shape} holds no points: expected (n, points, 3)")
        lines = () if meta is None else meta.skeleton
        return Layer("points", value, lines=[p for p in lines if max(p) < value.shape[1]])
    if isinstance(kind, Boxes):
        if value.ndim != 2 or value.shape[1] < 5:
            raise ValueError(f"an array {value.shape} holds no boxes: expected (n, 5)")
        names = None if meta is None else meta.classes or None
        return Layer("boxes", _corners(value, kind.format, width, height), names)
    return None


def _is_of_a_later_view(name: str, fields: Mapping[str, FieldKind]) -> bool:
    """Tell whether a field belongs to another view than the first, the one that is shown."""
    return name.endswith(tuple("123456789")) and f"{name[:-1]}0" in fields


def _show_samples(
    samples: Sample, classes: Classes, columns: int, fields: Mapping[str, FieldKind]
) -> Image:
    """Rows of a data set, or one of them, as a contact sheet."""
    rows = list(samples[:MOST_PICTURES]) if isinstance(samples, Dataset) else [samples]
    facts = {name: part._meta for name, part in samples._iter_fields()} or {"": samples._meta}
    if classes is None:
        of_labels = [meta for meta in facts.values() if meta.get("kind") == "label"]
        classes = of_labels[0].get("classes") if of_labels else None
    values = [{name: row._field(name)() if name else row() for name in facts} for row in rows]
    of_images = [name for name, meta in facts.items() if meta.get("kind", "image") == "image"]
    kinds = {name: _kind_of(name, meta, fields) for name, meta in facts.items()}
    if of_images:
        layout = facts[of_images[0]].get("layout")
        layout = f"N{layout}" if layout else None
        parts = [_images_of(NumpyDevice().send(one[of_images[0]])[None], layout) for one in values]
        parts, note = (parts, "") if parts[0].dtype == np.uint8 else _stretched(parts)
        images = [np.clip(np.rint(part[0]), 0, 255).astype(np.uint8) for part in parts]
    else:
        masks = [name for name, kind in kinds.items() if isinstance(kind, Mask)]
        if not masks:
            raise ValueError(f"{samples!r} has no image and no mask")
        images = [np.zeros((*one[masks[0]].shape, 3), np.uint8) for one in values]
        note = ""
    names = _names(classes)
    tiles = []
    for image, own in zip(images, values, strict=True):
        layers = [
            layer_of(kind, own[name], image.shape, _meta_of(facts[name]))
            for name, kind in kinds.items()
            if kind is not None
        ]
        texts = [_caption(facts[name], kinds[name], own[name], names) for name in facts]
        caption = " ".join(filter(None, texts))
        tiles.append(Tile(image, caption, [layer for layer in layers if layer is not None]))
    count = samples._length() if isinstance(samples, Dataset) else 1
    counted = f"{len(rows)} of {count:g} rows" if len(rows) < count else f"{len(rows)} rows"
    return contact_sheet(tiles, ", ".join(filter(None, [counted, note])), columns, names)


def _kind_of(
    name: str, facts: Mapping[str, Any], fields: Mapping[str, FieldKind]
) -> FieldKind | None:
    """Return the kind of a part of a sample; None of images, labels, and what is not known."""
    meta = _meta_of(facts)
    kind = None if meta is None else field_of(name, meta)
    return fields.get(name) or facts.get("field") or kind


def _meta_of(facts: Mapping[str, Any]) -> FieldMeta | None:
    """Return the description of a part of a sample, if it is a field that may be drawn."""
    if facts.get("kind", "image") in ("image", "bytes") or facts["kind"] not in KINDS:
        return None
    return FieldMeta(**{n: facts[n] for n in ("kind", *KINDS[facts["kind"]].facts) if n in facts})


def _caption(
    facts: Mapping[str, Any], kind: FieldKind | None, value: Any, names: Mapping[int, str]
) -> str:
    """Return the words for a label or a text."""
    if isinstance(kind, Text):
        return " ".join(value.split())
    if facts.get("kind") != "label":
        return ""
    shown = np.atleast_1d(value)[:3].tolist()
    return " ".join(names.get(one, f"{one:g}") for one in shown)


def pictures(batch: DataBatch) -> str:
    """Return the first images of a batch as HTML, for notebooks; "" if it holds none."""
    try:
        sheet = show_batch(batch, None, "", None, 8, MOST_PICTURES)
    except (ValueError, ModuleNotFoundError):  # no images, or no Pillow that would draw them
        return ""
    stored = io.BytesIO()
    sheet.save(stored, "PNG")
    return f'<br><img src="data:image/png;base64,{base64.b64encode(stored.getvalue()).decode()}">'


def _images(batch: DataBatch) -> list[np.ndarray]:
    """The images of a batch: (images, height, width, channels) each, one where all are as large."""
    desc = batch.provide_data[0] if batch.provide_data else None
    layout = getattr(desc, "layout", None)
    data = batch.data[0] if batch.data else np.empty(0)
    if isinstance(data, list):
        return [_images_of(NumpyDevice().send(one)[None], f"N{layout}") for one in data]
    return [_images_of(NumpyDevice().send(data), layout)]


def _images_of(data: np.ndarray, layout: str | None) -> np.ndarray:
    """The images in an array: (batch, height, width, channels)."""
    axes = axes_of(layout, data.ndim)
    try:
        images = plan(axes, "bhwc")(data)
    except LayoutError:
        images = None
    if images is None or data.ndim != 4 or images.shape[3] not in (1, 3, 4):
        raise ValueError(
            f"an array of shape {data.shape} with the axes {axes} holds no images of 1, 3 or 4 "
            "channels"
        )
    return images


def _stretched(parts: list[np.ndarray]) -> tuple[list[np.ndarray], str]:
    """Floats as grey levels, and what was done to them."""
    parts = [part.astype(np.float32) for part in parts]
    low = min((float(part.min()) for part in parts if part.size), default=0.0)
    high = max((float(part.max()) for part in parts if part.size), default=0.0)
    if low >= 0 and 1 < high <= 255:
        return parts, ""
    if low >= 0 and high <= 1:
        return [part * 255 for part in parts], "times 255"
    factor = 255 / max(high - low, 1e-12)
    return [(part - low) * factor for part in parts], f"{low:.3g} to {high:.3g} as 0 to 255"


def _names(classes: Classes) -> Mapping[int, str]:
    if classes is None or isinstance(classes, Mapping):
        return classes or {}
    if not isinstance(classes, (str, os.PathLike)):
        return dict(enumerate(classes))
    path = os.fspath(classes)
    names = read_classes(path) if path.endswith(SUFFIX) else open_pack(path).shown_classes
    if not names:
        raise ValueError(f"classes={classes!r}: there are no names of classes beside this pack")
    return names


def _labelled(
    batch: DataBatch, number: int, shape: tuple[int, ...], names: Mapping[int, str]
) -> tuple[str, list[Layer]]:
    """The caption of a sample, and its boxes if its label lists some."""
    if not batch.label:
        return "", []
    label = np.atleast_1d(NumpyDevice().send(batch.label[0])[number])
    objects = _objects_of_row(label, shape)
    if objects is not None:
        caption = f"{len(objects)} object{'s' if len(objects) != 1 else ''}"
        return caption, [Layer("boxes", objects)]
    shown = [names.get(int(v), f"{v:g}") if float(v).is_integer() else f"{v:g}" for v in label[:3]]
    return " ".join(shown) + (" ..." if len(label) > 3 else ""), []


def _corners(rows: np.ndarray, form: str, width: int, height: int) -> np.ndarray:
    """Return boxes in pixels as class and corners in fractions of the image."""
    boxes = rows[:, :5].astype(float)
    if form == "cxcywh":
        boxes[:, 1:3] -= boxes[:, 3:5] / 2
    if form != "xyxy":
        boxes[:, 3:5] += boxes[:, 1:3]
    boxes[:, 1:] /= (width, height, width, height)
    return boxes


def _objects_of_row(label: np.ndarray, shape: tuple[int, ...]) -> np.ndarray | None:
    """The objects in a row of labels of `ImageDetRecordIter`; None of any other row."""
    height, width, channels = shape
    if tuple(label[:3]) != (channels, height, width):
        return None
    try:
        return boxes_of(label, in_batch=True)[:, :5].astype(float)
    except LabelError:
        return None
