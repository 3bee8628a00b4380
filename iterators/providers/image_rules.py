"""Which keywords of image providers do nothing beside others, where a recipe does not know of them.

`core.effects` says what becomes of them; `images.augment.rules` has the tables of the recipes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.effects import Rule
from .provider_options import FileOptions

__all__ = ["DET_RULES", "RECORD_RULES"]


def _is_integer(values: Any) -> bool:
    return values.normalise_on == "host" and np.issubdtype(values.dtype, np.integer)


#: Normalisation, and what a batch of integers leaves out of it.
MEANS = "mean_r mean_g mean_b mean_a"
DIVISORS = "std_r std_g std_b std_a scale"
EXPOSURE = "max_random_contrast max_random_illumination"
_NEEDS_FLOAT = "has no effect on integer pixels: drop it or use a float dtype"
#: Of all image providers.
_RULES = (
    *FileOptions.rules,
    Rule(DIVISORS, _is_integer, _NEEDS_FLOAT, refused=True),
    Rule(
        f"mean_img {MEANS}",
        lambda v: _is_integer(v) and v.dtype == "uint8",
        "has no effect on uint8 pixels: drop it or use a float dtype",
        refused=True,
    ),
    Rule("device_id", lambda v: True, "has no effect: `device` says where batches go"),
    Rule(
        "shuffle_chunk_seed",
        lambda v: not v.shuffle_chunk_size,
        "has no effect without shuffle_chunk_size",
    ),
    Rule(
        "label_dtype",
        lambda v: v.label_name is None,
        "has no effect without labels: label_name=None",
        refused=True,
    ),
)


def _erases_pixels(values: Any) -> bool:
    """Whether erased pixels need means of channels."""
    return _is_integer(values) or not isinstance(values.erasing_value, str)


_NEEDS_MEANS = (
    "needs means of channels: drop mean_img, or erase to the mean or to noise of float pixels"
)

#: Of `ImageRecordIter`.
RECORD_RULES = (
    *_RULES,
    Rule(EXPOSURE, _is_integer, _NEEDS_FLOAT, refused=True),
    Rule(
        EXPOSURE,
        lambda v: v.normalise_on == "device",
        'differs from image to image: it needs normalise_on="host"',
        refused=True,
    ),
    Rule(MEANS, lambda v: v.mean_img, "has no effect beside mean_img"),
    Rule(
        "random_erasing",
        lambda v: v.mean_img and _erases_pixels(v),
        _NEEDS_MEANS,
        refused=True,
    ),
)

#: Of `ImageDetRecordIter`.
DET_RULES = (
    *_RULES,
    Rule(
        "mean_img",
        lambda v: v.means_win,
        "has no effect beside a mean above 0 of mean_r to mean_a, as in MXNet",
    ),
    Rule(
        "random_erasing",
        lambda v: v.mean_img and not v.means_win and _erases_pixels(v),
        _NEEDS_MEANS,
        refused=True,
    ),
)
