"""Rules about the keywords of image providers: those that have no effect, or do not go together."""

from __future__ import annotations

from typing import Any

from recordio.keywords.options import Rule

from ..images.augment.rules import EXPOSURE_RULE, PIXEL_RULES, is_integer
from .provider_options import FileOptions

__all__ = ["DET_RULES", "RECORD_RULES"]

MEANS = "mean_r mean_g mean_b mean_a"
_NEEDS_MEANS = (
    "needs means of channels: drop mean_img, or erase to the mean or to noise of float pixels"
)


def _erases_pixels(values: Any) -> bool:
    """Return whether erased pixels need means of channels."""
    return is_integer(values) or not isinstance(values.erasing_value, str)


#: Of all image providers.
_RULES = (
    *FileOptions.rules,
    *PIXEL_RULES,
    Rule(
        "mean_img",
        lambda v: is_integer(v) and v.dtype.startswith("uint"),
        "has no effect on uint8 and uint16 pixels: drop it or use a float dtype",
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

#: Of `ImageRecordIter`.
RECORD_RULES = (
    *_RULES,
    EXPOSURE_RULE,
    Rule(
        EXPOSURE_RULE.names,
        lambda v: v.normalise_on == "device",
        'differs from image to image: it needs normalise_on="host"',
        refused=True,
    ),
    Rule(MEANS, lambda v: v.mean_img, "has no effect with mean_img"),
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
        "has no effect with a mean above 0 of mean_r to mean_a, as in MXNet",
    ),
    Rule(
        "random_erasing",
        lambda v: v.mean_img and not v.means_win and _erases_pixels(v),
        _NEEDS_MEANS,
        refused=True,
    ),
)
