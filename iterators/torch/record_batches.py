"""`RecordBatches`: the batches of a provider as an ``IterableDataset`` of PyTorch.

Decides which part of the data this process reads - by rank and by worker - and which epoch it is.
Batches are made by the provider, which has threads of its own.
"""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
import torch.distributed
import torch.utils.data

from recordio.bytes.remote.objects import redacted_url
from recordio.keywords.checks import integer

from ..core.batch import DataBatch, shape_text
from ..core.device import as_tensor
from ..providers.abstract import AbstractDataProvider
from ..providers.provider_options import evenness
from ..providers.report import EpochReport
from ..providers.sample_iterator import first_samples
from .lazy_loop import LazyLoop
from .world import World

#: Workers of a loader whose epochs can be counted.
MOST_WORKERS = 1024


class RecordBatches(torch.utils.data.IterableDataset):
    """The batches of a provider, for ``DataLoader(dataset, batch_size=None)`` or a plain loop.

    ``num_workers=0`` is the fast way: a provider decodes with threads, and its batches need not be
    sent from one process to another.  With workers, each reads a part of its own, and a warning
    says so once.

    Parameters
    ----------
    make : callable or provider
        A class of providers, or a function that makes one from keywords: it is called with
        `arguments`, and with ``num_parts``, ``part_index`` and `even` when there are several parts:
        ``even=True`` under several ranks, and "balanced" in workers or with ``even=False``.  Or a
        provider, which is used as it is: it has been made for its part, and cannot be used in
        workers.
    rank, world_size : int, optional
        The part of the data for this process.  By default, rank and world size are those of
        `torch.distributed` if it is initialised; else the environment's ``RANK`` and
        ``WORLD_SIZE``, which torchrun sets; else 0 and 1.  They may not change once a loop, `len`,
        `world` or a state has used them.
    convert : callable, optional
        Function that turns a `DataBatch` into the delivered object; by default a tuple of its data
        and label arrays as tensors, without the padding of a last batch.
    epoch : int
        Number of the first epoch.
    **arguments
        Passed on to `make`.

    Notes
    -----
    Each loop is the next epoch, also with workers that start again for every loop; `set_epoch` sets
    the number of the next one, and is not needed for shuffling.  Under several ranks each has as
    many batches as any other, a few samples at the end of an epoch being delivered twice; pass
    ``even=False`` to have every sample once, and batches that differ in number by one at most.

    `state_dict` gives the position of the run after every batch.  A state may be loaded under
    another world size if the provider shuffles.  With workers, torchdata's ``StatefulDataLoader``
    gathers the states of all of them and needs as many workers to go on.

    Examples
    --------
    >>> import numpy as np
    >>> from iterators import ArrayDataProvider
    >>> dataset = RecordBatches(ArrayDataProvider, data=np.arange(5.0), batch_size=2)
    >>> [batch[0].tolist() for batch in dataset]
    [[0.0, 1.0], [2.0, 3.0], [4.0]]
    >>> dataset.state_dict()["epoch"], len(dataset)
    (1, 3)
    """

    def __init__(
        self,
        make: Callable[..., Any] | AbstractDataProvider,
        *,
        rank: int | None = None,
        world_size: int | None = None,
        convert: Callable[[DataBatch], Any] | None = None,
        epoch: int = 0,
        **arguments: Any,
    ) -> None:
        self._world = World(rank, world_size)
        self._given: AbstractDataProvider | None = None
        if isinstance(make, AbstractDataProvider):
            if arguments or rank is not None:
                names = ", ".join([*arguments, *(["rank"] if rank is not None else [])])
                raise TypeError(f"{names}: a provider that exists cannot be given parameters")
            self._given = make
        elif not callable(make):
            raise TypeError(f"{make!r} is neither a provider nor makes one")
        for name in ("num_parts", "part_index"):
            if name in arguments:
                raise TypeError(f"{name} follows from rank, world_size and the workers")
        self._make = make
        self._arguments = arguments
        self._convert = convert or tensors
        # The first epoch, then how many loops each worker has begun since: shared, because the
        # workers of a loop are gone when the next one begins.
        self._loops = torch.zeros(1 + MOST_WORKERS, dtype=torch.int64).share_memory_()
        self._loops[0] = integer("epoch", epoch, low=0)
        self._provider: AbstractDataProvider | None = None
        self._provider_of: tuple[int, int, int] | None = None  # process, part, parts
        self._resume: dict[str, Any] | None = None
        self._epoch = int(self._loops[0])
        self._running = False  # a loop of this process has begun and not ended
        self._length: tuple[tuple[int, int], int] | None = None
        self._reported = EpochReport()  # of a provider that was closed

    @property
    def world(self) -> tuple[int, int]:
        """Rank and world size."""
        return self._world.get()

    @property
    def epoch(self) -> int:
        """Number of the running epoch; between loops, of the next one."""
        return self._epoch

    # -- parts ------------------------------------------------------------------------------------

    def _part(self) -> tuple[int, int, int]:
        """Return the number of this worker, of its part, and of all parts."""
        rank, world_size = (0, 1) if self._given is not None else self.world
        info = torch.utils.data.get_worker_info()
        if info is None:
            return 0, rank, world_size
        return info.id, rank * info.num_workers + info.id, world_size * info.num_workers

    def _made(self, part: int, parts: int, ranks: int) -> AbstractDataProvider:
        keywords = dict(self._arguments)
        if parts > 1:
            keywords.update(num_parts=parts, part_index=part)
            # Batches of buckets and of patches are as many for all parts by themselves.
            if not any(keywords.get(name) for name in ("buckets", "patches")):
                if ranks > 1 or _takes(self._make, "even"):
                    keywords.setdefault("even", ranks > 1)
                if "even" in keywords:
                    keywords["even"] = evenness("even", keywords["even"]) or "balanced"
        assert not isinstance(self._make, AbstractDataProvider)
        return self._make(**keywords)

    def _own_provider(self) -> tuple[int, AbstractDataProvider]:
        """Return the number of this worker and its provider, made in this process."""
        worker, part, parts = self._part()
        if self._given is not None:
            if torch.utils.data.get_worker_info() is not None:
                raise RuntimeError(
                    "a provider that exists cannot be used in a worker: pass what makes it, as in "
                    "RecordBatches(ImageRecordIter, path_imgrec=...), or use num_workers=0"
                )
            return worker, self._given
        if worker >= MOST_WORKERS:
            raise ValueError(f"no more than {MOST_WORKERS} workers are supported")
        key = os.getpid(), part, parts
        if self._provider is None or self._provider_of != key:
            info = torch.utils.data.get_worker_info()
            if info is not None and info.id == 0:
                warnings.warn(
                    f"{info.num_workers} workers read a part of the records each; num_workers=0 is "
                    "faster, because providers decode with threads",
                    UserWarning,
                    stacklevel=3,
                )
            self._provider, self._provider_of = self._made(part, parts, self.world[1]), key
        return worker, self._provider

    # -- loops ------------------------------------------------------------------------------------

    def set_epoch(self, epoch: int) -> None:
        """Set the number of the next epoch, also for workers that are already running.

        After a state of that same epoch was loaded, the rest of the epoch is still delivered.
        """
        epoch = integer("epoch", epoch, low=0)
        if self._resume is not None and self._resume["epoch"] == epoch:
            return
        self._loops[1:] = 0
        self._loops[0] = epoch
        self._resume = None
        self._running = False
        self._epoch = int(self._loops[0])

    def __iter__(self) -> Iterator[Any]:
        # A loop counts from its first batch on: loaders ask for iterators that they do not use.
        return LazyLoop(self._begin)

    def _begin(self) -> Callable[[], tuple[Any] | None]:
        """Begin an epoch, or the rest of one; returns what makes the next batch of it."""
        worker, provider = self._own_provider()
        resume, self._resume = self._resume, None
        if resume is not None:
            epoch = resume["epoch"]
            provider.load_state_dict(resume["provider"])
        else:
            epoch = int(self._loops[0] + self._loops[1 + worker])
            if not begin_epoch(provider, epoch):
                raise ValueError(
                    f"{type(provider).__name__} cannot begin with epoch {epoch}: it has no epoch "
                    "that could be set"
                )
        self._loops[1 + worker] = epoch + 1 - self._loops[0]
        self._epoch, self._running = epoch, True
        # If its last batch had been delivered when it was saved, nothing is left of the epoch.
        phase = "collate" if self._convert is tensors else "python"
        convert = provider._provider_times.timing(phase, self._convert)
        over = resume is not None and resume["provider"].get("epoch", epoch) > epoch
        batches: Iterator[DataBatch] = iter(()) if over else iter(provider)

        def step() -> tuple[Any] | None:
            batch = next(batches, None)
            if batch is not None:
                return (convert(batch),)
            self._epoch, self._running = epoch + 1, False
            return None

        return step

    def __len__(self) -> int:
        """Return the batches of an epoch of this rank; workers may add a few short ones."""
        if self._given is not None:
            return len(self._given)  # type: ignore[arg-type]
        if self._provider is not None and self._provider_of == (os.getpid(), *self.world):
            return len(self._provider)  # type: ignore[arg-type]
        world = self._world.expected()
        if self._length is None or self._length[0] != world:
            provider = self._made(*world, world[1])
            self._length = world, len(provider)  # type: ignore[arg-type]
            provider.close()
        return self._length[1]

    def report(self, advise: bool = True) -> EpochReport:
        """Return where the time of the last epoch went, or of the running one so far.

        The parameter is that of a provider's `report`.  Epochs of the workers of a ``DataLoader``
        are theirs: here there are 0 images.
        """
        provider = self._given or self._provider
        return self._reported if provider is None else provider.report(advise)

    # -- states -----------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return the position of the run: the number of the epoch and the state of the provider.

        Raises
        ------
        RuntimeError
            If the batches are delivered by workers, whose states are not known here.
        """
        if self._resume is not None:
            return dict(self._resume)
        worker, provider = self._own_provider()
        elsewhere = torch.utils.data.get_worker_info() is None and bool(self._loops[1:].any())
        if elsewhere and not self._running and self._epoch == self._loops[0]:
            raise RuntimeError(
                "the batches are delivered by workers of a DataLoader: use num_workers=0, or "
                "torchdata's StatefulDataLoader and its state_dict()"
            )
        if not self._running:
            epoch = int(self._loops[0] + self._loops[1 + worker])
            begin_epoch(provider, epoch)
            return {"epoch": epoch, "provider": provider.state_dict()}
        return {"epoch": self._epoch, "provider": provider.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a saved state; the next loop delivers the rest of that epoch.

        Raises
        ------
        ValueError
            If the state is incomplete or belongs to other data.
        """
        if not {"epoch", "provider"} <= set(state):
            raise ValueError("the state is incomplete: it needs epoch and provider")
        epoch = integer("epoch", state["epoch"], low=0)
        _, provider = self._own_provider()
        provider.load_state_dict(state["provider"])  # here, so that a wrong one is refused here
        self._resume = {"epoch": epoch, "provider": state["provider"]}
        self._running = False
        self._epoch = epoch

    # -- life -------------------------------------------------------------------------------------

    def close(self) -> None:
        """Stop the threads of the provider in this process; the next loop makes a new one."""
        provider, self._provider = self._provider, None
        if provider is not None and self._provider_of and self._provider_of[0] == os.getpid():
            self._reported = provider.report(advise=False)
            provider.close()
        if self._given is not None:
            self._given.close()

    def __repr__(self) -> str:
        made = repr(self._given)
        if self._given is None:
            keywords = ", ".join(f"{name}={_told(v)}" for name, v in self._arguments.items())
            made = f"{getattr(self._make, '__name__', type(self._make).__name__)}({keywords})"
        rank, world_size = self._world.used or (0, 1)
        part = f", rank {rank} of {world_size}" if world_size > 1 else ""
        return f"<{type(self).__name__} of {made}{part}, epoch {self._epoch}>"

    def __getstate__(self) -> dict[str, Any]:
        """Return everything but the provider."""
        if self._given is not None:
            raise TypeError(
                "a provider that exists cannot be sent to another process: pass what makes it, as "
                "in RecordBatches(ImageRecordIter, path_imgrec=...), or use num_workers=0"
            )
        return {
            **self.__dict__,
            "_provider": None,
            "_provider_of": None,
            "_running": False,
        }


def _takes(make: Any, name: str) -> bool:
    """Return whether a keyword can be given."""
    try:
        parameters = inspect.signature(make).parameters
    except (TypeError, ValueError):  # of a builtin
        return False
    return name in parameters or any(one.kind is one.VAR_KEYWORD for one in parameters.values())


def _told(value: Any) -> str:
    """Show a parameter in a line of text: arrays by their shape, URLs without their secrets."""
    if isinstance(value, (str, os.PathLike)):
        return repr(redacted_url(str(value)))
    if isinstance(value, (list, tuple)):
        return f"({', '.join(map(_told, value[:4]))}{', ...' * (len(value) > 4)})"
    if hasattr(value, "shape"):
        return f"<{shape_text('', value.shape, getattr(value, 'dtype', None))}>"
    plain = value is None or isinstance(value, (bool, int, float))
    return repr(value) if plain else f"<{type(value).__name__}>"


def begin_epoch(provider: AbstractDataProvider, epoch: int) -> bool:
    """Make the next loop over a provider that epoch, from its start; False if it cannot be."""
    if getattr(provider, "epoch", None) == epoch - 1:
        provider.reset()  # unlike `set_epoch`, this keeps samples that roll over
    if getattr(provider, "epoch", None) == epoch and provider._provider_asked is False:
        return True
    try:
        provider.set_epoch(epoch)
    except TypeError:  # it goes on as it does by itself
        provider.reset()
        return getattr(provider, "epoch", epoch) == epoch
    return True


def tensors(batch: DataBatch) -> tuple[torch.Tensor, ...]:
    """Return data and label arrays of a batch as tensors, without padding."""
    arrays = [*batch.data, *batch.label]
    if batch.pad:
        parts = (batch.data, batch.provide_data), (batch.label, batch.provide_label)
        arrays = [
            _first_samples(array, desc, batch.count)
            for part, descriptions in parts
            for array, desc in zip(part, descriptions or [None] * len(part), strict=True)
        ]
    return tuple(
        [as_tensor(torch, image) for image in array]
        if isinstance(array, list)
        else as_tensor(torch, array)
        for array in arrays
    )


def _first_samples(array: Any, desc: Any, count: int) -> Any:
    """Return the first samples of an array, or of a list of images."""
    return array[:count] if isinstance(array, list) else first_samples(array, desc, count)
