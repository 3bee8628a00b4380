"""`ArrayDataProvider` and `NDArrayIter`: batches of arrays in memory or mapped from a file.

The two differ in how arrays are named and in what becomes of a short last batch: MXNet.jl's
provider pads it with a constant, MXNet's iterator has three rules.  Gathering rows happens in
`columns`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike

from recordio.keywords.checks import boolean, choice, integer
from recordio.keywords.options import Rule, accepts, described, option

from ..core.collate import SeesData
from ..core.order import BatchPlan, Order, RollOverPlan, Tail
from .array_rows import Columns, DenseColumn, SparseColumn, column_of
from .planned import RollingProvider
from .provider_options import ProviderOptions
from .row_provider import RowProvider, order_of_rows

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..core.keywords import ArrayKeywords, NDArrayKeywords


@dataclass(frozen=True, kw_only=True)
class ArrayOptions(ProviderOptions):
    """The keywords of `ArrayDataProvider`."""

    positional = "data label"

    data: Any = option(
        kind="array, (name, array), mapping or list of (name, array)",
        text="""NumPy arrays, torch tensors or scipy sparse matrices, samples along axis 0.  Rows
        of memory-mapped arrays, and of those of h5py, zarr and the like, are read as they are
        needed.  A bare array is called ``data``; the order is kept.""",
    )
    label: Any = option(None, "as `data`, optional", "A bare array is called ``softmax_label``.")
    batch_size: int = option(
        0,
        "int",
        """Samples in a batch, at most as many as there are; 0 for all samples of this part in one
        batch.""",
        partial(integer, low=0),
    )
    data_padding: float = option(
        0,
        "float",
        "Value of the slots of the last batch that have no sample.",
    )
    label_padding: float = option(0, "float", "The same for labels.")
    round_batch: bool = option(
        False,
        "bool",
        """Fill the last batch with samples from the start of the epoch, as often as needed,
        instead of the constant.""",
        boolean,
    )
    last_batch_handle: str = option(
        "pad",
        '{"pad", "discard", "roll_over"}',
        """Treatment of a short last batch: it is filled according to `round_batch`; it is dropped;
        or its samples are the first of the next epoch, as described for `NDArrayIter`.""",
        partial(choice, allowed=("pad", "discard", "roll_over")),
    )
    dtype: DTypeLike | None = option(
        None, "dtype_like, optional", "Type of the batches; by default every array keeps its own."
    )
    layout: str | None = option(
        None,
        "str, optional",
        """Axes of the batches of data, one letter each, such as "NHWC"; by default those of the
        data.""",
    )
    data_layout: str | None = option(
        None,
        "str, optional",
        """Axes of the data arrays, the first being N; by default "N", "NC" or "NCHW" by their
        number.""",
    )
    on_error: str = described(
        ProviderOptions, "on_error", "As for all providers; samples in arrays cannot be bad."
    )

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "round_batch",
            lambda v: v.last_batch_handle != "pad",
            "has no effect with last_batch_handle: drop one of them",
            refused=True,
        ),
        Rule(
            "data_padding label_padding",
            lambda v: v.round_batch or v.last_batch_handle != "pad",
            "has no effect: with round_batch, or a last_batch_handle other than 'pad', no slot "
            "is without a sample",
            refused=True,
        ),
    )

    def saved(self) -> dict[str, Any]:
        """Return what a state must agree with beside the tail of the plan; older ones lack it."""
        names = ["last_batch_handle"] if self.last_batch_handle == "roll_over" else []
        return {**super().saved(), **self.values(*names)}


@accepts(ArrayOptions)
class ArrayDataProvider(RollingProvider, RowProvider):
    """Batches of arrays, with the rules of MXNet.jl's provider of that name.

    Every sample comes once in an epoch.  The last batch has the full size as well; slots without a
    sample hold the padding constant, and `pad` says how many there are.  `round_batch` and
    `last_batch_handle` choose other rules for them.

    Parameters
    ----------
    {parameters}

    Raises
    ------
    TypeError
        For arrays of anything but real numbers, and for a parameter that does not exist.
    ValueError
        If arrays differ in their number of samples, hold none, or fewer than a batch.

    See Also
    --------
    AbstractDataProvider : epochs, positions, and the rest of the protocol.

    Examples
    --------
    >>> import numpy as np
    >>> provider = ArrayDataProvider(np.arange(5.0), np.arange(5), batch_size=2, data_padding=-1)
    >>> for batch in provider:
    ...     print(batch.data[0], batch.label[0], batch.count_samples())
    [0. 1.] [0 1] 2
    [2. 3.] [2 3] 2
    [ 4. -1.] [4 0] 1
    >>> provider = ArrayDataProvider(np.arange(5), batch_size=2, last_batch_handle="roll_over")
    >>> [[batch.data[0].tolist() for batch in provider] for _ in range(2)]
    [[[0, 1], [2, 3]], [[4, 0], [1, 2], [3, 4]]]
    """

    def __init__(self, *values: Any, **keywords: Unpack[ArrayKeywords]) -> None:
        options = ArrayOptions.of(type(self).__name__, keywords, values)
        dtype, layout = options.dtype, options.layout
        columns = Columns(
            [
                column_of(name, array, dtype, options.data_padding, layout, options.data_layout)
                for name, array in _named(options.data, "data")
            ],
            [
                column_of(name, array, dtype, options.label_padding)
                for name, array in _named(options.label, "softmax_label")
            ],
        )
        if options.batch_size > len(columns):
            raise ValueError(
                f"batch_size={options.batch_size}: there are only {len(columns)} samples; 0 takes "
                "them all"
            )
        order = order_of_rows(options, len(columns))
        batch_size = options.batch_size or max(order.count(), 1)
        plan = _plan(options, order, batch_size, "wrap" if options.round_batch else "pad")
        super().__init__(columns, plan, options)


@dataclass(frozen=True, kw_only=True)
class NDArrayOptions(ProviderOptions):
    """The keywords of `NDArrayIter`."""

    positional = "data label batch_size shuffle last_batch_handle data_name label_name layout"

    data: Any = option(
        kind="array, list or dict",
        text="""One array is called `data_name`, as is the only one of a list; those of a longer
        list are ``_0_data``, ``_1_data``, ... Arrays come in the order of their names. They may be
        of the same kinds as for `ArrayDataProvider`.""",
    )
    label: Any = option(None, "array, list or dict, optional", "The same with `label_name`.")
    batch_size: int = option(1, "int", "Samples in a batch, at least 1.", partial(integer, low=1))
    shuffle: bool = described(
        ProviderOptions,
        "shuffle",
        """A new permutation in every epoch.  It depends on `seed`, not on NumPy's global
        generator.""",
    )
    last_batch_handle: str = option(
        "pad",
        '{"pad", "discard", "roll_over"}',
        """Treatment of a short last batch: it is filled from the start of the epoch, as often as
        needed; it is dropped; or its samples are the first of the next epoch, which needs
        ``num_parts=1``. As in MXNet, `pad` of the batch with these samples is their number,
        although none is padding; ``count_samples()`` is right.""",
        partial(choice, allowed=("pad", "discard", "roll_over")),
        saved=True,
    )
    data_name: str = option("data", "str", "Name of a single array of data.")
    label_name: str = option("softmax_label", "str", "Name of a single array of labels.")
    layout: str = option(
        "NCHW",
        "str",
        "The layout in `provide_data`; as in MXNet, samples are always along axis 0.",
    )
    dtype: DTypeLike | None = option(
        "float32",
        "dtype_like, optional",
        """Type of the batches, "float32" as in MXNet; None keeps the type of every array. MXNet's
        own arrays keep their types.""",
    )
    data_layout: str | None = option(
        None,
        "str, optional",
        """Axes of the data arrays, the first being N.  If given, batches of data are put in the
        order of `layout`.""",
    )


@accepts(NDArrayOptions)
class NDArrayIter(RollingProvider, RowProvider):
    """Batches of arrays, with the rules of MXNet's iterator of that name.

    Parameters
    ----------
    {parameters}

    Raises
    ------
    TypeError
        For arrays of anything but real numbers, and for a parameter that does not exist.
    ValueError
        If arrays differ in their number of samples or hold none, and for an unknown
        `last_batch_handle`.

    Examples
    --------
    >>> import numpy as np
    >>> provider = NDArrayIter({"b": np.arange(5), "a": np.zeros((5, 3))}, batch_size=3)
    >>> [desc.name for desc in provider.provide_data]
    ['a', 'b']
    >>> [(batch["b"].tolist(), batch.pad) for batch in provider]
    [([0.0, 1.0, 2.0], 0), ([3.0, 4.0, 0.0], 1)]
    """

    def __init__(self, *values: Any, **keywords: Unpack[NDArrayKeywords]) -> None:
        options = NDArrayOptions.of(type(self).__name__, keywords, values)
        dtype, layout = options.dtype, options.layout
        columns = Columns(
            _sorted_columns(options.data, options.data_name, dtype, layout, options.data_layout),
            _sorted_columns(options.label, options.label_name, dtype, layout),
        )
        order = order_of_rows(options, len(columns))
        plan = _plan(options, order, options.batch_size, "wrap")
        super().__init__(columns, plan, options)

    @property
    def idx(self) -> np.ndarray:
        """Row numbers in the order of the running epoch, int64 of shape ``(num_samples,)``."""
        return self._plan.order.take(self.epoch, 0, self.num_samples)

    @property
    def num_data(self) -> int:
        """`num_samples`, under MXNet's name."""
        return self.num_samples


def _plan(
    options: ArrayOptions | NDArrayOptions, order: Order, batch_size: int, filled: Tail
) -> BatchPlan:
    """Batches of an order by `last_batch_handle`, where "pad" means a tail that is filled so."""
    handle = options.last_batch_handle
    if handle != "roll_over":
        return BatchPlan(order, batch_size, filled if handle == "pad" else "drop")
    if options.num_parts > 1:
        raise ValueError(
            'last_batch_handle="roll_over" carries samples from epoch to epoch, which parts '
            'cannot agree on: use "pad" or "discard" with num_parts'
        )
    return RollOverPlan(order, batch_size)


def _named(value: Any, default: str) -> list[tuple[str, Any]]:
    """Names and arrays in the forms that MXNet.jl accepts."""
    if value is None:
        return []
    if isinstance(value, SeesData):
        value = value()
    if isinstance(value, Mapping):
        pairs = list(value.items())
    elif isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str):
        pairs = [value]
    elif isinstance(value, (list, tuple)):
        pairs = list(value)
        for pair in pairs:
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise TypeError(
                    f"{default}: a list must hold pairs (name, array); wrap numbers in numpy.array"
                )
    else:
        pairs = [(default, value)]
    names = [name for name, _ in pairs]
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"{default}: the name of an array must be a string, not {name!r}")
        if names.count(name) > 1:
            raise ValueError(f"there are two arrays called {name!r}")
    return pairs


def _sorted_columns(
    value: Any, default: str, dtype: DTypeLike | None, layout: str, data_layout: str | None = None
) -> list[DenseColumn | SparseColumn]:
    """Columns for the forms that MXNet's NDArrayIter accepts."""
    if value is None:
        value = []
    if isinstance(value, (list, tuple)):
        if len(value) == 1:
            value = {default: value[0]}
        else:
            value = {f"_{i}_{default}": array for i, array in enumerate(value)}
    elif not isinstance(value, Mapping):
        value = {default: value}
    columns: list[DenseColumn | SparseColumn] = []
    for name in sorted(value):
        array = value[name]
        kind = None if hasattr(array, "asnumpy") else dtype
        if data_layout is None:
            column = column_of(name, array, kind)
            column.layout = layout
        else:
            column = column_of(name, array, kind, layout=layout, data_layout=data_layout)
        columns.append(column)
    return columns
