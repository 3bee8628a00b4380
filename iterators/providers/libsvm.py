"""`LibSVMIter`: batches of sparse rows from LibSVM text.

The file is read at once; it takes less memory as a matrix than as text.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from recordio.errors import TextFormatError
from recordio.keywords.checks import boolean, choice, integer, integers
from recordio.keywords.options import accepts, described, option
from recordio.partition import part_by_count, part_by_lines
from recordio.text.libsvm import read_libsvm
from recordio.text.row_count import row_starts

from ..core.order import BatchPlan, PartRule
from .array_rows import Columns, DenseColumn, SparseColumn, refuse_layout
from .mx_data_provider import MXDataProvider
from .provider_options import TextOptions
from .row_provider import RowProvider, order_of_rows

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..core.keywords import LibSVMIterParameters


@dataclass(frozen=True, kw_only=True)
class LibSVMOptions(TextOptions):
    """The keywords of `LibSVMIter`."""

    data_libsvm: str | os.PathLike[str] = option(
        kind="str or os.PathLike",
        text="""A file of lines ``label index:value ...`` with indices from 0, a folder of such
        files, a pattern, several of these separated by semicolons, or fsspec URLs; ``.gz`` as
        well.""",
    )
    data_shape: tuple[int, ...] = option(
        kind="tuple of int",
        text="One number: the number of features. Every index must be below it.",
        check=partial(integers, length=1),
    )
    batch_size: int = option(
        kind="int", text="Rows in a batch, at least 1.", check=partial(integer, low=1)
    )
    label_libsvm: str | os.PathLike[str] | None = option(
        None,
        "str or os.PathLike, optional",
        "A LibSVM file whose rows are the labels, as CSR; its first column is left out.",
    )
    label_shape: tuple[int, ...] = option(
        (1,),
        "tuple of int",
        "One number: the width of a label, above 1 exactly if `label_libsvm` is given.",
        partial(integers, length=1),
    )
    round_batch: bool = option(
        True,
        "bool",
        """Fill the last batch from the start of the epoch. If False, its other rows are empty.
        `pad` counts these rows in either case.""",
        boolean,
    )
    num_parts: int = described(
        TextOptions,
        "num_parts",
        """Number of parts that share the rows: without `shuffle`, each has the rows in its part of
        the bytes of the file, as in MXNet; with it, every `num_parts`-th position of the common
        permutation.""",
    )
    skip_header: int = option(
        0,
        "int",
        "Lines to leave out at the start of every file, those of labels included.",
        partial(integer, low=0),
    )
    label_weights: bool = option(
        False,
        "bool",
        """Lines may begin with ``label:weight``, as in MXNet, and weights are dropped. By default
        such a line is an error: its label may be missing.""",
        boolean,
    )
    layout: str = option("NC", '{"NC"}', "Sparse batches have no other layout.")
    dtype: str = option(
        "float32",
        "str",
        '"float32" or "float64", for data and labels.',
        lambda name, value: choice(name, value or "float32", ("float32", "float64")),
    )
    device: Any = described(
        TextOptions,
        "device",
        'None for scipy, "cpu" or "cuda" for sparse CSR tensors of torch.',
    )
    on_error: str = described(
        TextOptions,
        "on_error",
        """A line that cannot be read is an error when the provider is made, or its row is replaced
        by the next good one of the epoch and listed in `skipped`.  A row that is bad in one of two
        files is bad in both.""",
    )


@MXDataProvider.register
@accepts(LibSVMOptions)
class LibSVMIter(RowProvider):
    r"""Batches of sparse rows, as scipy CSR arrays, and their labels.

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

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "a.libsvm")
    >>> _ = path.write_text("1 0:0.5 2:2\n0\n1 1:-1\n")
    >>> for batch in LibSVMIter(data_libsvm=path, data_shape=(3,), batch_size=2):
    ...     print(batch.data[0].toarray().tolist(), batch.label[0], batch.pad)
    [[0.5, 0.0, 2.0], [0.0, 0.0, 0.0]] [1. 0.] 0
    [[0.0, -1.0, 0.0], [0.5, 0.0, 2.0]] [1. 1.] 1
    """

    def __init__(self, **keywords: Unpack[LibSVMIterParameters]) -> None:
        options = LibSVMOptions.of(type(self).__name__, keywords)
        refuse_layout(options.data_name, options.layout)
        data_libsvm, label_libsvm = options.data_libsvm, options.label_libsvm
        label_name = options.label_name
        (features,), (width,) = options.data_shape, options.label_shape
        if label_libsvm in (None, "NULL"):
            label_libsvm = None
        if (width > 1) != (label_libsvm is not None):
            raise ValueError(
                f"label_shape=({width},) and label_libsvm={label_libsvm!r}: labels of more than "
                "one number come from label_libsvm, and only those"
            )
        bad_rows: dict[int, TextFormatError] | None = {} if options.on_error == "skip" else None
        form = options.values(
            "dtype",
            "skip_header",
            "label_weights",
            "max_line_bytes",
            "max_array_bytes",
            "remote_options",
        )
        matrix, labels = read_libsvm(data_libsvm, features, bad_rows=bad_rows, **form)
        if not matrix.shape[0]:
            raise TextFormatError("the file holds no rows", path=os.fspath(data_libsvm))
        targets: list[DenseColumn | SparseColumn] = []
        if label_name is not None and label_libsvm is None:
            targets = [DenseColumn(label_name, labels)]
        elif label_name is not None:
            assert label_libsvm is not None
            bad_labels: dict[int, TextFormatError] | None = None if bad_rows is None else {}
            wide = {**form, "dtype": "float64"}
            vectors, _ = read_libsvm(label_libsvm, width, bad_rows=bad_labels, **wide)
            vectors = _narrowed(vectors, form["dtype"], os.fspath(label_libsvm))
            bad_rows = None if bad_rows is None else {**(bad_labels or {}), **bad_rows}
            if vectors.shape[0] != matrix.shape[0]:
                raise TextFormatError(
                    f"{vectors.shape[0]} labels for {matrix.shape[0]} rows of {data_libsvm}",
                    path=os.fspath(label_libsvm),
                )
            targets = [SparseColumn(label_name, vectors)]
        table = Columns([SparseColumn(options.data_name, matrix)], targets, bad_rows or {})
        plan = BatchPlan(
            order_of_rows(options, len(table), _part_rule(options)),
            options.batch_size,
            "wrap" if options.round_batch else "pad",
        )
        super().__init__(table, plan, options)


def _narrowed(vectors: Any, dtype: str, path: str) -> Any:
    """Give labels their type; a whole number that this would round is an error."""
    values = vectors.data
    with np.errstate(over="ignore"):
        rounded = values.astype(dtype)
    wrong = (rounded != values) & (values == np.floor(values)) & np.isfinite(values)
    if wrong.any():
        raise TextFormatError(
            f"the label {values[wrong][0]:.0f} has no exact {dtype}: another dtype may hold it",
            path=path,
        )
    return vectors.astype(dtype)


def _part_rule(options: LibSVMOptions) -> PartRule:
    """MXNet's rule: the file is cut by its size, and the cuts move to ends of lines."""
    if options.num_parts == 1 or options.shuffle:
        return part_by_count
    sizes, starts = row_starts(
        options.data_libsvm, **options.values("skip_header", "max_line_bytes", "remote_options")
    )
    return lambda count, num_parts, part_index: part_by_lines(sizes, starts, num_parts, part_index)
