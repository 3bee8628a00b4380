"""The keywords of `Pack` as type checkers and editors read them.

Written by ``python tests/iterators/core/test_keywords.py`` from the options, which say more
about each; nothing imports this at run time.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict


class PackKeywords(TypedDict, total=False):
    """Of `PackOptions`."""

    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None
    share: float | None
    repeat: float | None
    labels: Any
    classes: Any
    weights: Any
    path_imgidx: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None
    path_imglist: str | os.PathLike[str] | None
    image_field: str
    label_field: str
    cache: str | os.PathLike[str] | None
    cache_size: int | None


class PackParameters(PackKeywords, total=False):
    """Of `Pack`."""

    data_shape: Any
    orient: bool
    background: Any
    resize: int | tuple[int, int] | str
    max_side: int
    inter_method: int
    resample: str | None
    interpolation: str | None
    reducing_gap: float | None
    scale: float
    scaled_decode: bool
    auto_augment: str | None
    num_ops: int | None
    magnitude: float | None
    magnitude_std: float
    increasing: bool
    augment_table: str
    augment_interpolation: str | None
    augment_fill: int | Sequence[int] | None
    steps: Sequence[str | Mapping[str, Any]]
    three_augment: bool
    color_jitter: float | Sequence[float | Sequence[float]]
    color_jitter_prob: float
    random_grayscale: float
    gaussian_blur: float
    blur_sigma: float | Sequence[float]
    solarize_p: float
    solarize_threshold: float
    random_erasing: float
    erasing_area: float | Sequence[float]
    erasing_ratio: float | Sequence[float]
    erasing_count: int | Sequence[int]
    erasing_value: str | float
    low_resolution: float
    low_resolution_side: float | Sequence[float]
    crop_on_fill: float
    crop_on_fill_area: float | Sequence[float]
    rotation: float | Sequence[float] | None
    affine: Mapping[str, Any] | None
    perspective: float
    perspective_p: float
    warp_interpolation: str
    padding_mode: str
    mirror_p: float
    flip_p: float
    crop_position: str | None
    rand_crop: bool
    crop_x_start: int
    crop_y_start: int
    max_crop_size: int
    min_crop_size: int
    random_resized_crop: bool
    min_random_area: float
    max_random_area: float
    max_aspect_ratio: float
    min_aspect_ratio: float | None
    log_aspect_ratio: bool
    max_rotate_angle: int
    rotate: int
    rotate_list: tuple[int, ...]
    max_shear_ratio: float
    min_random_scale: float
    max_random_scale: float
    min_img_size: float
    max_img_size: float
    pad: int
    pad_if_needed: bool
    fill_value: int
    brightness: float
    contrast: float
    saturation: float
    random_h: int
    random_s: int
    random_l: int
    pca_noise: float
    max_random_contrast: float
    max_random_illumination: float | int
    mirror: bool
    rand_mirror: bool
    mean_r: float
    mean_g: float
    mean_b: float
    mean_a: float
    std_r: float
    std_g: float
    std_b: float
    std_a: float
    label_pad_width: int
    max_label_width: int
    label_pad_value: float
    rand_crop_prob: float
    num_crop_sampler: int
    min_crop_scales: tuple[float, ...]
    max_crop_scales: tuple[float, ...]
    min_crop_aspect_ratios: tuple[float, ...]
    max_crop_aspect_ratios: tuple[float, ...]
    min_crop_overlaps: tuple[float, ...]
    max_crop_overlaps: tuple[float, ...]
    min_crop_sample_coverages: tuple[float, ...]
    max_crop_sample_coverages: tuple[float, ...]
    min_crop_object_coverages: tuple[float, ...]
    max_crop_object_coverages: tuple[float, ...]
    max_crop_trials: tuple[int, ...]
    crop_emit_mode: str
    emit_overlap_thresh: float
    rand_pad_prob: float
    max_pad_scale: float
    max_random_hue: int
    max_random_saturation: int
    random_hue_prob: float
    random_saturation_prob: float
    random_illumination_prob: float
    random_contrast_prob: float
    rand_mirror_prob: float
    resize_mode: str
    mosaic: float
    mosaic_center: float | tuple[float, float]
    rand_resize: bool
    mean: Any
    std: Any
    hue: float
    rand_gray: float
