"""Datasets in memory that can be asked for batches in any form, under the names of Pylearn2.

They store arrays together with the order in which a row holds an image.  What they are asked for,
and every conversion, belongs to others: they know no space by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..core.backend import backend_of, is_stored_sparse
from ..core.finite_iterator import DATASET_SEED, FiniteDatasetIterator, iterate
from ..core.layout import Layout, plan
from ..core.order.modes import generator
from ..core.spec import FieldSpec, Form, SpecError, check_data_specs, is_flat_specs
from ..spaces.space import space_of

__all__ = ["DefaultViewConverter", "DenseDesignMatrix", "VectorSpacesDataset"]

FEATURES, TARGETS = "features", "targets"


class DefaultViewConverter:
    """Between rows and images; a row holds channel after channel, each row by row.

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
        self.shape = tuple(int(size) for size in shape)
        self.axes = tuple(axes)
        rows, columns, channels = self.shape
        sizes = {"h": rows, "w": columns, "c": channels}
        self.topo_layout = Layout(self.axes, **sizes)
        if sorted(self.topo_layout.axes) != sorted("bhwc"):
            raise SpecError(f"axes={axes!r}: expected 'b', 'c', 0 and 1 in some order")
        self.row_layout = Layout("bf", f_order="chw", **sizes)

    def view_shape(self) -> tuple[int, ...]:
        """Rows, columns, channels."""
        return self.shape

    def design_mat_to_topo_view(self, design_matrix: Any) -> Any:
        """Rows ``(n, f)`` as images in `axes`."""
        return plan(self.row_layout, self.topo_layout)(design_matrix)

    def topo_view_to_design_mat(self, topo_view: Any) -> Any:
        """Images in `axes` as rows ``(n, f)``."""
        return plan(self.topo_layout, self.row_layout)(topo_view)

    def topo_space(self, dtype: Any = "float64") -> Form:
        """The space of the images."""
        return space_of(FieldSpec(self.topo_layout, np.dtype(dtype).name))


class _ArrayDataset:
    """Fields of equal length, by name."""

    def __init__(
        self, fields: Mapping[str, Any], specs: Mapping[str, FieldSpec], default: Any, rng: Any
    ) -> None:
        self._fields = dict(fields)
        self.field_specs: Mapping[str, FieldSpec] = dict(specs)
        self._default_specs = default
        self.rng = generator(rng, DATASET_SEED)
        self._iteration: tuple[Any, ...] = (None, None, None, None)

    def get_num_examples(self) -> int:
        """Number of examples."""
        name = next(iter(self._fields))
        return int(self._fields[name].shape[self.field_specs[name].layout.axis("b")])

    def __len__(self) -> int:
        return self.get_num_examples()

    def get(self, sources: tuple[str, ...], indexes: Any) -> tuple[Any, ...]:
        """Rows of several fields as they are stored.

        Parameters
        ----------
        sources : tuple of str
        indexes : slice or sequence of int

        Raises
        ------
        ValueError
            If a source does not exist.
        """
        for name in sources:
            if name not in self._fields:
                raise SpecError(f"there is no source {name!r}; this dataset has {self.sources}")
        return tuple(self._rows(name, indexes) for name in sources)

    def _rows(self, name: str, indexes: Any) -> Any:
        axis = self.field_specs[name].layout.axis("b")
        field = self._fields[name]
        return field[(slice(None),) * axis + (indexes,)] if axis else field[indexes]

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of all fields."""
        return tuple(self._fields)

    def has_targets(self) -> bool:
        """Whether there is a field of targets."""
        return TARGETS in self._fields

    def set_iteration_scheme(
        self,
        mode: Any = None,
        batch_size: int | None = None,
        num_batches: int | None = None,
        data_specs: Any = None,
    ) -> None:
        """What `iterator` and ``for batch in dataset`` do when they are not told."""
        self._iteration = (mode, batch_size, num_batches, data_specs)

    def iterator(
        self,
        mode: Any = None,
        batch_size: int | None = None,
        num_batches: int | None = None,
        rng: Any = None,
        data_specs: Any = None,
        return_tuple: bool = False,
    ) -> FiniteDatasetIterator:
        """Batches of one epoch in any form.

        Parameters
        ----------
        mode : str or class, optional
            ``"sequential"`` (the default), ``"shuffled_sequential"``,
            ``"batchwise_shuffled_sequential"``, ``"random_slice"``, ``"random_uniform"``,
            ``"even_sequential"``, ``"even_shuffled_sequential"``,
            ``"even_batchwise_shuffled_sequential"`` or ``"even_sequences"``.
        batch_size, num_batches : int, optional
            The random modes need both, ``"even_sequences"`` the first, all others one of them.
        rng : seed or generator, optional
            By default the dataset's own, which goes on from iterator to iterator.
        data_specs : (Space, source), optional
            Flat; what a batch must look like.  By default the features as they are stored.
        return_tuple : bool
            Give a tuple for a single source as well.

        Raises
        ------
        ValueError
            For a mode or source that does not exist, and more batches than there are examples for.
        AssertionError
            If `data_specs` is not flat.
        """
        scheme = self._iteration
        if batch_size is None and num_batches is None:
            batch_size, num_batches = scheme[1:3]
        specs = data_specs if data_specs is not None else scheme[3]
        return iterate(
            self,
            scheme[0] if mode is None else mode,
            batch_size,
            num_batches,
            rng,
            self._default_specs if specs is None else specs,
            return_tuple,
        )

    def __iter__(self) -> FiniteDatasetIterator:
        return self.iterator()


class DenseDesignMatrix(_ArrayDataset):
    """Examples as the rows of a matrix, with targets if there are any.

    Parameters
    ----------
    X : numpy.ndarray, (n, features), optional
        The examples; or
    topo_view : numpy.ndarray, 4 axes, optional
        the examples as images, in the order of `axes`.
    y : numpy.ndarray, (n,) or (n, targets), optional
        The targets.
    view_converter : DefaultViewConverter, optional
        Says in which order a row of `X` holds an image.
    axes : sequence
        Axes of `topo_view`: ``'b'``, ``'c'``, ``0`` (rows) and ``1`` (columns).
    rng : seed or generator, optional
        The dataset's own generator; the default seed is (17, 2, 946).
    X_labels, y_labels : int, optional
        That half consists of labels below this number.

    Raises
    ------
    ValueError
        Unless exactly one of `X` and `topo_view` is given, for shapes that do not fit, and for
        labels out of range.
    TypeError
        For labels that are not integers.

    Examples
    --------
    >>> data = DenseDesignMatrix(X=np.arange(12.0).reshape(4, 3), y=np.array([0, 1, 1, 0]),
    ...                          y_labels=2)
    >>> for batch in data.iterator(batch_size=3):
    ...     print(batch.tolist())
    [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0], [6.0, 7.0, 8.0]]
    [[9.0, 10.0, 11.0]]
    >>> data.get_data_specs()
    (CompositeSpace(VectorSpace(dim=3, dtype=float64), IndexSpace(dim=1, max_labels=2, dtype=int64)), ('features', 'targets'))
    """  # noqa: E501

    def __init__(
        self,
        X: Any = None,
        topo_view: Any = None,
        y: Any = None,
        view_converter: DefaultViewConverter | None = None,
        axes: Any = ("b", 0, 1, "c"),
        rng: Any = None,
        X_labels: int | None = None,
        y_labels: int | None = None,
    ) -> None:
        if (X is None) == (topo_view is None):
            raise SpecError("give either X or topo_view")
        if topo_view is not None:
            if view_converter is not None:
                raise SpecError("topo_view brings its own view_converter: leave it out")
            view_converter = _converter_for(topo_view, axes)
            X = view_converter.topo_view_to_design_mat(topo_view)
        for name, array in (("X", X), ("y", y)):
            if array is not None and (is_stored_sparse(array) or backend_of(array).name != "numpy"):
                raise TypeError(
                    f"{name} is a {type(array).__name__}: a DenseDesignMatrix holds dense NumPy "
                    "arrays; VectorSpacesDataset takes sparse matrices"
                )
        if X.ndim != 2:
            raise SpecError(f"X has the axes example and feature, unlike an array of {X.shape}")
        self.view_converter = view_converter
        rows = None if view_converter is None else view_converter.row_layout
        fields = {FEATURES: X}
        specs = {FEATURES: _field_spec("X", X, X_labels, rows)}
        if y is not None:
            if y.ndim == 1:
                y = plan("b", "bf")(y)
            if y.ndim != 2 or len(y) != len(X):
                raise SpecError(f"y of shape {y.shape} does not fit the {len(X)} examples")
            fields[TARGETS] = y
            specs[TARGETS] = _field_spec("y", y, y_labels, None)
        elif y_labels is not None:
            raise SpecError("y_labels without y")
        super().__init__(fields, specs, (space_of(specs[FEATURES]), FEATURES), rng)

    @property
    def X(self) -> Any:
        """The design matrix."""
        return self._fields[FEATURES]

    @property
    def y(self) -> Any:
        """The targets ``(n, targets)``, or None."""
        return self._fields.get(TARGETS)

    def get_data_specs(self) -> tuple[Form, Any]:
        """Space and source of what is stored."""
        if not self.has_targets():
            return space_of(self.field_specs[FEATURES]), FEATURES
        both = (self.field_specs[FEATURES], self.field_specs[TARGETS])
        return space_of(both), (FEATURES, TARGETS)

    def get_data(self) -> Any:
        """Everything that is stored, in the form of `get_data_specs`."""
        return (self.X, self.y) if self.has_targets() else self.X

    def get_design_matrix(self, topo: Any = None) -> Any:
        """`X`, or images as rows."""
        if topo is None:
            return self.X
        return self._converter().topo_view_to_design_mat(topo)

    def get_topological_view(self, mat: Any = None) -> Any:
        """The examples, or other rows, as images."""
        return self._converter().design_mat_to_topo_view(self.X if mat is None else mat)

    def get_targets(self) -> Any:
        """`y`."""
        return self.y

    def _converter(self) -> DefaultViewConverter:
        if self.view_converter is None:
            raise SpecError("this dataset does not know how its rows hold images: view_converter=")
        return self.view_converter


class VectorSpacesDataset(_ArrayDataset):
    """Any number of fields, each in a space of its own.

    Parameters
    ----------
    data : array or tuple of array
        In the form of `data_specs`.
    data_specs : (Space, source)
        Flat, every source once.
    rng : seed or generator, optional
        The dataset's own generator; the default seed is (17, 2, 946).

    Raises
    ------
    AssertionError
        If `data_specs` is not flat, repeats a source, or the fields differ in length.
    TypeError, ValueError
        If the data is not in the form of its space.

    Examples
    --------
    >>> from iterators import VectorSpace
    >>> data = VectorSpacesDataset(np.zeros((5, 3)), (VectorSpace(3), "features"))
    >>> [batch.shape for batch in data.iterator("even_sequential", batch_size=2)]
    [(2, 3), (2, 3)]
    """

    def __init__(self, data: Any, data_specs: Any, rng: Any = None) -> None:
        space, source = check_data_specs(data_specs)
        if not is_flat_specs((space, source)):
            raise SpecError("the data_specs of a dataset must be flat")
        sources = (source,) if isinstance(source, str) else source
        named = [name for name in sources if name]
        if len(set(named)) < len(named):
            raise SpecError(f"{sources} names a source twice")
        single: Any = space
        single.np_validate(data)
        parts = (data,) if isinstance(source, str) else data
        spaces: Any = (space,) if space.components is None else space.components
        fields, specs = {}, {}
        for name, part, own in zip(sources, parts, spaces, strict=True):
            if own.is_null:
                continue
            fields[name] = part
            dtype = own.dtype or part.dtype.name
            specs[name] = FieldSpec(own.layout, dtype, getattr(own, "sparse", False))
        lengths = {part.shape[specs[name].layout.axis("b")] for name, part in fields.items()}
        if len(lengths) != 1:
            raise SpecError(f"the fields have different numbers of examples: {sorted(lengths)}")
        self.data_specs = (space, source)
        self._data = data
        super().__init__(fields, specs, (space, source), rng)

    def get_data_specs(self) -> tuple[Form, Any]:
        """Space and source of what is stored."""
        return self.data_specs

    def get_data(self) -> Any:
        """Everything that is stored."""
        return self._data


def _converter_for(topo_view: Any, axes: Any) -> DefaultViewConverter:
    if topo_view.ndim != 4:
        raise SpecError(f"topo_view has 4 axes, unlike an array of shape {topo_view.shape}")
    layout = Layout(axes)
    shape = [topo_view.shape[layout.axis(axis)] for axis in "hwc"]
    return DefaultViewConverter(shape, axes)


def _field_spec(name: str, array: Any, labels: int | None, rows: Layout | None) -> FieldSpec:
    width = int(array.shape[1])
    if labels is not None:
        if array.dtype.kind not in "iu":
            raise TypeError(f"{name}_labels={labels}: {name} holds {array.dtype}, not integers")
        if array.size and not 0 <= array.min() <= array.max() < labels:
            raise SpecError(f"{name}_labels={labels}: {name} holds {array.min()} to {array.max()}")
        return FieldSpec(Layout("bt", t=width, index_of="k", k=labels), array.dtype.name)
    if rows is not None and rows.sizes["f"] != width:
        raise SpecError(f"a row of {name} has {width} elements, but images have {rows.sizes['f']}")
    return FieldSpec(Layout("bf", f=width) if rows is None else rows, array.dtype.name)
