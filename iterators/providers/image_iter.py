"""`ImageIter`: MXNet's Python iterator over record files and lists of image files.

This module says what the parameters of `mx.image.ImageIter` mean for the image stage that all image
providers share.  It has no steps of its own on pixels: `CreateAugmenter` describes those that the
stage has.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.batch import DataBatch, DataDesc
from ..core.order import BatchPlan, Order, RollOverPlan
from ..core.parameters import choice, integer, integers, path, unknown_keyword
from ..images.augment.augmenter import Augmenter, CreateAugmenter
from ..images.codecs.jpeg import jpeg
from ..images.linear_render import LinearPlan
from ..images.sources.record_source import RecordSource
from .file_source import ImageFileSource, floor_part, listed_images, read_image_list
from .image_caching import cached_recipe, checked_cache
from .image_provider import MOST_LABELS
from .image_record import ImageRecordIter
from .image_settings import ImageSource
from .roll_over import FullBatch, RollingProvider

__all__ = ["ImageIter"]

LABEL_DTYPES = ("float32", "float64", "int32", "int64")


class ImageIter(RollingProvider, ImageRecordIter):
    """Batches of images from a record file, a list of image files, or a list in memory.

    The parameters have MXNet's names and defaults.  Images are decoded by the threads of the image
    stage, as those of `ImageRecordIter` are; image files are read when their turn comes.

    Parameters
    ----------
    batch_size : int
        Images in a batch, at least 1.
    data_shape : tuple of int
        (channels, height, width) of an image; channels 3 (RGB), and also 1 (grey) or 4 (RGBA) if no
        colours change.
    label_width : int
        Labels of an image.
    path_imgrec : str or os.PathLike, optional
        The ``.rec`` file, a folder of them, or several paths separated by semicolons.
    path_imglist : str or os.PathLike, optional
        A ``.lst`` file with lines of id, labels and path.  With `path_imgrec` its labels, found by
        the id in the record header, replace those in the records; without, it names the images.
    path_root : str or os.PathLike, optional
        Folder that the paths of a list are relative to.
    path_imgidx : str or os.PathLike, optional
        The ``.idx`` file of `path_imgrec`; without it the record file is scanned once.
    shuffle : bool
        A new permutation of all images in every epoch.
    part_index, num_parts : int
        Deliver only part `part_index` of `num_parts`: without `shuffle` one of `num_parts` equal
        blocks, the rest belonging to none, as in MXNet; with it every `num_parts`-th place of the
        one permutation of all parts, which leaves out none.
    aug_list : Augmenter, optional
        What `CreateAugmenter` returned.  Functions on pixels are refused.
    imglist : sequence, optional
        Instead of a list file: items ``[label, path]``, ``[label, ..., label, path]`` or
        ``[labels, path]``.  Their ids are 0, 1, 2...
    data_name, label_name : str
        Names in `provide_data` and `provide_label`; ``label_name=None`` for no labels.
    dtype : {"float32", "float64", "int32", "int64"}
        Type of the labels, which are stored as float32.
    last_batch_handle : {"pad", "discard", "roll_over"}
        What becomes of a short last batch: it is filled from the start of the epoch, as often as
        needed; it is dropped; or its images are the first of the next epoch.  As in MXNet, `pad` of
        the batch that holds those counts the others in it, although none is padding;
        ``count_samples()`` is right.  "roll_over" needs ``num_parts=1`` or ``shuffle=False``.
    seed, even, weights, preprocess_threads, prefetch_buffer, verbose, layout, data_specs, device, \
    epoch, on_error, error_budget, cache, cache_size, verify, max_pixels, max_scans, \
    max_scan_pixels
        As for `ImageRecordIter`.
    **augmentation
        The parameters of `CreateAugmenter`, if there is no `aug_list`.

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

    def __init__(
        self,
        batch_size: int,
        data_shape: Sequence[int],
        label_width: int = 1,
        path_imgrec: str | os.PathLike[str] | None = None,
        path_imglist: str | os.PathLike[str] | None = None,
        path_root: str | os.PathLike[str] | None = None,
        path_imgidx: str | os.PathLike[str] | None = None,
        shuffle: bool = False,
        part_index: int = 0,
        num_parts: int = 1,
        aug_list: Augmenter | None = None,
        imglist: Sequence[Any] | None = None,
        data_name: str = "data",
        label_name: str | None = "softmax_label",
        dtype: str = "float32",
        last_batch_handle: str = "pad",
        *,
        seed: int = 0,
        even: bool = False,
        weights: Any = None,
        preprocess_threads: int = 4,
        prefetch_buffer: int = 4,
        verbose: bool = True,
        layout: str = "NCHW",
        data_specs: Any = None,
        device: Any = None,
        epoch: int = 0,
        on_error: str = "raise",
        error_budget: float | None = None,
        cache: str | os.PathLike[str] | None = None,
        cache_size: int | None = None,
        verify: bool = False,
        max_pixels: int = jpeg.DEFAULT_MAX_PIXELS,
        max_scans: int = jpeg.DEFAULT_MAX_SCANS,
        max_scan_pixels: int = jpeg.DEFAULT_MAX_SCAN_PIXELS,
        **augmentation: Any,
    ) -> None:
        self._augmenter = _augmenter(data_shape, aug_list, augmentation)
        if checked_cache(cache, cache_size)[0]:
            self._augmenter = cached_recipe(self._augmenter, "scaled_decode" in augmentation)
        self._handle = choice(
            "last_batch_handle", last_batch_handle, ("pad", "discard", "roll_over")
        )
        self._label_dtype = np.dtype(choice("dtype", dtype, LABEL_DTYPES))
        if data_specs is not None and dtype != "float32":
            raise ValueError(f"data_specs says the type of the labels: drop dtype={dtype!r}")
        label_width = integer("label_width", label_width, 1, MOST_LABELS)
        record_file = path("path_imgrec", path_imgrec)
        index_file = path("path_imgidx", path_imgidx)
        list_file = path("path_imglist", path_imglist)
        root = path("path_root", path_root)
        self._files = _files(record_file, list_file, imglist, root, index_file, label_width)
        if self._handle == "roll_over":
            self.batch_type = FullBatch
        super().__init__(
            batch_size=batch_size,
            data_shape=self._augmenter.data_shape,
            label_width=label_width,
            path_imgrec=record_file,
            path_imgidx=index_file,
            path_imglist="" if self._files else list_file,
            shuffle=shuffle,
            part_index=part_index,
            num_parts=num_parts,
            data_name=data_name,
            label_name=label_name,
            seed=seed,
            even=even,
            weights=weights,
            preprocess_threads=preprocess_threads,
            prefetch_buffer=prefetch_buffer,
            verbose=verbose,
            layout=layout,
            data_specs=data_specs,
            device=device,
            epoch=epoch,
            on_error=on_error,
            error_budget=error_budget,
            cache=cache,
            cache_size=cache_size,
            verify=verify,
            max_pixels=max_pixels,
            max_scans=max_scans,
            max_scan_pixels=max_scan_pixels,
        )
        self._settings["last_batch_handle"] = self._handle

    def _recipe(self, data_shape: Any, augmentation: dict[str, Any]) -> Augmenter:
        return self._augmenter

    def _open(self, path_imgrec: Any, path_imgidx: Any, on_error: str, verify: bool) -> ImageSource:
        if self._files and verify:
            raise ValueError("verify needs path_imgrec: image files have no checksums")
        return self._files or _Records(path_imgrec, path_imgidx, on_error, verify)

    def _plan_batches(self, order: Order, batch_size: int, round_batch: bool) -> BatchPlan:
        if self._handle != "roll_over":
            return BatchPlan(order, batch_size, "wrap" if self._handle == "pad" else "drop")
        if order.stride > 1:
            raise ValueError(
                'last_batch_handle="roll_over" carries images from epoch to epoch, which parts of '
                'one permutation cannot agree on: use "pad" or "discard" with num_parts and shuffle'
            )
        return RollOverPlan(order, batch_size, pads_new=True)

    def _describe_labels(self, name: str, batch_size: int, width: int) -> DataDesc:
        desc = super()._describe_labels(name, batch_size, width)
        return DataDesc(name, desc.shape, self._label_dtype, desc.layout)

    def _batch(self, data: Any, label: Any, ids: np.ndarray, pad: int) -> DataBatch:
        if self._form is not None and self._handle == "roll_over":
            pad = 0  # nothing is padding; MXNet's number is for who knows MXNet's batches
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


def _augmenter(data_shape: Any, aug_list: Any, more: dict[str, Any]) -> Augmenter:
    """What happens to an image, from either way of saying it."""
    known = inspect.signature(CreateAugmenter).parameters
    for name in more:
        if name not in known:
            own = inspect.signature(ImageIter.__init__).parameters
            raise unknown_keyword("ImageIter", name, {*known, *own} - {"self", "augmentation"})
    if aug_list is None:
        return CreateAugmenter(data_shape, **more)
    if not isinstance(aug_list, Augmenter):
        raise TypeError(
            f"aug_list={_kind(aug_list)}: expected what CreateAugmenter returns; functions on "
            "pixels cannot run in the image stage"
        )
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


def _files(
    path_imgrec: str, path_imglist: str, imglist: Any, root: str, index: str, label_width: int
) -> ImageFileSource | None:
    """The image files that are meant, or None for a record file."""
    if path_imgrec:
        for name, given in (("imglist", imglist is not None), ("path_root", root)):
            if given:
                raise ValueError(
                    f"{name} has no effect on the record file {path_imgrec!r}: drop it"
                )
        return None
    if index:
        raise ValueError("path_imgidx needs path_imgrec: lists of image files have no index")
    if imglist is not None:
        if path_imglist:
            raise ValueError("give path_imglist or imglist, not both")
        return ImageFileSource("imglist", listed_images(imglist, label_width), root)
    if not path_imglist:
        raise ValueError("there are no images: give path_imgrec, path_imglist or imglist")
    images = read_image_list(path_imglist, label_width)
    return ImageFileSource(path_imglist, images, root)
