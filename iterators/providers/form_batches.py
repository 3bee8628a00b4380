"""Batches of a provider with ``data_specs=``: the requested form and a `DataBatch` in one.

The structure of a request is the structure of its batches: a tuple of spaces gives a `SpecBatch`,
one space an `ArrayBatch`, the space of no data a `NullBatch`.  Nothing is converted here.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from ..core.backend import is_stored_sparse
from ..core.batch import DataBatch

#: Ways to an array's memory that other libraries look for on an object.
MEMORY = ("__array_interface__", "__cuda_array_interface__", "__dlpack__", "__dlpack_device__")


class FormBatch(DataBatch):
    """Base class of the batches in a form that was asked for.

    They have `size` slots, padding included; by default those of their first array.
    """

    def __init__(self, *, size: int | None = None, **fields: Any) -> None:
        super().__init__(**fields)
        self._slots = size

    def _size(self) -> int:
        return super()._size() if self._slots is None else self._slots

    @property
    def asked(self) -> Any:
        """The tuple, array or None that was asked for, without the rest of the batch."""
        raise TypeError(f"{type(self).__name__} does not say what was asked for")


class SpecBatch(FormBatch, tuple):  # type: ignore[misc]
    """A batch in the form of several spaces: a tuple of its parts, and a `DataBatch`.

    ``images, targets = batch`` is what was asked for; ``batch.data``, ``batch.label``,
    ``batch.pad``, ``batch.index`` and ``batch["targets"]`` are as in every batch.
    """

    def __new__(cls, parts: tuple[Any, ...], **fields: Any) -> SpecBatch:
        """Make the tuple; the rest is what `FormBatch` takes."""
        return tuple.__new__(cls, parts)

    def __init__(self, parts: tuple[Any, ...], **fields: Any) -> None:
        super().__init__(**fields)

    def __iter__(self) -> Iterator[Any]:  # the parts, in the order that was asked for
        return tuple.__iter__(self)

    def __getitem__(self, key: Any) -> Any:
        return self.get(key) if isinstance(key, str) else tuple.__getitem__(self, key)

    @property
    def asked(self) -> tuple[Any, ...]:
        """The tuple alone."""
        return tuple(self)


class ArrayBatch(FormBatch):
    """A batch in the form of one space: used as its array, and a `DataBatch`.

    Operators, indices, ``len``, functions of NumPy and torch, and all attributes but those of a
    batch are the array's; ``batch.data``, ``batch.label``, ``batch.pad``, ``batch.index`` and
    ``batch["features"]`` are as in every batch.  NumPy's functions take no tensors and no sparse
    matrices: ``batch.array`` is the array itself.
    """

    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    def __init__(self, array: Any, **fields: Any) -> None:
        super().__init__(**fields)
        self.array = array

    @property
    def asked(self) -> Any:
        """The array alone."""
        return self.array

    def __getattr__(self, name: str) -> Any:
        if name == "array" or (name.startswith("__") and name not in MEMORY):
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return getattr(self.array, name)

    def __getitem__(self, key: Any) -> Any:
        return self.get(key) if isinstance(key, str) else self.array[key]

    def __len__(self) -> int:
        return len(self.array)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.array)

    def __bool__(self) -> bool:
        return bool(self.array)

    # -- functions of NumPy and torch -------------------------------------------------------------

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if is_stored_sparse(self.array):
            raise TypeError("the batch is sparse: make it dense, batch.array.toarray()")
        return np.array(self.array, dtype, copy=copy)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        if not isinstance(self.array, np.ndarray):
            return NotImplemented
        return getattr(ufunc, method)(*_plain(inputs), **_plain(keywords))

    def __array_function__(self, function: Any, types: Any, args: Any, keywords: Any) -> Any:
        if not isinstance(self.array, np.ndarray):
            return NotImplemented
        return function(*_plain(args), **_plain(keywords))

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return function(*_plain(args), **_plain(kwargs or {}))


def _plain(value: Any) -> Any:
    """Replace batches by their arrays, in tuples, lists and dictionaries as well."""
    if isinstance(value, ArrayBatch):
        return value.array
    if type(value) in (tuple, list):
        return type(value)(map(_plain, value))
    if type(value) is dict:
        return {key: _plain(item) for key, item in value.items()}
    return value


def _unary(operation: Callable[[Any], Any]) -> Callable[[ArrayBatch], Any]:
    return lambda batch: operation(batch.array)


def _binary(operation: Callable[[Any, Any], Any]) -> Callable[[ArrayBatch, Any], Any]:
    return lambda batch, other: operation(batch.array, _plain(other))


def _reflected(operation: Callable[[Any, Any], Any]) -> Callable[[ArrayBatch, Any], Any]:
    return lambda batch, other: operation(other, batch.array)


for _name in ("neg", "pos", "abs", "invert"):
    setattr(ArrayBatch, f"__{_name}__", _unary(getattr(operator, _name)))
for _name in ("lt", "le", "eq", "ne", "gt", "ge"):
    setattr(ArrayBatch, f"__{_name}__", _binary(getattr(operator, _name)))
for _name in ("add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "pow"):
    setattr(ArrayBatch, f"__{_name}__", _binary(getattr(operator, _name)))
    setattr(ArrayBatch, f"__r{_name}__", _reflected(getattr(operator, _name)))
for _name in ("and", "or", "xor", "lshift", "rshift"):
    setattr(ArrayBatch, f"__{_name}__", _binary(getattr(operator, f"__{_name}__")))
    setattr(ArrayBatch, f"__r{_name}__", _reflected(getattr(operator, f"__{_name}__")))


class NullBatch(FormBatch):
    """A batch in the form of the space of no data: it says how many samples it stands for."""

    def __init__(self, nothing: None, **fields: Any) -> None:
        super().__init__(**fields)

    @property
    def asked(self) -> None:
        """None."""
        return None


def in_form(asked: Any, **fields: Any) -> FormBatch:
    """Make a batch that is what was asked for; `fields` are those of `FormBatch`."""
    return form_type(asked)(asked, **fields)


def form_type(structure: Any) -> type[Any]:
    """Return the class of batches of a structure: a tuple, something in one piece, or None."""
    if structure is None:
        return NullBatch
    return SpecBatch if isinstance(structure, tuple) else ArrayBatch


def with_arrays(batch: DataBatch, data: Sequence[Any], label: Sequence[Any], **fields: Any) -> Any:
    """Make a batch of the same kind with other arrays in place of its own, one for each."""
    if not isinstance(batch, FormBatch):
        made = type(batch)(data, label, **fields)
        made.kinds = batch.kinds
        return made
    replaced = {
        id(old): new for old, new in zip([*batch.data, *batch.label], [*data, *label], strict=True)
    }

    def moved(part: Any) -> Any:
        return tuple(map(moved, part)) if isinstance(part, tuple) else replaced.get(id(part), part)

    fields = {"data": list(data), "label": list(label), **fields}
    return in_form(moved(batch.asked), size=batch._size(), **fields)
