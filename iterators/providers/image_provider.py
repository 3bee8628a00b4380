"""A provider of images, put together: source, recipes, labels, order, form.

`ImageJob` holds checked keywords and what follows from them before any file is opened.
`RecordImageProvider` takes it with an opened source and its labels, makes an order, plans, caches
and an engine, and runs them.  The four providers of images say which recipe, source and labels.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from recordio.formats.jpeg.jpeg import DEFAULT_LIMITS
from recordio.packs.classes import labels_of_names

from ..core.batch import DataBatch, DataDesc
from ..core.device import DeviceNormalisation, Placement, placement
from ..core.dtypes import BATCH_TYPES
from ..core.field_specs import FieldKind
from ..core.layout import plan as layout_plan
from ..core.order import BatchPlan, BucketPlan, Order, RollOverPlan, check_of
from ..core.order.parts import zeros
from ..images.augment.named_recipes import NamedRecipe
from ..images.batch_memory import SeparateArrays
from ..images.fields.image_fields import ImageFields, array_names
from ..images.plan import RenderPlan
from ..images.sources.mixed_packs import Pack
from ..images.stored_bits import cuts_of
from ..images.view_plans import augment_key, with_views
from .advice import advised
from .batch_form import BatchForm
from .device_images import check_on_device, decoded_there
from .engine import engine_apart, made
from .image_caching import CacheInfo, open_caches, steady_records
from .image_engines import ImageEngines
from .image_entries import open_entries
from .image_labels import Labels, PackClasses, refuse_classes
from .image_options import ImageRecordOptions, element_type
from .image_orders import describe_order, order_of_images
from .image_recipes import (
    Recipes,
    device_normalisation,
    mean_image_of,
    provided_data,
    recipes_of,
    varied,
)
from .image_shapes import (
    RaggedBatch,
    Shapes,
    bucket_plan,
    describe_batch,
    patch_data,
    ragged_data,
    sizes_of,
    unknown_size,
    whole_images,
)
from .image_sources import ImageSource, packs_of
from .mx_data_provider import MXDataProvider
from .planned import PlannedProvider
from .python_images import ImageChange
from .python_tail import PythonTail
from .report import EpochReport
from .show import Classes, Pixels, show_batch

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["DTYPES", "ImageJob", "RecordImageProvider", "undo_normalisation"]

#: Element types of images; the first one when none is asked for.
DTYPES = tuple(BATCH_TYPES)

logger: logging.Logger = logging.getLogger("iterators")


@dataclass(frozen=True)
class ImageJob:
    """Checked keywords of an image provider, and what they mean for its packs."""

    options: ImageRecordOptions
    packs: tuple[Pack, ...]
    recipes: Recipes
    form: BatchForm | None
    #: What is left to do on a device, which gets the images as uint8.
    normalise: DeviceNormalisation | None
    placement: Placement
    #: Those of batches and images, if there are several.
    shapes: Shapes | None = None

    @classmethod
    def of(
        cls,
        options: ImageRecordOptions,
        recipes: Sequence[Any],
        *,
        dtypes: Sequence[str] = DTYPES,
        vary: Callable[[Any, Pack], Any] = varied,
        scaled_decode: bool,
        shapes: Shapes | None = None,
    ) -> ImageJob:
        """Find packs, form and recipes; the parameters are those of `recipes_of`."""
        packs = packs_of(options)
        options, form = _in_form(options, recipes[0].data_shape, dtypes)
        found = recipes_of(options, packs, recipes, vary, scaled_decode)
        if shapes is None and options.patches:
            raise ValueError(
                "patches follow the sizes of the images: give data_shape=None, or (channels, None, "
                "None)"
            )
        if not options.patches and (options.sequence_lengths or options.batch_patches):
            raise ValueError("sequence_lengths and batch_patches need patches, 16 for example")
        if shapes is not None:
            shapes = shapes.in_patches(options)
            shapes.check(options, found.packs)
        if options.ragged != "list" and (shapes is None or not shapes.of_images):
            raise ValueError(f"ragged={options.ragged!r} needs data_shape=None")
        normalise = None
        device = placement(options.device, ring=options.prefetch_buffer)
        if decoded_there(options):
            check_on_device(options, found.packs, device.device, shapes is not None)
        if options.normalise_on == "device" or (
            decoded_there(options) and options.dtype != "uint8"
        ):
            normalise = device_normalisation(found, options)
            options = replace(options, dtype="uint8")
        return cls(options, packs, found, form, normalise, device, shapes)

    @property
    def key(self) -> int:
        """Key of everything that is drawn for an image."""
        return augment_key(self.seed_aug)

    @property
    def seed_aug(self) -> int:
        """Seed of augmentation."""
        given = self.options.seed_aug
        return self.options.seed if given is None else given


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


def _plans(
    job: ImageJob, labels: Labels, classes: PackClasses, plan_class: Any, mean_image: Any
) -> list[partial[RenderPlan]]:
    """Return what makes the plan of every pack."""
    plans: list[Any] = [
        partial(
            plan_class,
            own,
            key=job.key,
            **job.options.values("layout", "dtype"),
            mean_image=mean_image,
            change=change,
            **label,
        )
        for own, change, label in zip(job.recipes.packs, classes.changes, labels.plans, strict=True)
    ]
    if not job.recipes.views:
        return plans
    pairs = zip(plans, job.recipes.views_of_packs, strict=True)
    return [with_views(make, views, job.seed_aug) for make, views in pairs]


def _batches(
    job: ImageJob, order: Order, tail: Any, sizes: np.ndarray | None, source: ImageSource
) -> BatchPlan:
    """Cut epochs into batches; `sizes` are those of the images, if they keep them."""
    batch_size, seed = job.options.batch_size, job.options.seed
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
    """Base class of the providers of images, which `job`, `source` and `labels` describe.

    `plan_class` is what the image stage is told, `tail` what becomes of a short last batch, and
    `named` the recipe that the keywords are of.  ``change(plan)`` returns what is called for every
    image, where that is done in Python; a saved state must agree with `more`, too.
    """

    def __init__(
        self,
        job: ImageJob,
        source: ImageSource,
        labels: Labels,
        *,
        plan_class: type[RenderPlan] = RenderPlan,
        tail: str = "",
        named: NamedRecipe | None = None,
        change: Callable[[RenderPlan], ImageChange] | None = None,
        more: dict[str, Any] | None = None,
    ) -> None:
        options, packs, recipes = job.options, job.packs, job.recipes
        classes = PackClasses(source, packs, labels, options.on_error)
        classes.unlisted().say(source.name, strict=options.strict, stacklevel=3)
        if not labels.of_classes:
            refuse_classes(options, packs)
        order, unusable = order_of_images(source, options, packs, classes.read)
        limited = partial(plan_class, **options.values(*DEFAULT_LIMITS))
        sizes = None
        if job.shapes is not None and job.shapes.patch:
            side = job.shapes.patch * max(job.shapes.lengths)
            limited = partial(limited, largest=(side, side), patch=job.shapes.patch)
        elif job.shapes is not None and job.shapes.of_images:
            sizes = sizes_of(source, recipes.packs, options)
            limited = partial(limited, largest=tuple(sizes.max(0).tolist()))
        mean_image = mean_image_of(source, limited, recipes.common, options)
        plans = _plans(job, labels, classes, limited, mean_image)
        caches = open_caches(
            source, steady_records(order, len(source)), packs, recipes.packs, options
        )
        images = [cache and cache.images for cache in caches]
        self._entries = open_entries(source, options)
        entries = None if self._entries is None else self._entries.store
        taken = options.data_name, options.label_name
        views, arrays = len(recipes.views), 3 if options.patches else None
        fields = ImageFields(options.fields, source, views, labels.objects, taken, arrays)
        fields.refuse_mosaics(recipes.packs)
        self._fields, self._image = fields, plans[0]()
        engines = ImageEngines(
            source,
            plans,
            images,
            options,
            job.placement,
            job.key,
            change,
            labels.shape,
            fields,
            entries,
        )
        plan, dtype = plans[0](), job.normalise and job.normalise.dtype
        batches = _batches(
            job, order, tail or ("wrap" if options.round_batch else "pad"), sizes, source
        )
        settings = {"file": source.fingerprint(), "order": describe_order(order), **options.saved()}
        if decoded_there(options):  # to pixels of its own
            settings["decode_on"] = "device"
        if isinstance(batches, BucketPlan):
            settings["order"] = batches.described()
        elif job.shapes is not None:
            settings["shapes"] = job.shapes.described()
        if named is not None:
            settings["recipe"] = named.described()
        if recipes.views:
            settings["views"] = [view.changed() for view in recipes.views]
        settings |= {**recipes.saved(), **classes.saved(options)}
        if mean_image is not None:
            settings["mean_img"] = check_of(mean_image)
        if fields:
            settings["fields"] = dict(fields.specs)
        provided = provided_data(options, plan, dtype)
        if sizes is not None:
            provided = [unknown_size(desc) for desc in provided]
        if job.shapes is not None and job.shapes.patch:
            channels = recipes.common.channels
            provided = patch_data(job.shapes, provided[0], channels, options.batch_size)
        self._tail = None
        if named is not None and named.tail:
            self._tail = PythonTail(named, options, bool(recipes.views))
            provided = [self._tail.described(provided[0])]
        slots = provided[0].shape[0] if options.patches else options.batch_size
        provided += fields.described(plan, slots, dtype)
        super().__init__(
            batches,
            engines(options.batch_size, options.prefetch_buffer),
            engines,
            provided,
            labels.described(options),
            job.placement,
            **options.values("epoch", "on_error", "error_budget", "verbose"),
            skipped=unusable,
            settings=settings | (more or {}),
            form=job.form,
            check=getattr(source, "check_unchanged", lambda: None),
        )
        self.path_imgrec: str = source.name
        self.packs = packs
        self._make_plans, self._caches, self._normalise = plans, caches, job.normalise
        self._seed, self._firsts, self._of_classes = options.seed, source.firsts, labels.of_classes
        self._classes: PackClasses | None = classes
        self._shapes, self._as_buffer = job.shapes, options.ragged == "buffer"
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
        if self._classes is None:
            raise ValueError("the provider is closed")
        return self._classes.source.identities

    @property
    def num_classes(self) -> int:
        """Number of classes of all packs together, found from `classes`, identities or labels.

        The first access may read the labels of all records.

        Raises
        ------
        ValueError
            If a label is not a whole number of at least 0, or the provider is closed.
        """
        if self._classes is None:
            raise ValueError("the provider is closed")
        return self._classes.count()

    @property
    def class_to_idx(self) -> dict[str, int]:
        """The label of each class by its name, in the order of the labels; empty without names.

        The names are read from ``PREFIX.classes.txt`` beside each pack on this machine.

        Raises
        ------
        ValueError
            If the provider is closed.
        """
        if self._classes is None:
            raise ValueError("the provider is closed")
        return labels_of_names(self._classes.names())

    @property
    def classes(self) -> list[str]:
        """The names of `class_to_idx`, in the order of the labels."""
        return list(self.class_to_idx)

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
        title = f"seed {self._seed}"
        if batch is None:
            title += f", epoch {self._settle(self._position).epoch}"
            batch = self._upcoming()
        if classes is None and self._classes is not None:
            single = all(len(desc.shape) == 1 for desc in self.provide_label)
            classes = self._classes.names() if single or not self._of_classes else None
        if self._shapes is not None and self._shapes.patch:
            batch = whole_images(batch, self._shapes.patch)
        pixels = undo_normalisation(self)
        return show_batch(batch, pixels, title, classes, columns, described=self._fields.said())

    def _provider_advice(self, report: EpochReport) -> EpochReport:
        tries = None if self._shapes is not None else self._make_engine
        names = "" if self._tail is None else self._tail.names
        return advised(report, tries, self._position.epoch, names)  # type: ignore[arg-type]

    def _upcoming(self) -> DataBatch:
        """Make the batch that `next` delivers next, and stay where it is; replace no record."""
        epoch, done = self._settle(self._position)
        if self._empty:
            raise StopIteration
        rows, pad = self._plan.rows(epoch, 0, done)
        with engine_apart(self._make_engine, self.batch_size) as engine:
            shape = self._batch_shape(epoch, done, rows)
            data, label, ids = made(engine, rows, epoch, self._plan.draws(0, done, epoch), *shape)
            batch = self._batch(data, label, ids, pad)
        batch.source = self._sources(rows, len(ids))
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

    def _arrays(self, data: Any, label: Any) -> tuple[list[Any], list[Any]]:
        if isinstance(data, SeparateArrays) and self._as_buffer:
            data, _ = ragged_data(data, self.provide_data[0], True)
        if self._fields:
            data = self._fields.arrays(data, self._image)
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
        self._fields.refuse_chosen()
        samples = super()._provider_samples()
        return samples if self._shapes is None else self._shapes.joined(samples, self._as_buffer)

    def _finish(self, data: Sequence[Any]) -> list[Any]:
        return self._normalised(data, self._normalise) if self._normalise else list(data)


def undo_normalisation(provider: RecordImageProvider) -> Pixels:
    """Return a function from the samples of a provider to grey levels.

    Changes of contrast and illumination that were drawn for an image, and rounding to the element
    type, are not undone.
    """
    settings = [(make.args[0], make.keywords["mean_image"]) for make in provider._make_plans]
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
