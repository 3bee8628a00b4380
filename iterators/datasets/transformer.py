"""Pylearn2's `TransformerDataset`: features that are transformed when they are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.finite_iterator import Request
from ..core.layout import Layout
from ..core.spec import FieldSpec
from ..spaces.composite import CompositeSpace
from ..spaces.space import space_of
from .vector_spaces import FEATURES

__all__ = ["TransformerDataset"]


class TransformerDataset:
    """A dataset whose features a transformer makes of those of another one.

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
            raise TypeError(f"a {type(transformer).__name__} has no perform() and is no function")
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
            On the way, if the transformer gives what cannot become what was asked for.
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

    def _given(self, features: Any, form: Any) -> Any:
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
            raise NotImplementedError("the transformer does not say what it gives")
        stored = Request((space, source))
        out = self.transformer.get_output_space()
        given: list[Any] = [
            out if name == FEATURES else form
            for form, name in zip(stored.forms, stored.sources, strict=True)
        ]
        return (given[0] if isinstance(source, str) else CompositeSpace(given)), source


class TransformerIterator:
    """The batches of a raw iterator, their features transformed; made by `TransformerDataset`."""

    def __init__(
        self,
        dataset: TransformerDataset,
        raw: Any,
        wanted: list[tuple[Any, str]],
        nest: Callable[[Any], tuple],
        return_tuple: bool,
    ) -> None:
        self._dataset = dataset
        self._raw = raw
        self._wanted = wanted
        self._nest = nest
        self._return_tuple = return_tuple

    def __getattr__(self, name: str) -> Any:
        if name in ("batch_size", "num_batches", "num_examples", "uneven", "stochastic"):
            return getattr(self._raw, name)
        raise AttributeError(f"a TransformerIterator has no {name}")

    def __iter__(self) -> TransformerIterator:
        return self

    def __next__(self) -> Any:
        parts = zip(next(self._raw), self._wanted, strict=True)
        batch = self._nest(
            [
                self._dataset._given(part, form) if source == FEATURES else part
                for part, (form, source) in parts
            ]
        )
        return batch[0] if len(batch) == 1 and not self._return_tuple else batch

    def next(self) -> Any:
        """Return the next batch."""
        return next(self)
