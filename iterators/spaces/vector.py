"""Elementary spaces of vectors and images: `VectorSpace`, `Conv2DSpace`, `VectorSequenceSpace`.

Conversions between them are plans of the layout engine; a flattened image is in the order row,
column, channel, the channel varying fastest.  Labels are in `iterators.spaces.index`.
"""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

from recordio.extras import need

from ..core.backend import backend_of, is_stored_sparse
from ..core.layout import Layout, LayoutError, plan
from .space import Conversion, SimpleSpace, Space, in_storage, positive
from .spec import FieldSpec, SpecError, SpecTypeError

#: Inner order of a flattened image.
FLAT_ORDER = "hwc"


@functools.lru_cache(maxsize=1024)
def rows_of(dim: int) -> Layout:
    """Return vectors of a length, one in a row."""
    return Layout("bf", f=dim)


@functools.lru_cache(maxsize=1024)
def flattened(layout: Layout) -> Layout:
    """Return the rows that hold the images of a layout."""
    return Layout("bf", f_order=FLAT_ORDER, **layout.sizes)


def dimension(name: str, value: Any) -> int:
    """Return an integer of at least 0."""
    number = operator.index(value)
    if number < 0:
        raise SpecError(f"{name}={value!r}: expected an integer of at least 0")
    return number


def _flattening(layout: Layout) -> tuple[Layout, Layout]:
    """Return any layout with a batch axis, and the rows that hold its other axes in their order."""
    other_axes = layout.axes.replace("b", "")
    if other_axes in ("", "f"):
        return layout, layout.replace("bf", **({} if other_axes else {"f": 1}))
    # An axis called f would have to hold itself; what it is called here is of no consequence.
    spare = next(letter for letter in "xyzuvqrs" if letter not in other_axes)
    sizes = {axis.replace("f", spare): size for axis, size in layout.sizes.items()}
    order = other_axes.replace("f", spare)
    return Layout(layout.axes.replace("f", spare), **sizes), Layout("bf", f_order=order, **sizes)


class VectorSpace(SimpleSpace):
    """Batches of vectors, ``(batch, dim)``.

    Parameters
    ----------
    dim : int
        Length of a vector.
    sparse : bool
        Whether batches are scipy sparse matrices (or sparse tensors).
    dtype : dtype_like or None
        As for `SimpleSpace`; "floatX" by default.
    **callbacks
        `validate_callbacks` and `np_validate_callbacks`, see `SimpleSpace`.

    Examples
    --------
    >>> space = VectorSpace(dim=12)
    >>> image = Conv2DSpace(shape=(2, 2), num_channels=3, axes=("b", "c", 0, 1))
    >>> space.np_format_as(np.arange(12.0)[None], image)[0, 0].tolist()
    [[0.0, 3.0], [6.0, 9.0]]
    """

    def __init__(self, dim: int, sparse: bool = False, dtype: Any = "floatX", **callbacks: Any):
        self.dim: int = dimension("dim", dim)
        self.sparse: bool = bool(sparse)
        super().__init__(dtype, **callbacks)

    @classmethod
    def describing(cls, spec: Any) -> VectorSpace | None:
        """Return the space of stored rows."""
        if isinstance(spec, FieldSpec) and spec.layout.axes == "bf" and not spec.layout.index_of:
            return VectorSpace(spec.layout.sizes["f"], spec.sparse, spec.dtype)
        return None

    @property
    def layout(self) -> Layout:
        """Axes ``b``, ``f``."""
        return rows_of(self.dim)

    flat_layout = layout

    def classes_of(self, width: int, is_target: bool) -> int | None:
        """Return the number of elements if a single target stands for all of them, else None."""
        return self.dim if is_target and width == 1 != self.dim else None

    def bind(self, spec: FieldSpec) -> Conversion:
        """Bind as rows; data that no space describes is flattened in its own order."""
        try:
            return super().bind(spec)
        except SpecError:
            if spec.layout.index_of:
                raise
        flatten = plan(*_flattening(spec.layout))
        rows = VectorSpace(flatten.dst.sizes["f"], spec.sparse, spec.dtype)
        rows._check_sizes(self)
        store = rows._conversion(self)
        return lambda batch: store(flatten(batch))

    def _description(self) -> tuple[Any, ...]:
        return self.dim, self.sparse

    def __repr__(self) -> str:
        return f"VectorSpace(dim={self.dim}{', sparse' * self.sparse}, dtype={self.dtype})"

    def get_total_dimension(self) -> int:
        """Return `dim`."""
        return self.dim

    def get_origin(self) -> np.ndarray:
        """Return a zero vector, float64."""
        return np.zeros(self.dim)

    def get_origin_batch(self, batch_size: int, dtype: Any = None) -> Any:
        """Return zeros for `batch_size` vectors, a CSR matrix for a sparse space."""
        dtype = self._batch_dtype(dtype)
        if not self.sparse:
            return super().get_origin_batch(batch_size, dtype)
        sparse = need("scipy.sparse", "batches of a sparse space")
        return sparse.csr_matrix(self._shape(batch_size), dtype=dtype)

    def _finish(self, tensor: Any) -> Any:
        return backend_of(tensor).sparse(tensor) if self.sparse else tensor

    def _check_container(self, batch: Any) -> None:
        if self.sparse != is_stored_sparse(batch):
            storage = "sparse" if self.sparse else "dense"
            raise TypeError(f"a batch of {self} is {storage}, unlike this {type(batch).__name__}")

    def _conversion(self, space: Space) -> Conversion:
        if isinstance(space, VectorSpace):
            return functools.partial(in_storage, space=space)
        if space.components is not None:
            return functools.partial(self._split, space=space)
        if self.sparse and space.flat_layout is not None:
            raise TypeError(f"{self} is sparse: convert it to a dense VectorSpace first")
        return super()._conversion(space)

    def _split(self, batch: Any, space: Space) -> tuple[Any, ...]:
        """Return blocks of neighbouring columns, one for every component."""
        if backend_of(batch).name != "scipy sparse":
            batch = backend_of(batch).dense(batch)
        sparse = is_stored_sparse(batch)
        parts: list[Any] = []
        begin = 0
        for component in space.components or ():
            assert isinstance(component, Space)
            if component.is_null:
                parts.append(None)
                continue
            end = begin + component.get_total_dimension()
            columns = VectorSpace(end - begin, sparse, self.dtype)
            piece = backend_of(batch).narrow(batch, 1, begin, end)
            columns._check_sizes(component)
            parts.append(columns._conversion(component)(piece))
            begin = end
        return tuple(parts)


class Conv2DSpace(SimpleSpace):
    """Batches of images with channels, their four axes in any order.

    Parameters
    ----------
    shape : sequence of two int
        Rows and columns.
    channels, num_channels : int
        Number of channels; exactly one of the two names.
    axes : sequence, optional
        A permutation of ``'b'``, ``'c'``, ``0`` (rows) and ``1`` (columns); by default
        ``default_axes``.
    dtype : dtype_like or None
        As for `SimpleSpace`; "floatX" by default.
    **callbacks
        `validate_callbacks` and `np_validate_callbacks`, see `SimpleSpace`.

    Raises
    ------
    TypeError
        Unless exactly one of `channels` and `num_channels` is given.
    ValueError
        For any other invalid argument.

    Examples
    --------
    >>> space = Conv2DSpace(shape=(2, 2), num_channels=3, axes=("b", "c", 0, 1))
    >>> space.np_format_as(np.arange(12.0).reshape(1, 3, 2, 2), VectorSpace(12)).tolist()
    [[0.0, 4.0, 8.0, 1.0, 5.0, 9.0, 2.0, 6.0, 10.0, 3.0, 7.0, 11.0]]
    """

    default_axes: tuple[str, int, int, str] = ("b", 0, 1, "c")

    def __init__(
        self,
        shape: Any,
        channels: int | None = None,
        num_channels: int | None = None,
        axes: Any = None,
        dtype: Any = "floatX",
        **callbacks: Any,
    ) -> None:
        if (channels is None) == (num_channels is None):
            raise SpecTypeError("Conv2DSpace needs exactly one of channels and num_channels")
        if not hasattr(shape, "__len__") or len(shape) != 2:
            raise SpecError(f"shape={shape!r}: expected two numbers, rows and columns")
        rows, columns = (positive("shape", size) for size in shape)
        self.shape: tuple[int, int] = (rows, columns)
        self.num_channels: int = positive(
            "num_channels", channels if num_channels is None else num_channels
        )
        axes = self.default_axes if axes is None else axes
        try:
            self.axes: tuple[str | int, ...] = tuple(
                axis if isinstance(axis, str) else operator.index(axis) for axis in axes
            )
            layout = Layout(self.axes)
        except (TypeError, LayoutError):
            layout = None
        if layout is None or not set(self.axes) <= {"b", "c", 0, 1} or layout.ndim != 4:
            raise SpecError(f"axes={axes!r}: expected 'b', 'c', 0 and 1 in some order")
        self._layout = layout.replace(h=rows, w=columns, c=self.num_channels)
        super().__init__(dtype, **callbacks)

    @classmethod
    def describing(cls, spec: Any) -> Conv2DSpace | None:
        """Return the space of stored images."""
        if not isinstance(spec, FieldSpec) or sorted(spec.layout.axes) != sorted("bhwc"):
            return None
        sizes = spec.layout.sizes
        axes = [{"h": 0, "w": 1}.get(axis, axis) for axis in spec.layout.axes]
        shape = (sizes["h"], sizes["w"])
        return Conv2DSpace(shape, num_channels=sizes["c"], axes=axes, dtype=spec.dtype)

    @property
    def layout(self) -> Layout:
        """The axes with their sizes, ``0`` being ``h`` and ``1`` being ``w``."""
        return self._layout

    @property
    def flat_layout(self) -> Layout:
        """The axes of the same images as vectors: row, column, channel."""
        return flattened(self._layout)

    def _description(self) -> tuple[Any, ...]:
        return self.shape, self.num_channels, self.axes

    def __repr__(self) -> str:
        return (
            f"Conv2DSpace(shape={self.shape}, num_channels={self.num_channels}, axes={self.axes}, "
            f"dtype={self.dtype})"
        )

    def get_batch_axis(self) -> int:
        """Return the position of ``'b'`` in `axes`."""
        return self._layout.axis("b")

    def get_total_dimension(self) -> int:
        """Return rows times columns times channels."""
        return self._layout.total

    def get_origin(self) -> np.ndarray:
        """Return a zero image in the order of `axes` without the batch."""
        axes = self._layout.axes.replace("b", "")
        return np.zeros(self._layout.replace(axes).shape(), self.dtype or "float64")

    def _shape(self, batch_size: int) -> tuple[int, ...]:
        if operator.index(batch_size) <= 0:
            raise SpecError(f"batch_size={batch_size}: expected at least 1 for {self}")
        return super()._shape(batch_size)

    def bind(self, spec: FieldSpec) -> Conversion:
        """Bind as images; stored rows tell in which order they hold an image."""
        if "f" in spec.layout.orders and not spec.sparse:
            VectorSpace(spec.layout.sizes["f"])._check_sizes(self)
        elif not set(spec.layout.axes) < set(self._layout.axes):
            return super().bind(spec)
        # Images of one channel may lack its axis.
        return functools.partial(plan(spec.layout, self.layout), dtype=self.dtype)

    def _check_sizes(self, space: Space) -> None:
        super()._check_sizes(space)
        if isinstance(space, Conv2DSpace) and (
            (self.shape, self.num_channels) != (space.shape, space.num_channels)
        ):
            raise ValueError(f"{self} and {space} are images of different shapes")


class SequenceSpace(SimpleSpace):
    """Base of the spaces of one sequence, whose length is not part of the space."""

    dim: int

    def _size(self, batch: Any) -> int | None:
        return 1

    def _shape(self, batch_size: int) -> tuple[int, ...]:
        if batch_size != 1:
            raise ValueError(f"batch_size={batch_size}: a batch of {self} is one sequence")
        return 1, self.dim

    def get_total_dimension(self) -> int:
        """Not defined: a sequence has no fixed length."""
        raise self._no_fixed_length()

    def get_origin(self) -> Any:
        """Not defined."""
        raise self._no_fixed_length()

    def get_origin_batch(self, batch_size: int, dtype: Any = None) -> Any:
        """Not defined."""
        raise self._no_fixed_length()

    def _no_fixed_length(self) -> NotImplementedError:
        return NotImplementedError(f"a sequence of {self} has no fixed length")


class VectorSequenceSpace(SequenceSpace):
    """One sequence of vectors, ``(length, dim)``, without a batch axis.

    Parameters
    ----------
    dim : int
        Length of a vector.
    dtype : dtype_like or None
        As for `SimpleSpace`; "floatX" by default.
    **callbacks
        `validate_callbacks` and `np_validate_callbacks`, see `SimpleSpace`.

    Examples
    --------
    >>> VectorSequenceSpace(dim=2).np_batch_size(np.zeros((5, 2)))
    1
    """

    def __init__(self, dim: int, dtype: Any = "floatX", **callbacks: Any) -> None:
        self.dim: int = dimension("dim", dim)
        super().__init__(dtype, **callbacks)

    @property
    def layout(self) -> Layout:
        """Axes ``l`` (position in the sequence) and ``f``."""
        return Layout("lf", f=self.dim)

    def _description(self) -> tuple[Any, ...]:
        return (self.dim,)

    def __repr__(self) -> str:
        return f"VectorSequenceSpace(dim={self.dim}, dtype={self.dtype})"

    def _check_sizes(self, space: Space) -> None:
        if not isinstance(space, VectorSequenceSpace) or space.dim != self.dim:
            raise ValueError(f"{self} cannot be converted to {space}")

    def _conversion(self, space: Space) -> Conversion:
        return functools.partial(in_storage, space=space)
