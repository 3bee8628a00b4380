"""Rows that hold images, and images as rows: the order that Pylearn2's data sets use."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.layout import Layout, plan
from ..spaces.space import space_of
from ..spaces.spec import FieldSpec, Form, SpecError


class DefaultViewConverter:
    """Convert rows to images and back; a row holds channel after channel, each row by row.

    Parameters
    ----------
    shape : sequence of int
        Rows, columns, channels.
    axes : sequence
        Axes of the images, ``'b'``, ``'c'``, ``0`` (rows) and ``1`` (columns) in some order.

    Notes
    -----
    The order inside a row is not that of ``VectorSpace.np_format_as(Conv2DSpace)``, where channels
    vary fastest.

    Examples
    --------
    >>> converter = DefaultViewConverter((2, 2, 3))
    >>> images = converter.design_mat_to_topo_view(np.arange(12)[None])
    >>> images[0, 0, 1].tolist()
    [1, 5, 9]
    """

    def __init__(self, shape: Any, axes: Any = ("b", 0, 1, "c")) -> None:
        if len(shape) != 3:
            raise SpecError(f"shape={shape!r}: expected rows, columns and channels")
        self.shape: tuple[int, ...] = tuple(int(size) for size in shape)
        self.axes: tuple[Any, ...] = tuple(axes)
        rows, columns, channels = self.shape
        sizes = {"h": rows, "w": columns, "c": channels}
        self.topo_layout: Layout = Layout(self.axes, **sizes)
        if sorted(self.topo_layout.axes) != sorted("bhwc"):
            raise SpecError(f"axes={axes!r}: expected 'b', 'c', 0 and 1 in some order")
        self.row_layout: Layout = Layout("bf", f_order="chw", **sizes)

    def view_shape(self) -> tuple[int, ...]:
        """Return rows, columns, channels."""
        return self.shape

    def design_mat_to_topo_view(self, design_matrix: Any) -> Any:
        """Return rows ``(n, f)`` as images in `axes`."""
        return plan(self.row_layout, self.topo_layout)(design_matrix)

    def topo_view_to_design_mat(self, topo_view: Any) -> Any:
        """Return images in `axes` as rows ``(n, f)``."""
        return plan(self.topo_layout, self.row_layout)(topo_view)

    def topo_space(self, dtype: Any = "float64") -> Form:
        """Return the space of the images."""
        return space_of(FieldSpec(self.topo_layout, np.dtype(dtype).name))


class RowsAsImages:
    """Methods of a data set whose rows may hold images; the base of `DenseDesignMatrix`."""

    X: Any
    view_converter: Any

    def get_topological_view(self, mat: Any = None) -> Any:
        """Return the examples, or other rows, as images."""
        return self._converter().design_mat_to_topo_view(self.X if mat is None else mat)

    def get_weights_view(self, mat: Any) -> Any:
        """Return rows as images, like `get_topological_view`."""
        return self.get_topological_view(mat)

    def get_topo_batch_axis(self) -> int:
        """Return the number of the axis of examples in `get_topological_view`.

        Examples
        --------
        >>> from iterators.datasets import DenseDesignMatrix
        >>> axes = ("c", 0, 1, "b")
        >>> DenseDesignMatrix(topo_view=np.zeros((1, 2, 2, 5)), axes=axes).get_topo_batch_axis()
        3
        """
        return self._converter().axes.index("b")

    def set_view_converter_axes(self, axes: Any) -> None:
        """Give images in another order of their axes from now on."""
        self.view_converter = DefaultViewConverter(self._converter().shape, axes)

    def adjust_for_viewer(self, X: Any) -> Any:
        """Divide values by the greatest magnitude among them, for a viewer of -1 to 1.

        Examples
        --------
        >>> from iterators.datasets import DenseDesignMatrix
        >>> DenseDesignMatrix(X=np.zeros((1, 2))).adjust_for_viewer(np.array([-4.0, 1.0]))
        array([-1.  ,  0.25])
        """
        return self.adjust_to_be_viewed_with(X, X)

    def adjust_to_be_viewed_with(self, X: Any, ref: Any, per_example: bool = False) -> Any:
        """Divide values by the greatest magnitude in others, and cut off at -1 and 1.

        Parameters
        ----------
        X : numpy.ndarray
        ref : numpy.ndarray
            The others; where all of them are 0 nothing is divided.
        per_example : bool
            Take the greatest magnitude of each row, along the first axis, instead of all.
        """
        axes = tuple(range(1, np.ndim(ref))) if per_example else None
        greatest = np.abs(ref).max(axis=axes, keepdims=per_example)
        return np.clip(X / np.where(greatest == 0, 1, greatest), -1, 1)

    def _converter(self) -> DefaultViewConverter:
        if self.view_converter is None:
            raise SpecError("this dataset has no order of images in rows: pass view_converter=")
        return self.view_converter


def converter_for(topo_view: Any, axes: Any) -> DefaultViewConverter:
    """Return the converter between images with these axes and rows."""
    if topo_view.ndim != 4:
        raise SpecError(f"topo_view has 4 axes, unlike an array of shape {topo_view.shape}")
    layout = Layout(axes)
    shape = [topo_view.shape[layout.axis(axis)] for axis in "hwc"]
    return DefaultViewConverter(shape, axes)
