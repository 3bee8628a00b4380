"""CSV files of numbers: a row becomes a record with its labels and an array, and back.

Rows are read in chunks by `recordio.CSVReader`, so that files may be larger than the memory.
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from recordio import CSVReader, RecordIOError
from recordio.bytes.storage import AtomicOutput
from recordio.keywords.checks import boolean, choice, integer
from recordio.keywords.options import Options, described, option, optional
from recordio.text.row_count import count_rows

from ..npy import decode_npy, is_sparse, npy_header
from ..payloads import number_text, numbers_text
from ..record_pack import Record, RecordPack
from .format import Export, Import, ImportSource, Item, Items, TextLimit, of_text

DTYPES = ("float32", "float64", "int32", "int64", "uint8")


def columns(text: str) -> list[int]:
    """Read numbers of columns: ``0,1,-1``."""
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no list of column numbers") from None
    return numbers


def shape(text: str) -> tuple[int, ...]:
    """Read a shape: ``3,32,32``."""
    try:
        lengths = tuple(int(part) for part in text.split(","))
    except ValueError:
        lengths = (0,)
    if min(lengths) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no list of lengths")
    return lengths


def delimiter(text: str) -> str:
    r"""Return one character; ``\t`` stands for a TAB."""
    text = text.replace("\\t", "\t")
    if len(text) != 1 or ord(text) > 127 or text in "\r\n\0+-." or text.isalnum():
        raise argparse.ArgumentTypeError(f"{text!r} is no delimiter")
    return text


def _number(name: str, value: Any) -> float:
    """Read a number, NaN and infinity included."""
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name}={value!r}: expected a number") from None


@dataclass(frozen=True, kw_only=True)
class CSVImportOptions(TextLimit):
    """Options of from-csv."""

    label_columns: Sequence[int] = option(
        (),
        "sequence of int",
        """Columns with labels, counted from 0, or from the end with a minus, as in
        --label-columns=-1; they are stored in the image header and not in the array (default:
        none, every label is 0).""",
        lambda name, value: of_text(columns)(name, value) if value or value == 0 else [],
    )
    dtype: str = option(
        "float32",
        "str",
        "Type of the array's elements (default: float32).",
        partial(choice, allowed=DTYPES),
    )
    shape: Sequence[int] | None = option(
        None,
        "sequence of int, optional",
        "Shape of the arrays, without the labels (default: one axis).",
        optional(of_text(shape)),
    )
    delimiter: str = option(
        ",",
        "str",
        r"Character between the fields; \t is a TAB (default: ,).",
        of_text(delimiter),
    )
    skip_header: int = option(
        0, "int", "Lines to leave out at the start (default: 0).", partial(integer, low=0)
    )
    missing: float | None = option(
        None,
        "number, optional",
        "The value of empty fields, such as nan or -1 (default: they are an error).",
        optional(_number),
    )


def open_csv(settings: argparse.Namespace) -> ImportSource:
    """Open a CSV file."""
    path = settings.source
    total = None
    if "://" not in path:  # a remote file would be fetched twice
        total = count_rows(path, settings.skip_header, settings.delimiter, settings.max_line_bytes)
    return ImportSource(read_items(settings), total)


def read_items(settings: argparse.Namespace) -> Items:
    """Yield an item for each row."""
    # As 32-bit floats labels would lose digits before anybody could say so.
    wide = settings.dtype == "float32" and len(settings.label_columns) > 0
    with CSVReader(
        settings.source,
        dtype="float64" if wide else settings.dtype,
        delimiter=settings.delimiter,
        skip_header=settings.skip_header,
        missing=settings.missing,
        max_line_bytes=settings.max_line_bytes,
    ) as reader:
        chosen: list[int] | None = None
        for rows in reader:
            if chosen is None:
                chosen = label_columns(settings.label_columns, rows.shape[1], settings.source)
                data_shape = array_shape(settings.shape, rows.shape[1] - len(chosen), settings)
                stored = np.dtype(settings.dtype).newbyteorder("<")
                head = npy_header(stored, data_shape)
            labels = [list(map(exact_label, row)) for row in rows[:, chosen].tolist()]
            data = np.delete(rows, chosen, axis=1) if chosen else rows
            with np.errstate(over="ignore"):  # as the reader does
                raw = data.astype(stored, copy=False).tobytes()
            width = len(raw) // len(rows)
            for number, row_labels in enumerate(labels):
                yield Item(row_labels, head + raw[number * width : (number + 1) * width])


def exact_label(label: float) -> float:
    """Return a whole number as such, for those that records cannot hold to be found."""
    return int(label) if isinstance(label, float) and label.is_integer() else label


def label_columns(numbers: Sequence[int], count: int, path: str) -> list[int]:
    """Return numbers of columns counted from the start, each once."""
    chosen = [number + count if number < 0 else number for number in numbers]
    for number, asked in zip(chosen, numbers, strict=True):
        if not 0 <= number < count:
            raise RecordIOError(f"there is no column {asked} among {count}", path=path)
    if len(set(chosen)) != len(chosen):
        raise RecordIOError(f"a column is named twice in --label-columns {numbers}", path=path)
    if len(chosen) == count:
        raise RecordIOError("all columns are labels; nothing is left for the arrays", path=path)
    return chosen


def array_shape(
    sizes: tuple[int, ...] | None, count: int, settings: argparse.Namespace
) -> tuple[int, ...]:
    """Return the shape of the arrays, which have `count` elements."""
    if sizes is None:
        return (count,)
    if math.prod(sizes) != count:
        raise RecordIOError(
            f"--shape {sizes} takes {math.prod(sizes)} numbers, and a row has {count} besides"
            " its labels",
            path=settings.source,
        )
    return sizes


@dataclass(frozen=True, kw_only=True)
class ToCSVOptions(Options):
    """Options of export --to csv."""

    label_columns: Sequence[int] | None = option(
        None,
        "sequence of int, optional",
        "Columns of the labels, as for from-csv (default: the first ones).",
        optional(of_text(columns)),
    )
    no_labels: bool = option(False, "bool", "Leave the labels out.", boolean)
    delimiter: str = described(CSVImportOptions, "delimiter")


def write_csv(pack: RecordPack, paths: Sequence[str], settings: argparse.Namespace) -> int:
    """Write one row for each record."""
    count = width = 0

    def row(record: Record) -> list[str]:
        fields = numbers_of(pack, record)
        if not settings.no_labels:
            fields = with_labels(fields, record, pack, settings.label_columns)
        if count and len(fields) != width:
            raise RecordIOError(
                f"{len(fields)} numbers, and the records before have {width}",
                **pack.location(record),
            )
        return fields

    with AtomicOutput(paths[0]) as output:
        for _, fields in pack.made(row):
            width = len(fields)
            output.write(f"{settings.delimiter.join(fields)}\n".encode())
            count += 1
    return count


def numbers_of(pack: RecordPack, record: Record) -> list[str]:
    """Return the elements of the array in a record, as text that reads back as the same numbers."""
    if record.kind != "npy":
        raise RecordIOError(
            f"it holds {record.kind}, not an array; --to labels writes labels alone",
            **pack.location(record),
        )
    array = decode_npy(record.content, **pack.location(record))
    if is_sparse(array):
        raise RecordIOError("it holds a sparse row; use --to libsvm", **pack.location(record))
    if array.dtype.kind not in "iuf":
        raise RecordIOError(
            f"an array of {array.dtype} has no numbers for CSV; use --to npy",
            **pack.location(record),
        )
    return numbers_text(array)


def with_labels(
    fields: list[str], record: Record, pack: RecordPack, numbers: Sequence[int] | None
) -> list[str]:
    """Put the labels between the other fields."""
    labels = [number_text(label) for label in record.labels]
    if numbers is None:
        return labels + fields
    if len(numbers) != len(labels):
        raise RecordIOError(
            f"it has {len(labels)} labels, and --label-columns names {len(numbers)} columns",
            **pack.location(record),
        )
    positions = label_columns(numbers, len(fields) + len(labels), pack.path)
    result = list(fields)
    for position, label in sorted(zip(positions, labels, strict=True)):
        result.insert(position, label)
    return result


def one_file(target: str) -> list[str]:
    """Return the outputs of formats that write one file."""
    return [os.fspath(target)]


FROM_CSV = Import(
    "csv",
    "rows of numbers",
    [("source", "the CSV file, plain or gzip, a folder of such files, or an fsspec URL", False)],
    open_csv,
    CSVImportOptions,
    "Each row becomes a record: labels in the image header, the other numbers as a .npy array.",
    example=r""">>> _ = (folder / "a.csv").write_text("1,0.5,2\n0,1,3\n")
>>> recordio.convert.from_csv(folder / "a.csv", folder / "a", label_columns=[0]).records
2""",
)
TO_CSV = Export(
    "csv", "rows of numbers; TARGET is a file", one_file, write_csv, ToCSVOptions, ".csv"
)
