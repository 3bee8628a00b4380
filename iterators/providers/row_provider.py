"""What all providers over numbered rows share: arrays, MNIST, CSV and LibSVM files.

`RowOptions` checks the keywords they have in common and makes orders of them; `RowProvider` joins
an order and a source that makes batches of rows.  Neither knows where rows come from.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from recordio.partition import part_by_count

from ..core.batch import DataDesc
from ..core.device import Placement, placement
from ..core.order import BatchPlan, DealtOrder, Order, SequentialOrder, ShuffledOrder
from ..core.parameters import boolean, choice, integer, unknown_keyword
from ..core.prefetch import Prefetcher
from .batch_form import BatchForm
from .planned import PlannedProvider

__all__ = ["PartRule", "RowOptions", "RowProvider", "RowSource"]

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

    @classmethod
    def of(
        cls, provider: object, unknown: Iterable[str], ctx: str = "cpu", **keywords: Any
    ) -> RowOptions:
        """The options of a provider that is being made.

        Parameters
        ----------
        provider : object
            Its constructor says which keywords there are.
        unknown : iterable of str
            Keywords that it got and does not have.
        ctx : {"cpu", "gpu"}
            What scripts for MXNet pass; it says nothing here.
        **keywords
            The fields.

        Raises
        ------
        TypeError
            For the first of `unknown`, with the closest keyword that exists.
        """
        for name in unknown:
            known = inspect.signature(type(provider).__init__).parameters
            raise unknown_keyword(type(provider).__name__, name, [*known][1:-1])
        choice("ctx", ctx, ("cpu", "gpu"))
        return cls(**keywords)

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
        self.on_error = choice("on_error", self.on_error, ("raise", "skip"))
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


class RowSource(Protocol):
    """Makes batches of rows that are asked for by number."""

    def __len__(self) -> int:
        """Number of rows."""

    def prepare(self, batch_size: int, depth: int, allocate: Callable[[int], Any] | None) -> None:
        """Get ready for batches of that size, `depth` of them under way."""

    def describe(self) -> tuple[list[DataDesc], list[DataDesc]]:
        """What the data and label arrays of a batch look like."""

    def threads(self) -> int:
        """How many threads should make batches; 0 if handing them over would cost more."""

    def settings(self) -> Mapping[str, Any]:
        """What a saved state must agree with."""

    def __call__(self, rows: np.ndarray, epoch: int) -> tuple[list, list, np.ndarray, list]:
        """Data, labels, row numbers and failed slots of a batch; see `Prefetcher`."""

    def replace(self, row: int, data: list, label: list, ids: np.ndarray, slot: int) -> None:
        """Put another row into a slot of a batch, or raise what is wrong with that row."""

    def close(self) -> None:
        """End background work; called after the last batch."""


class RowProvider(PlannedProvider):
    """A provider whose samples are numbered rows of a source.

    Parameters
    ----------
    source : RowSource
        What makes batches of rows.
    plan : BatchPlan
        Which rows make up which batch.
    options : RowOptions
        The common keywords.
    **settings
        What a saved state must agree with, beyond the order, the batches and the source.
    """

    def __init__(
        self, source: RowSource, plan: BatchPlan, options: RowOptions, **settings: Any
    ) -> None:
        order = plan.order
        if isinstance(order, SequentialOrder):
            described = f"rows {order.first} to {order.last}"
        else:
            described = f"shuffled, seed {options.seed}"
        source.prepare(plan.batch_size, options.prefetch_buffer, options.place.allocate)
        data_desc, label_desc = source.describe()
        super().__init__(
            plan,
            Prefetcher(
                source,
                options.prefetch_buffer,
                threads=min(source.threads(), options.prefetch_buffer),
                replace=source.replace,
                finish=source.close,
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
                **source.settings(),
                **settings,
            },
        )
