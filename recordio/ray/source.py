"""Records and images of record files as Ray datasets."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow
import ray.data
from ray.data.block import BlockAccessor, BlockMetadata
from ray.data.datasource import Datasource, ReadTask

from ..bytes.remote.objects import redacted_url
from ..errors import ImageDecodeError, LabelError, RecordIOError
from ..formats.image_header import complete_limits
from ..header import unpack
from ..packed_images import unpack_img
from .ranges import RecordRange, cut_ranges, listed_record_files

#: A block is handed over when its contents take so many bytes.
BLOCK_BYTES = 1 << 25

Paths = str | os.PathLike[str] | Sequence[str]


class RecordDatasource(Datasource):
    """Record files in ranges, of which every read task has one.

    Parameters
    ----------
    paths : path or sequence of paths
        Record files with an index beside each, folders, patterns, and manifests of shards; they may
        be URLs.
    label_width : int or None
        Labels of each record.  1: the column ``label`` holds numbers; more: lists of that length;
        None: lists of any length, for detection records.
    channels : {None, 1, 3}
        None: encoded images, in the column ``bytes``.  Otherwise they are decoded, into a column
        ``image`` of uint8 arrays ``(height, width)`` or ``(height, width, 3)``, RGB.
    on_error : {"raise", "skip"}
        Whether a record that is damaged, has other labels or cannot be decoded ends the read, or is
        left out.
    **limits : int or None
        Images that exceed `max_pixels`, `max_scans` or `max_scan_pixels`, which mean what they mean
        for `recordio.unpack_img`, are not decoded.

    Raises
    ------
    RecordIOError
        If a file has no index, or is not what a manifest says.
    OSError
        If a file is not there.

    Notes
    -----
    Rows are in the order of the files.  Numbers of rows come from the indexes, or from a manifest,
    in which case no other file is opened here.  The records of a face-recognition pack that list
    identities are no rows.  Every node must find the files under the same paths.  URLs are reached
    as the environment says, and each node has mirrors of its own: see the page about remote files.

    Examples
    --------
    >>> import tempfile
    >>> from recordio import IRHeader, RecordWriter, pack
    >>> path = f"{tempfile.mkdtemp()}/a.rec"
    >>> with RecordWriter(path, f"{path[:-4]}.idx") as writer:
    ...     for number in range(10):
    ...         _ = writer.write(pack(IRHeader(0, number, number, 0), b"content"), number)
    >>> tasks = RecordDatasource(path).get_read_tasks(3)
    >>> [task.metadata.num_rows for task in tasks]
    [3, 3, 4]
    >>> next(iter(tasks[2]()))["label"].to_pylist()
    [6.0, 7.0, 8.0, 9.0]
    """

    def __init__(
        self,
        paths: Paths,
        *,
        label_width: int | None = 1,
        channels: int | None = None,
        on_error: str = "raise",
        **limits: int | None,
    ) -> None:
        super().__init__()
        if label_width is not None and (not isinstance(label_width, int) or label_width < 1):
            raise ValueError(f"label_width={label_width!r}: expected at least 1, or None")
        if channels not in (None, 1, 3):
            raise ValueError(f"channels={channels!r}: expected 1, 3 or None")
        if on_error not in ("raise", "skip"):
            raise ValueError(f'on_error={on_error!r}: expected "raise" or "skip"')
        self._files = listed_record_files(paths)
        self._exact = on_error == "raise"
        self._read = partial(
            _blocks,
            label_width=label_width,
            channels=channels,
            limits=complete_limits(limits),
            skip=on_error == "skip",
        )
        self._decoded = channels is not None

    def get_name(self) -> str:
        """Return the name of the read in messages of Ray."""
        return "Images" if self._decoded else "Records"

    def estimate_inmemory_data_size(self) -> int | None:
        """Return the bytes of all rows; None for decoded images, whose sizes are in the records."""
        return None if self._decoded else sum(file.bytes for file in self._files)

    def get_read_tasks(
        self, parallelism: int, per_task_row_limit: int | None = None, data_context: Any = None
    ) -> list[ReadTask]:
        """Return a task for each range of records, about as many as were asked for."""
        return [
            ReadTask(
                partial(self._read, piece),
                BlockMetadata(
                    num_rows=len(piece) if self._exact else None,
                    size_bytes=None if self._decoded else piece.bytes,
                    exec_stats=None,
                    input_files=(redacted_url(piece.file.path),),
                ),
                per_task_row_limit=per_task_row_limit,
            )
            for piece in cut_ranges(self._files, parallelism)
        ]


def read_records(
    paths: Paths,
    *,
    label_width: int | None = 1,
    on_error: str = "raise",
    concurrency: int | None = None,
    override_num_blocks: int | None = None,
    num_cpus: float | None = None,
    memory: float | None = None,
    resources: dict[str, float] | None = None,
) -> ray.data.Dataset:
    """Read record files as a dataset with the columns ``key``, ``id``, ``label`` and ``bytes``.

    Parameters
    ----------
    paths, label_width, on_error
        As for `RecordDatasource`.
    concurrency, override_num_blocks, num_cpus, memory, resources
        As for `ray.data.read_datasource`.

    Returns
    -------
    ray.data.Dataset
        ``key`` is that of the index (int64), ``id`` that of the image header (uint64), ``label``
        float32, and ``bytes`` what follows the header.
    """
    source = RecordDatasource(paths, label_width=label_width, on_error=on_error)
    return ray.data.read_datasource(
        source,
        concurrency=concurrency,
        override_num_blocks=override_num_blocks,
        num_cpus=num_cpus,
        memory=memory,
        resources=resources,
    )


def read_images(
    paths: Paths,
    *,
    channels: int = 3,
    label_width: int | None = 1,
    on_error: str = "raise",
    concurrency: int | None = None,
    override_num_blocks: int | None = None,
    num_cpus: float | None = None,
    memory: float | None = None,
    resources: dict[str, float] | None = None,
    **limits: int | None,
) -> ray.data.Dataset:
    """Read record files as a dataset with the columns ``key``, ``id``, ``label`` and ``image``.

    Parameters
    ----------
    paths, channels, label_width, on_error, **limits
        As for `RecordDatasource`.
    concurrency, override_num_blocks, num_cpus, memory, resources
        As for `ray.data.read_datasource`.

    Returns
    -------
    ray.data.Dataset
        ``image`` holds uint8 arrays ``(height, width, 3)``, RGB, or ``(height, width)``, turned
        upright as their EXIF orientation says.

    Notes
    -----
    This is for jobs over images.  For training give every worker an `ImageRecordIter` of its own
    (`iterators.ray.train_iterator`), which keeps the order and can be resumed.
    """
    if channels not in (1, 3):
        raise ValueError(f"channels={channels!r}: expected 1 or 3")
    source = RecordDatasource(
        paths,
        label_width=label_width,
        channels=channels,
        on_error=on_error,
        **limits,
    )
    return ray.data.read_datasource(
        source,
        concurrency=concurrency,
        override_num_blocks=override_num_blocks,
        num_cpus=num_cpus,
        memory=memory,
        resources=resources,
    )


# -- the work of a task ------------------------------------------------------------------------


def _blocks(
    piece: RecordRange,
    label_width: int | None,
    channels: int | None,
    limits: dict[str, int],
    skip: bool,
) -> Iterator[Any]:
    columns: dict[str, list[Any]] = {}
    held = 0
    content: Callable[[memoryview], Any] = bytes
    if channels is not None:
        content = partial(_decoded, channels=channels, limits=limits)
    for number, key, record in piece.read():
        try:
            row = _row(record, key, label_width, content, channels)
        except RecordIOError as error:
            if skip:
                continue
            path = redacted_url(piece.file.path)
            raise type(error)(error.reason, path=path, record=number) from None
        for name, value in row.items():
            columns.setdefault(name, []).append(value)
        held += len(row["bytes"]) if channels is None else row["image"].nbytes
        if held >= BLOCK_BYTES:
            yield _block(columns, label_width)
            columns, held = {}, 0
    if columns:
        yield _block(columns, label_width)


def _row(
    record: memoryview | RecordIOError,
    key: int,
    label_width: int | None,
    content: Callable[[memoryview], Any],
    channels: int | None,
) -> dict[str, Any]:
    if isinstance(record, RecordIOError):
        raise record
    header, encoded = unpack(record)
    labels = np.atleast_1d(np.asarray(header.label, np.float32))
    if label_width is not None and len(labels) != label_width:
        raise LabelError(f"it has {len(labels)} labels, and label_width is {label_width}")
    return {
        "key": key,
        "id": header.id,
        "label": labels[0] if label_width == 1 else labels,
        "bytes" if channels is None else "image": content(record if channels else encoded),
    }


def _decoded(record: memoryview, channels: int, limits: dict[str, int]) -> np.ndarray:
    _, image = unpack_img(record, 0 if channels == 1 else 1, **limits)
    if image is None:
        raise ImageDecodeError("it holds no image that can be decoded")
    return image if channels == 1 else np.ascontiguousarray(image[..., ::-1])


def _block(columns: dict[str, list[Any]], label_width: int | None) -> Any:
    labels: Iterable[Any] = columns["label"]
    number = pyarrow.float32()
    kinds = {1: number, None: pyarrow.list_(number)}
    kind = kinds.get(label_width) or pyarrow.list_(number, label_width)
    table = pyarrow.table(
        {
            "key": pyarrow.array(columns["key"], pyarrow.int64()),
            "id": pyarrow.array(columns["id"], pyarrow.uint64()),
            "label": pyarrow.array(labels, kind),
        }
    )
    if "bytes" in columns:
        return table.append_column("bytes", pyarrow.array(columns["bytes"], pyarrow.binary()))
    images = BlockAccessor.batch_to_block({"image": columns["image"]})
    return table.append_column("image", images["image"])
