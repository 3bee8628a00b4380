"""`CSVIter`: batches of the rows of CSV files.

In the order of the file rows are streamed, with bounded memory whatever the size of the file;
shuffled, the whole file is read at once.  Parsing happens in `recordio.text.csv`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from recordio.errors import TextFormatError
from recordio.keywords.checks import boolean, choice, integer, integers
from recordio.keywords.options import Rule, accepts, described, option, optional
from recordio.text.csv import CSVReader, read_csv

from ..core.order import BatchPlan, Order, Tail
from .array_rows import Columns, DenseColumn
from .mx_data_provider import MXDataProvider
from .provider_options import TextOptions
from .reorder import Axes
from .row_provider import RowProvider, RowSource, order_of_rows
from .row_stream import RowStream, StreamedRows

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..core.keywords import CSVIterParameters

DTYPES = ("float32", "float64", "int32", "int64", "uint8")


def _number(name: str, value: Any) -> float:
    """Return a number, NaN and infinity included."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name}={value!r}: expected a number")
    return float(value)


@dataclass(frozen=True, kw_only=True)
class CSVOptions(TextOptions):
    """The keywords of `CSVIter`."""

    rules: ClassVar[tuple[Rule, ...]] = (
        *TextOptions.rules,
        Rule("label_shape", lambda v: v.label_csv in (None, "NULL"), "needs label_csv"),
    )

    data_csv: str | os.PathLike[str] = option(
        kind="str or os.PathLike",
        text="""A file of numbers, a folder of such files, a pattern, several of these separated by
        semicolons, or fsspec URLs; ``.gz`` as well.""",
    )
    data_shape: tuple[int, ...] = option(
        kind="tuple of int",
        text="Shape of a row; every line must have as many fields.",
        check=integers,
    )
    batch_size: int = option(
        kind="int", text="Rows in a batch, at least 1.", check=partial(integer, low=1)
    )
    label_csv: str | os.PathLike[str] | None = option(
        None,
        "str or os.PathLike, optional",
        """A file with the labels, one line for every row.  Without it every label is one 0.""",
    )
    label_shape: tuple[int, ...] = option(
        (1,),
        "tuple of int",
        """Shape of a label; ``(1,)`` gives ``(batch_size,)``.""",
        integers,
    )
    round_batch: bool = option(
        True,
        "bool",
        """Fill the last batch from the start of the epoch. If False, the rest of the batch is
        zero. `pad` counts these rows in either case.""",
        boolean,
    )
    shuffle: bool = described(
        TextOptions,
        "shuffle",
        """A new permutation of all rows in every epoch. It keeps the whole file in memory; without
        it, only a few MiB are kept.""",
    )
    delimiter: str = option(",", "str", "One ASCII character between fields.")
    skip_header: int = option(
        0,
        "int",
        "Lines to leave out at the start of every file, those of labels included.",
        partial(integer, low=0),
    )
    missing: float | None = option(
        None,
        "number, optional",
        """The value of empty fields, such as ``float("nan")``; by default they are an error.""",
        optional(_number),
    )
    threads: int | None = option(
        None,
        "int, optional",
        "Threads that parse; by default one for every processor of the process.",
        optional(partial(integer, low=1)),
    )
    dtype: str = option(
        "float32",
        "str",
        """"float32" (also for None), "float64", "int32", "int64" or "uint8", for data and
        labels.""",
        lambda name, value: choice(name, value or "float32", DTYPES),
        saved=True,
    )
    layout: str | None = option(
        None,
        "str, optional",
        """Axes of a batch of data: any order of NCHW if `data_shape` has three numbers, which are
        then channels, rows and columns, or of NC if it has one number. By default that order.""",
    )
    on_error: str = described(
        TextOptions,
        "on_error",
        """A line that cannot be read is an error: when its batch is requested, and the next call
        continues after it; or, with `shuffle`, when the provider is made. With "skip", its row is
        replaced by the next good one of the epoch and listed in `skipped`. A row that is bad in
        one of two files is bad in both.""",
    )

    max_array_bytes: int | None = described(
        TextOptions,
        "max_array_bytes",
        """A larger array is an error: the array of all rows with `shuffle`, that of a few MiB of
        text without it. By default 64 times the size of the files as they are stored, at least 256
        MiB.""",
    )

    @property
    def form(self) -> dict[str, Any]:
        """Options of the text's reader."""
        return self.values(
            "dtype",
            "delimiter",
            "skip_header",
            "missing",
            "threads",
            "max_line_bytes",
            "max_array_bytes",
            "remote_options",
        )


@MXDataProvider.register
@accepts(CSVOptions)
class CSVIter(RowProvider):
    r"""Batches of the rows of CSV files.

    Parameters
    ----------
    {parameters}

    Raises
    ------
    TextFormatError
        For a line that cannot be read, with its position, for more or fewer labels than rows, for a
        label that is a whole number without an exact `dtype`, and beyond a limit.
    TypeError
        For a parameter that does not exist.
    ValueError
        For a value that is out of range.
    OSError
        If a file cannot be read.

    Notes
    -----
    Without `shuffle`, the rows are counted when the provider is made, which reads the file once
    without parsing it.  Parts after the first one and resumed epochs go to their rows at once; in a
    gzip file, they first unpack everything before these rows.

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

    def __init__(self, **keywords: Unpack[CSVIterParameters]) -> None:
        options = CSVOptions.of(type(self).__name__, keywords)
        files = [_File(options.data_name, options.data_csv, options.data_shape, options.layout)]
        label_name, label_csv, label_shape = (
            options.label_name,
            options.label_csv,
            options.label_shape,
        )
        constant_label = label_name
        if label_name is not None and label_csv not in (None, "NULL"):
            assert label_csv is not None
            files.append(_File(label_name, label_csv, label_shape, scalar=label_shape == (1,)))
            constant_label = None
        make = _read_at_once if options.shuffle else _stream
        source, order = make(files, constant_label, options)
        tail: Tail = "wrap" if options.round_batch else "pad"
        super().__init__(source, BatchPlan(order, options.batch_size, tail), options)


CSVProvider: TypeAlias = CSVIter


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
        self.axes = Axes(name, 1 if scalar else len(shape) + 1, layout=layout)


def _check_counts(files: list[_File], counts: list[int]) -> int:
    """Count the rows, every one of which needs a label."""
    if not counts[0]:
        raise TextFormatError("the file holds no rows", path=os.fspath(files[0].path))
    for file, count in zip(files[1:], counts[1:], strict=True):
        if count != counts[0]:
            raise TextFormatError(
                f"{count} labels for the {counts[0]} rows of {os.fspath(files[0].path)}",
                path=os.fspath(file.path),
            )
    return counts[0]


def _read_at_once(
    files: list[_File], constant_label: str | None, options: CSVOptions
) -> tuple[RowSource, Order]:
    """All rows in memory, and their order."""
    skipping = options.on_error == "skip"
    errors: list[dict[int, TextFormatError]] = [{} for _ in files]
    arrays = [
        read_csv(
            file.path,
            file.shape,
            bad_rows=bad if skipping else None,
            exact=file is not files[0],
            **options.form,
        )
        for file, bad in zip(files, errors, strict=True)
    ]
    count = _check_counts(files, [len(array) for array in arrays])
    columns = [
        DenseColumn(
            file.name, array[:count], shape=() if file.scalar else file.shape, axes=file.axes
        )
        for file, array in zip(files, arrays, strict=True)
    ]
    if constant_label is not None:
        columns.append(DenseColumn(constant_label, np.zeros(count, options.dtype)))
    # A row that is bad in both is named once.
    bad_rows = {row: error for bad in reversed(errors) for row, error in bad.items()}
    return Columns(columns[:1], columns[1:], bad_rows), order_of_rows(options, count)


def _stream(
    files: list[_File], constant_label: str | None, options: CSVOptions
) -> tuple[RowSource, Order]:
    """Rows as they are needed, and their order."""
    readers = [
        CSVReader(file.path, file.shape, exact=file is not files[0], **options.form)
        for file in files
    ]
    count = _check_counts(files, [reader.count() for reader in readers])
    order = order_of_rows(options, count)
    first = int(order.take(0, 0, 1)[0]) if order.count() else 0
    streams = [
        RowStream(file.name, reader, first, file.axes, file.scalar)
        for file, reader in zip(files, readers, strict=True)
    ]
    return StreamedRows(count, streams, constant_label), order
