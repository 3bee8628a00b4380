"""Keywords about the pixels of an image provider: recipes, views, mean images, devices.

The functions take checked keywords apart for every pack and every view.  Nothing here draws random
numbers, and what recipes do to an image is described in `iterators.images.augment`.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from recordio.errors import RecordIOError
from recordio.keywords.options import refuse_ineffective, warn_of_ineffective

from ..core.batch import DataDesc
from ..core.device import DeviceNormalisation
from ..core.dtypes import FLOAT_TYPES
from ..core.order import BatchPlan, SequentialOrder
from ..images.augment.mean_image import read_mean_image, write_mean_image
from ..images.plan import RenderPlan
from ..images.sections import Section
from ..images.sources.mixed_packs import Pack
from ..images.stage import Stage
from ..images.stored_bits import cuts_of
from ..images.view_plans import same_channels, with_keywords
from .auto_threads import thread_count
from .fetched_ahead import fetched_ahead
from .image_caching import cached_recipe
from .image_options import ImageRecordOptions
from .image_sources import ImageSource

__all__ = [
    "Recipes",
    "device_normalisation",
    "mean_image_of",
    "provided_data",
    "recipes_of",
    "varied",
    "view_recipes",
]

#: What is the same for all packs, because batches have one form.
SHARED = ("data_shape", "label_pad_width", "label_pad_value", "max_label_width")
#: Images that a mean image is made from at a time.
MEAN_BATCH = 64

logger: logging.Logger = logging.getLogger("iterators")


class Recipes(NamedTuple):
    """Recipes of a provider: as it was asked for them, and those of every pack."""

    common: Any
    #: Of every view of an image, `common` being the first; empty if there is one alone.
    views: tuple[Any, ...]
    #: Of the images of every pack.
    packs: list[Any]
    #: Of their views.
    views_of_packs: list[list[Any]]

    def saved(self) -> dict[str, Any]:
        """Return what a saved state must agree with."""
        return (self.packs[0] if len(self.packs) == 1 else self.common).changed()


def recipes_of(
    options: ImageRecordOptions,
    packs: Sequence[Pack],
    recipes: Sequence[Any],
    vary: Callable[[Any, Pack], Any],
    scaled_decode: bool,
) -> Recipes:
    """Make the recipes of every pack; ``vary(recipe, pack)`` returns one.

    There are several `recipes` for several views.  `scaled_decode` is True if the caller named it.
    """
    common, views = recipes[0], tuple(recipes) if len(recipes) > 1 else ()
    of_packs = [vary(common, pack) for pack in packs]
    for own in of_packs:
        refuse_ineffective(options, own)
    for cache in (options.cache, *(pack.cache for pack in packs)):
        if cache and options.dtype == "uint16":
            raise ValueError(
                f"cache={cache!r} keeps 8 bits of an image: drop it, or dtype='uint16'"
            )
    warn_of_ineffective(options, common)
    for own in of_packs:
        if own is not common:
            warn_of_ineffective(own)
    of_packs = [
        cached_recipe(own, scaled_decode or "scaled_decode" in pack.augmentation)
        if pack.cache or options.cache
        else own
        for own, pack in zip(of_packs, packs, strict=True)
    ]
    views_of_packs = [[vary(view, pack) for view in views] for pack in packs]
    for own in chain.from_iterable(views_of_packs):
        refuse_ineffective(options, own)
    return Recipes(common, views, of_packs, views_of_packs)


def varied(recipe: Any, pack: Pack) -> Any:
    """Return the recipe of a pack: that of the provider, with the keywords of the `Pack`."""
    if not pack.augmentation:
        return recipe
    for name in SHARED:
        if name in pack.augmentation and hasattr(recipe, name):
            raise ValueError(f"{name} is the same for all packs: give it to the provider")
    return with_keywords("Pack", recipe, pack.augmentation)


def view_recipes(
    views: tuple[dict[str, Any], ...],
    options: ImageRecordOptions,
    changed: Callable[[dict[str, Any]], Any],
) -> tuple[Any, ...]:
    """Return the recipe of every view: ``changed(view)`` is the common one with its keywords."""
    if options.cache:
        raise ValueError("views are made of images that are decoded once: drop cache")
    if options.data_specs is not None:
        raise ValueError("data_specs names the arrays of a batch: drop views")
    if options.mean_img:
        raise ValueError("a mean image is of one shape: drop mean_img, or views")
    recipes = same_channels(tuple(map(changed, views)))
    for recipe in recipes:
        if getattr(recipe, "reducing_gap", None) is not None:
            raise ValueError(
                f"reducing_gap={recipe.reducing_gap:g}: an image of several views is decoded once, "
                "in full; drop reducing_gap, or views"
            )
    return recipes


def provided_data(
    options: ImageRecordOptions, plan: RenderPlan, dtype: Any = None
) -> list[DataDesc]:
    """Describe the data arrays of a batch: one, or one for each view."""
    plans = [plan, *plan.views]
    name, size = options.data_name, options.batch_size
    names = [f"{name}{number}" for number in range(len(plans))] if plan.views else [name]
    return [
        DataDesc(own, one.shape(size), dtype or one.dtype, one.layout)
        for own, one in zip(names, plans, strict=True)
    ]


def device_normalisation(recipes: Recipes, options: ImageRecordOptions) -> DeviceNormalisation:
    """Return what the device has to do when the images are moved as uint8."""
    recipe = recipes.packs[0]
    every = [*recipes.packs, *chain.from_iterable(recipes.views_of_packs)]
    if len({(own.scale, own.std, own.mean) for own in every}) > 1:
        raise ValueError('packs that differ in mean, std or scale need normalise_on="host"')
    if options.device is None:
        raise ValueError('normalise_on="device" needs a device')
    if options.dtype not in (*FLOAT_TYPES, "uint8"):
        floats = " or ".join(FLOAT_TYPES)
        raise ValueError(f'normalise_on="device" gives {floats}, not {options.dtype}')
    if options.mean_img:
        raise ValueError('mean_img needs normalise_on="host"')
    factor = np.float32(recipe.scale) / np.array(recipe.std, np.float32)
    return DeviceNormalisation(
        options.layout,
        recipe.mean[: recipe.channels],
        factor[: recipe.channels].tolist(),
        options.dtype if options.dtype in FLOAT_TYPES else FLOAT_TYPES[0],
    )


def mean_image_of(
    source: ImageSource,
    plan_class: Callable[..., RenderPlan],
    recipe: Any,
    options: ImageRecordOptions,
) -> np.ndarray | None:
    """Read the mean image, or make it from the images of all parts, resized and not normalised.

    Processes that start together and share the file make it once.
    """
    path = options.mean_img
    if not path or recipe.means_win:
        return None
    if not os.path.exists(path):
        from filelock import FileLock  # only here, and for files on servers

        guard = f"{os.fspath(path)}.lock"
        with FileLock(guard, thread_local=False):
            if not os.path.exists(path):  # nobody else has made it meanwhile
                own: Any = {"label_width": 0}
                if options.cache or cuts_of(recipe, str(options.dtype)):
                    own["dtype"] = "uint8"  # as images are delivered, and a quarter of the bytes
                plan = plan_class(recipe.plain(), **own)
                write_mean_image(path, _average(source, plan, options))
        with contextlib.suppress(OSError):  # somebody who still waits may keep it
            os.remove(guard)
    return read_mean_image(path)


def _average(source: ImageSource, plan: RenderPlan, options: ImageRecordOptions) -> np.ndarray:
    """Average all images, each once and in the order of the file: every rank finds the same."""
    logger.info("%s does not exist: averaging %d images", options.mean_img, len(source))
    batches = BatchPlan(SequentialOrder(0, len(source)), MEAN_BATCH, "pad")
    made = Stage(
        source.bytes_source(),
        Section(plan),
        batch_size=MEAN_BATCH,
        threads=thread_count(options.preprocess_threads),
        depth=2,
        strict=options.strict,
    )
    stage = fetched_ahead(made, source, MEAN_BATCH, options)
    total = np.zeros(plan.recipe.data_shape, np.float64)
    good = len(source)
    try:
        for number in range(len(batches)):
            rows = batches.rows(0, number)[0]
            stage.submit(rows, 0, np.zeros(len(rows), np.int64))
            data, _, _, failures = stage.collect()
            for slot, error in failures:
                if options.on_error == "raise" or not isinstance(error, RecordIOError):
                    raise error
                data[slot] = 0
            good -= len(failures)
            total += data.sum(0, dtype=np.float64)
    finally:
        stage.close()
    if not good:
        raise ValueError(
            f"mean_img: {options.mean_img} does not exist, and {source.name} has no image to make "
            "it from"
        )
    return total / good
