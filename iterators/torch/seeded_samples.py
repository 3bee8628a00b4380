"""Samples of a data set in Python that draws random numbers, each with a seed of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ..core.example_seeds import kept_generators, seed_generators
from ..loops.iterator import fetch

__all__ = ["SampleRequest", "seeded_batches"]


class SampleRequest(NamedTuple):
    """A sample that is to be made."""

    index: int
    epoch: int
    seed: int


def seeded_batches(
    dataset: Any, batches: Iterator[list[SampleRequest]], collate: Callable[[list[Any]], Any]
) -> Iterator[Any]:
    """Yield batches of the samples that are requested; the generators stay as they are."""
    for requests in batches:
        with kept_generators():
            samples = []
            for index, epoch, seed in requests:
                seed_generators(seed)
                samples += fetch(dataset, [index], [epoch])
            batch = collate(samples)
        yield batch
