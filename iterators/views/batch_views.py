"""`view_batch`: views over the arrays of a provider's batch.

It finds the kind of view for every array in its description; it copies and converts nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.backend import is_stored_sparse
from ..core.batch import DataBatch, axes_of
from .class_view import ClassView
from .data_view import DataView
from .image_view import ImageView
from .list_view import ListView
from .sequence_view import SequenceView
from .sets import Batch
from .view import View

__all__ = ["view_batch"]


def view_batch(batch: DataBatch, which_set: str = "train") -> Batch:
    """Return views over the arrays of a provider's batch, which are not copied.

    Parameters
    ----------
    batch : DataBatch
        With descriptions (`provide_data`, `provide_label`), whose layouts name the axes.
    which_set : str
        Kept in the result.

    Returns
    -------
    Batch
        Data are `inputs`, labels are `targets`: four axes with channels give an `ImageView`, three
        a `SequenceView`, labels of one or two axes a `ClassView`, everything else a `DataView`:
        one-hot labels (layout "NK") and sparse ones too.  Several arrays give a `ListView`, none
        None.  `n_sample` does not count padding; `indices`
        are the ids of the samples.

    Raises
    ------
    ValueError
        If an array has no axes called ``N`` in its layout.

    Examples
    --------
    >>> import numpy as np
    >>> from iterators import DataBatch, DataDesc
    >>> views = view_batch(DataBatch(
    ...     [np.zeros((4, 3, 8, 8))], [np.arange(4)], pad=1,
    ...     provide_data=[DataDesc("data", (4, 3, 8, 8))],
    ...     provide_label=[DataDesc("softmax_label", (4,), layout="N")]))
    >>> views.inputs.forward_get("bhwc").shape, views.targets.forward_get("bt").shape
    ((4, 8, 8, 3), (4, 1))
    >>> views.n_sample
    3
    """
    result = Batch(
        which_set,
        _views(batch.data, batch.provide_data, False),
        _views(batch.label, batch.provide_label, True),
    )
    views = [view for view in (result.inputs, result.targets) if view is not None]
    rows = len(views[0]) if views else batch.count + (batch.pad or 0)
    return result.setup(batch_size=rows, n_sample=batch.count, indices=batch.index)


def _views(arrays: Sequence[Any], descriptions: Any, labels: bool) -> View | None:
    if not arrays:
        return None
    described = descriptions or [None] * len(arrays)
    views = [_view(x, desc, labels) for x, desc in zip(arrays, described, strict=True)]
    return views[0] if len(views) == 1 else ListView(views)


def _view(x: Any, description: Any, label: bool) -> View:
    axes = _axes(x, getattr(description, "layout", None))
    named = "".join(sorted(axes))
    if x.ndim == 2 and "b" in axes:
        # One letter beside the batch: K are classes, one-hot, and sparse rows are no list of them.
        other = axes.replace("b", "")
        if label and other != "k" and not is_stored_sparse(x):
            return ClassView(axes.replace(other, "t"), x)
        return DataView(axes.replace(other, "f"), x)
    if label and x.ndim == 1:
        return ClassView("b", x)
    if named == "bchw":
        return ImageView(axes, x)
    return SequenceView(axes, x) if named == "bcw" else DataView(axes, x)


def _axes(x: Any, layout: str | None) -> str:
    """Return the letters of views for a layout of MXNet's; the batch comes first by default."""
    axes = axes_of(layout, x.ndim)
    # T is the position in a sequence, which views call w; an image has a w of its own.
    return axes if "w" in axes else axes.replace("t", "w")
