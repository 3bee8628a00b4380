"""Regions of NumPy arrays and torch tensors.

Index expressions are composed axis by axis, so that ``d[[3, 1]][0:1]`` names row 3 of the stored
array and writes to it.  Those that cannot be expressed so (several lists, masks of more than one
axis, new axes) are kept as they are and applied by the array library itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.backend import is_tensor
from ..core.indexing import rows_as_slice
from .region import FailedRegion, ReadOnlyError, Region, is_index_list, select_rows

#: Choice of an axis: one position (the axis is gone), a range, or an array of positions.
Choice = Any


class _Shaped(Region):
    """A region whose shape is known without reading."""

    def length(self) -> float:
        shape = self.shape()
        if not shape:
            raise TypeError("a single value has no length")
        return shape[0]

    def axis_length(self, axis: int) -> int | None:
        shape = self.shape()
        return shape[axis] if axis < len(shape) else None


class ArrayRegion(_Shaped):
    """Part of an array: positions, ranges and lists of positions, one for each axis."""

    def __init__(self, array: Any, choices: list[Choice] | None = None) -> None:
        self._array = array
        self._choices = choices or [range(n) for n in array.shape]

    @property
    def storage(self) -> Any:
        return self._array

    # -- selecting --------------------------------------------------------------------------------

    def select(self, index: Any, rowwise: bool = False) -> Region:
        kept = [axis for axis, chosen in enumerate(self._choices) if not isinstance(chosen, int)]
        parts = _per_axis(index, len(kept), is_tensor(self._array))
        if parts is None:
            return _Indexed(self, index)
        if len(parts) > len(kept):
            return FailedRegion(
                IndexError(f"{len(parts)} indices for an array of {len(kept)} axes"), self._array
            )
        choices = list(self._choices)
        for axis, part in zip(kept, parts, strict=False):
            try:
                choices[axis] = select_rows(self._choices[axis], part)
            except IndexError as error:
                if is_index_list(part) or isinstance(part, slice):
                    return FailedRegion(error, self._array)
                raise  # of a number, at once: that is how loops over indices end
        return ArrayRegion(self._array, choices)

    # -- facts ------------------------------------------------------------------------------------

    def shape(self) -> tuple[int, ...]:
        return tuple(len(chosen) for chosen in self._choices if not isinstance(chosen, int))

    def same_as(self, other: Region) -> bool:
        return (
            isinstance(other, ArrayRegion)
            and self._array is other._array
            and all(map(_same_choice, self._choices, other._choices))
        )

    # -- data -------------------------------------------------------------------------------------

    def read(self) -> Any:
        basic, lists = self._split()
        view = self._array[basic]
        return self._listed(view, lists) if lists else view

    def write(self, value: Any) -> None:
        self._check_writable()
        basic, lists = self._split()
        value = _plain(value, self._array)
        if not lists:
            _assign(self._array, basic, value)
        else:
            _assign(self._array[basic], _outer(lists, self.shape(), self._array), value)

    def positions(self) -> np.ndarray:
        """Return positions of the elements in the flattened storage."""
        shape = tuple(self._array.shape)
        strides = [int(np.prod(shape[axis + 1 :], dtype=np.intp)) for axis in range(len(shape))]
        total, left = np.zeros((), np.intp), len(self.shape())
        for chosen, stride in zip(self._choices, strides, strict=True):
            positions = np.asarray(chosen, np.intp) * stride
            if not isinstance(chosen, int):
                left -= 1
                positions = positions.reshape(-1, *[1] * left)
            total = total + positions
        return total

    def _check_writable(self) -> None:
        if isinstance(self._array, np.ndarray) and not self._array.flags.writeable:
            raise ReadOnlyError("the array that is seen is read-only")

    def _split(self) -> tuple[tuple, dict[int, np.ndarray]]:
        """Return positions and slices for all axes, and the choices left for axes of the result."""
        basic: list[Any] = []
        lists: dict[int, np.ndarray] = {}
        axis = 0
        for chosen in self._choices:
            if isinstance(chosen, int):
                basic.append(chosen)
                continue
            if isinstance(chosen, range) and (chosen.step > 0 or not is_tensor(self._array)):
                basic.append(rows_as_slice(chosen))
            else:
                basic.append(slice(None))
                lists[axis] = np.asarray(chosen, np.intp)
            axis += 1
        return tuple(basic), lists

    def _listed(self, view: Any, lists: dict[int, np.ndarray]) -> Any:
        if len(lists) == 1:
            ((axis, positions),) = lists.items()
            if not is_tensor(view):
                return np.take(view, positions, axis)
            return view.index_select(axis, _tensor_of(positions, view))
        return view[_outer(lists, self.shape(), view)]


class _Indexed(_Shaped):
    """A selection from an array whose index expression is kept as it is."""

    def __init__(self, base: ArrayRegion | _Indexed, index: Any) -> None:
        self._base = base
        self._index = index

    @property
    def storage(self) -> Any:
        return self._base.storage

    def read(self) -> Any:
        return self._base.read()[_for_storage(self._index, self.storage)]

    def write(self, value: Any) -> None:
        self._check_writable()
        array = self.storage
        positions = np.unravel_index(self.positions(), tuple(array.shape))
        if is_tensor(array):
            positions = tuple(_tensor_of(axis, array) for axis in positions)
        _assign(array, positions, _plain(value, array))

    def positions(self) -> np.ndarray:
        positions = self._base.positions()
        if not is_tensor(self.storage):
            return positions[_for_numpy(self._index)]
        import torch  # whose rule for numbers beside lists is another

        return torch.from_numpy(positions)[_for_storage(self._index, torch.empty(0))].numpy()

    def _check_writable(self) -> None:
        self._base._check_writable()

    def select(self, index: Any, rowwise: bool = False) -> Region:
        if isinstance(index, (int, np.integer)) and not -self.length() <= index < self.length():
            raise IndexError(f"index {index} is out of range for {self.length()} rows")
        return _Indexed(self, index)

    def shape(self) -> tuple[int, ...]:
        # An array of that shape that takes no memory has the index applied to it.
        if is_tensor(self.storage):
            import torch

            blank = torch.zeros((), dtype=torch.int8).expand(self._base.shape())
            return tuple(blank[_for_storage(self._index, blank)].shape)
        return np.broadcast_to(np.int8(0), self._base.shape())[_for_numpy(self._index)].shape

    def same_as(self, other: Region) -> bool:
        return (
            isinstance(other, _Indexed)
            and self._base.same_as(other._base)
            and _same_index(self._index, other._index)
        )


def _per_axis(index: Any, axes: int, tensor: bool) -> list[Any] | None:
    """Return an expression for each of the first axes; None if they do not select independently."""
    parts = list(index) if isinstance(index, tuple) else [index]
    if any(part is None or isinstance(part, (bool, np.bool_)) for part in parts):
        return None
    parts = [_for_numpy(part) if is_tensor(part) else part for part in parts]
    lists = [i for i, part in enumerate(parts) if is_index_list(part)]
    if len(lists) > 1 or any(np.ndim(parts[i]) != 1 for i in lists):
        return None
    if lists and not tensor and any(_is_number(part) for part in parts):
        return None  # NumPy moves the axis of the list to the front, or not; it shall decide
    dots = [i for i, part in enumerate(parts) if part is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index can have only one ellipsis")
    if dots:
        parts[dots[0] : dots[0] + 1] = [slice(None)] * max(axes - len(parts) + 1, 0)
    for part in parts:
        if not (isinstance(part, slice) or is_index_list(part) or _is_number(part)):
            raise IndexError(f"arrays cannot be indexed by {part!r}")
    return parts


def _is_number(part: Any) -> bool:
    return hasattr(part, "__index__") and not isinstance(part, (bool, list, tuple)) and not (
        isinstance(part, np.ndarray) and part.ndim
    )  # fmt: skip


def _outer(lists: dict[int, np.ndarray], shape: tuple[int, ...], array: Any) -> tuple:
    """Return index arrays that choose along each axis on its own, as `numpy.ix_` makes them."""
    grid = np.ix_(*[lists.get(axis, np.arange(n)) for axis, n in enumerate(shape)])
    return tuple(_tensor_of(axis, array) for axis in grid) if is_tensor(array) else grid


def _assign(array: Any, index: Any, value: Any) -> None:
    """``array[index] = value``; a shape that does not fit is a ValueError for every library."""
    if not is_tensor(array):
        array[index] = value
        return
    target = array[index]
    try:
        value = value.expand(target.shape)
    except RuntimeError as error:
        raise ValueError(
            f"a value of shape {tuple(value.shape)} does not fit {tuple(target.shape)}"
        ) from error
    array[index] = value


def _plain(value: Any, array: Any) -> Any:
    """Return a value to be stored, as the library of the array takes it."""
    if not is_tensor(array):
        return value.detach().cpu().numpy() if is_tensor(value) else value
    import torch

    return torch.as_tensor(value, device=array.device).to(array.dtype)


def _tensor_of(positions: np.ndarray, like: Any) -> Any:
    import torch

    return torch.as_tensor(np.ascontiguousarray(positions), device=like.device)


def _for_numpy(index: Any) -> Any:
    if isinstance(index, tuple):
        return tuple(_for_numpy(part) for part in index)
    return index.detach().cpu().numpy() if is_tensor(index) else index


def _for_storage(index: Any, array: Any) -> Any:
    if not is_tensor(array):
        return _for_numpy(index)
    if isinstance(index, tuple):
        return tuple(_for_storage(part, array) for part in index)
    return _tensor_of(index, array) if isinstance(index, np.ndarray) else index


def _same_choice(one: Choice, other: Choice) -> bool:
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.array_equal(np.asarray(one), np.asarray(other))
    return one == other


def _same_index(one: Any, other: Any) -> bool:
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_same_index, one, other))
    if is_index_list(one) or is_index_list(other) or is_tensor(one) or is_tensor(other):
        return np.array_equal(_for_numpy(one), _for_numpy(other))
    return one == other
