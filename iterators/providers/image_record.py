"""`ImageRecordIter`: batches of decoded, augmented images from a record file.

This module joins a record file, an order, a recipe and the image stage into a provider; each of them
does its own work elsewhere.
"""

from __future__ import annotations

import logging
import os
from dataclasses import fields
from typing import Any

import numpy as np

from recordio.reader import RecordReader

from ..core.batch import DataBatch, DataDesc
from ..core.device import placement
from ..core.order import BatchPlan, Order, SequentialOrder, ShuffledOrder
from ..core.parameters import boolean, choice, integer, unknown_keyword
from ..core.random import derive_key
from ..images.recipe import Recipe
from ..images.render import RenderPlan
from ..images.stage import Stage
from .base import AbstractDataProvider

__all__ = ["ImageRecordIter", "ImageRecordProvider"]

AUGMENT_KEY = 0x6175676D656E74  # "augment": keeps the keys of augmentation apart from those of orders

logger = logging.getLogger("iterators")


class ImageRecordIter(AbstractDataProvider):
    """Batches of images from an MXNet record file, decoded and augmented by background threads.

    The parameters have MXNet's names and defaults.  An epoch depends on `seed`, never on the number of
    threads, the prefetching or the machine.

    Parameters
    ----------
    path_imgrec : str or os.PathLike
        The ``.rec`` file.
    data_shape : tuple of int
        (channels, height, width) of an image; channels 1 (grey), 3 (RGB) or 4 (RGBA).
    batch_size : int
        Images in a batch, at least 1.
    path_imgidx : str or os.PathLike
        The ``.idx`` file; without it the record file is scanned once.  Records are taken in the order
        of the file, whatever the order of the index.
    label_width : int
        Labels of an image; every record must have exactly that many.
    shuffle : bool
        A new permutation of all records in every epoch.
    seed : int
        Determines orders and augmentation.
    preprocess_threads : int
        Threads that decode, at least 1.
    prefetch_buffer : int
        Batches prepared ahead of the consumer, at least 1.
    round_batch : bool
        Fill the last batch from the start of the epoch.  If False the rest of it is zero.  `pad`
        counts those places in either case.
    data_name, label_name : str
        Names in `provide_data` and `provide_label`; ``label_name=None`` for no labels.
    verbose : bool
        Log what was found, at level INFO of the logger ``iterators``.
    layout : str
        Order of the axes of a batch: "NCHW", "NHWC" or any other order of these letters.
    dtype : str
        "float32", "float16", "uint8" (pixels as they are) or "int8" (pixels minus the rounded mean).
    device : str or torch.device, optional
        None for NumPy arrays, "cpu" for torch tensors that share their memory, "cuda" or "cuda:i" for
        tensors on that device.
    epoch : int
        Number of the first epoch.
    **augmentation
        The parameters of `iterators.images.recipe.Recipe`: `resize`, `rand_crop`,
        `random_resized_crop`, `mirror`, `rand_mirror`, `mean_r`, `std_r`, `scale`, `inter_method`...

    Raises
    ------
    TypeError
        For a parameter that does not exist; the closest one is suggested.
    ValueError
        For a value that is out of range, and for a file without records.
    RecordIOError
        If the record file or its index is damaged.

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

    def __init__(
        self,
        *,
        path_imgrec: str | os.PathLike[str],
        data_shape: tuple[int, int, int],
        batch_size: int,
        path_imgidx: str | os.PathLike[str] = "",
        label_width: int = 1,
        shuffle: bool = False,
        seed: int = 0,
        preprocess_threads: int = 4,
        prefetch_buffer: int = 4,
        round_batch: bool = True,
        data_name: str = "data",
        label_name: str | None = "softmax_label",
        verbose: bool = True,
        layout: str = "NCHW",
        dtype: str = "float32",
        device: Any = None,
        epoch: int = 0,
        **augmentation: Any,
    ) -> None:
        recipe = _recipe(type(self).__name__, data_shape, augmentation)
        batch_size = integer("batch_size", batch_size, low=1)
        label_width = integer("label_width", label_width, low=1)
        seed = integer("seed", seed)
        prefetch_buffer = integer("prefetch_buffer", prefetch_buffer, low=1)
        threads = integer("preprocess_threads", preprocess_threads, low=1)
        place = placement(device, ring=prefetch_buffer)
        plan = RenderPlan(
            recipe,
            key=derive_key(seed, AUGMENT_KEY),
            layout=_layout(layout),
            dtype=choice("dtype", dtype, ("float32", "float16", "uint8", "int8")),
            label_width=label_width,
            batch_size=batch_size,
        )
        reader = RecordReader(path_imgrec, path_imgidx or None)
        offsets = _in_file_order(reader.offsets)
        if not len(offsets):
            raise ValueError(f"{os.fspath(path_imgrec)}: the file holds no records")
        order: Order = SequentialOrder(0, len(offsets))
        if boolean("shuffle", shuffle):
            order = ShuffledOrder(len(offsets), seed)
        self.path_imgrec = os.fspath(path_imgrec)
        super().__init__(
            BatchPlan(order, batch_size, "wrap" if boolean("round_batch", round_batch) else "pad"),
            Stage(
                reader,
                offsets,
                plan,
                batch_size=batch_size,
                threads=threads,
                depth=prefetch_buffer,
                allocate=place.allocate,
            ),
            [DataDesc(data_name, plan.shape(batch_size), plan.dtype, plan.layout)],
            []
            if label_name is None
            else [
                DataDesc(
                    label_name,
                    (batch_size,) if label_width == 1 else (batch_size, label_width),
                    np.float32,
                    "N" if label_width == 1 else "NC",
                )
            ],
            place,
            integer("epoch", epoch, low=0),
        )
        if boolean("verbose", verbose):
            logger.info(
                "%s: %d records, %d threads, %s", self.path_imgrec, len(offsets), threads, recipe
            )

    def _batch(self, data: Any, label: Any, ids: np.ndarray, pad: int) -> DataBatch:
        if label.shape[1] == 1:
            label = label[:, 0]
        return super()._batch(data, label, ids, pad)


ImageRecordProvider = ImageRecordIter


def _recipe(function: str, data_shape: Any, augmentation: dict[str, Any]) -> Recipe:
    known = {field.name for field in fields(Recipe)}
    for name in augmentation:
        if name not in known:
            own = ImageRecordIter.__init__.__kwdefaults__ or {}
            raise unknown_keyword(function, name, known | set(own))
    return Recipe(data_shape=data_shape, **augmentation)


def _layout(layout: str) -> str:
    if not isinstance(layout, str) or sorted(layout) != sorted("NCHW"):
        raise ValueError(f"layout={layout!r}: expected the letters N, C, H and W in some order")
    return layout


def _in_file_order(offsets: np.ndarray) -> np.ndarray:
    """Ascending offsets; the same array if they are already."""
    if len(offsets) < 2 or bool((offsets[1:] > offsets[:-1]).all()):
        return offsets
    return np.sort(offsets)
