"""Columns: arrays in memory with one row per sample, from which batches are gathered.

A column makes the rows of a batch in memory of its own, which is used again only when nobody refers
to the batch any more.  It never changes the array it was given, and never copies all of it.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from recordio.errors import RecordIOError

from ..core.batch import DataDesc
from ..core.collate import SeesData
from ..core.dtypes import array_over, is_number, numpy_dtype
from ..core.fork_safe_lock import ForkSafeLock
from ..core.gather import gather_rows, gather_scaled
from ..core.pool import BufferPool
from .reorder import Axes

#: Gathering is limited by memory, which two threads already keep busy.
THREADS = 2
#: Batches of fewer bytes are made when they are asked for: that takes less than 0.2 milliseconds,
#: about as long as waking a thread and waiting for it.
WORTH_A_THREAD = 512 << 10


def as_array(name: str, value: Any) -> np.ndarray:
    """Return the NumPy array behind one of any kind, sharing its memory where possible."""
    if isinstance(value, SeesData):
        value = value()
    if hasattr(value, "detach"):  # torch
        value = array_over(value)
    elif hasattr(value, "asnumpy"):  # MXNet
        value = value.asnumpy()
    array = np.asarray(value)
    _check_rows(name, array)
    return array


def _check_rows(name: str, array: np.ndarray | StoredRows) -> None:
    """Refuse what has no rows of real numbers."""
    if array.dtype.kind == "c" or not is_number(array.dtype):
        raise TypeError(f"{name}: expected an array of real numbers, not of {array.dtype}")
    if array.ndim == 0:
        raise ValueError(f"{name}: an array needs at least one axis, that of the samples")


@dataclass
class DenseColumn:
    """A NumPy array, memory-mapped or not, or one on a disk, with rows along axis 0.

    Batches have its type unless `dtype` says another one, to which `astype` converts, and `fill` in
    slots without a sample; of uint8 arrays float32 batches may be made, times `factor`.  `shape`
    is that of a row, and `axes` knows the names and orders of the axes of a batch; `layout` is what
    `describe` calls them.
    """

    name: str
    array: np.ndarray | StoredRows
    dtype: Any = None
    fill: float = 0
    layout: str | None = None
    shape: tuple[int, ...] = None  # type: ignore[assignment]
    factor: float | None = None
    axes: Axes = None  # type: ignore[assignment]
    _pool: BufferPool | None = field(init=False, repr=False, default=None)
    _bytes: np.ndarray | None = field(init=False, repr=False, default=None)
    _batch_shape: tuple[int, ...] = field(init=False, repr=False, default=())

    def __post_init__(self) -> None:
        own = self.array.dtype
        self.dtype = numpy_dtype(own if self.dtype is None else self.dtype).newbyteorder("=")
        if self.shape is None:
            self.shape = self.array.shape[1:]
        if self.axes is None:
            self.axes = Axes(self.name, len(self.shape) + 1)
        if self.layout is None:
            self.layout = self.axes.layout
        if self.dtype.kind in "biu" and not _represents(self.dtype, self.fill):
            raise ValueError(f"{self.name}: {self.dtype} cannot hold the padding {self.fill!r}")
        self._bytes = _row_bytes(self.array)

    def __len__(self) -> int:
        return len(self.array)

    def describe(self, batch_size: int) -> DataDesc:
        """Describe a batch of it."""
        shape = self.axes.shape((batch_size, *self.shape))
        return DataDesc(self.name, shape, self.dtype, self.layout)

    def prepare(self, batch_size: int, keep: int, allocate: Callable[[int], Any] | None) -> None:
        """Get ready for batches of that size, `keep` of which may be waiting to be used again."""
        self._batch_shape = (batch_size, *self.shape)
        nbytes = math.prod(self._batch_shape) * self.dtype.itemsize
        self._pool = BufferPool(nbytes, keep, allocate) if nbytes else None

    @property
    def row_shape(self) -> tuple[int, ...]:
        """Shape of a row before its axes are put in order."""
        return self.shape

    @property
    def nbytes(self) -> int:
        """Bytes of a batch."""
        return 0 if self._pool is None else self._pool.nbytes

    def make(self, rows: np.ndarray) -> np.ndarray:
        """A batch whose first slots are `rows`."""
        if self._pool is None:
            return self.axes.convert(np.empty(self._batch_shape, self.dtype))
        batch = np.frombuffer(self._pool.take(), self.dtype)
        table = batch.reshape(self._batch_shape[0], -1)
        self._fill(rows, table)
        if len(rows) < len(table):
            table[len(rows) :] = self.fill
        return self.axes.convert(batch.reshape(self._batch_shape))

    def put(self, row: int, batch: np.ndarray, slot: int) -> np.ndarray:
        """The batch with another row in a slot."""
        one = np.empty((1, *self._batch_shape[1:]), self.dtype)
        self._fill(np.array([row]), one.reshape(1, -1))
        self.axes.rows(batch)[slot] = one[0]
        return batch

    def _fill(self, rows: np.ndarray, table: np.ndarray) -> None:
        if self._bytes is not None and self.factor is not None:
            gather_scaled(self._bytes, rows, self.factor, table)
        elif self._bytes is not None and self.dtype == self.array.dtype:
            gather_rows(self._bytes, rows, table.view(np.uint8))
        else:
            taken = self.array[rows].reshape(len(rows), -1)
            np.copyto(table[: len(rows)], taken, casting="unsafe")


def _row_bytes(array: np.ndarray | StoredRows) -> np.ndarray | None:
    """View it as a table of bytes; None if the items of a row do not lie side by side."""
    if isinstance(array, StoredRows) or not len(array) or not array[0].flags.c_contiguous:
        return None
    items = int(np.prod(array.shape[1:], dtype=np.int64))
    return array.view(np.ndarray).reshape(len(array), items).view(np.uint8)


def _is_mapped(array: np.ndarray | StoredRows) -> bool:
    """Return whether reading the array may mean reading a file."""
    if isinstance(array, StoredRows):
        return True
    base: Any = array
    while isinstance(base, np.ndarray):
        if isinstance(base, np.memmap):
            return True
        base = base.base
    return False


def _represents(dtype: np.dtype, number: float) -> bool:
    try:
        return bool(dtype.type(number) == number)
    except (OverflowError, ValueError):
        return False


@dataclass
class SparseColumn:
    """A scipy matrix in CSR form; batches are CSR too, rows without a sample being empty."""

    name: str
    matrix: Any
    dtype: Any = None
    layout: str | None = "NC"
    _batch_size: int = field(init=False, repr=False, default=0)

    def __post_init__(self) -> None:
        self.dtype = numpy_dtype(self.matrix.dtype if self.dtype is None else self.dtype)
        if not self.matrix.has_canonical_format:  # which torch's tensors need
            self.matrix = self.matrix.copy()
            self.matrix.sum_duplicates()

    def __len__(self) -> int:
        return self.matrix.shape[0]

    def describe(self, batch_size: int) -> DataDesc:
        """Describe a batch of it."""
        return DataDesc(self.name, (batch_size, *self.row_shape), self.dtype, self.layout)

    @property
    def row_shape(self) -> tuple[int, ...]:
        """Number of features, as a shape."""
        return (self.matrix.shape[1],)

    def prepare(self, batch_size: int, keep: int, allocate: Any) -> None:
        """Get ready for batches of that size."""
        self._batch_size = batch_size

    def make(self, rows: np.ndarray) -> Any:
        """A batch whose first slots are `rows`."""
        taken = self.matrix[rows].astype(self.dtype, copy=False)
        missing = self._batch_size - len(rows)
        if not missing:
            return taken
        indptr = np.concatenate([taken.indptr, np.repeat(taken.indptr[-1:], missing)])
        shape = self._batch_size, self.matrix.shape[1]
        return type(taken)((taken.data, taken.indices, indptr), shape=shape)

    def put(self, row: int, batch: Any, slot: int) -> Any:
        """A batch like this one with another row in a slot."""
        new = self.matrix[[row]].astype(self.dtype, copy=False)
        begin, end = batch.indptr[slot], batch.indptr[slot + 1]
        indptr = batch.indptr.copy()
        indptr[slot + 1 :] += new.nnz - (end - begin)
        parts = [
            np.concatenate([old[:begin], inserted, old[end:]])
            for old, inserted in ((batch.data, new.data), (batch.indices, new.indices))
        ]
        return type(batch)((*parts, indptr), shape=batch.shape)


def column_of(
    name: str,
    value: Any,
    dtype: DTypeLike | None = None,
    fill: float = 0,
    layout: str | None = None,
    data_layout: str | None = None,
) -> DenseColumn | SparseColumn:
    """The column for what a user passes as an array; `layout` is wanted, `data_layout` is there."""
    if hasattr(value, "tocsr"):
        refuse_layout(name, layout, data_layout)
        return SparseColumn(name, value.tocsr(), dtype)
    array: np.ndarray | StoredRows
    if is_stored(value):
        array = StoredRows(value)
        _check_rows(name, array)
    else:
        array = as_array(name, value)
    return DenseColumn(name, array, dtype, fill, axes=Axes(name, array.ndim, data_layout, layout))


def refuse_layout(name: str, *layouts: str | None) -> None:
    """Raise for a layout that sparse rows cannot have."""
    for layout in layouts:
        if layout not in (None, "NC"):
            raise ValueError(f'layout={layout!r}: {name} is sparse, which is "NC" always')


@dataclass
class Columns:
    """Data and label columns of a provider, and the batches made of them.

    `bad_rows` cannot be used, for the reasons that it gives.
    """

    data: Sequence[DenseColumn | SparseColumn]
    label: Sequence[DenseColumn | SparseColumn]
    bad_rows: Mapping[int, RecordIOError] = field(default_factory=dict)
    batch_size: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        if not self.data:
            raise ValueError("there is no data array")
        first, *others = [*self.data, *self.label]
        for column in others:
            if len(column) != len(first):
                raise ValueError(
                    f"{column.name} has {len(column)} samples, {first.name} has {len(first)}: all "
                    "data and label arrays need the same number along axis 0"
                )
        if not len(first):
            raise ValueError(f"{first.name} holds no samples")

    def __len__(self) -> int:
        return len(self.data[0])

    def prepare(self, batch_size: int, depth: int, allocate: Callable[[int], Any] | None) -> None:
        """Get ready for batches of that size, `depth` of them under way."""
        self.batch_size = batch_size
        for column in (*self.data, *self.label):
            column.prepare(batch_size, depth + THREADS + 1, allocate)

    def threads(self) -> int:
        """Count the threads that should make batches; 0 if handing them over would cost more."""
        nbytes = 0
        for column in (*self.data, *self.label):
            if isinstance(column, SparseColumn) or _is_mapped(column.array):
                return THREADS
            nbytes += column.nbytes
        return THREADS if nbytes >= WORTH_A_THREAD else 0

    def describe(self) -> tuple[list[DataDesc], list[DataDesc]]:
        """Describe the data and label arrays of a batch."""
        return (
            [column.describe(self.batch_size) for column in self.data],
            [column.describe(self.batch_size) for column in self.label],
        )

    def __call__(
        self, rows: np.ndarray, epoch: int
    ) -> tuple[list[Any], list[Any], np.ndarray, list[Any]]:
        """Data, labels, row numbers and bad slots of a batch."""
        ids = np.zeros(self.batch_size, np.uint64)
        ids[: len(rows)] = rows
        bad = self.bad_rows
        return (
            [column.make(rows) for column in self.data],
            [column.make(rows) for column in self.label],
            ids,
            [(slot, bad[row]) for slot, row in enumerate(rows.tolist()) if row in bad]
            if bad
            else [],
        )

    def replace(
        self, row: int, data: list[Any], label: list[Any], ids: np.ndarray, slot: int
    ) -> None:
        """Put another row into a slot of a batch, or raise what is wrong with it."""
        if row in self.bad_rows:
            # A copy, because an error that was raised keeps the frames that it went through.
            raise copy.copy(self.bad_rows[row])
        for columns, arrays in ((self.data, data), (self.label, label)):
            for number, column in enumerate(columns):
                arrays[number] = column.put(row, arrays[number], slot)
        ids[slot] = row

    def another(self) -> Columns:
        """Return other columns of these rows, for batches in other memory."""
        data, label = ([copy.copy(column) for column in part] for part in (self.data, self.label))
        return Columns(data, label, self.bad_rows)

    def close(self) -> None:
        """Nothing goes on in the background."""

    def settings(self) -> dict[str, str]:
        """Return what a saved state must agree with."""
        return {
            column.name: f"{len(column)} rows, {column.row_shape}"
            for column in (*self.data, *self.label)
        }


#: What arrays in memory have, NumPy's, those of pandas, and of libraries that NumPy may look into.
IN_MEMORY = ("__dlpack__", "__array_interface__", "__array_struct__", "detach", "iloc", "tocsr")
#: Rows are read with those between them where they are at least one in so many.
DENSE = 4


def is_stored(value: Any) -> bool:
    """Tell an array that is read by slices from one in memory, and from any other object.

    >>> is_stored(np.zeros(3)), is_stored([1, 2])
    (False, False)
    """
    if isinstance(value, np.ndarray) or any(hasattr(value, name) for name in IN_MEMORY):
        return False
    read = all(hasattr(value, name) for name in ("shape", "__getitem__"))
    return read and isinstance(getattr(value, "dtype", None), np.dtype)


class StoredRows:
    """An array that is read by slices along its first axis, a batch at a time.

    Rows are asked for once each and in ascending order, as h5py wants them, whatever their order
    here; by one thread at a time.
    """

    def __init__(self, value: Any) -> None:
        self._value = value
        self._orthogonal = getattr(value, "oindex", value)  # zarr's, as its [] takes no lists
        self._access = ForkSafeLock()
        self.dtype: np.dtype = np.dtype(value.dtype)
        self.shape: tuple[int, ...] = tuple(value.shape)
        self.ndim: int = len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        """Read rows by their numbers, in any order."""
        numbers, places = np.unique(rows, return_inverse=True)
        if not len(numbers):
            return np.empty((0, *self.shape[1:]), self.dtype)
        first, count = int(numbers[0]), int(numbers[-1] - numbers[0]) + 1
        with self._access.lock:
            if count <= DENSE * len(numbers):
                values = np.asarray(self._value[first : first + count])[numbers - first]
            else:
                values = np.asarray(self._orthogonal[numbers.tolist()])
        if values.shape != (len(numbers), *self.shape[1:]):
            raise ValueError(
                f"{len(numbers)} rows of {type(self._value).__name__} of shape {self.shape} have "
                f"the shape {values.shape}: give an array whose rows are read by their numbers"
            )
        return values[places]
