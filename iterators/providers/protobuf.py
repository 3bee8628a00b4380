"""`ProtobufRecordIter`: batches of the rows in SageMaker's recordio-protobuf files.

The file is read at once, into arrays of about its size.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from recordio.keywords.checks import boolean, choice, integer
from recordio.keywords.options import accepts, option
from recordio.protobuf import read_protobuf

from ..core.order import BatchPlan
from .array_rows import Columns, DenseColumn, SparseColumn, refuse_layout
from .mx_data_provider import MXDataProvider
from .provider_options import NamedOptions, StoredArrayOptions
from .row_provider import RowProvider, order_of_rows

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..core.keywords import ProtobufRecordIterParameters


@dataclass(frozen=True, kw_only=True)
class ProtobufOptions(StoredArrayOptions, NamedOptions):
    """The keywords of `ProtobufRecordIter`."""

    path: str | os.PathLike[str] = option(
        kind="str or os.PathLike",
        text="""A file of records, a folder of such files, a pattern, several of these separated by
        semicolons, or fsspec URLs.""",
    )
    batch_size: int = option(
        kind="int", text="Rows in a batch, at least 1.", check=partial(integer, low=1)
    )
    round_batch: bool = option(
        True,
        "bool",
        """Fill the last batch from the start of the epoch. If False, its other rows are empty.
        `pad` counts these rows in either case.""",
        boolean,
    )
    layout: str = option("NC", '{"NC"}', "Batches of rows have no other layout.")
    dtype: str | None = option(
        None,
        '{"float32", "float64", "int32"}, optional',
        "Type of dense features; by default that of the file.",
        lambda name, value: value and choice(name, value, ("float32", "float64", "int32")),
    )


@MXDataProvider.register
@accepts(ProtobufOptions)
class ProtobufRecordIter(RowProvider):
    r"""Batches of rows from SageMaker's recordio-protobuf, dense or sparse as stored.

    Parameters
    ----------
    {parameters}

    Raises
    ------
    ProtobufRecordError
        For a record that cannot be read or does not fit those before it, and beyond a limit.
    TypeError
        For a parameter that does not exist.
    ValueError
        For a value that is out of range.
    OSError
        If a file cannot be read.

    Examples
    --------
    >>> import tempfile, pathlib, recordio
    >>> path = pathlib.Path(tempfile.mkdtemp(), "a.pbr")
    >>> recordio.write_protobuf(path, np.float32([[1, 2], [3, 4], [5, 6]]), np.float32([0, 1, 2]))
    >>> for batch in ProtobufRecordIter(path=path, batch_size=2):
    ...     print(batch.data[0].tolist(), batch.label[0], batch.pad)
    [[1.0, 2.0], [3.0, 4.0]] [0. 1.] 0
    [[5.0, 6.0], [1.0, 2.0]] [2. 0.] 1
    """

    def __init__(self, **keywords: Unpack[ProtobufRecordIterParameters]) -> None:
        options = ProtobufOptions.of(type(self).__name__, keywords)
        refuse_layout(options.data_name, options.layout)
        if options.on_error != "raise":
            raise ValueError(
                f"on_error={options.on_error!r}: the file is read as a whole, and a record that "
                "cannot be read is an error: drop on_error"
            )
        features, labels = read_protobuf(
            options.path, **options.values("max_array_bytes", "remote_options")
        )
        data: Any
        if isinstance(features, np.ndarray):
            data = DenseColumn(options.data_name, features, options.dtype or features.dtype)
        elif options.dtype in (None, features.dtype.name):
            data = SparseColumn(options.data_name, features)
        else:
            raise ValueError(
                f"dtype={options.dtype!r}: the features are sparse and stay {features.dtype}"
            )
        targets = []
        if labels is not None and options.label_name is not None:
            targets = [DenseColumn(options.label_name, labels, labels.dtype)]
        table = Columns([data], targets)
        plan = BatchPlan(
            order_of_rows(options, len(table)),
            options.batch_size,
            "wrap" if options.round_batch else "pad",
        )
        super().__init__(table, plan, options)
