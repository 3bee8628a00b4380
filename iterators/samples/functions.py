"""The methods of samples as functions, for readers who dislike names with underscores."""

from __future__ import annotations

from typing import Any

from .dataset import Dataset
from .sample import Sample

__all__ = ["fields", "minibatches", "shape"]


def fields(sample: Sample) -> dict[str, Sample]:
    """Return the fields of a sample by name.

    Examples
    --------
    >>> {name: part() for name, part in fields(Sample([1, 2], {"a": 0, "b": 1})).items()}
    {'a': 1, 'b': 2}
    """
    return dict(sample._iter_fields())


def shape(sample: Sample) -> tuple[int, ...]:
    """Return the lengths of the axes of a sample's data.

    Examples
    --------
    >>> shape(Sample([[1, 2, 3], [4, 5, 6]]))
    (2, 3)
    """
    return sample._shape()


def minibatches(dataset: Dataset, batch_size: int, drop_last: bool = False) -> Any:
    """Return the rows of a data set, `batch_size` at a time.

    Examples
    --------
    >>> [batch() for batch in minibatches(Dataset([5, 6, 7]), 2)]
    [[5, 6], [7]]
    """
    return dataset._minibatches(batch_size, drop_last)
