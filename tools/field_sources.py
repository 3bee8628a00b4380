"""Fields of images that are packed: masks by the stem of their image, texts by its name.

``NAME=FOLDER`` is a folder with an image for each; ``NAME=FILE`` a table of texts or objects.
"""

from __future__ import annotations

import collections
import csv
import io
import itertools
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from recordio.errors import ImageDecodeError, LabelError, RecordIOError
from recordio.file_limits import bounded_lines
from recordio.formats.encode import encode_as_opencv
from recordio.formats.general import turned
from recordio.formats.image_header import check_pixels, open_image, read_header
from recordio.list_files import ListEntry, check_labels
from recordio.packs.fields_meta import FieldMeta

from .encode import EncodeOptions, crop_square, resized_size
from .field_kinds import FoundKinds
from .images import decode_upright

#: Labels and content of a record of a field.
Value = tuple[Sequence[float], bytes]
SUFFIXES = (".png", ".webp", ".tif", ".tiff", ".bmp", ".jpg", ".jpeg")


class FieldSources:
    """Sources of the fields of images: folders and tables, by the names of the fields."""

    def __init__(self, options: EncodeOptions) -> None:
        self._sources: dict[str, _Folder | _Table] = {}
        for name, path in options.field:
            self._sources[name] = _Folder(path, options) if os.path.isdir(path) else _Table(path)
        self._kinds = FoundKinds(self._sources)

    @property
    def names(self) -> list[str]:
        """Names of the fields."""
        return list(self._sources)

    def of(self, entry: ListEntry, image: bytes) -> dict[str, Value]:
        """Find the fields of an image, as it was read; those that it does not have are missing."""
        values = {}
        for name, source in self._sources.items():
            try:
                value = source.of(entry, image)
            except RecordIOError as error:
                raise type(error)(f"its {name}: {error}") from None
            if value is not None:
                values[name] = value
                self._kinds.look(name, *value)
        return values

    def described(self) -> dict[str, FieldMeta]:
        """Describe the fields by the values that were found."""
        return self._kinds.described()


class _Folder:
    """Images with the stem of the image, in the same sub-folder or in none."""

    def __init__(self, path: str, options: EncodeOptions) -> None:
        self.path, self.options = path, options

    def of(self, entry: ListEntry, image: bytes) -> Value | None:
        stem = os.path.splitext(entry.path)[0]
        for name in dict.fromkeys((stem, os.path.basename(stem))):
            for suffix in SUFFIXES:
                path = os.path.join(self.path, name + suffix)
                if os.path.isfile(path):
                    with open(path, "rb") as file:
                        return (0.0,), fitted(path, file.read(), image, self.options)
        return None


def fitted(path: str | None, content: bytes, image: bytes, options: EncodeOptions) -> bytes:
    """Crop and resize a mask as its image is, by the nearest pixel; a palette's numbers are kept.

    A mask that is written anew is written upright, as the image is.
    """
    header = read_header(content)
    size = header.size
    check_pixels(size, options.max_pixels, "--max-pixels")
    width, height = read_header(image).size
    if size != (width, height):
        raise ImageDecodeError(
            f"it has {size[0]} x {size[1]} pixels, and the image {width} x {height} when it "
            "stands upright",
            path=path,
        )
    pixels = _pixels(path, content)
    is_changed = not options.pass_through and (options.center_crop or options.resize)
    if pixels is None and not is_changed:
        return content
    if pixels is None:
        pixels = decode_upright(content, options.max_pixels)
    else:
        pixels = turned(pixels, header.orientation)
    if is_changed and options.center_crop:
        pixels = crop_square(pixels)
    if is_changed and options.resize:
        width, height = resized_size(pixels, options)
        pixels = pixels[_nearest(pixels.shape[0], height)][:, _nearest(pixels.shape[1], width)]
    return encode_as_opencv(np.ascontiguousarray(pixels), ".png", 1)


def _nearest(count: int, target: int) -> np.ndarray:
    """Find the pixel in whose middle, or nearest to it, the middle of each target pixel lies.

    >>> _nearest(6, 3).tolist(), _nearest(2, 4).tolist()
    ([1, 3, 5], [0, 0, 1, 1])
    """
    return (2 * np.arange(target) + 1) * count // (2 * target)


def _pixels(path: str | None, content: bytes) -> np.ndarray | None:
    """Return the numbers of an image with a palette; None of any other."""
    if not content.startswith(b"\x89PNG"):
        return None
    with open_image(io.BytesIO(content)) as image:
        if image.mode != "P":
            return None
        try:
            return np.asarray(image, np.uint8).copy()
        except (OSError, SyntaxError, ValueError) as error:
            raise ImageDecodeError(f"it cannot be decoded: {error}", path=path) from None


class _Table:
    """Lines of text: ``image TAB text``, CSV, or JSON objects with ``image`` and ``value``."""

    def __init__(self, path: str) -> None:
        rows = _json_rows(path) if path.endswith((".jsonl", ".ndjson")) else _text_rows(path)
        values_by_image: dict[str, list[Value]] = collections.defaultdict(list)
        for image, value in rows:
            values_by_image[image].append(value)
        joined = {image: _joined(path, image, values) for image, values in values_by_image.items()}
        self._values = _alike(joined)

    def of(self, entry: ListEntry, image: bytes) -> Value | None:
        stem = os.path.splitext(entry.path)[0]
        for name in (entry.path, stem, os.path.basename(entry.path), os.path.basename(stem)):
            if name in self._values:
                return self._values[name]
        return None


def _joined(path: str, image: str, values: list[Value]) -> Value:
    """Put several texts of an image into lines."""
    if len(values) == 1:
        return values[0]
    if any(len(labels) > 1 for labels, _ in values):
        raise LabelError(f"several lines have objects of {image}: give all in one", path=path)
    return values[0][0], b"\n".join(content for _, content in values)


def _alike(values_by_image: dict[str, Value]) -> dict[str, Value]:
    """Give images with an empty list a label that lists nothing, where all others have objects."""
    widths = {labels[1] for labels, _ in values_by_image.values() if len(labels) > 1}
    without = [image for image, (labels, _) in values_by_image.items() if len(labels) == 1]
    if len(widths) == 1 and all(values_by_image[image][1] == b"[]" for image in without):
        values_by_image.update(dict.fromkeys(without, ([2.0, *widths], b"")))
    return values_by_image


def _text_rows(path: str) -> Iterator[tuple[str, Value]]:
    is_csv = path.endswith(".csv")
    with open(path, encoding="utf-8-sig", newline="") as file:
        for number, line in bounded_lines(file, path):
            if not line.strip():
                continue
            words = next(csv.reader([line])) if is_csv else line.rstrip("\r\n").split("\t", 1)
            if len(words) != 2:
                what = "2 columns, image and text" if is_csv else "image TAB text"
                raise LabelError(f"expected {what}", path=path, line=number)
            yield words[0], ((0.0,), words[1].encode())


def _json_rows(path: str) -> Iterator[tuple[str, Value]]:
    with open(path, encoding="utf-8-sig") as file:
        for number, line in bounded_lines(file, path):
            if not line.strip():
                continue
            try:
                entry = json.loads(line)
                if not isinstance(entry, Mapping) or not isinstance(entry.get("image"), str):
                    raise LabelError("expected an object with the text image")
                rest = {key: value for key, value in entry.items() if key != "image"}
                yield entry["image"], _value_of(rest["value"] if list(rest) == ["value"] else rest)
            except (ValueError, RecursionError) as error:
                reason = error.reason if isinstance(error, RecordIOError) else f"no JSON: {error}"
                raise LabelError(reason, path=path, line=number) from None


def _value_of(value: Any) -> Value:
    """Store a text as it is, rows of numbers as the label of objects, all else as JSON."""
    if isinstance(value, str):
        return (0.0,), value.encode()
    rows: list[Any] = value if isinstance(value, list) else [None]
    if all(isinstance(row, list) for row in rows) and value:
        widths = {len(row) for row in rows}
        numbers = list(itertools.chain.from_iterable(rows))
        if all(type(item) in (int, float) for item in numbers) and len(widths) == 1:
            (width,) = widths
            if width != 5 and width % 3:
                raise LabelError(
                    f"an object of {width} numbers: a box has 5, class, x1, y1, x2, y2, and key "
                    "points x, y, v for each"
                )
            labels = [2.0, float(width), *map(float, numbers)]
            check_labels(labels)
            return labels, b""
    return (0.0,), json.dumps(value, ensure_ascii=False).encode()
