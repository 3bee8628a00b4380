"""`CompositeSpace`, a tuple of spaces, `NullSpace`, the space of no data, and requests for both.

Both pass everything on to elementary spaces; neither knows axes.  `DataSpecsMapping` moves entries
between trees of tuples; it never looks into a batch except to compare repeats.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ..core.backend import backend_of, is_sparse, is_tensor
from ..core.layout import plan
from .space import Callback, Conversion, Space, in_storage, is_numeric_batch, space_of
from .spec import FieldSpec, SpecError, check_data_specs
from .vector import VectorSpace

NULL_DTYPE = "NullSpace's dtype"


class CompositeSpace(Space):
    """Batches that are tuples, one entry for every component.

    Parameters
    ----------
    components : sequence of Space
        They may be composite themselves.
    validate_callbacks, np_validate_callbacks : sequence of callable
        Called with a batch before it is checked.

    Notes
    -----
    It is a sequence of its components, equal to the tuple of them.

    Examples
    --------
    >>> space = CompositeSpace([VectorSpace(2), VectorSpace(1)])
    >>> left, right = VectorSpace(3).np_format_as(np.arange(6.0).reshape(2, 3), space)
    >>> left.tolist(), right.tolist()
    ([[0.0, 1.0], [3.0, 4.0]], [[2.0], [5.0]])
    >>> space == (VectorSpace(2), VectorSpace(1)), len(space), space[1].dim
    (True, 2, 1)
    """

    components: list[Space]  # type: ignore[assignment]

    def __init__(
        self,
        components: Iterable[Space],
        validate_callbacks: Sequence[Callback] = (),
        np_validate_callbacks: Sequence[Callback] = (),
    ) -> None:
        self.components = list(components)
        for component in self.components:
            if not isinstance(component, Space):
                raise TypeError(f"the components of a CompositeSpace are spaces, not {component!r}")
        self.validate_callbacks: list[Callback] = list(validate_callbacks)
        self.np_validate_callbacks: list[Callback] = list(np_validate_callbacks)

    @classmethod
    def describing(cls, spec: Any) -> CompositeSpace | None:
        """Return the space of several stored fields."""
        if isinstance(spec, tuple):
            return CompositeSpace([space_of(part) for part in spec])  # type: ignore[misc]
        return None

    def __eq__(self, other: object) -> bool:
        if isinstance(other, (CompositeSpace, tuple)):
            return tuple(self) == tuple(other)
        return NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __iter__(self) -> Iterator[Space]:
        return iter(self.components)

    def __len__(self) -> int:
        return len(self.components)

    def __getitem__(self, number: Any) -> Any:
        return self.components[number]

    def __repr__(self) -> str:
        return f"CompositeSpace({', '.join(map(repr, self.components))})"

    @property
    def num_components(self) -> int:
        """Number of components."""
        return len(self.components)

    def restrict(self, subset: Sequence[int]) -> Space:
        """Return the component with the one given number, or a composite space of several."""
        if len(subset) == 1:
            return self.components[subset[0]]
        return CompositeSpace([self.components[i] for i in subset])

    def restrict_batch(self, batch: tuple[Any, ...], subset: Sequence[int]) -> Any:
        """Return the parts of a batch that belong to ``restrict(subset)``."""
        if is_numeric_batch(batch):
            self.np_validate(batch)
        else:
            self.validate(batch)
        return batch[subset[0]] if len(subset) == 1 else tuple(batch[i] for i in subset)

    @property
    def dtype(self) -> tuple[Any, ...]:
        """Nested tuple of the dtypes of the components; set one for all, or a tuple of them."""
        return tuple(component.dtype for component in self.components)

    @dtype.setter
    def dtype(self, value: Any) -> None:
        for component, own in self._spread(value):
            if not (component.is_null and not isinstance(value, tuple)):
                component.dtype = own  # type: ignore[misc]

    def _spread(self, value: Any) -> list[tuple[Space, Any]]:
        """Yield each component with its own entry of a tuple, or with the one value for all."""
        if not isinstance(value, tuple):
            return [(component, value) for component in self.components]
        if len(value) != len(self.components):
            raise ValueError(f"{value!r} has {len(value)} entries for the components of {self}")
        return list(zip(self.components, value, strict=True))

    # -- checks ---------------------------------------------------------------------------------

    def _validate(self, batch: Any, numeric: bool) -> None:
        for callback in self.np_validate_callbacks if numeric else self.validate_callbacks:
            callback(batch)
        if not isinstance(batch, tuple):
            raise TypeError(f"a batch of {self} is a tuple, not {type(batch).__name__}")
        if len(batch) != len(self.components):
            raise ValueError(
                f"a batch of {self} has {len(self.components)} entries, not {len(batch)}"
            )
        for component, part in zip(self.components, batch, strict=True):
            component._validate(part, numeric)

    def _check_sizes(self, space: Space) -> None:
        if isinstance(space, CompositeSpace):
            if len(space.components) != len(self.components):
                raise ValueError(
                    f"{self} has {len(self.components)} components and {space} has "
                    f"{len(space.components)}"
                )
            for own, component in zip(self.components, space.components, strict=True):
                if isinstance(own, CompositeSpace) != isinstance(component, CompositeSpace):
                    raise TypeError(f"{own} and {component} are nested differently")
                own._check_sizes(component)
            return
        super()._check_sizes(space)

    def _size(self, batch: Any) -> int | None:
        parts = zip(self.components, batch, strict=True)
        sizes = [size for space, part in parts if (size := space._size(part)) is not None]
        return sizes[0] if sizes else None

    def np_batch_size(self, batch: Any) -> int:
        """Return the number of samples, the same in all components that have data.

        Raises
        ------
        ValueError
            If the components disagree.
        """
        self._check_family(batch, True, "batch_size")
        self.np_validate(batch)
        sizes = {
            size for space, part in self._leaves(batch) if (size := space._size(part)) is not None
        }
        if len(sizes) > 1:
            raise ValueError(f"the components have different batch sizes: {sorted(sizes)}")
        return sizes.pop() if sizes else 0

    def _leaves(self, batch: tuple[Any, ...]) -> Iterable[tuple[Space, Any]]:
        for component, part in zip(self.components, batch, strict=True):
            if isinstance(component, CompositeSpace):
                yield from component._leaves(part)
            else:
                yield component, part

    # -- conversion -----------------------------------------------------------------------------

    def _conversion(self, space: Space) -> Conversion:
        if isinstance(space, CompositeSpace):
            pairs = zip(self.components, space.components, strict=True)
            each = [here._conversion(there) for here, there in pairs]
            return lambda batch: tuple(
                convert(part) for convert, part in zip(each, batch, strict=True)
            )
        if isinstance(space, VectorSpace):
            return functools.partial(self._join, space=space)
        raise self._no_conversion(space)

    def _join(self, batch: tuple[Any, ...], space: VectorSpace) -> Any:
        """Return all parts side by side, depth first."""
        leaves = [pair for pair in self._leaves(batch) if not pair[0].is_null]
        if not leaves:
            raise ValueError(f"{self} has no data to make a batch of {space} from")
        for leaf, _ in leaves:
            leaf._check_sizes(VectorSpace(leaf.get_total_dimension()))
        if space.dtype is None:
            types = {backend_of(part).dtype(part) for _, part in leaves}
            if len(types) > 1:
                raise TypeError(
                    f"the parts have the types {sorted(types)}, and {space} does not say which one "
                    "to use"
                )
        plain = (isinstance(part, np.ndarray) and leaf.flat_layout for leaf, part in leaves)
        if not space.sparse and all(plain):
            return _side_by_side(leaves, space)
        parts = []
        for leaf, part in leaves:
            own = VectorSpace(leaf.get_total_dimension(), space.sparse, space.dtype)
            if backend_of(part).name == "torch":
                own = VectorSpace(own.dim, False, space.dtype)
            parts.append(leaf._conversion(own)(part))
        return in_storage(backend_of(parts[0]).concatenate(parts, 1), space)

    # -- batches --------------------------------------------------------------------------------

    def get_total_dimension(self) -> int:
        """Return the sum over the components."""
        return sum(component.get_total_dimension() for component in self.components)

    def get_origin(self) -> Any:
        """Raise NotImplementedError: only the components have an origin."""
        raise NotImplementedError(f"{self} has no origin: ask its components")

    def get_origin_batch(self, batch_size: int, dtype: Any = None) -> tuple[Any, ...]:
        """Return zeros for every component; `dtype` may be a tuple tree."""
        return tuple(
            component.get_origin_batch(batch_size, own)
            for component, own in self._spread_dtype(dtype)
        )

    def _spread_dtype(self, dtype: Any) -> list[tuple[Space, Any]]:
        pairs = self._spread(dtype)
        for component, own in pairs:
            if isinstance(own, tuple) and not isinstance(component, CompositeSpace):
                raise TypeError(f"{component} has one dtype, not {own!r}")
        return pairs

    def make_torch_batch(
        self,
        name: Any = None,
        dtype: Any = None,
        batch_size: int = 1,
        device: Any = None,
        requires_grad: bool = False,
    ) -> tuple[Any, ...]:
        """Return a tuple of tensors of zeros; see `Space.make_torch_batch`."""
        names = name
        if name is None:
            names = (None,) * len(self.components)
        elif isinstance(name, str):
            names = tuple(f"{name}[{i}]" for i in range(len(self.components)))
        return tuple(
            component.make_torch_batch(own, of, batch_size, device, requires_grad)
            for (component, of), (_, own) in zip(
                self._spread_dtype(dtype), self._spread(names), strict=True
            )
        )


class NullSpace(Space):
    """The space of no data; its only batch is None.

    Examples
    --------
    >>> NullSpace().np_batch_size(None), NullSpace() == NullSpace()
    (0, True)
    """

    is_null = True

    @property
    def dtype(self) -> str:
        """A string that stands for the missing element type."""
        return NULL_DTYPE

    @dtype.setter
    def dtype(self, value: Any) -> None:
        if value != NULL_DTYPE:
            raise TypeError(f"NullSpace has no dtype; it can only be set to {NULL_DTYPE!r}")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return "NullSpace"

    def _validate(self, batch: Any, numeric: bool) -> None:
        if batch is not None:
            raise TypeError(f"the batch of a NullSpace is None, not {type(batch).__name__}")

    def _check_sizes(self, space: Space) -> None:
        if not space.is_null:
            raise self._no_conversion(space)

    def _conversion(self, space: Space) -> Conversion:
        return lambda batch: None

    def _size(self, batch: Any) -> int | None:
        return None

    def bind(self, spec: FieldSpec) -> Conversion:
        """Nothing, whatever is stored."""
        return lambda batch: None

    def get_total_dimension(self) -> int:
        """0."""
        return 0

    def make_torch_batch(
        self,
        name: Any = None,
        dtype: Any = None,
        batch_size: int = 1,
        device: Any = None,
        requires_grad: bool = False,
    ) -> None:
        """None."""
        return None


def _side_by_side(leaves: list[tuple[Any, np.ndarray]], space: VectorSpace) -> np.ndarray:
    """Write every part straight into its columns of one new array."""
    rows = {part.shape[leaf.get_batch_axis()] for leaf, part in leaves}
    if len(rows) > 1:
        raise ValueError(f"the components have different batch sizes: {sorted(rows)}")
    dtype = space.dtype or leaves[0][1].dtype
    result = np.empty((rows.pop(), space.dim), dtype)
    begin = 0
    for leaf, part in leaves:
        end = begin + leaf.get_total_dimension()
        columns = result[:, begin:end]
        if leaf.flat_layout != leaf.layout:
            # The columns seen with the axes of the part: splitting an axis never copies.
            columns = plan(leaf.flat_layout, leaf.layout)(columns)
        columns[...] = part
        begin = end
    return result


#: Stands where no entry was met yet.
_MISSING = object()


class DataSpecsMapping:
    """Mapping between the tree of a data_specs pair and its distinct entries.

    Parameters
    ----------
    data_specs : tuple of (Space, source)
        Both halves of one structure: a name for an elementary space, a tuple for a composite one,
        ``''`` for a NullSpace.

    Raises
    ------
    SpecError
        If the structures differ; it is a ValueError and an AssertionError.
    TypeError
        If the first half is no space, or the second neither a name nor a tuple.

    Attributes
    ----------
    n_unique_specs : int
        Number of distinct (space, source) pairs.
    specs_to_index : dict
        Their numbers, in the order in which they are met, depth first.
    spec_mapping : int, None or tuple
        The tree with these numbers in place; None for a NullSpace.

    Examples
    --------
    >>> from iterators.spaces import VectorSpace
    >>> x, y = VectorSpace(4), VectorSpace(1)
    >>> pair = CompositeSpace([x, y])
    >>> mapping = DataSpecsMapping(
    ...     (CompositeSpace([pair, pair]), (("features", "targets"), ("features", "targets"))))
    >>> mapping.flatten((("features", "targets"), ("features", "targets")))
    ('features', 'targets')
    >>> mapping.nest((1, 2))
    ((1, 2), (1, 2))
    """

    def __init__(self, data_specs: tuple[Any, Any]) -> None:
        space, source = check_data_specs(data_specs)
        self.specs_to_index: dict[tuple[Space, str], int] = {}
        self.spec_mapping: Any = self._number(space, source)
        self.n_unique_specs: int = len(self.specs_to_index)

    def _number(self, space: Any, source: Any) -> Any:
        if space.is_null:
            return None
        if space.components is None:
            return self.specs_to_index.setdefault((space, source), len(self.specs_to_index))
        return tuple(self._number(*pair) for pair in zip(space.components, source, strict=True))

    # -- tree to entries ------------------------------------------------------------------------

    def flatten(self, nested: Any, return_tuple: bool = False) -> Any:
        """Return the distinct entries of a tree.

        Parameters
        ----------
        nested : source, Space or batch
            A tree of the structure of the mapping.
        return_tuple : bool
            Give a tuple in any case.

        Returns
        -------
        object or tuple
            The entry itself if there is just one; otherwise a tuple of the entries, or the
            CompositeSpace that equals that tuple if `nested` is a space.

        Raises
        ------
        AssertionError
            If the tree has another structure, positions that share an entry hold different things,
            or there is something where a NullSpace is, or nothing where data is.
        """
        entries: list[Any] = [_MISSING] * self.n_unique_specs
        self._collect(nested, self.spec_mapping, entries)
        if return_tuple:
            return tuple(entries)
        if len(entries) == 1:
            return entries[0]
        if isinstance(nested, Space):
            return CompositeSpace(entries)
        return None if self.spec_mapping is None else tuple(entries)

    def _collect(self, nested: Any, mapping: Any, entries: list[Any]) -> None:
        if mapping is None:
            if not (isinstance(nested, NullSpace) or _is_nothing(nested)):
                raise SpecError(f"{nested!r} stands where NullSpace has no data")
        elif isinstance(mapping, int):
            if isinstance(nested, tuple) and len(nested) == 1:
                (nested,) = nested
            if nested is None:
                raise SpecError("None stands where there must be data")
            if entries[mapping] is _MISSING:
                entries[mapping] = nested
            elif not _same(entries[mapping], nested):
                raise SpecError("two positions of the same space and source hold different things")
        else:
            parts = nested.components if isinstance(nested, CompositeSpace) else nested
            if not isinstance(parts, (tuple, list)):
                raise SpecError(f"expected {len(mapping)} entries in place of {nested!r}")
            if len(parts) != len(mapping):
                raise SpecError(f"expected {len(mapping)} entries instead of {len(parts)}")
            for part, own in zip(parts, mapping, strict=True):
                self._collect(part, own, entries)

    # -- entries to tree ------------------------------------------------------------------------

    def nest(self, flat: Any) -> Any:
        """Return the tree of which `flat` holds the distinct entries.

        Parameters
        ----------
        flat : tuple, Space or object
            The result of `flatten`, or other objects in place of its entries.

        Raises
        ------
        AssertionError
            If the number of entries is not `n_unique_specs`.
        """
        as_space = isinstance(flat, Space)
        if isinstance(flat, CompositeSpace):
            entries = list(flat.components)
        elif isinstance(flat, (tuple, list)):
            entries = list(flat)
        else:
            entries = [flat]
        if len(entries) != self.n_unique_specs:
            raise SpecError(f"expected {self.n_unique_specs} entries instead of {len(entries)}")
        return self._build(entries, self.spec_mapping, as_space)

    def _build(self, entries: list[Any], mapping: Any, as_space: bool) -> Any:
        if mapping is None:
            return NullSpace() if as_space else None
        if isinstance(mapping, int):
            return entries[mapping]
        parts = [self._build(entries, own, as_space) for own in mapping]
        return CompositeSpace(parts) if as_space else tuple(parts)


def _is_nothing(value: Any) -> bool:
    """Return whether a value is false; arrays are something, whatever they hold."""
    if isinstance(value, np.ndarray) or is_sparse(value) or is_tensor(value):
        return False
    return not isinstance(value, Space) and not value


def _same(first: Any, second: Any) -> bool:
    if first is second:
        return True
    if is_tensor(first) and is_tensor(second):
        return bool(first.shape == second.shape and (first == second).all())
    if is_sparse(first) and is_sparse(second):
        return bool(first.shape == second.shape and (first != second).nnz == 0)
    if isinstance(first, np.ndarray) or isinstance(second, np.ndarray):
        return np.array_equal(first, second)
    return bool(first == second)
