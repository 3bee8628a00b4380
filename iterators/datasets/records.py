"""Record files as datasets: the records themselves, and decoded images with their labels.

Every example is read when it is asked for; nothing is cached, augmented or shuffled.  Whole epochs
of augmented batches are what `iterators.ImageRecordIter` makes faster.
"""

from __future__ import annotations

import functools
import os
from bisect import bisect_right
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.process import parent_process
from typing import Any

import numpy as np

from recordio.errors import LabelError, RecordIOError, TruncatedRecordError
from recordio.frames.mapping import LOST, is_lost
from recordio.frames.reader import RecordReader
from recordio.header import IRHeader, unpack
from recordio.packs.labels import label_changes
from recordio.remote.settings import RemoteSettings

from ..core.backend import backend_of
from ..core.indexing import resolve_rows
from ..core.layout import plan
from ..core.parameters import choice, integer
from ..images.codecs import general as codec
from ..images.codecs.jpeg import jpeg
from ..images.sources.packs import Pack, Packs, as_packs, label_source
from ..images.sources.record_source import RecordSource, read_label_vectors
from .mixin import DatasetMixin

__all__ = ["ImageRecordDataset", "RecordDataset"]

Path = str | os.PathLike[str]

TO_CHW = plan("hwc", "chw")
#: Images decoded together before the next ones are begun, for each thread.
RUN = 4


class RecordDataset(DatasetMixin):
    """The records of any record file.

    Parameters
    ----------
    path : path
        The record file.
    index : path, optional
        Its ``.idx`` file; examples then come in its order.  Without one they come in the order of
        the file, which is scanned once.
    header : bool
        Whether records begin with an image header.  An example is then ``(IRHeader, payload)``.
    copy : bool
        True: payloads are bytes, which can be pickled and therefore sent between processes.  False:
        they are read-only memoryviews of the mapped file, without a copy.
    **remote
        Keywords of `recordio.RemoteSettings`, for URLs.

    Raises
    ------
    OSError, IndexFileError
        As `recordio.RecordReader`.
    CorruptRecordError, TruncatedRecordError, RecordHeaderError
        When a damaged record is read.

    Notes
    -----
    Negative integers count from the end.  Any number of threads may read one dataset; it can be
    used after a fork, and pickling stores the paths only.  Lists and slices are read with
    `recordio.RecordReader.read_many`, and so are the batches of torch's ``DataLoader``.

    Examples
    --------
    >>> import pathlib, recordio, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "a.rec")
    >>> with recordio.RecordWriter(path) as writer:
    ...     for text in (b"one", b"two", b"three"):
    ...         _ = writer.write(text)
    >>> records = RecordDataset(path)
    >>> len(records), records[-1], records[[1, 0]]
    (3, b'three', [b'two', b'one'])
    """

    def __init__(
        self,
        path: Path,
        index: Path | None = None,
        *,
        header: bool = False,
        copy: bool = True,
        **remote: Any,
    ) -> None:
        self.reader = RecordReader(path, index, **remote)
        self._header = header
        self._copy = copy

    def __len__(self) -> int:
        return len(self.reader)

    def get_example(self, i: Any) -> bytes | memoryview | tuple[IRHeader, Any]:
        """The record at a position."""
        record = self.reader[i]
        payload = bytes(record) if self._copy else record
        if is_lost(record):
            raise TruncatedRecordError(LOST, **self.place_of(i))
        return self._finish(payload, i)

    def __getitems__(self, indices: Sequence[int] | np.ndarray) -> list[Any]:
        """Several records, read at once."""
        records: list[Any] = self.reader.read_many(indices, copy=self._copy)
        if not self._header:
            return records
        return [self._finish(record, i) for i, record in zip(indices, records, strict=True)]

    def _finish(self, payload: bytes | memoryview, i: Any) -> Any:
        if not self._header:
            return payload
        try:
            return unpack(payload)
        except RecordIOError as error:
            raise error.at(**self.place_of(i)) from None

    def place_of(self, i: Any) -> dict[str, Any]:
        """Where an example lies, as `RecordIOError` names it."""
        row = resolve_rows(i, len(self))
        return {"path": self.reader.path, "offset": self.reader.offset_of(row), "record": row}


class ImageRecordDataset(DatasetMixin):
    """Decoded images of record files, with their labels.

    Parameters
    ----------
    path : path, Pack, or a list of them
        A record file, a folder of them, or several paths separated by semicolons.  Of a
        face-recognition pack the examples are the images.  A `Pack` also says what becomes of its
        labels; examples are numbered through, pack after pack.
    index : path
        ``.idx`` files in the same form.  Optional: without them the files are scanned once.  A
        `Pack` names its own.
    channels : {3, 1, 4}
        3 for RGB, 1 for grey, 4 for RGBA; images are turned upright as their EXIF orientation says.
    layout : {"HWC", "CHW"}
        Order of the axes.
    dtype : {"uint8", "float32"}
        ``"float32"`` for the values that are stored, such as depths and medical images of 16 bits
        or floating point, with every bit and without scaling; for 1 or 3 channels.
    transform : callable, optional
        Takes the image and returns what stands in its place.
    label_dtype : dtype_like
        Element type of the labels, float32 in the file.
    threads : int, optional
        How many images of one batch are decoded at a time; decoding needs no GIL.  By default as
        many as there are processor cores, but one in worker processes, which already share them.
        The transform runs in the thread of the caller.
    max_pixels, max_scans, max_scan_pixels : int
        Images with more pixels, and JPEG images with more scans, or more pixels in all of them,
        are refused before anything is decoded.
    **remote
        Keywords of `recordio.RemoteSettings`, for URLs.

    Attributes
    ----------
    source : RecordSource
        The files; ``source.labels()`` reads all labels without decoding an image.
    identities : numpy.ndarray of int64, (identities, 2), or None
        In a face-recognition pack, the examples ``[first, end)`` of every identity.

    Raises
    ------
    EmptyRecordFileError
        If there is no record.
    ImageDecodeError, RecordHeaderError, CorruptRecordError, TruncatedRecordError
        When a bad record is read; the error names path, offset and record.
    LabelError
        If `label_dtype` is an integer type and a label is no whole number in its range.

    Notes
    -----
    An example is ``(image, label)``: an array of `dtype` and shape (height, width, channels) or
    (channels, height, width), and a NumPy scalar, or an array of shape (labels,) where the record
    has a vector.  Example i is what ``ImageRecordIter`` without shuffling delivers as its i-th
    sample.  Negative integers count from the end.  Threads and processes may share a dataset; 8
    bytes are kept for a record.

    Examples
    --------
    >>> import pathlib, recordio, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "a.rec")
    >>> with recordio.RecordWriter(path) as writer:
    ...     for label in (3, 5):
    ...         pixels = np.full((4, 6, 3), 10 * label, np.uint8)
    ...         header = recordio.IRHeader(0, label, 0, 0)
    ...         _ = writer.write(recordio.pack_img(header, pixels, img_fmt=".png"))
    >>> images = ImageRecordDataset(path, layout="CHW", label_dtype="int64")
    >>> image, label = images[1]
    >>> image.shape, image.max(), label
    ((3, 4, 6), np.uint8(50), np.int64(5))
    """

    def __init__(
        self,
        path: Path | Pack | Sequence[Path | Pack],
        index: Path = "",
        *,
        channels: int = 3,
        layout: str = "HWC",
        dtype: str = "uint8",
        transform: Callable[[np.ndarray], Any] | None = None,
        label_dtype: Any = np.float32,
        threads: int | None = None,
        max_pixels: int = jpeg.DEFAULT_MAX_PIXELS,
        max_scans: int = jpeg.DEFAULT_MAX_SCANS,
        max_scan_pixels: int = jpeg.DEFAULT_MAX_SCAN_PIXELS,
        **remote: Any,
    ) -> None:
        self._channels = choice("channels", channels, (3, 1, 4))
        self._layout = choice("layout", layout, ("HWC", "CHW"))
        self._dtype = choice("dtype", np.dtype(dtype).name, codec.DTYPES)
        if self._dtype == "float32" and channels == 4:
            raise ValueError("channels=4 has 8 bits: drop dtype, or ask for 1 or 3 channels")
        self._threads = None if threads is None else integer("threads", threads, low=1)
        self._limits = {
            "max_pixels": integer("max_pixels", max_pixels, low=1),
            "max_scans": integer("max_scans", max_scans, low=1),
            "max_scan_pixels": integer("max_scan_pixels", max_scan_pixels, low=1),
        }
        self._label_dtype = np.dtype(label_dtype)
        if self._label_dtype.kind not in "iuf":
            raise TypeError(f"label_dtype={label_dtype!r}: expected a type of real numbers")
        self._transform = transform
        self.packs = as_packs(path) or (Pack(path, path_imgidx=index),)  # type: ignore[arg-type]
        if index and as_packs(path):
            raise ValueError("index belongs to one pack: give path_imgidx to that Pack")
        _refuse_mixing(self.packs)
        settings = RemoteSettings(**remote)
        self.source = Packs(self.packs, remote=settings)
        self._lists = [_labels_of_list(pack.path_imglist, settings) for pack in self.packs]
        self._changes, self._count_classes = label_changes(
            [
                label_source(member, pack, functools.partial(_distinct, member, listed))
                for member, pack, listed in zip(
                    self.source.members, self.packs, self._lists, strict=True
                )
            ]
        )
        self._pool: tuple[int, ThreadPoolExecutor | None] = (-1, None)

    @property
    def identities(self) -> np.ndarray | None:
        """Examples ``[first, end)`` of every identity of a face-recognition pack, else None."""
        keys = self.source.identities
        return None if keys is None else keys - 1  # the images are the keys from 1 on

    @property
    def num_classes(self) -> int:
        """Number of classes of all packs; the first time it may read the labels of all records."""
        return self._count_classes()

    def pack_of(self, i: int) -> int:
        """Which of the packs an example comes from."""
        return self.source.pack_of(resolve_rows(i, len(self)))

    def __len__(self) -> int:
        return len(self.source)

    def get_example(self, i: Any) -> tuple[Any, Any]:
        """The image, transformed if there is a transform, and the label of a record."""
        return self._finish(self._read(resolve_rows(i, len(self))))

    def __getitems__(self, indices: Sequence[int] | np.ndarray) -> list[tuple[Any, Any]]:
        """Several examples, decoded by several threads."""
        rows = [resolve_rows(i, len(self)) for i in indices]
        threads = min(self._thread_count(), -(-len(rows) // RUN))
        if threads < 2:
            return [self._finish(self._read(row)) for row in rows]
        runs = [rows[start : start + RUN] for start in range(0, len(rows), RUN)]
        pool = self._executor(threads)
        found = pool.map(lambda run: [self._read(row) for row in run], runs)
        return [self._finish(example) for run in found for example in run]

    def _thread_count(self) -> int:
        if self._threads is not None:
            return self._threads
        return 1 if parent_process() else _cores()

    def _executor(self, threads: int) -> ThreadPoolExecutor:
        owner, pool = self._pool
        if pool is None or owner != os.getpid():  # a forked child has the object, not the threads
            pool = ThreadPoolExecutor(self._thread_count(), "ImageRecordDataset")
            self._pool = os.getpid(), pool
        return pool

    def _read(self, row: int) -> tuple[np.ndarray, Any]:
        source = self.source
        file = bisect_right(source.starts, row) - 1
        number = row - int(source.starts[file])
        offset = int(source.tables[file][number])
        reader = source.readers[file]
        record, _ = reader.read_at(offset, number, copy=True)
        try:
            header, content = unpack(b"" if record is None else record)
            image = codec.decode(content, self._channels, dtype=self._dtype, **self._limits)
            label = self._label(header, source.pack_of(row))
        except RecordIOError as error:
            raise error.at(path=reader.path, offset=offset, record=number) from None
        if self._layout == "CHW":
            image = backend_of(image).contiguous(TO_CHW(image))
        return image, label

    def _label(self, header: IRHeader, pack: int) -> Any:
        listed, change = self._lists[pack], self._changes[pack]
        stored = np.array(header.label, np.float32)
        if listed is not None and not change.absent:
            if header.id not in listed:
                raise LabelError("the list of labels has no line for this id", record_id=header.id)
            stored = listed[header.id]
        stored = np.array(-1, np.float32) if change.absent else change.of_record(stored)
        dtype = self._label_dtype
        if dtype.kind != "f":
            limits = np.iinfo(dtype)
            wide = stored.astype(np.float64)
            inside = (wide >= float(limits.min)) & (wide < float(limits.max + 1))
            if not (inside & (wide == np.floor(wide))).all():
                raise LabelError(
                    f"the label {stored.tolist()} is no {dtype.name}", record_id=header.id
                )
        return stored.astype(dtype)[()]

    def _finish(self, example: tuple[np.ndarray, Any]) -> tuple[Any, Any]:
        image, label = example
        return (image if self._transform is None else self._transform(image)), label

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_pool": (-1, None)}


def _refuse_mixing(packs: Sequence[Pack]) -> None:
    """Refuse what says how often images come, and what becomes of them."""
    for pack in packs:
        for name in ("share", "repeat", "weights", "cache"):
            if getattr(pack, name) not in (None, ""):
                raise ValueError(f"{name} of {pack!r} is for iterators over packs: drop it")
        for name in pack.augmentation:
            raise ValueError(f"{name} of {pack!r} is for iterators over packs: use transform")


def _labels_of_list(path: str, remote: RemoteSettings) -> dict[int, np.ndarray] | None:
    """The labels of every id of a list file."""
    if not path:
        return None
    ids, starts, values = read_label_vectors(path, remote)
    rows = np.split(values, starts[1:-1])
    return {int(key): row if len(row) > 1 else row[0] for key, row in zip(ids, rows, strict=True)}


def _distinct(source: RecordSource, listed: dict[int, np.ndarray] | None) -> np.ndarray:
    """The different class labels of a pack."""
    if listed is None:
        labels, _ = source.labels(on_error="skip")
    else:
        labels = np.array([np.atleast_1d(row)[0] for row in listed.values()], np.float32)
    return np.unique(labels[~np.isnan(labels)])


def _cores() -> int:
    """Processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
