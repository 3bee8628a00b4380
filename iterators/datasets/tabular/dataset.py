"""`TabularDataset`: the methods of every table, made of its length, keys, mode and a way to read.

A table is read in columns.  The operations read nothing: each is a `DelegateDataset` around lazy
`TableColumns` of `operations`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ...core.backend import is_tensor
from ...core.collate import concat_examples
from ...core.indexing import resolve_rows, rows_as_index
from ..dataset_base import DatasetMixin
from .operations import (
    Concatenation,
    Join,
    Slice,
    TableColumns,
    Transform,
    TransformBatch,
    WithConverter,
    WithMode,
)


class TabularDataset(DatasetMixin):
    """A table of named columns.

    A subclass defines ``__len__``, `keys`, `mode` and `get_examples`.

    Notes
    -----
    ``table[i]`` is one example in the form of the mode, ``table[a:b]`` and ``table[[i, j]]`` are
    lists of examples; ``table.slice[rows, keys]`` is another table.  All of them read only the rows
    that are asked for, and operations on tables read nothing until then.

    Examples
    --------
    >>> from iterators.datasets import tabular
    >>> table = tabular.from_data({"x": np.arange(4), "y": [10, 11, 12, 13]})
    >>> table.keys, table[1] == {"x": 1, "y": 11}
    (('x', 'y'), True)
    >>> table.slice[[3, 0], ("y",)].fetch()
    {'y': [13, 10]}
    >>> table.astuple().transform("sum", lambda x, y: int(x + y))[:]
    [10, 12, 14, 16]
    """

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the columns; to be defined by the subclass."""
        raise NotImplementedError(f"{type(self).__name__} defines no keys")

    @property
    def mode(self) -> type[tuple[Any, ...]] | type[dict[str, Any]] | None:
        """Form of an example: `tuple`, `dict`, or None for a single bare column.

        To be defined by the subclass.
        """
        raise NotImplementedError(f"{type(self).__name__} defines no mode")

    def get_examples(
        self, indices: list[int] | slice | None, key_indices: tuple[int, ...] | None
    ) -> tuple[Any, ...]:
        """Return columns of some rows; to be defined by the subclass.

        Parameters
        ----------
        indices : list of int, slice or None
            Rows in ``[0, len(self))``; None for all.
        key_indices : tuple of int or None
            Numbers of the columns; None for all.

        Returns
        -------
        tuple of list or array
            The columns in the order of `key_indices`.
        """
        raise NotImplementedError(f"{type(self).__name__} defines no get_examples")

    def __iter__(self) -> Iterator[Any]:
        return (self.get_example(i) for i in range(len(self)))

    def get_example(self, i: Any) -> Any:
        """Return one example in the form of the mode."""
        row = resolve_rows(i, len(self))
        return self._in_mode([column[0] for column in self.get_examples([row], None)])

    def __getitems__(self, indices: Sequence[int] | np.ndarray) -> list[Any]:
        """Return several examples, read at once."""
        rows = resolve_rows(indices if len(indices) else range(0), len(self))
        if not len(rows):
            return []
        columns = self.get_examples(rows_as_index(rows), None)
        return [self._in_mode(row) for row in zip(*columns, strict=True)]

    def _in_mode(self, columns: Sequence[Any]) -> Any:
        mode = self.mode
        if mode is tuple:
            return tuple(columns)
        return dict(zip(self.keys, columns, strict=True)) if mode is dict else columns[0]

    @property
    def slice(self) -> SliceHelper:
        """Rows and columns as another table: ``table.slice[rows]``, ``table.slice[rows, keys]``.

        Rows are a slice, a list or array of integers, or a mask.  Keys are a name or number, for a
        table of that single column, or a tuple of them.
        """
        return SliceHelper(self)

    def fetch(self) -> Any:
        """Return all rows: a tuple of columns, a dict of columns or a column, as the mode says."""
        return self._in_mode(self.get_examples(None, None))

    def convert(self, data: Any) -> Any:
        """Convert the result of `fetch` to arrays; columns that are arrays stay as they are.

        Parameters
        ----------
        data : tuple, dict or column

        Returns
        -------
        tuple, dict or array
        """
        if isinstance(data, tuple):
            return tuple(_as_array(column) for column in data)
        if isinstance(data, dict):
            return {key: _as_array(column) for key, column in data.items()}
        return _as_array(data)

    def astuple(self) -> TabularDataset:
        """Return this table with tuples as examples."""
        return DelegateDataset(WithMode(self, tuple))

    def asdict(self) -> TabularDataset:
        """Return this table with dicts as examples."""
        return DelegateDataset(WithMode(self, dict))

    def concat(self, *datasets: TabularDataset) -> TabularDataset:
        """Put the rows of other tables below these.

        Raises
        ------
        ValueError
            If they do not have the same keys in the same order.
        """
        return DelegateDataset(Concatenation(self, *datasets))

    def join(self, *datasets: TabularDataset) -> TabularDataset:
        """Put the columns of other tables beside these.

        The mode is that of the first table that has one, else tuple.

        Raises
        ------
        ValueError
            If the lengths differ, or two tables have the same key.
        """
        return DelegateDataset(Join(self, *datasets))

    def transform(
        self, keys: str | tuple[str, ...], transform: Callable[..., Any]
    ) -> TabularDataset:
        """Return a table whose rows are made from these rows, one by one.

        Parameters
        ----------
        keys : str or tuple of str
            Names of the new columns.
        transform : callable
            Takes the columns of one row as positional arguments, or as keyword arguments if the
            mode is dict.  A tuple, dict or anything else that it returns decides the new mode.

        Raises
        ------
        ValueError
            On reading, if what it returns changes its form or does not fit the keys.
        """
        return DelegateDataset(Transform(self, keys, transform))

    def transform_batch(
        self, keys: str | tuple[str, ...], transform_batch: Callable[..., Any]
    ) -> TabularDataset:
        """Return a table whose columns are made from blocks of these columns.

        Parameters
        ----------
        keys : str or tuple of str
            Names of the new columns.
        transform_batch : callable
            As for `transform`, but with columns of as many rows as are read at once; it returns as
            many.

        Raises
        ------
        ValueError
            On reading, if what it returns changes its form, does not fit the keys, or has another
            number of rows.
        """
        return DelegateDataset(TransformBatch(self, keys, transform_batch))

    def with_converter(self, converter: Callable[..., Any]) -> TabularDataset:
        """Return this table with another `convert`.

        Parameters
        ----------
        converter : callable
            Takes the columns as positional arguments, or as keyword arguments where a dict is
            converted.
        """
        return DelegateDataset(WithConverter(self, converter))


class DelegateDataset(TableColumns, TabularDataset):
    """A table that passes everything on to another one.

    Base for classes that build their table in the constructor.

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


class SliceHelper:
    """Makes tables of rows and columns: ``table.slice[rows, keys]``."""

    def __init__(self, dataset: TabularDataset) -> None:
        self._dataset = dataset

    def __getitem__(self, item: Any) -> TabularDataset:
        if not isinstance(item, tuple):
            item = (item,)
        elif len(item) != 2:
            raise TypeError(f"slice[rows] or slice[rows, keys]: {len(item)} indices are given")
        table: Any = self._dataset
        if type(table) is DelegateDataset and isinstance(table.dataset, Slice):
            table = table.dataset  # rows of rows are one index
        return DelegateDataset(Slice(table, *item))


def _as_array(column: Any) -> Any:
    if isinstance(column, np.ndarray) or is_tensor(column):
        return column
    return concat_examples(column) if len(column) and is_tensor(column[0]) else np.asarray(column)
