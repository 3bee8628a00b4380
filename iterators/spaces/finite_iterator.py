"""Batches of stored fields in the requested forms: Pylearn2's dataset iterator.

It joins three things that do not know each other: rows from `iterators.spaces.modes`, stored
batches from a dataset, and the conversion of each by the form that was requested.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from .modes import SubsetIterator, generator, resolve_iterator_class
from .spec import FieldSpec, Form, SpecError, check_data_specs

#: Seed of a dataset's own generator.
DATASET_SEED = (17, 2, 946)


class FieldStore(Protocol):
    """A dataset that can be iterated over: its fields, and their rows."""

    #: Storage of each source.
    field_specs: Mapping[str, FieldSpec]
    #: Used by stochastic iterators that are given no generator of their own.
    rng: Any

    def get(self, sources: tuple[str, ...], indexes: Any) -> tuple[Any, ...]:
        """Return rows of several sources, as they are stored."""

    def get_num_examples(self) -> int:
        """Return the number of rows."""


class FiniteDatasetIterator:
    """Iterator over the batches of one epoch; made by ``dataset.iterator``.

    `read` gives the parts of the next batch as a tuple, and StopIteration at the end.
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
        """Return the next batch."""
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
        """True if a batch is shorter than the others."""
        return self._subsets.uneven

    @property
    def stochastic(self) -> bool:
        """True if the order is random."""
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
    """Check a request and make its iterator; see ``dataset.iterator`` for parameters and errors."""
    request = Request(data_specs)
    sources = request.sources
    for name in sources:
        if name and name not in dataset.field_specs:
            listing = ", ".join(map(repr, dataset.field_specs))
            raise SpecError(f"there is no source {name!r}; this dataset has {listing}")
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

    conversions = [
        (name, None if form.is_null else _conversion(name, form, specs[name]))
        for form, name in zip(request.forms, sources, strict=True)
    ]

    def read() -> tuple[Any, ...]:
        arrays = dict(zip(names, dataset.get(names, next(subsets)), strict=True))
        return request.nest([convert and convert(arrays[name]) for name, convert in conversions])

    return FiniteDatasetIterator(subsets, read, return_tuple)


def _conversion(name: str, form: Form, spec: FieldSpec) -> Callable[[Any], Any]:
    """Return the function that turns stored batches of a source into a form."""
    try:
        return form.bind(spec)
    except (TypeError, ValueError, NotImplementedError) as error:
        raise SpecError(f"{name!r} does not fit into {form}: {error}") from error


class Request:
    """The parts of a request in the order in which they are written, and their structure.

    `forms` are elementary, one for each part; the source of a part without data is ``""``.
    """

    def __init__(self, data_specs: Any) -> None:
        space, source = check_data_specs(data_specs)
        parts = list(_leaves(space, source))
        self.forms: tuple[Form, ...] = tuple(form for form, _ in parts)
        self.sources: tuple[str, ...] = tuple(name for _, name in parts)
        self._source = source if isinstance(source, tuple) else (source,)

    def nest(self, parts: Sequence[Any]) -> tuple[Any, ...]:
        """Return the parts in the structure of the request; a single one in a tuple."""
        return _nested(self._source, iter(parts))


def _leaves(space: Any, source: Any) -> Iterator[tuple[Form, str]]:
    """Elementary forms and their sources, depth first."""
    if space.components is None:
        yield space, source
        return
    for pair in zip(space.components, source, strict=True):
        yield from _leaves(*pair)


def _nested(source: tuple, parts: Iterator[Any]) -> tuple[Any, ...]:
    return tuple(_nested(s, parts) if isinstance(s, tuple) else next(parts) for s in source)
