"""Lists of examples to a description and memory, and back without a copy.

Arrays of one kind that stand at one position of every example - the images, the labels - are laid
side by side, so that what crosses between processes is one description for all of them, and the
examples that come out are neighbouring views.  Everything else is pickled, with the memory of large
arrays kept apart.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Packed", "pack", "unpack"]

ALIGNMENT = 64
#: Buffers below this are pickled with the rest.
LEAST_BUFFER = 1024


class MemoryPiece(NamedTuple):
    """A piece of memory: in which of the two it lies, and at what offset."""

    shared: bool
    offset: int
    nbytes: int


class PackedColumn(NamedTuple):
    """The values at one position of every example, as one array."""

    piece: MemoryPiece
    dtype: np.dtype
    examples: int
    #: Shape of one example; None for NumPy scalars, which have a shape () and no memory.
    shape: tuple[int, ...] | None


class Packed(NamedTuple):
    """A list of examples without its memory.

    `form` says what an example is: the number of entries of a tuple, the keys of a dictionary, or
    None for anything else.  `columns` has a `PackedColumn`, or None for what is in `pickled`.
    """

    form: int | tuple[Any, ...] | None
    columns: list[PackedColumn | None]
    pickled: bytes
    buffers: list[MemoryPiece]


class MemoryPlan:
    """The pieces of memory that will be needed, and what is to be written there."""

    def __init__(self, limit: int | None) -> None:
        self.limit = limit
        self.sizes = {True: 0, False: 0}
        self.writes: list[tuple[MemoryPiece, Callable[[memoryview], None]]] = []

    def add(self, nbytes: int, write: Callable[[memoryview], None]) -> MemoryPiece:
        """Add a piece: in shared memory, or beside it when that is full."""
        shared = self.limit is None or self.sizes[True] + nbytes <= self.limit
        piece = MemoryPiece(shared, self.sizes[shared], nbytes)
        self.sizes[shared] += -(-nbytes // ALIGNMENT) * ALIGNMENT
        self.writes.append((piece, write))
        return piece

    def write(self, shared: memoryview, beside: memoryview) -> None:
        """Fill the memory."""
        for piece, write in self.writes:
            memory = shared if piece.shared else beside
            write(memory[piece.offset : piece.offset + piece.nbytes])


def pack(examples: list[Any], limit: int | None = None) -> tuple[Packed, MemoryPlan]:
    """Describe examples, at least one, and plan where their memory goes.

    What does not fit into `limit` bytes of shared memory goes beside it.
    """
    form, rows = columns_of(examples)
    plan = MemoryPlan(limit)
    columns = [stack(row, plan) for row in rows]
    rest = [row for row, column in zip(rows, columns, strict=True) if column is None]
    buffers: list[MemoryPiece] = []

    def keep_apart(buffer: pickle.PickleBuffer) -> bool:
        try:
            raw = buffer.raw()
        except BufferError:  # not contiguous
            return True
        if raw.nbytes < LEAST_BUFFER or raw.readonly:
            return True

        def write(memory: memoryview) -> None:
            memory[:] = raw

        buffers.append(plan.add(raw.nbytes, write))
        return False

    pickled = pickle.dumps(rest, 5, buffer_callback=keep_apart) if rest else b""
    return Packed(form, columns, pickled, buffers), plan


def unpack(packed: Packed, shared: memoryview, beside: memoryview) -> list[Any]:
    """Return the examples, whose arrays refer to the memory."""

    def memory(piece: MemoryPiece) -> memoryview:
        return (shared if piece.shared else beside)[piece.offset : piece.offset + piece.nbytes]

    rest: list[Any] = []
    if packed.pickled:
        rest = pickle.loads(packed.pickled, buffers=[memory(piece) for piece in packed.buffers])
    left = iter(rest)
    rows = [
        next(left) if column is None else unstack(column, memory(column.piece))
        for column in packed.columns
    ]
    if packed.form is None:
        return rows[0]
    if isinstance(packed.form, int):
        return list(zip(*rows, strict=True))
    keys = packed.form
    return [dict(zip(keys, values, strict=True)) for values in zip(*rows, strict=True)]


def columns_of(examples: list[Any]) -> tuple[int | tuple[Any, ...] | None, list[list[Any]]]:
    """Return examples of one form as columns; other examples as one column of everything."""
    first = examples[0]
    if type(first) is tuple and first:
        if all(type(example) is tuple and len(example) == len(first) for example in examples):
            return len(first), [list(row) for row in zip(*examples, strict=True)]
    elif type(first) is dict and first:
        keys = tuple(first)
        if all(type(example) is dict and tuple(example) == keys for example in examples):
            return keys, [[example[key] for example in examples] for key in keys]
    return None, [examples]


def stack(row: list[Any], plan: MemoryPlan) -> PackedColumn | None:
    """Plan to lay the entries of a column side by side; None if they are not of one kind."""
    first, kind = row[0], type(row[0])
    scalar = isinstance(first, np.generic)
    if not (kind is np.ndarray or scalar) or first.dtype.hasobject:
        return None
    shape, dtype = first.shape, first.dtype
    if any(type(x) is not kind or x.shape != shape or x.dtype != dtype for x in row):
        return None
    nbytes = first.nbytes * len(row)

    def write(memory: memoryview) -> None:
        target = view(memory, dtype, (len(row), *shape))
        if first.nbytes < LEAST_BUFFER:
            target[...] = row
        else:
            for slot, entry in zip(target, row, strict=True):
                slot[...] = entry

    return PackedColumn(plan.add(nbytes, write), dtype, len(row), None if scalar else shape)


def unstack(column: PackedColumn, memory: memoryview) -> list[Any]:
    """Return the entries of a column."""
    array = view(memory, column.dtype, (column.examples, *(column.shape or ())))
    if column.shape == ():
        return [array[i, ...] for i in range(column.examples)]
    return list(array)


def view(memory: memoryview, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    """Return an array over memory of exactly its size."""
    if not memory.nbytes:
        return np.empty(shape, dtype)
    return np.frombuffer(memory, dtype).reshape(shape)
