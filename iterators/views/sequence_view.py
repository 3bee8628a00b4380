"""`SequenceView`: sequences of vectors in any order of their axes.

This module lists the forms; `DataView` does the work.
"""

from __future__ import annotations

from ..core.layout import LayoutPlan
from . import view_layouts as forms
from .data_view import DataView

__all__ = ["SequenceView"]


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
    offered = ("default", "bf", "b", "bwc", "bcw")

    def bwc(self) -> LayoutPlan:
        """Return the conversion of the base to ``bwc``."""
        return self._plan(self._name("bwc"))

    def bcw(self) -> LayoutPlan:
        """Return the conversion of the base to ``bcw``."""
        return self._plan(self._name("bcw"))
