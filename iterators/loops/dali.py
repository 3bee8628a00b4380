"""`DaliIterator`: the counters of an iterator over a pipeline of NVIDIA DALI.

The pipeline decides what is in a batch; here batches are only counted.  DALI is not imported.
"""

from __future__ import annotations

from typing import Any

from .iterator import DatasetIterator

__all__ = ["DaliIterator"]


class BuiltPipeline:
    """A pipeline that is built when it is first needed; its length is that of its first reader."""

    def __init__(self, pipeline: Any) -> None:
        self.pipeline = pipeline
        self._length: int | None = None

    def __len__(self) -> int:
        if self._length is None:
            self.pipeline.build()
            self._length = int(next(iter(self.pipeline.epoch_size().values())))
        return self._length


class DaliIterator(DatasetIterator):
    """Iterate over a pipeline (Chainer's experimental ``DaliIterator``).

    Parameters
    ----------
    pipeline : object
        With ``build()``, called once before the first use; ``epoch_size()``, a dictionary whose
        first value is the number of examples; ``batch_size`` or ``max_batch_size``; and ``run()``.
    repeat : bool
        Go on for ever; else stop after the batch that completes the first sweep, which is delivered
        as the pipeline makes it.

    Examples
    --------
    >>> class Pipeline:
    ...     batch_size = 2
    ...     def build(self): self.runs = 0
    ...     def epoch_size(self): return {"reader": 3}
    ...     def run(self): self.runs += 1; return self.runs
    >>> batches = DaliIterator(Pipeline(), repeat=False)
    >>> list(batches), batches.epoch
    ([1, 2], 1)
    """

    def __init__(self, pipeline: Any, repeat: bool = True) -> None:
        size = getattr(pipeline, "batch_size", None) or pipeline.max_batch_size
        super().__init__(BuiltPipeline(pipeline), size, repeat, shuffle=False)

    def __next__(self) -> Any:
        """What ``pipeline.run()`` returns."""
        with self._turns.lock:
            return self._next()

    def _next(self) -> Any:
        if not self._planned and self._plan() is None:
            raise self._stop()
        try:
            batch = self.dataset.pipeline.run()
        except Exception:
            self._delivered()
            raise
        self._delivered()
        return batch

    def reset(self) -> None:
        """Count from 0 again; the pipeline goes on where it is."""
        super().reset()
