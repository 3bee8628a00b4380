"""Parameters of images that do nothing, or contradict others: the tables of all recipes.

`recordio.keywords.options` acts on them.  Combinations that MXNet refuses or does not have are
refused; those that MXNet runs are run, with a warning.
"""

from __future__ import annotations

from typing import Any

from recordio.keywords.options import Rule

from ...core.dtypes import BATCH_TYPES, FLOAT_TYPES

#: Keywords that change pixels of three colours alone.
_COLOURS = "random_h random_s random_l pca_noise brightness contrast saturation"
NEEDS_RGB = "needs RGB images: data_shape with 3 channels"


def is_integer(values: Any) -> bool:
    """Return whether pixels are delivered as integers, so that nothing is left of fractions."""
    on_host = getattr(values, "normalise_on", "host") == "host"
    return on_host and values.dtype in BATCH_TYPES and values.dtype not in FLOAT_TYPES


_NEEDS_FLOAT = "has no effect on integer pixels: drop it or use a float dtype"

#: Normalisation, and what integer pixels leave out of it.
PIXEL_RULES = (
    Rule("std_r std_g std_b std_a scale", is_integer, _NEEDS_FLOAT, refused=True),
    Rule(
        "mean_r mean_g mean_b mean_a",
        lambda v: is_integer(v) and v.dtype.startswith("uint"),
        "has no effect on uint8 and uint16 pixels: drop it or use a float dtype",
        refused=True,
    ),
)
EXPOSURE_RULE = Rule(
    "max_random_contrast max_random_illumination", is_integer, _NEEDS_FLOAT, refused=True
)

#: Means and divisors of channels that an image does not have; both kinds of recipes.
CHANNEL_RULES = (
    Rule(
        "mean_g mean_b std_g std_b",
        lambda v: v.channels == 1,
        "has no effect on images of one channel, which use mean_r and std_r",
    ),
    Rule("orient", lambda v: v.channels == 4, "has no effect: RGBA images stay as stored"),
    Rule(
        "background",
        lambda v: v.channels == 4,
        "has no effect: RGBA images keep their alpha channel: drop one of them",
        refused=True,
    ),
    Rule(
        "mean_a std_a", lambda v: v.channels < 4, "has no effect: data_shape has no alpha channel"
    ),
)

#: The first resize, and Pillow's resampling in the place of MXNet's; both kinds of recipes.
RESAMPLE_RULES = (
    Rule(
        "max_side",
        lambda v: not isinstance(v.resize, int),
        "has no effect beside a resize to both sides: drop one of them",
        refused=True,
    ),
    Rule(
        "inter_method",
        lambda v: v.resample is not None,
        "contradicts resample, whose filter interpolation names: drop one of them",
        refused=True,
    ),
    Rule(
        "interpolation reducing_gap",
        lambda v: v.resample is None,
        'has no effect without resample="pillow": add that, or use inter_method',
        refused=True,
    ),
    Rule(
        "reducing_gap",
        lambda v: v.interpolation == "nearest" or not v.scaled_decode,
        'has no effect with interpolation="nearest" or scaled_decode=False: drop one of them',
        refused=True,
    ),
)

RULES = (
    *RESAMPLE_RULES,
    Rule(
        "pad_if_needed",
        lambda v: v.resample is None or not v.rand_crop,
        'has no effect without resample="pillow" and rand_crop=True',
        refused=True,
    ),
    Rule(
        "rand_crop crop_x_start crop_y_start min_crop_size max_crop_size min_random_scale "
        "max_random_scale",
        lambda v: v.random_resized_crop,
        "contradicts random_resized_crop, which decides the crop and its scale: drop one of them",
        refused=True,
    ),
    Rule(
        "crop_x_start crop_y_start",
        lambda v: v.max_crop_size != -1,
        "contradicts max_crop_size, whose crop is at the centre or random: drop one of them",
        refused=True,
    ),
    Rule(_COLOURS, lambda v: v.channels != 3, NEEDS_RGB, refused=True),
    Rule(
        "random_resized_crop",
        lambda v: v.min_random_area == v.max_random_area == 1 and v.aspect_range == (1, 1),
        "cannot vary: with an area and an aspect ratio of 1, MXNet's defaults, it is the crop at "
        "the centre in every epoch; usual are min_random_area=0.08, min_aspect_ratio=3/4 and "
        "max_aspect_ratio=4/3",
    ),
    Rule(
        "log_aspect_ratio",
        lambda v: not v.random_resized_crop,
        "has no effect without random_resized_crop",
        refused=True,
    ),
    Rule(
        "min_random_area max_random_area",
        lambda v: not v.random_resized_crop,
        "has no effect without random_resized_crop=True",
    ),
    Rule(
        "rand_crop",
        lambda v: -1 not in (v.crop_x_start, v.crop_y_start),
        "has no effect with crop_x_start and crop_y_start",
    ),
    Rule("rand_mirror", lambda v: v.mirror, "has no effect with mirror=True"),
    Rule("rotate", lambda v: v.rotate == 0, "has no effect: -1 is off, and 0 turns nothing"),
    Rule("max_rotate_angle", lambda v: v.rotate > 0, "has no effect with rotate"),
    Rule("max_rotate_angle rotate", lambda v: v.rotate_list, "has no effect with rotate_list"),
    Rule(
        "fill_value",
        lambda v: (
            (v.padding_mode != "constant" or not v.pad)
            and not (v.warps or v.moves)
            and v.resize != "contain"
            and (v.resample is None or v.random_resized_crop)
            and (not v.auto_augment or v.augment_fill is not None)
        ),
        "has no effect without pad or a warp: nothing outside the image is visible",
    ),
    *CHANNEL_RULES,
)

#: The limits of a crop of a detection image.
_CROP = (
    "num_crop_sampler min_crop_scales max_crop_scales min_crop_aspect_ratios "
    "max_crop_aspect_ratios min_crop_overlaps max_crop_overlaps min_crop_sample_coverages "
    "max_crop_sample_coverages min_crop_object_coverages max_crop_object_coverages "
    "max_crop_trials"
)
#: Keywords for boxes that are cut, whatever cuts them.
_EMIT = "crop_emit_mode emit_overlap_thresh"
#: Changes and their probabilities, neither of which does anything alone, and the size of none.
_CHANCES = (
    ("max_random_hue", "random_hue_prob", 0),
    ("max_random_saturation", "random_saturation_prob", 0),
    ("max_random_illumination", "random_illumination_prob", 0),
    ("max_random_contrast", "random_contrast_prob", 0),
    ("max_pad_scale", "rand_pad_prob", 1),
)


def _without(name: str, other: str, least: float) -> Rule:
    """Make the rule of a keyword that does nothing unless another one is above `least`."""
    return Rule(
        name,
        lambda v: getattr(v, other) <= least,
        f"has no effect without {other} above {least}",
    )


def _cuts(values: Any) -> bool:
    """Return whether boxes may be cut, and dropped for it."""
    return values.rand_crop_prob > 0 or values.mosaic > 0 or values.moves_boxes


DET_RULES = (
    *RESAMPLE_RULES,
    Rule("mosaic_center", lambda v: not v.mosaic, "has no effect without mosaic", refused=True),
    Rule(
        "max_random_hue max_random_saturation max_random_illumination",
        lambda v: v.channels != 3,
        NEEDS_RGB,
        refused=True,
    ),
    Rule(
        _CROP,
        lambda v: v.rand_crop_prob <= 0,
        "has no effect without rand_crop_prob above 0",
    ),
    Rule(
        _EMIT,
        lambda v: not _cuts(v),
        "has no effect without rand_crop_prob above 0, a mosaic, or a policy that moves boxes",
    ),
    Rule(
        "rand_crop_prob", lambda v: v.num_crop_sampler <= 0, "has no effect without crop samplers"
    ),
    Rule(
        "emit_overlap_thresh",
        lambda v: v.crop_emit_mode != "overlap" and _cuts(v),
        'has no effect without crop_emit_mode="overlap"',
    ),
    *(_without(size, chance, 0) for size, chance, _ in _CHANCES),
    *(_without(chance, size, least) for size, chance, least in _CHANCES),
    Rule(
        "fill_value",
        lambda v: (
            (v.rand_pad_prob <= 0 or v.max_pad_scale <= 1)
            and not v.mosaic
            and (not v.auto_augment or v.augment_fill is not None)
        ),
        "has no effect without a border: rand_pad_prob and max_pad_scale",
    ),
    Rule(
        "mean_r mean_g mean_b mean_a",
        lambda v: not v.mean_rgb_overrides_file,
        "has no effect: as in MXNet, the means of a detection iterator count only if one of them "
        "is above 0",
    ),
    *CHANNEL_RULES,
)
