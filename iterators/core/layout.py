"""The one place where axes are permuted, merged, split, selected and made one-hot.

A `Layout` names the axes of an array; `plan(src, dst)` is the conversion from one to another, for
NumPy, scipy sparse and torch alike, with its adjoint.  It moves elements and never computes with
them: no scaling, no defaults for anything that could be meant in two ways.

::

    array in src --split--> one axis per letter --select, permute--> --merge--> array in dst
          ^                                                                        |
          +------------------------------ adjoint ---------------------------------+
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .steps import LabelError, LayoutError, Step

__all__ = ["LabelError", "Layout", "LayoutError", "Plan", "plan"]

#: Other spellings of axes: Pylearn2's rows and columns, and MXNet's capitals.
SYMBOLS = {0: "h", 1: "w", "0": "h", "1": "w", "N": "b"}
BATCH = "b"


def _letter(symbol: Any) -> str:
    letter = SYMBOLS.get(symbol, symbol)
    if isinstance(letter, str) and len(letter) == 1 and letter.isascii() and letter.isalpha():
        return letter.lower()
    raise LayoutError(f"{symbol!r} is not an axis: expected a letter, or 0 and 1 for h and w")


def _letters(symbols: Any, what: str) -> str:
    if not isinstance(symbols, Iterable):
        raise LayoutError(f"{what}={symbols!r}: expected letters such as 'bhwc'")
    letters = "".join(_letter(symbol) for symbol in symbols)
    if len(set(letters)) < len(letters):
        raise LayoutError(f"{what}={letters!r} names an axis twice")
    return letters


def _size(axis: str, value: Any) -> int:
    try:
        size = operator.index(value)
    except TypeError:
        raise LayoutError(f"{axis}={value!r}: the size of an axis is an integer") from None
    if size < 0:
        raise LayoutError(f"{axis}={size}: the size of an axis is not negative")
    return size


class Layout:
    """Which axes an array has, in which order, how long they are and what they hold.

    Parameters
    ----------
    axes : str or iterable of str or int
        One letter for every axis, slowest first: ``b`` batch, ``h`` height, ``w`` width, ``c``
        channel, ``t`` time or slot, ``k`` class, ``f`` features; any other letter is as good.
        Pylearn2's ``0`` and ``1`` are ``h`` and ``w``; MXNet's capitals and ``N`` are understood.
    index_of : str, optional
        The elements are labels: integer positions along this axis, which the array does not have.
    **sizes : int, str
        ``h=32`` is the size of an axis (None if unknown; ``b`` has none).  ``f_order="hwc"`` says
        that ``f`` is flattened and holds ``h``, ``w`` and ``c``, slowest first; their sizes are
        given in the same way.  ``t_at=0`` says that the array is position 0 along ``t``, which it
        does not have.

    Raises
    ------
    LayoutError
        For axes that are named twice, sizes that disagree, and descriptions of axes that the
        layout does not have.

    Notes
    -----
    Immutable; compared and hashed by description.

    Examples
    --------
    >>> image = Layout("bhwc", h=32, w=32, c=3)
    >>> image == Layout(("b", 0, 1, "c"), h=32, w=32, c=3), image.shape(10)
    (True, (10, 32, 32, 3))
    >>> Layout("bf", f_order="hwc", h=32, w=32, c=3)
    Layout('bf', f=3072, f_order='hwc', h=32, w=32, c=3)
    """

    __slots__ = ("_hash", "_key", "at", "axes", "index_of", "orders", "sizes")

    axes: str
    #: Sizes of axes and of what they hold, where known.
    sizes: Mapping[str, int]
    #: What the flattened axes hold, slowest first.
    orders: Mapping[str, str]
    #: Positions along axes that the array does not have.
    at: Mapping[str, int]
    index_of: str | None
    _key: tuple[Any, ...]
    _hash: int

    def __init__(self, axes: Any, *, index_of: Any = None, **sizes: Any) -> None:
        letters = _letters(axes, "axes")
        orders, at, known = {}, {}, {}
        for name, value in sizes.items():
            axis, _, kind = name.partition("_")
            axis = _letter(axis)
            if value is None:
                continue
            if kind == "order":
                orders[axis] = _letters(value, name)
            elif kind == "at":
                at[axis] = _size(name, value)
            elif kind:
                raise LayoutError(f"{name}: expected a size, an _order or an _at of an axis")
            else:
                known[axis] = _size(axis, value)
        fill = object.__setattr__
        fill(self, "axes", letters)
        fill(self, "orders", orders)
        fill(self, "at", dict(sorted(at.items())))
        fill(self, "index_of", None if index_of is None else _letter(index_of))
        self._check(known)
        self._infer(known)
        fill(self, "sizes", {axis: known[axis] for axis in self._described() if axis in known})
        key = (
            letters,
            tuple(sorted(orders.items())),
            tuple(sorted(self.sizes.items())),
            tuple(self.at.items()),
            self.index_of,
        )
        fill(self, "_key", key)
        fill(self, "_hash", hash(key))

    def _check(self, known: Mapping[str, int]) -> None:
        for axis, order in self.orders.items():
            if axis not in self.axes:
                raise LayoutError(f"{axis}_order: {self.axes!r} has no axis {axis!r}")
            if axis in order:
                raise LayoutError(f"{axis}_order={order!r}: an axis cannot hold itself")
        atoms = self.atoms
        if len(set(atoms)) < len(atoms):
            raise LayoutError(f"{self.axes!r} with {self.orders} holds an axis twice")
        for axis in self.at:
            if axis in atoms or axis in self.axes:
                raise LayoutError(f"{axis}_at: {self.axes!r} has the axis {axis!r}")
        if self.index_of is not None and self.index_of in atoms + self.axes:
            raise LayoutError(f"index_of={self.index_of!r}: {self.axes!r} has that axis")
        for axis, size in known.items():
            if axis == BATCH:
                raise LayoutError("b has no size: a batch may have any number of samples")
            if axis not in self._described():
                raise LayoutError(f"{axis}={size}: {self.axes!r} has no axis {axis!r}")
            if axis in self.at and self.at[axis] >= size:
                raise LayoutError(f"{axis}_at={self.at[axis]} is not below {axis}={size}")

    def _infer(self, known: dict[str, int]) -> None:
        """A flattened axis is as long as what it holds; one size can follow from the others."""
        for axis, order in self.orders.items():
            missing = [inner for inner in order if inner not in known]
            product = math.prod(known[inner] for inner in order if inner in known)
            if not missing:
                if known.setdefault(axis, product) != product:
                    raise LayoutError(
                        f"{axis}={known[axis]}, but {order!r} hold {product} elements"
                    )
            elif missing != [BATCH] and len(missing) == 1 and axis in known and product:
                known[missing[0]], rest = divmod(known[axis], product)
                if rest:
                    raise LayoutError(f"{axis}={known[axis]} is not a multiple of {product}")

    def _described(self) -> str:
        return self.axes + self.atoms + "".join(self.at) + (self.index_of or "")

    @property
    def atoms(self) -> str:
        """The axes with flattened ones replaced by what they hold."""
        return "".join(self.orders.get(axis, axis) for axis in self.axes)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.axes)

    def axis(self, symbol: Any) -> int:
        """Position of an axis.

        Raises
        ------
        LayoutError
            If the layout has no such axis.

        Examples
        --------
        >>> Layout("chwb").axis("b"), Layout("chwb").axis(0)
        (3, 1)
        """
        letter = _letter(symbol)
        if letter not in self.axes:
            raise LayoutError(f"layout {self.axes!r} has no axis {letter!r}")
        return self.axes.index(letter)

    def shape(self, batch: int | None = None) -> tuple[int, ...]:
        """Shape of an array with `batch` samples.

        Raises
        ------
        LayoutError
            If the size of an axis is not known.
        """
        sizes = self.sizes if batch is None else {**self.sizes, BATCH: batch}
        for axis in self.axes:
            if axis not in sizes:
                raise LayoutError(f"the size of axis {axis!r} of {self!r} is not known")
        return tuple(sizes[axis] for axis in self.axes)

    @property
    def total(self) -> int:
        """Elements of one sample."""
        return math.prod(self.replace(axes=self.axes.replace(BATCH, "")).shape())

    def replace(self, axes: Any = None, **sizes: Any) -> Layout:
        """The same layout with other axes, sizes or orders; what no longer applies is left out.

        Examples
        --------
        >>> Layout("bhwc", h=4, w=5, c=3).replace("chwb", c=None)
        Layout('chwb', h=4, w=5)
        """
        letters = self.axes if axes is None else _letters(axes, "axes")
        described: dict[str, Any] = {
            f"{axis}_order": order for axis, order in self.orders.items() if axis in letters
        }
        described.update((f"{axis}_at", at) for axis, at in self.at.items() if axis not in letters)
        index_of = sizes.pop("index_of", self.index_of)
        orders = {name: sizes[name] for name in sizes if name.endswith("_order")}
        held = "".join(str(value or "") for value in {**described, **orders}.values())
        stays = letters + "".join(_letters(held, "order")) if held.isalpha() else letters
        described.update(
            (axis, size)
            for axis, size in self.sizes.items()
            if axis in stays or f"{axis}_at" in described or axis == index_of
        )
        return Layout(letters, index_of=index_of, **{**described, **sizes})

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("a Layout cannot be changed: use replace()")

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self.axes, self._arguments())

    def _arguments(self) -> dict[str, Any]:
        described: dict[str, Any] = {}
        for axis in dict.fromkeys(self._described()):
            if axis in self.sizes:
                described[axis] = self.sizes[axis]
            if axis in self.orders:
                described[f"{axis}_order"] = self.orders[axis]
            if axis in self.at:
                described[f"{axis}_at"] = self.at[axis]
        if self.index_of is not None:
            described["index_of"] = self.index_of
        return described

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and self._key == other._key

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        described = "".join(f", {name}={value!r}" for name, value in self._arguments().items())
        return f"Layout({self.axes!r}{described})"


def _restore(axes: str, arguments: dict[str, Any]) -> Layout:
    return Layout(axes, **arguments)


def plan(src: Layout | str, dst: Layout | str) -> Plan:
    """The conversion of arrays in one layout to arrays in another; found once, then remembered.

    =============================  ===============================================================
    Step                           When
    =============================  ===============================================================
    split                          `src` has a flattened axis that `dst` wants in its parts
    select                         `dst` says ``t_at=i`` of an axis that `src` has
    drop, insert                   only one of them has an axis, whose size is 1
    permute                        the order differs, also inside flattened axes
    merge                          `dst` has a flattened axis
    one-hot                        `src` says ``index_of="k"`` and `dst` has ``k``; when `dst` lacks
                                   ``t``, the marks along ``t`` are put together (0/1)
    =============================  ===============================================================

    Parameters
    ----------
    src, dst : Layout or str
        A string is a layout without sizes.

    Returns
    -------
    Plan

    Raises
    ------
    LayoutError
        If there is no such conversion, or more than one that could be meant.

    Examples
    --------
    >>> import numpy as np
    >>> images = np.arange(12).reshape(1, 3, 2, 2)
    >>> flat = plan("bchw", Layout("bf", f_order="hwc"))(images)
    >>> flat.tolist()
    [[0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11]]
    >>> labels = Layout("bt", t=2, index_of="k", k=4)
    >>> plan(labels, Layout("bk", k=4))(np.array([[0, 2], [1, 1]])).tolist()
    [[1, 0, 1, 0], [0, 1, 0, 0]]
    """
    return _plan(
        src if isinstance(src, Layout) else Layout(src),
        dst if isinstance(dst, Layout) else Layout(dst),
    )


@functools.lru_cache(maxsize=4096)
def _plan(src: Layout, dst: Layout) -> Plan:
    return Plan((Step(src, dst),))


class Plan:
    """A conversion between two layouts; made by `plan`.

    Immutable, and compared and hashed by the layouts that it goes through.

    Parameters
    ----------
    steps : sequence of Step
        What is done one after another.

    Examples
    --------
    >>> import numpy as np
    >>> there = plan("bchw", "chwb")
    >>> x = np.zeros((2, 3, 4, 5))
    >>> there(x).shape, np.shares_memory(there(x), x), there.adjoint(there(x)).shape
    ((3, 4, 5, 2), True, (2, 3, 4, 5))
    """

    __slots__ = ("_steps",)

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = tuple(steps)

    @property
    def src(self) -> Layout:
        """What goes in."""
        return self._steps[0].src

    @property
    def dst(self) -> Layout:
        """What comes out."""
        return self._steps[-1].dst

    @property
    def lossless(self) -> bool:
        """Whether the input can be told from the output."""
        return all(step.lossless for step in self._steps)

    @property
    def linear(self) -> bool:
        """Whether there is an adjoint: everything but one-hot has one."""
        return not any(step.one_hot for step in self._steps)

    def __call__(
        self, x: Any, dtype: Any = None, *, contiguous: bool = False, sparse: bool = False
    ) -> Any:
        """Convert an array.

        Parameters
        ----------
        x : numpy.ndarray, scipy sparse or torch.Tensor
            In the layout `src`.
        dtype : dtype_like, optional
            Element type of the result, by default that of `x`; the cast is part of the copy.
        contiguous : bool
            Whether the result must lie in memory in its own order.
        sparse : bool
            For one-hot of NumPy labels: give a scipy CSR matrix.  Other plans give sparse results
            for sparse data.

        Returns
        -------
        array of the same library
            A view of `x` (or `x` itself) if strides can express the result in its type; else one
            new C-contiguous array.

        Raises
        ------
        LayoutError
            If `x` is not in the layout `src`.
        LabelError
            If a label is not a position along the axis that it stands for.
        TypeError
            If `x` is not an array, labels are not integers, `sparse` means nothing, or axes of a
            sparse tensor would have to move.
        """
        last = len(self._steps) - 1
        for number, step in enumerate(self._steps):
            final = number == last
            x = step(x, dtype if final else None, contiguous and final, sparse and final)
        return x

    def adjoint(self, g: Any, dtype: Any = None) -> Any:
        """The transposed map: ``sum(plan(x) * g) == sum(x * plan.adjoint(g))`` for every x.

        What a selection left out becomes zero.  For a lossless plan this is the inverse.

        Parameters
        ----------
        g : array
            In the layout `dst`.
        dtype : dtype_like, optional
            Element type of the result, by default that of `g`.

        Raises
        ------
        LayoutError
            If `g` is not in the layout `dst`, the plan makes labels one-hot, or neither `g` nor the
            layouts tell the size of an axis.

        Examples
        --------
        >>> import numpy as np
        >>> first = plan(Layout("bt", t=3), Layout("b", t_at=0))
        >>> first.adjoint(np.array([5, 6])).tolist()
        [[5, 0, 0], [6, 0, 0]]
        """
        for number, step in enumerate(reversed(self._steps)):
            g = step.adjoint(g, dtype if number == len(self._steps) - 1 else None)
        return g

    def compose(self, other: Plan) -> Plan:
        """The plan that does `other` first and then this one, in one step where that is the same.

        Raises
        ------
        LayoutError
            If `other` does not end in the layout where this plan begins.

        Examples
        --------
        >>> plan("chwb", "bhwc").compose(plan("bchw", "chwb")) == plan("bchw", "bhwc")
        True
        """
        if other.dst != self.src:
            raise LayoutError(f"{other!r} ends where {self!r} does not begin")
        first, second = other._steps[-1], self._steps[0]
        if first.fuses and second.fuses:
            # Each end learns what the layout between them knew.
            known = {**first.known, **second.known}
            src, dst = (
                layout.replace(**{a: known[a] for a in known if a in layout.atoms and a != BATCH})
                for layout in (first.src, second.dst)
            )
            middle = plan(src, dst)._steps
        else:
            middle = (first, second)
        return Plan(other._steps[:-1] + middle + self._steps[1:])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plan) and self._steps == other._steps

    def __hash__(self) -> int:
        return hash(self._steps)

    def __repr__(self) -> str:
        stations = [self.src, *(step.dst for step in self._steps)]
        return f"Plan({' -> '.join(map(repr, stations))})"
