"""Pylearn2's `DenseDesignMatrix`: examples as the rows of a matrix, which may hold images."""

from __future__ import annotations

from typing import Any

from recordio.keywords.checks import integer, real

from ..core.backend import backend_of, is_stored_sparse
from ..core.layout import Layout, plan
from ..spaces.finite_iterator import FiniteDatasetIterator
from ..spaces.modes import draw
from ..spaces.space import space_of
from ..spaces.spec import FieldSpec, Form, SpecError
from .vector_spaces import FEATURES, TARGETS, FieldDataset
from .view_converter import DefaultViewConverter, RowsAsImages, converter_for


class DenseDesignMatrix(RowsAsImages, FieldDataset):
    """Examples as the rows of a matrix, with targets if there are any.

    Parameters
    ----------
    X : numpy.ndarray, (n, features), optional
        The examples, one a row; or
    topo_view : numpy.ndarray, 4 axes, optional
        the examples as images, in the order of `axes`.
    y : numpy.ndarray, (n,) or (n, targets), optional
        The targets.
    view_converter : DefaultViewConverter, optional
        Describes the order in which a row of `X` holds an image.
    axes : sequence
        Axes of `topo_view`: ``'b'``, ``'c'``, ``0`` (rows) and ``1`` (columns).
    rng : seed or generator, optional
        The dataset's own generator; the default seed is (17, 2, 946).
    preprocessor : object with ``apply(dataset, can_fit)``, optional
        Applied at once: everything in `iterators.views.preprocess`, or something of your own.
    fit_preprocessor : bool
        Whether it may take its parameters from these examples.
    X_labels, y_labels : int, optional
        Number of classes, if the features or the targets are labels: integers from 0 up to one
        below it.

    Raises
    ------
    ValueError
        Unless exactly one of `X` and `topo_view` is given, for shapes that do not fit, and for
        labels out of range.
    TypeError
        For labels that are not integers.

    Examples
    --------
    >>> import numpy as np
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
        preprocessor: Any = None,
        fit_preprocessor: bool = False,
        X_labels: int | None = None,
        y_labels: int | None = None,
    ) -> None:
        if (X is None) == (topo_view is None):
            raise SpecError("give either X or topo_view")
        if topo_view is not None:
            if view_converter is not None:
                raise SpecError("topo_view brings its own view_converter: leave it out")
            view_converter = converter_for(topo_view, axes)
            X = view_converter.topo_view_to_design_mat(topo_view)
        if fit_preprocessor and preprocessor is None:
            raise SpecError("fit_preprocessor=True without a preprocessor")
        super().__init__(rng)
        self._set(X, y, view_converter, X_labels, y_labels)
        self.preprocessor = preprocessor
        if preprocessor is not None:
            self.apply_preprocessor(preprocessor, fit_preprocessor)

    def _set(
        self,
        X: Any,
        y: Any,
        view_converter: DefaultViewConverter | None,
        X_labels: int | None,
        y_labels: int | None,
    ) -> None:
        """Hold these from now on, if they belong together."""
        for name, array in (("X", X), ("y", y)):
            if array is not None and (is_stored_sparse(array) or backend_of(array).name != "numpy"):
                raise TypeError(
                    f"{name} is a {type(array).__name__}: a DenseDesignMatrix holds dense NumPy "
                    "arrays; VectorSpacesDataset takes sparse matrices"
                )
        if X.ndim != 2:
            raise SpecError(f"X has the axes example and feature, unlike an array of {X.shape}")
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
        self._view_converter, self._X_labels, self._y_labels = view_converter, X_labels, y_labels
        self._hold(fields, specs, (space_of(specs[FEATURES]), FEATURES))

    # -- what is stored ---------------------------------------------------------------------------

    @property
    def X(self) -> Any:
        """The design matrix ``(n, features)``; one of as many rows may be assigned.

        Raises
        ------
        ValueError
            If what is assigned does not fit `y`, or a row of it does not fit `view_converter`.
        TypeError
            If it is no dense NumPy array.
        """
        return self._fields[FEATURES]

    @X.setter
    def X(self, value: Any) -> None:
        self._set(value, self.y, self._view_converter, self._X_labels, self._y_labels)

    @property
    def y(self) -> Any:
        """The targets ``(n, targets)``, or None; others may be assigned."""
        return self._fields.get(TARGETS)

    @y.setter
    def y(self, value: Any) -> None:
        labels = None if value is None else self._y_labels
        self._set(self.X, value, self._view_converter, self._X_labels, labels)

    @property
    def X_labels(self) -> int | None:
        """The number below which all features are labels, or None."""
        return self._X_labels

    @property
    def y_labels(self) -> int | None:
        """The number below which all targets are labels, or None."""
        return self._y_labels

    @property
    def view_converter(self) -> DefaultViewConverter | None:
        """The converter between rows and images; another one, or None, may be assigned."""
        return self._view_converter

    @view_converter.setter
    def view_converter(self, value: DefaultViewConverter | None) -> None:
        self._set(self.X, self.y, value, self._X_labels, self._y_labels)

    @property
    def num_examples(self) -> int:
        """Number of examples."""
        return self.get_num_examples()

    def get_data_specs(self) -> tuple[Form, Any]:
        """Return the space and source of what is stored."""
        if not self.has_targets():
            return space_of(self.field_specs[FEATURES]), FEATURES
        both = (self.field_specs[FEATURES], self.field_specs[TARGETS])
        return space_of(both), (FEATURES, TARGETS)

    def get_data(self) -> Any:
        """Return everything that is stored, in the form of `get_data_specs`."""
        return (self.X, self.y) if self.has_targets() else self.X

    def get_design_matrix(self, topo: Any = None) -> Any:
        """Return `X`, or images as rows."""
        if topo is None:
            return self.X
        return self._converter().topo_view_to_design_mat(topo)

    def set_design_matrix(self, X: Any) -> None:
        """Assign to `X`."""
        self.X = X

    def get_targets(self) -> Any:
        """Return `y`."""
        return self.y

    def convert_to_one_hot(self, min_class: int = 0) -> None:
        """Replace targets that are classes by one-hot rows.

        Parameters
        ----------
        min_class : int
            The class that becomes the first column.

        Raises
        ------
        ValueError
            If there are no targets, several per row, targets that are not integers, or classes
            below `min_class`.

        Notes
        -----
        There are `y_labels` columns less `min_class`, or, without `y_labels`, as many as the
        greatest class requires.

        Examples
        --------
        >>> import numpy as np
        >>> data = DenseDesignMatrix(X=np.zeros((3, 2)), y=np.array([1, 3, 2]))
        >>> data.convert_to_one_hot(min_class=1)
        >>> data.y.tolist()
        [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
        """
        y = self.y
        if y is None or y.shape[1] != 1 or y.dtype.kind not in "iu":
            kept = "no targets" if y is None else f"{y.dtype} targets of shape {y.shape}"
            raise SpecError(f"classes are integers, one a row; this dataset has {kept}")
        if y.size and y.min() < min_class:
            raise SpecError(f"there is the class {y.min()}: give it, or a lower one, as min_class=")
        highest = int(y.max(initial=min_class)) if self._y_labels is None else self._y_labels - 1
        count = highest + 1 - min_class
        labels = space_of(FieldSpec(_labels(1, count), "int64"))
        rows = space_of(FieldSpec(Layout("bf", f=count), "float64"))
        hot = labels.np_format_as(y.astype("int64") - min_class, rows)
        self._set(self.X, hot, self._view_converter, self._X_labels, None)

    def set_topological_view(self, V: Any, axes: Any = ("b", 0, 1, "c")) -> None:
        """Replace the examples by images.

        Parameters
        ----------
        V : numpy.ndarray, 4 axes
            As many images as there are targets.
        axes : sequence
            The order of their axes, as in the constructor.
        """
        converter = converter_for(V, axes)
        X = converter.topo_view_to_design_mat(V)
        self._set(X, self.y, converter, self._X_labels, self._y_labels)

    # -- preprocessing ----------------------------------------------------------------------------

    def feature_view(self) -> Any:
        """Return the examples as a view over the same memory.

        Returns
        -------
        DataView or ImageView
            ``bf``, or ``bchw`` where rows hold images.
        """
        from ..views import DataView, ImageView

        if self._view_converter is None:
            return DataView("bf", self.X)
        images = DefaultViewConverter(self._view_converter.shape, ("b", "c", 0, 1))
        return ImageView("bchw", images.design_mat_to_topo_view(self.X))

    def apply_preprocessor(self, preprocessor: Any, can_fit: bool = False) -> None:
        """Change `X` by an object with ``apply(dataset, can_fit)``, such as `iterators.views.ZCA`.

        Examples
        --------
        >>> import numpy as np
        >>> from iterators.views import Standardize
        >>> data = DenseDesignMatrix(X=np.array([[1.0], [3.0]]))
        >>> data.apply_preprocessor(Standardize(global_std=True, std_eps=0), can_fit=True)
        >>> data.X.round(3).tolist()
        [[-0.707], [0.707]]
        """
        preprocessor.apply(self, can_fit)

    # -- batches and parts ------------------------------------------------------------------------

    def set_iteration_scheme(
        self,
        mode: Any = None,
        batch_size: int | None = None,
        num_batches: int | None = None,
        data_specs: Any = None,
        *,
        topo: bool | None = None,
        targets: bool | None = None,
    ) -> None:
        """Set the defaults of `iterator` and ``for batch in dataset``."""
        data_specs = self._requested(data_specs, topo, targets)
        super().set_iteration_scheme(mode, batch_size, num_batches, data_specs)

    def iterator(
        self,
        mode: Any = None,
        batch_size: int | None = None,
        num_batches: int | None = None,
        rng: Any = None,
        data_specs: Any = None,
        return_tuple: bool = False,
        *,
        topo: bool | None = None,
        targets: bool | None = None,
    ) -> FiniteDatasetIterator:
        """Return batches of one epoch in any form; see `VectorSpacesDataset.iterator`.

        Parameters
        ----------
        mode, batch_size, num_batches, rng, data_specs, return_tuple
            As there.
        topo : bool, optional
            Pylearn2's older parameter: deliver the features as images, in the axes of
            `view_converter`.
        targets : bool, optional
            Likewise: deliver the targets beside the features.

        Raises
        ------
        ValueError
            For `topo` or `targets` beside `data_specs`, or where there is no such thing.

        Examples
        --------
        >>> import numpy as np
        >>> data = DenseDesignMatrix(topo_view=np.zeros((5, 2, 2, 1)), y=np.arange(5))
        >>> images, classes = data.iterator(batch_size=5, topo=True, targets=True).next()
        >>> images.shape, classes.shape
        ((5, 2, 2, 1), (5, 1))
        """
        data_specs = self._requested(data_specs, topo, targets)
        return super().iterator(mode, batch_size, num_batches, rng, data_specs, return_tuple)

    def _requested(self, data_specs: Any, topo: bool | None, targets: bool | None) -> Any:
        """Return the data_specs that are meant."""
        if topo is None and targets is None:
            return data_specs
        if data_specs is not None:
            raise SpecError("data_specs says all that topo and targets would: give one of them")
        spec = self.field_specs[FEATURES]
        if topo:
            spec = FieldSpec(self._converter().topo_layout, spec.dtype)
        if not targets:
            return space_of(spec), FEATURES
        if not self.has_targets():
            raise SpecError("targets=True, but this dataset has none")
        return space_of((spec, self.field_specs[TARGETS])), (FEATURES, TARGETS)

    def get_batch_design(self, batch_size: int, include_labels: bool = False) -> Any:
        """Return consecutive examples from a random position.

        Parameters
        ----------
        batch_size : int
        include_labels : bool
            Return a tuple of the examples and their targets, or None for targets if there are none.

        Raises
        ------
        ValueError
            If there are fewer examples.
        """
        batch_size = integer("batch_size", batch_size, low=1)
        if batch_size > len(self):
            raise SpecError(f"batch_size={batch_size}, but there are {len(self)} examples")
        start = int(draw(self.rng, len(self) - batch_size + 1))
        rows = slice(start, start + batch_size)
        if not include_labels:
            return self.X[rows]
        return self.X[rows], None if self.y is None else self.y[rows]

    def get_batch_topo(self, batch_size: int, include_labels: bool = False) -> Any:
        """Draw a batch as `get_batch_design` does, as images."""
        X, y = self.get_batch_design(batch_size, True)
        images = self.get_topological_view(X)
        return (images, y) if include_labels else images

    def split_dataset_holdout(self, train_size: int = 0, train_prop: float = 0) -> tuple[Any, Any]:
        """Return the first rows of `X`, and the others.

        Parameters
        ----------
        train_size : int
            Number of the first rows; or
        train_prop : float
            their share of all rows, 0 to 1.

        Returns
        -------
        train, valid : numpy.ndarray

        Raises
        ------
        ValueError
            Unless exactly one of them is given, and is possible.

        Examples
        --------
        >>> import numpy as np
        >>> data = DenseDesignMatrix(X=np.zeros((10, 3)))
        >>> [len(part) for part in data.split_dataset_holdout(train_prop=0.8)]
        [8, 2]
        """
        if bool(train_size) == bool(train_prop):
            raise SpecError("give either train_size or train_prop")
        if train_prop:
            train_size = round(len(self) * real("train_prop", train_prop, low=0, high=1))
        size = integer("train_size", train_size, low=0, high=len(self))
        return self.X[:size], self.X[size:]

    def split_dataset_nfolds(self, nfolds: int) -> list[Any]:
        """Return `X` in `nfolds` pieces of consecutive rows, the last of which may be shorter.

        Raises
        ------
        ValueError
            If the rows cannot be cut into that many pieces of equal length.

        Examples
        --------
        >>> import numpy as np
        >>> data = DenseDesignMatrix(X=np.zeros((10, 3)))
        >>> [len(fold) for fold in data.split_dataset_nfolds(4)]
        [3, 3, 3, 1]
        """
        specs = (space_of(self.field_specs[FEATURES]), FEATURES)
        folds = list(self.iterator("sequential", num_batches=nfolds, data_specs=specs))
        if len(folds) != nfolds:
            raise SpecError(f"nfolds={nfolds}: {len(self)} rows give {len(folds)} equal pieces")
        return folds


def from_dataset(dataset: DenseDesignMatrix, num_examples: int) -> DenseDesignMatrix:
    """Return consecutive examples of a dataset, from a random position, as a dataset of their own.

    Raises
    ------
    ValueError
        If there are fewer.

    Examples
    --------
    >>> import numpy as np
    >>> data = DenseDesignMatrix(X=np.arange(10.0)[:, None], y=np.arange(10))
    >>> part = from_dataset(data, 4)
    >>> len(part), bool((part.X == part.y).all())
    (4, True)
    """
    X, y = dataset.get_batch_design(num_examples, include_labels=True)
    return DenseDesignMatrix(
        X=X.copy(),
        y=None if y is None else y.copy(),
        view_converter=dataset.view_converter,
        X_labels=dataset.X_labels,
        y_labels=dataset.y_labels,
    )


def _field_spec(name: str, array: Any, labels: int | None, rows: Layout | None) -> FieldSpec:
    width = int(array.shape[1])
    if labels is not None:
        if array.dtype.kind not in "iu":
            raise TypeError(f"{name}_labels={labels}: {name} holds {array.dtype}, not integers")
        if array.size and not 0 <= array.min() <= array.max() < labels:
            raise SpecError(f"{name}_labels={labels}: {name} holds {array.min()} to {array.max()}")
        return FieldSpec(_labels(width, labels), array.dtype.name)
    if rows is not None and rows.sizes["f"] != width:
        raise SpecError(f"a row of {name} has {width} elements, but images have {rows.sizes['f']}")
    return FieldSpec(Layout("bf", f=width) if rows is None else rows, array.dtype.name)


def _labels(width: int, count: int) -> Layout:
    return Layout("bt", t=width, index_of="k", k=count)
