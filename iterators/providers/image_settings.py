"""What the keywords of an image provider mean: orders, mean images, effects that must not be lost.

Functions that every provider of record images needs.  They read keywords and files; nothing here is
a provider, and nothing draws random numbers.
"""

from __future__ import annotations

import logging
import os
import zlib
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from recordio.errors import RecordIOError

from ..core.device import DeviceNormalisation
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
from ..images.mean_image import read_mean_image, write_mean_image
from ..images.record_source import RecordSource
from ..images.stage import Stage

__all__ = [
    "changed_parameters",
    "check_effect",
    "check_of",
    "checked_layout",
    "describe_order",
    "device_normalisation",
    "make_mean_image",
    "make_order",
]

MIB = 1 << 20

logger = logging.getLogger("iterators")


def changed_parameters(recipe: Any) -> dict[str, Any]:
    """The parameters of a recipe that differ from their defaults."""
    return {
        field.name: getattr(recipe, field.name)
        for field in fields(recipe)
        if getattr(recipe, field.name) != field.default
    }


def check_effect(recipe: Any, dtype: str, mean_img: Any) -> None:
    """Refuse normalisation that an integer output would silently leave out."""
    if not np.issubdtype(np.dtype(dtype), np.integer):
        return
    without = set(recipe.float_only)
    if dtype == "uint8":
        without |= {"mean_r", "mean_g", "mean_b", "mean_a"}
        if mean_img:
            raise ValueError("mean_img has no effect on uint8 pixels: drop it or use a float dtype")
    for name in changed_parameters(recipe):
        if name in without:
            raise ValueError(
                f"{name} has no effect on {dtype} pixels: drop it or use a float dtype"
            )


def device_normalisation(
    recipe: Any, layout: str, dtype: str, device: Any, mean_img: Any
) -> DeviceNormalisation:
    """What the device has to do when the images are moved as uint8."""
    if device is None:
        raise ValueError('normalise_on="device" needs a device')
    if dtype == "int8":
        raise ValueError('normalise_on="device" gives float32 or float16, not int8')
    for name in ("max_random_contrast", "max_random_illumination"):
        if name in recipe.float_only and getattr(recipe, name):
            raise ValueError(f'{name} differs from image to image: it needs normalise_on="host"')
    if mean_img:
        raise ValueError('mean_img needs normalise_on="host"')
    factor = np.float32(recipe.scale) / np.array(recipe.std, np.float32)
    return DeviceNormalisation(
        layout,
        recipe.mean[: recipe.channels],
        factor[: recipe.channels].tolist(),
        "float16" if dtype == "float16" else "float32",
    )


def checked_layout(layout: str) -> str:
    """Some order of the letters N, C, H and W."""
    if not isinstance(layout, str) or sorted(layout) != sorted("NCHW"):
        raise ValueError(f"layout={layout!r}: expected the letters N, C, H and W in some order")
    return layout


def make_order(
    source: RecordSource,
    *,
    num_parts: int,
    part_index: int,
    even: bool,
    shuffle: bool,
    seed: int,
    weights: Any,
    listed: tuple[np.ndarray, ...] | None,
    chunk_size: int,
    chunk_seed: int,
) -> Order:
    """The order that the keywords of a provider ask for."""
    if part_index >= num_parts:
        raise ValueError(f"part_index={part_index}: expected a number below num_parts={num_parts}")
    whole: EpochOrder | None = None
    if weights is not None:
        if shuffle or chunk_size:
            raise ValueError(
                "weights draw the records at random: drop shuffle and shuffle_chunk_size"
            )
        whole = WeightedOrder(_weights(source, weights, listed), seed)
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


def _weights(
    source: RecordSource, weights: Any, listed: tuple[np.ndarray, ...] | None
) -> np.ndarray:
    if not isinstance(weights, Mapping):
        table = np.asarray(weights, np.float64)
        if table.shape != (len(source),):
            raise ValueError(
                f"weights has shape {table.shape}: expected one weight for each of {len(source)} "
                "records, or a mapping from labels to weights"
            )
        return table
    if listed is not None and len(listed) != 2:
        raise ValueError("weights by label need class labels: give one weight for every record")
    labels = source.labels(listed)
    found, place = np.unique(labels, return_inverse=True)
    missing = [float(label) for label in found if float(label) not in weights]
    if missing:
        raise ValueError(f"weights has no entry for the labels {missing[:5]}")
    return np.array([weights[float(label)] for label in found], np.float64)[place]


def describe_order(order: Order) -> str:
    """What of an order must stay the same for a state to be resumed."""
    if isinstance(order, SequentialOrder):
        return f"records {order.first} to {order.last}"
    assert isinstance(order, DealtOrder)
    whole = order.whole
    if isinstance(whole, BlockOrder):
        return f"blocks {check_of(whole.edges)}, seed {whole.block_seed}, shuffle {whole.shuffle}"
    if isinstance(whole, WeightedOrder):
        return f"weights {check_of(whole.weights)}"
    return "shuffled"


def check_of(*arrays: np.ndarray) -> str:
    """Short text that tells these arrays from others."""
    check = 0
    for array in arrays:
        check = zlib.crc32(np.ascontiguousarray(array).data, check)
    return f"{check:08x}"


def make_mean_image(
    source: RecordSource,
    order: Order,
    plan_class: Any,
    recipe: Any,
    path: Any,
    threads: int,
    on_error: str,
) -> np.ndarray:
    """Read the mean image, or make it from the images of this part, resized and not normalised."""
    if not os.path.exists(path):
        logger.info("%s does not exist: averaging %d images", os.fspath(path), order.count())
        write_mean_image(
            path, _average(source, order, plan_class, recipe.plain(), threads, on_error)
        )
    return read_mean_image(path)


def _average(
    source: RecordSource, order: Order, plan_class: Any, recipe: Any, threads: int, on_error: str
) -> np.ndarray:
    batch_size = 64
    batches = BatchPlan(order, batch_size, "pad")
    plan = plan_class(recipe, label_width=0, dtype="uint8", batch_size=batch_size)
    stage = Stage(
        source.readers,
        source.offsets,
        source.starts,
        plan,
        batch_size=batch_size,
        threads=threads,
        depth=2,
    )
    total = np.zeros(recipe.data_shape, np.float64)
    good = order.count()
    try:
        for number in range(len(batches)):
            stage.submit(batches.rows(0, number)[0], 0)
            data, _, _, failures = stage.collect()
            for slot, error in failures:
                if on_error == "raise" or not isinstance(error, RecordIOError):
                    raise error
                data[slot] = 0
            good -= len(failures)
            total += data.sum(0, dtype=np.float64)
    finally:
        stage.close()
    if not good:
        raise ValueError("mean_img does not exist, and this part has no image to make it from")
    return total / good
