"""`ImageIter`: MXNet's Python iterator over record files and lists of image files.

It has no steps of its own on pixels: `CreateAugmenter` describes those of the image stage, and
functions of the user's are called where there are any.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Any

from recordio.keywords.checks import unknown_keyword
from recordio.keywords.options import accepts, by_name, divided

from ..core.dtypes import FLOAT_TYPES
from ..images.augment.augmenter import (
    Augmenter,
    AugmenterOptions,
    augmenter_of,
    described_augmenter,
)
from ..images.augment.named_recipes import NamedRecipe, refuse_processor
from ..images.plan import RenderPlan
from ..images.row_writer import LinearPlan
from ..images.sources.mixed_packs import Pack
from ..providers.image_job import ImageJob, view_recipes
from ..providers.image_labels import class_labels
from ..providers.image_options import ImageClassIterOptions, ImageIterOptions
from ..providers.image_provider import RecordImageProvider
from ..providers.image_sources import (
    FlooredPacks,
    ImageFileSource,
    ImageSource,
    listed_images,
    open_packs,
    read_image_list,
)
from ..providers.planned import RollingProvider
from ..providers.python_images import ImageSteps

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..core.keywords import ImageIterParameters

#: What becomes of a short last batch, by `last_batch_handle`.
TAILS = {"pad": "wrap", "discard": "drop", "roll_over": "roll_over"}


@accepts(ImageClassIterOptions, AugmenterOptions)
class ImageIter(RollingProvider, RecordImageProvider):
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
    OSError
        If a file cannot be read.

    See Also
    --------
    ImageRecordIter : the features common to all image providers.
    CreateAugmenter : the steps of augmentation.

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

    def __init__(self, *values: Any, **keywords: Unpack[ImageIterParameters]) -> None:
        owner = type(self).__name__
        words, named, beneath = _expanded(by_name(owner, keywords, ImageClassIterOptions, values))
        own, augmentation = divided(owner, words, ImageClassIterOptions, AugmenterOptions)
        options = ImageClassIterOptions(**own)
        check_label_types(options, own)
        files = _listed(options)
        if options.aug_list is not None and named is not None:
            raise ValueError("aug_list defines the augmentation: drop recipe")
        recipe, steps = _augmentation(options.aug_list, augmentation, named, beneath)
        if steps is not None:
            refuse_for_functions(options)
        records = options.for_records()
        recipes: Sequence[Augmenter] = [recipe]
        if options.views is not None:
            if steps is not None:
                raise ValueError(
                    "views are of images that CreateAugmenter describes: drop them, or give what "
                    "that returns as aug_list"
                )
            changed = partial(augmenter_of, recipe.changed(), owner="views")
            recipes = view_recipes(options.views, records, changed)
        job = ImageJob.of(
            records,
            recipes,
            scaled_decode="scaled_decode" in keywords,
            dtypes=FLOAT_TYPES,
            vary=partial(_varied, described=options.aug_list is None),
            plan_class=LinearPlan,
            tail=TAILS[options.last_batch_handle],
            named=named,
            change=None if steps is None else partial(_image_steps, steps),
            more=saved_of(options, steps),
        )
        super().__init__(job, open_images(files, job), class_labels(job.packs, job.options))


def _expanded(
    keywords: dict[str, Any],
) -> tuple[dict[str, Any], NamedRecipe | None, dict[str, Any]]:
    """Return keywords with those of the provider in its recipe, the recipe, and the rest of it."""
    if keywords.get("recipe") is None:
        return keywords, None, {}
    named = NamedRecipe.of(keywords["recipe"])
    refuse_processor(named)
    own_names = {item.name for item in fields(ImageClassIterOptions)} - {"recipe"}
    mine = {name: value for name, value in named.keywords.items() if name in own_names}
    rest = {name: value for name, value in named.keywords.items() if name not in own_names}
    return {**mine, **keywords, "recipe": named}, named, rest


def check_label_types(options: ImageIterOptions, arguments: dict[str, Any]) -> None:
    """Refuse what says the type of the labels twice."""
    if options.data_specs is not None and options.dtype != "float32":
        raise ValueError(f"data_specs sets the type of the labels: drop dtype={options.dtype!r}")
    if options.label_dtype is not None and "dtype" in arguments:
        raise ValueError("dtype is that of the labels too: give it or label_dtype, not both")


def _listed(options: ImageIterOptions) -> ImageFileSource | None:
    """Return the image files that are meant, or None for a record file."""
    if not lists_files(options):
        return None
    path, root, width = options.path_imglist, options.path_root, options.label_width
    if options.imglist is not None:
        return ImageFileSource("imglist", listed_images(options.imglist, width), root)
    return ImageFileSource(path, read_image_list(path, width, options.remote), root)


def _augmentation(
    aug_list: Any, arguments: dict[str, Any], named: NamedRecipe | None, beneath: dict[str, Any]
) -> tuple[Augmenter, tuple[Any, ...] | None]:
    """Return what happens to an image; or its shape alone, and functions that are to be called.

    `beneath` is in the recipe `named` and counts where `arguments` say nothing.
    """
    if aug_list is None and named is None:
        return described_augmenter(**arguments), None
    if aug_list is None:
        recipe = augmenter_of({}, {"data_shape": arguments["data_shape"], **beneath}, "recipe")
        return augmenter_of(recipe.changed(), arguments), None
    if not isinstance(aug_list, Augmenter):
        return shape_alone(arguments), callables(aug_list)
    data_shape = shape_alone(arguments).data_shape
    if data_shape != aug_list.data_shape:
        raise ValueError(
            f"data_shape={data_shape!r} differs from that of aug_list, {aug_list.data_shape}"
        )
    return aug_list, None


def refuse_for_functions(options: ImageIterOptions) -> None:
    """Refuse what images that functions make cannot have."""
    for name in ("cache", "strict", "entry_points"):
        if getattr(options, name):
            raise ValueError(
                f"{name} is for images that CreateAugmenter describes: drop it, or give what "
                "that returns as aug_list"
            )


def _varied(recipe: Augmenter, pack: Pack, described: bool) -> Augmenter:
    """Return the recipe of a pack; `described` is False if functions say what happens."""
    if not pack.augmentation:
        return recipe
    if not described:
        raise ValueError("aug_list defines the augmentation: drop the keywords of Pack for it")
    names = [item.name for item in fields(AugmenterOptions)]
    for name in ("data_shape", *sorted(set(pack.augmentation) - set(names))):
        if name in pack.augmentation:
            raise unknown_keyword("Pack", name, names)
    return augmenter_of(recipe.changed(), pack.augmentation, "Pack")


def open_images(files: ImageFileSource | None, job: ImageJob, boxes: bool = False) -> ImageSource:
    """Return image files as they are, or open the record files of a job."""
    if files is None:
        return open_packs(job.packs, job.options, FlooredPacks, boxes=boxes)
    if job.options.verify:
        raise ValueError("verify needs path_imgrec: image files have no checksums")
    if job.options.entry_points == "pack":
        raise ValueError(
            'entry_points="pack" needs path_imgrec, beside which the points are kept: give it, or '
            "entry_points=True"
        )
    return files


def _image_steps(steps: tuple[Any, ...], plan: RenderPlan, _: tuple[int, ...]) -> ImageSteps:
    """Return what is called for every image of a pack."""
    return ImageSteps(steps, plan.label_width, plan.labels, plan.change)


def saved_of(options: ImageIterOptions, steps: Sequence[Any] | None) -> dict[str, Any]:
    """Return what a saved state must agree with, functions among it."""
    saved: dict[str, Any] = {"last_batch_handle": options.last_batch_handle}
    if steps is not None:
        saved["aug_list"] = [described_step(step) for step in steps]
    return saved


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
        raise ValueError(f"aug_list defines the augmentation: drop {min(names)}")
    return Augmenter(data_shape=data_shape)


def described_step(step: Any) -> Any:
    """Describe a function of an `aug_list` by its `dumps`, or at least by its name."""
    if hasattr(step, "dumps"):
        return step.dumps()
    kind = step if hasattr(step, "__qualname__") else type(step)
    return f"{kind.__module__}.{kind.__qualname__}"


def lists_files(options: ImageIterOptions) -> bool:
    """Return whether a list of image files is meant, and not a record file."""
    if options.path_imgrec:
        for name, value in (
            ("imglist", options.imglist is not None),
            ("path_root", options.path_root),
        ):
            if value:
                raise ValueError(
                    f"{name} has no effect on the record file {options.path_imgrec!r}: drop it"
                )
        return False
    if options.path_imgidx:
        raise ValueError("path_imgidx needs path_imgrec: lists of image files have no index")
    for name in ("image_field", "label_field", "classes"):
        if getattr(options, name):
            raise ValueError(f"{name} needs path_imgrec: a list names the images and the labels")
    if options.imglist is not None and options.path_imglist:
        raise ValueError("give path_imglist or imglist, not both")
    if options.imglist is None and not options.path_imglist:
        raise ValueError("there are no images: give path_imgrec, path_imglist or imglist")
    return True
