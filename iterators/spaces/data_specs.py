"""`DataSpecsMapping`: nested requests for data, flattened without repeats, and nested again.

It moves entries between trees of tuples; it never looks into a batch except to compare repeats.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.backend import is_sparse, is_tensor
from ..core.spec import SpecError, check_data_specs
from .composite import CompositeSpace, NullSpace
from .space import Space

__all__ = ["DataSpecsMapping"]

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
        self.spec_mapping = self._number(space, source)
        self.n_unique_specs = len(self.specs_to_index)

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
            The entry itself if there is just one; of several, a tuple, or the CompositeSpace that
            equals that tuple if `nested` is a space.

        Raises
        ------
        AssertionError
            If the tree has another structure, positions that share an entry hold different things,
            or there is something where a NullSpace is, or nothing where data is.
        """
        found: list[Any] = [_MISSING] * self.n_unique_specs
        self._collect(nested, self.spec_mapping, found)
        if return_tuple:
            return tuple(found)
        if len(found) == 1:
            return found[0]
        if isinstance(nested, Space):
            return CompositeSpace(found)
        return None if self.spec_mapping is None else tuple(found)

    def _collect(self, nested: Any, mapping: Any, found: list[Any]) -> None:
        if mapping is None:
            if not (isinstance(nested, NullSpace) or _is_nothing(nested)):
                raise SpecError(f"{nested!r} stands where NullSpace has no data")
        elif isinstance(mapping, int):
            if isinstance(nested, tuple) and len(nested) == 1:
                (nested,) = nested
            if nested is None:
                raise SpecError("None stands where there must be data")
            if found[mapping] is _MISSING:
                found[mapping] = nested
            elif not _same(found[mapping], nested):
                raise SpecError("two positions of the same space and source hold different things")
        else:
            parts = nested.components if isinstance(nested, CompositeSpace) else nested
            if not isinstance(parts, (tuple, list)):
                raise SpecError(f"expected {len(mapping)} entries in place of {nested!r}")
            if len(parts) != len(mapping):
                raise SpecError(f"expected {len(mapping)} entries instead of {len(parts)}")
            for part, own in zip(parts, mapping, strict=True):
                self._collect(part, own, found)

    # -- entries to tree ------------------------------------------------------------------------

    def nest(self, flat: Any) -> Any:
        """Return the tree of which `flat` holds the distinct entries.

        Parameters
        ----------
        flat : tuple, Space or object
            What `flatten` returned, or anything else for its entries.

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
