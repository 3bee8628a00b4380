"""Fields in memory that give batches in any form, under the names of Pylearn2.

Requests and conversions belong to other modules; this one knows no space by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.finite_iterator import DATASET_SEED, FiniteDatasetIterator, iterate
from ..core.order.modes import generator
from ..core.spec import FieldSpec, Form, SpecError, check_data_specs, is_flat_specs

__all__ = ["FEATURES", "TARGETS", "FieldDataset", "VectorSpacesDataset"]

#: Names of the sources that most data sets have.
FEATURES, TARGETS = "features", "targets"


class FieldDataset:
    """Fields of equal length, by name; the base of the data sets in memory."""

    def __init__(self, rng: Any) -> None:
        self.rng = generator(rng, DATASET_SEED)
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
        self.data_specs = (space, source)
        self._data = data
        super().__init__(rng)
        self._hold(fields, specs, (space, source))

    def get_data_specs(self) -> tuple[Form, Any]:
        """Return the space and source of what is stored."""
        return self.data_specs

    def get_data(self) -> Any:
        """Return everything that is stored."""
        return self._data
