"""`Layout`: the axes of an array in their order, their sizes and the values they hold.

It describes and computes nothing; `iterators.core.layout` converts from one layout to another.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping
from typing import Any

#: Other spellings of axes: Pylearn2's rows and columns, and MXNet's capitals.
SYMBOLS = {0: "h", 1: "w", "0": "h", "1": "w", "N": "b"}
BATCH = "b"


class LayoutError(ValueError):
    """Two layouts, or a layout and an array, that do not fit each other."""


class ClassNumberError(LayoutError, IndexError):
    """A label that is not a position along its axis."""


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
    """The axes of an array in their order, their sizes and the values they hold.

    Parameters
    ----------
    axes : str or iterable of str or int
        One letter for every axis, slowest first: ``b`` batch, ``h`` height, ``w`` width, ``c``
        channel, ``t`` time or slot, ``k`` class, ``f`` features; any other letter is possible.
        Pylearn2's ``0`` and ``1`` are ``h`` and ``w``; MXNet's capitals and ``N`` are understood.
    index_of : str, optional
        The elements are labels: integer positions along this axis, which the array does not have.
    **sizes : int, str
        ``h=32`` is the size of an axis (None if unknown; ``b`` has none).  ``f_order="hwc"`` means
        that ``f`` is flattened and holds ``h``, ``w`` and ``c``, slowest first; their sizes are
        given in the same way.  ``t_at=0`` means that the array is position 0 along ``t``, which it
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
    #: Axes that the flattened ones hold, slowest first.
    orders: Mapping[str, str]
    #: Positions along axes that the array does not have.
    at: Mapping[str, int]
    index_of: str | None
    _key: tuple[Any, ...]
    _hash: int

    def __init__(self, axes: Any, *, index_of: Any = None, **sizes: Any) -> None:
        letters = _letters(axes, "axes")
        orders, at, lengths = {}, {}, {}
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
                lengths[axis] = _size(axis, value)
        fill = object.__setattr__
        fill(self, "axes", letters)
        fill(self, "orders", orders)
        fill(self, "at", dict(sorted(at.items())))
        fill(self, "index_of", None if index_of is None else _letter(index_of))
        self._check(lengths)
        self._infer(lengths)
        fill(self, "sizes", {axis: lengths[axis] for axis in self._described() if axis in lengths})
        key = (
            letters,
            tuple(sorted(orders.items())),
            tuple(sorted(self.sizes.items())),
            tuple(self.at.items()),
            self.index_of,
        )
        fill(self, "_key", key)
        fill(self, "_hash", hash(key))

    def _check(self, lengths: Mapping[str, int]) -> None:
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
        for axis, size in lengths.items():
            if axis == BATCH:
                raise LayoutError("b has no size: a batch may have any number of samples")
            if axis not in self._described():
                raise LayoutError(f"{axis}={size}: {self.axes!r} has no axis {axis!r}")
            if axis in self.at and self.at[axis] >= size:
                raise LayoutError(f"{axis}_at={self.at[axis]} is not below {axis}={size}")

    def _infer(self, lengths: dict[str, int]) -> None:
        """Infer a missing size: a flattened axis is as long as the axes it holds together."""
        for axis, order in self.orders.items():
            missing = [inner for inner in order if inner not in lengths]
            product = math.prod(lengths[inner] for inner in order if inner in lengths)
            if not missing:
                if lengths.setdefault(axis, product) != product:
                    raise LayoutError(
                        f"{axis}={lengths[axis]}, but {order!r} hold {product} elements"
                    )
            elif missing != [BATCH] and len(missing) == 1 and axis in lengths and product:
                lengths[missing[0]], rest = divmod(lengths[axis], product)
                if rest:
                    raise LayoutError(f"{axis}={lengths[axis]} is not a multiple of {product}")

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
        """Return the position of an axis.

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
        """Return the shape of an array with `batch` samples.

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
        """Return this layout with other axes, sizes or orders, without sizes of axes that are gone.

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
