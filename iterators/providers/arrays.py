"""`ArrayDataProvider` and `NDArrayIter`: batches of arrays in memory or mapped from a file.

The two differ in how arrays are named and in what becomes of a short last batch: MXNet.jl's
provider pads it with a constant, MXNet's iterator has three rules.  Gathering rows happens in
`columns`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import DTypeLike

from ..core.order import BatchPlan, RollOverPlan, Tail
from ..core.parameters import choice, integer
from .array_rows import Columns, DenseColumn, SparseColumn, column_of
from .batch_form import SpecBatch
from .roll_over import FullBatch, RollingProvider
from .row_provider import RowOptions, RowProvider

__all__ = ["ArrayDataProvider", "NDArrayIter"]


class ArrayDataProvider(RowProvider):
    """Batches of arrays, with the rules of MXNet.jl's provider of that name.

    Every sample comes once in an epoch.  The last batch has the full size as well; places without a
    sample hold the padding constant, and `pad` says how many there are.

    Parameters
    ----------
    data : array, (name, array), mapping or list of (name, array)
        NumPy arrays (memory-mapped ones are read as they are needed), torch tensors or scipy sparse
        matrices, samples along axis 0.  A bare array is called ``data``; the order is kept.
    label : as `data`, optional
        A bare array is called ``softmax_label``.
    batch_size : int
        Samples in a batch, at most as many as there are; 0 for all samples of this part in one
        batch.
    shuffle : bool
        A new permutation of all samples in every epoch, the same for all arrays.
    seed : int
        Determines the permutations.
    data_padding, label_padding : float
        What places of the last batch without a sample hold.
    dtype : dtype_like, optional
        Type of the batches; by default every array keeps its own.
    num_parts, part_index : int
        Deliver only part `part_index` of `num_parts`: without `shuffle` the block of
        ``ceil(n / num_parts)`` samples, with it every `num_parts`-th place of the one permutation.
    even : bool
        Give every part the same number of samples; those missing to that come twice in the epoch.
    layout : str, optional
        Axes of the batches of data, one letter each, such as "NHWC"; by default as they are.
    data_layout : str, optional
        Axes of the data arrays, the first being N; by default "N", "NC" or "NCHW" for so many.
    prefetch_buffer : int
        Batches prepared ahead of the consumer, at least 1.
    data_specs : (Space, source), optional
        What a batch must look like: a tuple in exactly that form, which is a `DataBatch` as well.
        A source is the name of an array, or "features" and "targets" where there is one; a
        VectorSpace of as many elements as there are classes makes a single label one-hot.
    device : str or torch.device, optional
        None for NumPy arrays, "cpu" for torch tensors that share their memory, "cuda" or "cuda:i"
        for tensors on that device.
    epoch : int
        Number of the first epoch.
    on_error, error_budget
        As for all providers; samples in arrays cannot be bad.

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
    """

    def __init__(
        self,
        data: Any,
        label: Any = None,
        *,
        batch_size: int = 0,
        shuffle: bool = False,
        seed: int = 0,
        data_padding: float = 0,
        label_padding: float = 0,
        dtype: DTypeLike | None = None,
        num_parts: int = 1,
        part_index: int = 0,
        even: bool = False,
        layout: str | None = None,
        data_layout: str | None = None,
        prefetch_buffer: int = 4,
        data_specs: Any = None,
        device: Any = None,
        epoch: int = 0,
        on_error: str = "raise",
        error_budget: float | None = None,
        **unknown: Any,
    ) -> None:
        options = RowOptions.of(
            self,
            unknown,
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
        columns = Columns(
            [
                column_of(name, array, dtype, data_padding, layout, data_layout)
                for name, array in _named(data, "data")
            ],
            [column_of(n, a, dtype, label_padding) for n, a in _named(label, "softmax_label")],
        )
        batch_size = integer("batch_size", batch_size, low=0)
        if batch_size > len(columns):
            raise ValueError(
                f"batch_size={batch_size}: there are only {len(columns)} samples; 0 takes them all"
            )
        order = options.order(len(columns))
        plan = BatchPlan(order, batch_size or max(order.count(), 1), "pad")
        super().__init__(columns, plan, options)


class NDArrayIter(RollingProvider, RowProvider):
    """Batches of arrays, with the rules of MXNet's iterator of that name.

    Parameters
    ----------
    data : array, list or dict
        One array is called `data_name`, as is the only one of a list; those of a longer list are
        ``_0_data``, ``_1_data``, ...  Arrays come in the order of their names.  Kinds of arrays as
        for `ArrayDataProvider`.
    label : array, list or dict, optional
        The same with `label_name`.
    batch_size : int
        Samples in a batch, at least 1.
    shuffle : bool
        A new permutation in every epoch.  It depends on `seed`, not on NumPy's global generator.
    last_batch_handle : {"pad", "discard", "roll_over"}
        What becomes of a short last batch: it is filled from the start of the epoch, as often as
        needed; it is dropped; or its samples are the first of the next epoch.  As in MXNet, `pad`
        of the batch that holds them is their number, although none is padding; ``count_samples()``
        is right.
    data_name, label_name : str
        Names of single arrays.
    layout : str
        What `provide_data` says; as in MXNet the samples are along axis 0 whatever it is.
    dtype : dtype_like, optional
        Type of the batches, "float32" as in MXNet; None keeps the type of every array.  Arrays of
        MXNet keep theirs.
    data_layout : str, optional
        Axes of the data arrays, the first being N.  If given, batches of data are put in the order
        of `layout`.
    seed : int
        Determines the permutations.
    num_parts, part_index, even, prefetch_buffer, data_specs, device, epoch, on_error, error_budget
        As for `ArrayDataProvider`.  "roll_over" needs ``num_parts=1``.

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

    def __init__(
        self,
        data: Any,
        label: Any = None,
        batch_size: int = 1,
        shuffle: bool = False,
        last_batch_handle: str = "pad",
        data_name: str = "data",
        label_name: str = "softmax_label",
        layout: str = "NCHW",
        *,
        dtype: DTypeLike | None = "float32",
        data_layout: str | None = None,
        seed: int = 0,
        num_parts: int = 1,
        part_index: int = 0,
        even: bool = False,
        prefetch_buffer: int = 4,
        data_specs: Any = None,
        device: Any = None,
        epoch: int = 0,
        on_error: str = "raise",
        error_budget: float | None = None,
        **unknown: Any,
    ) -> None:
        options = RowOptions.of(
            self,
            unknown,
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
        batch_size = integer("batch_size", batch_size, low=1)
        handle = choice("last_batch_handle", last_batch_handle, ("pad", "discard", "roll_over"))
        if handle == "roll_over" and options.num_parts > 1:
            raise ValueError(
                'last_batch_handle="roll_over" carries samples from epoch to epoch, which parts '
                'cannot agree on: use "pad" or "discard" with num_parts'
            )
        columns = Columns(
            _sorted_columns(data, data_name, dtype, layout, data_layout),
            _sorted_columns(label, label_name, dtype, layout),
        )
        order = options.order(len(columns))
        if handle == "roll_over":
            plan: BatchPlan = RollOverPlan(order, batch_size)
            self.batch_type = FullBatch if data_specs is None else _FullSpecBatch
        else:
            tail: Tail = "wrap" if handle == "pad" else "drop"
            plan = BatchPlan(order, batch_size, tail)
        super().__init__(columns, plan, options, last_batch_handle=handle)

    @property
    def num_data(self) -> int:
        """`num_samples`, under MXNet's name."""
        return self.num_samples


class _FullSpecBatch(SpecBatch, FullBatch):  # type: ignore[misc]
    """The same in the form of data_specs."""


def _named(value: Any, default: str) -> list[tuple[str, Any]]:
    """Names and arrays in the forms that MXNet.jl accepts."""
    if value is None:
        return []
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
