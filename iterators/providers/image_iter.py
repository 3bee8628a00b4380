"""`ImageIter`: MXNet's Python iterator over record files and lists of image files.

This module says what the parameters of `mx.image.ImageIter` mean for the image stage that all image
providers share, and has functions of the user's called where there are any.  It has no steps of its
own on pixels: `CreateAugmenter` describes those that the stage has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Any

from recordio.keywords.checks import unknown_keyword
from recordio.keywords.options import Options, accepts, by_name, divided

from ..core.dtypes import FLOAT_TYPES
from ..core.order import BatchPlan, Order, RollOverPlan, Tail
from ..images.augment.augmenter import Augmenter, AugmenterOptions, CreateAugmenter, augmenter_of
from ..images.augment.named_recipes import NamedRecipe
from ..images.linear_render import LinearPlan
from ..images.plan import RenderPlan
from ..images.sources.packs import Pack, Packs
from .engine import Engine
from .file_source import ImageFileSource, floor_part, listed_images, read_image_list
from .image_options import ImageClassIterOptions, ImageIterOptions, ImageRecordOptions
from .image_record import ImageRecordIter
from .image_settings import ImageSource
from .image_views import view_recipes
from .python_images import ImageChange, ImageSteps, PythonImages
from .roll_over import FullBatch, RollingProvider

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..core.keywords import ImageIterParameters

__all__ = ["ImageIter", "described_step"]


@accepts(ImageClassIterOptions, AugmenterOptions)
class ImageIter(RollingProvider, ImageRecordIter):
    """Batches of images from a record file, a list of image files, or a list in memory.

    The parameters have MXNet's names and defaults.  Images are decoded by the threads of the image
    stage, as those of `ImageRecordIter` are; image files are read when their turn comes.

    Parameters
    ----------
    {parameters}

    Raises
    ------
    TypeError
        For a parameter that does not exist, the closest one being suggested, and for an `aug_list`
        that cannot be called.
    ValueError
        For a value that is out of range, for parameters that contradict one another, and for lists
        and files without images.
    LabelError
        If a list is damaged or has another number of labels.
    RecordIOError
        If the record file or its index is damaged.

    See Also
    --------
    ImageRecordIter : what is common to all image providers.
    CreateAugmenter : what may happen to an image.

    Examples
    --------
    >>> import cv2, os, tempfile
    >>> import numpy as np
    >>> folder = tempfile.TemporaryDirectory()
    >>> for i in range(3):
    ...     _ = cv2.imwrite(os.path.join(folder.name, f"{i}.png"), np.full((9, 9, 3), i, np.uint8))
    >>> images = [[float(i), f"{i}.png"] for i in range(3)]
    >>> with ImageIter(2, (3, 8, 8), imglist=images, path_root=folder.name) as provider:
    ...     for batch in provider:
    ...         print(batch.data[0].shape, batch.label[0], batch.pad)
    (2, 3, 8, 8) [0. 1.] 0
    (2, 3, 8, 8) [2. 0.] 1
    >>> folder.cleanup()
    """

    recipe_class = Augmenter
    plan_class = LinearPlan
    options_class: type[ImageIterOptions] = ImageClassIterOptions  # type: ignore[assignment]
    #: The keywords of augmentation.
    augmentation_class: type[Options] = AugmenterOptions
    #: Of the images.
    dtypes = FLOAT_TYPES

    def __init__(self, *values: Any, **keywords: Unpack[ImageIterParameters]) -> None:
        super().__init__(*values, **keywords)  # type: ignore[misc]
        self._settings["last_batch_handle"] = self._handle
        self._note_settings()

    def _note_settings(self) -> None:
        """Have a saved state agree with the functions that are called."""
        if self._steps is not None:
            self._settings["aug_list"] = str([described_step(step) for step in self._steps])

    def _checked(
        self, values: Sequence[Any], keywords: dict[str, Any]
    ) -> tuple[ImageRecordOptions, Augmenter]:
        families = self.options_class, self.augmentation_class
        name = type(self).__name__
        keywords, beneath = self._expanded(by_name(name, keywords, self.options_class, values))
        own, augmentation = divided(name, keywords, *families)
        options = self.options_class(**own)
        if options.data_specs is not None and options.dtype != "float32":
            raise ValueError(
                f"data_specs says the type of the labels: drop dtype={options.dtype!r}"
            )
        if options.label_dtype is not None and "dtype" in own:
            raise ValueError("dtype is that of the labels too: give it or label_dtype, not both")
        self._handle = options.last_batch_handle
        if self._handle == "roll_over":
            self.batch_type = FullBatch
        self._files = self._list_files(options)
        if options.aug_list is not None and self._named is not None:
            raise ValueError("aug_list says what happens to an image: drop recipe")
        recipe, self._steps = self._augmentation(options.aug_list, augmentation, beneath)
        for name in ("cache", "strict"):
            if self._steps is not None and getattr(options, name):
                raise ValueError(
                    f"{name} is for images that CreateAugmenter describes: drop it, or give what "
                    "that returns as aug_list"
                )
        records = options.for_records()
        views = getattr(options, "views", None)
        if views is None:
            return records, recipe
        if self._steps is not None:
            raise ValueError(
                "views are of images that CreateAugmenter describes: drop them, or give what that "
                "returns as aug_list"
            )
        self._view_recipes = view_recipes(
            views, records, partial(augmenter_of, recipe.changed(), owner="views")
        )
        return records, self._view_recipes[0]

    def _expanded(self, keywords: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """The keywords with those of the provider in its recipe, and those of its augmentation."""
        if keywords.get("recipe") is None or self.options_class is not ImageClassIterOptions:
            return keywords, {}
        self._named = named = NamedRecipe.of(keywords["recipe"])
        known = {item.name for item in fields(self.options_class)} - {"recipe"}
        mine = {name: value for name, value in named.keywords.items() if name in known}
        rest = {name: value for name, value in named.keywords.items() if name not in known}
        return {**mine, **keywords, "recipe": named}, rest

    def _list_files(self, options: ImageIterOptions) -> ImageFileSource | None:
        """The image files that are meant, or None for a record file."""
        if not lists_files(options):
            return None
        path, root, width = options.path_imglist, options.path_root, options.label_width
        if options.imglist is not None:
            return ImageFileSource("imglist", listed_images(options.imglist, width), root)
        return ImageFileSource(path, read_image_list(path, width, options.remote), root)

    def _augmentation(
        self, aug_list: Any, more: dict[str, Any], beneath: dict[str, Any]
    ) -> tuple[Augmenter, tuple[Any, ...] | None]:
        """What happens to an image; or its shape alone, and functions that are to be called.

        `more` was given, `beneath` is in a recipe and counts where nothing was.
        """
        self._describes = aug_list is None
        if aug_list is None and self._named is None:
            return CreateAugmenter(**more), None
        if aug_list is None:
            recipe = augmenter_of({}, {"data_shape": more["data_shape"], **beneath}, "recipe")
            return augmenter_of(recipe.changed(), more), None
        if not isinstance(aug_list, Augmenter):
            return shape_alone(more), callables(aug_list)
        data_shape = shape_alone(more).data_shape
        if data_shape != aug_list.data_shape:
            raise ValueError(
                f"data_shape={data_shape!r} differs from that of aug_list, {aug_list.data_shape}"
            )
        return aug_list, None

    def _change(self, plan: RenderPlan) -> tuple[ImageChange, tuple[int, ...]]:
        """What is called for every image of a pack, and the shape of its labels."""
        steps = ImageSteps(self._steps or (), plan.label_width, plan.labels, plan.change)
        return steps, (plan.label_width,)

    def _engine_of(
        self,
        source: ImageSource,
        plans: Sequence[RenderPlan],
        key: int,
        cached: Sequence[Any],
        **sizes: Any,
    ) -> Engine:
        if self._steps is None:
            return super()._engine_of(source, plans, key, cached, **sizes)
        del sizes["strict"]  # refused with functions
        changes = [self._change(plan) for plan in plans]
        label_shape = changes[0][1]
        return PythonImages(
            source, plans[0], [change for change, _ in changes], label_shape, key=key, **sizes
        )

    def _open(self, options: ImageRecordOptions, packs: Sequence[Pack]) -> ImageSource:
        if self._files and options.verify:
            raise ValueError("verify needs path_imgrec: image files have no checksums")
        return self._files or _Records(packs, options.on_error, options.verify, options.remote)

    def _varied(self, recipe: Augmenter, pack: Pack) -> Augmenter:
        if not pack.augmentation:
            return recipe
        if not self._describes:
            raise ValueError("aug_list says what happens to an image: drop what Pack says of it")
        known = [item.name for item in fields(AugmenterOptions)]
        for name in ("data_shape", *sorted(set(pack.augmentation) - set(known))):
            if name in pack.augmentation:
                raise unknown_keyword("Pack", name, known)
        return augmenter_of(recipe.changed(), pack.augmentation, "Pack")

    def _plan_batches(self, order: Order, options: ImageRecordOptions) -> BatchPlan:
        if self._handle != "roll_over":
            tail: Tail = "wrap" if self._handle == "pad" else "drop"
            return BatchPlan(order, options.batch_size, tail)
        if order.stride > 1:
            raise ValueError(
                'last_batch_handle="roll_over" carries images from epoch to epoch, which parts of '
                'one permutation cannot agree on: use "pad" or "discard" with num_parts and shuffle'
            )
        return RollOverPlan(order, options.batch_size, pads_new=True)


class _Records(Packs):
    """Record files whose parts follow the rule of MXNet's Python iterators."""

    def part(self, num_parts: int, part_index: int) -> range:
        return floor_part(len(self), num_parts, part_index)


def callables(aug_list: Any) -> tuple[Any, ...]:
    """The functions of an `aug_list`, checked."""
    if not isinstance(aug_list, (list, tuple)):
        raise TypeError(
            f"aug_list={aug_list!r}: expected what CreateAugmenter returns, or a list of functions"
        )
    for step in aug_list:
        if not callable(step):
            raise TypeError(f"aug_list has {step!r}: expected functions that take an image")
    return tuple(aug_list)


def shape_alone(more: dict[str, Any]) -> Augmenter:
    """The shape of an image, whose augmentation is said by an `aug_list`, and by nothing `more`."""
    (data_shape, *names) = (more["data_shape"], *(more.keys() - {"data_shape"}))
    if names:
        raise ValueError(f"aug_list says what happens to an image: drop {min(names)}")
    return Augmenter(data_shape=data_shape)


def described_step(step: Any) -> Any:
    """What a function of an `aug_list` says about itself: `dumps`, or at least its name.

    Examples
    --------
    >>> import numpy as np
    >>> described_step(np.flipud)
    'numpy.flipud'
    """
    if hasattr(step, "dumps"):
        return step.dumps()
    kind = step if hasattr(step, "__qualname__") else type(step)
    return f"{kind.__module__}.{kind.__qualname__}"


def lists_files(options: ImageIterOptions) -> bool:
    """Whether a list of image files is meant, and not a record file."""
    if options.path_imgrec:
        for name, given in (
            ("imglist", options.imglist is not None),
            ("path_root", options.path_root),
        ):
            if given:
                raise ValueError(
                    f"{name} has no effect on the record file {options.path_imgrec!r}: drop it"
                )
        return False
    if options.path_imgidx:
        raise ValueError("path_imgidx needs path_imgrec: lists of image files have no index")
    if options.imglist is not None and options.path_imglist:
        raise ValueError("give path_imglist or imglist, not both")
    if options.imglist is None and not options.path_imglist:
        raise ValueError("there are no images: give path_imgrec, path_imglist or imglist")
    return True
