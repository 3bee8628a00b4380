"""A function applied to every example when it is read.  Nothing is cached."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.indexing import examples_at
from ..images.augment.named_recipes import NamedRecipe
from ..images.augment.recipe import Recipe
from .mixin import DatasetMixin

__all__ = ["TransformDataset"]


class TransformDataset(DatasetMixin):
    """The examples of a dataset, each passed through a function.

    Parameters
    ----------
    dataset : sequence
    transform : callable
        Takes one example and returns another.  It is called for one example at a time, also for
        slices, and again whenever the example is asked for.

    Raises
    ------
    TypeError
        For what is no function; recipes are for `AugmentedDataset`.

    Notes
    -----
    Indices are the base's: what it accepts and refuses is accepted and refused here.

    Examples
    --------
    >>> TransformDataset([1, 2, 3], lambda x: x * 10)[1:]
    [20, 30]
    """

    def __init__(self, dataset: Any, transform: Callable[[Any], Any]) -> None:
        if isinstance(transform, (Recipe, NamedRecipe)):
            raise TypeError(
                "a recipe is no function of an example: give its keywords to AugmentedDataset, or "
                "to ImageRecordDataset"
            )
        if not callable(transform):
            raise TypeError(f"transform={transform!r:.80}: expected a function of an example")
        self._dataset = dataset
        self._transform = transform

    def __len__(self) -> int:
        return len(self._dataset)

    def get_example(self, i: Any) -> Any:
        """Return the transformed example."""
        return self._transform(self._dataset[i])

    def __getitems__(self, indices: Sequence[int] | np.ndarray) -> list[Any]:
        """Return several transformed examples; the base is read once."""
        return [self._transform(example) for example in examples_at(self._dataset, indices)]
