"""`Sample`: an object that stands for data, and reads them only when it is called.

Indexing and field access build further views of the same storage.  Every public method begins with
an underscore, so that the names of fields, which may not, never collide with them.
"""

from __future__ import annotations

import copy
import math
import operator
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from ..core.backend import is_tensor
from ..core.collate import SeesData
from .fields import Group, Selector, check_name, declared, on_axis, remaining
from .region import ReadOnlyError, Region
from .sequence_region import region_of

NOTHING: Mapping[str, Any] = MappingProxyType({})


class Sample(SeesData):
    """Data viewed lazily: reading, indexing and fields are views until they are called.

    Parameters
    ----------
    data : numpy.ndarray, torch.Tensor, list or object with ``__getitem__``, optional
        The stored data.  Without them the sample is a *composite* of its fields.  A mapping is
        `fields` without data: ``Dataset({"input": x, "target": y})``.
    fields : mapping of str to object, optional
        With `data`: an int, slice, list of ints or a tuple that begins with one of them selects
        from the data - along the first axis of a sample, the second axis of a dataset; anything
        else is data of its own.  Without `data`: data or samples.  Fields may overlap.  A mapping
        is a field with fields: ``{"input": {"x1": 0, "x2": slice(1, 3)}}`` declares ``s.input.x1``
        and ``s.input.x2``, and ``s.input()`` is the dict of both.
    meta : mapping, optional
        Facts about the data, kept by operations that do not change the axes that they describe.
    readonly : bool
        Refuse to write; views inherit it.
    primary : str, optional
        The field of a composite that stands for the whole: calls, lengths, indices, iteration and
        shapes are its own.
    fields_meta : mapping of str to mapping, optional
        `meta` of the fields, added to what a field that is a sample knows itself.

    Notes
    -----
    ``s()`` is the data, without a copy where possible; changing the result may or may not change
    the sample, so write with ``s._write(value)``.  ``s.name`` is the sample that sees a field,
    ``s[i]`` the one that sees ``s()[i]``; ``s.name = value`` writes, ``s.name = sample`` gives the
    field another storage, like the more explicit ``s._set_field("name", sample)``.

    Examples
    --------
    >>> import numpy as np
    >>> s = Sample(np.arange(4.0), fields={"position": slice(0, 3), "x": 0, "weight": 3})
    >>> s.position(), float(s.weight())
    (array([0., 1., 2.]), 3.0)
    >>> s.position *= 10
    >>> s.x = -1
    >>> s()
    array([-1., 10., 20.,  3.])
    >>> s[1:4]._fields
    ('weight',)
    """

    __slots__ = (
        "__weakref__",
        "_entries",
        "_fields_meta",
        "_is_readonly",
        "_own_meta",
        "_primary",
        "_region",
    )
    #: Axis of the data that selectors are about.
    _field_axis = 0
    __array_ufunc__ = None  # otherwise ``array == sample`` would be answered element by element
    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    def __init__(
        self,
        data: Any = None,
        fields: Mapping[str, Any] | None = None,
        meta: Mapping[str, Any] | None = None,
        readonly: bool = False,
        primary: str | None = None,
        *,
        fields_meta: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        if isinstance(data, Mapping):
            if fields:
                raise TypeError("data that are a mapping are fields: give them without fields=")
            data, fields = None, data
        if data is None and not fields:
            raise ValueError("a sample needs data, fields or both")
        entries = declared(dict(fields or {}), data is not None, self._stored)
        if isinstance(data, Sample):
            data, region = None, data._region
        else:
            region = None if data is None else region_of(data)
        if primary is not None and primary not in entries:
            raise ValueError(f"the primary field {primary!r} is none of {tuple(entries)}")
        selected: dict[str, Mapping[str, Any]] = {}
        for name, facts in (fields_meta or NOTHING).items():
            if name not in entries:
                raise ValueError(f"fields_meta is about {name!r}, the fields are {tuple(entries)}")
            if isinstance(entries[name], Sample):
                entries[name] = entries[name]._described(facts)
            else:
                selected[name] = facts
        self._set(region, entries, meta or NOTHING, readonly, primary, selected)

    def _set(
        self,
        region: Region | None,
        entries: dict[str, Any],
        meta: Mapping[str, Any],
        readonly: bool,
        primary: str | None,
        fields_meta: Mapping[str, Mapping[str, Any]],
    ) -> None:
        self._region = region
        self._entries = entries
        self._own_meta = dict(meta)
        self._is_readonly = bool(readonly)
        self._primary = primary
        #: Of fields that are selected from the data; a field that is a sample has its own.
        self._fields_meta = dict(fields_meta)

    def _view(
        self,
        kind: type[Sample],
        region: Region | None,
        entries: dict[str, Any],
        meta: Mapping[str, Any] = NOTHING,
        fields_meta: Mapping[str, Mapping[str, Any]] = NOTHING,
        primary: str | None = None,
    ) -> Any:
        view = kind.__new__(kind)
        view._set(region, entries, meta, self._is_readonly, primary, fields_meta)
        return view

    # -- reading ----------------------------------------------------------------------------------

    def __call__(self) -> Any:
        """Return the data; of a composite, a dict of the data of its fields."""
        if self._primary is not None:
            return self._chief()
        if self._region is None:
            return {name: field() for name, field in self._iter_fields()}
        return self._region.read()

    def __getattr__(self, name: str) -> Sample:
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__} has no method {name}")
        return self._field(name)

    def __getitem__(self, index: Any) -> Any:
        if self._primary is not None:
            return self._chief[index]
        if self._region is None:
            return self._parts_at(index)
        region = self._region.select(index, rowwise=self._field_axis == 1)
        part = on_axis(index, 0, self._axes())
        whole = isinstance(part, slice) and part == slice(None)
        fields = remaining(self._entries, part, self._region.axis_length(0))
        if whole and not isinstance(index, tuple):
            fields = dict(self._entries)
        kept = {name: meta for name, meta in self._fields_meta.items() if name in fields}
        meta = self._own_meta if whole and not isinstance(index, tuple) else NOTHING
        return self._view(Sample, region, fields, meta, kept)

    def __len__(self) -> int:
        length = self._length()
        if length == math.inf:
            raise TypeError("these data have no end and so no length; `_length()` is infinite")
        return int(length)

    def __iter__(self) -> Iterator[Any]:
        length = self._length()
        number = 0
        while number < length:
            try:
                element = self[number]
            except IndexError:
                return  # the storage has been shortened meanwhile
            yield element
            number += 1

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, Sample):
            return NotImplemented
        return equal(self(), other())

    def __repr__(self) -> str:
        named = f", fields {', '.join(self._entries)}" if self._entries else ""
        seen = "fields" if self._region is None else type(self._region.storage).__name__
        return f"<{type(self).__name__} of {seen}{named}>"

    @property
    def _fields(self) -> tuple[str, ...]:
        """Names of the fields, in the order of their declaration."""
        return tuple(self._entries)

    def _iter_fields(self) -> Iterator[tuple[str, Sample]]:
        """Yield pairs of name and sample, in the order of declaration."""
        for name in tuple(self._entries):
            yield name, self._field(name)

    def _length(self) -> float:
        """Return the number of elements; ``math.inf`` where the storage has no end."""
        if self._primary is not None:
            return self._chief._length()
        if self._region is not None:
            return self._region.length()
        lengths = {name: field._length() for name, field in self._iter_fields()}
        if len(set(lengths.values())) > 1:
            raise ValueError(
                f"the fields differ in length: {lengths}; name a primary one, or index the fields"
            )
        return next(iter(lengths.values()))

    def _shape(self) -> tuple[int, ...]:
        """Return the length of every axis; ``()`` for a single number."""
        return self._whole()._shape() if self._region is None else self._region.shape()

    def _size(self) -> int:
        """Return the number of elements along all axes."""
        return math.prod(self._shape())

    def _width(self) -> int:
        """Return the length of one element: values of a row, or rows of a minibatch."""
        return len(self[0])

    @property
    def _meta(self) -> Mapping[str, Any]:
        """Facts about the data; cannot be changed."""
        return MappingProxyType(self._own_meta)

    @property
    def _deterministic(self) -> bool:
        """True if two calls give equal data; storage may declare that they do not."""
        if self._region is None:
            return all(field._deterministic for _, field in self._iter_fields())
        return bool(getattr(self._region.storage, "_deterministic", True))

    def _copy(self) -> Any:
        """Copy the sample, with storage of its own, which can be written."""
        if self._region is None:
            fields = {name: field._copy() for name, field in self._iter_fields()}
            return type(self)(None, fields, self._own_meta, primary=self._primary,
                              fields_meta=self._fields_meta)  # fmt: skip
        data = self._region.read()
        data = data.clone() if is_tensor(data) else copy.deepcopy(data)
        fields = {name: self._declaration(entry) for name, entry in self._entries.items()}
        return type(self)(data, fields, self._own_meta, fields_meta=self._fields_meta)

    def _readonly(self, flag: bool = True) -> Any:
        """Return this view, unable to write.

        Raises
        ------
        ReadOnlyError
            If `flag` is False for a sample that is read-only already: a view cannot be less strict
            than its parent.
        """
        if self._is_readonly and not flag:
            raise ReadOnlyError("the sample is read-only, and so is every view of it; `_copy()` it")
        view = self._view(type(self), self._region, dict(self._entries), self._own_meta,
                          self._fields_meta, self._primary)  # fmt: skip
        view._is_readonly = bool(flag)
        return view

    def _described(self, meta: Mapping[str, Any]) -> Any:
        """Return this view, with more facts about the data."""
        view = self._readonly(self._is_readonly)
        view._own_meta.update(meta)
        return view

    # -- writing ----------------------------------------------------------------------------------

    def _write(self, value: Any) -> None:
        """Store values in the viewed region; all views of the same storage change.

        Parameters
        ----------
        value : array_like, Sample or dict
            Broadcast to the shape of the region; for a composite, a dict of values by field.

        Raises
        ------
        ReadOnlyError
            If the sample or its storage is read-only.
        ValueError
            If the shapes do not fit.
        """
        self._check_writable()
        value = data_of(value)
        if self._primary is not None:
            self._chief._write(value)
        elif self._region is None:
            if not isinstance(value, Mapping):
                raise TypeError("a composite is written by a dict of values by field")
            for name in value:
                self._entry(name)
            for name, part in value.items():
                self._field(name)._write(part)
        else:
            self._region.write(value)

    def _set_field(self, name: str, sample: Any) -> None:
        """Give a field, old or new, another storage; nothing is written, and the old storage stays.

        Parameters
        ----------
        name : str
        sample : Sample, data, or mapping of fields
        """
        check_name(name)
        fields = sample if isinstance(sample, Mapping) else None
        self._entries[name] = self._stored(None if fields else sample, fields)
        self._fields_meta.pop(name, None)

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_"):
            object.__setattr__(self, name, value)
            return
        self._entry(name)
        if not isinstance(value, Sample):
            self._field(name)._write(value)
        elif not self._field(name)._sees_the_same(value):
            # Otherwise it is what ``s.name += 1`` assigns: the view that has been written through.
            self._set_field(name, value)

    def __setitem__(self, index: Any, value: Any) -> None:
        target = self[index]
        if isinstance(value, Sample) and target._sees_the_same(value):
            return
        target._write(value)

    def __iadd__(self, value: Any) -> Any:
        return self._update(operator.add, value)

    def __isub__(self, value: Any) -> Any:
        return self._update(operator.sub, value)

    def __imul__(self, value: Any) -> Any:
        return self._update(operator.mul, value)

    def __itruediv__(self, value: Any) -> Any:
        return self._update(operator.truediv, value)

    def _update(self, operation: Callable[[Any, Any], Any], value: Any) -> Any:
        self._check_writable()
        if self._region is None:
            self._whole()._update(operation, value)
        else:
            self._region.write(computed(operation, self._region.read(), data_of(value)))
        return self

    # -- inside -----------------------------------------------------------------------------------

    @property
    def _chief(self) -> Any:
        return self._field(str(self._primary))

    def _whole(self) -> Any:
        """Return the one field that stands for a composite."""
        if self._primary is None:
            raise TypeError("a composite without a primary field is not a single array")
        return self._chief

    def _entry(self, name: str) -> Any:
        try:
            return self._entries[name]
        except KeyError:
            names = ", ".join(self._entries) or "none"
            raise AttributeError(f"no field {name!r}; the fields are: {names}") from None

    def _field(self, name: str) -> Any:
        return self._seen(self._entry(name), self._fields_meta.get(name, NOTHING))

    def _seen(self, entry: Any, meta: Mapping[str, Any] = NOTHING) -> Any:
        """Return the sample that sees a field."""
        if isinstance(entry, Later):
            entry = entry()
        if isinstance(entry, Sample):
            return entry._readonly() if self._is_readonly and not entry._is_readonly else entry
        if isinstance(entry, Group):
            parts = {name: self._seen(part) for name, part in entry.parts.items()}
            return self._view(type(self), None, parts, meta)
        assert self._region is not None  # a composite has no selectors
        region = self._region.select(self._field_index(entry), rowwise=self._field_axis == 1)
        return self._view(type(self), region, {}, meta)

    def _declaration(self, entry: Any) -> Any:
        """Return a field as the constructor takes it, with copies of data that are stored apart."""
        if isinstance(entry, Selector):
            return entry.index
        if isinstance(entry, Group):
            return {name: self._declaration(part) for name, part in entry.parts.items()}
        return self._seen(entry)._copy()

    def _stored(self, data: Any = None, fields: Mapping[str, Any] | None = None) -> Sample:
        """Return a field that is no part of the data of this sample."""
        return data if isinstance(data, Sample) else type(self)(data, fields)

    def _field_index(self, selector: Selector) -> Any:
        return (slice(None),) * self._field_axis + selector.index

    def _parts_at(self, index: Any) -> Any:
        """Return an element or part of a composite: that of each field."""
        self._length()
        fields = {name: field[index] for name, field in self._iter_fields()}
        kind = Sample if any(type(f) is Sample for f in fields.values()) else type(self)
        return self._view(kind, None, fields, self._own_meta, self._fields_meta)

    def _axes(self) -> int | None:
        """Return the number of axes, where that is known without reading."""
        if self._region is None or not hasattr(self._region.storage, "shape"):
            return None
        return len(self._region.shape())

    def _check_writable(self) -> None:
        if self._is_readonly:
            raise ReadOnlyError("the sample is read-only; `_copy()` can be written")

    def _sees_the_same(self, other: Sample) -> bool:
        if self is other:
            return True
        if self._region is None or other._region is None:
            return (
                self._region is other._region
                and self._fields == other._fields
                and all(f._sees_the_same(other._field(name)) for name, f in self._iter_fields())
            )
        return self._region.same_as(other._region)


class Later:
    """The rows of a field that has storage of its own, read at their first use."""

    __slots__ = ("index", "name", "owner")

    def __init__(self, owner: Sample, name: str, index: Any) -> None:
        self.owner: Sample = owner
        self.name: str = name
        self.index: Any = index

    def __call__(self) -> Any:
        """Return what is there now."""
        return self.owner._field(self.name)[self.index]


def data_of(value: Any) -> Any:
    """Return the data that a value contributes: those of a sample, or the value itself."""
    return value() if isinstance(value, Sample) else value


def computed(operation: Callable[[Any, Any], Any], old: Any, value: Any) -> Any:
    """``old operation value`` in the type of `old`, as an in-place operation of NumPy gives it."""
    if is_tensor(old):
        import torch

        value = torch.as_tensor(value, device=old.device)
        new = operation(old, value)
        if not torch.can_cast(new.dtype, old.dtype):
            raise TypeError(f"a result of type {new.dtype} cannot be stored as {old.dtype}")
    else:
        array = np.asarray(old)
        # Python numbers take the type of the array, as they do in NumPy's own operations.
        new = np.asarray(operation(array, value))
        if not np.can_cast(new.dtype, array.dtype, "same_kind"):
            raise TypeError(f"a result of type {new.dtype} cannot be stored as {array.dtype}")
        if isinstance(old, list) or not isinstance(old, (np.ndarray, np.generic)):
            new = new.astype(array.dtype)
            return new.tolist() if new.shape == array.shape else _no_fit(new.shape, array.shape)
    if tuple(new.shape) != tuple(np.shape(old)):
        _no_fit(new.shape, np.shape(old))
    return new


def _no_fit(shape: Any, region: Any) -> Any:
    raise ValueError(f"values of shape {tuple(shape)} do not fit a region of shape {tuple(region)}")


def equal(one: Any, other: Any) -> bool:
    """Return whether two values hold equal data of one shape, whatever their types."""
    if isinstance(one, Mapping) or isinstance(other, Mapping):
        return (
            isinstance(one, Mapping)
            and isinstance(other, Mapping)
            and one.keys() == other.keys()
            and all(equal(part, other[name]) for name, part in one.items())
        )
    arrays = [_as_array(one), _as_array(other)]
    if None not in [kind for kind, _ in arrays]:
        return bool(np.array_equal(arrays[0][1], arrays[1][1]))
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(equal, one, other))
    return bool(np.all(one == other))


def _as_array(value: Any) -> tuple[str | None, Any]:
    """Return a value as an array if it is one; lists whose elements differ in length are none."""
    if is_tensor(value):
        value = value.detach().cpu().numpy()
    if isinstance(value, (list, tuple)):
        try:
            value = np.asarray(value)
        except ValueError:
            return None, value
        if value.dtype.kind not in "biufcSU":
            return None, value
    return ("array", value) if isinstance(value, (np.ndarray, np.generic)) else (None, value)
