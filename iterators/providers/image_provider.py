"""A provider of images, put together: source, labels, order, plans, engine.

`RecordImageProvider` takes an `ImageJob`, made of keywords alone, with an opened source and its
labels.  It makes an order, plans, caches and engines, says what batches hold, and runs them.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from recordio.packs.classes import labels_of_names, names_in_order

from ..core.batch import DataBatch, DataDesc
from ..core.field_specs import FieldKind
from ..core.layout import plan as layout_plan
from ..core.order import BatchPlan, BucketPlan, Order, RollOverPlan, check_of
from ..core.order.parts import zeros
from ..images.fields.image_fields import ImageFields
from ..images.stage import SeparateArrays
from ..images.stored_bits import cuts_of
from .advice import advised
from .device_images import decoded_there
from .engine import engine_apart, made
from .image_caching import CacheInfo, open_caches, steady_records
from .image_engines import ImageEngines, mean_image_of, open_entries
from .image_job import ImageJob
from .image_labels import Labels, PackClasses, refuse_classes
from .image_orders import describe_order, order_of_images
from .image_shapes import (
    RaggedBatch,
    bucket_plan,
    describe_batch,
    describe_images,
    ragged_data,
    whole_images,
)
from .image_sources import ImageSource
from .mx_data_provider import MXDataProvider
from .planned import PlannedProvider
from .python_images import PythonTail
from .report import EpochReport
from .show import Classes, Pixels, show_batch

if TYPE_CHECKING:
    from PIL.Image import Image

logger: logging.Logger = logging.getLogger("iterators")


def _batches(
    job: ImageJob, order: Order, sizes: np.ndarray | None, source: ImageSource
) -> BatchPlan:
    """Cut epochs into batches; `sizes` are those of the images, if they keep them."""
    batch_size, seed, tail = job.options.batch_size, job.options.seed, job.tail
    if job.shapes is not None and job.shapes.buckets is not None:
        return bucket_plan(job.shapes.buckets, order, tail, source, job.options)
    if job.shapes is not None:
        return job.shapes.plan(order, batch_size, tail, seed, sizes)
    if tail != "roll_over":
        return BatchPlan(order, batch_size, tail)
    if order.stride > 1:
        raise ValueError(
            'last_batch_handle="roll_over" carries images from epoch to epoch, which parts of '
            'one permutation cannot agree on: use "pad" or "discard" with num_parts and shuffle'
        )
    return RollOverPlan(order, batch_size, pads_new=True)


@MXDataProvider.register
class RecordImageProvider(PlannedProvider):
    """Base class of the providers of images: the `job`, done with a `source` and its `labels`."""

    def __init__(self, job: ImageJob, source: ImageSource, labels: Labels) -> None:
        if source.image_starts is not None and job.rule is None:
            raise ValueError(
                f"{source.name} has lists of images, which need the image processor of a "
                "vision-language model as recipe"
            )
        if job.shapes is not None:
            job = replace(job, shapes=job.shapes.over(source))
        options, packs, shapes = job.options, job.packs, job.shapes
        classes = PackClasses(source, packs, labels, options.on_error)
        classes.unlisted().say(source.name, strict=options.strict, stacklevel=3)
        if not labels.label_is_class:
            refuse_classes(options, packs)
        order, unusable = order_of_images(source, options, packs, classes.read)
        sizes = None if shapes is None else shapes.sizes(source, job.pack_recipes, options)
        mean_image = mean_image_of(source, job)
        plans = job.plans(labels, classes.changes, mean_image, sizes)
        caches = open_caches(
            source, steady_records(order, len(source)), packs, job.pack_recipes, options
        )
        self._entries = open_entries(source, options)
        plan, dtype = plans[0].plan, job.normalise and job.normalise.dtype
        data = describe_images(options, plan, shapes, dtype, sizes)
        fields = ImageFields(
            options.fields,
            source,
            len(job.views),
            labels.objects,
            (options.data_name, options.label_name),
            len(data),
        )
        fields.refuse_mosaics(job.pack_recipes)
        engines = ImageEngines(
            job,
            source,
            plans,
            [cache and cache.images for cache in caches],
            labels.shape,
            fields,
            None if self._entries is None else self._entries.store,
            [desc.name for desc in data],
        )
        batches = _batches(job, order, sizes, source)
        self._tail = None
        if job.named is not None and job.named.tail:
            self._tail = PythonTail(job.named, options, bool(job.views), data[0])
            data = [self._tail.desc]
        slots = data[0].shape[0] if options.patches else options.batch_size
        own_order = batches.described() if isinstance(batches, BucketPlan) else None
        settings: dict[str, Any] = {
            "file": source.fingerprint(),
            "order": own_order or describe_order(order),
            **job.saved(),
            **classes.saved(options),
        }
        if mean_image is not None:
            settings["mean_img"] = check_of(mean_image)
        if fields:
            settings["fields"] = dict(fields.specs)
        super().__init__(
            batches,
            engines(options.batch_size, options.prefetch_buffer),
            engines,
            [*data, *fields.described(plan, slots, dtype)],
            labels.described(options),
            job.placement,
            **options.values("epoch", "on_error", "error_budget", "verbose"),
            skipped=unusable,
            settings={**settings, **job.more},
            form=job.form,
            check=getattr(source, "check_unchanged", lambda: None),
        )
        self.path_imgrec: str = source.name
        self.packs = packs
        self._job, self._plans, self._caches, self._fields = job, plans, caches, fields
        self._firsts, self._label_is_class = source.firsts, labels.label_is_class
        self._classes: PackClasses | None = classes
        self._as_buffer = options.ragged == "buffer"
        if self._tail is not None:
            self._tail_images = self._provider_times.timing("python", self._tail)
        self._normalised = self._provider_times.timing("normalise", fields.finish)
        if options.verbose:
            logger.info(
                "%s: %d of %d records, %s threads",
                self.path_imgrec,
                self.num_samples,
                len(source),
                options.preprocess_threads,
            )

    def _shown(self) -> list[str]:
        return [self.path_imgrec, *super()._shown()]

    def _open_classes(self) -> PackClasses:
        """Return the classes of the packs, with their source."""
        if self._classes is None:
            raise ValueError("the provider is closed")
        return self._classes

    @property
    def identities(self) -> np.ndarray | None:
        """The keys ``[first, end)`` of every identity's images; None for an ordinary pack.

        In a pack with keys from 2**24 on, the first access reads the labels of some of its images.

        Raises
        ------
        RecordHeaderError
            If keys were rounded and the labels of the images do not determine the right ones.
        ValueError
            If the provider is closed.
        """
        return self._open_classes().source.identities

    @property
    def num_classes(self) -> int:
        """Number of classes of all packs together, found from `classes`, identities or labels.

        The first access may read the labels of all records.

        Raises
        ------
        ValueError
            If a label is not a whole number of at least 0, or the provider is closed.
        """
        return self._open_classes().count()

    @property
    def class_to_idx(self) -> dict[str, int]:
        """The label of each class by its name, in the order of the labels; empty without names.

        The names are read from ``PREFIX.classes.txt`` beside each pack on this machine.

        Raises
        ------
        ValueError
            If the provider is closed.
        """
        return labels_of_names(self._open_classes().names())

    @property
    def classes(self) -> list[str]:
        """The names of `class_to_idx`, in the order of the labels.

        A warning says where labels have gaps or share a name, so that ``classes[label]`` is another
        name; `class_to_idx` and `num_classes` are right there too.
        """
        return names_in_order(self.class_to_idx)

    @property
    def fields(self) -> dict[str, FieldKind]:
        """The fields of a sample by their names in a batch, as the keyword `fields` gives them."""
        return self._fields.kinds()

    def cache_info(self) -> CacheInfo | None:
        """Return counters of the cache, of all packs together; None without a cache.

        Raises
        ------
        ValueError
            If the provider is closed, which frees the cache.
        """
        opened = [cache for cache in self._caches if cache is not None]
        if not opened:
            return None
        if self._make_engine is None:
            raise ValueError("the provider is closed")
        return CacheInfo.of(opened)

    def show(
        self, batch: DataBatch | None = None, *, classes: Classes = None, columns: int = 8
    ) -> Image:
        """Draw the images of a batch side by side, as they were before normalisation.

        Parameters
        ----------
        batch : DataBatch, optional
            A batch of this provider; by default the next one, which is still delivered afterwards.
        classes : mapping of int to str, sequence of str, or path, optional
            Names of the labels, or the pack or file that they are taken from.  By default those
            beside the packs of this provider, ``PREFIX.classes.txt``, if there is one label for an
            image; ``{}`` for numbers.
        columns : int
            Images in a row, at least 1.

        Returns
        -------
        PIL.Image.Image
            RGB; notebooks show it by themselves.  The title has seed and epoch; padding is faint.

        Raises
        ------
        ValueError
            If `batch` holds no images, a recipe has functions in Python, or the provider is closed.
        StopIteration
            If there is no batch.
        """
        if self._tail is not None:
            raise ValueError("the images were made by functions in Python: show those of a recipe")
        if self._job.rule is not None:
            raise ValueError(
                f"{self._job.rule.name} cuts images: show those of an ImageRecordIter without it"
            )
        title = f"seed {self._job.options.seed}"
        if batch is None:
            title += f", epoch {self._settle(self._position).epoch}"
            batch = self._upcoming()
        if classes is None and self._classes is not None:
            single = all(len(desc.shape) == 1 for desc in self.provide_label)
            classes = self._classes.names() if single or not self._label_is_class else None
        if self._job.shapes is not None and self._job.shapes.patch:
            batch = whole_images(batch, self._job.shapes.patch)
        pixels = undo_normalisation(self)
        return show_batch(batch, pixels, title, classes, columns, described=self._fields.said())

    def _provider_advice(self, report: EpochReport) -> EpochReport:
        tries = None if self._job.shapes is not None else self._make_engine
        names = "" if self._tail is None else self._tail.names
        return advised(report, tries, self._position.epoch, names)  # type: ignore[arg-type]

    def _upcoming(self) -> DataBatch:
        """Make the batch that `next` delivers next, and stay where it is; replace no record."""
        position = self._settle(self._position)
        if self._empty:
            raise StopIteration
        request = self._request(position)
        with engine_apart(self._make_engine, self.batch_size) as engine:
            data, label, ids = made(
                engine, request.rows, position.epoch, request.draws, *request.shape
            )
            batch = self._batch(data, label, ids, request.pad)
        batch.source = self._sources(request.rows, len(ids))
        return batch

    def close(self) -> None:
        """Stop the background work; batches handed out stay valid.  Idempotent."""
        super().close()
        if self._entries is not None:
            self._entries.close()
        self._classes = None  # with it and the fields goes the source
        self._fields.close()
        # The stage has given them up as well: these are the last references to their memory.
        self._caches = [cache and cache._replace(images=None) for cache in self._caches]

    def _sources(self, rows: np.ndarray, slots: int) -> np.ndarray:
        if len(self._firsts) == 1 and len(rows) == slots:
            return zeros(len(rows))
        packs = np.full(slots, -1, np.int64)
        packs[: len(rows)] = np.searchsorted(self._firsts, rows, side="right") - 1
        return packs

    def _batch(self, data: Any, label: Any, ids: np.ndarray, pad: int) -> DataBatch:
        if not isinstance(data, SeparateArrays):
            batch = super()._batch(data, label, ids, pad)
            if self._form is None:
                describe_batch(batch)
            if self._fields:
                batch.fields, batch.kinds = self._fields.lists(data), self.fields
            return batch
        arrays, described = ragged_data(data, self.provide_data[0], self._as_buffer)
        _, labels = self._arrays(arrays, label)
        placed = self._to_device([*arrays, *labels])
        made, labels = placed[: len(arrays)], placed[len(arrays) :]
        return RaggedBatch(
            made if self._as_buffer else [SeparateArrays(made)],
            labels,
            pad=pad,
            index=ids,
            provide_data=described,
            provide_label=[
                DataDesc(one.name, array.shape, one.dtype, one.layout)
                for one, array in zip(self.provide_label, labels, strict=True)
            ],
        )

    def _lists(self, data: Any) -> list[list[Any]]:
        return list(self._fields.lists(data).values()) if self._fields else []

    def _arrays(self, data: Any, label: Any) -> tuple[list[Any], list[Any]]:
        if isinstance(data, SeparateArrays) and self._as_buffer:
            data, _ = ragged_data(data, self.provide_data[0], True)
        if self._fields:
            data = self._fields.arrays(data, self._plans[0].plan)
        if self._tail is not None:
            call = self._tail_images
            data = call(data) if not self._fields else [call(data[0]), *data[1:]]
        if not self._stored[1]:
            return super()._arrays(data, label)
        (desc,) = self._stored[1]
        with np.errstate(invalid="ignore"):  # compared below
            typed = label.astype(desc.dtype, copy=False)
        if typed is not label and not np.array_equal(typed, label, equal_nan=True):
            wrong = label[typed != label][0]
            raise ValueError(f"label_dtype={desc.dtype.name!r}, but there is a label {wrong:g}")
        return super()._arrays(data, typed[:, 0] if len(desc.shape) == 1 else typed)

    def _provider_samples(self) -> Any:
        self._fields.refuse_packed()
        shapes = self._job.shapes
        samples = replace(super()._provider_samples(), lists=self._fields.of_lists)
        return samples if shapes is None else shapes.joined(samples, self._as_buffer)

    def _finish(self, data: Sequence[Any]) -> list[Any]:
        normalise = self._job.normalise
        if normalise is None or decoded_there(self._job.options):  # or the engine has done it
            return list(data)
        return self._normalised(data, normalise)


def undo_normalisation(provider: RecordImageProvider) -> Pixels:
    """Return a function from the samples of a provider to grey levels.

    Changes of contrast and illumination that were drawn for an image, and rounding to the element
    type, are not undone.
    """
    settings = [(pack.recipe, pack.plan.mean_image) for pack in provider._plans]
    dtype = settings and provider.provide_data[0].dtype
    keeps_bits = not any(cuts_of(recipe, str(dtype)) for recipe, _ in settings)

    def pixels(images: np.ndarray, source: Any) -> np.ndarray:
        if dtype == np.uint8:
            return images
        shown = images.astype(np.float32)
        packs = np.zeros(len(images), np.int64) if source is None else np.maximum(source, 0)
        for number, (recipe, mean_image) in enumerate(settings):
            mine, channels = packs == number, images.shape[3]
            mean = np.array(recipe.mean[:channels], np.float32)
            if dtype == np.int8:
                shown[mine] += np.rint(mean)
                continue
            std = np.array(recipe.std[:channels], np.float32)
            back = shown[mine] / np.float32(recipe.scale) * std
            shown[mine] = back + (
                mean if mean_image is None else layout_plan("chw", "hwc")(mean_image)
            )
        # Images of more than 8 bits, which nothing but these keywords has changed.
        most = shown.max(axis=(1, 2, 3), keepdims=True, initial=255)
        return shown * np.where(keeps_bits & (most > 256), 255 / most, 1)

    return pixels
