"""`ImageRecordIter`: batches of decoded, augmented images from a record file.

This module says what images with class labels need beyond what all image providers share; opening
files, orders, rendering and batches are the work of others.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ..core.batch import DataDesc
from ..images.augment.recipe import Recipe
from ..images.plan import RenderPlan
from ..images.sources.record_source import RecordSource, read_label_list
from .image_provider import RecordImageProvider

__all__ = [
    "ImageRecordInt8Iter",
    "ImageRecordIter",
    "ImageRecordIter_v1",
    "ImageRecordProvider",
    "ImageRecordUInt8Iter",
]


class ImageRecordIter(RecordImageProvider):
    """Batches of images from an MXNet record file, decoded and augmented by background threads.

    The parameters have MXNet's names and defaults.  An epoch depends on `seed`, never on the
    number of threads, the prefetching or the machine.

    Parameters
    ----------
    data_shape : tuple of int
        (channels, height, width) of an image; channels 1 (grey), 3 (RGB) or 4 (RGBA).
    batch_size : int
        Images in a batch, at least 1.
    path_imgrec : str or os.PathLike
        The ``.rec`` file, a folder of them, or several paths separated by semicolons; by default
        ``./data/imgrec.rec``.
    path_imgidx : str or os.PathLike
        The ``.idx`` file or files; without it the record files are scanned once.  Records are
        taken in the order of the file, whatever the order of the index.
    path_imglist : str or os.PathLike
        A ``.lst`` file whose labels, found by the id in the record header, replace those in the
        records.
    label_width : int
        Labels of an image; every record (or line of `path_imglist`) must have that many.
    num_parts, part_index : int
        Deliver only part `part_index` of `num_parts`: without `shuffle` a block of the file by
        MXNet's rule, with it every `num_parts`-th place of the one permutation of all parts.
    even : bool
        Give every part the same number of batches, as distributed training needs it; the samples
        missing to that come twice in the epoch.
    shuffle : bool
        A new permutation of all records in every epoch.
    weights : array_like or mapping, optional
        Draw records with replacement, each as often as its weight says: one weight per record in
        file order, or per (first) label, for example ``{0: 1.0, 1: 0.2}``.  A record that comes
        again in an epoch is augmented anew.
    shuffle_chunk_size : int
        If above 0, visit blocks of so many MiB in random order, for disks that are slow to seek;
        `shuffle` then shuffles inside the blocks.
    shuffle_chunk_seed : int
        Determines the order of the blocks.
    seed : int
        Determines orders and augmentation.
    seed_aug : int, optional
        Determines augmentation instead of `seed`.
    preprocess_threads : int
        Threads that decode, at least 1.
    prefetch_buffer : int
        Batches prepared ahead of the consumer, at least 1.
    round_batch : bool
        Fill the last batch from the start of the epoch.  If False the rest of it is zero.  `pad`
        counts those places in either case.
    data_name, label_name : str
        Names in `provide_data` and `provide_label`; ``label_name=None`` for no labels.
    mean_img : str or os.PathLike
        File of a mean image, subtracted instead of `mean_r` to `mean_a`.  If it does not exist it
        is made: the mean of the images of this part, resized and cropped at the centre.
    verbose : bool
        Log what was found and a line per epoch, at level INFO of the logger ``iterators``.
    layout : str
        Order of the axes of a batch: "NCHW", "NHWC" or any other order of these letters.
    dtype : str
        "float32", "float16", "uint8" (pixels as they are) or "int8" (pixels minus the rounded
        mean).
    data_specs : (Space, source), optional
        What a batch must look like, instead of `layout`: a tuple in exactly that form, which is a
        `DataBatch` as well.  The sources are "features" and "targets"; a VectorSpace of as many
        elements as there are classes makes a single label one-hot.
    device : str or torch.device, optional
        None for NumPy arrays, "cpu" for torch tensors that share their memory, "cuda" or "cuda:i"
        for tensors on that device.
    normalise_on : {"host", "device"}
        With "device" (and a `device`) the batch is moved as uint8, a quarter of the bytes, and
        mean, std and scale are applied there; the result is float32, or float16 if that is the
        `dtype`.
    epoch : int
        Number of the first epoch.
    on_error : {"raise", "skip"}
        Whether a bad record raises an error that names it, or is replaced by the next good record
        of the epoch and listed in `skipped`.
    error_budget : int or float, optional
        With "skip": different records that may be skipped, as a number or, below 1, as a fraction.
    cache : {"ram"} or path, optional
        Keep what is expensive, decoded images after `resize`, in memory or in a file that other
        processes and later runs use as well.  Batches do not depend on it, except that without
        `resize` (or with ``inter_method=10``) JPEG images are decoded in full, as
        ``scaled_decode=False`` does it.
    cache_size : int, optional
        Bytes that they may take: by default half of the available memory, divided by `num_parts`,
        or half of the free disk.  Images that do not fit are decoded every time.
    verify : bool
        Compare each record with its checksum, in a ``.crc`` file beside the record file, when it is
        read: one that differs is a bad record.  Those whose image comes from a cache are not
        compared again.
    max_pixels, max_scans, max_scan_pixels : int
        Images with more pixels (2**26 by default) are refused as bad records, and so are JPEG
        images with more scans (256), or whose scans pass over more pixels in all (2**31; each
        component of a scan counts), as only files made to keep a decoder busy have.
    aug_seq, ctx, device_id
        Accepted because scripts pass them; `aug_seq` must be "aug_default", the other two say where
        MXNet would put its buffers, which is `device` here.
    **augmentation
        The parameters of `iterators.images.augment.recipe.Recipe`: `resize`, `rand_crop`,
        `random_resized_crop`, `mirror`, `rand_mirror`, `mean_r`, `std_r`, `scale`,
        `inter_method`...

    Raises
    ------
    TypeError
        For a parameter that does not exist; the closest one is suggested.
    ValueError
        For a value that is out of range or has no effect.
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

    See Also
    --------
    AbstractDataProvider : epochs, positions, and the rest of the protocol.

    Examples
    --------
    >>> import os, tempfile, recordio
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

    recipe_class: type[Recipe] = Recipe
    plan_class: type[RenderPlan] = RenderPlan

    def _plan_labels(
        self,
        source: RecordSource,
        recipe: Recipe,
        label_width: int,
        path_imglist: Any,
        on_error: str,
    ) -> dict[str, Any]:
        del source, recipe, on_error
        labels = read_label_list(path_imglist, label_width) if path_imglist else None
        return {"label_width": label_width, "labels": labels}

    def _describe_labels(self, name: str, batch_size: int, width: int) -> DataDesc:
        if width == 1:
            return DataDesc(name, (batch_size,), np.float32, "N")
        return DataDesc(name, (batch_size, width), np.float32, "NC")

    def _arrays(self, data: Any, label: Any) -> tuple[list[Any], list[Any]]:
        return super()._arrays(data, label[:, 0] if label.shape[1] == 1 else label)


ImageRecordProvider = ImageRecordIter


class ImageRecordUInt8Iter(ImageRecordIter):
    """`ImageRecordIter` with ``dtype="uint8"``: pixels as they are, without normalisation."""

    dtypes = ("uint8",)


class ImageRecordInt8Iter(ImageRecordIter):
    """`ImageRecordIter` with ``dtype="int8"``: pixels minus the rounded mean, saturated."""

    dtypes = ("int8",)


def ImageRecordIter_v1(**arguments: Any) -> ImageRecordIter:
    """`ImageRecordIter`, under the name of MXNet's older implementation.

    .. deprecated:: 0.1
        It differs in nothing; use `ImageRecordIter`.
    """
    warnings.warn(
        "ImageRecordIter_v1 is the same as ImageRecordIter: use that name",
        DeprecationWarning,
        stacklevel=2,
    )
    return ImageRecordIter(**arguments)
