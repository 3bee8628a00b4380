"""The job of an image provider: all that its keywords decide, before a file is opened.

`ImageJob` holds checked keywords, with the recipes of every pack and every view, the form of the
batches and where they go.  Nothing of it changes when files are opened.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np

from recordio.keywords.options import refuse_ineffective, warn_of_ineffective

from ..core.device import DeviceNormalisation, Placement, placement
from ..core.dtypes import BATCH_TYPES, FLOAT_TYPES
from ..images.augment.named_recipes import NamedRecipe
from ..images.augment.pipelines.processor_rules import ProcessorRule
from ..images.fields.image_fields import array_names
from ..images.plan import RenderPlan
from ..images.sources.mixed_packs import Pack
from ..images.view_plans import (
    PackPlan,
    augment_key,
    further_views,
    same_channels,
    with_keywords,
)
from .batch_form import BatchForm
from .device_images import check_on_device, decoded_there
from .image_caching import cached_recipe
from .image_labels import Labels
from .image_options import ImageRecordOptions, element_type
from .image_shapes import Shapes
from .image_sources import packs_of
from .python_images import ImageChange

#: Element types of images; the first one when none is asked for.
DTYPES = tuple(BATCH_TYPES)
#: What is the same for all packs, because batches have one form.
SHARED = ("data_shape", "label_pad_width", "label_pad_value", "max_label_width")


def varied(recipe: Any, pack: Pack) -> Any:
    """Return the recipe of a pack: that of the provider, with the keywords of the `Pack`."""
    if not pack.augmentation:
        return recipe
    for name in SHARED:
        if name in pack.augmentation and hasattr(recipe, name):
            raise ValueError(f"{name} is the same for all packs: give it to the provider")
    return with_keywords("Pack", recipe, pack.augmentation)


@dataclass(frozen=True, kw_only=True)
class ImageJob:
    """Checked keywords of an image provider, and what they mean for its packs."""

    options: ImageRecordOptions
    packs: tuple[Pack, ...]
    #: The recipe as it was asked for, and that of every pack.
    recipe: Any
    pack_recipes: list[Any]
    #: Of every view of an image, `recipe` being the first, and of every pack; empty without views.
    views: tuple[Any, ...]
    pack_views: list[list[Any]]
    form: BatchForm | None
    #: Element type of the images that threads make: uint8 if a device does the rest.
    dtype: str
    #: What is left to do on a device, which gets the images as uint8.
    normalise: DeviceNormalisation | None
    placement: Placement
    #: Those of batches and images, if there are several.
    shapes: Shapes | None = None
    plan_class: type[RenderPlan] = RenderPlan
    #: What becomes of a short last batch.
    tail: Any
    #: The recipe that the keywords are of.
    named: NamedRecipe | None = None
    #: ``change(plan, label_shape)`` returns what is called for every image of a pack, where that is
    #: done in Python.
    change: Callable[[RenderPlan, tuple[int, ...]], ImageChange] | None = None
    #: What a saved state must agree with, beside all that follows from the rest.
    more: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        options: ImageRecordOptions,
        recipes: Sequence[Any],
        *,
        scaled_decode: bool,
        dtypes: Sequence[str] = DTYPES,
        vary: Callable[[Any, Pack], Any] = varied,
        shapes: Shapes | None = None,
        tail: str = "",
        **more: Any,
    ) -> ImageJob:
        """Find packs, form and recipes; the parameters are those of `recipes_of`, or attributes."""
        packs = packs_of(options)
        options, form = _in_form(options, recipes[0].data_shape, dtypes)
        views = tuple(recipes) if len(recipes) > 1 else ()
        own, own_views = recipes_of(options, packs, recipes[0], views, vary, scaled_decode)
        if shapes is None and options.patches:
            raise ValueError(
                "patches follow the sizes of the images: give data_shape=None, or (channels, None, "
                "None)"
            )
        named = more.get("named")
        sizes = options.sequence_lengths or (options.batch_patches and not (named and named.rule))
        if not options.patches and sizes:
            raise ValueError(
                "sequence_lengths and batch_patches need patches, 16 for example; batch_patches "
                "goes with the recipe of a vision-language model too"
            )
        if shapes is not None:
            shapes = shapes.in_patches(options)
            shapes.check(options, own)
        if options.ragged != "list" and (shapes is None or not shapes.of_images):
            raise ValueError(f"ragged={options.ragged!r} needs data_shape=None")
        device = placement(options.device, ring=options.prefetch_buffer)
        if decoded_there(options):
            check_on_device(options, own, device.device, shapes is not None)
        dtype, normalise = str(options.dtype), None
        if options.normalise_on == "device" or (decoded_there(options) and dtype != "uint8"):
            every = [*own, *chain.from_iterable(own_views)]
            dtype, normalise = "uint8", device_normalisation(every, options)
        return cls(
            options=options,
            packs=packs,
            recipe=recipes[0],
            pack_recipes=own,
            views=views,
            pack_views=own_views,
            form=form,
            dtype=dtype,
            normalise=normalise,
            placement=device,
            shapes=shapes,
            tail=tail or ("wrap" if options.round_batch else "pad"),
            **more,
        )

    @property
    def rule(self) -> ProcessorRule | None:
        """Rule of the processor of a vision-language model; None without one."""
        return None if self.named is None else self.named.rule

    @property
    def key(self) -> int:
        """Key of everything that is drawn for an image."""
        return augment_key(self.seed_aug)

    @property
    def seed_aug(self) -> int:
        """Seed of augmentation."""
        seed = self.options.seed_aug
        return self.options.seed if seed is None else seed

    def plans(
        self, labels: Labels, changes: Sequence[Any], mean_image: Any, sizes: np.ndarray | None
    ) -> list[PackPlan]:
        """Return the plan of every pack; `sizes` are those of the images, if they keep them."""
        shared = {
            "key": self.key,
            "layout": self.options.layout,
            "dtype": self.dtype,
            "mean_image": mean_image,
            **self.options.limits,
            **({} if self.shapes is None else self.shapes.of_plans(sizes)),
        }
        return [
            PackPlan(
                self.plan_class,
                own,
                {**shared, "change": change, **label},
                further_views(of_pack, self.seed_aug),
            )
            for own, of_pack, change, label in zip(
                self.pack_recipes, self.pack_views, changes, labels.plans, strict=True
            )
        ]

    def saved(self) -> dict[str, Any]:
        """Return what a saved state must agree with, before files are opened."""
        saved = self.options.saved() | {"dtype": self.dtype}
        if decoded_there(self.options):  # to pixels of its own
            saved["decode_on"] = "device"
        if self.shapes is not None and self.shapes.buckets is None:
            saved["shapes"] = self.shapes.described()
        if self.named is not None:
            saved["recipe"] = self.named.described()
        if self.views:
            saved["views"] = [view.changed() for view in self.views]
        single = self.pack_recipes[0] if len(self.pack_recipes) == 1 else self.recipe
        return saved | single.changed()


def recipes_of(
    options: ImageRecordOptions,
    packs: Sequence[Pack],
    common: Any,
    views: Sequence[Any],
    vary: Callable[[Any, Pack], Any],
    scaled_decode: bool,
) -> tuple[list[Any], list[list[Any]]]:
    """Make the recipe of every pack, and those of its views; ``vary(recipe, pack)`` returns one.

    `scaled_decode` is True if the caller named it.
    """
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
    return of_packs, views_of_packs


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


def device_normalisation(
    recipes: Sequence[Any], options: ImageRecordOptions
) -> DeviceNormalisation:
    """Return what the device has to do when the images are moved as uint8."""
    recipe = recipes[0]
    if len({(own.scale, own.std, own.mean) for own in recipes}) > 1:
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


def _in_form(
    options: ImageRecordOptions, data_shape: Any, dtypes: Sequence[str]
) -> tuple[ImageRecordOptions, BatchForm | None]:
    """Return options with the layout and dtype of images as they are made, and form of batches."""
    form = None
    if options.data_specs is not None:
        if np.dtype(options.label_dtype) != np.float32:
            raise ValueError(
                f"data_specs sets the type of the labels: drop label_dtype={options.label_dtype!r}"
            )
        if options.layout != "NCHW":
            raise ValueError(f"data_specs sets the axes: drop layout={options.layout!r}")
        names = [] if options.label_name is None else [options.label_name]
        for name, kind in (options.fields or {}).items():
            if kind is None:
                raise ValueError(f"data_specs needs the kind of each field: give {name} one")
        fields = array_names(options.fields or {})
        form = BatchForm(options.data_specs, [options.data_name], names, fields)
        layout, dtype = form.written(data_shape)
        options = replace(options, layout=layout)
        if options.dtype is None and dtype in dtypes:
            options = replace(options, dtype=dtype)
    dtype = dtypes[0] if options.dtype is None else options.dtype
    return replace(options, dtype=element_type("dtype", dtype, dtypes)), form
