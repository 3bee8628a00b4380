"""Saving what an iterator remembers in a dictionary or an ``.npz`` file (Chainer's serializers).

A serializer is a callable: an object with a method ``serialize(serializer)`` passes every value it
remembers through it, ``value = serializer(key, value)``, and so saves or loads with the same lines.
Nothing here is unpickled, so a file of unknown origin can do no harm.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, MutableMapping
from typing import Any

import numpy as np

from recordio.storage import AtomicOutput

__all__ = [
    "Deserializer",
    "DictionarySerializer",
    "NpzDeserializer",
    "Serializer",
    "load_npz",
    "save_npz",
]

#: How None is written to a file: numpy would pickle it.
NONE = np.zeros(0, [("none", "?")])


class Serializer:
    """Base class of serializers that save."""

    def __call__(self, key: str, value: Any) -> Any:
        """Save a value and return it."""
        raise TypeError(f"{type(self).__name__} does not define __call__()")

    def __getitem__(self, key: str) -> Serializer:
        """The serializer of a child, whose keys begin with `key` and a slash."""
        raise TypeError(f"{type(self).__name__} does not define __getitem__()")

    def save(self, obj: Any) -> None:
        """Save an object by its method ``serialize``."""
        obj.serialize(self)


class Deserializer:
    """Base class of serializers that load."""

    def __call__(self, key: str, value: Any) -> Any:
        """The saved value; an array is filled in place as well."""
        raise TypeError(f"{type(self).__name__} does not define __call__()")

    def __getitem__(self, key: str) -> Deserializer:
        """The deserializer of a child."""
        raise TypeError(f"{type(self).__name__} does not define __getitem__()")

    def load(self, obj: Any) -> None:
        """Load an object by its method ``serialize``."""
        obj.serialize(self)


class DictionarySerializer(Serializer):
    """Saves values as arrays in a dictionary with flat keys such as ``"main/epoch"``.

    Parameters
    ----------
    target : dict, optional
        What to fill; a new one without it.
    path : str
        What every key begins with.

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
        """The serializer of a child."""
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
        What every key begins with.
    strict : bool
        Whether a missing key is a KeyError, or leaves the value as it is.
    ignore_names : str, callable or list of them, optional
        Keys to leave alone: names, or functions of a name that say so.

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
        self.ignore_names = [names] if isinstance(names, str) or callable(names) else names or []

    def __getitem__(self, key: str) -> NpzDeserializer:
        """The deserializer of a child."""
        path = f"{self.path}{key.strip('/')}/"
        return NpzDeserializer(self.npz, path, self.strict, self.ignore_names)

    def __call__(self, key: str, value: Any) -> Any:
        """The saved value in the type of `value`; if that is an array, it is filled."""
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
        if isinstance(value, np.ndarray):
            if value.shape != saved.shape:
                raise ValueError(f"{key}: saved with shape {saved.shape}, not {value.shape}")
            np.copyto(value, saved, casting="same_kind")
            return value
        if hasattr(value, "copy_"):
            import torch

            return value.copy_(torch.from_numpy(saved))
        return type(value)(saved[()])


def save_npz(file: Any, obj: Any, compression: bool = True) -> None:
    """Save an object to an ``.npz`` file.

    Parameters
    ----------
    file : path or binary file
        Written as named, no suffix is added; an old file is replaced once the new one is whole.
    obj : object with a method ``serialize``
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
    serializer = DictionarySerializer()
    serializer.save(obj)
    arrays: dict[str, Any] = {
        key: NONE if a.dtype.hasobject else a for key, a in serializer.target.items()
    }
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
