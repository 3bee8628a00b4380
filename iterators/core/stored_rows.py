"""Rows of arrays that are not in memory: those of h5py, zarr and others, read as they are needed.

Such an object has a shape, a type and slices, and reading all of it is what nobody wants.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .fork_safe_lock import ForkSafeLock

#: What arrays in memory have, NumPy's, those of pandas, and of libraries that NumPy may look into.
IN_MEMORY = ("__dlpack__", "__array_interface__", "__array_struct__", "detach", "iloc", "tocsr")
#: Rows are read with those between them where they are at least one in so many.
DENSE = 4


def is_stored(value: Any) -> bool:
    """Tell an array that is read by slices from one in memory, and from any other object.

    >>> is_stored(np.zeros(3)), is_stored([1, 2])
    (False, False)
    """
    if isinstance(value, np.ndarray) or any(hasattr(value, name) for name in IN_MEMORY):
        return False
    read = all(hasattr(value, name) for name in ("shape", "__getitem__"))
    return read and isinstance(getattr(value, "dtype", None), np.dtype)


class StoredRows:
    """An array that is read by slices along its first axis, a batch at a time.

    Rows are asked for once each and in ascending order, as h5py wants them, whatever their order
    here; by one thread at a time.
    """

    def __init__(self, value: Any) -> None:
        self._value = value
        self._orthogonal = getattr(value, "oindex", value)  # zarr's, as its [] takes no lists
        self._access = ForkSafeLock()
        self.dtype: np.dtype = np.dtype(value.dtype)
        self.shape: tuple[int, ...] = tuple(value.shape)
        self.ndim: int = len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        """Read rows by their numbers, in any order."""
        wanted, places = np.unique(rows, return_inverse=True)
        if not len(wanted):
            return np.empty((0, *self.shape[1:]), self.dtype)
        first, count = int(wanted[0]), int(wanted[-1] - wanted[0]) + 1
        with self._access.lock:
            if count <= DENSE * len(wanted):
                found = np.asarray(self._value[first : first + count])[wanted - first]
            else:
                found = np.asarray(self._orthogonal[wanted.tolist()])
        if found.shape != (len(wanted), *self.shape[1:]):
            raise ValueError(
                f"{len(wanted)} rows of {type(self._value).__name__} of shape {self.shape} have "
                f"the shape {found.shape}: give an array whose rows are read by their numbers"
            )
        return found[places]
