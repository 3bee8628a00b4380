"""What the keywords of an image provider mean: orders, mean images, normalisation on a device.

Functions that every provider of record images needs.  They read keywords and files; nothing here is
a provider, and nothing draws random numbers.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from recordio.errors import RecordIOError

from ..core.device import DeviceNormalisation
from ..core.order import BatchPlan, Order, SequentialOrder, as_weights, make_order
from ..images.augment.mean_image import read_mean_image, write_mean_image
from ..images.sources.source import Source
from ..images.stage import Stage
from .image_options import ImageRecordOptions

__all__ = [
    "ImageSource",
    "describe_order",
    "device_normalisation",
    "make_mean_image",
    "order_of_images",
]

MIB = 1 << 20

logger = logging.getLogger("iterators")


class ImageSource(Protocol):
    """The images behind a provider: what there is, in which parts and blocks, with which labels."""

    #: What messages call it.
    name: str
    #: For a face-recognition pack, the keys of every identity's images.
    identities: np.ndarray | None

    def __len__(self) -> int:
        """Number of images."""

    def bytes_source(self) -> Source:
        """What the image stage reads."""

    def part(self, num_parts: int, part_index: int) -> range:
        """Records of one part, when they are not shuffled."""

    def blocks(self, nbytes: int) -> np.ndarray:
        """Where to cut the records into blocks of about `nbytes` of neighbours."""

    def labels(
        self, listed: tuple[np.ndarray, ...] | None, on_error: str
    ) -> tuple[np.ndarray, dict[int, RecordIOError]]:
        """First label of every record, and why some have none."""

    def place_of(self, record: int) -> dict[str, Any]:
        """Where an image lies, as `RecordIOError` names it."""

    def fingerprint(self) -> str:
        """Short text that tells this source from others."""

    def version(self) -> str:
        """Short text that changes whenever one of the files does."""


def device_normalisation(recipe: Any, options: ImageRecordOptions) -> DeviceNormalisation:
    """What the device has to do when the images are moved as uint8."""
    if options.device is None:
        raise ValueError('normalise_on="device" needs a device')
    if options.dtype == "int8":
        raise ValueError('normalise_on="device" gives float32 or float16, not int8')
    if options.mean_img:
        raise ValueError('mean_img needs normalise_on="host"')
    factor = np.float32(recipe.scale) / np.array(recipe.std, np.float32)
    return DeviceNormalisation(
        options.layout,
        recipe.mean[: recipe.channels],
        factor[: recipe.channels].tolist(),
        "float16" if options.dtype == "float16" else "float32",
    )


def order_of_images(
    source: ImageSource, options: ImageRecordOptions, listed: tuple[np.ndarray, ...] | None
) -> tuple[Order, list[RecordIOError]]:
    """The order that the keywords of a provider ask for, and records found to be of no use."""
    unusable: list[RecordIOError] = []
    weights, blocks = options.weights, None
    if weights is not None and (options.shuffle or options.shuffle_chunk_size):
        raise ValueError("weights draw the records at random: drop shuffle and shuffle_chunk_size")
    if isinstance(weights, Mapping):
        weights, unusable = _weights_by_label(source, weights, listed, options.on_error)
    if options.shuffle_chunk_size:
        edges = source.blocks(options.shuffle_chunk_size * MIB)
        blocks = edges, options.shuffle_chunk_seed

    def rule(_: int, num_parts: int, part_index: int) -> range:
        return source.part(num_parts, part_index)

    order = make_order(
        len(source),
        rule,
        weights=weights,
        blocks=blocks,
        **options.values("shuffle", "seed", "num_parts", "part_index", "even"),
    )
    return order, unusable


def _weights_by_label(
    source: ImageSource,
    weights: Mapping[Any, Any],
    listed: tuple[np.ndarray, ...] | None,
    on_error: str,
) -> tuple[np.ndarray, list[RecordIOError]]:
    """One weight for every record, 0 for those whose label is unknown, and why it is."""
    labels, errors = source.labels(listed, on_error)
    known = np.ones(len(labels), bool)
    known[list(errors)] = False
    found, place = np.unique(labels[known], return_inverse=True)
    missing = [float(label) for label in found if float(label) not in weights]
    if missing:
        raise ValueError(f"weights has no entry for the labels {missing[:5]}")
    table = np.zeros(len(labels))
    table[known] = as_weights([weights[float(label)] for label in found])[place]
    return table, list(errors.values())


def describe_order(order: Order) -> str:
    """What of an order must stay the same for a state to be resumed."""
    text = order.described()
    return f"records {text}" if isinstance(order, SequentialOrder) else text


def make_mean_image(
    source: ImageSource,
    order: Order,
    plan_class: Any,
    recipe: Any,
    options: ImageRecordOptions,
) -> np.ndarray:
    """Read the mean image, or make it from the images of this part, resized and not normalised."""
    path = options.mean_img
    if not os.path.exists(path):
        logger.info("%s does not exist: averaging %d images", path, order.count())
        write_mean_image(path, _average(source, order, plan_class, recipe.plain(), options))
    return read_mean_image(path)


def _average(
    source: ImageSource, order: Order, plan_class: Any, recipe: Any, options: ImageRecordOptions
) -> np.ndarray:
    batch_size = 64
    batches = BatchPlan(order, batch_size, "pad")
    plan = plan_class(recipe, label_width=0, dtype="uint8", batch_size=batch_size)
    stage = Stage(
        source.bytes_source(),
        plan,
        batch_size=batch_size,
        threads=options.preprocess_threads,
        depth=2,
        strict=options.strict,
    )
    total = np.zeros(recipe.data_shape, np.float64)
    good = order.count()
    try:
        for number in range(len(batches)):
            stage.submit(batches.rows(0, number)[0], 0)
            data, _, _, failures = stage.collect()
            for slot, error in failures:
                if options.on_error == "raise" or not isinstance(error, RecordIOError):
                    raise error
                data[slot] = 0
            good -= len(failures)
            total += data.sum(0, dtype=np.float64)
    finally:
        stage.close()
    if not good:
        raise ValueError("mean_img does not exist, and this part has no image to make it from")
    return total / good
