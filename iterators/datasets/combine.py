"""Datasets made of others: side by side, one after the other, in parts, through a function.

They hold references to their members, and an order that all parts share; they copy and cache
nothing.
"""

from __future__ import annotations

import warnings
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from ..core.indexing import by_position, examples_at
from ..images.augment.named_recipes import NamedRecipe
from ..images.augment.recipe import Recipe
from .dataset_base import DatasetMixin, ReadsMany


def _common_length(owner: Any, datasets: Mapping[Any, Any]) -> int:
    """Return the length of all data sets, which are named by their keys."""
    if not datasets:
        raise ValueError(f"a {type(owner).__name__} needs at least one dataset")
    first, length = next((key, len(dataset)) for key, dataset in datasets.items())
    for key, dataset in datasets.items():
        if len(dataset) != length:
            raise ValueError(
                f"dataset {key!r} has {len(dataset)} examples, but dataset {first!r} has {length}"
            )
    return length


class TupleDataset(ReadsMany):
    """Datasets of equal length; an example is a tuple with one example of each.

    Parameters
    ----------
    *datasets : sequence or array
        Anything with a length and integer indices.  Rows of pandas objects are found by position.

    Raises
    ------
    ValueError
        If there is none, or the lengths differ.

    Notes
    -----
    A slice gives a list of tuples.  Every other index is passed on to the members, so that a list
    of integers gives a tuple of arrays where the members are arrays.

    Examples
    --------
    >>> data = TupleDataset(np.arange(4) * 10, ["a", "b", "c", "d"])
    >>> len(data), data[1] == (10, "b"), len(data[1:3])
    (4, True, 2)
    """

    def __init__(self, *datasets: Any) -> None:
        self._length = _common_length(self, dict(enumerate(datasets)))
        self._datasets = tuple(map(by_position, datasets))

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: Any) -> Any:
        parts = [dataset[index] for dataset in self._datasets]
        if isinstance(index, slice):
            return list(zip(*parts, strict=True))
        return tuple(parts)

    def __getitems__(self, indices: Sequence[int] | np.ndarray) -> list[tuple[Any, ...]]:
        """Return several examples, as a list of tuples."""
        return list(zip(*(examples_at(part, indices) for part in self._datasets), strict=True))


class DictDataset(ReadsMany):
    """Named datasets of equal length; an example is a dict with one example of each.

    Parameters
    ----------
    **datasets : sequence or array
        Anything with a length and integer indices.  Rows of pandas objects are found by position.

    Raises
    ------
    ValueError
        If there is none, or the lengths differ.

    Notes
    -----
    A slice gives a list of dicts; every other index is passed on to the members.

    Examples
    --------
    >>> data = DictDataset(x=[1, 2, 3], y="abc")
    >>> data[-1], data[:1]
    ({'x': 3, 'y': 'c'}, [{'x': 1, 'y': 'a'}])
    """

    def __init__(self, **datasets: Any) -> None:
        self._length = _common_length(self, datasets)
        self._datasets = {key: by_position(dataset) for key, dataset in datasets.items()}

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: Any) -> Any:
        parts = {key: dataset[index] for key, dataset in self._datasets.items()}
        return self._rows(parts.values()) if isinstance(index, slice) else parts

    def __getitems__(self, indices: Sequence[int] | np.ndarray) -> list[dict[str, Any]]:
        """Return several examples, as a list of dicts."""
        return self._rows(examples_at(part, indices) for part in self._datasets.values())

    def _rows(self, columns: Any) -> list[dict[str, Any]]:
        keys = self._datasets
        return [dict(zip(keys, row, strict=True)) for row in zip(*columns, strict=True)]


class ConcatenatedDataset(DatasetMixin):
    """The examples of several data sets, one data set after the other.

    Parameters
    ----------
    *datasets : sequence
        They may be empty, and there may be none.

    Notes
    -----
    Indices below 0 are out of range (rule of Chainer); slices may have negative bounds.

    Examples
    --------
    >>> data = ConcatenatedDataset([0, 1, 2], [], [3, 4])
    >>> len(data), data[3], data[-2:]
    (5, 3, [3, 4])
    """

    def __init__(self, *datasets: Any) -> None:
        self._datasets = tuple(map(by_position, datasets))
        self._ends = list(accumulate(map(len, datasets)))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def get_example(self, i: Any) -> Any:
        """Return the example of the member that index `i` falls into."""
        member, position = self._locate(i)
        return self._datasets[member][position]

    def _locate(self, i: Any) -> tuple[int, int]:
        if not 0 <= i < len(self):
            raise IndexError(f"index {i} is out of range for {len(self)} examples")
        member = bisect_right(self._ends, i)
        return member, int(i) - (self._ends[member - 1] if member else 0)

    def __getitems__(self, indices: Sequence[int] | np.ndarray) -> list[Any]:
        """Return several examples; every member is read once."""
        asked: dict[int, tuple[list[int], list[int]]] = {}
        for slot, i in enumerate(indices):
            member, position = self._locate(i)
            slots, positions = asked.setdefault(member, ([], []))
            slots.append(slot)
            positions.append(position)
        result: list[Any] = [None] * len(indices)
        for member, (slots, positions) in asked.items():
            examples = examples_at(self._datasets[member], positions)
            for slot, example in zip(slots, examples, strict=True):
                result[slot] = example
        return result


class TransformDataset(DatasetMixin):
    """The examples of a dataset, each passed through a function.

    Parameters
    ----------
    dataset : sequence
    transform : callable
        Takes one example and returns another.  It is called for one example at a time, also for
        slices, and again at every access.

    Raises
    ------
    TypeError
        If `transform` is not callable; recipes are for `AugmentedDataset`.

    Notes
    -----
    Every index that `dataset` accepts is accepted, and no other.

    Examples
    --------
    >>> TransformDataset([1, 2, 3], lambda x: x * 10)[1:]
    [20, 30]
    """

    def __init__(self, dataset: Any, transform: Callable[[Any], Any]) -> None:
        if isinstance(transform, (Recipe, NamedRecipe)):
            raise TypeError(
                "a recipe is not a function of an example: give its keywords to AugmentedDataset, "
                "or to ImageRecordDataset"
            )
        if not callable(transform):
            raise TypeError(f"transform={transform!r:.80}: expected a function of an example")
        self._dataset = by_position(dataset)
        self._transform = transform

    def __len__(self) -> int:
        return len(self._dataset)

    def get_example(self, i: Any) -> Any:
        """Return the transformed example."""
        return self._transform(self._dataset[i])

    def __getitems__(self, indices: Sequence[int] | np.ndarray) -> list[Any]:
        """Return several transformed examples; the base is read once."""
        return [self._transform(example) for example in examples_at(self._dataset, indices)]


class SubDataset(DatasetMixin):
    """A contiguous part of a dataset, or of an order of its examples.

    Parameters
    ----------
    dataset : sequence
    start, finish : int
        The part holds the positions ``[start, finish)``.
    order : sequence of int, optional
        Index of the example at each position; as long as `dataset`.  It is not copied.

    Raises
    ------
    ValueError
        Unless ``0 <= start <= finish <= len(dataset)``, or if the order has another length.
    TypeError
        If `dataset` gives no example by its number.

    Notes
    -----
    Index -1 is the last example of the part; an index outside ``[-n, n)`` is an IndexError.

    Examples
    --------
    >>> part = SubDataset("abcdef", 1, 4)
    >>> part[0], part[-1], part[:]
    ('b', 'd', ['b', 'c', 'd'])
    >>> SubDataset("abc", 0, 2, order=[2, 0, 1])[:]
    ['c', 'a']
    """

    def __init__(self, dataset: Any, start: int, finish: int, order: Any = None) -> None:
        if start < 0 or finish > len(dataset):
            raise ValueError(
                f"the part [{start}, {finish}) reaches outside the {len(dataset)} examples"
            )
        if start > finish:
            raise ValueError(f"the part [{start}, {finish}) ends before it begins")
        if order is not None and len(order) != len(dataset):
            raise ValueError(
                f"the order has {len(order)} entries, but the dataset has {len(dataset)} examples"
            )
        if not hasattr(type(dataset), "__getitem__"):
            raise TypeError(
                f"a {type(dataset).__name__} gives no example by its number: parts are made of a "
                "data set that does"
            )
        self._dataset = by_position(dataset)
        self._start = start
        self._finish = finish
        self._size = finish - start
        self._order = by_position(order)

    def __len__(self) -> int:
        return self._size

    def get_example(self, i: Any) -> Any:
        """Return the example at position `i` of the part."""
        return self._dataset[self._index(i)]

    def __getitems__(self, indices: Sequence[int] | np.ndarray) -> list[Any]:
        """Return several examples; the base is read once."""
        return examples_at(self._dataset, [self._index(i) for i in indices])

    def _index(self, i: Any) -> Any:
        if not -self._size <= i < self._size:
            raise IndexError(f"index {i} is out of range for {self._size} examples")
        position = i + (self._start if i >= 0 else self._finish)
        return position if self._order is None else self._order[position]


def split_dataset(dataset: Any, split_at: int, order: Any = None) -> tuple[SubDataset, SubDataset]:
    """Cut a dataset in two.

    Parameters
    ----------
    dataset : sequence
    split_at : int
        Examples of the first part, 0 to ``len(dataset)``.
    order : sequence of int, optional
        Order of the examples before the cut.

    Returns
    -------
    tuple of SubDataset

    Raises
    ------
    TypeError
        If `split_at` is no integer.
    ValueError
        If it is negative or greater than the number of examples.

    Examples
    --------
    >>> first, second = split_dataset("abcde", 3)
    >>> first[:], second[:]
    (['a', 'b', 'c'], ['d', 'e'])
    """
    return _cut_in_two(dataset, "split_at", split_at, order)


def _cut_in_two(
    dataset: Any, name: str, position: int, order: Any
) -> tuple[SubDataset, SubDataset]:
    """Cut at a position that the caller knows by a name."""
    if not isinstance(position, (int, np.integer)):
        raise TypeError(f"{name}={position!r}: expected an integer")
    size = len(dataset)
    if not 0 <= position <= size:
        raise ValueError(f"{name}={position}: expected 0 to {size}")
    return SubDataset(dataset, 0, position, order), SubDataset(dataset, position, size, order)


def split_dataset_random(
    dataset: Any, first_size: int, seed: Any = None
) -> tuple[SubDataset, SubDataset]:
    """Cut a shuffled dataset in two.

    Parameters
    ----------
    dataset : sequence
    first_size : int
        Examples of the first part, 0 to ``len(dataset)``.
    seed : int, optional
        Seed of ``numpy.random.RandomState(seed).permutation``; None gives another permutation at
        every call.

    Returns
    -------
    tuple of SubDataset

    Examples
    --------
    >>> first, second = split_dataset_random(range(10), 4, seed=0)
    >>> first[:], second[:]
    ([2, 8, 4, 9], [1, 6, 7, 3, 0, 5])
    """
    return _cut_in_two(dataset, "first_size", first_size, _permutation(dataset, seed))


def split_dataset_n(dataset: Any, n: int, order: Any = None) -> list[SubDataset]:
    """Cut a dataset into parts of equal size; the remaining examples are left out.

    Parameters
    ----------
    dataset : sequence
    n : int
        Number of parts, at least 1.
    order : sequence of int, optional
        Order of the examples before the cuts.

    Returns
    -------
    list of SubDataset

    Examples
    --------
    >>> [part[:] for part in split_dataset_n(range(7), 3)]
    [[0, 1], [2, 3], [4, 5]]
    """
    if n < 1:
        raise ValueError(f"n={n}: expected at least 1 part")
    size = len(dataset) // n
    return [SubDataset(dataset, i * size, (i + 1) * size, order) for i in range(n)]


def split_dataset_n_random(dataset: Any, n: int, seed: Any = None) -> list[SubDataset]:
    """Cut a shuffled dataset into parts of equal size; the remaining examples are left out.

    Parameters
    ----------
    dataset : sequence
    n : int
        Number of parts, at least 1.
    seed : int, optional
        As for `split_dataset_random`.

    Returns
    -------
    list of SubDataset

    Examples
    --------
    >>> [part[:] for part in split_dataset_n_random(range(7), 3, seed=0)]
    [[6, 2], [1, 3], [0, 5]]
    """
    return split_dataset_n(dataset, n, _permutation(dataset, seed))


def get_cross_validation_datasets(
    dataset: Any, n_folds: int | None = None, order: Any = None, *, n_fold: int | None = None
) -> list[tuple[SubDataset, SubDataset]]:
    """Return pairs of training and test part, so that every example is tested once.

    Parameters
    ----------
    dataset : sequence
    n_folds : int
        Number of pairs, 1 to ``len(dataset)``.  The sizes of the test parts differ by at most one;
        they are taken from the end of the order first.
    order : sequence of int, optional
        Order of the examples.
    n_fold : int
        Old name of `n_folds`; deprecated.

    Returns
    -------
    list of (SubDataset, SubDataset)
        The training part begins after the test part and wraps around the end of the order.

    Raises
    ------
    ValueError
        If there are more folds than examples, or the order has another length.

    Examples
    --------
    >>> for train, test in get_cross_validation_datasets(range(7), 3):
    ...     print(train[:], test[:])
    [0, 1, 2, 3] [4, 5, 6]
    [4, 5, 6, 0, 1] [2, 3]
    [2, 3, 4, 5, 6] [0, 1]
    """
    if n_fold is not None:
        warnings.warn("n_fold is deprecated: use n_folds", DeprecationWarning, stacklevel=2)
        n_folds = n_fold if n_folds is None else n_folds
    if n_folds is None:
        raise TypeError("get_cross_validation_datasets() needs n_folds")
    size = len(dataset)
    if not 1 <= n_folds <= size:
        raise ValueError(f"n_folds={n_folds}: expected 1 to {size}, one example for every fold")
    order = np.arange(size) if order is None else np.asarray(order)
    if len(order) != size:
        raise ValueError(f"the order has {len(order)} entries, but the dataset {size} examples")
    # Every fold has the order turned by one more test part: a window of the order written twice.
    twice = np.concatenate([order, order])
    borders = [size * i // n_folds for i in range(n_folds + 1)]
    folds = []
    for i in reversed(range(n_folds)):
        window = twice[borders[i + 1] :][:size]
        folds.append(split_dataset(dataset, size - borders[i + 1] + borders[i], window))
    return folds


def get_cross_validation_datasets_random(
    dataset: Any,
    n_folds: int | None = None,
    seed: Any = None,
    *,
    n_fold: int | None = None,
) -> list[tuple[SubDataset, SubDataset]]:
    """Return pairs of training and test part of a shuffled dataset.

    Parameters
    ----------
    dataset : sequence
    n_folds : int
        As for `get_cross_validation_datasets`.
    seed : int, optional
        As for `split_dataset_random`.
    n_fold : int
        Old name of `n_folds`; deprecated.

    Returns
    -------
    list of (SubDataset, SubDataset)

    Examples
    --------
    >>> folds = get_cross_validation_datasets_random(range(7), 3, seed=0)
    >>> sorted(i for _, test in folds for i in test)
    [0, 1, 2, 3, 4, 5, 6]
    """
    return get_cross_validation_datasets(
        dataset, n_folds, _permutation(dataset, seed), n_fold=n_fold
    )


def _permutation(dataset: Any, seed: Any) -> np.ndarray:
    return np.random.RandomState(seed).permutation(len(dataset))
