"""`ClassView`: classes of rows, one or several each.

This module lists the forms; `DataView` does the work.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from ..core.layout import Layout, LayoutPlan
from . import view_layouts as forms
from .data_view import DataView

__all__ = ["ClassView"]

Self = TypeVar("Self", bound="ClassView")


class ClassView(DataView):
    """Classes: one per row (``b``) or several, the primary one first (``bt``, ``tb``).

    Offers ``b``, the primary class, and ``bt``.  Elements are not checked against `classes`.

    Examples
    --------
    >>> import numpy as np
    >>> view = ClassView("bt", np.array([[4, 2], [3, 1], [2, 3], [3, 4]]))
    >>> view.forward_get("b").tolist()
    [4, 3, 2, 3]
    >>> view.set_classes(["cat", "dog", "emu", "fox", "gnu"])
    >>> view.sub(0, 2).classes[4]
    'gnu'
    """

    letters = forms.LETTERS
    offered = ("default", "b", "bt")

    def __init__(self, view: str | None = None, data: Any = None) -> None:
        super().__init__(view, data)
        self._classes: list[Any] | None = None

    @property
    def classes(self) -> list[Any] | None:
        """Names of the classes, or None."""
        return self._classes

    def set_classes(self, classes: Sequence[Any] | None) -> None:
        """Set the names of the classes; `index`, `sub` and `clone` hand them on."""
        self._classes = None if classes is None else list(classes)

    def _like(self: Self, out: Self | None = None) -> Self:
        result = super()._like(out)
        result._classes = self._classes
        return result

    def _name(self, view: str) -> str:
        if view == "bf" and self._view != "bf":
            raise NotImplementedError("classes are no features: ClassView offers default, b, bt")
        return super()._name(view)

    def _layouts(self, name: str) -> tuple[Layout, Layout]:
        assert self._layout is not None
        if name == self._view:
            return self._layout, self._layout
        return forms.primary(self._layout) if name == "b" else forms.slots(self._layout)

    def bt(self) -> LayoutPlan:
        """Return the conversion of the base to ``bt``."""
        return self._plan(self._name("bt"))
