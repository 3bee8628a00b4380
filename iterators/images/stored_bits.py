"""Images with more than 8 bits: which of them keep every bit, and one warning about the others.

Only rows that are cropped, mirrored and normalised keep their bits; whatever resamples images or
changes their colours works on 8 bits.  Nothing is decoded here.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from recordio.errors import ImageDecodeError
from recordio.formats.decode import image_info
from recordio.keywords.options import outside

#: Element types of batches that hold all bits.
DEEP_TYPES = ("float32", "uint16")
#: Keywords of recipes that leave the bits alone, except for images that have to be resized.
KEEPING = {
    *("data_shape", "orient", "scaled_decode", "fill_value", "scale"),
    *("inter_method", "resample", "interpolation", "reducing_gap"),
    *("rand_crop", "crop_position", "crop_x_start", "crop_y_start"),
    *("mirror", "rand_mirror", "mirror_p", "flip_p", "rand_mirror_prob"),
    *(f"{kind}_{channel}" for kind in ("mean", "std") for channel in "rgba"),
    *("label_pad_width", "max_label_width", "label_pad_value"),
    *("rand_crop_prob", "num_crop_sampler", "max_crop_trials", "resize_mode"),
    *("crop_emit_mode", "emit_overlap_thresh"),
    *(f"{end}_crop_{name}" for end in ("min", "max") for name in ("scales", "aspect_ratios")),
    *(f"{end}_crop_{name}" for end in ("min", "max") for name in ("overlaps",)),
    *(f"{end}_crop_{name}_coverages" for end in ("min", "max") for name in ("sample", "object")),
}


#: The cause where the sizes of the images, or their decoders, decide.
RESIZED = "images that are resized, or decoded to 8 bits alone"


def cuts_of(recipe: Any, dtype: str) -> tuple[str, ...]:
    """Name what cuts every image to 8 bits: the element type, or keywords of the recipe.

    >>> from iterators.images.augment.recipe import Recipe
    >>> cuts_of(Recipe(data_shape=(3, 8, 8), rand_crop=True), "float32")
    ()
    >>> cuts_of(Recipe(data_shape=(3, 8, 8), resize=9), "float32")
    ('resize',)
    """
    if dtype not in DEEP_TYPES:
        return (f"dtype={dtype!r}",)
    return tuple(name for name in recipe.changed() if name not in KEEPING)


def has_more_bits(content: bytes | memoryview) -> bool:
    """Return whether an image file stores more than 8 bits; False if its header does not say."""
    try:
        return (image_info(content).bits or 8) > 8
    except ImageDecodeError:
        return False


class CutBits:
    """Warns once of images that are delivered with fewer bits than their files store."""

    def __init__(self) -> None:
        self._warned = False

    def look(self, content: bytes | memoryview, cause: str) -> None:
        """Warn of an image that has more than 8 bits, if nobody was warned."""
        if not self._warned and has_more_bits(content):
            self([cause])

    def __call__(self, causes: Sequence[str]) -> None:
        """Warn if nobody was warned; without a cause the sizes of the images are one."""
        if self._warned:
            return
        self._warned = True
        cause = ", ".join(dict.fromkeys(causes)) or RESIZED
        warnings.warn(
            "images of more than 8 bits, such as 16-bit PNG, are delivered with their upper 8 bits "
            f"because of {cause}: ImageRecordIter and ImageRecordDataset with dtype='float32' or "
            "'uint16' keep all bits of images that are only cropped, mirrored and normalised",
            UserWarning,
            stacklevel=outside(),
        )
