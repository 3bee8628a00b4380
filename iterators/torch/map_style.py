"""Data sets with an index for PyTorch's ``DataLoader``, fetched in batches.

Nothing is collated here; that is the loader's work.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import torch.utils.data

from ..loops.iterator import fetch

__all__ = ["MapDataset", "set_epoch_of"]


def set_epoch_of(dataset: Any, epoch: int) -> None:
    """Say which epoch it is to a data set, or to that of a subset, where that changes images."""
    while isinstance(dataset, torch.utils.data.Subset):
        dataset = dataset.dataset
    if callable(getattr(dataset, "set_epoch", None)):
        with contextlib.suppress(ValueError):  # of one whose epochs are alike
            dataset.set_epoch(epoch)


class MapDataset(torch.utils.data.Dataset):
    """A data set for ``DataLoader`` over anything with ``len(dataset)`` and ``dataset[i]``.

    The loader requests a whole batch at once, from the ``__getitems__`` of the data set where it
    has one.  Record readers and the data sets of `iterators.datasets` can be pickled and forked, so
    that any number of workers may be used.

    Parameters
    ----------
    dataset : object
        ``RecordReader``, a data set of `iterators.datasets`, a list, ...
    transform : callable, optional
        Called with every example.

    Examples
    --------
    >>> from torch.utils.data import DataLoader
    >>> loader = DataLoader(MapDataset(range(5), transform=float), batch_size=2)
    >>> [batch.tolist() for batch in loader]
    [[0.0, 1.0], [2.0, 3.0], [4.0]]
    """

    def __init__(self, dataset: Any, transform: Callable[[Any], Any] | None = None) -> None:
        self.dataset = dataset
        self.transform = transform

    def set_epoch(self, epoch: int) -> None:
        """Hand the number of the epoch on, if the data set wants to know."""
        set_epoch_of(self.dataset, epoch)

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> Any:
        """Return one example."""
        example = self.dataset[index]
        return example if self.transform is None else self.transform(example)

    def __getitems__(self, indices: list[int]) -> list[Any]:
        """Return the examples of a batch."""
        examples = fetch(self.dataset, indices)
        if self.transform is None:
            return examples
        return [self.transform(example) for example in examples]
