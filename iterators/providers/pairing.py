"""Check that iterators side by side deliver samples that belong together.

Lengths are compared before the first batch, ids of samples in every batch.  Nothing is put right
here: iterators that drift apart are the business of whoever made them.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.batch import DataBatch

#: Samples in a row, or in a batch, whose ids are not alike by chance.
LEAST = 3
MIXER = np.uint64(0x9E3779B97F4A7C15)


def check_lengths(iterators: Sequence[Any]) -> None:
    """Refuse iterators that say how many batches they have, and cannot end together."""
    lengths = [(number, *length) for number, length in enumerate(map(_length, iterators)) if length]
    pads = {pad for _, _, _, pad in lengths if pad is not None}
    if len({batches for _, batches, _, _ in lengths}) <= 1 and len(pads) <= 1:
        return
    each = [
        f"iterator {number} ({_name(iterators[number])}) has {batches} batches"
        + ("" if samples is None else f" of {samples} samples")
        for number, batches, samples, _ in lengths
    ]
    raise ValueError(
        f"the iterators do not end together: {', '.join(each)}: give them the same number of "
        "samples, or a ResizeIter around the longer one"
    )


def _length(it: Any) -> tuple[int, int | None, int | None] | None:
    """Count the batches and samples of an epoch, and the padding of its last batch, if known."""
    try:
        batches = len(it)
    except TypeError:
        return None
    samples = getattr(it, "num_samples", None)
    if not isinstance(samples, int):
        return batches, None, None
    pad = batches * it.batch_size - samples
    return batches, samples, pad if 0 <= pad < it.batch_size else 0


def _name(it: Any) -> str:
    """Name an iterator by its arrays."""
    return f"{type(it).__name__}: " + ", ".join(str(desc[0]) for desc in it.provide_data)


class Pairing:
    """Compares the ids of the samples of several iterators, and warns once if they drift apart.

    Iterators of different sources have ids of their own.  They belong together where ids agreed
    until now in this epoch, where its first batches share most of them, or the epochs all.
    """

    def __init__(self) -> None:
        self._warned = False
        self.restart(whole=True)

    def restart(self, whole: bool) -> None:
        """Begin with the first batch of an epoch; or in the middle of one, if not `whole`."""
        self._whole, self._differs, self._alike = whole, False, 0
        self._sums: list[np.ndarray] = []

    def compare(self, batches: Sequence[DataBatch], number: int) -> None:
        """Look at the batches that are delivered together."""
        if self._warned or any(batch.index is None for batch in batches):
            return
        ids = [np.asarray(b.index, np.uint64)[: len(b.index) - (b.pad or 0)] for b in batches]
        if len({len(one) for one in ids}) > 1 or not len(ids[0]):
            return
        sums = [_sum_of(one) for one in ids]
        before = self._sums or [np.zeros(2, np.uint64)] * len(sums)
        self._sums = [a + b for a, b in zip(before, sums, strict=True)]
        for other, one in enumerate(ids[1:], 1):
            different = np.flatnonzero(ids[0] != one)
            if self._differs or not len(different):
                continue  # where they were apart before, what is alike is so by chance
            self._differs, slot = True, int(different[0])
            first = not self._alike and 2 * len(np.intersect1d(ids[0], one)) >= len(one) >= LEAST
            if self._alike + slot >= LEAST or first:
                self._warn(
                    f"samples of iterator 0 and iterator {other} have the same ids, and from batch "
                    f"{number} on they are paired with others: the first with id {ids[0][slot]} "
                    f"and id {one[slot]}"
                )
        self._alike += 0 if self._differs else len(ids[0])

    def end_epoch(self) -> None:
        """Look at the epoch that is over."""
        if self._whole and self._differs and len({tuple(s.tolist()) for s in self._sums}) == 1:
            self._warn(
                "the iterators delivered samples of the same ids in different orders, so that "
                "samples of different ids were paired"
            )

    def _warn(self, difference: str) -> None:
        if not self._warned:
            self._warned = True
            warnings.warn(
                f"PrefetchingIter: {difference}: unless that is meant, give the iterators the same "
                "seed and keywords of order, and leave a record that one of them skips out of all",
                UserWarning,
                stacklevel=6,
            )


def _sum_of(ids: np.ndarray) -> np.ndarray:
    """Sum up ids so that the same ids in any order give the same two numbers."""
    mixed = (ids + np.uint64(1)) * MIXER
    mixed ^= mixed >> np.uint64(29)
    both = mixed, mixed * MIXER >> np.uint64(7)
    return np.array([one.sum(dtype=np.uint64) for one in both])
