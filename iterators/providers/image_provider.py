"""What all providers of record images share: keywords, files, orders, the image stage.

`RecordImageProvider` checks the keywords, joins record files, an order, a recipe and the image
stage, and leaves to its subclasses which recipe that is and what labels look like.  Each part does
its own work elsewhere.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import partial
from typing import Any, cast

import numpy as np

from ..core.batch import DataDesc
from ..core.device import placement
from ..core.order import BatchPlan, Order, check_of
from ..core.parameters import boolean, choice, integer, path, unknown_keyword
from ..core.random import derive_key
from ..images.codecs.jpeg import jpeg
from ..images.plan import RenderPlan
from ..images.sources.record_source import RecordSource
from ..images.stage import Stage
from .batch_form import BatchForm
from .image_caching import CacheInfo, cached_recipe, checked_cache, open_cache, steady_records
from .image_settings import (
    ImageSource,
    changed_parameters,
    check_effect,
    checked_layout,
    describe_order,
    device_normalisation,
    make_mean_image,
    order_of_images,
)
from .planned import PlannedProvider

__all__ = ["RecordImageProvider"]

AUGMENT_KEY = (
    0x6175676D656E74  # "augment": keeps the keys of augmentation apart from those of orders
)

SEEDS = -(1 << 63), (1 << 64) - 1
MOST_THREADS = 1 << 10
MOST_BATCHES = 1 << 16
MOST_SAMPLES = (1 << 31) - 1
MOST_PIXELS = (1 << 62) - 1
MOST_SCANS = (1 << 31) - 1
MOST_LABELS = (1 << 27) - 1  # those of the longest record

logger = logging.getLogger("iterators")


class RecordImageProvider(PlannedProvider):
    """Base class of the providers that decode images from record files.

    `ImageRecordIter` describes the keywords, which are the same for all of them.
    """

    #: What the keywords of augmentation are checked by.
    recipe_class: type[Any]
    #: What the image stage is told.
    plan_class: type[RenderPlan]
    #: The only value of `aug_seq`.
    augmenter = "aug_default"
    #: Element types; the first one when none is asked for.
    dtypes: tuple[str, ...] = ("float32", "float16", "uint8", "int8")
    #: `label_width` when none is asked for, and the least that means something.
    default_label_width = 1
    #: Whether the first label of a record is what a mapping of weights can name.
    class_labels = True
    least_label_width = 1

    def __init__(
        self,
        *,
        data_shape: tuple[int, int, int],
        batch_size: int,
        path_imgrec: str | os.PathLike[str] = "./data/imgrec.rec",
        path_imgidx: str | os.PathLike[str] = "",
        path_imglist: str | os.PathLike[str] = "",
        label_width: int | None = None,
        num_parts: int = 1,
        part_index: int = 0,
        even: bool = False,
        shuffle: bool = False,
        weights: Any = None,
        shuffle_chunk_size: int = 0,
        shuffle_chunk_seed: int = 0,
        seed: int = 0,
        seed_aug: int | None = None,
        preprocess_threads: int = 4,
        prefetch_buffer: int = 4,
        round_batch: bool = True,
        mean_img: str | os.PathLike[str] = "",
        data_name: str = "data",
        label_name: str | None = "softmax_label",
        verbose: bool = True,
        layout: str = "NCHW",
        dtype: str | None = None,
        data_specs: Any = None,
        device: Any = None,
        normalise_on: str = "host",
        epoch: int = 0,
        on_error: str = "raise",
        error_budget: float | None = None,
        cache: str | os.PathLike[str] | None = None,
        cache_size: int | None = None,
        verify: bool = False,
        max_pixels: int = jpeg.DEFAULT_MAX_PIXELS,
        max_scans: int = jpeg.DEFAULT_MAX_SCANS,
        max_scan_pixels: int = jpeg.DEFAULT_MAX_SCAN_PIXELS,
        aug_seq: str | None = None,
        ctx: str = "gpu",
        device_id: int = 0,
        **augmentation: Any,
    ) -> None:
        recipe = self._recipe(data_shape, augmentation)
        cache_place, cache_size = checked_cache(cache, cache_size)
        if cache_place:
            recipe = cached_recipe(recipe, "scaled_decode" in augmentation)
        batch_size = integer("batch_size", batch_size, 1, MOST_SAMPLES)
        path_imgrec, path_imgidx = (
            path("path_imgrec", path_imgrec),
            path("path_imgidx", path_imgidx),
        )
        path_imglist, mean_img = path("path_imglist", path_imglist), path("mean_img", mean_img)
        for name, value in (("data_name", data_name), ("label_name", label_name or "none")):
            if not isinstance(value, str):
                raise TypeError(f"{name}={value!r}: expected a name")
        layout = checked_layout(layout)
        form = None
        if data_specs is not None:
            if layout != "NCHW":
                raise ValueError(f"data_specs says which axes to use: drop layout={layout!r}")
            form = BatchForm(data_specs, [data_name], [] if label_name is None else [label_name])
            layout, wanted = form.written(recipe.data_shape)
            if dtype is None and wanted in self.dtypes:
                dtype = wanted
        dtype = choice("dtype", self.dtypes[0] if dtype is None else dtype, self.dtypes)
        self._normalise = None
        if choice("normalise_on", normalise_on, ("host", "device")) == "device":
            self._normalise = device_normalisation(recipe, layout, dtype, device, mean_img)
            dtype = "uint8"
        else:
            check_effect(recipe, dtype, mean_img)
        if label_width is None:
            label_width = self.default_label_width
        label_width = integer("label_width", label_width, self.least_label_width, MOST_LABELS)
        seed = integer("seed", seed, *SEEDS)
        seed_aug = None if seed_aug is None else integer("seed_aug", seed_aug, *SEEDS)
        prefetch_buffer = integer("prefetch_buffer", prefetch_buffer, 1, MOST_BATCHES)
        threads = integer("preprocess_threads", preprocess_threads, 1, MOST_THREADS)
        round_batch = boolean("round_batch", round_batch)
        verbose = boolean("verbose", verbose)
        choice("aug_seq", self.augmenter if aug_seq is None else aug_seq, (self.augmenter,))
        choice("ctx", ctx, ("cpu", "gpu"))
        integer("device_id", device_id, low=-1)
        place = placement(device, ring=prefetch_buffer)
        choice("on_error", on_error, ("raise", "skip"))
        plan_class = partial(
            self.plan_class,
            max_pixels=integer("max_pixels", max_pixels, 1, MOST_PIXELS),
            max_scans=integer("max_scans", max_scans, 1, MOST_SCANS),
            max_scan_pixels=integer("max_scan_pixels", max_scan_pixels, 1, MOST_PIXELS),
        )
        source = self._open(path_imgrec, path_imgidx, on_error, boolean("verify", verify))
        num_parts = integer("num_parts", num_parts, low=1)
        labels = self._plan_labels(source, recipe, label_width, path_imglist, on_error)
        listed = labels["labels"]
        order, unusable = order_of_images(
            source,
            num_parts=num_parts,
            part_index=integer("part_index", part_index, low=0),
            even=boolean("even", even),
            shuffle=boolean("shuffle", shuffle),
            seed=seed,
            weights=_checked_weights(weights, self.class_labels),
            listed=listed,
            chunk_size=integer("shuffle_chunk_size", shuffle_chunk_size, 0, 1 << 40),
            chunk_seed=integer("shuffle_chunk_seed", shuffle_chunk_seed, *SEEDS),
            on_error=on_error,
        )
        mean_image = None
        if mean_img and not recipe.means_win:
            mean_image = make_mean_image(
                source, order, plan_class, recipe, mean_img, threads, on_error
            )
        plan = plan_class(
            recipe,
            key=derive_key(seed if seed_aug is None else seed_aug, AUGMENT_KEY),
            layout=layout,
            dtype=dtype,
            batch_size=batch_size,
            mean_image=mean_image,
            **labels,
        )
        cached = None
        if cache_place:
            cached, self._estimated_bytes = open_cache(
                cache_place,
                cache_size,
                source,
                steady_records(order, len(source)),
                recipe,
                num_parts=num_parts,
                verbose=verbose,
            )
        self._cache_place = cache_place
        data_desc = [
            DataDesc(
                data_name,
                plan.shape(batch_size),
                self._normalise.dtype if self._normalise else plan.dtype,
                plan.layout,
            )
        ]
        label_desc = []
        if label_name is not None:
            label_desc = [self._describe_labels(label_name, batch_size, plan.label_width)]
        settings = {
            "file": source.fingerprint(),
            "seed": seed,
            "seed_aug": seed_aug,
            "batch_size": batch_size,
            "round_batch": round_batch,
            "order": describe_order(order),
            "dtype": dtype,
            "label_width": label_width,
            **changed_parameters(recipe),
        }
        if listed is not None:
            settings["path_imglist"] = check_of(*listed)
        if mean_image is not None:
            settings["mean_img"] = check_of(mean_image)
        self.path_imgrec = source.name
        self.identities = source.identities
        super().__init__(
            self._plan_batches(order, batch_size, round_batch),
            Stage(
                source.bytes_source(),
                plan,
                batch_size=batch_size,
                threads=threads,
                depth=prefetch_buffer,
                allocate=place.allocate,
                cached=cached,
            ),
            data_desc,
            label_desc,
            place,
            epoch,
            on_error=on_error,
            error_budget=error_budget,
            skipped=unusable,
            settings=settings,
            verbose=verbose,
            form=form,
        )
        if verbose:
            logger.info(
                "%s: %d of %d records, %d threads",
                self.path_imgrec,
                self.num_samples,
                len(source),
                threads,
            )

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

    def _finish(self, data: Sequence[Any]) -> list[Any]:
        return [self._normalise(tensor) for tensor in data] if self._normalise else list(data)

    def _recipe(self, data_shape: Any, augmentation: dict[str, Any]) -> Any:
        known = {field.name for field in fields(self.recipe_class)}
        for name in augmentation:
            if name not in known:
                own = RecordImageProvider.__init__.__kwdefaults__ or {}
                raise unknown_keyword(type(self).__name__, name, known | set(own))
        return self.recipe_class(data_shape=data_shape, **augmentation)

    def _open(self, path_imgrec: Any, path_imgidx: Any, on_error: str, verify: bool) -> ImageSource:
        """The images of the provider."""
        return RecordSource(path_imgrec, path_imgidx, on_error, verify)

    def _plan_batches(self, order: Order, batch_size: int, round_batch: bool) -> BatchPlan:
        """How an epoch is cut into batches."""
        return BatchPlan(order, batch_size, "wrap" if round_batch else "pad")

    def _plan_labels(
        self, source: Any, recipe: Any, label_width: int, path_imglist: Any, on_error: str
    ) -> dict[str, Any]:
        """What the plan is told about labels: keywords of `plan_class`, `labels` among them."""
        raise TypeError(f"{type(self).__name__} does not say what its labels are")

    def _describe_labels(self, name: str, batch_size: int, width: int) -> DataDesc:
        """What the label array looks like, with `width` values for each sample."""
        return DataDesc(name, (batch_size, width), np.float32, "NC")


def _checked_weights(weights: Any, class_labels: bool) -> Any:
    if isinstance(weights, Mapping) and not class_labels:
        raise ValueError("weights by label need class labels: give one weight for every record")
    return weights
