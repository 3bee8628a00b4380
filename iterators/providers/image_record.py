"""`ImageRecordIter`: batches of decoded, augmented images from a record file."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Never, TypeAlias

from recordio.keywords.options import Options, accepts, divided

from ..core.order import Buckets
from ..images.augment.named_recipes import expanded
from ..images.augment.recipe import Recipe
from ..images.plan import RenderPlan
from ..images.row_writer import PatchPlan
from ..images.view_plans import with_keywords
from .image_job import DTYPES, ImageJob, view_recipes
from .image_labels import Labels, class_labels, several_classes
from .image_options import ImageClassOptions
from .image_provider import RecordImageProvider
from .image_shapes import Shapes
from .image_sources import ImageSource, open_packs
from .processor_images import MOST_IMAGES, ProcessorShapes

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..core.keywords import ImageRecordIterParameters


@accepts(ImageClassOptions, Recipe, first=("path_imgrec", "data_shape", "batch_size"))
class ImageRecordIter(RecordImageProvider):
    """Batches of images from an MXNet record file, decoded and augmented by background threads.

    The parameters have MXNet's names and defaults.  An epoch depends on `seed`, never on the
    number of threads, the prefetching or the machine.

    Parameters
    ----------
    {parameters}

    Raises
    ------
    TypeError
        For a parameter that does not exist; the closest one is suggested.
    ValueError
        For a value that is out of range, and for parameters that contradict one another.
    EmptyRecordFileError
        If there is no record.
    ChecksumFileError
        With `verify`, if a record file has no checksums that belong to it.
    RecordIOError
        If the record file or its index is damaged.
    OSError
        If a file cannot be read.
    CacheFileError
        If the file named by `cache` is not a cache or was made with other settings, or the disk has
        no room for it.

    Attributes
    ----------
    identities : numpy.ndarray of int64, (identities, 2), or None
        For a face-recognition pack, the keys ``[first, end)`` of every identity's images.

    Warns
    -----
    UserWarning
        For a parameter that has no effect with the given values of the others.

    See Also
    --------
    AbstractDataProvider : epochs, positions, and the rest of the protocol.

    Examples
    --------
    >>> import os, tempfile, recordio
    >>> import numpy as np
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, "grey.rec")
    >>> with recordio.RecordWriter(path) as writer:
    ...     for i in range(5):
    ...         image = np.full((12, 10, 3), 20 * i, np.uint8)
    ...         header = recordio.IRHeader(0, float(i), i, 0)
    ...         _ = writer.write(recordio.pack_img(header, image, img_fmt=".png"))
    >>> with ImageRecordIter(path_imgrec=path, data_shape=(3, 8, 8), batch_size=2) as provider:
    ...     for batch in provider:
    ...         print(batch.data[0].shape, batch.label[0], batch.pad)
    (2, 3, 8, 8) [0. 1.] 0
    (2, 3, 8, 8) [2. 3.] 0
    (2, 3, 8, 8) [4. 0.] 1
    >>> folder.cleanup()
    """

    #: What the keywords are checked by: those of augmentation the last.
    families: ClassVar[tuple[type[Options], ...]] = (ImageClassOptions, Recipe)
    #: Element types; the first one when none is asked for.
    dtypes: tuple[str, ...] = DTYPES

    def __init__(self, *values: Never, **keywords: Unpack[ImageRecordIterParameters]) -> None:
        job = _job(type(self), keywords, values)
        source = open_packs(job.packs, job.options, several=job.rule is not None)
        super().__init__(job, source, _labels(job, source))


ImageRecordProvider: TypeAlias = ImageRecordIter


class ImageSourceIter(RecordImageProvider):
    """`ImageRecordIter` over images that lie elsewhere than in record files."""

    def __init__(self, source: ImageSource, **keywords: Any) -> None:
        for name in ("path_imgrec", "path_imgidx", "path_imglist", "verify"):
            if name in keywords:
                raise ValueError(f"{name} is for record files, and {source.name} is none: drop it")
        job = _job(ImageRecordIter, keywords)
        super().__init__(job, source, _labels(job, source))


class ImageRecordUInt8Iter(ImageRecordIter):
    """`ImageRecordIter` with ``dtype="uint8"``: pixels as they are, without normalisation."""

    dtypes: tuple[str, ...] = ("uint8",)


class ImageRecordInt8Iter(ImageRecordIter):
    """`ImageRecordIter` with ``dtype="int8"``: pixels minus the rounded mean, saturated."""

    dtypes: tuple[str, ...] = ("int8",)


class ImageRecordIter_v1(ImageRecordIter):
    """`ImageRecordIter`, under the name of MXNet's older implementation.

    .. deprecated:: 0.1
        There is no difference; use `ImageRecordIter`.
    """

    def __init__(self, **keywords: Unpack[ImageRecordIterParameters]) -> None:
        warnings.warn(
            "ImageRecordIter_v1 is the same as ImageRecordIter: use that name",
            DeprecationWarning,
            stacklevel=2,
        )
        super().__init__(**keywords)


def _labels(job: ImageJob, source: ImageSource) -> Labels:
    """Labels of every image: as many for each, or any number."""
    options = job.options
    assert isinstance(options, ImageClassOptions)
    if options.label_width == "longest" or options.multi_hot is not None:
        return several_classes(job.packs, options, source)
    return class_labels(job.packs, options)


def _job(
    kind: type[ImageRecordIter], keywords: Mapping[str, Any], values: Sequence[Any] = ()
) -> ImageJob:
    """Check the keywords of a class."""
    all_keywords = expanded({**keywords}, kind.dtypes[0], processors=True)
    rule = all_keywords["recipe"].rule if all_keywords.get("recipe") is not None else None
    named_shape = all_keywords.get("buckets") is not None or all_keywords.get("patches") is not None
    if (named_shape or rule is not None) and len(values) < 2:
        all_keywords.setdefault("data_shape", None)
    if rule is not None and all_keywords.get("batch_patches") is not None and len(values) < 3:
        all_keywords.setdefault("batch_size", MOST_IMAGES)
    own, augmentation = divided(kind.__name__, all_keywords, *kind.families, values=values)
    buckets = own.get("buckets")
    shapes, augmentation = Shapes.taken(
        augmentation, None if buckets is None else Buckets.of(buckets)
    )
    if rule is not None:
        if shapes is None or not shapes.of_images:
            raise ValueError(f"{rule.name} says how large images are: drop data_shape and buckets")
        shapes = ProcessorShapes(rule=rule)
    options, recipe = ImageClassOptions(**own), Recipe(**augmentation)
    recipes: Sequence[Recipe] = [recipe]
    if options.views is not None:
        changed = partial(with_keywords, "views", recipe)
        recipes = view_recipes(options.views, options, changed)
    return ImageJob.of(
        options,
        recipes,
        scaled_decode="scaled_decode" in keywords,
        dtypes=kind.dtypes,
        shapes=shapes,
        plan_class=PatchPlan if options.patches else RenderPlan,
        named=options.recipe,
    )
