"""`ImageRecordIter`: batches of decoded, augmented images from a record file.

This module joins a record file, an order, a recipe and the image stage into a provider; each of them
does its own work elsewhere.
"""

from __future__ import annotations

import logging
import os
import warnings
import zlib
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from ..core.batch import DataBatch, DataDesc
from ..core.device import placement
from ..core.order import (
    BatchPlan,
    BlockOrder,
    DealtOrder,
    EpochOrder,
    Order,
    SequentialOrder,
    ShuffledOrder,
    WeightedOrder,
)
from ..core.parameters import boolean, choice, integer, unknown_keyword
from ..core.random import derive_key
from ..images.mean_image import read_mean_image, write_mean_image
from ..images.recipe import Recipe
from ..images.render import RenderPlan
from ..images.stage import Stage
from .base import PlannedProvider
from .record_source import RecordSource, read_label_list

__all__ = [
    "ImageRecordInt8Iter",
    "ImageRecordIter",
    "ImageRecordIter_v1",
    "ImageRecordProvider",
    "ImageRecordUInt8Iter",
]

AUGMENT_KEY = 0x6175676D656E74  # "augment": keeps the keys of augmentation apart from those of orders
MIB = 1 << 20

logger = logging.getLogger("iterators")


class ImageRecordIter(PlannedProvider):
    """Batches of images from an MXNet record file, decoded and augmented by background threads.

    The parameters have MXNet's names and defaults.  An epoch depends on `seed`, never on the number of
    threads, the prefetching or the machine.

    Parameters
    ----------
    path_imgrec : str or os.PathLike
        The ``.rec`` file, a folder of them, or several paths separated by semicolons.
    data_shape : tuple of int
        (channels, height, width) of an image; channels 1 (grey), 3 (RGB) or 4 (RGBA).
    batch_size : int
        Images in a batch, at least 1.
    path_imgidx : str or os.PathLike
        The ``.idx`` file or files; without it the record files are scanned once.  Records are taken in
        the order of the file, whatever the order of the index.
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
        Draw records with replacement, each as often as its weight says: one weight per record in file
        order, or per label, for example ``{0: 1.0, 1: 0.2}``.
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
        File of a mean image, subtracted instead of `mean_r` to `mean_a`.  If it does not exist it is
        made: the mean of the images of this part, resized and cropped at the centre.
    verbose : bool
        Log what was found and a line per epoch, at level INFO of the logger ``iterators``.
    layout : str
        Order of the axes of a batch: "NCHW", "NHWC" or any other order of these letters.
    dtype : str
        "float32", "float16", "uint8" (pixels as they are) or "int8" (pixels minus the rounded mean).
    device : str or torch.device, optional
        None for NumPy arrays, "cpu" for torch tensors that share their memory, "cuda" or "cuda:i" for
        tensors on that device.
    epoch : int
        Number of the first epoch.
    on_error : {"raise", "skip"}
        Whether a bad record raises an error that names it, or is replaced by the next good record of
        the epoch and listed in `skipped`.
    error_budget : int or float, optional
        With "skip": different records that may be skipped, as a number or, below 1, as a fraction.
    aug_seq, ctx, device_id
        Accepted because scripts pass them; `aug_seq` must be "aug_default", the other two say where
        MXNet would put its buffers, which is `device` here.
    **augmentation
        The parameters of `iterators.images.recipe.Recipe`: `resize`, `rand_crop`,
        `random_resized_crop`, `mirror`, `rand_mirror`, `mean_r`, `std_r`, `scale`, `inter_method`...

    Raises
    ------
    TypeError
        For a parameter that does not exist; the closest one is suggested.
    ValueError
        For a value that is out of range or has no effect, and for files without records.
    RecordIOError
        If the record file or its index is damaged.

    Attributes
    ----------
    identities : numpy.ndarray of int64, (identities, 2), or None
        For a face-recognition pack, the keys ``[first, end)`` of every identity's images.

    See Also
    --------
    AbstractDataProvider : epochs, positions, and the rest of the protocol.

    Examples
    --------
    >>> import tempfile, recordio
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

    #: Element type when none is asked for.
    default_dtype = "float32"

    def __init__(
        self,
        *,
        path_imgrec: str | os.PathLike[str],
        data_shape: tuple[int, int, int],
        batch_size: int,
        path_imgidx: str | os.PathLike[str] = "",
        path_imglist: str | os.PathLike[str] = "",
        label_width: int = 1,
        num_parts: int = 1,
        part_index: int = 0,
        even: bool = False,
        shuffle: bool = False,
        weights: Any = None,
        shuffle_chunk_size: int = 0,
        shuffle_chunk_seed: int = 0,
        seed: int = 0,
        seed_aug: int | None = None,
        preprocess_threads: int = 4,
        prefetch_buffer: int = 4,
        round_batch: bool = True,
        mean_img: str | os.PathLike[str] = "",
        data_name: str = "data",
        label_name: str | None = "softmax_label",
        verbose: bool = True,
        layout: str = "NCHW",
        dtype: str | None = None,
        device: Any = None,
        epoch: int = 0,
        on_error: str = "raise",
        error_budget: float | None = None,
        aug_seq: str = "aug_default",
        ctx: str = "gpu",
        device_id: int = 0,
        **augmentation: Any,
    ) -> None:
        function = type(self).__name__
        recipe = _recipe(function, data_shape, augmentation)
        dtype = choice("dtype", dtype or self.default_dtype, ("float32", "float16", "uint8", "int8"))
        _check_effect(recipe, dtype, mean_img)
        batch_size = integer("batch_size", batch_size, low=1)
        label_width = integer("label_width", label_width, low=1)
        seed = integer("seed", seed)
        prefetch_buffer = integer("prefetch_buffer", prefetch_buffer, low=1)
        threads = integer("preprocess_threads", preprocess_threads, low=1)
        verbose = boolean("verbose", verbose)
        choice("aug_seq", aug_seq, ("aug_default",))
        choice("ctx", ctx, ("cpu", "gpu"))
        integer("device_id", device_id, low=-1)
        place = placement(device, ring=prefetch_buffer)
        source = RecordSource(path_imgrec, path_imgidx)
        order = _order(
            source,
            num_parts=integer("num_parts", num_parts, low=1),
            part_index=integer("part_index", part_index, low=0),
            even=boolean("even", even),
            shuffle=boolean("shuffle", shuffle),
            seed=seed,
            weights=weights,
            chunk_size=integer("shuffle_chunk_size", shuffle_chunk_size, low=0),
            chunk_seed=integer("shuffle_chunk_seed", shuffle_chunk_seed),
        )
        mean_image = None
        if mean_img:
            mean_image = _mean_image(source, order, recipe, mean_img, threads)
        plan = RenderPlan(
            recipe,
            key=derive_key(seed if seed_aug is None else integer("seed_aug", seed_aug), AUGMENT_KEY),
            layout=_layout(layout),
            dtype=dtype,
            label_width=label_width,
            batch_size=batch_size,
            mean_image=mean_image,
            labels=read_label_list(path_imglist, label_width) if path_imglist else None,
        )
        self.path_imgrec = os.fspath(path_imgrec)
        self.identities = source.identities
        self._labels_are_vectors = label_width > 1
        super().__init__(
            BatchPlan(order, batch_size, "wrap" if boolean("round_batch", round_batch) else "pad"),
            Stage(
                source.readers,
                source.offsets,
                source.starts,
                plan,
                batch_size=batch_size,
                threads=threads,
                depth=prefetch_buffer,
                allocate=place.allocate,
            ),
            [DataDesc(data_name, plan.shape(batch_size), plan.dtype, plan.layout)],
            [] if label_name is None else [_label_desc(label_name, batch_size, label_width)],
            place,
            integer("epoch", epoch, low=0),
            on_error=on_error,
            error_budget=error_budget,
            settings={
                "file": source.fingerprint(),
                "seed": seed,
                "seed_aug": seed_aug,
                "batch_size": batch_size,
                "round_batch": bool(round_batch),
                "order": _describe(order),
                "dtype": dtype,
                "label_width": label_width,
                **_changed(recipe),
            },
            verbose=verbose,
        )
        if verbose:
            logger.info(
                "%s: %d of %d records, %d threads",
                self.path_imgrec,
                self.num_samples,
                len(source),
                threads,
            )

    def _batch(self, data: Any, label: Any, ids: np.ndarray, pad: int) -> DataBatch:
        return super()._batch(data, label if self._labels_are_vectors else label[:, 0], ids, pad)


ImageRecordProvider = ImageRecordIter


class ImageRecordUInt8Iter(ImageRecordIter):
    """`ImageRecordIter` with ``dtype="uint8"``: pixels as they are, without normalisation."""

    default_dtype = "uint8"


class ImageRecordInt8Iter(ImageRecordIter):
    """`ImageRecordIter` with ``dtype="int8"``: pixels minus the rounded mean, saturated."""

    default_dtype = "int8"


def ImageRecordIter_v1(**arguments: Any) -> ImageRecordIter:  # noqa: N802 - MXNet's name
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


def _recipe(function: str, data_shape: Any, augmentation: dict[str, Any]) -> Recipe:
    known = {field.name for field in fields(Recipe)}
    for name in augmentation:
        if name not in known:
            own = ImageRecordIter.__init__.__kwdefaults__ or {}
            raise unknown_keyword(function, name, known | set(own))
    return Recipe(data_shape=data_shape, **augmentation)


def _changed(recipe: Recipe) -> dict[str, Any]:
    """The parameters that differ from their defaults."""
    return {
        field.name: getattr(recipe, field.name)
        for field in fields(recipe)
        if getattr(recipe, field.name) != field.default
    }


def _check_effect(recipe: Recipe, dtype: str, mean_img: Any) -> None:
    """Refuse normalisation that an integer output would silently leave out."""
    if not np.issubdtype(np.dtype(dtype), np.integer):
        return
    without = {"std_r", "std_g", "std_b", "std_a", "scale"}
    without |= {"max_random_contrast", "max_random_illumination"}
    if dtype == "uint8":
        without |= {"mean_r", "mean_g", "mean_b", "mean_a"}
        if mean_img:
            raise ValueError("mean_img has no effect on uint8 pixels: drop it or use a float dtype")
    for name in _changed(recipe):
        if name in without:
            raise ValueError(f"{name} has no effect on {dtype} pixels: drop it or use a float dtype")


def _layout(layout: str) -> str:
    if not isinstance(layout, str) or sorted(layout) != sorted("NCHW"):
        raise ValueError(f"layout={layout!r}: expected the letters N, C, H and W in some order")
    return layout


def _label_desc(name: str, batch_size: int, label_width: int) -> DataDesc:
    if label_width == 1:
        return DataDesc(name, (batch_size,), np.float32, "N")
    return DataDesc(name, (batch_size, label_width), np.float32, "NC")


def _order(
    source: RecordSource,
    *,
    num_parts: int,
    part_index: int,
    even: bool,
    shuffle: bool,
    seed: int,
    weights: Any,
    chunk_size: int,
    chunk_seed: int,
) -> Order:
    if part_index >= num_parts:
        raise ValueError(f"part_index={part_index}: expected a number below num_parts={num_parts}")
    whole: EpochOrder | None = None
    if weights is not None:
        if shuffle or chunk_size:
            raise ValueError("weights draw the records at random: drop shuffle and shuffle_chunk_size")
        whole = WeightedOrder(_weights(source, weights), seed)
    elif chunk_size:
        whole = BlockOrder(source.blocks(chunk_size * MIB), chunk_seed, shuffle, seed)
    elif shuffle:
        whole = ShuffledOrder(len(source), seed)
    if whole is not None:
        return DealtOrder(whole, num_parts, part_index, even)
    mine = source.part(num_parts, part_index)
    if not even:
        return SequentialOrder(mine.start, mine.stop)
    places = max(len(source.part(num_parts, k)) for k in range(num_parts))
    return SequentialOrder(mine.start, mine.stop, places, len(source))


def _weights(source: RecordSource, weights: Any) -> np.ndarray:
    if not isinstance(weights, Mapping):
        table = np.asarray(weights, np.float64)
        if table.shape != (len(source),):
            raise ValueError(
                f"weights has shape {table.shape}: expected one weight for each of {len(source)} "
                "records, or a mapping from labels to weights"
            )
        return table
    labels = source.labels()
    found, place = np.unique(labels, return_inverse=True)
    missing = [float(label) for label in found if float(label) not in weights]
    if missing:
        raise ValueError(f"weights has no entry for the labels {missing[:5]}")
    return np.array([weights[float(label)] for label in found], np.float64)[place]


def _describe(order: Order) -> str:
    """What of an order must stay the same for a state to be resumed."""
    if isinstance(order, SequentialOrder):
        return f"records {order.first} to {order.last}"
    assert isinstance(order, DealtOrder)
    whole = order.whole
    if isinstance(whole, BlockOrder):
        return f"{len(whole.edges) - 1} blocks, seed {whole.block_seed}, shuffle {whole.shuffle}"
    if isinstance(whole, WeightedOrder):
        return f"weights {zlib.crc32(whole.weights.tobytes()):08x}"
    return "shuffled"


def _mean_image(
    source: RecordSource,
    order: Order,
    recipe: Recipe,
    path: str | os.PathLike[str],
    threads: int,
) -> np.ndarray:
    """Read the mean image, or make it from the images of this part, resized and not normalised."""
    if not os.path.exists(path):
        plain = Recipe(
            data_shape=recipe.data_shape, resize=recipe.resize, inter_method=recipe.inter_method
        )
        logger.info("%s does not exist: averaging %d images", os.fspath(path), order.count())
        write_mean_image(path, _average(source, order, plain, threads))
    return read_mean_image(path)


def _average(source: RecordSource, order: Order, recipe: Recipe, threads: int) -> np.ndarray:
    batch_size = 64
    batches = BatchPlan(order, batch_size, "pad")
    plan = RenderPlan(recipe, label_width=0, dtype="uint8", batch_size=batch_size)
    stage = Stage(
        source.readers, source.offsets, source.starts, plan, batch_size=batch_size, threads=threads,
        depth=2,
    )
    total = np.zeros(recipe.data_shape, np.float64)
    try:
        for number in range(len(batches)):
            stage.submit(batches.rows(0, number)[0], 0)
            data, _, _, failures = stage.collect()
            if failures:
                raise failures[0][1]
            total += data.sum(0, dtype=np.float64)
    finally:
        stage.close()
    return total / max(order.count(), 1)
