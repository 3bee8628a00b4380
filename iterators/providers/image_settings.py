"""What the keywords of an image provider mean: sources, mean images, normalisation on a device.

Functions that every provider of record images needs.  They read keywords and files; nothing here is
a provider, and nothing draws random numbers.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from recordio.errors import RecordIOError

from ..core.device import DeviceNormalisation
from ..core.dtypes import FLOAT_TYPES
from ..core.order import BatchPlan, Order
from ..images.augment.mean_image import read_mean_image, write_mean_image
from ..images.sections import Section
from ..images.sources.source import Source
from ..images.stage import Stage
from .fetched_ahead import fetched_ahead
from .image_options import ImageRecordOptions

__all__ = [
    "ImagePack",
    "ImageSource",
    "device_normalisation",
    "make_mean_image",
]

logger = logging.getLogger("iterators")


class ImagePack(Protocol):
    """Images of one origin: what there is, in which parts and blocks, with which labels."""

    #: What messages call it.
    name: str

    @property
    def num_identities(self) -> int | None:
        """For a face-recognition pack, how many identities it has."""

    @property
    def identities(self) -> np.ndarray | None:
        """For a face-recognition pack, the keys of every identity's images."""

    @property
    def is_remote(self) -> bool:
        """Whether some lie on servers, so that they have to be held while they are read."""

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


class ImageSource(ImagePack, Protocol):
    """The images behind a provider, from one pack or several."""

    @property
    def members(self) -> Sequence[ImagePack]:
        """The packs that it consists of; itself if there are none."""

    @property
    def firsts(self) -> np.ndarray:
        """Number of the first image of each."""


def device_normalisation(
    recipes: Sequence[Any], options: ImageRecordOptions
) -> DeviceNormalisation:
    """What the device has to do when the images are moved as uint8."""
    recipe = recipes[0]
    if len({(own.scale, own.std, own.mean) for own in recipes}) > 1:
        raise ValueError('packs that differ in mean, std or scale need normalise_on="host"')
    if options.device is None:
        raise ValueError('normalise_on="device" needs a device')
    if options.dtype not in (*FLOAT_TYPES, "uint8"):
        floats = " or ".join(FLOAT_TYPES)
        raise ValueError(f'normalise_on="device" gives {floats}, not {options.dtype}')
    if options.mean_img:
        raise ValueError('mean_img needs normalise_on="host"')
    factor = np.float32(recipe.scale) / np.array(recipe.std, np.float32)
    return DeviceNormalisation(
        options.layout,
        recipe.mean[: recipe.channels],
        factor[: recipe.channels].tolist(),
        options.dtype if options.dtype in FLOAT_TYPES else FLOAT_TYPES[0],
    )


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
    made = Stage(
        source.bytes_source(),
        Section(plan),
        batch_size=batch_size,
        threads=options.preprocess_threads,
        depth=2,
        strict=options.strict,
    )
    stage = fetched_ahead(made, source, batch_size, options)
    total = np.zeros(recipe.data_shape, np.float64)
    good = order.count()
    try:
        for number in range(len(batches)):
            rows = batches.rows(0, number)[0]
            stage.submit(rows, 0, np.zeros(len(rows), np.int64))
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
