"""Several views of every image, which is decoded once: what `views=` means for plans and batches.

The image stage renders the views; here their recipes are checked, and the plans made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

from ..core.batch import DataDesc
from ..core.parameters import unknown_keyword
from ..core.random import derive_key
from ..images.plan import RenderPlan
from ..images.sources.packs import Pack
from .image_options import ImageRecordOptions
from .image_packs import varied

__all__ = ["described_views", "view_recipes", "with_views"]


def view_recipes(options: Any, recipe: Any) -> tuple[Any, ...]:
    """The recipe of every view: the common one with the keywords of the view.

    Raises
    ------
    TypeError
        For a keyword that recipes do not have.
    ValueError
        For views of different channels, and beside what serves one array alone.
    """
    if options.cache:
        raise ValueError("views are made of images that are decoded once: drop cache")
    if options.data_specs is not None:
        raise ValueError("data_specs names the arrays of a batch: drop views")
    if options.mean_img:
        raise ValueError("a mean image is of one shape: drop mean_img, or views")
    known = {item.name for item in fields(recipe)}
    for view in options.views:
        for name in view:
            if name not in known:
                raise unknown_keyword("views", name, known)
    recipes = tuple(replace(recipe, **view) for view in options.views)
    if len({one.channels for one in recipes}) > 1:
        raise ValueError("the views of an image have the same number of channels")
    return recipes


def with_views(
    make: Any, recipes: tuple[Any, ...], pack: Pack, keys: tuple[int, ...]
) -> Callable[..., RenderPlan]:
    """Makes plans with further views: `make` is the partial call that makes the first one's.

    Every view but the first draws with a key of its own; the first draws as if it were alone.
    """

    def made(*, batch_size: int) -> RenderPlan:
        views = [
            make.func(
                varied(recipe, pack),
                **{
                    **make.keywords,
                    "key": derive_key(*keys, number),
                    "label_width": 0,
                    "labels": None,
                    "change": None,
                    "batch_size": batch_size,
                },
            )
            for number, recipe in enumerate(recipes[1:], 1)
        ]
        plan: RenderPlan = make(batch_size=batch_size, views=views)
        return plan

    return made


def described_views(
    options: ImageRecordOptions, plan: RenderPlan, dtype: Any = None
) -> list[DataDesc]:
    """The data arrays of a batch: one, or one for each view with its number in its name."""
    plans = [plan, *plan.views]
    name, size = options.data_name, options.batch_size
    names = [f"{name}{number}" for number in range(len(plans))] if plan.views else [name]
    return [
        DataDesc(own, one.shape(size), dtype or one.dtype, one.layout)
        for own, one in zip(names, plans, strict=True)
    ]
