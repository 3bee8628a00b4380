"""`ImageIter`: MXNet's Python iterator over record files and lists of image files.

This module says what the parameters of `mx.image.ImageIter` mean for the image stage that all image
providers share.  It has no steps of its own on pixels: `CreateAugmenter` describes those that the
stage has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.batch import DataBatch, DataDesc
from ..core.options import accepts, divided
from ..core.order import BatchPlan, Order, RollOverPlan, Tail
from ..core.parameters import integers
from ..images.augment.augmenter import Augmenter, AugmenterOptions, CreateAugmenter
from ..images.linear_render import LinearPlan
from ..images.sources.record_source import RecordSource
from .file_source import ImageFileSource, floor_part, listed_images, read_image_list
from .image_options import ImageIterOptions, ImageRecordOptions
from .image_record import ImageRecordIter
from .image_settings import ImageSource
from .roll_over import FullBatch, RollingProvider

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .keywords import ImageIterParameters

__all__ = ["ImageIter"]


@accepts(ImageIterOptions, AugmenterOptions)
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
        of functions.
    ValueError
        For a value that is out of range or has no effect, and for lists and files without images.
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
    #: Of the images.
    dtypes = ("float32", "float16")

    def __init__(self, *values: Any, **keywords: Unpack[ImageIterParameters]) -> None:
        super().__init__(*values, **keywords)  # type: ignore[misc]
        self._settings["last_batch_handle"] = self._handle

    def _checked(
        self, values: Sequence[Any], keywords: dict[str, Any]
    ) -> tuple[ImageRecordOptions, Augmenter]:
        own, augmentation = divided(
            type(self).__name__, keywords, ImageIterOptions, AugmenterOptions, values=values
        )
        options = ImageIterOptions(**own)
        if options.data_specs is not None and options.dtype != "float32":
            raise ValueError(
                f"data_specs says the type of the labels: drop dtype={options.dtype!r}"
            )
        self._handle = options.last_batch_handle
        if self._handle == "roll_over":
            self.batch_type = FullBatch
        self._label_dtype = np.dtype(options.dtype)
        self._files = _files(options)
        return options.for_records(), _augmenter(options.aug_list, augmentation)

    def _open(self, options: ImageRecordOptions) -> ImageSource:
        if self._files and options.verify:
            raise ValueError("verify needs path_imgrec: image files have no checksums")
        return self._files or _Records(
            options.path_imgrec, options.path_imgidx, options.on_error, options.verify
        )

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

    def _describe_labels(self, options: ImageRecordOptions, width: int) -> DataDesc:
        desc = super()._describe_labels(options, width)
        return DataDesc(desc.name, desc.shape, self._label_dtype, desc.layout)

    def _batch(self, data: Any, label: Any, ids: np.ndarray, pad: int) -> DataBatch:
        with np.errstate(invalid="ignore"):  # compared below
            typed = label.astype(self._label_dtype, copy=False)
        if not np.array_equal(typed, label, equal_nan=True):
            wrong = label[typed != label][0]
            raise ValueError(f"dtype={self._label_dtype.name!r}, but there is a label {wrong:g}")
        return super()._batch(data, typed, ids, pad)


class _Records(RecordSource):
    """A record file whose parts follow the rule of MXNet's Python iterators."""

    def part(self, num_parts: int, part_index: int) -> range:
        return floor_part(len(self), num_parts, part_index)


def _augmenter(aug_list: Any, more: dict[str, Any]) -> Augmenter:
    """What happens to an image, from either way of saying it."""
    if aug_list is None:
        return CreateAugmenter(**more)
    if not isinstance(aug_list, Augmenter):
        raise TypeError(
            f"aug_list={_kind(aug_list)}: expected what CreateAugmenter returns; functions on "
            "pixels cannot run in the image stage"
        )
    data_shape = more.pop("data_shape")
    if more:
        raise ValueError(f"aug_list says what happens to an image: drop {min(more)}")
    if integers("data_shape", data_shape, 3) != aug_list.data_shape:
        raise ValueError(
            f"data_shape={data_shape!r} differs from that of aug_list, {aug_list.data_shape}"
        )
    return aug_list


def _kind(value: Any) -> str:
    """A value for a message, with the types of what is in a list."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(type(item).__name__ for item in value)}]"
    return repr(value)


def _files(options: ImageIterOptions) -> ImageFileSource | None:
    """The image files that are meant, or None for a record file."""
    imglist, path_imglist, root = options.imglist, options.path_imglist, options.path_root
    if options.path_imgrec:
        for name, given in (("imglist", imglist is not None), ("path_root", root)):
            if given:
                raise ValueError(
                    f"{name} has no effect on the record file {options.path_imgrec!r}: drop it"
                )
        return None
    if options.path_imgidx:
        raise ValueError("path_imgidx needs path_imgrec: lists of image files have no index")
    if imglist is not None:
        if path_imglist:
            raise ValueError("give path_imglist or imglist, not both")
        return ImageFileSource("imglist", listed_images(imglist, options.label_width), root)
    if not path_imglist:
        raise ValueError("there are no images: give path_imgrec, path_imglist or imglist")
    images = read_image_list(path_imglist, options.label_width)
    return ImageFileSource(path_imglist, images, root)
