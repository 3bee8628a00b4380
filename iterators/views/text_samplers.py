"""`SentenceSampler` and `TextSampler`: batches that continue one another, for recurrent models.

Row i of a batch goes on where row i of the one before stopped; ``batch.sequence_start`` marks the
batches where a sequence begins and a model has to forget.  Orders follow from the seed alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.order.position import Position
from ..core.order.sampling import sentences, streams
from .samplers import Epoch, Sampler, ShuffleSampler
from .sets import Batch, DataSource
from .text_sets import SentenceSet, TextSet

__all__ = ["SentenceSampler", "TextSampler"]


class TextSampler(Sampler):
    """Contiguous streams of a text side by side: the text is cut into `batch_size` of them.

    Of `n` words are made ``(n - context_size) // batch_size`` batches, or with ``recurrent=True``,
    where a row has `context_size` targets, ``(n - 1) // batch_size // context_size``.
    What is left over at the end of the text, less than a row for every stream, is not used.

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
        Sentences side by side at most.
    epoch_size : int
        Rows of an epoch at least: sentences are read to their end.  -1 for the whole set.
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
    found = dataset.train_set if isinstance(dataset, DataSource) else dataset
    if not isinstance(found, kind):
        raise TypeError(f"expected a {kind.__name__}, not {type(found).__name__}")
    return found
