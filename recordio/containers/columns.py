"""Tables with a column of images: which columns are image and label, and what labels may be.

Parquet and Arrow share these rules, and so the types of pyarrow; the hub describes its columns in
the metadata of a schema.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import FieldError, RecordIOError
from ..formats.table import kind_of
from ..list_files import EXACT_IN_FLOAT32, holds_whole
from .container import Choice
from .labels import (
    CHANNELS,
    HEIGHTS,
    IMAGES,
    LABELS,
    WIDTHS,
    check_not_pixels,
    first_named,
    note_numbers,
)
from .samples import NO_CONTENT, ContainedSamples

#: Types of numbers, as they begin.
NUMBERS = ("int", "uint", "float", "double", "halffloat", "bool")
#: Names of columns whose images are small copies.
SMALL = re.compile(r"thumb|preview|icon", re.IGNORECASE)


def fill_in(
    samples: ContainedSamples,
    schema: Any,
    choice: Choice,
    path: str,
    read: Callable[[str], Any],
) -> None:
    """Read labels, classes, and the names of the files that images were, by ``read(column)``."""
    features, count = _hub_features(schema), len(samples)
    image = _image_column(schema, features, choice, path)
    label = _label_column(schema, features, choice, path)
    if SMALL.search(image) and not choice.image_field:
        samples.notes.add("column of images is one of small copies by its name", image)
    if choice.has_labels and count:
        samples.labelled = label is not None
    if label is None and choice.has_labels:
        scalars = (one.name for one in schema if str(one.type).startswith(NUMBERS))
        note_numbers(samples.notes, scalars, count, "column")
    if label is not None:
        _fill_in_labels(samples, read(label), label, path)
        names = features.get(label, {}).get("names")
        if isinstance(names, list):
            samples.classes = dict(enumerate(map(str, names)))
    if _has_paths(schema.field(image).type):
        rows = read(f"{image}.path").to_pylist()
        names = [(row.get("path") if isinstance(row, dict) else row) or "" for row in rows]
        samples.set_names([name.encode("utf-8", "surrogateescape") for name in names])


def sides_in(schema: Any) -> list[str]:
    """Name the columns that may have height, width and channels."""
    sides = [first_named(schema.names, some) for some in (HEIGHTS, WIDTHS, CHANNELS)]
    return [name for name in sides if name is not None]


def check_first(row: dict[str, Any], image: str, sides: list[str]) -> None:
    """Refuse images that are raw pixels, by a row that has the first of them."""
    content = row[image]
    if isinstance(content, list):
        content = content[0] if content else None
    content = content.get("bytes") if isinstance(content, dict) else content
    if content is not None and kind_of(content) == "other":
        values = [row[name] for name in sides]
        values += [1] * (3 - len(values))
        whole = all(type(value) is int for value in values) and len(sides) > 1
        check_not_pixels(content, image, values if whole else ())


def column_fields(schema: Any, choice: Choice, path: str) -> list[str]:
    """List the columns of bytes and text besides that of the images and that of the labels."""
    features = _hub_features(schema)
    taken = (
        _image_column(schema, features, choice, path),
        _label_column(schema, features, choice, path),
    )
    kinds = [(one.name, one.type) for one in schema if one.name not in taken]
    names = (name for name, kind in kinds if _bytes_of(kind) or _is_text(kind))
    return [name for name in names if name.isascii() and name.isidentifier()]


def leaf_of(schema: Any, name: str) -> str:
    """Name what of a column is read, of which structs have the field ``bytes``."""
    is_struct = str(schema.field(name).type).startswith("struct<")
    return f"{name}.bytes" if is_struct else name


def images_of(chunk: Any) -> tuple[Any, np.ndarray | None]:
    """Return the images of a column one by one, and how many each row has, -1 for a null.

    None where each row has one, or is null.
    """
    if not _is_list_of_images(chunk.type):
        return chunk, None
    return chunk.flatten(), list_lengths(chunk)


def take_counts(samples: ContainedSamples, counts: np.ndarray, name: str) -> np.ndarray:
    """Note rows whose list is null, and return how many images each row has."""
    for row in np.flatnonzero(counts < 0).tolist():
        samples.sizes[row] = NO_CONTENT
        samples.faults[row] = f"its {name} is null: a sample without images has an empty list"
    return counts.clip(0)


def _hub_features(schema: Any) -> dict[str, Any]:
    """Return what the hub says of each column; empty where it says nothing."""
    try:
        features = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
        return {name: one for name, one in features.items() if isinstance(one, dict)}
    except (KeyError, TypeError, ValueError, AttributeError):
        return {}


def _is_binary(kind: Any) -> bool:
    return str(kind) in ("binary", "large_binary", "binary_view")


def _bytes_of(kind: Any) -> bool:
    """Tell a column of bytes, or of structs with the field ``bytes``."""
    if not str(kind).startswith("struct<"):
        return _is_binary(kind)
    at = kind.get_field_index("bytes")
    return at >= 0 and _is_binary(kind.field(at).type)


def _has_paths(kind: Any) -> bool:
    at = kind.get_field_index("path") if str(kind).startswith("struct<") else -1
    return at >= 0 and _is_text(kind.field(at).type)


def _is_text(kind: Any) -> bool:
    return str(kind) in ("string", "large_string", "string_view")


def content_column(schema: Any, choice: Choice, path: str) -> str:
    """Name the column of the images, or that of a field, which must hold bytes or text."""
    field = choice.field
    if not field:
        return _image_column(schema, _hub_features(schema), choice, path)
    at = schema.get_field_index(field)
    if at < 0 or not (_bytes_of(schema.field(at).type) or _is_text(schema.field(at).type)):
        there = ", ".join(f"{one.name}: {one.type}" for one in schema)
        raise FieldError(
            f"it has no column {field} of bytes or text; its columns are {there[:1000]}", path=path
        )
    return field


def _image_column(schema: Any, features: dict[str, Any], choice: Choice, path: str) -> str:
    """Choose the column of images: the hub's, one of the usual names, or the only one of bytes."""
    columns = [
        field.name
        for field in schema
        if _bytes_of(field.type) or (choice.several and _is_list_of_images(field.type))
    ]
    if choice.image_field:
        columns = [name for name in columns if name == choice.image_field]
    marked = [name for name in columns if features.get(name, {}).get("_type") == "Image"]
    usual = first_named(columns, IMAGES)
    best = first_named(marked, IMAGES) or next(iter(marked), usual)
    if best is not None or len(columns) == 1:
        return best or columns[0]
    there = ", ".join(f"{field.name}: {field.type}" for field in schema)
    which = "several columns of bytes, and none has a usual name: image_field= chooses one"
    if not columns:
        which = f"no column {choice.image_field + ' ' if choice.image_field else ''}of bytes"
    lists = [field.name for field in schema if _is_list_of_images(field.type)]
    if lists and not columns:
        which = (
            f"a list of images in each row of its column {lists[0]}, which the processor of a "
            "vision-language model takes as recipe; for others write a table that has one image in "
            f"a row, such as `table.explode({lists[0]!r})` of pandas and polars makes it"
        )
    raise RecordIOError(f"it has {which}; its columns are {there[:1000]}", path=path)


def is_list(kind: Any) -> bool:
    """Tell lists of any length, and those of one."""
    return str(kind).startswith(("list<", "large_list<", "fixed_size_list<"))


def list_lengths(lists: Any) -> np.ndarray:
    """Return the length of every list, int64; -1 of a null."""
    lengths = lists.value_lengths().fill_null(-1)
    return np.asarray(lengths.to_numpy(zero_copy_only=False), np.int64)


def _is_list_of_images(kind: Any) -> bool:
    """Tell lists of bytes, or of structs with the field ``bytes``."""
    return is_list(kind) and _bytes_of(kind.value_type)


def _label_column(schema: Any, features: dict[str, Any], choice: Choice, path: str) -> str | None:
    """Choose the column of labels: one of the usual names, or the only one that names classes."""
    if not choice.has_labels:
        return None
    if choice.label_field:
        if choice.label_field not in schema.names:
            there = ", ".join(f"{field.name}: {field.type}" for field in schema)
            raise RecordIOError(
                f"it has no column {choice.label_field}; its columns are {there[:1000]}", path=path
            )
        return choice.label_field
    usual = first_named(schema.names, LABELS)
    named = [name for name, one in features.items() if one.get("_type") == "ClassLabel"]
    if usual is None and len(named) == 1 and named[0] in schema.names:
        return named[0]
    return usual


def _fill_in_labels(samples: ContainedSamples, column: Any, name: str, path: str) -> None:
    kind = str(column.type)
    if kind.startswith(("list<", "large_list<", "fixed_size_list<")):
        _fill_in_lists(samples, column, name, path)
        return
    _check_numbers(kind, name, path)
    missing = np.asarray(column.is_null().to_numpy(), bool)
    values = column.fill_null(False if kind == "bool" else 0).to_numpy()
    with np.errstate(over="ignore"):  # which is not finite then
        samples.labels = values.astype(np.float32)
    inexact = np.zeros(len(values), bool)
    large = np.flatnonzero((values > EXACT_IN_FLOAT32) | (values < -EXACT_IN_FLOAT32)).tolist()
    inexact[large] = [not holds_whole(values[i].item()) for i in large]
    odd = ~np.isfinite(samples.labels)
    for row in np.flatnonzero(missing | inexact | odd).tolist():
        samples.sizes[row] = NO_CONTENT
        samples.faults[row] = f"{name} {values[row]} is no 32-bit float, or not finite"
        if missing[row]:
            samples.faults[row] = f"its {name} is null"


def _check_numbers(kind: str, name: str, path: str) -> None:
    if not kind.startswith(NUMBERS):
        raise RecordIOError(
            f"its column {name} holds {kind}, no numbers: number the classes over all files, for "
            f"example with `class_encode_column({name!r})` of the package datasets, or choose "
            "another column by label_field=",
            path=path,
        )


def _fill_in_lists(samples: ContainedSamples, column: Any, name: str, path: str) -> None:
    _check_numbers(str(column.type.value_type), name, path)
    rows = column.to_pylist()
    for i, row in enumerate(rows):
        reason = ""
        if not row or None in row or not all(map(math.isfinite, row)):
            reason = f"its {name} is null, or has no value, or one that is not finite"
        elif not all(map(holds_whole, row)):
            reason = f"its {name} has a whole number that is no 32-bit float"
        if reason:
            samples.sizes[i], samples.faults[i], rows[i] = NO_CONTENT, reason, [0.0]
    whole = ContainedSamples.of(samples.offsets, samples.sizes, rows)
    samples.labels, samples.starts = whole.labels, whole.starts
