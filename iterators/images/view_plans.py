"""Plans of the images of a pack and of several views of an image, and the keys of their draws.

The image stage renders the views; here it is said that each has random numbers of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

from recordio.keywords.checks import unknown_keyword

from ..core.random import derive_key
from .plan import RenderPlan

#: "augment": keeps the keys of augmentation apart from those of orders.
AUGMENT_KEY = 0x6175676D656E74


def augment_key(seed: int) -> int:
    """Return the key of everything that is drawn for images, beside epoch and record.

    >>> augment_key(0) != augment_key(1)
    True
    """
    return derive_key(seed, AUGMENT_KEY)


def with_keywords(owner: str, recipe: Any, keywords: Mapping[str, Any]) -> Any:
    """Return a recipe with other values for some keywords, which `owner` was asked for.

    >>> from iterators.images.augment.recipe import Recipe
    >>> with_keywords("Pack", Recipe(data_shape=(3, 8, 8)), {"pad": 2})
    Recipe(data_shape=(3, 8, 8), pad=2)
    """
    names = [item.name for item in fields(recipe)]
    for name in keywords:
        if name not in names:
            raise unknown_keyword(owner, name, names)
    return replace(recipe, **keywords)


def same_channels(recipes: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the recipes of the views of an image; ValueError unless one decoding serves all."""
    if len({recipe.channels for recipe in recipes}) > 1:
        raise ValueError("the views of an image have the same number of channels")
    for name in ("orient", "background"):
        if len({getattr(recipe, name) for recipe in recipes}) > 1:
            raise ValueError(f"the views of an image have the same {name}")
    return recipes


@dataclass(frozen=True)
class PackPlan:
    """A recipe for the images of a pack, and the keywords of their plan, which is of that `kind`.

    Each of the `views`, further ones of an image that is decoded once, is a recipe and its key.
    """

    kind: type[RenderPlan]
    recipe: Any
    keywords: Mapping[str, Any]
    views: Sequence[tuple[Any, int]] = ()

    @cached_property
    def plan(self) -> RenderPlan:
        """The plan, which any number of engines share."""
        alone = {**self.keywords, "label_width": 0, "labels": None, "change": None}
        views = [self.kind(own, **{**alone, "key": key}) for own, key in self.views]
        return self.kind(self.recipe, views=views, **self.keywords)

    def changed(self, recipe: Any, **keywords: Any) -> PackPlan:
        """Return it with another recipe and other keywords."""
        return replace(self, recipe=recipe, keywords={**self.keywords, **keywords})


def further_views(recipes: Sequence[Any], seed: int) -> list[tuple[Any, int]]:
    """Return all recipes but the first, with their keys: the first draws as if it were alone."""
    return [
        (recipe, derive_key(seed, AUGMENT_KEY, number))
        for number, recipe in enumerate(recipes[1:], 1)
    ]
