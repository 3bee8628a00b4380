"""Arrow files as the hub's library datasets keeps them: images are spans of the file, mapped.

``Dataset.save_to_disk`` writes a folder of them.  Streams and files of Arrow are read alike.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from ..bytes.files import StoredFile
from ..bytes.mapping import check_kept
from ..bytes.remote.objects import redacted_url
from ..bytes.remote.settings import RemoteSettings
from ..errors import CorruptRecordError, RecordIOError
from ..extras import need
from .columns import (
    check_first,
    column_fields,
    content_column,
    fill_in,
    images_of,
    sides_in,
    take_counts,
)
from .container import USUAL, Choice, Container, files_of_folder, is_folder_of
from .samples import NO_CONTENT, ContainedSamples

PATTERN = re.compile(r"\.arrow$", re.IGNORECASE)
#: How a file of Arrow begins, which a stream does not.
MAGIC = b"ARROW1"
NULL = "its bytes are null: the image is not in the file, only its path may be"


def scan(
    file: StoredFile, settings: RemoteSettings | None = None, choice: Choice = USUAL
) -> ContainedSamples:
    """Find where the images lie, or the values of a field, and read the labels."""
    file.check_local()
    view, path = file.map(), redacted_url(file.name)
    try:
        table = _table(view)
        image = content_column(table.schema, choice, path)
        offsets, sizes, counts = _spans(view, table.column(image))
        check_kept(view)
    except RecordIOError as error:
        raise error.at(path=path) from None
    if counts is None:
        samples = ContainedSamples(offsets, sizes, np.zeros(len(offsets), np.float32))
        samples.faults = {row: NULL for row in np.flatnonzero(sizes == NO_CONTENT).tolist()}
    else:
        zeros = np.zeros(len(counts), np.int64)
        samples = ContainedSamples(zeros, zeros.copy(), zeros.astype(np.float32))
        samples.set_images(take_counts(samples, counts, image), offsets, sizes)
        ends = np.cumsum(counts.clip(0))
        for row in np.searchsorted(ends, np.flatnonzero(sizes == NO_CONTENT), "right").tolist():
            samples.sizes[row], samples.faults[row] = NO_CONTENT, f"of its {image}, {NULL}"
    if not choice.field:
        sides = sides_in(table.schema)
        if len(table):
            check_first(table.select([image, *sides]).slice(0, 1).to_pylist()[0], image, sides)
        nulls = samples.faults
        samples.faults = {}
        fill_in(samples, table.schema, choice, path, lambda name: _column(table, name))
        samples.faults = {**nulls, **samples.faults}
        check_kept(view, path=path)
    return samples


def _table(view: memoryview) -> Any:
    """Read where all columns lie, without a copy."""
    arrow = need("pyarrow", "Arrow files", extra="parquet")
    ipc = need("pyarrow.ipc", "Arrow files", extra="parquet")
    is_file = bytes(view[: len(MAGIC)]) == MAGIC
    open_it: Callable[[Any], Any] = ipc.open_file if is_file else ipc.open_stream
    try:
        table = open_it(arrow.BufferReader(arrow.py_buffer(view))).read_all()
        table.validate()
        return table
    except (OSError, ValueError, arrow.ArrowException) as error:
        check_kept(view)
        raise CorruptRecordError(f"it cannot be read as Arrow: {str(error)[:500]}") from None


def _column(table: Any, name: str) -> Any:
    """Return a column, or a field of one of structs."""
    name, _, field = name.partition(".") if name not in table.column_names else (name, "", "")
    column = table.column(name)
    if not field:
        return column
    arrow = need("pyarrow", "Arrow files", extra="parquet")
    chunks = [chunk.field(field) for chunk in column.chunks]
    return arrow.chunked_array(chunks, column.type.field(field).type)


def _spans(view: memoryview, column: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Find the bytes of each row in the file; of a null there are none.

    Where rows have lists, those of each image, and how many each row has.
    """
    base = np.frombuffer(view, np.uint8).ctypes.data if len(view) else 0
    offsets, sizes = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    lists = []
    for chunk in column.chunks:
        chunk, counts = images_of(chunk)
        if counts is not None:
            lists.append(counts)
        missing = np.asarray(chunk.is_null().to_numpy(zero_copy_only=False), bool)
        if str(chunk.type).startswith("struct<"):
            chunk = chunk.field("bytes")
            missing |= np.asarray(chunk.is_null().to_numpy(zero_copy_only=False), bool)
        kind = str(chunk.type)
        if kind not in ("binary", "large_binary", "string", "large_string"):
            raise RecordIOError(f"its images are of the type {kind}: write them as binary")
        _, table, data = chunk.buffers()
        width = np.int64 if kind.startswith("large") else np.int32
        begin, count = chunk.offset, len(chunk)
        edges = np.zeros(1, np.int64)
        if table is not None and table.size:
            edges = np.frombuffer(table, width)[begin : begin + count + 1].astype(np.int64)
        first = 0 if data is None or not data.size else data.address - base
        if not 0 <= first <= len(view) or (count and first + edges[-1] > len(view)):
            raise RecordIOError(
                "its columns are compressed, so that no image lies in it as it is: save it again "
                "without compression"
            )
        if len(edges) != count + 1 or edges[0] < 0 or (np.diff(edges) < 0).any():
            raise CorruptRecordError("its images do not follow one another")
        offsets.append(first + edges[:-1])
        sizes.append(np.where(missing, NO_CONTENT, np.diff(edges)))
    lengths = np.concatenate(lists) if lists else None
    return np.concatenate(offsets), np.concatenate(sizes), lengths


def columns_and_rows(file: StoredFile) -> tuple[list[str], int]:
    """List all columns of a file, and count its rows."""
    table = _table(file.map())
    return list(table.column_names), len(table)


def fields(
    file: StoredFile, settings: RemoteSettings | None, samples: ContainedSamples, choice: Choice
) -> list[str]:
    """List the columns of bytes and text besides that of the images and that of the labels."""
    return column_fields(_table(file.map()).schema, choice, redacted_url(file.name))


ARROW = Container(
    "an Arrow file",
    scan,
    PATTERN,
    is_it=is_folder_of(PATTERN),
    shards=files_of_folder(PATTERN),
    fields=fields,
    rules=2,
    chooses=frozenset(["field", "image_field", "label_field", "has_labels", "several"]),
)
