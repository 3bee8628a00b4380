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
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from recordio.formats.jpeg.jpeg import DEFAULT_LIMITS
from recordio.keywords.options import divided, refuse_ineffective, warn_of_ineffective

from ..core.batch import DataBatch, DataDesc
from ..core.device import placement
from ..core.dtypes import BATCH_TYPES
from ..core.layout import plan as layout_plan
from ..core.order import BatchPlan, Order, check_of
from ..core.order.parts import zeros
from ..images.augment.named_recipes import NamedRecipe
from ..images.plan import RenderPlan
from ..images.sections import Section
from ..images.sources.packs import Pack, Packs
from ..images.stage import Stage
from ..images.view_plans import augment_key, with_views
from .batch_form import BatchForm
from .engine import Engine, engine_apart, made
from .fetched_ahead import fetched_ahead, warn_of_refetching
from .image_caching import CacheInfo, cached_recipe, open_caches, steady_records
from .image_options import ImageRecordOptions, element_type
from .image_orders import describe_order, order_of_images
from .image_packs import PackClasses, described, packs_of, varied
from .image_settings import ImageSource, device_normalisation, make_mean_image
from .image_views import described_views
from .mx_data_provider import MXDataProvider
from .planned import PlannedProvider
from .show import Classes, Pixels, show_batch

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["RecordImageProvider", "undo_normalisation"]

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
    dtypes: tuple[str, ...] = tuple(BATCH_TYPES)
    #: Keywords that belong together, if they were given so.
    _named: NamedRecipe | None = None
    #: Of every view of an image, if there are several.
    _view_recipes: tuple[Any, ...] = ()
    #: Whether the first label of a record is what a mapping of weights can name.
    class_labels = True

    def __init__(self, *values: Any, **keywords: Any) -> None:
        options, recipe = self._checked(values, keywords)
        packs = packs_of(options)
        options, form = self._formed(options, recipe)
        recipes = self._recipes(options, packs, recipe, "scaled_decode" in keywords)
        view_recipes = [self._views_of(pack, options) for pack in packs]
        self._normalise = None
        if options.normalise_on == "device":
            every = [*recipes, *(own for views in view_recipes for own in views)]
            self._normalise = device_normalisation(every, options)
            options = replace(options, dtype="uint8")
        place = placement(options.device, ring=options.prefetch_buffer)
        plan_class: Any = partial(self.plan_class, **options.values(*DEFAULT_LIMITS))
        source = self._open(options, packs)
        warn_of_refetching(source, options)
        lists = [pack.path_imglist for pack in packs]
        labels = self._plan_labels(source, lists, recipe, options)
        listed = [own["labels"] for own in labels]
        on_error = options.on_error
        classes = PackClasses(source, packs, listed, self._distinct_classes, on_error)
        if not self.class_labels:
            self._refuse_classes(options, packs)
        order, unusable = order_of_images(source, options, packs, classes.read)
        mean_image = None
        if options.mean_img and not recipe.means_win:
            mean_image = make_mean_image(source, order, plan_class, recipe, options)
        seed_aug = options.seed if options.seed_aug is None else options.seed_aug
        key = augment_key(seed_aug)
        self._make_plans: list[Any] = [
            partial(
                plan_class,
                own,
                key=key,
                **options.values("layout", "dtype"),
                mean_image=mean_image,
                change=change,
                **label,
            )
            for own, change, label in zip(recipes, classes.changes, labels, strict=True)
        ]
        if self._view_recipes:
            self._make_plans = [
                with_views(make, views, seed_aug)
                for make, views in zip(self._make_plans, view_recipes, strict=True)
            ]
        plan = self._make_plans[0](batch_size=options.batch_size)
        records = steady_records(order, len(source))
        self._caches = open_caches(source, records, packs, recipes, options)
        cached = [cache and cache.images for cache in self._caches]
        typed = self._normalise.dtype if self._normalise else None
        data_desc = described_views(options, plan, typed)
        label_desc = []
        if options.label_name is not None:
            label_desc = [self._describe_labels(options, plan.label_width)]
        settings = {
            "file": source.fingerprint(),
            "order": describe_order(order),
            **options.saved(),
            **self._recipe_settings(),
            **(recipes[0] if len(packs) == 1 else recipe).changed(),
            **described(options, packs, classes, listed),
        }
        if mean_image is not None:
            settings["mean_img"] = check_of(mean_image)
        self.path_imgrec = source.name
        self.packs = packs
        self._seed = options.seed
        self._classes: PackClasses | None = classes
        self._firsts = source.firsts
        provider = weakref.ref(self)

        def make_engine(batch_size: int, depth: int) -> Engine:
            maker = cast(RecordImageProvider, provider())
            engine = maker._engine_of(
                source,
                [make(batch_size=batch_size) for make in maker._make_plans],
                key,
                cached,
                batch_size=batch_size,
                threads=options.preprocess_threads,
                depth=min(depth, options.prefetch_buffer),
                allocate=place.allocate,
                strict=options.strict,
            )
            return fetched_ahead(engine, source, batch_size, options)

        super().__init__(
            self._plan_batches(order, options),
            make_engine(options.batch_size, options.prefetch_buffer),
            make_engine,
            data_desc,
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

    def _formed(
        self, options: ImageRecordOptions, recipe: Any
    ) -> tuple[ImageRecordOptions, BatchForm | None]:
        """The layout and dtype in which images are made, and the form they are asked for in."""
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
        return replace(options, dtype=element_type("dtype", dtype, self.dtypes)), form

    def _recipes(
        self, options: ImageRecordOptions, packs: Sequence[Pack], recipe: Any, asked: bool
    ) -> list[Any]:
        """The recipe of every pack; `asked`: whether the caller named `scaled_decode`."""
        recipes = [self._varied(recipe, pack) for pack in packs]
        for own in recipes:
            refuse_ineffective(options, own)
        warn_of_ineffective(options, recipe)
        for own in recipes:
            if own is not recipe:
                warn_of_ineffective(own)
        return [
            cached_recipe(own, asked or "scaled_decode" in pack.augmentation)
            if pack.cache or options.cache
            else own
            for own, pack in zip(recipes, packs, strict=True)
        ]

    def _views_of(self, pack: Pack, options: ImageRecordOptions) -> list[Any]:
        """The recipes of the views of a pack's images; none without `views`."""
        recipes = [self._varied(recipe, pack) for recipe in self._view_recipes]
        for own in recipes:
            refuse_ineffective(options, own)
        return recipes

    def _shown(self) -> list[str]:
        return [self.path_imgrec, *super()._shown()]

    @property
    def identities(self) -> np.ndarray | None:
        """The keys ``[first, end)`` of every identity's images; None for an ordinary pack.

        In a pack with keys from 2**24 on, the first time reads the labels of some of its images.

        Raises
        ------
        RecordHeaderError
            If keys were rounded, and the labels of the images do not tell which were meant.
        ValueError
            If the provider is closed.
        """
        if self._classes is None:
            raise ValueError("the provider is closed")
        return self._classes.source.identities

    @property
    def num_classes(self) -> int:
        """Number of classes of all packs together, found from `classes`, identities or labels.

        The first time it may read the labels of all records.

        Raises
        ------
        ValueError
            If there are labels that are no whole numbers of at least 0, or the provider is closed.
        """
        if self._classes is None:
            raise ValueError("the provider is closed")
        return self._classes.count()

    def cache_info(self) -> CacheInfo | None:
        """What the cache holds and did so far, those of several packs together; None without one.

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
        self,
        batch: DataBatch | None = None,
        *,
        classes: Classes = None,
        columns: int = 8,
    ) -> Image:
        """The images of a batch side by side, as they were before they were normalised.

        Parameters
        ----------
        batch : DataBatch, optional
            One of this provider; by default the one that comes next, which is made and not taken.
        classes : mapping of int to str, sequence of str, or path, optional
            Names of the labels, or the pack or file that they are taken from.  By default those
            beside the packs of this provider, ``PREFIX.classes.txt``, if there is one label for an
            image; ``{}`` for numbers.
        columns : int
            Images in a row, at least 1.

        Returns
        -------
        PIL.Image.Image
            RGB; notebooks show it by themselves.  Its title has seed and epoch; padding is faint.

        Raises
        ------
        ValueError
            If `batch` is none of images, or the provider is closed.
        StopIteration
            If there is no batch.
        """
        title = f"seed {self._seed}"
        if batch is None:
            title += f", epoch {self._settle(self._position).epoch}"
            batch = self._upcoming()
        if classes is None and self._classes is not None:
            single = all(len(desc.shape) == 1 for desc in self.provide_label)
            classes = self._classes.names() if single or not self.class_labels else None
        return show_batch(batch, undo_normalisation(self), title, classes, columns)

    def _upcoming(self) -> DataBatch:
        """Make the batch that `next` delivers next, and stay where it is; replace no record."""
        epoch, done = self._settle(self._position)
        if self._empty:
            raise StopIteration
        rows, pad = self._plan.rows(epoch, 0, done)
        with engine_apart(self._make_engine, self.batch_size) as engine:
            data, label, ids = made(engine, rows, epoch, self._plan.draws(0, done))
            batch = self._batch(data, label, ids, pad)
        batch.source = self._sources(rows)
        return batch

    def close(self) -> None:
        """Stop the background work; batches handed out stay valid.  Idempotent."""
        super().close()
        self._classes = None  # with it goes the source
        # The stage has given them up as well: these are the last references to their memory.
        self._caches = [cache and cache._replace(images=None) for cache in self._caches]

    def _sources(self, rows: np.ndarray) -> np.ndarray:
        if len(self._firsts) == 1 and len(rows) == self.batch_size:
            return zeros(len(rows))
        packs = np.full(self.batch_size, -1, np.int64)
        packs[: len(rows)] = np.searchsorted(self._firsts, rows, side="right") - 1
        return packs

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

    def _recipe_settings(self) -> dict[str, Any]:
        """What else a saved state tells of the keywords."""
        found: dict[str, Any] = {}
        if self._named is not None:
            found["recipe"] = self._named.to_json()
        if self._view_recipes:
            found["views"] = [view.changed() for view in self._view_recipes]
        return found

    def _varied(self, recipe: Any, pack: Pack) -> Any:
        """The recipe for the images of a pack."""
        return varied(recipe, pack)

    def _open(self, options: ImageRecordOptions, packs: Sequence[Pack]) -> ImageSource:
        """The images of the provider."""
        return Packs(packs, options.on_error, options.verify, options.remote)

    def _plan_batches(self, order: Order, options: ImageRecordOptions) -> BatchPlan:
        """How an epoch is cut into batches."""
        return BatchPlan(order, options.batch_size, "wrap" if options.round_batch else "pad")

    def _plan_labels(
        self, source: Any, lists: Sequence[str], recipe: Any, options: Any
    ) -> list[dict[str, Any]]:
        """For each pack what its plan is told about labels: keywords, `labels` among them."""
        raise TypeError(f"{type(self).__name__} does not say what its labels are")

    @staticmethod
    def _distinct_classes(member: Any, listed: Any) -> np.ndarray:
        """The different class labels of a pack, ascending."""
        labels, _ = member.labels(listed, "skip")
        return np.unique(labels[~np.isnan(labels)])

    def _refuse_classes(self, options: ImageRecordOptions, packs: Sequence[Pack]) -> None:
        """Refuse what needs one class for every image."""
        weights = [options.weights, *(pack.weights for pack in packs)]
        if any(isinstance(weight, Mapping) for weight in weights):
            raise ValueError("weights by label need class labels: give one weight for every record")
        for name in ("images_per_class", "classes_per_batch"):
            if getattr(options, name) is not None:
                raise ValueError(f"{name} needs class labels, one for every image: drop it")

    def _engine_of(
        self,
        source: ImageSource,
        plans: Sequence[RenderPlan],
        key: int,
        cached: Sequence[Any],
        **sizes: Any,
    ) -> Engine:
        """What makes the images; `key` determines what is drawn for them."""
        parts = zip(plans, cached, source.firsts.tolist(), strict=True)
        return Stage(source.bytes_source(), *(Section(*part) for part in parts), **sizes)

    def _describe_labels(self, options: ImageRecordOptions, width: int) -> DataDesc:
        """What the label array looks like, with `width` values for each sample."""
        name = cast(str, options.label_name)
        return DataDesc(name, (options.batch_size, width), self._label_dtype, "NC")


def undo_normalisation(provider: RecordImageProvider) -> Pixels:
    """A function from the samples of a provider to grey levels.

    Changes of contrast and illumination that were drawn for an image, and rounding to the element
    type, are not undone.
    """
    settings = [(make.args[0], make.keywords["mean_image"]) for make in provider._make_plans]
    dtype = settings and provider.provide_data[0].dtype

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
        return shown

    return pixels
