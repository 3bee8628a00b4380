"""A loop over batches that begins late, and goes on behind a batch that could not be made."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Self

from ..providers.engine import ChosenBatch


class LazyLoop(Iterator[Any]):
    """Calls `begin` when the first batch is asked for, and what that returns for each of them.

    The latter gives a tuple of the batch, or None behind the last one.  Unlike a generator, the
    loop is not over when it raises; only one that could not begin is.
    """

    def __init__(self, begin: Callable[[], Callable[[], tuple[Any] | None]]) -> None:
        self._begin: Callable[[], Callable[[], tuple[Any] | None]] | None = begin
        self._step: Callable[[], tuple[Any] | None] = _over

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        try:
            if self._begin is not None:
                begin, self._begin = self._begin, None
                self._step = begin()
            made = self._step()
        except StopIteration as error:  # as in a generator: a bug must not look like the end
            raise RuntimeError("what makes a batch raised StopIteration") from error
        if made is None:
            self._step = _over
            raise StopIteration
        return made[0]


def _over() -> None:
    """There is no other batch."""


class RetakenBatches(Iterator[ChosenBatch]):
    """The samples of batches, which can be taken again until somebody leaves them behind."""

    def __init__(self, batches: Iterator[ChosenBatch]) -> None:
        self._batches = batches
        self._taken: deque[ChosenBatch] = deque()
        self._again: deque[ChosenBatch] = deque()

    def __next__(self) -> ChosenBatch:
        batch = self._again.popleft() if self._again else next(self._batches)
        self._taken.append(batch)
        return batch

    def leave(self) -> None:
        """Forget the oldest of those that were taken."""
        self._taken.popleft()

    def take_again(self) -> None:
        """Begin again with the oldest."""
        self._again.extendleft(reversed(self._taken))
        self._taken.clear()
