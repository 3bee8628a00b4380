"""`CSVIter`: batches of the rows of CSV files.

In the order of the file rows are streamed, with bounded memory whatever the size of the file;
shuffled, the whole file is read at once.  Parsing happens in `recordio.csv`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from recordio.csv import CSVReader, read_csv
from recordio.errors import RecordIOError, TextFormatError
from recordio.row_count import count_rows

from ..core.batch import DataDesc
from ..core.order import BatchPlan
from ..core.parameters import boolean, choice, integer, integers
from ..core.pool import BufferPool
from .columns import Columns, DenseColumn
from .libsvm import refuse_skipping
from .rows import RowOptions, RowProvider, refuse_unknown

__all__ = ["CSVIter", "CSVProvider"]

DTYPES = ("float32", "float64", "int32", "int64", "uint8")


class CSVIter(RowProvider):
    r"""Batches of the rows of CSV files.

    Parameters
    ----------
    data_csv : str or os.PathLike
        A file of numbers, a folder of such files, or an fsspec URL of either; ``.gz`` as well.
    data_shape : tuple of int
        Shape of a row; every line must have as many fields.
    batch_size : int
        Rows in a batch, at least 1.
    label_csv : str or os.PathLike, optional
        A file with the labels, one line for every row; further lines are left out.  Without it
        every label is one 0.
    label_shape : tuple of int
        Shape of a label; ``(1,)`` gives ``(batch_size,)``.  Without `label_csv` it is not used.
    round_batch : bool
        Fill the last batch from the start of the epoch.  If False the rest of it is zero.  `pad`
        counts those rows in either case.
    shuffle : bool
        A new permutation of all rows in every epoch.  This keeps the whole file in memory; in the
        order of the file only a few MiB are.
    seed : int
        Determines the permutations.
    num_parts, part_index : int
        Deliver only part `part_index` of `num_parts`: without `shuffle` the block of
        ``ceil(n / num_parts)`` rows, with it every `num_parts`-th place of the one permutation.
    even : bool
        Give every part the same number of rows; those missing to that come twice in the epoch.
    delimiter : str
        One ASCII character between fields.
    skip_header : int
        Lines to leave out at the start of every file, those of labels included.
    threads : int, optional
        Threads that parse; by default one for every processor of the process.
    prefetch_buffer : int
        Batches prepared ahead of the consumer, at least 1.
    data_name, label_name : str
        Names in `provide_data` and `provide_label`; ``label_name=None`` for no labels.
    dtype : str
        "float32" (also for None), "float64", "int32", "int64" or "uint8", for data and labels.
    data_specs : (Space, source), optional
        What a batch must look like: a tuple in exactly that form, which is a `DataBatch` as well.
        The sources are "features" and "targets"; a VectorSpace of as many elements as there are
        classes makes a single label one-hot.
    device : str or torch.device, optional
        None for NumPy arrays, "cpu" for torch tensors that share their memory, "cuda" or "cuda:i"
        for tensors on that device.
    epoch : int
        Number of the first epoch.
    on_error : {"raise"}
        A line that cannot be read is an error: when its batch is asked for, or with `shuffle` when
        the provider is made.
    ctx : {"cpu", "gpu"}
        Accepted because scripts pass it; where MXNet would put its buffers, which is `device` here.

    Raises
    ------
    TextFormatError
        For a line that cannot be read, with its place, and for fewer labels than rows.
    TypeError
        For a parameter that does not exist.

    Notes
    -----
    The rows are counted when the provider is made, which reads the file once without parsing it.
    Parts after the first one and resumed epochs parse the rows before theirs, too.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "a.csv")
    >>> _ = path.write_text("1,2\n3,4\n5,6\n")
    >>> with CSVIter(data_csv=path, data_shape=(2,), batch_size=2) as provider:
    ...     for batch in provider:
    ...         print(batch.data[0].tolist(), batch.label[0], batch.index, batch.pad)
    [[1.0, 2.0], [3.0, 4.0]] [0. 0.] [0 1] 0
    [[5.0, 6.0], [1.0, 2.0]] [0. 0.] [2 0] 1
    """

    def __init__(
        self,
        *,
        data_csv: str | os.PathLike[str],
        data_shape: tuple[int, ...],
        batch_size: int,
        label_csv: str | os.PathLike[str] | None = None,
        label_shape: tuple[int, ...] = (1,),
        round_batch: bool = True,
        shuffle: bool = False,
        seed: int = 0,
        num_parts: int = 1,
        part_index: int = 0,
        even: bool = False,
        delimiter: str = ",",
        skip_header: int = 0,
        threads: int | None = None,
        prefetch_buffer: int = 4,
        data_name: str = "data",
        label_name: str | None = "softmax_label",
        dtype: str | None = None,
        data_specs: Any = None,
        device: Any = None,
        epoch: int = 0,
        on_error: str = "raise",
        ctx: str = "gpu",
        **unknown: Any,
    ) -> None:
        refuse_unknown(self, unknown)
        options = RowOptions(
            num_parts,
            part_index,
            even,
            shuffle,
            seed,
            prefetch_buffer,
            device,
            epoch,
            on_error,
            data_specs=data_specs,
        )
        refuse_skipping(options.on_error)
        choice("ctx", ctx, ("cpu", "gpu"))
        form = {
            "dtype": choice("dtype", dtype or "float32", DTYPES),
            "delimiter": delimiter,
            "skip_header": integer("skip_header", skip_header, low=0),
            "threads": None if threads is None else integer("threads", threads, low=1),
        }
        data_shape = integers("data_shape", data_shape)
        label_shape = integers("label_shape", label_shape)
        with_labels = label_name is not None and label_csv not in (None, "NULL")
        files: list[tuple[str, Any, tuple[int, ...]]] = [(data_name, data_csv, data_shape)]
        if with_labels:
            assert label_name is not None
            files.append((label_name, label_csv, label_shape))
        counts = [count_rows(path, form["skip_header"]) for _, path, _ in files]
        if not counts[0]:
            raise TextFormatError("the file holds no rows", path=os.fspath(data_csv))
        if with_labels and counts[1] < counts[0]:
            raise TextFormatError(
                f"{counts[1]} labels for the {counts[0]} rows of {os.fspath(data_csv)}",
                path=os.fspath(files[1][1]),
            )
        plan = BatchPlan(
            options.order(counts[0]),
            integer("batch_size", batch_size, low=1),
            "wrap" if boolean("round_batch", round_batch) else "pad",
        )
        allocate, depth = options.place.allocate, options.prefetch_buffer
        produce: Any
        if options.shuffle:
            columns = [
                DenseColumn(
                    name, read_csv(path, shape, **form)[: counts[0]], shape=_batched(shape, i)
                )
                for i, (name, path, shape) in enumerate(files)
            ]
            if label_name is not None and not with_labels:
                columns.append(DenseColumn(label_name, np.zeros(counts[0], form["dtype"])))
            produce = Columns(columns[:1], columns[1:])
            produce.prepare(plan.batch_size, depth, allocate)
            finish, workers = None, produce.threads()
        else:
            # Always a sequential order here; the rows of other parts come before its first one.
            first = int(options.order(counts[0]).take(0, 0, 1)[0]) if len(plan) else 0
            streams = [
                _RowStream(CSVReader(path, shape, **form), first, plan.batch_size, depth, allocate)
                for _, path, shape in files
            ]
            produce = _StreamedBatches(
                streams, plan.batch_size, with_labels, label_name is not None, form["dtype"]
            )
            # The reader has threads of its own that parse ahead; copying needs none.
            finish, workers = produce.close, 0
        descriptions = [
            DataDesc(name, (plan.batch_size, *_batched(shape, i)), form["dtype"], _layout(shape, i))
            for i, (name, _, shape) in enumerate(files)
        ]
        if label_name is not None and not with_labels:
            descriptions.append(DataDesc(label_name, (plan.batch_size,), form["dtype"], "N"))
        super().__init__(
            plan,
            produce,
            descriptions[:1],
            descriptions[1:],
            options,
            settings={
                "rows": counts[0],
                "data_shape": data_shape,
                "label_shape": label_shape,
                "dtype": form["dtype"],
            },
            threads=workers,
            finish=finish,
        )


CSVProvider = CSVIter


def _batched(shape: tuple[int, ...], is_label: int) -> tuple[int, ...]:
    """Shape of a row in the batch: a label of one number has no axis of its own."""
    return () if is_label and shape == (1,) else shape


def _layout(shape: tuple[int, ...], is_label: int) -> str | None:
    return {0: "N", 1: "NC", 3: "NCHW"}.get(len(_batched(shape, is_label)))


class _RowStream:
    """Rows of one file by number, cheap as long as the numbers go up.

    Asking for an earlier row starts again at the top of the file, except for the first rows of the
    part: they are kept, because the last batch of every epoch is filled with them.
    """

    def __init__(
        self, reader: CSVReader, first: int, batch_size: int, depth: int, allocate: Any
    ) -> None:
        self.reader = reader
        self.batch_shape = (batch_size, *reader.shape)
        nbytes = int(np.prod(self.batch_shape)) * reader.dtype.itemsize
        self.pool = BufferPool(nbytes, depth + 2, allocate)
        self.first = first
        self.head = np.empty((0, *reader.shape), reader.dtype)
        self.rows: Iterator[np.ndarray] | None = None
        self.chunk = self.head
        self.place = 0  # number of the first row of `chunk`
        self.at = 0  # number of the next row

    def batch(self, rows: np.ndarray) -> np.ndarray:
        """A batch whose first places are `rows`; the others are zero."""
        batch = np.frombuffer(self.pool.take(), self.reader.dtype).reshape(self.batch_shape)
        begin = 0
        while begin < len(rows):
            steps = np.flatnonzero(np.diff(rows[begin:]) != 1)
            end = begin + 1 + int(steps[0]) if len(steps) else len(rows)
            self.fill(batch[begin:end], int(rows[begin]))
            begin = end
        batch[len(rows) :] = 0
        return batch

    def fill(self, target: np.ndarray, row: int) -> None:
        """Fill `target` with the rows from `row` on."""
        kept = row - self.first
        if row < self.at and kept >= 0 and kept + len(target) <= len(self.head):
            target[...] = self.head[kept : kept + len(target)]
            return
        if row < self.at or self.rows is None:
            self.restart()
        self.skip(row)
        filled = 0
        while filled < len(target):
            offset = self.at - self.place
            count = min(len(self.chunk) - offset, len(target) - filled)
            if not count:
                self.advance()
                continue
            target[filled : filled + count] = self.chunk[offset : offset + count]
            filled += count
            self.at += count

    def skip(self, row: int) -> None:
        while self.place + len(self.chunk) < row:
            self.advance()
        self.at = row

    def advance(self) -> None:
        """Go to the next chunk, keeping what belongs to the head."""
        assert self.rows is not None
        self.place += len(self.chunk)
        self.at = self.place
        self.chunk = self.chunk[:0]
        chunk = next(self.rows, None)
        if chunk is None:
            raise TextFormatError(
                f"the file had more rows when it was opened; now there are {self.place}",
                path=self.reader.path,
            )
        self.chunk = chunk
        missing = self.batch_shape[0] - len(self.head)
        begin = self.first + len(self.head) - self.place
        if missing > 0 and begin < len(chunk):
            self.head = np.concatenate([self.head, chunk[begin : begin + missing]])

    def restart(self) -> None:
        """Go to the top of the file."""
        self.stop()
        self.chunk = self.head[:0]
        self.place = self.at = 0
        self.rows = iter(self.reader)

    def stop(self) -> None:
        rows, self.rows = self.rows, None
        if rows is not None:
            rows.close()  # type: ignore[attr-defined]


class _StreamedBatches:
    """Batches made of one or two streams in step."""

    def __init__(
        self,
        streams: list[_RowStream],
        batch_size: int,
        with_labels: bool,
        has_labels: bool,
        dtype: str,
    ) -> None:
        self.streams = streams
        self.batch_size = batch_size
        self.constant_labels = has_labels and not with_labels
        self.dtype = dtype

    def __call__(self, rows: np.ndarray, epoch: int) -> tuple[list, list, np.ndarray, list]:
        """Data, labels and row numbers of a batch."""
        try:
            data, *label = [stream.batch(rows) for stream in self.streams]
        except RecordIOError:
            for stream in self.streams:
                stream.stop()  # what comes after an error starts again at the top of the file
            raise
        label = [array[:, 0] if array.shape[1:] == (1,) else array for array in label]
        if self.constant_labels:
            label = [np.zeros(self.batch_size, self.dtype)]
        ids = np.zeros(self.batch_size, np.uint64)
        ids[: len(rows)] = rows
        return [data], label, ids, []

    def close(self) -> None:
        """End the threads that parse."""
        for stream in self.streams:
            stream.stop()
            stream.reader.close()
