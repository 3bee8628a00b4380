"""One conversion between two layouts, worked out once and applied to any array.

`iterators.core.layout` is the face of this module; nothing else imports it.  A step knows shapes
and orders, never what an axis means, and leaves the work to `iterators.core.backend`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from recordio.extras import need

from .axes import ClassNumberError, Layout, LayoutError
from .backend import SPARSE, Backend, backend_of, is_stored_sparse, merges_in_place
from .dtypes import dtype_name


class Step:
    """The conversion from `src` to `dst`; see `iterators.core.layout.plan` for its rules."""

    __slots__ = (
        "axis_sizes",
        "dst",
        "dst_groups",
        "gone",
        "inserted",
        "kept",
        "one_hot",
        "order",
        "seen",
        "selected",
        "src",
        "src_groups",
        "trivial",
    )

    def __init__(self, src: Layout, dst: Layout) -> None:
        self.src: Layout = src
        self.dst: Layout = dst
        self.axis_sizes: dict[str, int] = self._merge_sizes()
        # A flattened axis that both have in the same way is one axis: nobody needs its parts.
        whole = {a for a in src.axes if a in dst.axes and src.orders.get(a) == dst.orders.get(a)}
        self.src_groups: list[str] = _groups(src, whole)
        self.dst_groups: list[str] = _groups(dst, whole)
        have, want = "".join(self.src_groups), "".join(self.dst_groups)
        #: The axis that labels become, or nothing.
        self.one_hot: str = src.index_of if src.index_of and src.index_of in want else ""
        if src.index_of != dst.index_of and not self.one_hot:
            raise self._impossible(
                f"the elements are labels of axis {src.index_of or dst.index_of!r} in one of them"
            )
        if self.one_hot and self.one_hot not in self.axis_sizes:
            raise self._impossible(f"the size of axis {self.one_hot!r} is not known")
        gone = [axis for axis in have if axis not in want]
        self.selected: dict[str, int] = {a: dst.at[a] for a in gone if a in dst.at}
        # Axes of which nothing is left: of size 1, or the slots that one-hot puts together.
        self.gone: list[str] = [axis for axis in gone if axis not in self.selected]
        self.inserted: list[str] = [
            axis for axis in want if axis not in have and axis != self.one_hot
        ]
        for axis in self.inserted:
            self._must_be_one(axis, dst)
        for axis in [] if self.one_hot else self.gone:
            self._must_be_one(axis, src)
        for axis, position in self.selected.items():
            if position >= self.axis_sizes.get(axis, position + 1):
                raise self._impossible(f"axis {axis!r} has size {self.axis_sizes[axis]}")
        self.kept: str = "".join(axis for axis in have if axis in want)
        present = self.inserted + list(self.kept)
        self.order: list[int] = [present.index(axis) for axis in want if axis != self.one_hot]
        #: The shape that came last, with the sizes of all axes.
        self.seen: tuple[Any, dict[str, int]] = (None, {})
        alike = src.axes == dst.axes and self.src_groups == self.dst_groups
        self.trivial: bool = alike and not self.one_hot

    def _merge_sizes(self) -> dict[str, int]:
        """Return the sizes of the axes that both speak of, and of those that only one has."""
        sizes: dict[str, int] = {}
        for layout, other_layout in ((self.src, self.dst), (self.dst, self.src)):
            for axis, size in layout.sizes.items():
                order, another = layout.orders.get(axis), other_layout.orders.get(axis)
                if order != another and order is not None:
                    # The letter of a flattened axis means nothing on the other side, unless that
                    # holds the same axes.
                    if another and sorted(order) == sorted(another):
                        self._agree(axis, size, other_layout.sizes.get(axis, size))
                    continue
                self._agree(axis, sizes.setdefault(axis, size), size)
        return sizes

    def _agree(self, axis: str, first: int, second: int) -> None:
        if first != second:
            raise self._impossible(f"axis {axis!r} has size {first} and {second}")

    def _impossible(self, reason: str) -> LayoutError:
        return LayoutError(f"cannot convert {self.src!r} to {self.dst!r}: {reason}")

    def _must_be_one(self, axis: str, owner: Layout) -> None:
        other_layout = self.dst if owner is self.src else self.src
        size = self.axis_sizes.get(axis)
        if axis in owner.orders or (owner is self.src and size is None) or axis == "b":
            size = 0
        if size not in (None, 1):
            hint = ""
            if len(axis) == 1 and owner is self.dst and axis == "f":
                hint = "; say what it holds with f_order="
            elif owner is self.src:
                hint = f"; say which position is meant with {axis}_at="
            raise self._impossible(f"{other_layout.axes!r} has no axis {axis!r}{hint}")
        self.axis_sizes[axis] = 1

    # -- properties -----------------------------------------------------------------------------

    @property
    def lossless(self) -> bool:
        """True if the input can be told from the output."""
        if self.one_hot:
            return all(self.axis_sizes.get(axis) == 1 for axis in self.gone) and not self.selected
        return all(self.axis_sizes.get(axis) == 1 for axis in self.selected)

    @property
    def fuses(self) -> bool:
        """True if this and a neighbour of the same kind are together one conversion."""
        return not (self.one_hot or self.selected or self.gone or self.inserted)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Step) and (self.src, self.dst) == (other.src, other.dst)

    def __hash__(self) -> int:
        return hash((self.src, self.dst))

    # -- application ----------------------------------------------------------------------------

    def __call__(self, x: Any, dtype: Any, contiguous: bool, sparse: bool) -> Any:
        """Convert; see `LayoutPlan.__call__`."""
        ops = backend_of(x)
        shape, sizes = self.seen
        if shape != x.shape:
            sizes = self._sizes(x, self.src, self.src_groups)
            self.seen = x.shape, sizes
        if self.one_hot:
            return self._mark(ops, x, sizes, dtype, sparse)
        if sparse:
            raise TypeError("sparse=True is for one-hot: other results are as sparse as their data")
        if is_stored_sparse(x):
            return self._sparse(ops, x, sizes, dtype)
        if not self.trivial:
            x = ops.reshape(x, [sizes[axis] for axis in "".join(self.src_groups)])
            x = self._drop(ops, x, "".join(self.src_groups), sizes)
            if self.inserted:
                x = ops.reshape(x, [1] * len(self.inserted) + list(x.shape))
            x = _permute(ops, x, self.order)
            x = _merge(ops, x, self.dst_groups, dtype)
        return ops.contiguous(x, dtype) if contiguous else _cast(ops, x, dtype)

    def adjoint(self, g: Any, dtype: Any) -> Any:
        """Apply the transposed map; see `LayoutPlan.adjoint`."""
        if self.one_hot:
            raise self._impossible("there is no adjoint of one-hot")
        ops = backend_of(g)
        sizes = self._sizes(g, self.dst, self.dst_groups)
        axes = "".join(self.src_groups)
        for axis in axes:
            if axis not in sizes:
                raise self._impossible(f"the size of axis {axis!r} is not known for the adjoint")
        if is_stored_sparse(g):
            return self._sparse(ops, g, sizes, dtype, backwards=True)
        if not self.trivial:
            g = ops.reshape(g, [sizes[axis] for axis in "".join(self.dst_groups)])
            g = _permute(ops, g, _inverse(self.order))
            g = ops.reshape(g, g.shape[len(self.inserted) :]) if self.inserted else g
            for position, axis in enumerate(axes):
                if axis in self.gone:
                    g = ops.reshape(g, [*g.shape[:position], 1, *g.shape[position:]])
                elif axis in self.selected:
                    g = ops.pad(g, position, self.selected[axis], sizes[axis])
            g = _merge(ops, g, self.src_groups, dtype)
        return _cast(ops, g, dtype)

    def _sizes(self, x: Any, layout: Layout, groups: Sequence[str]) -> dict[str, int]:
        """Return the sizes of all axes, from the layouts and the shape of an array."""
        shape = tuple(x.shape)
        if len(shape) != layout.ndim:
            raise LayoutError(
                f"expected an array with the {layout.ndim} axes {layout.axes!r}, not one of shape "
                f"{shape}"
            )
        sizes = dict(self.axis_sizes)
        for axis, group, size in zip(layout.axes, groups, shape, strict=True):
            if layout.sizes.get(axis, size) != size:
                raise LayoutError(
                    f"axis {axis!r} of {layout!r} has size {layout.sizes[axis]}, but the array has "
                    f"shape {shape}"
                )
            missing = [inner for inner in group if inner not in sizes]
            product = math.prod(sizes[inner] for inner in group if inner in sizes)
            if len(missing) == 1 and product and size % product == 0:
                sizes[missing[0]] = size // product
            elif missing:
                raise self._impossible(f"the sizes of {missing} are not known")
            elif product != size:
                raise LayoutError(
                    f"axis {axis!r} of an array of shape {shape} must have size {product} to be "
                    f"converted to {self.dst!r}"
                )
        for axis, position in self.selected.items():
            if position >= sizes.get(axis, position + 1):
                raise LayoutError(f"{axis}_at={position}: axis {axis!r} has size {sizes[axis]}")
        return sizes

    def _drop(self, ops: Backend, x: Any, axes: str, sizes: Mapping[str, int]) -> Any:
        for position in reversed(range(len(axes))):
            if axes[position] in self.selected or axes[position] in self.gone:
                x = ops.take(x, position, self.selected.get(axes[position], 0))
        return x

    # -- labels ---------------------------------------------------------------------------------

    def _mark(self, ops: Backend, x: Any, sizes: dict[str, int], dtype: Any, sparse: bool) -> Any:
        """Put one at the positions that the labels name, zero elsewhere."""
        classes = sizes[self.one_hot]
        if ops is SPARSE:
            raise TypeError("labels in a sparse matrix cannot be told from its zeros")
        if not ops.dtype(x).startswith(("int", "uint")):
            raise TypeError(f"labels are integers, not {ops.dtype(x)}")
        if x.shape and 0 not in x.shape:
            low, high = int(x.min()), int(x.max())
            if low < 0 or high >= classes:
                raise ClassNumberError(
                    f"labels from {low} to {high}: expected labels from 0 to {classes - 1}"
                )
        axes = "".join(self.src_groups)
        x = ops.reshape(x, [sizes[axis] for axis in axes])
        for position in reversed(range(len(axes))):
            if axes[position] in self.selected:
                x = ops.take(x, position, self.selected[axes[position]])
                axes = axes[:position] + axes[position + 1 :]
        if sparse and ops.name != "numpy":
            raise TypeError("sparse=True is for NumPy labels: the result is a scipy matrix")
        if sparse:
            return self._mark_sparse(x, axes, sizes, dtype)
        shape = [math.prod(sizes[axis] for axis in group) for group in self.dst_groups]
        result = ops.zeros(shape, dtype, like=x)
        # Seen in the order of the labels, with the classes last.
        want = "".join(self.dst_groups)
        seen = ops.reshape(result, [sizes[axis] for axis in want])
        rest = [axis for axis in want if axis != self.one_hot]
        present = self.inserted + list(self.kept)
        order = [want.index(axis) for axis in present if axis in rest] + [want.index(self.one_hot)]
        seen = _permute(ops, seen, order)
        merged = [position for position, axis in enumerate(axes) if axis in self.gone]
        for slots in np.ndindex(*(x.shape[position] for position in merged)):
            labels = x
            for position, slot in reversed(list(zip(merged, slots, strict=True))):
                labels = ops.take(labels, position, slot)
            labels = ops.reshape(labels, [1] * len(self.inserted) + list(labels.shape))
            ops.mark(seen, labels)
        return result

    def _mark_sparse(self, x: Any, axes: str, sizes: dict[str, int], dtype: Any) -> Any:
        positions = dict(zip(axes, np.indices(x.shape), strict=True))
        positions[self.one_hot] = x
        positions = {axis: position.ravel() for axis, position in positions.items()}
        return _from_positions(
            positions, sizes, self.dst_groups, np.ones(x.size, bool), dtype or x.dtype, union=True
        )

    # -- sparse matrices ------------------------------------------------------------------------

    def _sparse(
        self, ops: Backend, x: Any, sizes: dict[str, int], dtype: Any, backwards: bool = False
    ) -> Any:
        """Convert a sparse array by the positions of its elements."""
        if self.trivial:
            return ops.cast(x, dtype)
        if ops is not SPARSE:
            raise TypeError("the axes of a sparse tensor cannot be moved: call to_dense() first")
        groups, target = self.src_groups, self.dst_groups
        if backwards:
            groups, target = target, groups
        if len(target) != 2:
            raise self._impossible("sparse matrices have two axes; convert it to a dense one first")
        if self.src_groups == self.dst_groups[::-1]:
            return SPARSE.cast(SPARSE.permute(x, (1, 0)), dtype)
        entries = x.tocoo()
        positions: dict[str, Any] = {}
        for group, position in zip(groups, (entries.row, entries.col), strict=True):
            split = np.unravel_index(position, [sizes[axis] for axis in group])
            positions.update(zip(group, split, strict=True))
        count = len(entries.data)
        for axis in self.inserted + self.gone:
            positions.setdefault(axis, np.zeros(count, np.int64))
        values, chosen = entries.data, np.ones(count, bool)
        for axis, position in self.selected.items():
            if backwards:
                positions[axis] = np.full(count, position)
            else:
                chosen &= positions[axis] == position
        positions = {axis: position[chosen] for axis, position in positions.items()}
        result = _from_positions(positions, sizes, target, values[chosen], dtype or x.dtype)
        return SPARSE.like(result, x)


def _groups(layout: Layout, whole: set[str]) -> list[str]:
    return [axis if axis in whole else layout.orders.get(axis, axis) for axis in layout.axes]


def _inverse(order: Sequence[int]) -> list[int]:
    return [list(order).index(position) for position in range(len(order))]


def _permute(ops: Backend, x: Any, order: Sequence[int]) -> Any:
    return x if list(order) == sorted(order) else ops.permute(x, order)


def _cast(ops: Backend, x: Any, dtype: Any) -> Any:
    if dtype is None or ops is SPARSE:
        return ops.cast(x, dtype)
    return x if ops.dtype(x) == dtype_name(dtype) else ops.contiguous(x, dtype)


def _merge(ops: Backend, x: Any, groups: Sequence[str], dtype: Any) -> Any:
    """Make one axis of every group, moving elements (and casting them) only if there is no way."""
    if all(len(group) == 1 for group in groups):
        return x
    begin, positions = 0, []
    for group in groups:
        positions.append(range(begin, begin + len(group)))
        begin += len(group)
    if not merges_in_place(x.shape, ops.strides(x), positions):
        x = ops.contiguous(x, dtype)
    return ops.reshape(x, [math.prod(x.shape[i] for i in group) for group in positions])


def _from_positions(
    positions: Mapping[str, Any],
    sizes: Mapping[str, int],
    groups: Sequence[str],
    values: Any,
    dtype: Any,
    union: bool = False,
) -> Any:
    """Make a CSR matrix of values at positions, given along every axis."""
    sparse = need("scipy.sparse", "sparse batches")
    if len(groups) != 2:
        raise LayoutError("sparse matrices have two axes")
    shape, flat = [], []
    for group in groups:
        lengths = [sizes[axis] for axis in group]
        shape.append(math.prod(lengths))
        flat.append(np.ravel_multi_index([positions[axis] for axis in group], lengths))
    result = sparse.csr_matrix((values, tuple(flat)), shape=shape)
    if union:
        result.data[:] = True
    return SPARSE.cast(result, dtype)
