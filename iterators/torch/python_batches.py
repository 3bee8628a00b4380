"""Samples that a data set makes itself, in Python: requested in batches, collated, in threads.

`MapDataset` leaves all but the first to torch's `DataLoader`; `PythonBatches` does in threads what
that does in processes.  A data set that draws from the generators of the process gets a seed for
each sample in the thread of the loop; other threads would share them with the program around it.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import time
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch.utils.data
from torch.utils.data._utils.collate import collate, collate_tensor_fn, default_collate_fn_map

from ..core.example_seeds import (
    draws_globally,
    generator_states,
    kept_generators,
    same_states,
    seed_generators,
    set_states,
)
from ..datasets.dataset_base import ReadsMany
from ..loops.batch_fetcher import BatchFetcher
from ..loops.iterator import fetch
from ..providers.advice import advised
from ..providers.engine import ChosenBatch
from ..providers.report import EpochReport, EpochTimes


def set_epoch_of(dataset: Any, epoch: int) -> None:
    """Say which epoch it is to a data set, or to that of a subset, where that changes images."""
    while isinstance(dataset, torch.utils.data.Subset):
        dataset = dataset.dataset
    if callable(getattr(dataset, "set_epoch", None)):
        with contextlib.suppress(ValueError):  # of one whose epochs are alike
            dataset.set_epoch(epoch)


class MapDataset(ReadsMany, torch.utils.data.Dataset):
    """A data set for ``DataLoader`` over anything with ``len(dataset)`` and ``dataset[i]``.

    The loader requests a whole batch at once, from the ``__getitems__`` of the data set where it
    has one.  Record readers and the data sets of `iterators.datasets` can be pickled and forked, so
    that any number of workers may be used.

    Parameters
    ----------
    dataset : object
        ``RecordReader``, a data set of `iterators.datasets`, a list, ...
    transform : callable, optional
        Called with every example.

    Examples
    --------
    >>> from torch.utils.data import DataLoader
    >>> loader = DataLoader(MapDataset(range(5), transform=float), batch_size=2)
    >>> [batch.tolist() for batch in loader]
    [[0.0, 1.0], [2.0, 3.0], [4.0]]
    """

    def __init__(self, dataset: Any, transform: Callable[[Any], Any] | None = None) -> None:
        self.dataset = dataset
        self.transform = transform

    def set_epoch(self, epoch: int) -> None:
        """Hand the number of the epoch on, if the data set wants to know."""
        set_epoch_of(self.dataset, epoch)

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> Any:
        """Return one example."""
        example = self.dataset[index]
        return example if self.transform is None else self.transform(example)

    def __getitems__(self, indices: list[int]) -> list[Any]:
        """Return the examples of a batch."""
        examples = fetch(self.dataset, indices)
        if self.transform is None:
            return examples
        return [self.transform(example) for example in examples]


def default_collate(samples: list[Any]) -> Any:
    """Collate samples as torch does; NumPy stacks tensors in a third of the time."""
    functions = default_collate_fn_map
    if functions[torch.Tensor] is collate_tensor_fn:  # which users may replace
        functions = {**functions, torch.Tensor: _stacked}
    return collate(samples, collate_fn_map=functions)


def _stacked(tensors: list[torch.Tensor], **functions: Any) -> torch.Tensor:
    """Stack tensors; those that NumPy cannot stack, or that differ, by torch, with its errors."""
    kinds = {(type(tensor), tensor.dtype, tensor.shape) for tensor in tensors}
    # Other classes than Tensor say themselves what becomes of them, as torchvision's images do.
    if len(kinds) == 1 and (
        type(tensors[0]) is torch.Tensor or type(torch.stack(tensors[:1])) is torch.Tensor
    ):
        try:
            arrays = [tensor.numpy() for tensor in tensors]
            batch = np.empty((len(arrays), *arrays[0].shape), arrays[0].dtype)
            return torch.from_numpy(np.stack(arrays, out=batch))
        except (RuntimeError, TypeError):  # bfloat16, a gradient, a GPU
            pass
    return collate_tensor_fn(tensors, **functions)


def use_one_core() -> None:
    """Have torch use the calling thread alone, as a worker process of `DataLoader` does.

    `torch.set_num_threads` would change the threads of the user as well, OpenMP's own function does
    not.  Threads of OpenMP that wait for a core take most of the time of small tensors.
    """
    torch.get_num_threads()  # the first call sets the number of this thread
    # Without effect where there is no OpenMP, or each library has names of its own.
    with contextlib.suppress(AttributeError, TypeError):
        ctypes.CDLL(None).omp_set_num_threads(1)


def can_pin() -> bool:
    """Return whether memory can be page-locked; warn if not, as DataLoader does."""
    if not torch.cuda.is_available():
        warnings.warn(
            "pin_memory=True has no effect: there is no CUDA device", UserWarning, stacklevel=3
        )
    return torch.cuda.is_available()


def pinned(value: Any) -> Any:
    """Return a tensor of host memory in page-locked memory, and anything else as it is."""
    on_host = isinstance(value, torch.Tensor) and value.device.type == "cpu"
    return value.pin_memory() if on_host else value


def collated(
    parts: tuple[Any, ...], labelled: bool, collate_fn: Callable[[list[Any]], Any] | None
) -> Any:
    """Return images, views and labels as they are, or as `collate_fn` makes them."""
    if collate_fn is None:
        return parts if len(parts) > 1 else parts[0]
    if labelled:
        parts = (*parts[:-1], parts[-1].tolist() if parts[-1].ndim == 1 else parts[-1])
    if isinstance(parts[0], dict):  # of patches: a dict for each image
        images = zip(*parts[0].values(), strict=True)
        parts = ([dict(zip(parts[0], image, strict=True)) for image in images], *parts[1:])
    samples: list[Any] = list(zip(*parts, strict=True))
    return collate_fn(samples if len(parts) > 1 else [sample for (sample,) in samples])


class _DrawnError(Exception):
    """Raised instead of a batch whose samples need seeds."""


class PythonBatches:
    """Makes the batches of a data set by its ``__getitem__``, in threads or in that of the loop."""

    def __init__(self, dataset: Any, threads: int, ahead: int) -> None:
        self._dataset, self._threads, self._ahead = dataset, threads, ahead
        #: What the loop waits for.
        self.times: EpochTimes = EpochTimes()
        self._counters: Callable[[], dict[str, float]] = dict
        self._draws: bool | None = None  # from the generators of the process; not known

    def fetched(
        self,
        batches: Iterator[ChosenBatch],
        epoch: int,
        largest: int,
        collate_fn: Callable[[list[Any]], Any] | None,
        seeds: Callable[[np.ndarray], list[int]],
    ) -> Iterator[tuple[Any, int]]:
        """Yield an epoch: every batch with the positions that are done behind it.

        `seeds` gives those of the samples of each batch, in its turn.
        """
        collate = collate_fn or default_collate
        if self._draws is None and not self._threads:
            self._draws = len(self._dataset) > 0 and draws_globally(
                lambda: fetch(self._dataset, [0], [epoch])
            )
        if not self._draws:
            choice = yield from self._plain(batches, epoch, largest, collate, seeds)
            if choice is None:
                return
            batches = itertools.chain([choice], batches)
        yield from self._seeded(batches, epoch, collate, seeds)

    def _plain(
        self,
        batches: Iterator[ChosenBatch],
        epoch: int,
        largest: int,
        collate: Callable[[list[Any]], Any],
        seeds: Callable[[np.ndarray], list[int]],
    ) -> Generator[tuple[Any, int], None, ChosenBatch | None]:
        """Yield batches of samples without seeds; returns the first one whose samples need them.

        Such a batch is none, and the generators of the process are as they were before it.
        """
        threads = self._threads
        waiting: deque[ChosenBatch] = deque()
        before: Any = None

        def has_drawn() -> bool:
            if threads or same_states(before, generator_states()):
                return False
            # Again, sample by sample: other threads may have drawn, and so may `collate`.
            rows = waiting[0].rows.tolist()
            makes = [partial(fetch, self._dataset, [row], [epoch]) for row in rows]
            return any(map(draws_globally, makes))

        def undrawn(samples: list[Any]) -> Any:
            if has_drawn():
                raise _DrawnError
            return collate(samples)

        # Small batches: as many as the threads can work on at once.
        ahead = max(self._ahead, -(-threads // max(largest, 1))) if threads else 1
        fetcher = BatchFetcher(
            self._dataset,
            collate if threads else undrawn,
            threads=threads,
            ahead=ahead,
            name="image-loader",
            begin=use_one_core,
        )
        self.times.begin(fetcher.stats())
        self._counters = fetcher.stats
        try:
            while True:
                self.times.ask()
                while len(waiting) < ahead and (choice := next(batches, None)) is not None:
                    fetcher.submit(choice.rows.tolist(), [epoch] * len(choice.rows))
                    waiting.append(choice)
                if not waiting:
                    return None
                begin = time.perf_counter()
                before = None if threads else generator_states()
                try:
                    batch = fetcher.collect()
                except Exception as error:
                    if not (isinstance(error, _DrawnError) or has_drawn()):
                        raise
                    set_states(before)
                    self._draws = True
                    return waiting[0]
                choice = waiting.popleft()
                if not threads:
                    seeds(choice.rows)  # those of the next batch may be needed
                self.times.deliver(len(choice.rows), time.perf_counter() - begin)
                yield batch, choice.done
        finally:
            fetcher.close()
            self.times.finish(fetcher.stats())

    def _seeded(
        self,
        batches: Iterator[ChosenBatch],
        epoch: int,
        collate: Callable[[list[Any]], Any],
        seeds: Callable[[np.ndarray], list[int]],
    ) -> Iterator[tuple[Any, int]]:
        """Yield batches of samples with a seed each; the generators of the process stay."""
        self.times.begin({})
        try:
            for batch in batches:
                self.times.ask()
                samples: list[Any] = []
                with kept_generators():
                    for row, seed in zip(batch.rows.tolist(), seeds(batch.rows), strict=True):
                        seed_generators(seed)
                        samples += fetch(self._dataset, [row], [epoch])
                    data = collate(samples)
                self.times.make(len(samples))
                yield data, batch.done
        finally:
            self.times.finish({})

    def report(self, advise: bool) -> EpochReport:
        """Return where the time of the last epoch went, or of the running one so far."""
        report = self.times.report(self._counters())
        name = f"{type(self._dataset).__name__}.__getitem__"
        return advised(report, python=name, threads="num_workers") if advise else report
