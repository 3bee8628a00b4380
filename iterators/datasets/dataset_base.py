"""The bases of datasets: one that reads many examples at once, and one with two methods.

Those are the number of examples and the example at an index.  The base of the latter translates
indices.  It stores, caches and checks nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.indexing import resolve_index


class ReadsMany:
    """A dataset whose ``__getitems__`` reads many examples faster than one after the other.

    That knows nothing of a subclass with a ``__getitem__`` or ``get_example`` of its own, of which
    the examples are therefore read one by one, unless it has its own ``__getitems__`` as well.
    """

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        for kind in cls.__mro__:
            if "__getitems__" in vars(kind):
                return
            if own := {"__getitem__", "get_example"} & vars(kind).keys():
                for name in own:
                    words = getattr(getattr(kind, name), "__code__", None)
                    if words and "__getitems__" in words.co_names and "super" not in words.co_names:
                        raise TypeError(
                            f"{cls.__name__}.{name} calls __getitems__ of the object, which would "
                            "call it again: define __getitems__ too, or call that of super()"
                        )
                cls.__getitems__ = DatasetMixin.__getitems__  # type: ignore[attr-defined]
                return


class DatasetMixin(ReadsMany):
    """Indexing for datasets that define ``__len__`` and ``get_example``.

    ===========================  ===================================================
    index                        result
    ===========================  ===================================================
    integer                      ``get_example(index)``; negative ones are passed on
    slice                        list of examples, clipped as for lists
    list or 1-D array of int     list of examples in that order
    list or 1-D array of bool    list of the examples where it is true; exactly one
                                 entry for every example
    ===========================  ===================================================

    Anything else is a TypeError, a mask of another length a ValueError.  An index out of range is
    left to ``get_example``; iteration ends at its IndexError.  Examples are never cached.

    Notes
    -----
    ``__getitems__`` gives a list of examples for a list of integers; torch's ``DataLoader`` calls
    it, and so do datasets that are made of others.  A subclass that reads many examples faster than
    one after the other overrides it.  A subclass of that one which overrides `get_example` or
    ``__getitem__`` alone is read one by one again.

    Examples
    --------
    >>> class Squares(DatasetMixin):
    ...     def __len__(self):
    ...         return 5
    ...     def get_example(self, i):
    ...         if not 0 <= i < 5:
    ...             raise IndexError(i)
    ...         return i * i
    >>> squares = Squares()
    >>> squares[2], squares[::-2], squares[[4, 1]], squares[[True, False, False, True, False]]
    (4, [16, 4, 0], [16, 1], [0, 9])
    >>> list(squares)
    [0, 1, 4, 9, 16]
    """

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} defines no __len__")

    def get_example(self, i: Any) -> Any:
        """Return the example at an index; to be defined by the subclass.

        Parameters
        ----------
        i : int or NumPy integer
            As the user wrote it, negative or not.

        Raises
        ------
        IndexError
            If there is no such example.
        """
        raise NotImplementedError(f"{type(self).__name__} defines no get_example")

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, (int, np.integer)):
            return self.get_example(index)
        rows = resolve_index(index, len(self))
        if type(self).__getitem__ is DatasetMixin.__getitem__:
            return self.__getitems__(rows)
        return [self.get_example(i) for i in rows]  # for a method of a subclass, which goes on

    def __getitems__(self, indices: Sequence[int] | np.ndarray) -> list[Any]:
        """Return several examples, as a list."""
        if type(self).__getitem__ is not DatasetMixin.__getitem__:
            return [self[i] for i in indices]  # a class with a method of its own
        get = self.get_example
        return [get(i) for i in indices]
