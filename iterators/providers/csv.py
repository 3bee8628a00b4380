"""`CSVIter`: batches of the rows of CSV files.

In the order of the file rows are streamed, with bounded memory whatever the size of the file;
shuffled, the whole file is read at once.  Parsing happens in `recordio.text.csv`.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from recordio.errors import TextFormatError
from recordio.text.csv import CSVReader, read_csv
from recordio.text.lines import MAX_LINE_BYTES

from ..core.order import BatchPlan, Order, Tail
from ..core.parameters import boolean, choice, integer, integers
from .array_rows import Columns, DenseColumn
from .reorder import Axes
from .row_provider import RowOptions, RowProvider, RowSource
from .row_stream import RowStream, StreamedRows

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
    layout : str, optional
        Axes of a batch of data: any order of NCHW if `data_shape` has three numbers, which are then
        channels, rows and columns, or of NC if it has one.  By default in that order.
    data_specs : (Space, source), optional
        What a batch must look like: a tuple in exactly that form, which is a `DataBatch` as well.
        The sources are "features" and "targets"; a VectorSpace of as many elements as there are
        classes makes a single label one-hot.
    device : str or torch.device, optional
        None for NumPy arrays, "cpu" for torch tensors that share their memory, "cuda" or "cuda:i"
        for tensors on that device.
    epoch : int
        Number of the first epoch.
    on_error : {"raise", "skip"}
        A line that cannot be read is an error: when its batch is asked for, the next call going on
        behind it, or with `shuffle` when the provider is made.  With "skip" its row is replaced by
        the next good one of the epoch and listed in `skipped`.  A row that is bad in one of two
        files is bad in both.
    error_budget : int or float, optional
        With "skip": how many rows may be skipped, as a number or, below 1, as a fraction.
    max_line_bytes : int
        A longer line is an error.
    max_array_bytes : int, optional
        A larger array is an error: with `shuffle` that of all rows, without it that of a few MiB of
        text.  By default 64 times the size of the files as they are stored, at least 256 MiB.
    ctx : {"cpu", "gpu"}
        Accepted because scripts pass it; where MXNet would put its buffers, which is `device` here.

    Raises
    ------
    TextFormatError
        For a line that cannot be read, with its place, for fewer labels than rows, and beyond a
        limit.
    TypeError
        For a parameter that does not exist.

    Notes
    -----
    In the order of the file, the rows are counted when the provider is made, which reads the file
    once without parsing it.  Parts after the first one and resumed epochs go to their rows at once;
    of a file that is gzip, they unpack what comes before.

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
        layout: str | None = None,
        data_specs: Any = None,
        device: Any = None,
        epoch: int = 0,
        on_error: str = "raise",
        error_budget: float | None = None,
        max_line_bytes: int = MAX_LINE_BYTES,
        max_array_bytes: int | None = None,
        ctx: str = "gpu",
        **unknown: Any,
    ) -> None:
        options = RowOptions.of(
            self,
            unknown,
            ctx,
            num_parts=num_parts,
            part_index=part_index,
            even=even,
            shuffle=shuffle,
            seed=seed,
            prefetch_buffer=prefetch_buffer,
            device=device,
            epoch=epoch,
            on_error=on_error,
            error_budget=error_budget,
            data_specs=data_specs,
        )
        form = {
            "dtype": choice("dtype", dtype or "float32", DTYPES),
            "delimiter": delimiter,
            "skip_header": integer("skip_header", skip_header, low=0),
            "threads": None if threads is None else integer("threads", threads, low=1),
            "max_line_bytes": max_line_bytes,
            "max_array_bytes": max_array_bytes,
        }
        files = [_File(data_name, data_csv, integers("data_shape", data_shape), layout)]
        label_shape = integers("label_shape", label_shape)
        constant_label = label_name
        if label_name is not None and label_csv not in (None, "NULL"):
            assert label_csv is not None
            files.append(_File(label_name, label_csv, label_shape, scalar=label_shape == (1,)))
            constant_label = None
        batch_size = integer("batch_size", batch_size, low=1)
        tail: Tail = "wrap" if boolean("round_batch", round_batch) else "pad"
        make = _read_at_once if options.shuffle else _stream
        source, order = make(files, constant_label, form, options)
        super().__init__(source, BatchPlan(order, batch_size, tail), options, dtype=form["dtype"])


CSVProvider = CSVIter


class _File:
    """One of the files: what its arrays are called and look like."""

    def __init__(
        self,
        name: str,
        path: str | os.PathLike[str],
        shape: tuple[int, ...],
        layout: str | None = None,
        scalar: bool = False,
    ) -> None:
        self.name = name
        self.path = path
        self.shape = shape
        self.scalar = scalar  # a label of one number has no axis of its own
        self.axes = Axes(name, 1 if scalar else len(shape) + 1, wanted=layout)


def _check_counts(files: list[_File], counts: list[int]) -> int:
    """How many rows there are; every one needs a label."""
    if not counts[0]:
        raise TextFormatError("the file holds no rows", path=os.fspath(files[0].path))
    for file, count in zip(files[1:], counts[1:], strict=True):
        if count < counts[0]:
            raise TextFormatError(
                f"{count} labels for the {counts[0]} rows of {os.fspath(files[0].path)}",
                path=os.fspath(file.path),
            )
    return counts[0]


def _read_at_once(
    files: list[_File], constant_label: str | None, form: dict[str, Any], options: RowOptions
) -> tuple[RowSource, Order]:
    """All rows in memory, and their order."""
    skipping = options.on_error == "skip"
    found: list[dict[int, TextFormatError]] = [{} for _ in files]
    arrays = [
        read_csv(file.path, file.shape, bad_rows=bad if skipping else None, **form)
        for file, bad in zip(files, found, strict=True)
    ]
    count = _check_counts(files, [len(array) for array in arrays])
    columns = [
        DenseColumn(
            file.name, array[:count], shape=() if file.scalar else file.shape, axes=file.axes
        )
        for file, array in zip(files, arrays, strict=True)
    ]
    if constant_label is not None:
        columns.append(DenseColumn(constant_label, np.zeros(count, form["dtype"])))
    # A row that is bad in both is named once.
    bad_rows = {row: error for bad in reversed(found) for row, error in bad.items()}
    return Columns(columns[:1], columns[1:], bad_rows), options.order(count)


def _stream(
    files: list[_File], constant_label: str | None, form: dict[str, Any], options: RowOptions
) -> tuple[RowSource, Order]:
    """Rows as they are needed, and their order."""
    readers = [CSVReader(file.path, file.shape, **form) for file in files]
    count = _check_counts(files, [reader.count() for reader in readers])
    order = options.order(count)
    first = int(order.take(0, 0, 1)[0]) if order.count() else 0
    streams = [
        RowStream(file.name, reader, first, file.axes, file.scalar)
        for file, reader in zip(files, readers, strict=True)
    ]
    return StreamedRows(count, streams, constant_label), order
