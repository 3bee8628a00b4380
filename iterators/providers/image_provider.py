"""What all providers of record images share: keywords, files, orders, the image stage.

`RecordImageProvider` checks the keywords, joins record files, an order, a recipe and the image
stage, and leaves to its subclasses which recipe that is and what labels look like.  Each part does
its own work elsewhere.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np

from ..core.batch import DataDesc
from ..core.device import placement
from ..core.effects import refuse_ineffective, warn_of_ineffective
from ..core.options import divided
from ..core.order import BatchPlan, Order, check_of
from ..core.parameters import choice
from ..core.random import derive_key
from ..images.codecs.jpeg.jpeg import DEFAULT_LIMITS
from ..images.plan import RenderPlan
from ..images.sources.record_source import RecordSource
from ..images.stage import Stage
from .batch_form import BatchForm
from .engine import Engine
from .image_caching import CacheInfo, cached_recipe, check_cache, open_cache, steady_records
from .image_options import ImageRecordOptions
from .image_settings import (
    ImageSource,
    describe_order,
    device_normalisation,
    make_mean_image,
    order_of_images,
)
from .mx_data_provider import MXDataProvider
from .planned import PlannedProvider

__all__ = ["RecordImageProvider"]

AUGMENT_KEY = (
    0x6175676D656E74  # "augment": keeps the keys of augmentation apart from those of orders
)

#: What opening a cache needs to know.
CACHE_OPTIONS = ("cache", "cache_size", "num_parts", "verbose")

logger = logging.getLogger("iterators")


@MXDataProvider.register
class RecordImageProvider(PlannedProvider):
    """Base class of the providers that decode images from record files.

    `image_options` describes its keywords.
    """

    #: What the keywords are checked by: those of augmentation, and all others.
    recipe_class: type[Any]
    options_class: type[ImageRecordOptions] = ImageRecordOptions
    #: What the image stage is told.
    plan_class: type[RenderPlan]
    #: Element types; the first one when none is asked for.
    dtypes: tuple[str, ...] = ("float32", "float16", "uint8", "int8")
    #: Whether the first label of a record is what a mapping of weights can name.
    class_labels = True

    def __init__(self, *values: Any, **keywords: Any) -> None:
        options, recipe = self._checked(values, keywords)
        check_cache(options.cache, options.cache_size)
        if options.cache:
            recipe = cached_recipe(recipe, "scaled_decode" in keywords)
        form = None
        self._label_dtype = np.dtype(options.label_dtype)
        if options.data_specs is not None:
            if self._label_dtype != np.float32:
                raise ValueError(
                    "data_specs says the type of the labels: drop "
                    f"label_dtype={options.label_dtype!r}"
                )
            if options.layout != "NCHW":
                raise ValueError(
                    f"data_specs says which axes to use: drop layout={options.layout!r}"
                )
            names = [] if options.label_name is None else [options.label_name]
            form = BatchForm(options.data_specs, [options.data_name], names)
            layout, dtype = form.written(recipe.data_shape)
            options = replace(options, layout=layout)
            if options.dtype is None and dtype in self.dtypes:
                options = replace(options, dtype=dtype)
        dtype = self.dtypes[0] if options.dtype is None else options.dtype
        dtype = choice("dtype", dtype, self.dtypes)
        options = replace(options, dtype=dtype)
        refuse_ineffective(options, recipe)
        warn_of_ineffective(options, recipe)
        self._normalise = None
        if options.normalise_on == "device":
            self._normalise = device_normalisation(recipe, options)
            options = replace(options, dtype="uint8")
        place = placement(options.device, ring=options.prefetch_buffer)
        plan_class: Any = partial(self.plan_class, **options.values(*DEFAULT_LIMITS))
        source = self._open(options)
        labels = self._plan_labels(source, recipe, options)
        listed = labels["labels"]
        if isinstance(options.weights, Mapping) and not self.class_labels:
            raise ValueError("weights by label need class labels: give one weight for every record")
        order, unusable = order_of_images(source, options, listed)
        mean_image = None
        if options.mean_img and not recipe.means_win:
            mean_image = make_mean_image(source, order, plan_class, recipe, options)
        seed_aug = options.seed if options.seed_aug is None else options.seed_aug
        key = derive_key(seed_aug, AUGMENT_KEY)
        self._make_plan = partial(
            plan_class,
            recipe,
            key=key,
            **options.values("layout", "dtype"),
            mean_image=mean_image,
            **labels,
        )
        plan = self._make_plan(batch_size=options.batch_size)
        cached = None
        if options.cache:
            records = steady_records(order, len(source))
            cached, self._estimated_bytes = open_cache(
                source, records, recipe, **options.values(*CACHE_OPTIONS)
            )
        self._cache_place = options.cache
        data_desc = DataDesc(
            options.data_name,
            plan.shape(options.batch_size),
            self._normalise.dtype if self._normalise else plan.dtype,
            plan.layout,
        )
        label_desc = []
        if options.label_name is not None:
            label_desc = [self._describe_labels(options, plan.label_width)]
        settings = {
            "file": source.fingerprint(),
            "order": describe_order(order),
            **options.saved(),
            **recipe.changed(),
        }
        if listed is not None:
            settings["path_imglist"] = check_of(*listed)
        if mean_image is not None:
            settings["mean_img"] = check_of(mean_image)
        self.path_imgrec = source.name
        self.identities = source.identities
        provider = weakref.ref(self)

        def make_engine(batch_size: int, depth: int) -> Engine:
            maker = cast(RecordImageProvider, provider())
            return maker._engine_of(
                source,
                maker._make_plan(batch_size=batch_size),
                key,
                cached,
                batch_size=batch_size,
                threads=options.preprocess_threads,
                depth=depth,
                allocate=place.allocate,
                strict=options.strict,
            )

        super().__init__(
            self._plan_batches(order, options),
            make_engine(options.batch_size, options.prefetch_buffer),
            make_engine,
            [data_desc],
            label_desc,
            place,
            **options.values("epoch", "on_error", "error_budget", "verbose"),
            skipped=unusable,
            settings=settings,
            form=form,
        )
        if options.verbose:
            logger.info(
                "%s: %d of %d records, %d threads",
                self.path_imgrec,
                self.num_samples,
                len(source),
                options.preprocess_threads,
            )

    def _shown(self) -> list[str]:
        return [self.path_imgrec, *super()._shown()]

    def cache_info(self) -> CacheInfo | None:
        """What the cache holds and did so far; None without one.

        Raises
        ------
        ValueError
            If the provider is closed, which frees the cache.
        """
        if not self._cache_place:
            return None
        cached = cast(Stage, self._engine).cached
        if cached is None:
            raise ValueError("the provider is closed")
        stats = cached.stats()
        return CacheInfo(
            cache=self._cache_place,
            images=cached.cache.images,
            used_bytes=cached.cache.used,
            capacity=cached.cache.capacity,
            estimated_bytes=self._estimated_bytes,
            hits=stats["cache_hits"],
            misses=stats["cache_misses"],
        )

    def _arrays(self, data: Any, label: Any) -> tuple[list[Any], list[Any]]:
        with np.errstate(invalid="ignore"):  # compared below
            typed = label.astype(self._label_dtype, copy=False)
        if typed is not label and not np.array_equal(typed, label, equal_nan=True):
            wrong = label[typed != label][0]
            raise ValueError(
                f"label_dtype={self._label_dtype.name!r}, but there is a label {wrong:g}"
            )
        return super()._arrays(data, typed)

    def _finish(self, data: Sequence[Any]) -> list[Any]:
        return [self._normalise(tensor) for tensor in data] if self._normalise else list(data)

    def _checked(
        self, values: Sequence[Any], keywords: dict[str, Any]
    ) -> tuple[ImageRecordOptions, Any]:
        """What was passed, augmentation as a recipe."""
        name, families = type(self).__name__, (self.options_class, self.recipe_class)
        options, augmentation = divided(name, keywords, *families, values=values)
        return self.options_class(**options), self.recipe_class(**augmentation)

    def _open(self, options: ImageRecordOptions) -> ImageSource:
        """The images of the provider."""
        return RecordSource(
            options.path_imgrec, options.path_imgidx, options.on_error, options.verify
        )

    def _plan_batches(self, order: Order, options: ImageRecordOptions) -> BatchPlan:
        """How an epoch is cut into batches."""
        return BatchPlan(order, options.batch_size, "wrap" if options.round_batch else "pad")

    def _plan_labels(self, source: Any, recipe: Any, options: Any) -> dict[str, Any]:
        """What the plan is told about labels: keywords of `plan_class`, `labels` among them."""
        raise TypeError(f"{type(self).__name__} does not say what its labels are")

    def _engine_of(
        self, source: ImageSource, plan: RenderPlan, key: int, cached: Any, **sizes: Any
    ) -> Engine:
        """What makes the images; `key` determines what is drawn for them."""
        return Stage(source.bytes_source(), plan, cached=cached, **sizes)

    def _describe_labels(self, options: ImageRecordOptions, width: int) -> DataDesc:
        """What the label array looks like, with `width` values for each sample."""
        name = cast(str, options.label_name)
        return DataDesc(name, (options.batch_size, width), self._label_dtype, "NC")
