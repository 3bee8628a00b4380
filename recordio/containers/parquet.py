"""Parquet files with a column of images, as the hub has them: pyarrow reads them by row groups.

A row group is unpacked as a whole, once for all threads that want an image of it, and is kept as
long as there is room: `KEPT_BYTES` for all files of a process.  One that is too large for that is
unpacked into a temporary file instead.
"""

from __future__ import annotations

import contextlib
import json
import math
import mmap
import os
import re
import tempfile
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from ..bytes.files import StoredFile
from ..bytes.mapping import check_kept
from ..bytes.remote.objects import shown
from ..bytes.remote.settings import RemoteSettings
from ..errors import FieldError, RecordIOError
from ..extras import need
from ..formats.table import kind_of
from ..lists import EXACT_IN_FLOAT32
from .container import USUAL, Choice, Container, files_of_folder, is_folder_of
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

__all__ = ["KEPT_BYTES", "PARQUET"]

PATTERN = re.compile(r"\.(parquet|pq)$", re.IGNORECASE)
#: Unpacked row groups that a process keeps, and the largest that it keeps in memory.
KEPT_BYTES, LARGEST_GROUP = 1 << 30, 1 << 28
#: Larger row groups that are kept, each in a temporary file, and bytes that are unpacked at once.
KEPT_FILES, AT_ONCE = 4, 1 << 24
#: Types of numbers, as they begin.
NUMBERS = ("int", "uint", "float", "double", "halffloat", "bool")
#: Names of columns whose images are small copies.
SMALL = re.compile(r"thumb|preview|icon", re.IGNORECASE)


def scan(
    file: StoredFile, settings: RemoteSettings | None = None, choice: Choice = USUAL
) -> ContainedSamples:
    """Read the labels of all rows, and the names of the files that the images were.

    Of a field, a column of bytes or text, nothing but the number of rows is read.
    """
    with _reading(file), _opened(file, settings) as opened:
        if choice.field:
            _content_column(opened.schema_arrow, choice, shown(file.name))
            count = opened.metadata.num_rows
            zeros = np.zeros(count, np.int64)
            return ContainedSamples(np.arange(count), zeros, zeros.astype(np.float32))
        return _samples(opened, choice, shown(file.name), file.is_local)


def _samples(opened: Any, choice: Choice, path: str, is_local: bool) -> ContainedSamples:
    schema, features = opened.schema_arrow, _hub_features(opened.schema_arrow)
    image = _image_column(schema, features, choice, path)
    label = _label_column(schema, features, choice, path)
    if is_local:
        _check_first(opened, schema, image)
    count = opened.metadata.num_rows
    found = ContainedSamples(
        np.arange(count), np.zeros(count, np.int64), np.zeros(count, np.float32)
    )
    if SMALL.search(image) and not choice.image_field:
        found.notes.add("column of images is one of small copies by its name", image)
    if choice.has_labels and count:
        found.labelled = label is not None
    if label is None and choice.has_labels:
        scalars = (one.name for one in schema if str(one.type).startswith(NUMBERS))
        note_numbers(found.notes, scalars, count, "column")
    if label is not None:
        column = opened.read(columns=[label], use_threads=False).column(0)
        _fill_in_labels(found, column, label, path)
        names = features.get(label, {}).get("names")
        if isinstance(names, list):
            found.classes = dict(enumerate(map(str, names)))
    if _has_paths(schema.field(image).type):
        column = opened.read(columns=[f"{image}.path"], use_threads=False).column(0)
        names = [(row or {}).get("path") or "" for row in column.to_pylist()]
        stored = [name.encode("utf-8", "surrogateescape") for name in names]
        found.names = np.frombuffer(b"".join(stored), np.uint8)
        found.name_starts = np.cumsum([0, *map(len, stored)]).astype(np.int64)
    return found


def _check_first(opened: Any, schema: Any, image: str) -> None:
    """Refuse images that are raw pixels, by the first of them."""
    sides = [first_named(schema.names, some) for some in (HEIGHTS, WIDTHS, CHANNELS)]
    known = [name for name in sides if name is not None]
    for batch in opened.iter_batches(1, columns=[_leaf(schema, image), *known], use_threads=False):
        row = batch.slice(0, 1).to_pylist()
        if not row:
            continue
        content = row[0][image]
        content = content.get("bytes") if isinstance(content, dict) else content
        values = [row[0][name] for name in known]
        if content is not None and kind_of(content) == "other":
            values += [1] * (3 - len(values))
            whole = all(type(value) is int for value in values) and len(known) > 1
            check_not_pixels(content, image, values if whole else ())
        return


def _leaf(schema: Any, name: str) -> str:
    """Name what of a column is read, of which structs have the field ``bytes``."""
    is_struct = str(schema.field(name).type).startswith("struct<")
    return f"{name}.bytes" if is_struct else name


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


def fields(
    file: StoredFile, settings: RemoteSettings | None, samples: ContainedSamples, choice: Choice
) -> list[str]:
    """List the columns of bytes and text besides that of the images and that of the labels."""
    with _reading(file), _opened(file, settings) as opened:
        schema = opened.schema_arrow
    features, path = _hub_features(schema), shown(file.name)
    taken = (
        _image_column(schema, features, choice, path),
        _label_column(schema, features, choice, path),
    )
    kinds = [(one.name, one.type) for one in schema if one.name not in taken]
    found = (name for name, kind in kinds if _bytes_of(kind) or _is_text(kind))
    return [name for name in found if name.isascii() and name.isidentifier()]


def _content_column(schema: Any, choice: Choice, path: str) -> str:
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
    columns = [field.name for field in schema if _bytes_of(field.type)]
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
        which = f"no column {choice.image_field or 'of images that are'} bytes".replace("  ", " ")
    lists = [field.name for field in schema if _is_list_of_images(field.type)]
    if lists and not columns:
        which = (
            f"a list of images in each row of its column {lists[0]}: write a table that has one "
            f"image in a row, such as `table.explode({lists[0]!r})` of pandas and polars makes it"
        )
    raise RecordIOError(f"it has {which}; its columns are {there[:1000]}", path=path)


def _is_list_of_images(kind: Any) -> bool:
    """Tell lists of bytes, or of structs with the field ``bytes``."""
    is_list = str(kind).startswith(("list<", "large_list<", "fixed_size_list<"))
    return is_list and _bytes_of(kind.value_type)


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


def _fill_in_labels(found: ContainedSamples, column: Any, name: str, path: str) -> None:
    kind = str(column.type)
    if kind.startswith(("list<", "large_list<", "fixed_size_list<")):
        _fill_in_lists(found, column, name, path)
        return
    _check_numbers(kind, name, path)
    missing = np.asarray(column.is_null().to_numpy(), bool)
    values = column.fill_null(False if kind == "bool" else 0).to_numpy()
    with np.errstate(over="ignore"):  # which is not finite then
        found.labels = values.astype(np.float32)
    inexact = np.zeros(len(values), bool)
    if values.dtype.kind in "iu":
        large = np.flatnonzero((values > EXACT_IN_FLOAT32) | (values < -EXACT_IN_FLOAT32)).tolist()
        inexact[large] = [int(np.float32(values[i])) != int(values[i]) for i in large]
    odd = ~np.isfinite(found.labels)
    for row in np.flatnonzero(missing | inexact | odd).tolist():
        found.sizes[row] = NO_CONTENT
        found.faults[row] = f"{name} {values[row]} is no finite 32-bit float"
        if missing[row]:
            found.faults[row] = f"its {name} is null"


def _check_numbers(kind: str, name: str, path: str) -> None:
    if not kind.startswith(NUMBERS):
        raise RecordIOError(
            f"its column {name} holds {kind}, no numbers: number the classes over all files, for "
            f"example with `class_encode_column({name!r})` of the package datasets, or choose "
            "another column by label_field=",
            path=path,
        )


def _fill_in_lists(found: ContainedSamples, column: Any, name: str, path: str) -> None:
    _check_numbers(str(column.type.value_type), name, path)
    rows = column.to_pylist()
    for number, row in enumerate(rows):
        if not row or None in row or not all(map(math.isfinite, row)):
            found.sizes[number] = NO_CONTENT
            found.faults[number] = f"its {name} is null, or has no value, or one that is not finite"
            rows[number] = [0.0]
    whole = ContainedSamples.of(found.offsets, found.sizes, rows)
    found.labels, found.starts = whole.labels, whole.starts


# -- contents -------------------------------------------------------------------------------------


class _Group(Protocol):
    """A row group that has been unpacked."""

    nbytes: int

    def row(self, number: int) -> bytes | None:
        """Return the content of a row, by its number in the group; None of a null."""


class _GroupInMemory:
    """A row group as pyarrow has it."""

    def __init__(self, column: Any) -> None:
        self._chunks = [_plain(chunk) for chunk in column.chunks]
        self._starts = np.cumsum([0, *map(len, self._chunks)])
        self.nbytes = sum(chunk.nbytes for chunk in self._chunks)

    def row(self, number: int) -> bytes | None:
        """Return the content of a row."""
        at = int(np.searchsorted(self._starts, number, side="right")) - 1
        content = self._chunks[at][number - int(self._starts[at])].as_buffer()
        return None if content is None else content.to_pybytes()


class _GroupInFile:
    """A row group in a temporary file that has no name."""

    nbytes = 0

    def __init__(self, batches: Iterator[Any]) -> None:
        sizes = []
        self._content: mmap.mmap | bytes = b""
        with tempfile.TemporaryFile(prefix="recordio-") as file:
            for batch in batches:
                for content in _plain(batch.column(0)):
                    data = content.as_buffer()
                    sizes.append(-1 if data is None else data.size)
                    if data is not None:
                        file.write(data)
            file.flush()
            if file.tell():  # mapped, as forked processes share the position of an open file
                self._content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._sizes = sizes
        self._starts = np.cumsum([0, *(max(size, 0) for size in sizes)])

    def row(self, number: int) -> bytes | None:
        """Return the content of a row."""
        size, start = self._sizes[number], int(self._starts[number])
        return None if size < 0 else self._content[start : start + size]


def _plain(array: Any) -> Any:
    """Return the bytes of a column of structs, null where the struct is."""
    return array.flatten()[0] if str(array.type).startswith("struct<") else array


class _KeptGroups:
    """The row groups that were used last, as many as there is room for."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Any, _Group] = OrderedDict()
        self._gates: dict[Any, threading.Lock] = {}
        self._lock = threading.RLock()  # a file may go while one is held

    def get(self, key: Any, read: Callable[[], _Group]) -> _Group:
        """Return a group that is kept, or read it; others that want the same one wait."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
            gate = self._gates.setdefault(key, threading.Lock())
        with gate:
            with self._lock:
                if key in self._kept:
                    return self._kept[key]
            try:
                group = read()
                with self._lock:
                    self._kept[key] = group
                    self._make_room()
                return group
            finally:
                with self._lock:
                    self._gates.pop(key, None)

    def _make_room(self) -> None:
        used = sum(group.nbytes for group in self._kept.values())
        files = sum(not group.nbytes for group in self._kept.values())
        for key in list(self._kept)[:-1]:
            group = self._kept.get(key)
            if group is None:
                continue
            if used > KEPT_BYTES and group.nbytes:
                used -= group.nbytes
            elif files > KEPT_FILES and not group.nbytes:
                files -= 1
            else:
                continue
            self._kept.pop(key, None)

    def forget(self, owner: Any) -> None:
        """Let the groups of a file go."""
        with self._lock:
            for key in [key for key in self._kept if key[0] is owner]:
                self._kept.pop(key, None)


_GROUPS = _KeptGroups()
if hasattr(os, "register_at_fork"):  # a thread of the parent may hold its lock
    os.register_at_fork(after_in_child=_GROUPS.__init__)  # type: ignore[misc]


class ParquetRows:
    """The images of a file; see `BlockReader`."""

    def __init__(self, file: StoredFile, samples: ContainedSamples, choice: Choice = USUAL) -> None:
        with _reading(file):
            self._opened, self._view = _open(file, None)
            schema = self._opened.schema_arrow
            self._leaf = _leaf(schema, _content_column(schema, choice, shown(file.name)))
            about = self._opened.metadata
            groups = [about.row_group(i) for i in range(about.num_row_groups)]
            self._edges = np.cumsum([0, *(group.num_rows for group in groups)])
            self._nbytes = [_unpacked_bytes(group, self._leaf) for group in groups]
        self._file, self._lock = file, threading.Lock()
        self._token = object()
        weakref.finalize(self, _GROUPS.forget, self._token)
        if self._edges[-1] != len(samples):
            raise RecordIOError("it was changed since it was opened", path=shown(file.name))

    def read(self, number: int) -> bytes:
        """Read the content of a row."""
        group = int(np.searchsorted(self._edges, number, side="right")) - 1
        held = _GROUPS.get((self._token, group), lambda: self._unpacked(group))
        content = held.row(number - int(self._edges[group]))
        if content is None:
            raise RecordIOError(
                f"its {self._leaf} is null: it is not in the file, only its path may be"
            )
        return content

    def _unpacked(self, group: int) -> _Group:
        # A reader of pyarrow is for one thread at a time.
        with self._lock, _reading(self._file, f"row group {group}"), _kept(self._view):
            if self._nbytes[group] <= LARGEST_GROUP:
                table = self._opened.read_row_group(group, columns=[self._leaf], use_threads=False)
                return _GroupInMemory(table.column(0))
            count = int(self._edges[group + 1] - self._edges[group])
            size = max(AT_ONCE * count // self._nbytes[group], 1)
            return _GroupInFile(
                self._opened.iter_batches(
                    size, row_groups=[group], columns=[self._leaf], use_threads=False
                )
            )

    def edges(self) -> Sequence[int]:
        """Give the rows at which groups begin, and the end."""
        return [0, *(end for begin, end in pairwise(self._edges.tolist()) if end > begin)]

    def nbytes(self) -> int:
        """Count the bytes of all images."""
        return sum(self._nbytes)

    def close(self) -> None:
        """Let the file go."""
        _GROUPS.forget(self._token)
        self._opened.close()


def _unpacked_bytes(group: Any, leaf: str) -> int:
    columns = (group.column(i) for i in range(group.num_columns))
    return sum(c.total_uncompressed_size for c in columns if c.path_in_schema == leaf)


def _open(file: StoredFile, settings: RemoteSettings | None) -> tuple[Any, memoryview]:
    """Open a file, and give the map of it, of which bytes may get lost."""
    parquet = need("pyarrow.parquet", "Parquet files", extra="parquet")
    if not file.is_local:
        mirrored = file.mirrored(settings).as_file()
        return parquet.ParquetFile(mirrored, buffer_size=AT_ONCE), memoryview(b"")
    view = file.map()  # pyarrow's own map would end the process where the file became shorter
    arrow = need("pyarrow", "Parquet files", extra="parquet")
    with _kept(view):
        return parquet.ParquetFile(arrow.BufferReader(arrow.py_buffer(view))), view


@contextlib.contextmanager
def _opened(file: StoredFile, settings: RemoteSettings | None) -> Iterator[Any]:
    """Open a file for a while."""
    opened, view = _open(file, settings)
    try:
        with _kept(view):
            yield opened
    finally:
        opened.close()


@contextlib.contextmanager
def _kept(view: memoryview) -> Iterator[None]:
    """Raise TruncatedRecordError behind reading if the file became shorter; zeros were read."""
    try:
        yield
    except Exception:
        check_kept(view)
        raise
    check_kept(view)


@contextlib.contextmanager
def _reading(file: StoredFile, what: str = "it") -> Iterator[None]:
    """Turn errors of pyarrow into those of this package."""
    try:
        yield
    except RecordIOError:
        raise
    except FileNotFoundError:
        raise
    except (MemoryError, KeyboardInterrupt):
        raise
    except (OSError, ValueError, NotImplementedError, KeyError, *_arrow_errors()) as error:
        raise RecordIOError(
            f"{what} cannot be read as Parquet: {str(error)[:500]}", path=shown(file.name)
        ) from error


def _arrow_errors() -> tuple[type[Exception], ...]:
    """Return the type of pyarrow's own errors, some of which are of no other type."""
    return (need("pyarrow", "Parquet files", extra="parquet").ArrowException,)


PARQUET = Container(
    "a Parquet file",
    scan,
    PATTERN,
    is_it=is_folder_of(PATTERN),
    shards=files_of_folder(PATTERN),
    rows=ParquetRows,
    fields=fields,
    chooses=frozenset(["field", "image_field", "label_field", "has_labels"]),
    rules=2,
)
