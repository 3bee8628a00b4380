"""A recipe applied to the images of any data set when they are read.  Nothing is cached."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from recordio.errors import ImageDecodeError
from recordio.keywords.checks import choice
from recordio.keywords.options import accepts, by_name, option

from ..core.dtypes import dtype_name
from ..core.indexing import by_position, examples_at, resolve_rows
from ..core.layout import plan
from ..images.examples import EXAMPLE_KEYWORDS, LAYOUTS, AugmentedExamples
from .dataset_base import DatasetMixin
from .decoding import DecodingThreads, ThreadOptions

if TYPE_CHECKING:
    from ..core.keywords import AugmentedDatasetParameters

TO_HWC = plan("chw", "hwc")
#: Channels that a raw image may have.
CHANNELS = (1, 3)


@dataclass(frozen=True, kw_only=True)
class AugmentedDatasetOptions(ThreadOptions):
    """The keywords of `AugmentedDataset`, except those of augmentation."""

    positional = "dataset"

    dataset: Any = option(
        kind="sequence",
        text="""Its examples are images, or tuples or lists that begin with one: arrays of uint8 or
        images of Pillow, grey or RGB.""",
    )
    stored: str = option(
        "HWC",
        '{"HWC", "CHW"}',
        """Order of the axes of arrays with three of them; "CHW" for `ImageDataset` and its
        siblings, which need ``dtype="uint8"``.""",
        partial(choice, allowed=LAYOUTS),
    )


@accepts(AugmentedDatasetOptions, rest="keywords")
class AugmentedDataset(DatasetMixin):
    """The examples of a data set, with images augmented as by `ImageRecordIter`.

    For images in record files use `ImageRecordDataset`, which takes the same keywords.

    Parameters
    ----------
    {parameters}
    **keywords
        Those of `Recipe`, with `data_shape`; `recipe`, `views` and `seed` as for `ImageRecordIter`;
        and `layout`, "CHW" or "HWC", and `dtype` of the result, float32 by default.

    Raises
    ------
    TypeError, ValueError
        For keywords that do not exist or contradict one another; and on reading, for an example
        that is not such an image.

    Notes
    -----
    An example is the augmented image, or its views one after the other, followed by the other parts
    of the original example: ``(view, view, ..., label)``.  Random choices depend on the seed, the
    epoch and the position of the example in `dataset`, as for `ImageRecordDataset`.  To choose or
    shuffle examples, put a `SubDataset` or the like around this data set.

    Examples
    --------
    >>> images = [(np.full((9, 9, 3), 50 * i, np.uint8), i) for i in range(3)]
    >>> data = AugmentedDataset(images, data_shape=(3, 4, 4), views=[{}, {"solarize_p": 1.0}])
    >>> first, second, label = data[1]
    >>> first.shape, first.max(), second.max(), label
    ((3, 4, 4), np.float32(50.0), np.float32(50.0), 1)
    """

    def __init__(self, *values: Any, **keywords: Unpack[AugmentedDatasetParameters]) -> None:
        owner = type(self).__name__
        arguments = by_name(owner, keywords, AugmentedDatasetOptions, values)
        augmentation = {name: arguments.pop(name) for name in EXAMPLE_KEYWORDS & arguments.keys()}
        options = AugmentedDatasetOptions.of(owner, arguments, also=EXAMPLE_KEYWORDS)
        self._dataset, self._stored = by_position(options.dataset), options.stored
        self._threads = DecodingThreads(options.threads)
        if "dtype" in augmentation:
            augmentation["dtype"] = dtype_name(augmentation["dtype"])
        self._examples = AugmentedExamples(owner, augmentation)
        self._examples.count = len(self._dataset)

    @property
    def epoch(self) -> int:
        """Number of the epoch, on which random choices depend."""
        return self._examples.epoch.value

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch, also for the worker processes of a loader, persistent ones included."""
        self._examples.set_epoch(epoch)

    def __len__(self) -> int:
        return len(self._dataset)

    def get_example(self, i: Any) -> Any:
        """Return the augmented example."""
        return self._augmented((resolve_rows(i, len(self)), self._dataset[i]))

    def __getitems__(self, indices: Sequence[int] | np.ndarray) -> list[Any]:
        """Return several augmented examples; the data set inside is read once."""
        rows = [resolve_rows(i, len(self)) for i in indices]
        examples = examples_at(self._dataset, rows)
        return self._threads.map(self._augmented, list(zip(rows, examples, strict=True)))

    def _augmented(self, item: tuple[int, Any]) -> Any:
        row, example = item
        alone = not isinstance(example, (tuple, list))
        image, rest = (example, ()) if alone else (example[0], tuple(example[1:]))
        pixels = self._pixels(image, row)
        try:
            views = self._examples.of_pixels(pixels, row)
        except ImageDecodeError as error:
            raise ImageDecodeError(error.reason, record=row) from None
        several = views if isinstance(views, tuple) else (views,)
        return views if alone else (*several, *rest)

    def _pixels(self, image: Any, row: int) -> np.ndarray:
        """Return an image as it is rendered: (height, width, channels)."""
        pixels = np.asarray(image)
        if pixels.dtype != np.uint8:
            raise TypeError(
                f"example {row} is an array of {pixels.dtype}: images have to be uint8, with "
                'values from 0 to 255, such as those of ImageDataset(..., dtype="uint8")'
            )
        if pixels.ndim == 2:
            pixels = pixels[:, :, None]
        elif pixels.ndim == 3 and self._stored == "CHW":
            pixels = TO_HWC(pixels)
        if pixels.ndim != 3 or pixels.shape[2] not in CHANNELS or not pixels.size:
            raise ValueError(
                f"example {row} has the shape {np.shape(image)}: expected images of 1 or 3 "
                f"channels in the order {self._stored}; pass another `stored`"
            )
        return np.ascontiguousarray(pixels)
