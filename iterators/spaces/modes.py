"""Rows of a dataset in batches, by the names of Pylearn2's iteration modes.

A subset iterator gives slices or arrays of row numbers; it never sees the rows.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from ..core.order.cutting import bounds, count_batches, pieces

#: Seed of an iterator that is built without one.
DEFAULT_SEED = 42

Rows = slice | np.ndarray


def generator(rng: Any, seed: Any = DEFAULT_SEED) -> np.random.RandomState | np.random.Generator:
    """Return the generator that a user means: a given one, one of a given seed, or the default."""
    if isinstance(rng, (np.random.RandomState, np.random.Generator)):
        return rng
    return np.random.RandomState(seed if rng is None else rng)


def draw(rng: Any, high: int, size: int | None = None) -> Any:
    """Draw uniform integers in ``[0, high)`` from either kind of generator."""
    return (rng.integers if isinstance(rng, np.random.Generator) else rng.randint)(high, size=size)


def _count(name: str, value: Any) -> int | None:
    if value is None:
        return None
    number = operator.index(value)
    if number < 1:
        raise ValueError(f"{name}={value}: expected at least 1")
    return number


class SubsetIterator:
    """Base class: an iterator over the batches of one epoch.

    Most modes need one of `batch_size` and `num_batches` and work out the other.  Modes that draw
    do so with the seed 42 if `rng`, a generator or a seed, is not given.
    """

    fancy: ClassVar[bool] = False
    stochastic: ClassVar[bool] = False
    uniform_batch_size: ClassVar[bool] = False

    def __init__(
        self, dataset_size: int, batch_size: Any = None, num_batches: Any = None, rng: Any = None
    ) -> None:
        self._dataset_size = operator.index(dataset_size)
        if not self.stochastic and rng is not None:
            raise ValueError(f"{type(self).__name__} draws nothing: leave out rng")
        self._rng = generator(rng) if self.stochastic else None
        self._batch_size: int | None
        self._num_batches: int
        self._batch_size, self._num_batches = self._resolve(
            _count("batch_size", batch_size), _count("num_batches", num_batches)
        )
        self._batches = self._epoch()

    def _resolve(self, batch_size: int | None, num_batches: int | None) -> tuple[int | None, int]:
        if batch_size is None and num_batches is None:
            raise ValueError("give batch_size, num_batches or both")
        size = self._dataset_size
        if batch_size is None:
            assert num_batches is not None
            batch_size = max(-(-size // num_batches), 1)
            # 7 examples in 5 batches are 4 batches of 2 at most: there are no empty ones.
            return batch_size, min(num_batches, count_batches(size, batch_size))
        most = count_batches(size, batch_size)
        if num_batches is None:
            return batch_size, most
        if num_batches > most:
            raise ValueError(
                f"num_batches={num_batches} of batch_size={batch_size}: there are {size} examples"
            )
        return batch_size, num_batches

    def _epoch(self) -> Iterator[Rows]:
        raise TypeError(f"{type(self).__name__} is abstract: choose one of {sorted(MODES)}")

    def __iter__(self) -> Iterator[Rows]:
        return self

    def __next__(self) -> Rows:
        return next(self._batches)

    def next(self) -> Rows:
        """Return the rows of the next batch."""
        return next(self)

    @property
    def batch_size(self) -> int | None:
        """Examples of a full batch."""
        return self._batch_size

    @property
    def num_batches(self) -> int:
        """Batches of an epoch."""
        return self._num_batches

    @property
    def num_examples(self) -> int:
        """Examples of an epoch."""
        assert self._batch_size is not None
        return min(self._batch_size * self._num_batches, self._dataset_size)

    @property
    def uneven(self) -> bool:
        """True if a batch is shorter than the others."""
        assert self._batch_size is not None
        return self._batch_size * self._num_batches > self._dataset_size

    def _slice(self, number: int) -> slice:
        assert self._batch_size is not None
        return slice(*bounds(number, self._batch_size, self._dataset_size))


class SequentialSubsetIterator(SubsetIterator):
    """Slices, one after another; the last may be short."""

    def _epoch(self) -> Iterator[Rows]:
        return (
            rows for i in range(self._num_batches) if (rows := self._slice(i)).start < rows.stop
        )


class ShuffledSequentialSubsetIterator(SubsetIterator):
    """Pieces of a permutation of all rows."""

    fancy = True
    stochastic = True

    def _epoch(self) -> Iterator[Rows]:
        assert self._rng is not None
        order = self._rng.permutation(self._dataset_size)
        return (order[self._slice(i)] for i in range(self._num_batches))


class BatchwiseShuffledSequentialIterator(SubsetIterator):
    """The slices of a sequential iterator in random order."""

    stochastic = True

    def _epoch(self) -> Iterator[Rows]:
        assert self._rng is not None
        return (self._slice(int(i)) for i in self._rng.permutation(self._num_batches))


class _Drawn(SubsetIterator):
    """Batches that are drawn with replacement, as many as one likes."""

    stochastic = True
    uniform_batch_size = True

    def _resolve(self, batch_size: int | None, num_batches: int | None) -> tuple[int | None, int]:
        if batch_size is None or num_batches is None:
            raise ValueError("a random mode needs both batch_size and num_batches")
        return batch_size, num_batches

    @property
    def num_examples(self) -> int:
        """Examples of an epoch, repeats counted."""
        assert self._batch_size is not None
        return self._batch_size * self._num_batches

    @property
    def uneven(self) -> bool:
        """Never."""
        return False


class RandomSliceSubsetIterator(_Drawn):
    """Slices that begin anywhere."""

    def _resolve(self, batch_size: int | None, num_batches: int | None) -> tuple[int | None, int]:
        resolved = super()._resolve(batch_size, num_batches)
        if batch_size is not None and batch_size > self._dataset_size:
            raise ValueError(f"batch_size={batch_size}: there are {self._dataset_size} examples")
        return resolved

    def _epoch(self) -> Iterator[Rows]:
        assert self._batch_size is not None
        for _ in range(self._num_batches):
            begin = int(draw(self._rng, self._dataset_size - self._batch_size + 1))
            yield slice(begin, begin + self._batch_size)


class RandomUniformSubsetIterator(_Drawn):
    """Rows drawn one by one, with replacement."""

    fancy = True

    def _epoch(self) -> Iterator[Rows]:
        for _ in range(self._num_batches):
            yield draw(self._rng, self._dataset_size, self._batch_size)


def _length(rows: Rows) -> int:
    return rows.stop - rows.start if isinstance(rows, slice) else len(rows)


def as_even(cls: type[SubsetIterator]) -> type[SubsetIterator]:
    """Make an iterator class that leaves out the batches that would be short."""
    base: Any = cls

    class Even(base):
        __doc__ = f"`{cls.__name__}` without short batches."
        uniform_batch_size = True

        def _resolve(
            self, batch_size: int | None, num_batches: int | None
        ) -> tuple[int | None, int]:
            if batch_size is None and num_batches is None:
                raise ValueError("give batch_size, num_batches or both")
            size = self._dataset_size
            if batch_size is None:
                batch_size = size // num_batches
                if not batch_size:
                    raise ValueError(f"num_batches={num_batches}: there are {size} examples")
            most = count_batches(size, batch_size, "drop")
            if num_batches is not None and num_batches > most:
                raise ValueError(
                    f"num_batches={num_batches} full batches of batch_size={batch_size}: there are "
                    f"{size} examples"
                )
            return batch_size, most if num_batches is None else num_batches

        def _epoch(self) -> Iterator[Rows]:
            return (rows for rows in super()._epoch() if _length(rows) == self._batch_size)

        @property
        def num_examples(self) -> int:
            return self._batch_size * self._num_batches

        @property
        def uneven(self) -> bool:
            return False

    Even.__name__ = Even.__qualname__ = f"Even{cls.__name__}"
    return Even


def alike(
    order: np.ndarray, lengths: np.ndarray, chosen_lengths: np.ndarray, batch_size: int
) -> list[list[np.ndarray]]:
    """Return batches of sequences of one length, for every one of `chosen_lengths`, in its order.

    `order` has the numbers of the sequences in the order in which they are taken.
    """
    return [list(pieces(order[lengths[order] == length], batch_size)) for length in chosen_lengths]


class EvenSequencesSubsetIterator(SubsetIterator):
    """Sequences of one length at a time, every sequence exactly once.

    Only the lengths of `sequence_data` matter; a batch has at most `batch_size` of them.
    """

    fancy = True
    stochastic = True

    def __init__(
        self,
        sequence_data: Sequence[Any],
        batch_size: Any = None,
        num_batches: Any = None,
        rng: Any = None,
    ) -> None:
        if not hasattr(sequence_data, "__len__") or isinstance(sequence_data, (str, bytes)):
            raise ValueError("even_sequences needs a list or an array of sequences")
        if batch_size is None:
            raise ValueError("even_sequences needs batch_size")
        if num_batches is not None:
            raise ValueError("even_sequences finds num_batches by itself")
        self._lengths = np.array([len(sequence) for sequence in sequence_data], np.int64)
        super().__init__(len(self._lengths), batch_size, None, rng)

    def _resolve(self, batch_size: int | None, num_batches: int | None) -> tuple[int | None, int]:
        assert batch_size is not None
        _, counts = np.unique(self._lengths, return_counts=True)
        return batch_size, sum(count_batches(int(count), batch_size) for count in counts)

    def _epoch(self) -> Iterator[Rows]:
        assert self._rng is not None
        assert self._batch_size is not None
        assert self._batch_size is not None
        order = self._rng.permutation(self._dataset_size)
        lengths = self._rng.permutation(np.unique(self._lengths))
        groups = alike(order, self._lengths, lengths, self._batch_size)
        for turn in itertools.zip_longest(*groups):
            yield from (rows for rows in turn if rows is not None)

    def __next__(self) -> Rows:
        try:
            return next(self._batches)
        except StopIteration:
            self._batches = self._epoch()
            raise

    @property
    def num_examples(self) -> int:
        """Number of sequences."""
        return self._dataset_size

    @property
    def uneven(self) -> bool:
        """True if the sizes of batches differ."""
        return bool(self._batch_size and self._num_batches * self._batch_size > self._dataset_size)


MODES: dict[str, type[SubsetIterator]] = {
    "sequential": SequentialSubsetIterator,
    "shuffled_sequential": ShuffledSequentialSubsetIterator,
    "batchwise_shuffled_sequential": BatchwiseShuffledSequentialIterator,
    "random_slice": RandomSliceSubsetIterator,
    "random_uniform": RandomUniformSubsetIterator,
    "even_sequential": as_even(SequentialSubsetIterator),
    "even_shuffled_sequential": as_even(ShuffledSequentialSubsetIterator),
    "even_batchwise_shuffled_sequential": as_even(BatchwiseShuffledSequentialIterator),
    "even_sequences": EvenSequencesSubsetIterator,
}


def resolve_iterator_class(mode: Any) -> type[SubsetIterator]:
    """Return the class for a mode: by name, or a class of the same kind; "sequential" for None."""
    if mode is None:
        return MODES["sequential"]
    if isinstance(mode, type) and callable(mode):
        return mode
    if not isinstance(mode, str) or mode not in MODES:
        raise ValueError(f"mode={mode!r}: expected one of {', '.join(sorted(MODES))}")
    return MODES[mode]


def is_stochastic(mode: Any) -> bool:
    """Return whether a mode draws random numbers."""
    return resolve_iterator_class(mode).stochastic


def has_uniform_batch_size(mode: Any) -> bool:
    """Return whether all batches of a mode have the same size."""
    return resolve_iterator_class(mode).uniform_batch_size
