"""`ImageView`, `SequenceView` and `ClassView`: arrays with axes of a known meaning.

This module lists their forms; `DataView` does the work.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeVar

from ..core.layout import Layout, LayoutPlan
from . import view_layouts as forms
from .data_view import DataView, to_form


class ImageView(DataView):
    """Images: any order of ``b``, ``h``, ``w`` and ``c``.

    Offers ``bhwc``, ``bchw`` and ``chwb`` besides what `DataView` offers.

    Examples
    --------
    >>> import numpy as np
    >>> view = ImageView("chwb", np.arange(12).reshape(3, 2, 2, 1))
    >>> view.forward_get("bf").tolist()
    [[0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11]]
    >>> view.forward_get("bchw", "float@cpu").shape
    torch.Size([1, 3, 2, 2])
    """

    letters = forms.LETTERS
    offered: ClassVar[tuple[str, ...]] = ("default", "bf", "b", "bhwc", "bchw", "chwb")

    bhwc: Callable[..., LayoutPlan] = to_form("bhwc")
    bchw: Callable[..., LayoutPlan] = to_form("bchw")
    chwb: Callable[..., LayoutPlan] = to_form("chwb")


class SequenceView(DataView):
    """Sequences of vectors: any order of ``b``, ``w`` (position) and ``c`` (channel).

    Offers ``bwc`` and ``bcw`` besides what `DataView` offers.

    Examples
    --------
    >>> import numpy as np
    >>> SequenceView("bwc", np.zeros((8, 10, 50))).forward_get("bcw").shape
    (8, 50, 10)
    """

    letters = forms.LETTERS
    offered: ClassVar[tuple[str, ...]] = ("default", "bf", "b", "bwc", "bcw")

    bwc: Callable[..., LayoutPlan] = to_form("bwc")
    bcw: Callable[..., LayoutPlan] = to_form("bcw")


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
    offered: ClassVar[tuple[str, ...]] = ("default", "b", "bt")

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
            raise NotImplementedError("classes are not features: ClassView offers default, b, bt")
        return super()._name(view)

    def _layouts(self, name: str) -> tuple[Layout, Layout]:
        assert self._layout is not None
        if name == self._view:
            return self._layout, self._layout
        return forms.primary(self._layout) if name == "b" else forms.slots(self._layout)

    bt: Callable[..., LayoutPlan] = to_form("bt")
