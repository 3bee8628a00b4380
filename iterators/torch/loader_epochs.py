"""The samples of every batch of an epoch of `ImageLoader`: in an order of ours, or a sampler's.

Nothing is read here.  Positions are counted as `iterators.core.order` counts them.
"""

from __future__ import annotations

import base64
import itertools
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol

import numpy as np
import torch

from ..core.order import BatchPlan, DealtOrder, PlainOrder, ShuffledOrder, Tail, check_of
from ..core.order.cutting import count_batches, pieces
from ..providers.engine import ChosenBatch
from .world import World


class Epochs(Protocol):
    """The batches of every epoch."""

    @property
    def largest(self) -> int:
        """Samples of the largest batch of the epoch that was begun."""

    def batch_count(self, epoch: int) -> int:
        """Return the batches of an epoch."""

    def begin(self, epoch: int, saved: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Begin an epoch, as it was `saved`; returns what has to be saved of it."""

    def saved(self) -> dict[str, Any]:
        """Return what the epoch that comes next depends on."""

    def set_epoch(self, epoch: int) -> None:
        """Say which epoch comes next."""

    def batches(self, epoch: int, done: int) -> Iterator[ChosenBatch]:
        """Yield the batches behind the first `done` positions of the epoch that was begun."""

    def draws(self, done: int) -> Iterator[int] | None:
        """Yield what tells copies of a sample apart, behind `done` positions; None if none is."""

    def described(self) -> dict[str, str]:
        """Return what a saved state must agree with."""


#: Indices of an epoch that every sampler may give, and that none may.
LEAST_ENDLESS, MOST_DRAWN = 1 << 20, 1 << 28
#: ``cut(order, batch_size, tail)`` cuts epochs into batches.
Cut = Callable[[DealtOrder, int, Tail], BatchPlan]


class OrderedEpochs:
    """All samples once, as they lie or in a new permutation, dealt to the ranks of a `world`."""

    def __init__(
        self,
        count: int,
        batch_size: int,
        world: World,
        *,
        shuffle: bool,
        seed: int,
        even: bool,
        tail: Tail,
        cut: Cut = BatchPlan,
    ) -> None:
        self._count = count
        self.largest: int = batch_size
        self._world = world
        self._whole = ShuffledOrder(count, seed) if shuffle else PlainOrder(count)
        self._even, self._tail = even, tail
        self._seed, self._cut = seed, cut
        self._made: BatchPlan | None = None

    def _plan(self) -> BatchPlan:
        rank, ranks = self._world.get()
        if self._made is None:
            self._made = self._plan_for(rank, ranks)
        return self._made

    def _plan_for(self, rank: int, ranks: int) -> BatchPlan:
        """Make the plan of a rank."""
        order = DealtOrder(self._whole, ranks, rank, self._even and ranks > 1)
        plan = self._cut(order, self.largest, self._tail)
        if plan.fills and ranks > 1 and not self._even:
            raise ValueError(
                "even=False would leave some ranks without an image at some steps: drop it, or "
                "use RecordBatches(ImageRecordIter, ...), whose batches count their padding"
            )
        return plan

    def _expected(self) -> BatchPlan:
        """Return the plan by what is known of the ranks, which may be nothing yet."""
        return self._made or self._plan_for(*self._world.expected())

    def batch_count(self, epoch: int) -> int:
        """Return the batches of an epoch."""
        return self._expected().batches(0, epoch)

    def samples(self, epoch: int) -> int:
        """Return the samples of this rank in the batches of an epoch."""
        plan = self._expected()
        count = plan.count(epoch)
        return count if plan.fills else min(count, len(plan) * plan.batch_size)

    def begin(self, epoch: int, saved: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Begin an epoch: its order follows from its number, and from how many ranks began."""
        if saved:
            self._made = self._plan().resumed(saved)
        return self.saved()

    def saved(self) -> dict[str, Any]:
        """Return how many ranks began, if that counts."""
        return {} if self._cut is BatchPlan else dict(self._plan().state())

    def set_epoch(self, epoch: int) -> None:
        """Do nothing: `batches` is told."""

    def batches(self, epoch: int, done: int) -> Iterator[ChosenBatch]:
        """Yield the batches behind the first `done` positions."""
        plan = self._plan()
        while plan.any_left(done, epoch):
            rows, _ = plan.rows(epoch, 0, done)
            draws = plan.draws(0, done, epoch) if plan.shaped else None
            after = plan.behind(epoch, done)
            yield ChosenBatch(rows, draws, done=after, **shape_of(plan, epoch, 0, done, rows))
            done = after

    def draws(self, done: int) -> None:
        """Return nothing: a sample comes once, or unchanged to make ranks even."""

    def described(self) -> dict[str, str]:
        """Return samples, order and seed; the number of ranks may change."""
        return {
            "samples": str(self._count),
            "order": self._whole.described(),
            "seed": str(self._seed),
            "batch_size": str(self.largest),
        }


class LoaderSampler:
    """Stand at ``loader.sampler`` for the order that a loader makes itself."""

    def __init__(self, loader: Any, epochs: OrderedEpochs) -> None:
        self._loader, self._epochs = loader, epochs

    def __len__(self) -> int:
        return self._epochs.samples(self._loader.epoch)

    def __iter__(self) -> Iterator[int]:
        self._loader._agree()
        for batch in self._loader._epochs.batches(self._loader.epoch, 0):
            yield from batch.rows.tolist()

    def set_epoch(self, epoch: int) -> None:
        """Say which epoch the next loop of the loader is."""
        self._loader.set_epoch(epoch)


class SampledEpochs:
    """The samples of this rank as a sampler gives them, one by one or whole batches at a time.

    The samples of an epoch are drawn when it begins.  So that a run can go on in the middle of it,
    what they depend on is saved: the epoch of the sampler, its generator, or torch's own.
    """

    def __init__(
        self,
        count: int,
        sampler: Iterable[Any],
        batch_size: int | None,
        drop_last: bool,
        world: World,
        cut: Cut = BatchPlan,
        seed: int = 0,
    ) -> None:
        """Batches of `batch_size`; of a sampler that gives whole batches if that is None."""
        self._world, self._seed = world, seed
        self._count, self._sampler, self._plan = count, sampler, cut
        self._size, self._drop_last = batch_size, drop_last
        self._drawn: list[np.ndarray] = []
        self.largest: int = batch_size or 1

    def batch_count(self, epoch: int) -> int:
        """Return the batches of an epoch."""
        count = len(self._sampler)  # type: ignore[arg-type]
        if self._size is None:
            return count
        return count_batches(count, self._size, "drop" if self._drop_last else "pad")

    def begin(self, epoch: int, saved: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Draw the samples of an epoch; a ValueError if they are not those that were saved."""
        if not saved:
            before = self.saved()
            indices = self._given()
        else:
            before = {name: value for name, value in saved.items() if name != "check"}
            with torch.random.fork_rng(devices=[]):
                _restore(self._sampler, before)
                indices = self._given()
        self._drawn = self._cut(indices)
        self.largest = max(map(len, self._drawn), default=1)
        check = check_of(*self._drawn)
        if saved and saved.get("check", check) != check:
            raise ValueError(
                f"{type(self._sampler).__name__} does not give the samples of the epoch that was "
                "saved: it needs a generator, set_epoch, or state_dict and load_state_dict"
            )
        return {**before, "check": check}

    def _given(self) -> list[Any]:
        """Ask the sampler for an epoch; one without an end is an error.

        A len() may be an estimate, so that only what is far beyond it counts as endless.  Where
        it says that there is no end, or nearly so, memory sets the limit.
        """
        most = 16 * max(operator.length_hint(self._sampler), self._count)
        most = min(max(most, LEAST_ENDLESS), MOST_DRAWN)
        indices = list(itertools.islice(self._sampler, most + 1))
        if len(indices) > most:
            raise ValueError(
                f"{type(self._sampler).__name__} gives more than {most} indices or batches, far "
                "more than it or the data set has: an epoch is drawn when it begins, so its "
                "__iter__ has to end after an epoch"
            )
        return indices

    def saved(self) -> dict[str, Any]:
        """Return what the epoch that comes next depends on."""
        return _saved(self._sampler)

    def set_epoch(self, epoch: int) -> None:
        """Tell the sampler, if it wants to know."""
        for one in _inner(self._sampler):
            if hasattr(one, "set_epoch"):
                one.set_epoch(epoch)

    def _cut(self, indices: list[Any]) -> list[np.ndarray]:
        name = type(self._sampler).__name__
        if self._size is None:
            batches = [table(name, batch) for batch in indices]
        else:
            batches = list(pieces(table(name, indices), self._size))
            if self._drop_last:
                batches = [batch for batch in batches if len(batch) == self._size]
        for batch in batches:
            if len(batch) and not 0 <= batch.min() <= batch.max() < self._count:
                wrong = next(i for i in batch.tolist() if not 0 <= i < self._count)
                raise IndexError(
                    f"{name} gives the index {wrong}: the data set has {self._count} samples"
                )
        return [batch for batch in batches if len(batch)]

    def batches(self, epoch: int, done: int) -> Iterator[ChosenBatch]:
        """Yield the batches behind the first `done` samples."""
        behind = 0
        plan = self._plan(DealtOrder(PlainOrder(self._count)), self.largest, "pad")
        for number, rows in enumerate(self._drawn):
            behind += len(rows)
            if behind > done:
                yield ChosenBatch(rows, done=behind, **shape_of(plan, epoch, number, 0, rows))

    def draws(self, done: int) -> Iterator[int]:
        """Yield the position of every sample in the epoch, as samplers deal it out to the ranks."""
        rank, ranks = self._world.expected()
        return itertools.count(done * ranks + rank, ranks)

    def described(self) -> dict[str, str]:
        """Return seed and kind of the sampler; what it gave is compared epoch by epoch."""
        size = "its own" if self._size is None else str(self._size)
        return {
            "samples": str(self._count),
            "order": type(self._sampler).__name__,
            "seed": str(self._seed),
            "batch_size": size,
        }


def shape_of(
    plan: BatchPlan, epoch: int, number: int, done: int, rows: np.ndarray
) -> dict[str, Any]:
    """Return what `ChosenBatch` is told of the shape of a batch, and of what may stand in."""
    if not plan.shaped:
        return {}
    sizes = plan.sizes(epoch, number, done, rows)
    own_sizes = np.ndim(sizes) == 2
    length = plan.length(epoch, number, done)

    def others(slot: int) -> Iterator[tuple[Any, ...]]:
        following = range(slot + 1, slot + 1 + plan.others(epoch, done))
        for at in following:
            record = plan.record(epoch, at, done)
            size = plan.sizes(epoch, number, done, np.array([record]))[:1] if own_sizes else ()
            yield record, *size

    own = sizes[: len(rows)] if own_sizes else sizes
    return {"shape": (own, len(rows), *([length] if length else [])), "others": others}


def table(name: str, indices: Any) -> np.ndarray:
    """Return numbers of samples, which may be tensors, as an array."""
    try:
        return np.fromiter(map(operator.index, indices), np.int64, len(indices))
    except (TypeError, OverflowError) as error:
        raise TypeError(f"{name} gives an index that is not an integer: {error}") from None


def _inner(sampler: Any) -> Iterator[Any]:
    """Yield a sampler, and those that it stands on."""
    while sampler is not None:
        yield sampler
        sampler = getattr(sampler, "sampler", None)


def _saved(sampler: Any) -> dict[str, Any]:
    """Return what the samples that come next depend on."""
    state: dict[str, Any] = {}
    for one in _inner(sampler):
        if hasattr(one, "state_dict") and hasattr(one, "load_state_dict"):
            return {"sampler": one.state_dict()}
        if hasattr(one, "set_epoch") and hasattr(one, "epoch"):
            state["epoch"] = one.epoch
        elif isinstance(getattr(one, "generator", None), torch.Generator):
            state["generator"] = _text(one.generator.get_state())
    return state or {"torch": _text(torch.get_rng_state())}


def _restore(sampler: Any, saved: Mapping[str, Any]) -> None:
    """Undo what has happened to a sampler since it was saved."""
    for one in _inner(sampler):
        if "sampler" in saved and hasattr(one, "load_state_dict"):
            one.load_state_dict(saved["sampler"])
            return
        if "epoch" in saved and hasattr(one, "set_epoch"):
            one.set_epoch(saved["epoch"])
        elif "generator" in saved and isinstance(getattr(one, "generator", None), torch.Generator):
            one.generator.set_state(_state(saved["generator"]))
    if "torch" in saved:
        torch.set_rng_state(_state(saved["torch"]))


def _text(state: torch.Tensor) -> str:
    """The state of a generator as a text, which JSON can hold."""
    return base64.b64encode(state.numpy().tobytes()).decode()


def _state(text: str) -> torch.Tensor:
    return torch.frombuffer(bytearray(base64.b64decode(text)), dtype=torch.uint8)
