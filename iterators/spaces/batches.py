"""Families of batches: numeric (NumPy, scipy), symbolic (torch), or without data.

A composite batch is a tuple of batches of one family.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.backend import is_sparse, is_tensor
from ..core.spec import SpecError

__all__ = ["is_dataless_batch", "is_numeric_batch", "is_symbolic_batch"]


def _families(batch: Any) -> set[str]:
    if isinstance(batch, list):
        raise TypeError("a composite batch is a tuple, not a list")
    if batch is None:
        return set()
    if isinstance(batch, tuple):
        families: set[str] = set().union(*map(_families, batch))
        if families >= {"numeric", "symbolic"}:
            raise SpecError("a batch is either of arrays or of tensors, not of both")
        return families
    if isinstance(batch, np.ndarray) or is_sparse(batch):
        return {"numeric"}
    return {"symbolic"} if is_tensor(batch) else {"other"}


def is_numeric_batch(batch: Any) -> bool:
    """Return whether a batch consists of NumPy arrays and scipy sparse matrices, or of no data.

    Raises
    ------
    TypeError
        For a list.
    AssertionError
        For a tuple of both families.

    Examples
    --------
    >>> is_numeric_batch((np.zeros(3), None)), is_numeric_batch(5)
    (True, False)
    """
    return _families(batch) <= {"numeric"}


def is_symbolic_batch(batch: Any) -> bool:
    """Return whether a batch consists of torch tensors, or of no data.

    Examples
    --------
    >>> is_symbolic_batch(np.zeros(3)), is_symbolic_batch(())
    (False, True)
    """
    return _families(batch) <= {"symbolic"}


def is_dataless_batch(batch: Any) -> bool:
    """Return whether a batch has no data at all: None, or a tuple of nothing else.

    Examples
    --------
    >>> is_dataless_batch((None, ()))
    True
    """
    return not _families(batch)
