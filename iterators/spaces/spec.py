"""Descriptions of fields, and of the forms requested of a data set, in trees with source names.

A `FieldSpec` describes stored data.  A `Form` is what somebody asks for; `iterators.spaces` has the
forms, and this module knows no other, so that whatever holds data can be asked in any form without
knowing the spaces.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.layout import Layout


class SpecError(ValueError, AssertionError):
    """A description of data that contradicts itself or the data."""


class SpecTypeError(TypeError, AssertionError):
    """Something of the wrong kind in a description of data."""


@dataclass(frozen=True)
class FieldSpec:
    """Layout, element type and storage of a field; `sparse` batches are scipy sparse matrices."""

    layout: Layout
    dtype: str
    sparse: bool = False


class Form(abc.ABC):
    """The form in which batches are asked for; the spaces are its subclasses."""

    #: The forms that this one consists of; None if it is elementary.
    components: Sequence[Form] | None = None
    #: True if a batch in this form has no data.
    is_null = False

    @abc.abstractmethod
    def bind(self, spec: FieldSpec) -> Callable[[Any], Any]:
        """Return the function that turns stored batches into this form; all checks happen here."""

    def convert_stored(self, batch: Any, spec: FieldSpec) -> Any:
        """Return a stored batch in this form."""
        return self.bind(spec)(batch)


def is_flat_space(space: Any) -> bool:
    """Return whether there is no composite space inside a composite space.

    Raises
    ------
    TypeError
        If it is not a space.
    """
    if not isinstance(space, Form):
        raise SpecTypeError(f"expected a space, not {space!r}")
    return all(component.components is None for component in space.components or ())


def is_flat_source(source: Any) -> bool:
    """Return whether there is no tuple inside a tuple of names.

    Raises
    ------
    TypeError
        If it is neither a string nor a tuple of sources.

    Examples
    --------
    >>> is_flat_source(("features", "targets")), is_flat_source((("features",), "targets"))
    (True, False)
    """
    if isinstance(source, str):
        return True
    if not isinstance(source, tuple):
        raise SpecTypeError(f"expected a name or a tuple of names, not {source!r}")
    for item in source:
        is_flat_source(item)
    return all(isinstance(item, str) for item in source)


def is_flat_specs(data_specs: Any) -> bool:
    """Return whether both halves of a data_specs pair are flat."""
    space, source = _pair(data_specs)
    return is_flat_space(space) and is_flat_source(source)


def check_data_specs(data_specs: Any) -> tuple[Form, Any]:
    """Return the two halves of data_specs, a 1-tuple of an elementary space unwrapped."""
    space, source = _pair(data_specs)
    return space, _check(space, source)


def _pair(data_specs: Any) -> tuple[Any, Any]:
    if not isinstance(data_specs, (tuple, list)) or len(data_specs) != 2:
        raise SpecTypeError(f"data_specs is a pair (space, source), not {data_specs!r}")
    return tuple(data_specs)


def _check(space: Any, source: Any) -> Any:
    if not isinstance(space, Form):
        raise SpecTypeError(
            f"data_specs is a pair (space, source): expected a space in place of {space!r}"
        )
    if not isinstance(source, (str, tuple)):
        raise SpecTypeError(f"expected a source name or a tuple of them for {space}: {source!r}")
    if space.is_null:
        if source != "":
            raise SpecError(f"NullSpace has the source '', not {source!r}")
        return source
    if space.components is None:
        if isinstance(source, tuple):
            if len(source) != 1:
                raise SpecError(f"{space} has one source, not the {len(source)} of {source!r}")
            return _check(space, source[0])
        return source
    if isinstance(source, str):
        raise SpecError(
            f"{space} has {len(space.components)} components and needs a tuple of as many sources, "
            f"not the name {source!r}"
        )
    if len(source) != len(space.components):
        raise SpecError(
            f"{space} has {len(space.components)} components, but there are {len(source)} sources "
            f"in {source!r}"
        )
    return tuple(_check(*pair) for pair in zip(space.components, source, strict=True))
