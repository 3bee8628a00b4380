"""Chainer's serializers: the state of an iterator in a dictionary or an ``.npz`` file.

A serializer is a callable: an object with a method ``serialize(serializer)`` passes every value it
remembers through it, ``value = serializer(key, value)``, and so saves or loads with the same lines.
Nothing here is unpickled, so a file of unknown origin can do no harm.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, MutableMapping
from typing import Any

import numpy as np

from recordio.bytes.storage import AtomicOutput

from ..core.backend import is_tensor

#: Spelling of None in a file: numpy would pickle it.
NONE = np.zeros(0, [("none", "?")])


class Serializer:
    """Base class of serializers that save."""

    def __call__(self, key: str, value: Any) -> Any:
        """Save a value and return it."""
        raise TypeError(f"{type(self).__name__} does not define __call__()")

    def __getitem__(self, key: str) -> Serializer:
        """Return the serializer of a child, whose keys begin with `key` and a slash."""
        raise TypeError(f"{type(self).__name__} does not define __getitem__()")

    def save(self, obj: Any) -> None:
        """Save an object by its method ``serialize``."""
        obj.serialize(self)


class Deserializer:
    """Base class of serializers that load."""

    def __call__(self, key: str, value: Any) -> Any:
        """Return the saved value; an array is filled in place as well."""
        raise TypeError(f"{type(self).__name__} does not define __call__()")

    def __getitem__(self, key: str) -> Deserializer:
        """Return the deserializer of a child."""
        raise TypeError(f"{type(self).__name__} does not define __getitem__()")

    def load(self, obj: Any) -> None:
        """Load an object by its method ``serialize``."""
        obj.serialize(self)


class DictionarySerializer(Serializer):
    """Saves values as arrays in a dictionary with flat keys such as ``"main/epoch"``.

    Parameters
    ----------
    target : dict, optional
        Dictionary to fill; by default a new one.
    path : str
        Prefix of every key.

    Examples
    --------
    >>> serializer = DictionarySerializer()
    >>> serializer["main"]("epoch", 3)
    3
    >>> serializer.target
    {'main/epoch': array(3)}
    """

    def __init__(self, target: MutableMapping[str, Any] | None = None, path: str = "") -> None:
        self.target: MutableMapping[str, Any] = {} if target is None else target
        self.path = path

    def __getitem__(self, key: str) -> DictionarySerializer:
        return DictionarySerializer(self.target, f"{self.path}{key.strip('/')}/")

    def __call__(self, key: str, value: Any) -> Any:
        """Save a value as an array and return it."""
        array = value.detach().cpu().numpy() if hasattr(value, "detach") else np.array(value)
        if array.dtype.hasobject and value is not None:
            raise TypeError(f"{self.path}{key}: {type(value).__name__} is not a number or an array")
        self.target[self.path + key.lstrip("/")] = array
        return value


class NpzDeserializer(Deserializer):
    """Loads values from what `numpy.load` returns for an ``.npz`` file, or from any mapping.

    Parameters
    ----------
    npz : mapping of str to array
    path : str
        Prefix of every key.
    strict : bool
        Raise a KeyError for a missing key; if False, the value stays as it is.
    ignore_names : str, callable or list of them, optional
        Keys to leave alone: names, or functions that return whether to leave a name alone.

    Examples
    --------
    >>> NpzDeserializer({"epoch": np.array(3)})("epoch", 0)
    3
    """

    def __init__(
        self,
        npz: Mapping[str, Any],
        path: str = "",
        strict: bool = True,
        ignore_names: Any = None,
    ) -> None:
        self.npz = npz
        self.path = path
        self.strict = strict
        names = ignore_names
        self.ignore_names: list[Any] | Any = (
            [names] if isinstance(names, str) or callable(names) else names or []
        )

    def __getitem__(self, key: str) -> NpzDeserializer:
        path = f"{self.path}{key.strip('/')}/"
        return NpzDeserializer(self.npz, path, self.strict, self.ignore_names)

    def __call__(self, key: str, value: Any) -> Any:
        """Return the saved value in the type of `value`; if that is an array, it is filled.

        Raises
        ------
        TypeError
            If the type of `value` cannot hold what was saved: a float where an int is wanted, 64
            bits where 32 are.  Python's integers hold every integer.
        ValueError
            If an array was saved with another shape, or holds integers too large for the other.
        """
        key = self.path + key.lstrip("/")
        if any(name(key) if callable(name) else name == key for name in self.ignore_names):
            return value
        if key not in self.npz:
            if self.strict:
                raise KeyError(f"nothing was saved under {key!r}")
            return value
        saved = np.asarray(self.npz[key])
        if saved.dtype == NONE.dtype or (saved.dtype.hasobject and saved[()] is None):
            return None
        if value is None:
            return saved
        if isinstance(value, np.ndarray) or is_tensor(value):
            _fill(key, value, saved)
            return value
        kind = type(value)
        if not _holds(kind, saved.dtype):
            raise TypeError(f"{key}: {saved.dtype} was saved, which {kind.__name__} cannot hold")
        return kind(saved[()])


def _holds(kind: type[Any], saved: np.dtype) -> bool:
    """Return whether a type of single values holds every number of the saved type.

    The rule is Chainer's.
    """
    if saved.kind not in "iufc" or (saved.kind in "iu" and kind is int):
        return True
    return np.can_cast(saved, kind, casting="safe")


def _fill(key: str, target: Any, saved: np.ndarray) -> None:
    """Copy what was saved into an array or a tensor, whose floats may be the shorter ones."""
    if tuple(target.shape) != saved.shape:
        raise ValueError(f"{key}: saved with shape {saved.shape}, not {tuple(target.shape)}")
    source: Any = saved
    if isinstance(target, np.ndarray):
        integer = target.dtype.kind in "iu"
        fits = np.can_cast(saved.dtype, target.dtype, "same_kind")
    else:
        import torch

        source, target = torch.from_numpy(saved), target.detach()
        fits = torch.can_cast(source.dtype, target.dtype)
        integer = not (target.is_floating_point() or target.is_complex())
    if not fits:
        raise TypeError(f"{key}: {saved.dtype} was saved, which {target.dtype} cannot hold")
    kept = source.astype(target.dtype) if source is saved else source.to(target.dtype)
    if integer and not bool((kept == source).all()):
        raise ValueError(f"{key}: holds integers that are too large for {target.dtype}")
    target[...] = kept


def serialize(obj: Any) -> dict[str, Any]:
    """Return the values that an object remembers, as a dictionary of arrays with flat keys.

    Examples
    --------
    >>> from iterators import SerialIterator
    >>> serialize(SerialIterator(range(5), 2, shuffle=False))["epoch"]
    array(0)
    """
    serializer = DictionarySerializer()
    serializer.save(obj)
    return dict(serializer.target)


def save_npz(file: Any, obj: Any, compression: bool = True) -> None:
    """Save an object to an ``.npz`` file.

    Parameters
    ----------
    file : path or binary file
        Written as named, no suffix is added; an old file is replaced once the new one is whole.
    obj : object with a method ``serialize``, or dict
        A dictionary of arrays is written as it is.
    compression : bool

    Examples
    --------
    >>> import io
    >>> from iterators import SerialIterator
    >>> file, first = io.BytesIO(), SerialIterator(range(5), 2, shuffle=False)
    >>> batch = next(first)
    >>> save_npz(file, first)
    >>> second = SerialIterator(range(5), 2, shuffle=False)
    >>> load_npz(io.BytesIO(file.getvalue()), second)
    >>> next(second)
    [2, 3]
    """
    target: dict[str, Any] = {}
    if isinstance(obj, dict):
        for key, value in obj.items():
            DictionarySerializer(target)(key, value)
    else:
        target = serialize(obj)
    arrays: dict[str, Any] = {key: NONE if a.dtype.hasobject else a for key, a in target.items()}
    save: Any = np.savez_compressed if compression else np.savez
    if isinstance(file, (str, os.PathLike)):
        with AtomicOutput(file) as output:
            save(output.files[0], **arrays)
    else:
        save(file, **arrays)


def load_npz(
    file: Any, obj: Any, path: str = "", strict: bool = True, ignore_names: Any = None
) -> None:
    """Load an object from an ``.npz`` file; the parameters are those of `NpzDeserializer`."""
    with np.load(file, allow_pickle=False) as npz:
        NpzDeserializer(npz, path, strict, ignore_names).load(obj)
