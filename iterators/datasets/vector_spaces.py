"""Pylearn2's data sets that give batches in any form: of fields in memory, and of transformed ones.

Requests and conversions belong to other modules; this one knows no space of its fields by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..core.indexing import resolve_rows
from ..core.layout import Layout
from ..spaces.composite import CompositeSpace
from ..spaces.finite_iterator import DATASET_SEED, FiniteDatasetIterator, Request, iterate
from ..spaces.modes import generator
from ..spaces.space import space_of
from ..spaces.spec import FieldSpec, Form, SpecError, check_data_specs, is_flat_specs
from .dataset_base import DatasetMixin

#: Names of the sources that most data sets have.
FEATURES, TARGETS = "features", "targets"


class FieldDataset(DatasetMixin):
    """Fields of equal length, by name; the base of the data sets in memory.

    ``dataset[i]`` is an example, a tuple with one entry for each field, or the entry of the only
    one, as it is stored.  Iterating gives batches.
    """

    def __init__(self, rng: Any) -> None:
        self.rng: np.random.Generator | np.random.RandomState = generator(rng, DATASET_SEED)
        self._iteration: tuple[Any, ...] = (None, None, None, None)

    def _hold(
        self, fields: Mapping[str, Any], specs: Mapping[str, FieldSpec], default: Any
    ) -> None:
        """Store these from now on; `default` is what an iterator asks for unless told otherwise."""
        self._fields = dict(fields)
        self.field_specs: Mapping[str, FieldSpec] = dict(specs)
        self._default_specs = default

    def get_num_examples(self) -> int:
        """Return the number of examples."""
        name = next(iter(self._fields))
        return int(self._fields[name].shape[self.field_specs[name].layout.axis("b")])

    def __len__(self) -> int:
        return self.get_num_examples()

    def get_example(self, i: Any) -> Any:
        """Return one example, as it is stored."""
        row = resolve_rows(i, len(self))
        values = tuple(self._rows(name, row) for name in self._fields)
        return values if len(values) > 1 else values[0]

    def get(self, sources: tuple[str, ...], indexes: Any) -> tuple[Any, ...]:
        """Return rows of several fields as they are stored.

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
        """Return whether there is a field of targets."""
        return TARGETS in self._fields

    def set_iteration_scheme(
        self,
        mode: Any = None,
        batch_size: int | None = None,
        num_batches: int | None = None,
        data_specs: Any = None,
    ) -> None:
        """Set the defaults of `iterator` and ``for batch in dataset``."""
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
        """Iterate over the batches of one epoch in any form.

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
            What a batch must look like; nested requests give nested tuples.  By default the
            features as they are stored.
        return_tuple : bool
            Give a tuple for a single source as well.

        Raises
        ------
        ValueError
            For a mode or source that does not exist, a source that does not fit into what is asked
            for, and more batches than there are examples for.
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


class VectorSpacesDataset(FieldDataset):
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
    >>> import numpy as np
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
        self.data_specs: tuple[Form, Any] = (space, source)
        self._data = data
        super().__init__(rng)
        self._hold(fields, specs, (space, source))

    def get_data_specs(self) -> tuple[Form, Any]:
        """Return the space and source of what is stored."""
        return self.data_specs

    def get_data(self) -> Any:
        """Return everything that is stored."""
        return self._data


class TransformerDataset:
    """A data set whose features a transformer computes from those of another.

    Parameters
    ----------
    raw : DenseDesignMatrix, VectorSpacesDataset, TransformerDataset or the like
        Has ``iterator``, ``get_data_specs`` and ``get_num_examples``.
    transformer : object with ``perform(batch)``, or callable
        Called with the features of a batch.  Its methods ``get_input_space`` and
        ``get_output_space``, if it has them, say in which form it takes and gives features; without
        them it takes what is stored, and gives rows of numbers or what was asked for.
    space_preserving : bool
        Whether it gives features in the form in which it takes them; then it gets them as they were
        asked for, images as images.

    Examples
    --------
    >>> import numpy as np
    >>> from iterators.datasets import DenseDesignMatrix
    >>> raw = DenseDesignMatrix(X=np.arange(6.0).reshape(3, 2), y=np.arange(3))
    >>> data = TransformerDataset(raw, lambda X: X @ np.ones((2, 1)))
    >>> [batch.tolist() for batch in data.iterator("sequential", batch_size=2)]
    [[[1.0], [5.0]], [[9.0]]]
    """

    def __init__(self, raw: Any, transformer: Any, space_preserving: bool = False) -> None:
        if not callable(getattr(transformer, "perform", transformer)):
            raise TypeError(f"a {type(transformer).__name__} has no perform() and is not callable")
        self.raw = raw
        self.transformer = transformer
        self.space_preserving = space_preserving

    def perform(self, features: Any) -> Any:
        """Return the transformer's result for a batch of features."""
        return getattr(self.transformer, "perform", self.transformer)(features)

    def get_num_examples(self) -> int:
        """Return the number of examples."""
        return self.raw.get_num_examples()

    def __len__(self) -> int:
        return self.get_num_examples()

    def has_targets(self) -> bool:
        """Return whether there are targets."""
        return self.raw.has_targets()

    def get_targets(self) -> Any:
        """Return the targets, which are left alone."""
        return self.raw.get_targets()

    def iterator(
        self,
        mode: Any = None,
        batch_size: int | None = None,
        num_batches: int | None = None,
        rng: Any = None,
        data_specs: Any = None,
        return_tuple: bool = False,
    ) -> TransformerIterator:
        """Return batches of one epoch; see `VectorSpacesDataset.iterator` for the parameters.

        Without `data_specs` a batch is what the transformer gives.

        Raises
        ------
        ValueError
            During the iteration, if the result of the transformer cannot be brought into the form
            requested.
        """
        request = None if data_specs is None else Request(data_specs)
        forms: Any = (None,) if request is None else request.forms
        sources = (FEATURES,) if request is None else request.sources
        asked: list[Any] = [
            self._taken(form) if source == FEATURES else form
            for form, source in zip(forms, sources, strict=True)
        ]
        specs = (CompositeSpace(asked), tuple(sources))
        raw = self.raw.iterator(mode, batch_size, num_batches, rng, specs, return_tuple=True)
        nest = tuple if request is None else request.nest
        return TransformerIterator(
            self, raw, list(zip(forms, sources, strict=True)), nest, return_tuple
        )

    def _taken(self, form: Any) -> Any:
        """Return the form in which the transformer takes features for a requested form."""
        if self.space_preserving and form is not None:
            return form
        if hasattr(self.transformer, "get_input_space"):
            return self.transformer.get_input_space()
        stored = Request(self.raw.get_data_specs())
        return stored.forms[stored.sources.index(FEATURES)]

    def _transform(self, features: Any, form: Any) -> Any:
        """Return transformed features in a form."""
        result = self.perform(features)
        if form is None:
            return result
        if hasattr(self.transformer, "get_output_space") and not self.space_preserving:
            return self.transformer.get_output_space().np_format_as(result, form)
        if self.space_preserving or result.ndim != 2:
            form.np_validate(result)
            return result
        rows = space_of(FieldSpec(Layout("bf", f=result.shape[1]), result.dtype.name))
        return rows.np_format_as(result, form)

    def get_batch_design(self, batch_size: int, include_labels: bool = False) -> Any:
        """Return consecutive examples from a random position, as `DenseDesignMatrix` does."""
        X, y = self.raw.get_batch_design(batch_size, include_labels=True)
        X = self.perform(X)
        return (X, y) if include_labels else X

    def get_topological_view(self, mat: Any) -> Any:
        """Return rows as images, where transformed rows hold images as the others do."""
        return self._raw_if_preserving().get_topological_view(mat)

    def get_weights_view(self, mat: Any) -> Any:
        """Return `mat` as `get_topological_view` does."""
        return self._raw_if_preserving().get_weights_view(mat)

    def adjust_for_viewer(self, X: Any) -> Any:
        """Return values for a viewer of -1 to 1; as they are unless the space is preserved."""
        return self.raw.adjust_for_viewer(X) if self.space_preserving else X

    def adjust_to_be_viewed_with(self, X: Any, ref: Any, per_example: bool = False) -> Any:
        """Return values in proportion to others, as `DenseDesignMatrix` does."""
        return self.raw.adjust_to_be_viewed_with(X, ref, per_example)

    def _raw_if_preserving(self) -> Any:
        if not self.space_preserving:
            raise NotImplementedError(
                "how transformed rows hold images is not known unless space_preserving=True"
            )
        return self.raw

    def get_data_specs(self) -> tuple[Any, Any]:
        """Return spaces and sources of what is given.

        Raises
        ------
        NotImplementedError
            If the transformer has no ``get_output_space`` and does not preserve the space.
        """
        space, source = self.raw.get_data_specs()
        if self.space_preserving:
            return space, source
        if not hasattr(self.transformer, "get_output_space"):
            raise NotImplementedError("the transformer has no get_output_space()")
        stored = Request((space, source))
        out = self.transformer.get_output_space()
        forms: list[Any] = [
            out if name == FEATURES else form
            for form, name in zip(stored.forms, stored.sources, strict=True)
        ]
        return (forms[0] if isinstance(source, str) else CompositeSpace(forms)), source


class TransformerIterator:
    """The batches of a raw iterator, their features transformed; made by `TransformerDataset`."""

    def __init__(
        self,
        dataset: TransformerDataset,
        raw: Any,
        specs: list[tuple[Any, str]],
        nest: Callable[[Any], tuple[Any, ...]],
        return_tuple: bool,
    ) -> None:
        self._dataset = dataset
        self._raw = raw
        self._specs = specs
        self._nest = nest
        self._return_tuple = return_tuple

    def __getattr__(self, name: str) -> Any:
        if name in ("batch_size", "num_batches", "num_examples", "uneven", "stochastic"):
            return getattr(self._raw, name)
        raise AttributeError(f"a TransformerIterator has no {name}")

    def __iter__(self) -> TransformerIterator:
        return self

    def __next__(self) -> Any:
        parts = zip(next(self._raw), self._specs, strict=True)
        batch = self._nest(
            [
                self._dataset._transform(part, form) if source == FEATURES else part
                for part, (form, source) in parts
            ]
        )
        return batch[0] if len(batch) == 1 and not self._return_tuple else batch

    def next(self) -> Any:
        """Return the next batch."""
        return next(self)
