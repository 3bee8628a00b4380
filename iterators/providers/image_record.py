"""`ImageRecordIter`: batches of decoded, augmented images from a record file.

This module says what images with class labels need beyond what all image providers share; opening
files, orders, rendering and batches are the work of others.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from recordio.keywords.options import accepts

from ..core.batch import DataDesc
from ..images.augment.named_recipes import expanded
from ..images.augment.recipe import Recipe
from ..images.plan import RenderPlan
from ..images.sources.record_source import read_label_list
from ..images.view_plans import with_keywords
from .image_options import ImageClassOptions, ImageRecordOptions
from .image_provider import RecordImageProvider
from .image_views import view_recipes

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..core.keywords import ImageRecordIterParameters

__all__ = [
    "ImageRecordInt8Iter",
    "ImageRecordIter",
    "ImageRecordIter_v1",
    "ImageRecordProvider",
    "ImageRecordUInt8Iter",
]


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
    CacheFileError
        If the file named by `cache` belongs to something else, or the disk has no room for it.

    Attributes
    ----------
    identities : numpy.ndarray of int64, (identities, 2), or None
        For a face-recognition pack, the keys ``[first, end)`` of every identity's images.

    Warns
    -----
    UserWarning
        For a parameter that has no effect beside the others.

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

    if TYPE_CHECKING:

        def __init__(self, **keywords: Unpack[ImageRecordIterParameters]) -> None: ...

    recipe_class: type[Recipe] = Recipe
    options_class: type[ImageRecordOptions] = ImageClassOptions
    plan_class: type[RenderPlan] = RenderPlan

    def _checked(
        self, values: Sequence[Any], keywords: dict[str, Any]
    ) -> tuple[ImageRecordOptions, Any]:
        options, recipe = super()._checked(values, expanded(keywords))
        whole: Any = options
        self._named = whole.recipe
        if whole.views is None:
            return options, recipe
        self._view_recipes = view_recipes(
            whole.views, options, partial(with_keywords, "views", recipe)
        )
        return options, self._view_recipes[0]

    def _plan_labels(
        self, source: Any, lists: Sequence[str], recipe: Recipe, options: ImageRecordOptions
    ) -> list[dict[str, Any]]:
        width = options.label_width
        remote = options.remote
        return [
            {"label_width": width, "labels": read_label_list(path, width, remote) if path else None}
            for path in lists
        ]

    def _describe_labels(self, options: ImageRecordOptions, width: int) -> DataDesc:
        if width == 1:
            name = cast(str, options.label_name)
            return DataDesc(name, (options.batch_size,), self._label_dtype, "N")
        return super()._describe_labels(options, width)

    def _arrays(self, data: Any, label: Any) -> tuple[list[Any], list[Any]]:
        return super()._arrays(data, label[:, 0] if label.shape[1] == 1 else label)


ImageRecordProvider = ImageRecordIter


class ImageRecordUInt8Iter(ImageRecordIter):
    """`ImageRecordIter` with ``dtype="uint8"``: pixels as they are, without normalisation."""

    dtypes = ("uint8",)


class ImageRecordInt8Iter(ImageRecordIter):
    """`ImageRecordIter` with ``dtype="int8"``: pixels minus the rounded mean, saturated."""

    dtypes = ("int8",)


class ImageRecordIter_v1(ImageRecordIter):
    """`ImageRecordIter`, under the name of MXNet's older implementation.

    .. deprecated:: 0.1
        It differs in nothing; use `ImageRecordIter`.
    """

    def __init__(self, **keywords: Unpack[ImageRecordIterParameters]) -> None:
        warnings.warn(
            "ImageRecordIter_v1 is the same as ImageRecordIter: use that name",
            DeprecationWarning,
            stacklevel=2,
        )
        super().__init__(**keywords)
