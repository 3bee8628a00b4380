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
from ..images.limit_options import LimitOptions
from ..images.sources.mixed_packs import as_packs
from .image_rules import DET_RULES, RECORD_RULES
from .provider_options import FileOptions, NamedOptions

__all__ = [
    "ImageClassIterOptions",
    "ImageClassOptions",
    "ImageDetIterOptions",
    "ImageDetOptions",
    "ImageIterOptions",
    "ImageRecordOptions",
]

#: Seeds, and sizes that the image stage has room for.
SEED = partial(integer, low=-(1 << 63), high=(1 << 64) - 1)
MOST_LABELS = MAX_RECORD_LENGTH // 4  # those of the longest record
MOST_SAMPLES = (1 << 31) - 1
MOST_THREADS = 1 << 10

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
    given = [value] if isinstance(value, int) else value
    found = tuple(integer(name, one, low=1, high=1 << 20) for one in given)
    if len(set(found)) < len(found):
        raise ValueError(f"{name}={value!r}: a length is there twice")
    return found


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
        """The ``.idx`` file or files, named as `path_imgrec` names its own; without it the record
        files are scanned once, and of those that are URLs the indexes beside them count; a manifest
        names those of its files.  Records are taken in the order of the file, whatever the order of
        the index.""",
        paths,
    )
    label_width: int = option(
        1,
        "int",
        "Labels of an image; every record (or line of `path_imglist`) must have that many.",
        partial(integer, low=1, high=MOST_LABELS),
        saved=True,
    )
    weights: Any = option(
        None,
        "array_like or mapping, optional",
        """Draw records with replacement, each as often as its weight says: one weight per record in
        file order, or per (first) label, for example ``{0: 1.0, 1: 0.2}``.  A record that comes
        again in an epoch is augmented again.""",
    )
    images_per_class: int | None = option(
        None,
        "int, optional",
        """Make batches of ``batch_size / images_per_class`` classes with as many images each, for
        metric learning.  Classes come in cycles, each once a cycle; so do the images of a class;
        a batch has nothing twice if there is enough.""",
        optional(partial(integer, low=1)),
    )
    classes_per_batch: int | None = option(
        None,
        "int, optional",
        """Classes of a batch at most: each has ``batch_size / classes_per_batch`` images then, if
        `images_per_class` is less or not given.""",
        optional(partial(integer, low=1)),
    )
    epoch_size: int | None = option(
        None,
        "int, optional",
        """Samples of an epoch, of all parts.  Records that are left come first in the next epoch,
        and when all were used their next permutation begins.  By default all records, or what the
        packs say.""",
        optional(partial(integer, low=1)),
    )
    seed: int = option(0, "int", "Determines orders and augmentation.", SEED, saved=True)
    preprocess_threads: int = option(
        4, "int", "Threads that decode, at least 1.", partial(integer, low=1, high=MOST_THREADS)
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
        """What a batch must look like, instead of `layout`: exactly that form - a tuple for several
        spaces, for one something that is used as its array - which is a `DataBatch` as well.  The
        sources are "features" and "targets"; a VectorSpace of as many elements as there are classes
        makes a single label one-hot.""",
    )
    on_error: str = described(
        NamedOptions,
        "on_error",
        """Whether a bad record raises an error that names it, or is replaced by the next good
        record of the epoch and listed in `skipped`.""",
    )
    cache: str = option(
        None,
        '{"ram"} or path, optional',
        """Keep what is expensive, decoded images after `resize`, in memory or in a file that other
        processes and later runs use as well.  Batches do not depend on it, except that without
        `resize` (or with ``inter_method=10``) JPEG images are decoded in full, as
        ``scaled_decode=False`` does it.""",
        path,
    )
    cache_size: int | None = option(
        None,
        "int, optional",
        """Bytes that they may take: by default half of the available memory, divided by
        `num_parts`, or half of the free disk.  Images that do not fit are decoded every time.""",
        optional(partial(integer, low=1)),
    )
    strict: bool = option(
        False,
        "bool",
        """Whether an image is a bad record when its JPEG decoder warns: of damaged data, which it
        otherwise decodes as far as it can, as MXNet does.  ``stats()["decoder_warnings"]`` counts
        such images.  What is not decoded, such as parts outside of a crop, is not looked at.""",
        boolean,
    )
    verify: bool = option(
        False,
        "bool",
        """Compare each record with its checksum, in a ``.crc`` file beside the record file, when it
        is read: one that differs is a bad record.  Those whose image comes from a cache are not
        compared again.""",
        boolean,
    )
    remote_cache_size: int | None = described(
        RemoteOptions,
        "remote_cache_size",
        """Bytes that all copies in that folder may take on the disk: by default what they take now
        and half of what is free.  Record files that are larger are fetched again in every epoch, in
        part; give `shuffle_chunk_size` then.""",
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
        by default ``./data/imgrec.rec``.  They may be URLs: ``s3://bucket/train.rec``, ``gs://``,
        ``az://``, ``hf://``, ``https://``.  A `Pack` says more about one of them: its share, its
        labels, what is different about its images.""",
        packs_or_paths,
    )
    entry_points: Any = option(
        False,
        'bool or "pack"',
        """Note where a decoder can begin within sequential JPEG images when they are decoded for
        the first time, so that crops in later epochs are decoded without what lies above and beside
        them: in memory (True), or beside each pack as well, in ``PREFIX.entry``, which is read when
        the provider is made and written when it is closed (``"pack"``).  They take up to 0.4 % of
        the bytes of the images.  Pixels do not depend on it.""",
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
        """How many parts share the records: without `shuffle` each has a block of the file by
        MXNet's rule, with it every `num_parts`-th position of the one permutation.""",
    )
    shuffle_chunk_size: int = option(
        0,
        "int",
        """If above 0, visit blocks of so many MiB in random order, for disks that are slow to seek;
        `shuffle` then shuffles inside the blocks.  Parquet files are read by row groups: if all of
        their images together have more than 512 MiB, `shuffle` takes the row groups in random order
        and mixes as many neighbours in that order as have 512 MiB, but at least two.""",
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
        """Fill the last batch from the start of the epoch.  If False the rest of it is zero.  `pad`
        counts those positions in either case.""",
        boolean,
        saved=True,
    )
    patches: int | None = option(
        None,
        "int, optional",
        """Cut images into squares with sides of so many pixels: a batch has ``batch["patches"]``,
        (images, patches, values), ``batch["patch_coord"]``, the row and the column of each patch,
        and ``batch["patch_valid"]``, which of them there are, as timm's NaFlex loader gives them.
        An image is resized, with nearly its aspect, to at most as many patches as its batch has;
        `data_shape` is None then, or ``(channels, None, None)``.  With `random_resized_crop` it is
        a part of the image, and the range of aspect ratios is relative to the image's own.""",
        optional(partial(integer, low=1, high=1 << 10)),
    )
    sequence_lengths: Any = option(
        (),
        "int or sequence of int",
        """With `patches`, patches of an image at most: for every batch one of these is drawn, by
        `seed`, the same for all parts.""",
        lengths,
    )
    batch_patches: int | None = option(
        None,
        "int, optional",
        """With `patches`, patches of a batch at most; a batch has as many images as these allow,
        and at most `batch_size`.  By default `batch_size` times the least of `sequence_lengths`.
        """,
        optional(partial(integer, low=1, high=MOST_SAMPLES)),
    )
    ragged: str = option(
        "list",
        '{"list", "buffer"}',
        """With ``data_shape=None`` the images of a batch are a list of arrays, or one behind the
        other in an array of one axis: those of image i lie from ``batch["offsets"][i]`` to
        ``batch["offsets"][i + 1]``, and ``batch["sizes"][i]`` is its height and width.""",
        partial(choice, allowed=("list", "buffer")),
    )
    max_batch_bytes: int = option(
        1 << 32,
        "int",
        """With ``data_shape=None``, bytes that the largest images of all may take in a batch.""",
        partial(integer, low=1, high=1 << 48),
    )
    mean_img: str = option(
        "",
        "str or os.PathLike",
        """File of a mean image, subtracted instead of `mean_r` to `mean_a`.  If it does not exist
        it is made: the mean of the images of this part, resized and cropped at the centre.""",
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
        """Type of the labels, which are stored as float32: also float64, int32, int64 (for the
        losses of torch) or uint8.  A label that it cannot hold is an error.""",
        element_type,
    )
    normalise_on: str = option(
        "host",
        '{"host", "device"}',
        """With "device" (and a `device`) the batch is moved as uint8, a quarter of the bytes, and
        mean, std and scale are applied there; the result is of `dtype`, float32 if that is no type
        of floats.""",
        partial(choice, allowed=("host", "device")),
    )
    aug_seq: str = option(
        "aug_default",
        '{"aug_default"}',
        "Accepted because scripts pass it; nothing else is possible.",
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

    buckets: Any = option(
        None,
        "Buckets or list of (int, int), optional",
        """Heights and widths, one of which each batch has, instead of those of `data_shape`: an
        image goes to the bucket that is nearest to its aspect, and `resize`, "cover" if not given,
        brings it to that shape.  `batch_size` is the most that a batch has; see `Buckets`.  A saved
        state serves any number of parts.""",
        optional(lambda name, value: Buckets.of(value)),
    )
    decode_on: str = option(
        "host",
        '{"host", "device"}',
        """With "device" and ``device="cuda"`` nvImageCodec decodes sequential JPEG images on the
        GPU, where they are resized, cropped, mirrored and normalised as well; others are made on
        the processor.  Crops are the same, and pixels within a grey level of those of
        ``scaled_decode=False`` as a rule; it pays only with very few cores for a GPU.""",
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
        """File of a mean image, used if none of `mean_r` to `mean_a` is above 0.  If it does not
        exist it is made: the mean of the images of this part, as `resize` and `resize_mode` make
        them.""",
    )
    label_dtype: Any = described(
        ImageRecordOptions,
        "label_dtype",
        "Type of the labels, which are stored as float32: also float64.",
        check=partial(element_type, allowed=("float32", "float64")),
    )
    aug_seq: str = option(
        "det_aug_default",
        '{"det_aug_default"}',
        "Accepted because scripts pass it; nothing else is possible.",
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
        """A ``.lst`` file with lines of id, labels and path.  With `path_imgrec` its labels, found
        by the id in the record header, replace those in the records; without, it names the
        images.""",
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
        """How many parts share the images: without `shuffle` each has one of `num_parts` equal
        blocks, the rest belonging to none, as in MXNet; with it every `num_parts`-th position of
        the one permutation, which leaves out none.""",
    )
    aug_list: Any = option(
        None,
        "Augmenter or list of callable, optional",
        """What `CreateAugmenter` returned, or functions that are called one after the other with
        an image ``(height, width, channels)`` and return one; of the first uint8, of the last in
        the size of `data_shape`.  They run in Python, several batches at a time with
        `preprocess_threads` above 1.""",
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
        """What becomes of a short last batch: it is filled from the start of the epoch, as often as
        needed; it is dropped; or its images are the first of the next epoch.  As in MXNet, `pad` of
        the batch that holds those counts the others in it, although none is padding;
        ``count_samples()`` is right.  "roll_over" needs ``num_parts=1`` or ``shuffle=False``.""",
        partial(choice, allowed=("pad", "discard", "roll_over")),
    )

    label_dtype: Any = option(
        None,
        "dtype_like, optional",
        "The same as `dtype`, under the name that it has in the other image providers.",
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
        """What `CreateDetAugmenter` returned, or other functions that are called one behind the
        other with an image ``(height, width, channels)`` and its objects ``(objects, values)`` and
        return both.  They run in Python, several batches at a time with `preprocess_threads` above
        1.""",
    )

    def for_records(self) -> ImageRecordOptions:
        """Return the options of `ImageRecordIter`, which has no labels of any length."""
        return ImageIterOptions.for_records(replace(self, label_width=1))
