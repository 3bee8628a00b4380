"""Spaces of labels: `IndexSpace`, `IndexSequenceSpace`, and the one-hot forms of labels.

Labels are integers in ``[0, max_labels)``.  They become vectors of zeros and ones through the
layout engine, which checks their range; the spaces themselves check types and shapes only.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ..core.backend import backend_of
from ..core.dtypes import dtype_name
from ..core.layout import Layout, LayoutPlan, plan
from .space import Conversion, SimpleSpace, Space, in_storage
from .spec import FieldSpec, SpecError
from .vector import SequenceSpace, VectorSequenceSpace, VectorSpace, dimension


@functools.lru_cache(maxsize=1024)
def labels_of(max_labels: int, dim: int) -> Layout:
    """Return labels of a number of classes, `dim` of them a sample."""
    return Layout("bt", t=dim, index_of="k", k=max_labels)


def one_hot_plan(labels: Layout, mode: str) -> LayoutPlan:
    """Plan the way from ``(batch, slots)`` labels, axes ``b`` and ``t``, to their one-hot form.

    "stack" is ``(batch, slots, classes)``, "concatenate" ``(batch, slots * classes)``, and "merge"
    ``(batch, classes)`` with the union of the slots.
    """
    sizes = {"k": labels.sizes["k"]}
    if mode == "merge":
        return plan(labels, Layout("bk", **sizes))
    sizes["t"] = labels.sizes["t"]
    if mode == "stack":
        return plan(labels, Layout("btk", **sizes))
    return plan(labels, Layout("bf", f_order="tk", **sizes))


class _LabelSpace(SimpleSpace):
    """Base of the spaces of labels."""

    def __init__(self, max_labels: int, dim: int, dtype: Any = "int64", **callbacks: Any) -> None:
        self.max_labels: int = dimension("max_labels", max_labels)
        self.dim: int = dimension("dim", dim)
        super().__init__(dtype, **callbacks)
        if self.dtype is None or "int" not in self.dtype:
            raise SpecError(f"dtype={dtype!r}: labels have an integer type")

    @property
    def layout(self) -> Layout:
        """Axes ``b`` (rows) and ``t`` (slots), labels of ``k``."""
        return labels_of(self.max_labels, self.dim)

    def _description(self) -> tuple[Any, ...]:
        return self.max_labels, self.dim

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(dim={self.dim}, max_labels={self.max_labels}, "
            f"dtype={self.dtype})"
        )

    def _check_sizes(self, space: Space) -> None:
        if isinstance(space, type(self)):
            fits = (space.dim, space.max_labels) == (self.dim, self.max_labels)
        else:
            widths = (self.max_labels, self.max_labels * self.dim)
            fits = isinstance(space, self._one_hot_space) and space.dim in widths
        if not fits:
            raise ValueError(f"{self} cannot be converted to {space}")

    _one_hot_space: type[VectorSpace] | type[VectorSequenceSpace] = VectorSpace

    def _conversion(self, space: Any) -> Conversion:
        if isinstance(space, _LabelSpace):
            return functools.partial(in_storage, space=space)
        convert = one_hot_plan(
            self.layout, "merge" if space.dim == self.max_labels else "concatenate"
        )
        if not space.sparse:
            return functools.partial(convert, dtype=space.dtype)
        return lambda batch: in_storage(
            convert(batch, space.dtype, sparse=isinstance(batch, np.ndarray)), space
        )


class IndexSpace(_LabelSpace):
    """Batches of labels, ``(batch, dim)`` integers.

    Parameters
    ----------
    max_labels : int
        Number of classes.
    dim : int
        Labels of a sample.
    dtype : dtype_like
        An integer type; int64 by default.
    **callbacks
        `validate_callbacks` and `np_validate_callbacks`, see `SimpleSpace`.

    Examples
    --------
    >>> space = IndexSpace(max_labels=4, dim=2)
    >>> labels = np.array([[0, 2], [1, 1]])
    >>> space.np_format_as(labels, VectorSpace(4, dtype="int64")).tolist()
    [[1, 0, 1, 0], [0, 1, 0, 0]]
    >>> space.np_format_as(labels, VectorSpace(8, dtype="int64"))[0].tolist()
    [1, 0, 0, 0, 0, 0, 1, 0]
    """

    @classmethod
    def describing(cls, spec: Any) -> IndexSpace | None:
        """Return the space of stored labels."""
        if isinstance(spec, FieldSpec) and spec.layout.axes == "bt" and spec.layout.index_of:
            sizes = spec.layout.sizes
            return IndexSpace(sizes[spec.layout.index_of], sizes["t"], spec.dtype)
        return None

    def classes_of(self, width: int, is_target: bool) -> int | None:
        """Return `max_labels`, whatever is stored."""
        return self.max_labels

    def get_total_dimension(self) -> int:
        """Return `dim`; the number of classes plays no part."""
        return self.dim

    def get_origin(self) -> np.ndarray:
        """Return zeros ``(1, dim)``, float64."""
        return np.zeros((1, self.dim))


class IndexSequenceSpace(SequenceSpace, _LabelSpace):
    """One sequence of labels, ``(length, dim)`` integers, without a batch axis.

    Parameters
    ----------
    max_labels : int
        Number of classes.
    dim : int
        Labels at every position.
    dtype : dtype_like
        An integer type; int64 by default.
    **callbacks
        `validate_callbacks` and `np_validate_callbacks`, see `SimpleSpace`.

    Examples
    --------
    >>> words = IndexSequenceSpace(max_labels=3, dim=1)
    >>> words.np_format_as(np.array([[2], [0]]), VectorSequenceSpace(3)).tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """

    _one_hot_space = VectorSequenceSpace


class OneHotFormatter:
    """Convert labels to vectors of zeros and ones.

    Parameters
    ----------
    max_labels : int
        Number of classes.
    dtype : dtype_like
        Element type of the result; by default that of the labels.

    Examples
    --------
    >>> OneHotFormatter(3, "uint8").format(np.array([2, 0])).tolist()
    [[0, 0, 1], [1, 0, 0]]
    """

    def __init__(self, max_labels: int, dtype: Any = None) -> None:
        self.max_labels: int = dimension("max_labels", max_labels)
        self.dtype: str | None = None if dtype is None else dtype_name(dtype)

    def format(self, targets: np.ndarray, mode: str = "stack", sparse: bool = False) -> Any:
        """Return the one-hot form of labels.

        Parameters
        ----------
        targets : numpy.ndarray or torch.Tensor of int, (batch,) or (batch, slots)
        mode : {"stack", "concatenate", "merge"}
            One vector for every label, ``(batch, slots, max_labels)``; those of a sample one after
            another; or their union.  1-D labels give ``(batch, max_labels)`` in each mode.
        sparse : bool
            Give a scipy CSR matrix; not with "stack".

        Raises
        ------
        ValueError
            For more than two axes, an unknown mode, "stack" with `sparse`, and labels outside
            ``[0, max_labels)``.
        TypeError
            If labels are not integers, or not an array.
        """
        if mode not in ("stack", "concatenate", "merge"):
            raise ValueError(f"mode={mode!r}: expected 'stack', 'concatenate' or 'merge'")
        if sparse and mode == "stack":
            raise ValueError("sparse matrices have two axes: use 'concatenate' or 'merge'")
        backend_of(targets)  # a TypeError for what is no array
        if targets.ndim not in (1, 2):
            raise ValueError(f"labels have one axis or two, not {targets.ndim}")
        if targets.ndim == 1:
            labels = Layout("b", index_of="k", k=self.max_labels)
            convert = plan(labels, Layout("bk", k=self.max_labels))
        else:
            slots = int(targets.shape[1])
            labels = labels_of(self.max_labels, slots)
            convert = one_hot_plan(labels, mode)
        return convert(targets, self.dtype, sparse=sparse)
