"""The order of the records of an image provider, from its keywords and packs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from recordio.errors import RecordIOError

from ..core.order import (
    ClassOrder,
    EpochOrder,
    MixedOrder,
    Order,
    PlainOrder,
    SequentialOrder,
    as_weights,
    make_epoch_order,
    make_order,
)
from ..core.random import derive_key
from ..images.sources.mixed_packs import Pack
from .image_options import ImageRecordOptions
from .image_sources import ImagePack, ImageSource

MIB = 1 << 20
PACK_KEY = 0x7061636B  # "pack": keeps the permutations of packs apart
#: How far the shares of packs may add up to something else than 1.
SHARE_TOLERANCE = 1e-6

#: ``read()`` gives the class of every record, NaN for those without, and what is wrong with them.
ReadClasses = Callable[[], tuple[np.ndarray, dict[int, RecordIOError]]]


def order_of_images(
    source: ImageSource,
    options: ImageRecordOptions,
    packs: Sequence[Pack],
    read_classes: ReadClasses,
) -> tuple[Order, list[RecordIOError]]:
    """Return the order that a provider has, and records found to be of no use.

    `read_classes` is called only where the order depends on the class of every record.
    """
    images = _OrderMaker(source, options, packs, read_classes)
    whole, unit = images.whole()

    def rule(_: int, num_parts: int, part_index: int) -> range:
        return source.part(num_parts, part_index)

    order = make_order(
        len(source),
        rule,
        whole=whole,
        unit=unit,
        **options.values("num_parts", "part_index", "even"),
    )
    return order, images.unusable


def describe_order(order: Order) -> str:
    """Describe what of an order must stay the same for a state to be resumed."""
    text = order.described()
    return f"records {text}" if isinstance(order, SequentialOrder) else text


class _OrderMaker:
    """The parts that an order is made of; `unusable` grows where classes are read."""

    def __init__(
        self,
        source: ImageSource,
        options: ImageRecordOptions,
        packs: Sequence[Pack],
        read_classes: ReadClasses,
    ) -> None:
        self.source, self.options, self.packs = source, options, packs
        self.unusable: list[RecordIOError] = []
        self._read_classes = read_classes
        self._classes: np.ndarray | None = None

    def whole(self) -> tuple[EpochOrder | None, int]:
        """Return an epoch, None for the order of the file, and how many are dealt together."""
        options, packs = self.options, self.packs
        mixes = any(pack.share is not None or pack.repeat is not None for pack in packs)
        weighted = any(pack.weights is not None for pack in packs)
        if options.weights is not None:
            if options.shuffle or options.shuffle_chunk_size:
                raise ValueError(
                    "weights draw the records at random: drop shuffle and shuffle_chunk_size"
                )
            if mixes or weighted:
                raise ValueError("weights are for all records alike: give them to each Pack")
        if options.images_per_class is not None or options.classes_per_batch is not None:
            if mixes or weighted or options.weights is not None or options.shuffle_chunk_size:
                raise ValueError(
                    "images_per_class draws the records of all classes in turn: drop share, "
                    "repeat, weights and shuffle_chunk_size"
                )
            self.warn_of_rereading()
            order = self.by_class()
            return order, order.batch
        if weighted or options.weights is not None:
            self.warn_of_rereading()
        if mixes or weighted:
            return self.mixed(), 1
        everything = self.one(slice(0, len(self.source)), options.weights, options.seed)
        if options.epoch_size is None:
            return everything, 1
        whole = everything or PlainOrder(len(self.source))
        return MixedOrder([whole], [Fraction(1)], options.epoch_size, options.seed), 1

    def warn_of_rereading(self) -> None:
        """Say what it costs to draw anywhere in files that are read in blocks."""
        if self.source.shuffled_blocks() is not None:
            warnings.warn(
                f"{self.source.name}: weights and images_per_class draw samples from anywhere in "
                "the files, and for nearly each of them a whole row group is read: make a record "
                "file of them, or write them with small row groups",
                UserWarning,
                stacklevel=4,
            )

    def one(
        self, records: slice, weights: Any, seed: int, member: ImagePack | None = None
    ) -> EpochOrder | None:
        """The order of some neighbouring records; None for that of the file."""
        options = self.options
        if isinstance(weights, Mapping):
            weights = self.by_label(weights, records)
        blocks: Any = None
        if weights is None and options.shuffle_chunk_size:
            edges = (member or self.source).blocks(options.shuffle_chunk_size * MIB)
            blocks = edges, options.shuffle_chunk_seed
        elif weights is None and options.shuffle:
            mixed = (member or self.source).shuffled_blocks()
            blocks = mixed and (mixed[0], seed, mixed[1])
        return make_epoch_order(
            records.stop - records.start,
            shuffle=options.shuffle,
            seed=seed,
            weights=weights,
            blocks=blocks,
        )

    def mixed(self) -> MixedOrder:
        """Packs with a share each."""
        source, options = self.source, self.options
        sizes = [len(member) for member in source.members]
        orders: list[EpochOrder] = []
        for number, (pack, member) in enumerate(zip(self.packs, source.members, strict=True)):
            first = int(source.firsts[number])
            records = slice(first, first + sizes[number])
            seed = derive_key(options.seed, PACK_KEY, number)
            orders.append(self.one(records, pack.weights, seed, member) or PlainOrder(len(member)))
        shares, size = _shares(self.packs, sizes, options.epoch_size)
        order = MixedOrder(orders, shares, size, options.seed)
        without = np.flatnonzero(order.counts == 0)
        if len(without):
            pack = self.packs[int(without[0])]
            raise ValueError(
                f"an epoch of {size} samples has none of {pack!r}: give a larger epoch_size or "
                "share"
            )
        return order

    def by_class(self) -> ClassOrder:
        """Classes in turn."""
        options = self.options
        images, classes = _division(
            options.batch_size, options.images_per_class, options.classes_per_batch
        )
        return ClassOrder(self.classes(), images, classes, options.epoch_size, options.seed)

    def by_label(self, weights: Mapping[Any, Any], records: slice) -> np.ndarray:
        """One weight for every record, 0 for those without a class."""
        labels = self.classes()[records]
        has_label = ~np.isnan(labels)
        classes, inverse = np.unique(labels[has_label], return_inverse=True)
        missing = [float(label) for label in classes if float(label) not in weights]
        if missing:
            raise ValueError(f"weights has no entry for the labels {missing[:5]}")
        table = np.zeros(len(labels))
        table[has_label] = as_weights([weights[float(label)] for label in classes])[inverse]
        return table

    def classes(self) -> np.ndarray:
        """The class of every record; NaN for those that have none."""
        if self._classes is None:
            labels, errors = self._read_classes()
            labels[list(errors)] = np.nan
            self.unusable.extend(errors.values())
            self._classes = labels
        return self._classes


def _shares(
    packs: Sequence[Pack], sizes: Sequence[int], epoch_size: int | None
) -> tuple[list[Fraction], int]:
    """Return the share of every pack, and the size of an epoch."""
    if not any(pack.share is not None for pack in packs):
        counts = [
            Fraction(str(1 if pack.repeat is None else pack.repeat)) * size
            for pack, size in zip(packs, sizes, strict=True)
        ]
        if epoch_size is not None and any(pack.repeat is not None for pack in packs):
            raise ValueError(
                f"epoch_size={epoch_size}: repeat sets the length of an epoch: drop one, or "
                "give shares"
            )
        size = round(sum(counts)) if epoch_size is None else epoch_size
        return counts, max(size, 1)
    for pack in packs:
        if pack.share is None:
            raise ValueError(f"{pack!r} has no share, but others have: give it to all or to none")
    shares = [Fraction(str(pack.share)) for pack in packs]
    if abs(float(sum(shares)) - 1) > SHARE_TOLERANCE:
        raise ValueError(f"the shares of the packs add up to {float(sum(shares)):g}, not 1")
    return shares, sum(sizes) if epoch_size is None else epoch_size


def _division(
    batch_size: int, images_per_class: int | None, classes_per_batch: int | None
) -> tuple[int, int]:
    """Return how many images of a class are in a batch, and how many classes."""
    images = images_per_class
    if images is None or (classes_per_batch and classes_per_batch * images < batch_size):
        if batch_size % classes_per_batch:  # type: ignore[operator]
            raise ValueError(f"batch_size={batch_size} is not a multiple of {classes_per_batch=}")
        images = batch_size // classes_per_batch  # type: ignore[operator]
    if (images_per_class is not None and images % images_per_class) or batch_size % images:
        raise ValueError(f"batch_size={batch_size} is not a multiple of {images_per_class=}")
    return images, batch_size // images
