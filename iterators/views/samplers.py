"""Samplers: the rows of a set in the batches of an epoch.

A sampler keeps its position, two integers, between epochs, and the rows of the running one that it
has delivered.  Rows depend on the seed and on nothing else: each comes from a pure step from one
position to rows and the position behind them, and each such function says what the position counts.

Those of texts make batches that continue one another, for recurrent models: row i of a batch goes
on where row i of the one before stopped; ``batch.sequence_start`` marks the batches where a
sequence begins and a model has to forget.
"""

from __future__ import annotations

import gc
import itertools
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from recordio.keywords.checks import integer

from ..core.order.cutting import Position, pieces, runs
from ..core.order.epochs import ShuffledOrder, WeightedOrder
from .sets import Batch, DataSet, DataSource
from .text_sets import SentenceSet, TextSet
from .view import View

Draw = tuple[Batch, int, int]


class Epoch:
    """The batches of one epoch: a function that gives the next one, and an iterator.

    Made by `Sampler.sample_epoch`.
    """

    def __init__(
        self,
        draw: Callable[[int, Batch | None], tuple[Batch, int]],
        size: int,
        may_end: Callable[[], bool] = lambda: True,
        seen: int = 0,
    ) -> None:
        self._draw = draw
        self._size = size
        self._may_end = may_end
        self._seen = seen

    def __call__(self, batch: Batch | None = None) -> Draw | None:
        """Return the next batch.

        Parameters
        ----------
        batch : Batch, optional
            An earlier batch, whose memory is used again.

        Returns
        -------
        (batch, seen, epoch_size) or None
            `seen` counts the rows up to here, `epoch_size` at most; None when the epoch is over.
        """
        if self._seen >= self._size and self._may_end():
            return None
        batch, count = self._draw(self._seen, batch)
        self._seen = min(self._seen + count, self._size)
        return batch, self._seen, self._size

    def __iter__(self) -> Iterator[Draw]:
        return self

    def __next__(self) -> Draw:
        draw = self()
        if draw is None:
            raise StopIteration
        return draw


class Sampler:
    """Consecutive rows.

    Parameters
    ----------
    batch_size : int
        Rows of a batch, at least 1; the last one before the end of the set is short.
    epoch_size : int
        Rows of an epoch; -1 for the whole set.  A shorter epoch is followed by one that goes on
        where it stopped, a longer one begins the set again.  The last batch of an epoch is not cut
        to fit.
    ppf : callable, optional
        Called with every batch; its result is delivered.
    gc_freq : int
        Collect Python's garbage after so many batches; -1 for never.

    Raises
    ------
    ValueError
        If `batch_size` is below 1, or an `epoch_size` is below the batch size.

    Examples
    --------
    >>> import numpy as np
    >>> from iterators import DataView
    >>> data = DataSet("train", DataView("bf", np.arange(5.0).reshape(5, 1)))
    >>> for batch, seen, size in Sampler(batch_size=2).sample_epoch(data):
    ...     print(batch.indices, seen, size)
    [0 1] 2 5
    [2 3] 4 5
    [4] 5 5
    """

    def __init__(
        self,
        batch_size: int = 128,
        epoch_size: int = -1,
        ppf: Callable[[Batch], Batch] | None = None,
        gc_freq: int = -1,
    ) -> None:
        self.batch_size: int = integer("batch_size", batch_size, low=1)
        self.epoch_size: int = integer("epoch_size", epoch_size, low=-1)
        if self.epoch_size != -1 and self.epoch_size < self.batch_size:
            raise ValueError(f"epoch_size={epoch_size} is below batch_size={batch_size}")
        self.ppf = ppf
        self.gc_freq: int = integer("gc_freq", gc_freq, low=-1)
        self._position = Position()
        self._seen = 0  # rows of the running epoch; 0 again when it is over
        self._goes_on = False  # with the epoch of a state that was loaded
        self._batches = 0
        self._ahead = 0

    def sample_epoch(self, dataset: DataSet | DataSource | View) -> Epoch:
        """Return the batches of the next epoch.

        Parameters
        ----------
        dataset : DataSet, DataSource or View
            The train set of a source; a view is taken as the inputs of a train set.

        Returns
        -------
        Epoch
            Call it for ``(batch, seen, epoch_size)``, or None at the end; or iterate over it.

        Raises
        ------
        TypeError
            If `dataset` is something else, or has no inputs.
        """
        data_set = _data_set(dataset)
        size = data_set.n_sample
        epoch_size = size if self.epoch_size == -1 or not size else self.epoch_size
        first = self._first()
        if not first:
            self._begin()
        if self._ahead:
            return Epoch(self._draw_ahead(data_set, epoch_size, first), epoch_size, seen=first)

        def draw(seen: int, batch: Batch | None) -> tuple[Batch, int]:
            rows, after = self._step(data_set, self._position)
            self._move(after, seen + len(rows), epoch_size)
            batch = self._set_up(self._fill(data_set, rows, batch), rows, seen, epoch_size)
            return (batch if self.ppf is None else self.ppf(batch)), len(rows)

        return Epoch(draw, epoch_size, seen=first)

    def _first(self) -> int:
        """Rows that were delivered of the epoch that is asked for."""
        if not self._goes_on:
            self._seen = 0
        self._goes_on = False
        return self._seen

    def _move(self, position: Position, seen: int, size: int) -> None:
        """Be behind a batch of an epoch of that size."""
        self._position, self._seen = position, seen if seen < size else 0

    def asynchronous(self, depth: int = 2) -> Sampler:
        """Request batches in advance from now on, of sets with threads; returns the sampler.

        Parameters
        ----------
        depth : int
            Number of outstanding requests; 0, as initially, for none.

        Notes
        -----
        `sample_epoch` raises a TypeError for a set without requests, which are
        `ImageClassSet.index_async_put` and `ImageClassSet.async_get`.
        """
        self._ahead = integer("depth", depth, low=0)
        return self

    def _draw_ahead(self, data_set: Any, size: int, first: int) -> Callable[..., tuple[Batch, int]]:
        if not getattr(data_set, "n_thread", 0):
            raise TypeError(
                f"{data_set!r} has no threads: drop asynchronous(), or give it n_thread="
            )
        data_set.synchronize()  # what an epoch that was left early has asked for
        waiting: deque[tuple[np.ndarray, Position]] = deque()
        ahead, asked = self._position, first

        def draw(seen: int, batch: Batch | None) -> tuple[Batch, int]:
            nonlocal ahead, asked
            # Requests run ahead; the position is that of what was delivered.
            while len(waiting) < self._ahead and asked < size:
                rows, ahead = self._step(data_set, ahead)
                data_set.index_async_put(rows)
                waiting.append((rows, ahead))
                asked += len(rows)
            rows, after = waiting.popleft()
            self._move(after, seen + len(rows), size)
            batch = self._set_up(data_set.async_get(batch), rows, seen, size)
            return (batch if self.ppf is None else self.ppf(batch)), len(rows)

        return draw

    def _set_up(self, batch: Batch, rows: np.ndarray, seen: int, epoch_size: int) -> Batch:
        """Say where a batch comes from."""
        self._batches += 1
        if self.gc_freq > 0 and self._batches % self.gc_freq == 0:
            gc.collect()
        return batch.setup(
            batch_iter=min(seen + len(rows), epoch_size),
            batch_size=self.batch_size,
            n_sample=len(rows),
            indices=rows,
            epoch_size=epoch_size,
        )

    def _begin(self) -> None:
        """Called when an epoch begins."""

    def _step(self, data_set: DataSet, at: Position) -> tuple[np.ndarray, Position]:
        """Return rows of the batch at a position, and the position behind it."""
        return in_turn(at, data_set.n_sample, self.batch_size)

    def _fill(self, data_set: DataSet, rows: np.ndarray, batch: Batch | None) -> Batch:
        return data_set.sub(int(rows[0]), int(rows[-1]) + 1, out=batch)

    def state_dict(self) -> dict[str, int]:
        """Return the position, from which a sampler with the same parameters can go on.

        `start` and `turn` are the position in the set, and `seen` are the rows of the running epoch
        that were delivered.
        """
        return {"start": self._position.done, "turn": self._position.epoch, "seen": self._seen}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Go on where `state_dict` was called; the next epoch is what was left of that one."""
        position = Position.saved(state, epoch="turn", done="start")
        self._seen = integer("seen", state.get("seen", 0), low=0)
        self._position, self._goes_on = position, self._seen > 0

    def set_epoch(self, epoch: int) -> None:
        """Begin that turn through the set with the next epoch."""
        self._position = Position(integer("epoch", epoch, low=0))
        self._seen, self._goes_on = 0, False


class ShuffleSampler(Sampler):
    """Rows in random order, a new one for every epoch and every time the set begins again.

    The position is kept between epochs as that of `Sampler`, so epochs that are shorter than the
    set do not add up to all of it.

    Parameters
    ----------
    batch_size, epoch_size, ppf, gc_freq
        As for `Sampler`.
    random_seed : int
        The orders follow from it alone; no global generator is touched.

    Examples
    --------
    >>> import numpy as np
    >>> from iterators import DataView
    >>> data = DataView("bf", np.arange(5.0).reshape(5, 1))
    >>> draws = ShuffleSampler(batch_size=2).sample_epoch(data)
    >>> sorted(row for batch, _, _ in draws for row in batch.indices.tolist())
    [0, 1, 2, 3, 4]
    """

    def __init__(
        self,
        batch_size: int = 128,
        epoch_size: int = -1,
        ppf: Callable[[Batch], Batch] | None = None,
        gc_freq: int = -1,
        random_seed: int = 777,
    ) -> None:
        super().__init__(batch_size, epoch_size, ppf, gc_freq)
        self.random_seed: int = integer("random_seed", random_seed)

    def _begin(self) -> None:
        turn, start = self._position
        if start:  # otherwise the order of this turn is still unused
            self._position = Position(turn + 1, start)

    def _step(self, data_set: DataSet, at: Position) -> tuple[np.ndarray, Position]:
        return in_turn(at, data_set.n_sample, self.batch_size, self.random_seed)

    def _fill(self, data_set: DataSet, rows: np.ndarray, batch: Batch | None) -> Batch:
        return data_set.index(rows, out=batch)


class RandomSampler(ShuffleSampler):
    """Rows drawn one by one with replacement; every batch is full.

    The rows of a set are equally likely, unless its `DataSet.sampling_weights` say otherwise.

    Parameters
    ----------
    batch_size, epoch_size, ppf, gc_freq, random_seed
        As for `ShuffleSampler`.

    Examples
    --------
    >>> import numpy as np
    >>> from iterators import DataView
    >>> data = DataView("bf", np.arange(5.0).reshape(5, 1))
    >>> [len(batch) for batch, _, _ in RandomSampler(batch_size=2).sample_epoch(data)]
    [2, 2, 2]
    """

    def _begin(self) -> None:
        """Begin nothing: an epoch is a piece of one endless sequence."""

    def _step(self, data_set: DataSet, at: Position) -> tuple[np.ndarray, Position]:
        weights = data_set.sampling_weights()
        if weights is None:
            weights = np.ones(data_set.n_sample)
        return drawn(at, weights, self.batch_size, self.random_seed)


def _data_set(dataset: Any) -> DataSet:
    if isinstance(dataset, DataSource):
        dataset = dataset.train_set
    elif isinstance(dataset, View):
        dataset = DataSet("train", inputs=dataset)
    if not isinstance(dataset, DataSet):
        raise TypeError(
            f"expected a DataSet, a DataSource with a train set or a View, not {type(dataset)}"
        )
    if dataset.io_shapes[0] is None:
        raise TypeError("the set has no inputs to sample from")
    return dataset


class TextSampler(Sampler):
    """Contiguous streams of a text side by side: the text is cut into `batch_size` of them.

    A text of `n` words gives ``(n - context_size) // batch_size`` batches, or with
    ``recurrent=True``, where a row has `context_size` targets, ``(n - 1) // batch_size //
    context_size``.  The rest at the end of the text, less than a row for every stream, is not used.

    Parameters
    ----------
    batch_size : int
        Streams, each a row of every batch.
    epoch_size : int
        Rows of an epoch; -1 for the whole text.  A shorter epoch is followed by one that goes on
        where it stopped; at the end of the streams they begin again.
    ppf, gc_freq
        As for `Sampler`.

    Examples
    --------
    >>> text = TextSet(np.arange(10), context_size=1)
    >>> for batch, _, _ in TextSampler(batch_size=3).sample_epoch(text):
    ...     print(batch.inputs.input.ravel(), batch.targets.input, batch.sequence_start)
    [0 3 6] [1 4 7] True
    [1 4 7] [2 5 8] False
    [2 5 8] [3 6 9] False
    """

    def sample_epoch(self, dataset: Any) -> Epoch:
        """Return the batches of the next epoch of a `TextSet`, or of the train set of a source.

        Raises
        ------
        TypeError
            If it is something else.
        ValueError
            If it has fewer words than a row of every stream needs.
        """
        text = _set_of(dataset, TextSet)
        # Targets: a row has `stride` that no row of another step has.
        words = text.n_sample + text.stride - 1
        steps = words // self.batch_size // text.stride
        if not steps:
            raise ValueError(f"{text!r} cannot be cut into {self.batch_size} streams")
        size = steps * self.batch_size if self.epoch_size == -1 else self.epoch_size

        def draw(seen: int, batch: Batch | None) -> tuple[Batch, int]:
            numbers, step, after = streams(self._position, words, self.batch_size, text.stride)
            self._move(after, seen + len(numbers), size)
            batch = self._set_up(text.index(numbers, out=batch), numbers, seen, size)
            batch.sequence_start = step == 0
            return (batch if self.ppf is None else self.ppf(batch)), len(numbers)

        return Epoch(draw, size, seen=self._first())


class SentenceSampler(ShuffleSampler):
    """Sentences of equal length side by side, word after word.

    In every turn through the set the lengths come in random order, and so do the sentences of each.

    Parameters
    ----------
    batch_size : int
        Largest number of sentences side by side.
    epoch_size : int
        Smallest number of rows of an epoch: sentences are read to their end.  -1 for the whole set.
    ppf, gc_freq, random_seed
        As for `ShuffleSampler`.

    Examples
    --------
    >>> text = SentenceSet([[5, 6, 9], [7, 9], [8, 9]], start_id=0, context_size=1)
    >>> for batch, _, _ in SentenceSampler(batch_size=2).sample_epoch(text):
    ...     print(sorted(batch.targets.input.tolist()), batch.sequence_start)
    [5] True
    [6] False
    [9] False
    [7, 8] True
    [9, 9] False
    """

    def sample_epoch(self, dataset: Any) -> Epoch:
        """Return the batches of the next epoch of a `SentenceSet`, or of the train set of a source.

        Raises
        ------
        TypeError
            If it is something else.
        """
        text = _set_of(dataset, SentenceSet)
        size = text.n_sample if self.epoch_size == -1 else self.epoch_size
        groups: list[np.ndarray] = []
        word, end = 0, False

        def draw(seen: int, batch: Batch | None) -> tuple[Batch, int]:
            nonlocal groups, word, end
            turn, start = self._position
            if not groups:
                groups = sentences(turn, text.lengths, self.batch_size, self.random_seed)
            group = groups[start]
            begins = word == 0
            numbers = text.starts[group] + word
            batch = self._set_up(text.index(numbers, out=batch), numbers, seen, size)
            batch.sequence_start = begins
            word += 1
            end = word == text.lengths[group[0]]
            if end:
                # Only whole sentences count for the position.
                word, after = 0, Position(turn, start + 1)
                if start + 1 == len(groups):
                    groups, after = [], Position(turn + 1)
                self._move(after, seen + len(group), size)
            return (batch if self.ppf is None else self.ppf(batch)), len(group)

        return Epoch(draw, size, lambda: end, self._first())


def _set_of(dataset: Any, kind: type[Any]) -> Any:
    data_set = dataset.train_set if isinstance(dataset, DataSource) else dataset
    if not isinstance(data_set, kind):
        raise TypeError(f"expected a {kind.__name__}, not {type(data_set).__name__}")
    return data_set


def in_turn(
    at: Position, size: int, batch_size: int, seed: int | None = None
) -> tuple[np.ndarray, Position]:
    """Return rows one after another, or permuted by a seed; the last of a cycle may be short."""
    done = at.done if at.done < size else 0
    _, start, stop = next(runs(done, done + batch_size, size))
    rows = np.arange(start, stop)
    if seed is not None:
        rows = ShuffledOrder(size, seed).at(at.epoch, rows)
    return rows, Position(at.epoch + stop // size, stop % size)


def drawn(
    at: Position, weights: np.ndarray, batch_size: int, seed: int
) -> tuple[np.ndarray, Position]:
    """Return rows drawn with replacement: one sequence without an end."""
    stop = at.done + batch_size
    rows = WeightedOrder(weights, seed).at(at.epoch, np.arange(at.done, stop))
    return rows, Position(at.epoch, stop)


def streams(
    at: Position, size: int, batch_size: int, stride: int
) -> tuple[np.ndarray, int, Position]:
    """Return the first rows of the next step of `batch_size` streams side by side, and its number.

    The position counts steps of `stride` words; `size` words are at least one step for every
    stream.
    """
    length = size // batch_size
    steps = length // stride
    step = at.done if at.done < steps else 0
    rows = np.arange(batch_size) * length + step * stride
    return rows, step, Position(at.epoch + (step + 1) // steps, (step + 1) % steps)


def sentences(cycle: int, lengths: np.ndarray, batch_size: int, seed: int) -> list[np.ndarray]:
    """Return sentences that are read side by side, in the order of a cycle."""
    count = len(lengths)
    order = ShuffledOrder(count, seed).at(cycle, np.arange(count))
    distinct = np.unique(lengths)
    # Apart from the order of sentences also where there are as many lengths.
    positions = ShuffledOrder(len(distinct), ~seed).at(cycle, np.arange(len(distinct)))
    alike = (order[lengths[order] == length] for length in distinct[positions])
    return list(itertools.chain(*(pieces(rows, batch_size) for rows in alike)))
