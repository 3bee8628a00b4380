"""`ImageView`: images in any order of their axes.

This module lists the forms; `DataView` does the work.
"""

from __future__ import annotations

from ..core.layout import LayoutPlan
from . import view_layouts as forms
from .data_view import DataView

__all__ = ["ImageView"]


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
    offered = ("default", "bf", "b", "bhwc", "bchw", "chwb")

    def bhwc(self) -> LayoutPlan:
        """Return the conversion of the base to ``bhwc``."""
        return self._plan(self._name("bhwc"))

    def bchw(self) -> LayoutPlan:
        """Return the conversion of the base to ``bchw``."""
        return self._plan(self._name("bchw"))

    def chwb(self) -> LayoutPlan:
        """Return the conversion of the base to ``chwb``."""
        return self._plan(self._name("chwb"))
