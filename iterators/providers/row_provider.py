"""Providers over numbered rows: arrays, MNIST, CSV and LibSVM files.

`order_of_rows` takes an order's options out of their keywords; `RowProvider` joins an order and a
source that makes batches of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol

import numpy as np

from recordio.keywords.options import refuse_ineffective, warn_of_ineffective
from recordio.partition import part_by_count

from ..core.batch import DataDesc
from ..core.device import placement
from ..core.order import BatchPlan, Order, PartRule, SequentialOrder, make_order
from ..core.prefetch import Prefetcher
from .batch_form import BatchForm
from .planned import PlannedProvider
from .provider_options import ProviderOptions

#: The keywords that say which row comes when.
ORDER = ("shuffle", "seed", "num_parts", "part_index", "even")


def order_of_rows(options: ProviderOptions, count: int, rule: PartRule = part_by_count) -> Order:
    """Return the order of `count` rows of all parts, as the part that is asked for sees it."""
    return make_order(count, rule, **options.values(*ORDER))


class RowSource(Protocol):
    """Makes batches of rows that are asked for by number."""

    def __len__(self) -> int:
        """Number of rows."""

    def prepare(self, batch_size: int, depth: int, allocate: Callable[[int], Any] | None) -> None:
        """Get ready for batches of that size, `depth` of them under way."""

    def describe(self) -> tuple[list[DataDesc], list[DataDesc]]:
        """Describe the data and label arrays of a batch."""

    def threads(self) -> int:
        """Count the threads that should make batches; 0 if handing them over would cost more."""

    def settings(self) -> Mapping[str, Any]:
        """Return what a saved state must agree with."""

    def __call__(
        self, rows: np.ndarray, epoch: int
    ) -> tuple[list[Any], list[Any], np.ndarray, list[Any]]:
        """Data, labels, row numbers and failed slots of a batch; see `Prefetcher`."""

    def replace(
        self, row: int, data: list[Any], label: list[Any], ids: np.ndarray, slot: int
    ) -> None:
        """Put another row into a slot of a batch, or raise what is wrong with that row."""

    def another(self) -> RowSource:
        """A source of the same rows with batches of its own, to be closed before this one."""

    def close(self) -> None:
        """End background work; called after the last batch."""


def make_engine(
    allocate: Callable[[int], Any] | None, source: RowSource, batch_size: int, depth: int
) -> Prefetcher:
    """Make an engine of a source, which belongs to it, in memory from `allocate`."""
    source.prepare(batch_size, depth, allocate)
    return Prefetcher(
        source,
        depth,
        threads=min(source.threads(), depth),
        replace=source.replace,
        finish=source.close,
        name="row-provider",
    )


class RowProvider(PlannedProvider):
    """A provider whose samples are numbered rows of a source.

    Parameters
    ----------
    source : RowSource
        What makes batches of rows.
    plan : BatchPlan
        Which rows make up which batch.
    options : ProviderOptions
        The keywords of the provider.
    """

    def __init__(self, source: RowSource, plan: BatchPlan, options: ProviderOptions) -> None:
        refuse_ineffective(options)
        warn_of_ineffective(options)
        described = plan.order.described()
        if isinstance(plan.order, SequentialOrder):
            described = f"rows {described}"
        else:
            described = f"{described}, seed {options.seed}"
        device = placement(options.device, ring=options.prefetch_buffer)
        make = partial(make_engine, device.allocate)
        engine = make(source, plan.batch_size, options.prefetch_buffer)
        data_desc, label_desc = source.describe()
        form = None
        if options.data_specs is not None:
            names = ([desc.name for desc in part] for part in (data_desc, label_desc))
            form = BatchForm(options.data_specs, *names)
        super().__init__(
            plan,
            engine,
            lambda batch_size, depth: make(source.another(), batch_size, depth),
            data_desc,
            label_desc,
            device,
            options.epoch,
            on_error=options.on_error,
            error_budget=options.error_budget,
            form=form,
            settings={
                "order": described,
                "batch_size": plan.batch_size,
                "tail": plan.tail,
                **source.settings(),
                **options.saved(),
            },
        )
