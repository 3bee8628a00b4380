"""Several views of every image, which is decoded once: what `views=` means for a provider.

The image stage renders the views; here is what they contradict, and what batches look like.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.batch import DataDesc
from ..images.plan import RenderPlan
from ..images.view_plans import same_channels
from .image_options import ImageRecordOptions

__all__ = ["described_views", "view_recipes"]


def view_recipes(
    views: tuple[dict[str, Any], ...],
    options: ImageRecordOptions,
    changed: Callable[[dict[str, Any]], Any],
) -> tuple[Any, ...]:
    """The recipe of every view: ``changed(view)`` is the common one with the keywords of the view.

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
    return same_channels(tuple(map(changed, views)))


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
