"""The one module that permutes, merges, splits and selects axes and makes labels one-hot.

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
from collections.abc import Sequence
from typing import Any

from .axes import BATCH, ClassNumberError, Layout, LayoutError
from .steps import Step

__all__ = ["ClassNumberError", "Layout", "LayoutError", "LayoutPlan", "plan"]


def plan(src: Layout | str, dst: Layout | str) -> LayoutPlan:
    """Return the conversion of arrays from one layout to another; it is found once and cached.

    =============================  ===============================================================
    Step                           When
    =============================  ===============================================================
    split                          `src` has a flattened axis, `dst` its parts
    select                         `dst` has ``t_at=i`` for an axis that `src` has
    drop, insert                   only one of them has an axis, whose size is 1
    permute                        the order differs, also inside flattened axes
    merge                          `dst` has a flattened axis
    one-hot                        `src` has ``index_of="k"`` and `dst` has ``k``; when `dst` lacks
                                   ``t``, the marks along ``t`` are put together (0/1)
    =============================  ===============================================================

    Parameters
    ----------
    src, dst : Layout or str
        A string is a layout without sizes.

    Returns
    -------
    LayoutPlan

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
def _plan(src: Layout, dst: Layout) -> LayoutPlan:
    return LayoutPlan((Step(src, dst),))


class LayoutPlan:
    """A conversion between two layouts in one step or several; made by `plan`.

    Immutable, and compared and hashed by the layouts that it goes through.
    """

    __slots__ = ("_steps",)

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = tuple(steps)

    @property
    def src(self) -> Layout:
        """The layout that goes in."""
        return self._steps[0].src

    @property
    def dst(self) -> Layout:
        """The layout that comes out."""
        return self._steps[-1].dst

    @property
    def lossless(self) -> bool:
        """True if the input can be told from the output."""
        return all(step.lossless for step in self._steps)

    @property
    def linear(self) -> bool:
        """True if there is an adjoint: every conversion but one-hot has one."""
        return not any(step.one_hot for step in self._steps)

    def __call__(
        self, x: Any, dtype: Any = None, *, contiguous: bool = False, sparse: bool = False
    ) -> Any:
        """Convert an array of the layout `src`.

        The result is a view of `x` (or `x` itself) if strides can express it in its type, else one
        new C-contiguous array, the cast being part of the copy; `contiguous` asks for its own order
        in memory.  `sparse` makes one-hot of NumPy labels a scipy CSR matrix; other plans give
        sparse results for sparse data.
        """
        last = len(self._steps) - 1
        for number, step in enumerate(self._steps):
            final = number == last
            x = step(x, dtype if final else None, contiguous and final, sparse and final)
        return x

    def adjoint(self, g: Any, dtype: Any = None) -> Any:
        """Apply the transposed map: ``sum(plan(x) * g) == sum(x * plan.adjoint(g))`` for every x.

        Positions that a selection left out become zero.  For a lossless plan this is the inverse.
        """
        for number, step in enumerate(reversed(self._steps)):
            g = step.adjoint(g, dtype if number == len(self._steps) - 1 else None)
        return g

    def compose(self, other: LayoutPlan) -> LayoutPlan:
        """Return the plan that does `other` first and then this one, in one step where possible."""
        if other.dst != self.src:
            raise LayoutError(f"{other!r} ends where {self!r} does not begin")
        first, second = other._steps[-1], self._steps[0]
        if first.fuses and second.fuses:
            # Each end learns what the layout between them knew.
            sizes = {**first.axis_sizes, **second.axis_sizes}
            src, dst = (
                layout.replace(**{a: sizes[a] for a in sizes if a in layout.atoms and a != BATCH})
                for layout in (first.src, second.dst)
            )
            middle = plan(src, dst)._steps
        else:
            middle = (first, second)
        return LayoutPlan(other._steps[:-1] + middle + self._steps[1:])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LayoutPlan) and self._steps == other._steps

    def __hash__(self) -> int:
        return hash(self._steps)

    def __repr__(self) -> str:
        stations = [self.src, *(step.dst for step in self._steps)]
        return f"LayoutPlan({' -> '.join(map(repr, stations))})"
