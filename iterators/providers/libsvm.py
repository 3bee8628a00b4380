"""`LibSVMIter`: batches of sparse rows from LibSVM text.

The file is read at once; it takes less memory as a matrix than as text.
"""

from __future__ import annotations

import os
from typing import Any

from recordio.errors import TextFormatError
from recordio.partition import part_by_count, part_by_lines
from recordio.text.libsvm import read_libsvm
from recordio.text.lines import MAX_LINE_BYTES
from recordio.text.row_count import row_starts

from ..core.order import BatchPlan
from ..core.parameters import boolean, choice, integer, integers
from .array_rows import Columns, DenseColumn, SparseColumn, refuse_layout
from .row_provider import PartRule, RowOptions, RowProvider

__all__ = ["LibSVMIter", "LibSVMProvider"]


class LibSVMIter(RowProvider):
    r"""Batches of sparse rows, as scipy CSR arrays, and their labels.

    Parameters
    ----------
    data_libsvm : str or os.PathLike
        A file of lines ``label index:value ...`` with indices from 0, a folder of such files, or an
        fsspec URL of either; ``.gz`` as well.
    data_shape : tuple of int
        One number: how many features there are.  Every index must be below it.
    batch_size : int
        Rows in a batch, at least 1.
    label_libsvm : str or os.PathLike, optional
        A LibSVM file whose rows are the labels, as CSR; its first column is left out.
    label_shape : tuple of int
        One number: the width of a label, above 1 exactly if `label_libsvm` is given.
    round_batch : bool
        Fill the last batch from the start of the epoch.  If False its other rows are empty.  `pad`
        counts those rows in either case.
    shuffle : bool
        A new permutation of all rows in every epoch.
    seed : int
        Determines the permutations.
    num_parts, part_index : int
        Deliver only part `part_index` of `num_parts`: without `shuffle` the rows in that part of
        the bytes of the file, as MXNet cuts it, with it every `num_parts`-th place of the one
        permutation.
    even : bool
        Give every part the same number of rows; those missing to that come twice in the epoch.
    layout : {"NC"}
        Sparse batches have no other.
    prefetch_buffer : int
        Batches prepared ahead of the consumer, at least 1.
    data_name, label_name : str
        Names in `provide_data` and `provide_label`; ``label_name=None`` for no labels.
    dtype : str
        "float32" or "float64", for data and labels.
    data_specs : (Space, source), optional
        What a batch must look like: a tuple in exactly that form, which is a `DataBatch` as well.
        The sources are "features" and "targets"; a VectorSpace of as many elements as there are
        classes makes a single label one-hot.
    device : str or torch.device, optional
        None for scipy, "cpu" or "cuda" for sparse CSR tensors of torch.
    epoch : int
        Number of the first epoch.
    on_error : {"raise", "skip"}
        A line that cannot be read is an error when the provider is made, or its row is replaced by
        the next good one of the epoch and listed in `skipped`.  A row that is bad in one of two
        files is bad in both.
    error_budget : int or float, optional
        With "skip": how many rows may be skipped, as a number or, below 1, as a fraction.
    max_line_bytes : int
        A longer line is an error.
    max_array_bytes : int, optional
        A larger matrix is an error.  By default 64 times the size of the files as they are stored,
        at least 256 MiB.
    ctx : {"cpu", "gpu"}
        Accepted because scripts pass it; where MXNet would put its buffers, which is `device` here.

    Raises
    ------
    TextFormatError
        For a line that cannot be read, with its place, for fewer labels than rows, and beyond a
        limit.
    TypeError
        For a parameter that does not exist.

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

    def __init__(
        self,
        *,
        data_libsvm: str | os.PathLike[str],
        data_shape: tuple[int, ...],
        batch_size: int,
        label_libsvm: str | os.PathLike[str] | None = None,
        label_shape: tuple[int, ...] = (1,),
        round_batch: bool = True,
        shuffle: bool = False,
        seed: int = 0,
        num_parts: int = 1,
        part_index: int = 0,
        even: bool = False,
        layout: str = "NC",
        prefetch_buffer: int = 4,
        data_name: str = "data",
        label_name: str | None = "softmax_label",
        dtype: str | None = None,
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
        refuse_layout(data_name, layout)
        dtype = choice("dtype", dtype or "float32", ("float32", "float64"))
        (features,) = integers("data_shape", data_shape, length=1)
        (width,) = integers("label_shape", label_shape, length=1)
        if label_libsvm in (None, "NULL"):
            label_libsvm = None
        if (width > 1) != (label_libsvm is not None):
            raise ValueError(
                f"label_shape=({width},) and label_libsvm={label_libsvm!r}: labels of more than "
                "one number come from label_libsvm, and only those"
            )
        bad_rows: dict[int, TextFormatError] | None = {} if options.on_error == "skip" else None
        limits: dict[str, Any] = {
            "max_line_bytes": max_line_bytes,
            "max_array_bytes": max_array_bytes,
        }
        matrix, labels = read_libsvm(
            data_libsvm, features, dtype=dtype, bad_rows=bad_rows, **limits
        )
        if not matrix.shape[0]:
            raise TextFormatError("the file holds no rows", path=os.fspath(data_libsvm))
        targets: list[DenseColumn | SparseColumn] = []
        if label_name is not None and label_libsvm is None:
            targets = [DenseColumn(label_name, labels)]
        elif label_name is not None:
            assert label_libsvm is not None
            bad_labels: dict[int, TextFormatError] | None = None if bad_rows is None else {}
            vectors, _ = read_libsvm(
                label_libsvm, width, dtype=dtype, bad_rows=bad_labels, **limits
            )
            bad_rows = None if bad_rows is None else {**(bad_labels or {}), **bad_rows}
            if vectors.shape[0] < matrix.shape[0]:
                raise TextFormatError(
                    f"{vectors.shape[0]} labels for {matrix.shape[0]} rows of {data_libsvm}",
                    path=os.fspath(label_libsvm),
                )
            targets = [SparseColumn(label_name, vectors[: matrix.shape[0]])]
        table = Columns([SparseColumn(data_name, matrix)], targets, bad_rows or {})
        plan = BatchPlan(
            options.order(len(table), _part_rule(data_libsvm, options, max_line_bytes)),
            integer("batch_size", batch_size, low=1),
            "wrap" if boolean("round_batch", round_batch) else "pad",
        )
        super().__init__(table, plan, options)


LibSVMProvider = LibSVMIter


def _part_rule(path: str | os.PathLike[str], options: RowOptions, max_line_bytes: int) -> PartRule:
    """MXNet's rule: the file is cut by its size, and the cuts move to ends of lines."""
    if options.num_parts == 1 or options.shuffle:
        return part_by_count
    sizes, starts = row_starts(path, max_line_bytes=max_line_bytes)
    return lambda count, num_parts, part_index: part_by_lines(sizes, starts, num_parts, part_index)
