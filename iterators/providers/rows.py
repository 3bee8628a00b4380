"""What all providers over numbered rows share: arrays, MNIST, CSV and LibSVM files.

`RowOptions` checks the keywords they have in common and makes orders of them; `RowProvider` joins
an order and a function that makes batches of rows.  Neither knows where rows come from.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from recordio.partition import part_by_count

from ..core.batch import DataDesc
from ..core.device import Placement, placement
from ..core.order import BatchPlan, DealtOrder, Order, SequentialOrder, ShuffledOrder
from ..core.parameters import boolean, integer, unknown_keyword
from ..core.prefetch import Prefetcher
from .base import PlannedProvider
from .forms import BatchForm

__all__ = ["PartRule", "RowOptions", "RowProvider", "refuse_unknown"]

#: ``rule(count, num_parts, part_index)`` -> the rows of a part when nothing is shuffled.
PartRule = Callable[[int, int, int], range]


@dataclass
class RowOptions:
    """Keywords that all providers over rows understand, checked.

    Parameters
    ----------
    num_parts, part_index : int
        Which part of the rows.
    even : bool
        Whether all parts get the same number of places.
    shuffle : bool
        Whether every epoch is a new permutation.
    seed : int
        Determines the permutations.
    prefetch_buffer : int
        Batches made ahead.
    device : object
        Where batches go.
    epoch : int
        Number of the first epoch.
    on_error : str
        "raise" or "skip".
    error_budget : int or float, optional
        Rows that may be skipped.
    data_specs : (Space, source), optional
        What batches must look like.

    Examples
    --------
    >>> options = RowOptions(num_parts=2, part_index=1)
    >>> options.order(5)
    SequentialOrder(first=3, last=5, places=None, size=None)
    """

    num_parts: int = 1
    part_index: int = 0
    even: bool = False
    shuffle: bool = False
    seed: int = 0
    prefetch_buffer: int = 4
    device: Any = None
    epoch: int = 0
    on_error: str = "raise"
    error_budget: float | None = None
    data_specs: Any = None
    place: Placement = field(init=False)

    def __post_init__(self) -> None:
        self.num_parts = integer("num_parts", self.num_parts, low=1)
        self.part_index = integer("part_index", self.part_index, low=0)
        if self.part_index >= self.num_parts:
            raise ValueError(
                f"part_index={self.part_index}: expected a number below num_parts={self.num_parts}"
            )
        self.even = boolean("even", self.even)
        self.shuffle = boolean("shuffle", self.shuffle)
        self.seed = integer("seed", self.seed)
        self.prefetch_buffer = integer("prefetch_buffer", self.prefetch_buffer, low=1)
        self.epoch = integer("epoch", self.epoch, low=0)
        self.place = placement(self.device, ring=self.prefetch_buffer)

    def order(self, count: int, rule: PartRule = part_by_count) -> Order:
        """The order of `count` rows of all parts, as this part sees it."""
        if self.shuffle:
            return DealtOrder(
                ShuffledOrder(count, self.seed), self.num_parts, self.part_index, self.even
            )
        mine = rule(count, self.num_parts, self.part_index)
        if not self.even:
            return SequentialOrder(mine.start, mine.stop)
        places = max(len(rule(count, self.num_parts, k)) for k in range(self.num_parts))
        return SequentialOrder(mine.start, mine.stop, places, count)

    def form(self, data: Sequence[DataDesc], label: Sequence[DataDesc]) -> BatchForm | None:
        """The form that is asked for of these arrays."""
        if self.data_specs is None:
            return None
        return BatchForm(
            self.data_specs, [desc.name for desc in data], [desc.name for desc in label]
        )


class RowProvider(PlannedProvider):
    """A provider whose samples are numbered rows, made into batches by a function.

    Parameters
    ----------
    plan : BatchPlan
        Which rows make up which batch.
    produce : callable
        ``produce(rows, epoch)`` -> ``(data, label, ids, failures)``; see `Prefetcher`.
    data_desc, label_desc : list of DataDesc
        The arrays of a batch.
    options : RowOptions
        The common keywords.
    settings : mapping
        What a saved state must agree with, beyond the order and the batches.
    threads : int
        Threads that make batches.
    finish : callable, optional
        Called when the provider is closed.
    """

    def __init__(
        self,
        plan: BatchPlan,
        produce: Callable[[np.ndarray, int], tuple[Any, Any, Any, list]],
        data_desc: list[DataDesc],
        label_desc: list[DataDesc],
        options: RowOptions,
        *,
        settings: Mapping[str, Any],
        threads: int = 1,
        finish: Callable[[], None] | None = None,
    ) -> None:
        order = plan.order
        if isinstance(order, SequentialOrder):
            described = f"rows {order.first} to {order.last}"
        else:
            described = f"shuffled, seed {options.seed}"
        super().__init__(
            plan,
            Prefetcher(
                produce,
                options.prefetch_buffer,
                threads=min(threads, options.prefetch_buffer),
                finish=finish,
                name="row-provider",
            ),
            data_desc,
            label_desc,
            options.place,
            options.epoch,
            on_error=options.on_error,
            error_budget=options.error_budget,
            form=options.form(data_desc, label_desc),
            settings={
                "order": described,
                "batch_size": plan.batch_size,
                "tail": plan.tail,
                **settings,
            },
        )


def refuse_unknown(provider: object, unknown: Iterable[str]) -> None:
    """Raise the TypeError for keywords that the constructor of a provider does not have."""
    for name in unknown:
        known = inspect.signature(type(provider).__init__).parameters
        raise unknown_keyword(type(provider).__name__, name, [*known][1:-1])
