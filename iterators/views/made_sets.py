"""`MadeSet`: the base of sets that make their batches when one is drawn.

They store something else than views: running text, or the paths of images.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import batch_rows as rows
from .class_view import ClassView
from .sets import Batch, DataSet

__all__ = ["MadeSet"]


class MadeSet(DataSet):
    """A set without stored views; its batches are made from row numbers.

    `n_sample` may be set later; `classes` names the classes that rows consist of or belong to.
    """

    def __init__(self, which_set: str, n_sample: int | None, classes: Any = None) -> None:
        super().__init__(which_set)
        self.n_sample = n_sample
        self.classes = None if classes is None else list(classes)

    def _make(self, batch: Batch, numbers: np.ndarray) -> None:
        """Put inputs and targets for these rows into a batch."""
        raise TypeError(f"{type(self).__name__} does not say how its batches are made")

    def preprocess(self, *arguments: Any, **keywords: Any) -> None:
        """Refused: there are no stored values to change."""
        raise TypeError(f"{type(self).__name__} makes its batches: preprocess those")

    def _fill(self, out: Batch | None, method: str, *which: Any) -> Batch:
        if method == "sub":
            start, stop = which
            numbers = np.arange(*rows.row_range(start, stop, self.n_sample))
        else:
            (ids,) = which
            numbers = rows.row_numbers(ids, self.n_sample)
        batch = Batch(self.which_set) if out is None else out
        self._make(batch, numbers)
        batch.which_set = self.which_set
        return batch.setup(epoch_size=self.n_sample)

    def _put_classes(self, view: Any, axes: str, values: np.ndarray) -> ClassView:
        """Return classes in a view of an earlier batch, or in a new one."""
        if type(view) is not ClassView:
            view = ClassView()
        view.forward_put(axes, values)
        view.set_classes(self.classes)
        return view

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.which_set!r}, {self.n_sample} rows)"
