"""Keywords of providers and data sets for type checkers, by test_keywords.py."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Required, TypedDict

import numpy as np
from numpy.typing import DTypeLike

Path = str | os.PathLike[str]


class RemoteKeywords(TypedDict, total=False):
    """Of `RemoteOptions`."""

    remote_cache: str | os.PathLike[str] | None
    remote_cache_size: int | None
    remote_timeout: float | None
    remote_options: Mapping[str, Any] | None


class RecordDatasetKeywords(RemoteKeywords, total=False):
    """Of `RecordDatasetOptions`."""

    path: Path
    index: Path | None
    header: bool
    copy: bool


class ProviderKeywords(TypedDict, total=False):
    """Of `ProviderOptions`."""

    shuffle: bool
    seed: int
    num_parts: int
    part_index: int
    even: bool | Literal["balanced"]
    prefetch_buffer: int
    data_specs: Any
    device: Any
    epoch: int
    on_error: str
    error_budget: float | None


class ArrayKeywords(ProviderKeywords, total=False):
    """Of `ArrayOptions`."""

    data: Any
    label: Any
    batch_size: int
    data_padding: float
    label_padding: float
    round_batch: bool
    last_batch_handle: str
    dtype: DTypeLike | None
    layout: str | None
    data_layout: str | None


class StoredArrayKeywords(ProviderKeywords, total=False):
    """Of `StoredArrayOptions`."""

    max_array_bytes: int | None
    remote_options: Any


class NamedKeywords(ProviderKeywords, total=False):
    """Of `NamedOptions`."""

    data_name: str
    label_name: str | None


class FileKeywords(NamedKeywords, total=False):
    """Of `FileOptions`."""

    ctx: str


class TextKeywords(StoredArrayKeywords, FileKeywords, total=False):
    """Of `TextOptions`."""

    max_line_bytes: int


class CSVKeywords(TextKeywords, total=False):
    """Of `CSVOptions`."""

    label_csv: str | os.PathLike[str] | None
    label_shape: Sequence[int]
    round_batch: bool
    delimiter: str
    skip_header: int
    missing: float | None
    threads: int | None
    dtype: str
    layout: str | None


class CSVIterParameters(CSVKeywords, total=False):
    """Of `CSVIter`."""

    data_csv: Required[str | os.PathLike[str]]
    data_shape: Required[Sequence[int]]
    batch_size: Required[int]


class LimitKeywords(TypedDict, total=False):
    """Of `LimitOptions`."""

    max_pixels: int
    max_scans: int
    max_scan_pixels: int


class ImageProviderKeywords(NamedKeywords, RemoteKeywords, LimitKeywords, total=False):
    """Of `ImageProviderOptions`."""

    path_imgidx: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None
    image_field: str
    label_field: str
    classes: Any
    label_width: Any
    weights: Any
    images_per_class: int | None
    classes_per_batch: int | None
    epoch_size: int | None
    preprocess_threads: int | str
    verbose: bool
    layout: str
    cache: str | os.PathLike[str] | None
    cache_size: int | None
    strict: bool
    verify: bool


class ImageRecordKeywords(ImageProviderKeywords, FileKeywords, total=False):
    """Of `ImageRecordOptions`."""

    path_imgrec: Any
    entry_points: Any
    path_imglist: str | os.PathLike[str] | None
    fields: Any
    shuffle_chunk_size: int
    shuffle_chunk_seed: int
    seed_aug: int | None
    round_batch: bool
    patches: int | None
    sequence_lengths: Any
    batch_patches: int | None
    ragged: str
    max_batch_bytes: int
    mean_img: str | os.PathLike[str] | None
    dtype: str | None
    label_dtype: Any
    normalise_on: str
    aug_seq: str
    device_id: int


class ImageDetKeywords(ImageRecordKeywords, total=False):
    """Of `ImageDetOptions`."""


class ChangeKeywords(TypedDict, total=False):
    """Of `ChangeOptions`."""

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


class BaseRecipeKeywords(TypedDict, total=False):
    """Of `BaseRecipe`."""

    orient: bool
    background: tuple[int, int, int] | None
    resize: int | tuple[int, int]
    max_side: int
    inter_method: int
    resample: str | None
    interpolation: str | None
    reducing_gap: float | None
    scale: float
    scaled_decode: bool


class DetRecipeKeywords(ChangeKeywords, BaseRecipeKeywords, total=False):
    """Of `DetRecipe`."""

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
    max_random_illumination: int
    max_random_contrast: float
    random_hue_prob: float
    random_saturation_prob: float
    random_illumination_prob: float
    random_contrast_prob: float
    rand_mirror_prob: float
    fill_value: int
    resize_mode: str
    mosaic: float
    mosaic_center: float | tuple[float, float]
    mean_r: float
    mean_g: float
    mean_b: float
    mean_a: float
    std_r: float
    std_g: float
    std_b: float
    std_a: float


class ImageDetRecordIterParameters(ImageDetKeywords, DetRecipeKeywords, total=False):
    """Of `ImageDetRecordIter`."""

    batch_size: Required[int]
    data_shape: Required[Sequence[int | None] | Sequence[Sequence[int]] | None]


class NamedRecipeKeywords(TypedDict, total=False):
    """Of `NamedRecipeOptions`."""

    recipe: Any
    views: Any


class ImageIterKeywords(ImageProviderKeywords, total=False):
    """Of `ImageIterOptions`."""

    data_shape: Any
    path_imgrec: Any
    entry_points: Any
    path_imglist: str | os.PathLike[str] | None
    path_root: str | os.PathLike[str] | None
    aug_list: Any
    imglist: Sequence[Any] | None
    dtype: str
    last_batch_handle: str
    label_dtype: Any


class ImageClassIterKeywords(NamedRecipeKeywords, ImageIterKeywords, total=False):
    """Of `ImageClassIterOptions`."""


class PolicyKeywords(ChangeKeywords, total=False):
    """Of `PolicyOptions`."""

    low_resolution: float
    low_resolution_side: float | Sequence[float]
    crop_on_fill: float
    crop_on_fill_area: float | Sequence[float]


class AugmenterKeywords(PolicyKeywords, total=False):
    """Of `AugmenterOptions`."""

    data_shape: Any
    resize: int
    rand_crop: bool
    rand_resize: bool
    rand_mirror: bool
    mean: Any
    std: Any
    brightness: float
    contrast: float
    saturation: float
    hue: float
    pca_noise: float
    rand_gray: float
    background: Any
    max_side: int
    inter_method: int
    scaled_decode: bool


class ImageIterParameters(ImageClassIterKeywords, AugmenterKeywords, total=False):
    """Of `ImageIter`."""

    batch_size: int


class ImageDetIterKeywords(ImageIterKeywords, total=False):
    """Of `ImageDetIterOptions`."""


class DetAugmenterKeywords(TypedDict, total=False):
    """Of `DetAugmenterOptions`."""

    data_shape: Any
    resize: int
    rand_crop: float
    rand_pad: float
    rand_gray: float
    rand_mirror: bool
    mean: Any
    std: Any
    brightness: float
    contrast: float
    saturation: float
    pca_noise: float
    hue: float
    inter_method: int
    min_object_covered: Any
    aspect_ratio_range: Any
    area_range: Any
    min_eject_coverage: Any
    max_attempts: Any
    pad_val: Any


class ImageDetIterParameters(ImageDetIterKeywords, DetAugmenterKeywords, total=False):
    """Of `ImageDetIter`."""

    batch_size: int


class ImageClassKeywords(NamedRecipeKeywords, ImageRecordKeywords, total=False):
    """Of `ImageClassOptions`."""

    multi_hot: int | None
    buckets: Any
    decode_on: str


class GeometryKeywords(TypedDict, total=False):
    """Of `GeometryOptions`."""

    rotation: float | Sequence[float] | None
    affine: Mapping[str, Any] | None
    perspective: float
    perspective_p: float
    warp_interpolation: str
    padding_mode: str
    mirror_p: float
    flip_p: float
    crop_position: str | None


class RecipeKeywords(GeometryKeywords, PolicyKeywords, BaseRecipeKeywords, total=False):
    """Of `Recipe`."""

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
    max_random_illumination: float
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


class ImageRecordIterParameters(ImageClassKeywords, RecipeKeywords, total=False):
    """Of `ImageRecordIter`."""

    batch_size: Required[int]
    data_shape: Sequence[int | None] | Sequence[Sequence[int]] | None


class LibSVMKeywords(TextKeywords, total=False):
    """Of `LibSVMOptions`."""

    label_libsvm: str | os.PathLike[str] | None
    label_shape: Sequence[int]
    round_batch: bool
    skip_header: int
    label_weights: bool
    layout: str
    dtype: str


class LibSVMIterParameters(LibSVMKeywords, total=False):
    """Of `LibSVMIter`."""

    data_libsvm: Required[str | os.PathLike[str]]
    data_shape: Required[Sequence[int]]
    batch_size: Required[int]


class MixKeywords(TypedDict, total=False):
    """Of `MixOptions`."""

    provider: Any
    mixup: float
    cutmix: float
    switch: float
    prob: float
    label_smoothing: float
    classes: int | None
    unlabelled: str
    seed: int


class MNISTKeywords(FileKeywords, total=False):
    """Of `MNISTOptions`."""

    image: str | os.PathLike[str]
    label: str | os.PathLike[str]
    batch_size: int
    flat: bool
    silent: bool
    data_shape: tuple[int, ...] | None
    last_batch: str
    layout: str
    dtype: str
    max_array_bytes: int | None


class NDArrayKeywords(ProviderKeywords, total=False):
    """Of `NDArrayOptions`."""

    data: Any
    label: Any
    batch_size: int
    last_batch_handle: str
    data_name: str
    label_name: str
    layout: str
    dtype: DTypeLike | None
    data_layout: str | None


class ProtobufKeywords(StoredArrayKeywords, NamedKeywords, total=False):
    """Of `ProtobufOptions`."""

    round_batch: bool
    layout: str
    dtype: str | None


class ProtobufRecordIterParameters(ProtobufKeywords, total=False):
    """Of `ProtobufRecordIter`."""

    path: Required[str | os.PathLike[str]]
    batch_size: Required[int]


class ThreadKeywords(TypedDict, total=False):
    """Of `ThreadOptions`."""

    threads: int | None


class VerificationPairsKeywords(ThreadKeywords, LimitKeywords, RemoteKeywords, total=False):
    """Of `VerificationPairsOptions`."""

    path: str | os.PathLike[str]


class AugmentedDatasetKeywords(ThreadKeywords, total=False):
    """Of `AugmentedDatasetOptions`."""

    dataset: Any
    stored: str


class SeededRecipeKeywords(NamedRecipeKeywords, total=False):
    """Of `SeededRecipeOptions`."""

    seed: int


class ExampleKeywords(SeededRecipeKeywords, total=False):
    """Of `ExampleOptions`."""

    layout: str
    dtype: str


class AugmentedDatasetParameters(
    AugmentedDatasetKeywords, ExampleKeywords, RecipeKeywords, total=False
):
    """Of `AugmentedDataset`."""

    data_shape: Sequence[int | None] | Sequence[Sequence[int]] | None


class ImageRecordDatasetKeywords(ThreadKeywords, LimitKeywords, RemoteKeywords, total=False):
    """Of `ImageRecordDatasetOptions`."""

    path: Any
    index: Any
    image_field: str
    label_field: str
    classes: Any
    channels: int | None
    orient: bool
    layout: str | None
    dtype: Any
    transform: Callable[[np.ndarray], Any] | None
    fields: Any
    label_dtype: Any
    multi_hot: int | None


class ImageRecordDatasetParameters(
    ImageRecordDatasetKeywords, SeededRecipeKeywords, RecipeKeywords, total=False
):
    """Of `ImageRecordDataset`."""

    data_shape: Sequence[int | None] | Sequence[Sequence[int]] | None
