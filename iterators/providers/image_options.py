"""The keywords of image providers, except those that a recipe has: files, labels, threads, limits.

`iterators.images.augment` describes what may happen to an image, and `recordio.keywords.options`
what becomes of the rules.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, ClassVar

from recordio.bytes.remote.settings import RemoteOptions
from recordio.frames.encoder import MAX_RECORD_LENGTH
from recordio.keywords.checks import boolean, choice, integer, path, paths
from recordio.keywords.options import Rule, described, option, optional

from ..core.dtypes import dtype_name, quoted
from ..core.field_specs import FieldOptions
from ..core.order import Buckets
from ..images.augment.named_recipes import NamedRecipeOptions
from ..images.augment.rules import EXPOSURE_RULE, PIXEL_RULES, is_integer
from ..images.limit_options import LimitOptions
from ..images.sources.mixed_packs import PackOptions, as_packs
from .auto_threads import check_threads
from .provider_options import FileOptions, NamedOptions

#: Seeds, and sizes that the image stage has room for.
SEED = partial(integer, low=-(1 << 63), high=(1 << 64) - 1)
MOST_LABELS = MAX_RECORD_LENGTH // 4  # those of the longest record
MOST_SAMPLES = (1 << 31) - 1

Path = str | os.PathLike[str]


def _name(name: str, value: Any) -> str | None:
    if not isinstance(value, str | None):
        raise TypeError(f"{name}={value!r}: expected a name")
    return value


#: Types of labels, which are float32 in the files.
LABEL_TYPES = ("float32", "float64", "int32", "int64", "uint8")


def element_type(name: str, value: Any, allowed: Sequence[str] = LABEL_TYPES) -> str:
    """Return an element type given by NumPy's or torch's name or object."""
    with contextlib.suppress(TypeError):
        value = dtype_name(value)
    return choice(name, value, allowed)


def packs_or_paths(name: str, value: Any) -> Any:
    """Packs as a tuple of them, or what `paths` makes of the rest."""
    return as_packs(value) or paths(name, value)


def _entry_points(name: str, value: Any) -> bool | str:
    if value == "pack":
        return "pack"
    if not isinstance(value, bool):
        raise TypeError(f'{name}={value!r}: expected True, False or "pack"')
    return value


def _layout(name: str, value: Any) -> str:
    if not isinstance(value, str) or sorted(value) != sorted("NCHW"):
        raise ValueError(f"{name}={value!r}: expected the letters N, C, H and W in some order")
    return value


def lengths(name: str, value: Any) -> tuple[int, ...]:
    """Numbers of patches as a tuple."""
    values = [value] if isinstance(value, int) else value
    numbers = tuple(integer(name, one, low=1, high=1 << 20) for one in values)
    if len(set(numbers)) < len(numbers):
        raise ValueError(f"{name}={value!r}: a length is there twice")
    return numbers


# -- keywords that have no effect, or do not go together -----------------------------------------

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
        lambda v: v.mean_rgb_overrides_file,
        "has no effect with a mean above 0 of mean_r to mean_a, as in MXNet",
    ),
    Rule(
        "random_erasing",
        lambda v: v.mean_img and not v.mean_rgb_overrides_file and _erases_pixels(v),
        _NEEDS_MEANS,
        refused=True,
    ),
)


# -- the keywords of each provider ----------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class ImageProviderOptions(NamedOptions, RemoteOptions, LimitOptions):
    """The keywords of all image providers."""

    batch_size: int = option(
        kind="int",
        text="Images in a batch, at least 1.",
        check=partial(integer, low=1, high=MOST_SAMPLES),
        saved=True,
    )
    path_imgidx: str | tuple[str, ...] = option(
        "",
        "str or os.PathLike, or a list of them",
        """The ``.idx`` file or files, in the same forms as `path_imgrec`. Without it, record files
        are scanned once; for a URL, the index beside the file is used, and a manifest names the
        indexes of its files. The order of the records is that of the file, not that of
        the index.""",
        paths,
    )
    image_field: str = described(PackOptions, "image_field")
    label_field: str = described(PackOptions, "label_field")
    classes: Any = described(PackOptions, "classes")
    label_width: Any = option(
        1,
        "int",
        "Labels of an image; every record (or line of `path_imglist`) must have that many.",
        partial(integer, low=1, high=MOST_LABELS),
        saved=True,
    )
    weights: Any = option(
        None,
        "array_like or mapping, optional",
        """Draw records with replacement, each in proportion to its weight: one weight per record
        in file order, or per (first) label, for example ``{0: 1.0, 1: 0.2}``. A record that is
        drawn again in an epoch is augmented again.""",
    )
    images_per_class: int | None = option(
        None,
        "int, optional",
        """Make batches of ``batch_size / images_per_class`` classes with this many images each,
        for metric learning. Each class comes once in a cycle of all classes, and each image once
        in a cycle of its class. No class or image comes twice in a batch if there are enough.""",
        optional(partial(integer, low=1)),
    )
    classes_per_batch: int | None = option(
        None,
        "int, optional",
        """Largest number of classes in a batch: each then has ``batch_size / classes_per_batch``
        images, if `images_per_class` is smaller or not given.""",
        optional(partial(integer, low=1)),
    )
    epoch_size: int | None = option(
        None,
        "int, optional",
        """Samples of an epoch, over all parts. The remaining records come first in the next epoch,
        and when all were used, their next permutation begins. By default all records, or as many
        as the shares of the packs give.""",
        optional(partial(integer, low=1)),
    )
    seed: int = option(0, "int", "Determines orders and augmentation.", SEED, saved=True)
    preprocess_threads: int | str = option(
        4,
        'int or "auto"',
        """Threads that decode, at least 1; ``"auto"`` finds as many as the loop can use, at most
        one for every processor that the process may use. Batches do not depend on it.""",
        check_threads,
    )
    data_name: str = described(NamedOptions, "data_name", check=_name)
    label_name: str | None = described(NamedOptions, "label_name", check=_name)
    verbose: bool = option(
        True,
        "bool",
        "Log what was found and a line per epoch, at level INFO of the logger ``iterators``.",
        boolean,
    )
    layout: str = option(
        "NCHW",
        "str",
        'Order of the axes of a batch: "NCHW", "NHWC" or any other order of these letters.',
        _layout,
    )
    data_specs: Any = described(
        NamedOptions,
        "data_specs",
        """The form of a batch, instead of `layout`: a tuple for several spaces, and for one space
        an object that is used like its array. Either is a `DataBatch` as well. The sources are
        "features" and "targets"; a VectorSpace of as many elements as there are classes makes a
        single label one-hot.""",
    )
    on_error: str = described(
        NamedOptions,
        "on_error",
        """Raise an error that names a bad record, or replace the record by the next good one of
        the epoch and list it in `skipped`.""",
    )
    cache: str = option(
        None,
        '{"ram"} or path, optional',
        """Keep decoded images, after `resize`, in memory or in a file that other processes and
        later runs use as well. Batches do not depend on it, except that without `resize` (or with
        ``inter_method=10``) JPEG images are decoded in full, as with ``scaled_decode=False``.""",
        path,
    )
    cache_size: int | None = option(
        None,
        "int, optional",
        """Bytes that cached images may take: by default half of the available memory, divided by
        `num_parts`, or half of the free space on the disk. Images that do not fit are decoded
        every time.""",
        optional(partial(integer, low=1)),
    )
    strict: bool = option(
        False,
        "bool",
        """Treat an image as a bad record if the JPEG decoder warns of damaged data. If False, such
        data are decoded as far as possible, as in MXNet, and ``stats()["decoder_warnings"]``
        counts the images. Parts that are not decoded, such as those outside a crop, are not
        checked.""",
        boolean,
    )
    verify: bool = option(
        False,
        "bool",
        """Compare each record with its checksum, in a ``.crc`` file beside the record file, when
        it is read: a record that differs is a bad record. Records whose image comes from a cache
        are not compared again.""",
        boolean,
    )
    remote_cache_size: int | None = described(
        RemoteOptions,
        "remote_cache_size",
        """Bytes that all copies in `remote_cache` may take on the disk: by default their present
        size and half of the free space. Record files that are larger are partly fetched again in
        every epoch; for these, give `shuffle_chunk_size`.""",
    )


@dataclass(frozen=True, kw_only=True)
class ImageRecordOptions(ImageProviderOptions, FileOptions):
    """The keywords of `ImageRecordIter`."""

    rules: ClassVar[tuple[Rule, ...]] = RECORD_RULES

    path_imgrec: Any = option(
        "./data/imgrec.rec",
        "str, os.PathLike or Pack, or a list of them",
        """The ``.rec`` file, a folder of them, a pattern such as ``part-*.rec``, a manifest of
        shards (``train.shards.json``), or several of these, in a list or separated by semicolons;
        by default ``./data/imgrec.rec``. They may be URLs: ``s3://bucket/train.rec``, ``gs://``,
        ``az://``, ``hf://``, ``https://``. A `Pack` describes one of them further: its share, its
        labels, and keywords for its images alone.""",
        packs_or_paths,
    )
    entry_points: Any = option(
        False,
        'bool or "pack"',
        """Note points at which a decoder can begin within sequential JPEG images when they are
        decoded for the first time, so that later epochs decode crops without the parts above and
        beside them. True keeps the points in memory; ``"pack"`` also keeps them beside each pack,
        in ``PREFIX.entry``, which is read when the provider is made and written when it is closed.
        Points take up to 0.4 % of the bytes of the images. Pixels do not depend on them.""",
        _entry_points,
    )
    path_imglist: str = option(
        "",
        "str or os.PathLike",
        """A ``.lst`` file whose labels, found by the id in the record header, replace those in the
        records.""",
        path,
    )
    fields: Any = described(FieldOptions, "fields")
    num_parts: int = described(
        NamedOptions,
        "num_parts",
        """Number of parts that share the records: without `shuffle`, each has a block of the file
        by MXNet's rule; with it, every `num_parts`-th position of the common permutation.""",
    )
    shuffle_chunk_size: int = option(
        0,
        "int",
        """If above 0, visit blocks of this many MiB in random order, for disks that are slow to
        seek; `shuffle` then shuffles within the blocks. Parquet files are read by row groups: if
        all of their images together have more than 512 MiB, `shuffle` puts the row groups in
        random order and shuffles the images of as many adjacent groups as have 512 MiB, but at
        least two.""",
        partial(integer, low=0, high=1 << 40),
    )
    shuffle_chunk_seed: int = option(0, "int", "Determines the order of the blocks.", SEED)
    seed_aug: int | None = option(
        None,
        "int, optional",
        "Determines augmentation instead of `seed`.",
        optional(SEED),
        saved=True,
    )
    round_batch: bool = option(
        True,
        "bool",
        """Fill the last batch from the start of the epoch. If False, the rest of the batch is
        zero. `pad` counts these positions in either case.""",
        boolean,
        saved=True,
    )
    patches: int | None = option(
        None,
        "int, optional",
        """Cut images into squares with sides of this many pixels. A batch has
        ``batch["patches"]``, (images, patches, values); ``batch["patch_coord"]``, the row and the
        column of each patch; and ``batch["patch_valid"]``, which is False for padding, as in
        timm's NaFlex loader. An image is resized, with nearly its own aspect ratio, to at most as
        many patches as its batch allows; `data_shape` is then None or ``(channels, None, None)``.
        With `random_resized_crop` a part of the image is resized, and the range of aspect ratios
        is relative to that of the image.""",
        optional(partial(integer, low=1, high=1 << 10)),
    )
    sequence_lengths: Any = option(
        (),
        "int or sequence of int",
        """With `patches`, the largest number of patches of an image: one of these numbers is drawn
        for every batch, by `seed`, the same for all parts.""",
        lengths,
    )
    batch_patches: int | None = option(
        None,
        "int, optional",
        """With `patches`, the largest number of patches of a batch: a batch has as many images as
        fit, and at most `batch_size`. By default `batch_size` times the smallest of
        `sequence_lengths`. With the recipe of a processor of a vision-language model, the largest
        number of its patches, or of the tiles of one that makes no patches.""",
        optional(partial(integer, low=1, high=MOST_SAMPLES)),
    )
    ragged: str = option(
        "list",
        '{"list", "buffer"}',
        """With ``data_shape=None``, the images of a batch are a list of arrays, or one array of
        one axis with the images one after the other: image i has the values from
        ``batch["offsets"][i]`` to ``batch["offsets"][i + 1]``, and ``batch["sizes"][i]`` is its
        height and width.""",
        partial(choice, allowed=("list", "buffer")),
    )
    max_batch_bytes: int = option(
        1 << 32,
        "int",
        """With ``data_shape=None``, a limit on the bytes of a batch, computed for the largest
        images.""",
        partial(integer, low=1, high=1 << 48),
    )
    mean_img: str = option(
        "",
        "str or os.PathLike",
        """File of a mean image, subtracted instead of `mean_r` to `mean_a`. If the file does not
        exist, it is made: the mean of all images, whatever `num_parts` is, resized and
        cropped at the centre.""",
        path,
    )
    dtype: str | None = option(
        None,
        "str",
        f"{quoted()}.",
        saved=True,
    )
    label_dtype: Any = option(
        "float32",
        "dtype_like",
        """Type of the labels: float32, as they are stored, float64, int32, int64 (for the losses of
        torch) or uint8. A label that does not fit this type is an error.""",
        element_type,
    )
    normalise_on: str = option(
        "host",
        '{"host", "device"}',
        """With "device" (and a `device`), the batch is uploaded as uint8, a quarter of the bytes,
        and mean, std and scale are applied on the device. The result has the type `dtype`, or
        float32 if that is an integer type.""",
        partial(choice, allowed=("host", "device")),
    )
    aug_seq: str = option(
        "aug_default",
        '{"aug_default"}',
        "Accepted because scripts pass it; no other value is possible.",
        partial(choice, allowed=("aug_default",)),
    )
    device_id: int = option(
        0,
        "int",
        "Accepted because scripts pass it, like `ctx`.",
        partial(integer, low=-1),
    )


@dataclass(frozen=True, kw_only=True)
class ImageClassOptions(NamedRecipeOptions, ImageRecordOptions):
    """The keywords of `ImageRecordIter`."""

    label_width: Any = option(
        1,
        'int or {"longest"}',
        """Labels of an image; every record (or line of `path_imglist`) must have that many. With
        "longest" records may have different numbers of labels, which are padded with -1 to the
        longest, and every one of them is a class.""",
        lambda name, value: (
            value if value == "longest" else integer(name, value, low=1, high=MOST_LABELS)
        ),
        saved=True,
    )
    multi_hot: int | None = option(
        None,
        "int, optional",
        """Number of classes of records with any number of labels each: a row of labels has so many
        values, 1 for each label of the record and 0 for the others. Another label is an error of
        the record.""",
        optional(partial(integer, low=1, high=MOST_LABELS)),
        saved=True,
    )
    buckets: Any = option(
        None,
        "Buckets or list of (int, int), optional",
        """(height, width) of each bucket, one of which each batch has, instead of that of
        `data_shape`: an image goes to the bucket that is nearest to its aspect, and `resize`,
        "cover" if not given, brings it to that shape.  `batch_size` is the largest number of images
        in a batch; see `Buckets`.  A saved state serves any number of parts.""",
        optional(lambda name, value: Buckets.of(value)),
    )
    decode_on: str = option(
        "host",
        '{"host", "device"}',
        """With "device" and ``device="cuda"`` nvJPEG decodes sequential JPEG images on the GPU,
        where they are resized, cropped, mirrored and normalised as well; the processor makes all
        other images. Crops are the same, and pixels differ, usually by at most one grey level
        where they are decoded in full.""",
        partial(choice, allowed=("host", "device")),
    )


@dataclass(frozen=True, kw_only=True)
class ImageDetOptions(ImageRecordOptions):
    """The keywords of `ImageDetRecordIter`."""

    rules: ClassVar[tuple[Rule, ...]] = DET_RULES

    path_imglist: str = described(
        ImageRecordOptions,
        "path_imglist",
        """A ``.lst`` file with lines of id, label and path, whose labels, found by the id in the
        record header, replace those in the records.""",
    )
    label_width: int = option(
        -1,
        "int",
        "Number of values that every raw label must have; 0 or less for any number.",
        partial(integer, low=-1, high=MOST_LABELS),
        saved=True,
    )
    mean_img: str = described(
        ImageRecordOptions,
        "mean_img",
        """File of a mean image, used if none of `mean_r` to `mean_a` is above 0. If the file does
        not exist, it is made: the mean of all images, whatever `num_parts` is, resized by `resize`
        and `resize_mode`.""",
    )
    label_dtype: Any = described(
        ImageRecordOptions,
        "label_dtype",
        "Type of the labels: float32, as they are stored, or float64.",
        check=partial(element_type, allowed=("float32", "float64")),
    )
    aug_seq: str = option(
        "det_aug_default",
        '{"det_aug_default"}',
        "Accepted because scripts pass it; no other value is possible.",
        partial(choice, allowed=("det_aug_default",)),
    )


@dataclass(frozen=True, kw_only=True)
class ImageIterOptions(ImageProviderOptions):
    """The keywords of `ImageIter` and `ImageDetIter`."""

    positional = (
        "batch_size data_shape label_width path_imgrec path_imglist path_root path_imgidx shuffle "
        "part_index num_parts aug_list imglist data_name label_name dtype last_batch_handle"
    )

    data_shape: Any = option(
        kind="tuple of int",
        text="""(channels, height, width) of an image; channels 3 (RGB), and also 1 (grey) or 4
        (RGBA) if no colours change.""",
    )
    path_imgrec: Any = option(
        None,
        "str, os.PathLike or Pack, or a list of them, optional",
        """The ``.rec`` file, a folder of them, a pattern such as ``part-*.rec``, a manifest of
        shards, or several of these, in a list or separated by semicolons; or `Pack`, as for
        `ImageRecordIter`.""",
        packs_or_paths,
    )
    entry_points: Any = described(ImageRecordOptions, "entry_points")
    path_imglist: str = option(
        None,
        "str or os.PathLike, optional",
        """A ``.lst`` file with lines of id, labels and path. With `path_imgrec`, its labels, found
        by the id in the record header, replace those in the records; without it, the list names
        the images.""",
        path,
    )
    path_root: str = option(
        None,
        "str or os.PathLike, optional",
        "Folder that the paths of a list are relative to.",
        path,
    )
    path_imgidx: str | tuple[str, ...] = option(
        None,
        "str or os.PathLike, or a list of them, optional",
        "The ``.idx`` file of `path_imgrec`; without it the record file is scanned once.",
        paths,
    )
    num_parts: int = described(
        NamedOptions,
        "num_parts",
        """Number of parts that share the images: without `shuffle`, each has one of `num_parts`
        equal blocks, and the remaining images belong to no part, as in MXNet; with it, every
        `num_parts`-th position of the common permutation, and no image is left out.""",
    )
    aug_list: Any = option(
        None,
        "Augmenter or list of callable, optional",
        """The result of `CreateAugmenter`, or functions that are called one after the other with
        an image ``(height, width, channels)`` and return one. The first gets uint8 pixels, the
        last returns the size of `data_shape`. They run in Python, for several batches at a time if
        `preprocess_threads` is above 1.""",
    )
    imglist: Sequence[Any] | None = option(
        None,
        "sequence, optional",
        """Instead of a list file: items ``[label, path]``, ``[label, ..., label, path]`` or
        ``[labels, path]``.  Their ids are 0, 1, 2...""",
    )
    dtype: str = option(
        "float32",
        '{"float32", "float64", "int32", "int64"}',
        "Type of the labels, which are stored as float32.",
        partial(choice, allowed=("float32", "float64", "int32", "int64")),
    )
    last_batch_handle: str = option(
        "pad",
        '{"pad", "discard", "roll_over"}',
        """Treatment of a short last batch: it is filled from the start of the epoch, as often as
        needed; it is dropped; or its images are the first of the next epoch. As in MXNet, `pad` of
        the batch with these images counts the others in it, although none is padding;
        ``count_samples()`` is right. "roll_over" needs ``num_parts=1`` or ``shuffle=False``.""",
        partial(choice, allowed=("pad", "discard", "roll_over")),
    )

    label_dtype: Any = option(
        None,
        "dtype_like, optional",
        "The same as `dtype`, under its name in the other image providers.",
        optional(element_type),
    )

    def for_records(self) -> ImageRecordOptions:
        """Return the options of `ImageRecordIter`, as far as it has these keywords."""
        shared = {item.name for item in fields(ImageRecordOptions)} - {"dtype"}
        own = self.values(*(item.name for item in fields(self) if item.name in shared))
        own["label_dtype"] = self.label_dtype or self.dtype
        if not self.path_imgrec:
            own["path_imglist"] = ""
        return ImageRecordOptions(**own)


@dataclass(frozen=True, kw_only=True)
class ImageClassIterOptions(NamedRecipeOptions, ImageIterOptions):
    """The keywords of `ImageIter`."""

    positional: ClassVar[str] = ImageIterOptions.positional


@dataclass(frozen=True, kw_only=True)
class ImageDetIterOptions(ImageIterOptions):
    """The keywords of `ImageDetIter`."""

    positional = (
        "batch_size data_shape path_imgrec path_imglist path_root path_imgidx shuffle part_index "
        "num_parts aug_list imglist data_name label_name last_batch_handle"
    )

    label_width: int = described(ImageDetOptions, "label_width")
    label_name: str | None = described(ImageIterOptions, "label_name", default="label")
    aug_list: Any = option(
        None,
        "list of callable, optional",
        """The result of `CreateDetAugmenter`, or other functions that are called one after the
        other with an image ``(height, width, channels)`` and its objects ``(objects, values)`` and
        return both. They run in Python, for several batches at a time if `preprocess_threads` is
        above 1.""",
    )

    def for_records(self) -> ImageRecordOptions:
        """Return the options of `ImageRecordIter`, which has no labels of any length."""
        return ImageIterOptions.for_records(replace(self, label_width=1))
