"""`show`: a batch of images as a contact sheet, to look at in a notebook.

What normalisation did to the pixels is known to the provider that made a batch, and undone by its
method `show`; of a batch alone the numbers are shown as well as that goes, and the title says how.
"""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from recordio.boxes import boxes_of
from recordio.errors import LabelError
from recordio.packs.classes import SUFFIX, read_classes
from recordio.packs.open_pack import open_pack

from ..core.batch import DataBatch, axes_of
from ..core.device import NumpyDevice
from ..core.field_specs import Boxes, FieldKind, Keypoints, Mask, Objects, Text
from ..core.layout import LayoutError, plan
from ..images.contact_sheet import Tile, contact_sheet

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["Classes", "Pixels", "objects_of_row", "pictures", "show", "show_batch"]

#: Images of a batch that a notebook shows by itself.
MOST_PICTURES = 16

#: Names of labels: as they are, or where they are.
Classes = Mapping[int, str] | Sequence[str] | str | os.PathLike[str] | None
#: ``pixels(images, source)``: normalised images, (batch, height, width, channels), as grey levels.
Pixels = Callable[[np.ndarray, Any], np.ndarray]


def show(
    batch: DataBatch,
    *,
    classes: Classes = None,
    columns: int = 8,
) -> Image:
    """The images of a batch side by side, with their labels; padding is faint.

    Parameters
    ----------
    batch : DataBatch
        Of an image provider: 4 axes, 1, 3 or 4 channels, on any device.  Pixels of uint8, and
        floats from 0 to 255, are shown as they are; floats from 0 to 1 times 255; anything else,
        normalised pixels for example, is stretched from its least value to its greatest, and the
        title says so.  `ImageRecordIter.show` undoes the normalisation instead.
    classes : mapping of int to str, sequence of str, or path, optional
        Names of the labels, or the pack or ``.classes.txt`` file that they are taken from.
    columns : int
        Images in a row, at least 1.

    Returns
    -------
    PIL.Image.Image
        RGB; notebooks show it by themselves.

    Raises
    ------
    ValueError
        If the batch holds no images, or there are no names of classes beside the pack.
    RecordIOError
        If the file of their names is damaged.

    Examples
    --------
    >>> from iterators import ArrayDataProvider, show
    >>> images = np.zeros((4, 3, 80, 80), np.uint8)
    >>> with ArrayDataProvider(images, np.arange(4), batch_size=4) as provider:
    ...     show(provider.next()).size
    (340, 124)
    """
    return show_batch(batch, None, "", classes, columns)


def show_batch(
    batch: DataBatch,
    pixels: Pixels | None,
    title: str,
    classes: Classes,
    columns: int,
    most: int | None = None,
    fields: Mapping[str, FieldKind] | None = None,
) -> Image:
    """A batch, or the first `most` of its images, with fields, as a contact sheet; see `show`."""
    parts = [part[:most] for part in _images(batch)][:most]
    note = ""
    if pixels is not None:
        ends = np.cumsum([len(part) for part in parts])
        sources = [None] * len(parts) if batch.source is None else np.split(batch.source, ends)
        parts = [pixels(*part) for part in zip(parts, sources, strict=False)]
    elif parts[0].dtype != np.uint8:
        parts, note = _stretched(parts)
    images = [np.clip(np.rint(one), 0, 255).astype(np.uint8) for part in parts for one in part]
    names = _names(classes)
    count = batch.count_samples()
    tiles = []
    for number, image in enumerate(images):
        caption, objects = _labelled(batch, number, image.shape, names)
        padding = number >= count
        caption = f"pad {caption}".rstrip() if padding else caption
        tile = Tile(image, caption, objects, faint=padding)
        tiles.append(_with_fields(tile, batch, number, fields or {}))
    words = [title, f"{count} images", f"pad {batch.pad}" if batch.pad else "", note]
    return contact_sheet(tiles, ", ".join(part for part in words if part), columns, names)


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
) -> tuple[str, np.ndarray | None]:
    """The caption of a sample, and its objects if it has boxes."""
    if not batch.label:
        return "", None
    label = np.atleast_1d(NumpyDevice().send(batch.label[0])[number])
    objects = objects_of_row(label, shape)
    if objects is not None:
        return f"{len(objects)} object{'s' if len(objects) != 1 else ''}", objects
    shown = [names.get(int(v), f"{v:g}") if float(v).is_integer() else f"{v:g}" for v in label[:3]]
    return " ".join(shown) + (" ..." if len(label) > 3 else ""), None


def _with_fields(
    tile: Tile, batch: DataBatch, number: int, fields: Mapping[str, FieldKind]
) -> Tile:
    """Draw masks, points, boxes and texts of a sample with its image, or with its first view."""
    height, width = tile.pixels.shape[:2]
    for name, kind in fields.items():
        if name.endswith(tuple("123456789")) and f"{name[:-1]}0" in fields:
            continue
        if isinstance(kind, Text) and not tile.faint:
            tile = tile._replace(caption=f"{tile.caption} {batch[name][number]}".strip())
        if isinstance(kind, Mask):
            values = NumpyDevice().send(batch[name])[number].astype(np.int64)
            tile = tile._replace(mask=np.where(values == kind.ignore, -1, values))
        if not isinstance(kind, Objects):
            continue
        values = NumpyDevice().send(batch[name])
        if kind.packed:
            first, last = NumpyDevice().send(batch[f"{name}_offsets"])[number : number + 2]
            own = values[first:last]
        else:
            own = values[number]
        if isinstance(kind, Keypoints):
            tile = tile._replace(points=own)
        elif isinstance(kind, Boxes):
            tile = tile._replace(objects=_corners(own, kind.format, width, height))
    return tile


def _corners(rows: np.ndarray, form: str, width: int, height: int) -> np.ndarray:
    """Return boxes in pixels as class and corners in fractions of the image."""
    boxes = rows[:, :5].astype(float)
    if form == "cxcywh":
        boxes[:, 1:3] -= boxes[:, 3:5] / 2
    if form != "xyxy":
        boxes[:, 3:5] += boxes[:, 1:3]
    boxes[:, 1:] /= (width, height, width, height)
    return boxes


def objects_of_row(label: np.ndarray, shape: tuple[int, ...]) -> np.ndarray | None:
    """The objects in a row of labels of `ImageDetRecordIter`; None of any other row."""
    height, width, channels = shape
    if tuple(label[:3]) != (channels, height, width):
        return None
    try:
        return boxes_of(label, in_batch=True)[:, :5].astype(float)
    except LabelError:
        return None
