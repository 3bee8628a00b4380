"""Plans for several views of an image that is decoded once, and the keys of what is drawn for them.

The image stage renders the views; here it is said that each has random numbers of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any

from recordio.keywords.checks import unknown_keyword

from ..core.random import derive_key
from .plan import RenderPlan

__all__ = ["AUGMENT_KEY", "augment_key", "same_channels", "with_keywords", "with_views"]

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
    known = [item.name for item in fields(recipe)]
    for name in keywords:
        if name not in known:
            raise unknown_keyword(owner, name, known)
    return replace(recipe, **keywords)


def same_channels(recipes: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the recipes of the views of an image; ValueError unless one decoding serves all."""
    if len({recipe.channels for recipe in recipes}) > 1:
        raise ValueError("the views of an image have the same number of channels")
    for name in ("orient", "background"):
        if len({getattr(recipe, name) for recipe in recipes}) > 1:
            raise ValueError(f"the views of an image have the same {name}")
    return recipes


def with_views(make: partial[RenderPlan], recipes: Sequence[Any], seed: int) -> partial[RenderPlan]:
    """Return the call `make`, a plan of the first recipe, with a view for each of the others.

    Every view but the first draws with a key of its own; the first draws as if it were alone.
    """
    further = [
        (recipe, derive_key(seed, AUGMENT_KEY, number))
        for number, recipe in enumerate(recipes[1:], 1)
    ]
    return partial(_viewed, *make.args, plan_class=make.func, further=further, **make.keywords)


def _viewed(
    recipe: Any, *, plan_class: Any, further: list[tuple[Any, int]], **keywords: Any
) -> RenderPlan:
    shared = {**keywords, "label_width": 0, "labels": None, "change": None}
    views = [plan_class(own, **{**shared, "key": key}) for own, key in further]
    plan: RenderPlan = plan_class(recipe, views=views, **keywords)
    return plan
