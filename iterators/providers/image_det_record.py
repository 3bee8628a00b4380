"""`ImageDetRecordIter`: batches of images with boxes from a record file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Never

import numpy as np

from recordio.boxes import LEAST_HEADER, LEAST_OBJECT, VALUES_BEFORE_OBJECTS
from recordio.errors import LabelError, RecordIOError
from recordio.keywords.options import Options, accepts, divided

from ..images.augment.det_geometry import longest_listed, without_flat_objects
from ..images.augment.det_recipe import DetRecipe
from ..images.det_render import DetPlan
from ..images.sources.mixed_packs import Packs
from ..images.sources.record_source import RecordSource, read_label_vectors
from .image_job import ImageJob
from .image_labels import Labels
from .image_options import ImageDetOptions
from .image_provider import RecordImageProvider
from .image_shapes import Shapes
from .image_sources import open_packs

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..core.keywords import ImageDetRecordIterParameters

#: Images of which a mosaic is made.
MOSAIC_IMAGES = 4


@accepts(ImageDetOptions, DetRecipe, first=("path_imgrec", "data_shape", "batch_size"))
class ImageDetRecordIter(RecordImageProvider):
    """Batches of images and the objects on them, augmented together by background threads.

    The label of a record is ``[A, B, A - 2 more header values, objects of B values]`` with A of at
    least 2 and B of at least 5; an object begins with id, xmin, ymin, xmax, ymax in fractions of
    the image.  Objects without area are dropped.  A batch has a label array ``(batch_size, W + 4)``
    with rows ``[channels, rows, columns, L, L values of the label, label_pad_value ...]``: the size
    of the image, which lies in the top left corner of its slot in the data array, and its label
    after augmentation.

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
    LabelError
        If no record has a usable vector of labels, or, unless such records are skipped, one has
        more values than `label_pad_width` or, without it, `max_label_width` allows.
    RecordIOError
        If the record file or its index is damaged.
    OSError
        If a file cannot be read.

    Warns
    -----
    UserWarning
        For a parameter that has no effect with the given values of the others.

    See Also
    --------
    ImageRecordIter : the features common to all image providers.

    Notes
    -----
    The partners of a mosaic are drawn from all records of the pack, whichever part of them the
    provider has, by (seed, epoch, record).  A partner that cannot be used makes the mosaic a bad
    record: the error names the partner; with ``on_error="skip"`` it is listed in `skipped`, and the
    next good record of the epoch takes its place.

    The automatic width W is that of the longest label of all records, so that all parts agree;
    MXNet takes the longest of the part.  With `mosaic` it is that of four such labels.  Labels that
    cannot be used do not count; the record is reported, or skipped, when its turn comes.

    Examples
    --------
    >>> import os, tempfile, recordio
    >>> import numpy as np
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, "boxes.rec")
    >>> with recordio.RecordWriter(path) as writer:
    ...     for i in range(2):
    ...         label = [2, 5] + [i, 0.25, 0.25, 0.5, 1.0] * (i + 1)
    ...         header = recordio.IRHeader(0, label, i, 0)
    ...         image = np.zeros((12, 16, 3), np.uint8)
    ...         _ = writer.write(recordio.pack_img(header, image, img_fmt=".png"))
    >>> with ImageDetRecordIter(path_imgrec=path, data_shape=(3, 8, 8), batch_size=2) as provider:
    ...     (batch,) = provider
    >>> batch.data[0].shape, batch.label[0].shape
    ((2, 3, 8, 8), (2, 16))
    >>> batch.label[0][0].tolist()
    [3.0, 8.0, 8.0, 7.0, 2.0, 5.0, 0.0, 0.25, 0.25, 0.5, 1.0, -1.0, -1.0, -1.0, -1.0, -1.0]
    >>> folder.cleanup()
    """

    #: What the keywords are checked by: those of augmentation the last.
    families: ClassVar[tuple[type[Options], ...]] = (ImageDetOptions, DetRecipe)

    def __init__(self, *values: Never, **keywords: Unpack[ImageDetRecordIterParameters]) -> None:
        own, augmentation = divided(type(self).__name__, keywords, *self.families, values=values)
        if keywords.get("patches") is not None:
            raise ValueError("patches are for ImageRecordIter: boxes lie in images, not in patches")
        shapes, augmentation = Shapes.taken(augmentation)
        job = ImageJob.of(
            ImageDetOptions(**own),
            [DetRecipe(**augmentation)],
            scaled_decode="scaled_decode" in keywords,
            shapes=shapes,
            plan_class=DetPlan,
        )
        for recipe, pack in zip(job.pack_recipes, job.packs, strict=True):
            if recipe.mosaic and (pack.cache or job.options.cache):
                raise ValueError(
                    f"mosaic={recipe.mosaic:g} decodes images at other sizes than those that are "
                    "kept: drop cache"
                )
        source = open_packs(job.packs, job.options, boxes=True)
        super().__init__(job, source, _labels(job, source))


def _labels(job: ImageJob, source: Packs) -> Labels:
    """Rows that have room for the objects of every image, or for those of a mosaic."""
    options, recipe = job.options, job.recipe
    tables, most = [], 0
    for pack, member in zip(job.packs, source.members, strict=True):
        path = pack.path_imglist
        listed = read_label_vectors(path, options.remote) if path else None
        if pack.labels is not None:
            most = max(most, _longest(member, listed, path, recipe, options.on_error))
        tables.append(listed)
    if not most:
        name, limit = recipe.label_limit
        raise LabelError(
            "no record has a vector of labels that can be used: header width, object width "
            f"and objects, at most {name}={limit} values",
            path=job.packs[0].path_imglist or source.paths[0],
        )
    if any(own.mosaic for own in job.pack_recipes) and recipe.label_pad_width <= 0:
        most += (MOSAIC_IMAGES - 1) * (most - LEAST_HEADER)
    width = max(most, recipe.label_pad_width) + VALUES_BEFORE_OBJECTS
    told = {"label_width": width, "raw_width": options.label_width}
    objects = None
    if options.fields:
        size = _object_width(source, tables)
        objects = size, (width - VALUES_BEFORE_OBJECTS - LEAST_HEADER) // size
    return Labels(
        shape=(width,),
        plans=[{**told, "labels": table} for table in tables],
        distinct=_classes,
        objects=objects,
    )


def _object_width(source: Packs, tables: Sequence[Any]) -> int:
    """Values of an object, of the first label that can be used."""
    for member, table in zip(source.members, tables, strict=True):
        if table is not None:
            vectors: Iterable[Any] = np.split(table[2], table[1][1:-1])
        else:
            vectors = (label for _, label in member.label_vectors())
        for label in vectors:
            if len(_object_ids(label)) and not isinstance(label, RecordIOError):
                return int(np.atleast_1d(label)[1])
    return LEAST_OBJECT


def _classes(member: RecordSource, listed: Any) -> np.ndarray:
    """Read the different classes of the objects of a pack, ascending."""
    if listed is None:
        vectors: Iterable[Any] = (label for _, label in member.label_vectors())
    else:
        _, starts, values = listed
        vectors = np.split(values, starts[1:-1])
    ids = [np.zeros(0, np.float32), *map(_object_ids, vectors)]
    return np.unique(np.concatenate(ids))


def _object_ids(label: Any) -> np.ndarray:
    """The classes of the objects of a label; none if it cannot be used."""
    try:
        values = without_flat_objects(
            [] if isinstance(label, RecordIOError) else np.atleast_1d(label)
        )
    except ValueError:
        return np.zeros(0, np.float32)
    return values[int(values[0]) :: int(values[1])]


def _longest(source: RecordSource, listed: Any, path: str, recipe: DetRecipe, on_error: str) -> int:
    """Values of the longest label of a pack that can be used."""
    name, limit = recipe.label_limit
    if listed is not None:
        labels = longest_listed(listed[1], listed[2], limit)
    else:
        labels = source.longest_label(limit)
    if labels.too_long >= 0 and on_error == "raise":
        location = (
            source.location_of(labels.too_long)
            if listed is None
            else {"path": path, "record_id": int(listed[0][labels.too_long])}
        )
        raise LabelError(
            f"{name}={limit}, but this label has {labels.values} values: make it larger, or 0 to "
            "lift it",
            **location,
        )
    return labels.longest
