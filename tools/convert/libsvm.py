"""LibSVM files: a row becomes a record with its label and a sparse array, and back.

The array has elements of two fields, ``index`` (int64, counted from 0) and ``value``, in
ascending order of the index.  `recordio.read_libsvm` reads the file, as a whole.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from recordio import RecordIOError, read_libsvm
from recordio.bytes.storage import AtomicOutput
from recordio.keywords.checks import boolean, choice, integer
from recordio.keywords.options import Options, option

from ..npy import SPARSE_FIELDS, decode_npy, encode_npy, is_sparse, sparse_dtype
from ..payloads import number_text, numbers_text
from ..record_pack import Record, RecordPack
from .csv import exact_label, one_file
from .format import (
    ArrayLimit,
    Export,
    Import,
    ImportSource,
    Item,
    Items,
    LeftOut,
    TextLimit,
)

#: Names, in the numbers at the end, of the things that `read_libsvm` drops.
CALLED = {"weights": "weights of labels", "queries": "qid", "comments": "comments"}


@dataclass(frozen=True, kw_only=True)
class LibSVMImportOptions(TextLimit, ArrayLimit):
    """Options of from-libsvm."""

    one_based: bool = option(
        False,
        "bool",
        "The first feature has the index 1, as in LibSVM's own files (default: 0).",
        boolean,
    )
    skip_header: int = option(
        0, "int", "Lines to leave out at the start (default: 0).", partial(integer, low=0)
    )
    label_weights: bool = option(
        False,
        "bool",
        "Lines may begin with LABEL:WEIGHT; weights are dropped (default: they are an error).",
        boolean,
    )
    dtype: str = option(
        "float32",
        "str",
        "Type of the values (default: float32).",
        partial(choice, allowed=("float32", "float64")),
    )


@dataclass(frozen=True, kw_only=True)
class ToLibSVMOptions(Options):
    """Options of export --to libsvm."""

    one_based: bool = option(False, "bool", "Call the first feature 1 (default: 0).", boolean)


def open_libsvm(settings: argparse.Namespace) -> ImportSource:
    """Read a LibSVM file."""
    dropped: dict[str, int] = {}
    data, labels = read_libsvm(
        settings.source,
        dtype="float64",  # for labels to keep their digits
        skip_header=settings.skip_header,
        label_weights=settings.label_weights,
        zero_based=not settings.one_based,
        max_line_bytes=settings.max_line_bytes,
        max_array_bytes=settings.max_array_bytes,
        dropped=dropped,
    )

    with np.errstate(over="ignore"):
        data = data.astype(settings.dtype)

    def items() -> Items:
        yield from read_items(data, labels)
        yield LeftOut({CALLED[key]: number for key, number in dropped.items() if number})

    return ImportSource(items(), len(labels))


def read_items(data: object, labels: np.ndarray) -> Items:
    """Yield an item for each row of a CSR matrix."""
    entries = np.empty(len(data.indices), sparse_dtype(data.data.dtype))  # type: ignore[attr-defined]
    index, value = SPARSE_FIELDS
    entries[index], entries[value] = data.indices, data.data  # type: ignore[attr-defined]
    begin = 0
    for label, end in zip(labels.tolist(), data.indptr[1:].tolist(), strict=True):  # type: ignore[attr-defined]
        yield Item([exact_label(label)], encode_npy(entries[begin:end]))
        begin = end


def write_libsvm(pack: RecordPack, paths: Sequence[str], settings: argparse.Namespace) -> int:
    """Write one line for each record; a dense array gives its elements that are not zero."""
    count = 0

    def row(record: Record) -> list[str]:
        location = pack.location(record)
        if record.kind != "npy":
            raise RecordIOError(f"it holds {record.kind}, not an array", **location)
        if len(record.labels) != 1:
            raise RecordIOError(
                f"a line has one label, and it has {len(record.labels)}", **location
            )
        indices, values = entries_of(decode_npy(record.content, **location), location)
        indices = indices + int(settings.one_based)
        words = (
            f"{index}:{value}"
            for index, value in zip(indices.tolist(), numbers_text(values), strict=True)
        )
        return [number_text(record.labels[0]), *words]

    with AtomicOutput(paths[0]) as output:
        for _, words in pack.made(row):
            output.write(f"{' '.join(words)}\n".encode())
            count += 1
    return count


def entries_of(array: np.ndarray, location: dict) -> tuple[np.ndarray, np.ndarray]:
    """Return indices and values of a sparse or dense row."""
    if is_sparse(array):
        index, value = SPARSE_FIELDS
        return array[index], array[value]
    if array.ndim != 1 or array.dtype.kind not in "iuf":
        raise RecordIOError(
            f"an array of {array.dtype} and shape {array.shape} is no row of numbers", **location
        )
    indices = np.flatnonzero(array)
    return indices, array[indices]


FROM_LIBSVM = Import(
    "libsvm",
    "sparse rows, label index:value ...",
    [("source", "the file, plain or gzip, a folder of such files, or an fsspec URL", False)],
    open_libsvm,
    LibSVMImportOptions,
    "Each line becomes a record: the label in the image header, and a .npy array of pairs of\n"
    "index (int64, counted from 0) and value.  Weights, qid and comments are counted\n"
    "and dropped.",
    example=r""">>> _ = (folder / "a.libsvm").write_text("1 1:0.5 4:2\n0 2:1\n")
>>> recordio.convert.from_libsvm(folder / "a.libsvm", folder / "a", one_based=True).records
2""",
)
TO_LIBSVM = Export(
    "libsvm", "sparse rows; TARGET is a file", one_file, write_libsvm, ToLibSVMOptions, ".libsvm"
)
