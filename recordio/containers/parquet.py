"""Parquet files with a column of images, as the hub has them: pyarrow reads them by row groups.

A row group is unpacked as a whole, once for all threads that want an image of it, and is kept as
long as there is room: `KEPT_BYTES` for all files of a process.  One that is too large for that is
unpacked into a temporary file instead.
"""

from __future__ import annotations

import contextlib
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
from ..bytes.remote.objects import redacted_url
from ..bytes.remote.settings import RemoteSettings
from ..errors import RecordIOError
from ..extras import need
from .columns import (
    check_first,
    column_fields,
    content_column,
    fill_in,
    images_of,
    is_list,
    leaf_of,
    list_lengths,
    sides_in,
    take_counts,
)
from .container import USUAL, Choice, Container, files_of_folder, is_folder_of
from .samples import ContainedSamples

PATTERN = re.compile(r"\.(parquet|pq)$", re.IGNORECASE)
#: Unpacked row groups that a process keeps, and the largest that it keeps in memory.
KEPT_BYTES, LARGEST_GROUP = 1 << 30, 1 << 28
#: Larger row groups that are kept, each in a temporary file, and bytes that are unpacked at once.
KEPT_FILES, AT_ONCE = 4, 1 << 24


def scan(
    file: StoredFile, settings: RemoteSettings | None = None, choice: Choice = USUAL
) -> ContainedSamples:
    """Read the labels of all rows, and the names of the files that the images were.

    Of a field, a column of bytes or text, nothing but the number of rows is read.
    """
    with _reading(file), _opened(file, settings) as opened:
        if choice.field:
            content_column(opened.schema_arrow, choice, redacted_url(file.name))
            count = opened.metadata.num_rows
            zeros = np.zeros(count, np.int64)
            return ContainedSamples(np.arange(count), zeros, zeros.astype(np.float32))
        return _samples(opened, choice, redacted_url(file.name), file.is_local)


def _samples(opened: Any, choice: Choice, path: str, is_local: bool) -> ContainedSamples:
    schema, count = opened.schema_arrow, opened.metadata.num_rows
    if is_local:
        image, sides = content_column(schema, choice, path), sides_in(schema)
        columns = [leaf_of(schema, image), *sides]
        for batch in opened.iter_batches(1, columns=columns, use_threads=False):
            if batch.num_rows:
                check_first(batch.slice(0, 1).to_pylist()[0], image, sides)
                break
    samples = ContainedSamples(
        np.arange(count), np.zeros(count, np.int64), np.zeros(count, np.float32)
    )

    def read(column: str) -> Any:
        return opened.read(columns=[column], use_threads=False).column(0)

    if choice.several:
        _find_lists(samples, opened, content_column(schema, choice, path))
    fill_in(samples, schema, choice, path, read)
    return samples


def _find_lists(samples: ContainedSamples, opened: Any, image: str) -> None:
    """Count the images of all rows where a row has a list, by the smallest part of its column."""
    paths = [opened.schema.column(i).path for i in range(len(opened.schema.names))]
    leaves = [path for path in paths if path.startswith(f"{image}.")]
    leaf = next((path for path in leaves if path.endswith(".path")), image)
    counts = []
    for batch in opened.iter_batches(columns=[leaf], use_threads=False):
        column = batch.column(0)
        if not is_list(column.type):
            return
        counts.append(list_lengths(column))
    if counts:
        samples.set_images(take_counts(samples, np.concatenate(counts), image))


def fields(
    file: StoredFile, settings: RemoteSettings | None, samples: ContainedSamples, choice: Choice
) -> list[str]:
    """List the columns of bytes and text besides that of the images and that of the labels."""
    with _reading(file), _opened(file, settings) as opened:
        schema = opened.schema_arrow
    return column_fields(schema, choice, redacted_url(file.name))


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
    """Return the bytes of a column of structs, or of lists; null where the struct is."""
    array, _ = images_of(array)
    if not str(array.type).startswith("struct<"):
        return array
    return array.flatten()[array.type.get_field_index("bytes")]


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
            self._leaf = leaf_of(schema, content_column(schema, choice, redacted_url(file.name)))
            about = self._opened.metadata
            groups = [about.row_group(i) for i in range(about.num_row_groups)]
            self._edges = np.cumsum([0, *(group.num_rows for group in groups)])
            starts = samples.image_starts
            count = len(samples) if starts is None else len(starts) - 1
            self._nbytes = [_unpacked_bytes(group, self._leaf) for group in groups]
        self._file, self._lock = file, threading.Lock()
        self._token = object()
        weakref.finalize(self, _GROUPS.forget, self._token)
        if self._edges[-1] != count:
            raise RecordIOError("it was changed since it was opened", path=redacted_url(file.name))
        #: Number of the first content of each group, and the end: those of rows, or of images.
        self._firsts = self._edges if starts is None else starts[self._edges]

    def read(self, number: int) -> bytes:
        """Read the content of a row, or an image by its number."""
        group = int(np.searchsorted(self._firsts, number, side="right")) - 1
        held = _GROUPS.get((self._token, group), lambda: self._unpacked(group))
        content = held.row(number - int(self._firsts[group]))
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
    own = (
        c for c in columns if c.path_in_schema == leaf or c.path_in_schema.startswith(f"{leaf}.")
    )
    return sum(c.total_uncompressed_size for c in own)


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
    except MemoryError:
        raise
    except _errors() as error:
        raise RecordIOError(
            f"{what} cannot be read as Parquet: {str(error)[:500]}", path=redacted_url(file.name)
        ) from error


def _errors() -> tuple[type[Exception], ...]:
    """Return the types of errors that pyarrow raises, some of which are of its own type alone."""
    own = need("pyarrow", "Parquet files", extra="parquet").ArrowException
    return OSError, ValueError, NotImplementedError, KeyError, own


PARQUET = Container(
    "a Parquet file",
    scan,
    PATTERN,
    is_it=is_folder_of(PATTERN),
    shards=files_of_folder(PATTERN),
    rows=ParquetRows,
    fields=fields,
    chooses=frozenset(["field", "image_field", "label_field", "has_labels", "several"]),
    rules=3,
)
