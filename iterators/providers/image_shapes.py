"""Shapes of image batches: one drawn for each, that of its bucket, or that of every image.

`Shapes` is what a `data_shape` says besides the one shape of a recipe.  Sizes of images come from
their headers, so that the memory of a batch is known before anything is decoded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from recordio.keywords.checks import integers

from ..core.batch import DataBatch, DataDesc
from ..core.device import NumpyDevice
from ..core.dtypes import numpy_dtype
from ..core.order import (
    BatchPlan,
    BucketPlan,
    Buckets,
    DealtOrder,
    Members,
    Order,
    PlainOrder,
    SequentialOrder,
    ShuffledOrder,
)
from ..core.order.cutting import pieces
from ..core.order.plans import DrawnShapePlan, ImageSizePlan
from ..core.order.tokens import TokenPlan
from ..images.augment.recipe import BaseRecipe
from ..images.plan import RenderPlan
from ..images.stage import SeparateArrays
from .image_options import ImageRecordOptions
from .sample_iterator import Samples

#: Of patches, what says of which part of an image they are.
RANDOM_CROP = frozenset(
    (
        *("random_resized_crop", "min_random_area", "max_random_area"),
        *("min_aspect_ratio", "max_aspect_ratio", "log_aspect_ratio"),
    )
)
#: What a batch of patches has, and one of images one behind the other beside these.
PATCH_NAMES = ("patches", "patch_coord", "patch_valid")
RAGGED_NAMES = ("offsets", "sizes")
#: Images whose sizes are worked out together.
AT_ONCE = 1 << 20
#: What a recipe may say of images that keep their size.
KEEPS_SIZE = frozenset(
    (
        *("data_shape", "orient", "background", "resize", "max_side", "inter_method", "resample"),
        *(
            "interpolation",
            "reducing_gap",
            "scale",
            "scaled_decode",
            "mirror",
            "rand_mirror",
            "mirror_p",
        ),
        *("rand_mirror_prob", "flip_p", "fill_value", "brightness", "contrast", "saturation"),
        *("random_h", "random_s", "random_l", "pca_noise", "max_random_contrast"),
        *("max_random_illumination", "random_hue_prob", "random_saturation_prob"),
        *("random_illumination_prob", "random_contrast_prob", "max_random_hue"),
        *("max_random_saturation", "label_pad_width", "label_pad_value", "max_label_width"),
        *(f"{name}_{colour}" for name in ("mean", "std") for colour in "rgba"),
    )
)


@dataclass(frozen=True)
class Shapes:
    """Heights and widths, one of which each batch has; without any, every image has its own.

    With a `patch` images are cut into squares with such sides, at most as many as one of `lengths`,
    and `budget` is the number of them that a batch has at most.
    """

    drawn: tuple[tuple[int, int], ...] = ()
    #: A batch has the shape of the bucket of its images.
    buckets: Buckets | None = None
    patch: int = 0
    lengths: tuple[int, ...] = ()
    budget: int = 0

    @property
    def of_images(self) -> bool:
        """True if every image has a shape of its own."""
        return not self.drawn and self.buckets is None

    def over(self, source: Any) -> Shapes:
        """Return them for the samples of a source."""
        return self

    @classmethod
    def taken(
        cls, keywords: Mapping[str, Any], buckets: Buckets | None = None
    ) -> tuple[Shapes | None, dict[str, Any]]:
        """Take them out of the keywords of a recipe, whose `data_shape` is that of the largest."""
        shape = keywords["data_shape"]
        if buckets is not None:
            return cls._of_buckets(buckets, keywords)
        if shape is None or (isinstance(shape, Sequence) and tuple(shape[1:]) == (None, None)):
            return cls(), {**keywords, "data_shape": (shape[0] if shape else 3, 1, 1)}
        if not isinstance(shape, Sequence) or not shape or not isinstance(shape[0], Sequence):
            return None, dict(keywords)
        if isinstance(shape, str):
            return None, dict(keywords)
        shapes = [integers("data_shape", one, 3, 1) for one in shape]
        if len({one[0] for one in shapes}) > 1:
            raise ValueError(f"data_shape={shape!r}: all have the same number of channels")
        largest = tuple(max(sides) for sides in zip(*shapes, strict=True))
        drawn = tuple((height, width) for _, height, width in shapes)
        return cls(drawn), {**keywords, "data_shape": largest}

    @classmethod
    def _of_buckets(
        cls, buckets: Buckets, keywords: Mapping[str, Any]
    ) -> tuple[Shapes, dict[str, Any]]:
        shape = keywords["data_shape"]
        if shape is not None and tuple(shape[1:]) != (None, None):
            raise ValueError(
                f"data_shape={shape!r}: buckets set the heights and widths: drop data_shape, or "
                "give (channels, None, None)"
            )
        sides = [max(sides) for sides in zip(*buckets.every_shape, strict=True)]
        parameters = {**keywords, "data_shape": (shape[0] if shape else 3, *sides)}
        if parameters.get("resize", -1) == -1 and not parameters.get("random_resized_crop"):
            parameters["resize"] = "cover"
        return cls(buckets=buckets), parameters

    def in_patches(self, options: ImageRecordOptions) -> Shapes:
        """Return them for images in patches, if that is asked for."""
        if not options.patches:
            return self
        if not self.of_images:
            raise ValueError(
                "patches follow the sizes of the images: give data_shape=None, and no buckets"
            )
        if not options.sequence_lengths:
            raise ValueError(
                f"patches={options.patches} needs sequence_lengths, (128, 256, 576, 784, 1024) for "
                "example"
            )
        budget = options.batch_patches or options.batch_size * min(options.sequence_lengths)
        return Shapes(patch=options.patches, lengths=options.sequence_lengths, budget=budget)

    def check(self, options: ImageRecordOptions, recipes: Sequence[BaseRecipe]) -> None:
        """Refuse what does not go with batches of several shapes."""
        what = "data_shape is a list of shapes" if self.drawn else "data_shape is None"
        what = "there are buckets" if self.buckets is not None else what
        for name in ("mean_img", "data_specs", "views"):
            if getattr(options, name, None):
                raise ValueError(f"{what}, and {name} needs a single shape: drop one")
        if self.drawn:
            return
        if self.buckets is not None:
            for recipe in recipes:
                if not recipe.orient:
                    raise ValueError("buckets are for upright images: drop orient=False")
            return
        if self.patch:
            self._check_patches(options, recipes)
        # Crops and sizes are numbers of the image; of patches they are known when it is made.
        if any(spec.stored or not self.patch for spec in (options.fields or {}).values()):
            raise ValueError(
                "data_shape=None gives images of their own size, which fields cannot follow: drop "
                "fields, or give a data_shape"
            )
        if options.normalise_on == "device":
            raise ValueError(
                'data_shape=None gives an array for every image: use normalise_on="host"'
            )
        for recipe in recipes:
            if isinstance(recipe.resize, str):
                raise ValueError(
                    f"data_shape=None leaves no size for resize={recipe.resize!r}: drop one"
                )
            if not recipe.orient:
                raise ValueError(
                    "data_shape=None needs the sizes of upright images: drop orient=False"
                )
            for name in recipe.changed():
                if name not in KEEPS_SIZE | (RANDOM_CROP if self.patch else frozenset()):
                    raise ValueError(
                        f"data_shape=None leaves images their size, and {name} needs one: drop "
                        f"{name}, or give a data_shape"
                    )

    def _check_patches(self, options: ImageRecordOptions, recipes: Sequence[BaseRecipe]) -> None:
        for recipe in recipes:
            for name in ("resize", "max_side"):
                if recipe.differs(name):
                    raise ValueError(f"patches follow sequence_lengths alone: drop {name}")
        refuse_own_orders(options, "batches of patches")
        for name in ("weights", "images_per_class", "classes_per_batch", "shuffle_chunk_size"):
            if getattr(options, name) is not None and getattr(options, name):
                raise ValueError(f"batches of patches have their own order: drop {name}")
        if options.layout != "NCHW":
            raise ValueError(f"patches have an order of their own: drop layout={options.layout!r}")
        if options.ragged != "list":
            raise ValueError(f"patches are of one size: drop ragged={options.ragged!r}")

    def plan(
        self, order: Order, batch_size: int, tail: Any, seed: int, sizes: np.ndarray | None
    ) -> BatchPlan:
        """Cut epochs into batches; `sizes` are the height and width of every image."""
        if self.drawn:
            return DrawnShapePlan(order, batch_size, tail, shapes=self.drawn, seed=seed)
        if self.patch:
            return TokenPlan(
                order=order_of_all(order),
                batch_size=batch_size,
                tail=tail,
                patch=self.patch,
                lengths=self.lengths,
                tokens=self.budget,
                seed=seed,
            )
        return ImageSizePlan(order, batch_size, tail, image_sizes=sizes)

    def sizes(
        self, source: Any, recipes: Sequence[BaseRecipe], options: ImageRecordOptions
    ) -> np.ndarray | None:
        """Return height and width of all images where batches or plans follow from them."""
        return sizes_of(source, recipes, options) if self.of_images and not self.patch else None

    def of_plans(self, sizes: np.ndarray | None) -> dict[str, Any]:
        """Return what plans are told of the largest image; `sizes` as for `plan`."""
        if self.patch:
            side = self.patch * max(self.lengths)
            return {"largest": (side, side), "patch": self.patch}
        return {} if sizes is None else {"largest": tuple(sizes.max(0).tolist())}

    def described_data(
        self, images: list[DataDesc], plan: RenderPlan, most: int, sizes: np.ndarray | None
    ) -> list[DataDesc]:
        """Describe the arrays of a batch of at most so many images."""
        return patch_data(self, images[0], plan.recipe.channels, most) if self.patch else images

    def joined(self, samples: Samples, as_buffer: bool) -> Samples:
        """Have what is made of images of their own size put together: a list, or arrays by name."""
        if not self.of_images:
            return samples
        names = [desc.name for desc in samples.stored[0]]
        if as_buffer:
            names += RAGGED_NAMES
        parts = len(PATCH_NAMES) if self.patch else None

        def finish(data: Sequence[Any]) -> list[Any]:
            if not self.patch and not as_buffer:
                return [list(data)]
            return [dict(zip(names[:parts], data, strict=False)), *data[len(names[:parts]) :]]

        return replace(samples, finish=finish)

    def described(self) -> str:
        """Describe them for a saved state."""
        if self.patch:
            return f"patches of {self.patch}, {self.lengths}, {self.budget} in a batch"
        return ", ".join(f"{height}x{width}" for height, width in self.drawn) or "of the images"


def refuse_own_orders(options: ImageRecordOptions, what: str) -> None:
    """Refuse parts with an order each, for batches that all parts take from one."""
    if options.num_parts > 1 and not options.shuffle:
        raise ValueError(f"all parts take {what} from one order: give shuffle=True")


def order_of_all(order: Order) -> DealtOrder:
    """Return the order that all parts take their batches from."""
    if isinstance(order, SequentialOrder):  # all of the file: there is one part
        return DealtOrder(PlainOrder(order.last))
    assert isinstance(order, DealtOrder)
    return order


def bucket_plan(
    buckets: Buckets, order: Order, tail: Any, source: Any, options: ImageRecordOptions
) -> BucketPlan:
    """Sort the images of a source into buckets, and cut epochs into their batches."""
    shuffled = isinstance(order, DealtOrder) and isinstance(order.whole, ShuffledOrder)
    if not shuffled and not isinstance(order, SequentialOrder):
        raise ValueError(
            "buckets have an order of their own: drop weights, images_per_class, "
            "classes_per_batch, epoch_size, shuffle_chunk_size, and share and repeat of packs; of "
            "large Parquet files make a record file first, with `recordio pack`"
        )
    if options.even is True:
        raise ValueError("buckets give all parts as many batches: drop even")
    return BucketPlan(
        order=order,
        batch_size=options.batch_size,
        tail=tail,
        buckets=buckets,
        members=Members.of(buckets, source.image_sizes),
        parts=options.num_parts,
        part=options.part_index,
        seed=options.seed if shuffled else None,
    )


def resized(sizes: np.ndarray, recipe: BaseRecipe, most_pixels: int) -> np.ndarray:
    """Return height and width, int32, of images of some widths and heights after a first resize.

    An image without a size, or with one that is refused, counts as a pixel.
    """
    width, height = sizes[:, 0].astype(np.int64), sizes[:, 1].astype(np.int64)
    bad = (width * height < 1) | (width * height > most_pixels)
    width[bad] = height[bad] = 1
    across, down = recipe.first_resize
    own = width, height
    if across != -1 and down:
        width[:], height[:] = across, down
    elif across != -1:
        side = np.minimum(width, height)
        upright = height > width
        width, height = (
            np.where(upright, across, across * width // side),
            np.where(upright, across * height // side, across),
        )
    limit, side = recipe.max_side, np.maximum(width, height)
    if limit != -1:
        exact = isinstance(recipe.resize, int) and recipe.resize >= limit
        if exact:
            width, height = own
            side = np.maximum(width, height)
        limited = (side > limit) | exact
        width = np.where(limited, limit * width // side, width)
        height = np.where(limited, limit * height // side, height)
    return np.stack([height, width], axis=1).astype(np.int32)


def sizes_of(source: Any, recipes: Sequence[BaseRecipe], options: ImageRecordOptions) -> np.ndarray:
    """Return height and width of the images of a source, of each pack by its recipe.

    A ValueError if the largest images that a batch may have take more memory than is allowed.
    """
    sizes, end = np.empty((len(source), 2), np.int32), 0
    for member, recipe in zip(source.members, recipes, strict=True):
        for table in member.image_sizes:
            for piece in pieces(table, AT_ONCE):
                begin, end = end, end + len(piece)
                sizes[begin:end] = resized(piece, recipe, options.max_pixels)
    pixels = sizes.astype(np.int64).prod(1)
    largest = np.partition(pixels, -min(options.batch_size, len(pixels)))[-options.batch_size :]
    nbytes = int(largest.sum()) * recipes[0].channels * numpy_dtype(options.dtype).itemsize
    if nbytes > options.max_batch_bytes:
        raise ValueError(
            f"a batch of the {len(largest)} largest images takes {nbytes:,} bytes, and "
            f"max_batch_bytes={options.max_batch_bytes:,} allows less: make batch_size smaller, "
            "give resize, or make max_batch_bytes larger"
        )
    return sizes


def describe_images(
    options: ImageRecordOptions,
    plan: RenderPlan,
    shapes: Shapes | None,
    dtype: Any,
    image_sizes: np.ndarray | None,
) -> list[DataDesc]:
    """Describe the images of a batch, if they have that type: an array for each view, or patches.

    A height and width of 0 say that each image has its own.
    """
    plans = [plan, *plan.views]
    name, size = options.data_name, options.batch_size
    names = [f"{name}{number}" for number in range(len(plans))] if plan.views else [name]
    sides = (0, 0) if shapes is not None and shapes.of_images else None
    descs = [
        DataDesc(own, one.shape(size, sides), dtype or one.dtype, one.layout)
        for own, one in zip(names, plans, strict=True)
    ]
    return descs if shapes is None else shapes.described_data(descs, plan, size, image_sizes)


def patch_data(shapes: Shapes, desc: DataDesc, channels: int, most: int) -> list[DataDesc]:
    """Describe the arrays of a batch in patches: the one with the longest sequences."""
    length = max(shapes.lengths)
    images = min(max(shapes.budget // length, 1), most)
    values = shapes.patch * shapes.patch * channels
    shapes_of = ((images, length, values), (images, length, 2), (images, length))
    dtypes = desc.dtype, np.int64, np.bool_
    return [
        DataDesc(name, shape, dtype, None)
        for name, shape, dtype in zip(PATCH_NAMES, shapes_of, dtypes, strict=True)
    ]


def images_of_patches(arrays: Sequence[np.ndarray], patch: int) -> list[np.ndarray]:
    """Put images together again, (height, width, channels) each."""
    images = []
    for patches, coord, valid in zip(*arrays, strict=True):
        rows, columns = (coord[valid].max(0) + 1).tolist() if valid.any() else (1, 1)
        parts = patches[: rows * columns].reshape(rows, columns, patch, patch, -1)
        images.append(np.concatenate([np.concatenate(list(row), 1) for row in parts], 0))
    return images


def whole_images(batch: DataBatch, patch: int) -> RaggedBatch:
    """Return a batch of patches as one of images."""
    parts: list[Any] = [NumpyDevice().send(array) for array in batch.data[: len(PATCH_NAMES)]]
    images = SeparateArrays(images_of_patches(parts, patch))
    desc = DataDesc("data", (len(images),), images.dtype, "HWC")
    arguments = batch.label, batch.pad, batch.index, None, [desc], batch.provide_label
    whole = RaggedBatch([images], *arguments)
    whole.source = batch.source
    return whole


class RaggedBatch(DataBatch):
    """A batch of images that have a size each."""

    def _size(self) -> int:
        return len(self.index)  # type: ignore[arg-type]


def ragged_data(
    arrays: SeparateArrays, desc: DataDesc, as_buffer: bool
) -> tuple[list[Any], list[DataDesc]]:
    """Return what stands for images of several sizes in a batch, and its description."""
    layout, name, dtype = str(desc.layout).replace("N", ""), desc.name, desc.dtype
    count = len(arrays)
    if not as_buffer:
        return list(arrays), [DataDesc(name, (count,), dtype, layout)]
    sizes = np.array([[one.shape[layout.index(axis)] for axis in "HW"] for one in arrays], np.int32)
    offsets = np.cumsum([0, *(one.size for one in arrays)], dtype=np.int64)
    values = arrays.joined()
    made: list[Any] = [values, offsets, sizes]
    return made, [
        DataDesc(own, array.shape, dtype if array is values else array.dtype, None)
        for own, array in zip((name, *RAGGED_NAMES), made, strict=True)
    ]


def describe_batch(batch: DataBatch) -> None:
    """Describe the arrays of a batch that have other shapes than those of most batches."""
    batch.provide_data = _described(batch.provide_data, batch.data)
    batch.provide_label = _described(batch.provide_label, batch.label)


def _described(descriptions: Sequence[DataDesc], arrays: Sequence[Any]) -> list[DataDesc]:
    """Return descriptions with the shapes that the arrays have."""
    return [
        desc
        if getattr(array, "shape", desc.shape) == desc.shape
        else DataDesc(desc.name, array.shape, desc.dtype, desc.layout)
        for desc, array in zip(descriptions, arrays, strict=True)
    ]
