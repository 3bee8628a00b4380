"""A table that passes everything on to another one."""

from __future__ import annotations

from typing import Any

from .dataset import TabularDataset

__all__ = ["DelegateDataset"]


class DelegateDataset(TabularDataset):
    """Base for classes that build their table in the constructor.

    Parameters
    ----------
    dataset : TabularDataset
        Answers everything that the subclass does not.

    Attributes
    ----------
    dataset : TabularDataset

    Examples
    --------
    >>> from iterators.datasets import tabular
    >>> class Squares(tabular.DelegateDataset):
    ...     def __init__(self, n):
    ...         super().__init__(tabular.from_data(("square", lambda i: i * i), size=n))
    >>> Squares(4)[:], Squares(4).keys
    ([0, 1, 4, 9], ('square',))
    """

    def __init__(self, dataset: TabularDataset) -> None:
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self.dataset.keys

    @property
    def mode(self) -> Any:
        """Form of an example."""
        return self.dataset.mode

    def get_examples(self, indices: Any, key_indices: Any) -> tuple[Any, ...]:
        """Columns of some rows."""
        return self.dataset.get_examples(indices, key_indices)

    def convert(self, data: Any) -> Any:
        """Make arrays of columns, as the other table does."""
        return self.dataset.convert(data)
