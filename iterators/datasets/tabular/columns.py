"""Columns read through a table: the base of the operations on tables.

It uses the methods of tables and never makes one.
"""

from __future__ import annotations

from typing import Any

__all__ = ["TableColumns"]


class TableColumns:
    """Passes everything on to the table `dataset`; an operation overrides what it changes."""

    def __init__(self, dataset: Any) -> None:
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
        """Return columns of some rows."""
        return self.dataset.get_examples(indices, key_indices)

    def convert(self, data: Any) -> Any:
        """Make arrays of columns, as the table does."""
        return self.dataset.convert(data)
