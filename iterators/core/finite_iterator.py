"""Batches of stored fields in the forms that were asked for: Pylearn2's dataset iterator.

It joins three things that do not know each other: rows from `iterators.core.order.modes`, stored
batches from a dataset, and the conversion of each by the form that was requested.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from .order.modes import SubsetIterator, generator, resolve_iterator_class
from .spec import FieldSpec, Form, SpecError, check_data_specs, is_flat_specs

__all__ = ["FieldStore", "FiniteDatasetIterator", "flat_parts", "iterate"]

#: Seed of a dataset's own generator.
DATASET_SEED = (17, 2, 946)


class FieldStore(Protocol):
    """What a dataset must have to be iterated over."""

    #: How each source is stored.
    field_specs: Mapping[str, FieldSpec]
    #: Used by stochastic iterators that are given no generator of their own.
    rng: Any

    def get(self, sources: tuple[str, ...], indexes: Any) -> tuple[Any, ...]:
        """Rows of several sources, as they are stored."""

    def get_num_examples(self) -> int:
        """Number of rows."""


class FiniteDatasetIterator:
    """Iterator over the batches of one epoch; made by ``dataset.iterator``.

    Parameters
    ----------
    subsets : SubsetIterator
        Which rows make up which batch.
    read : callable
        Gives the parts of the next batch as a tuple; StopIteration at the end.
    return_tuple : bool
        Give a tuple even if there is only one part.
    """

    def __init__(
        self, subsets: SubsetIterator, read: Callable[[], tuple[Any, ...]], return_tuple: bool
    ) -> None:
        self._subsets = subsets
        self._read = read
        self._return_tuple = return_tuple

    def __iter__(self) -> FiniteDatasetIterator:
        return self

    def __next__(self) -> Any:
        batch = self._read()
        return batch[0] if len(batch) == 1 and not self._return_tuple else batch

    def next(self) -> Any:
        """The next batch."""
        return next(self)

    @property
    def batch_size(self) -> int | None:
        """Examples of a full batch."""
        return self._subsets.batch_size

    @property
    def num_batches(self) -> int:
        """Batches of an epoch."""
        return self._subsets.num_batches

    @property
    def num_examples(self) -> int:
        """Examples of an epoch."""
        return self._subsets.num_examples

    @property
    def uneven(self) -> bool:
        """Whether a batch is shorter than the others."""
        return self._subsets.uneven

    @property
    def stochastic(self) -> bool:
        """Whether the order is random."""
        return self._subsets.stochastic


def iterate(
    dataset: FieldStore,
    mode: Any,
    batch_size: int | None,
    num_batches: int | None,
    rng: Any,
    data_specs: Any,
    return_tuple: bool,
) -> FiniteDatasetIterator:
    """Check a request and make its iterator; see ``dataset.iterator`` for the parameters.

    Raises
    ------
    SpecError
        If `data_specs` is not flat, or names a source that is not stored.
    ValueError
        For numbers of batches that there are not enough examples for.
    """
    forms, sources = flat_parts(data_specs)
    for name in sources:
        if name and name not in dataset.field_specs:
            known = ", ".join(map(repr, dataset.field_specs))
            raise SpecError(f"there is no source {name!r}; this dataset has {known}")
    kind: Any = resolve_iterator_class(mode)
    if getattr(kind, "stochastic", False):
        rng = dataset.rng if rng is None else generator(rng)
    if mode == "even_sequences":
        first = next((name for name in sources if name), None)
        if first is None:
            raise SpecError("even_sequences needs a source that holds the sequences")
        stored: Any = dataset.get((first,), slice(None))[0]
    else:
        stored = dataset.get_num_examples()
    subsets = kind(stored, batch_size, num_batches, rng)
    names = tuple(dict.fromkeys(name for name in sources if name))
    specs = {name: dataset.field_specs[name] for name in names}

    @functools.cache
    def bound() -> list[tuple[str, Any]]:
        return [
            (name, None if form.is_null else form.bind(specs[name]))
            for form, name in zip(forms, sources, strict=True)
        ]

    def read() -> tuple[Any, ...]:
        found = dict(zip(names, dataset.get(names, next(subsets)), strict=True))
        return tuple(convert and convert(found[name]) for name, convert in bound())

    return FiniteDatasetIterator(subsets, read, return_tuple)


def flat_parts(data_specs: Any) -> tuple[tuple[Form, ...], tuple[str, ...]]:
    """Forms and sources of a request without nesting.

    Raises
    ------
    SpecError
        If it is nested, or its halves have different structures.
    """
    space, source = check_data_specs(data_specs)
    if not is_flat_specs((space, source)):
        raise SpecError(
            f"data_specs must be flat: use DataSpecsMapping to flatten and nest {source!r}"
        )
    forms = (space,) if space.components is None else tuple(space.components)
    return forms, (source,) if isinstance(source, str) else source
