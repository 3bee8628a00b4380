"""Batches of one shape each: images in buckets of nearly their own aspect, dealt in groups.

A bucket is a shape.  Its images, permuted anew in every epoch, are cut into groups, and the groups
of all buckets come in a random order.  The parts take a group together: each has a batch of the
same shape at the same time.  Everything is a pure function of (epoch, positions done), so that any
number of parts can go on where others stopped.  No image is opened here.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from recordio.keywords.checks import boolean, integer, real

from ..random import derive_key, permute
from .cutting import Tail
from .epochs import SHUFFLE_KEY, ShuffledOrder, check_of
from .image_shapes import MOST_CLASSES, aspect_classes, by_class
from .plans import BatchPlan

GROUP_KEY = 0x67726F7570  # "group": the order of groups, apart from the permutations of images
#: Pixels of a side at most.
MOST_SIDE = 1 << 15


@dataclass(frozen=True)
class Buckets:
    """Shapes of batches; every image goes to the shape that is nearest to its aspect.

    The nearest is the one whose ratio of width to height differs least in its logarithm; of two
    that are equally near, the narrower one.  Of several buckets with one ratio, an image goes to
    the largest that is not larger than the image, else to the smallest.

    Parameters
    ----------
    shapes : sequence of (int, int), optional
        Heights and widths in pixels, from 1 to 32768; at most 256 of them.
    pixels : int, optional
        Instead of `shapes`: all shapes of at most so many pixels whose sides are multiples of
        `step`, but none that fits into another.
    step : int
        With `pixels`, the number of which all sides are multiples.
    ratio : float
        With `pixels`, the largest ratio of the longer to the shorter side; at least 1.
    batch_size : int or sequence of int, optional
        Images in a batch, for all buckets or for each in the order of `shapes`; by default
        that of the provider, which is the most a batch may have.
    batch_pixels : int, optional
        Instead of `batch_size`: pixels of a batch at most.  A bucket has as many images in a batch
        as these allow, at least one, and at most the batch size of the provider.
    same_shape : bool
        Give all parts the same shape at each step.  If False each takes a batch of its own from the
        one order.
    carry_over : bool
        Deliver the images that remain in a bucket at the end of an epoch first in the next one.  If
        False, its last batches are filled from the start of the bucket, or short; see `round_batch`
        of the provider.

    Raises
    ------
    ValueError
        If a value is out of range, or values contradict one another.

    Examples
    --------
    >>> Buckets([(512, 768), (640, 640)]).shapes
    ((512, 768), (640, 640))
    >>> Buckets(pixels=256 * 256, step=64, ratio=2).shapes
    ((320, 192), (256, 256), (192, 320))
    """

    shapes: Sequence[Sequence[int]] | None = None
    pixels: int | None = None
    step: int = 64
    ratio: float = 2.0
    batch_size: int | Sequence[int] | None = None
    batch_pixels: int | None = None
    same_shape: bool = True
    carry_over: bool = False

    def __post_init__(self) -> None:
        if (self.shapes is None) == (self.pixels is None):
            raise ValueError("Buckets: give either shapes, (height, width) each, or pixels")
        shapes = self._of_pixels() if self.shapes is None else self._of_pairs(self.shapes)
        if len(shapes) > MOST_CLASSES:
            raise ValueError(f"Buckets: {len(shapes)} shapes are more than {MOST_CLASSES}")
        if len(set(shapes)) < len(shapes):
            raise ValueError("Buckets: a shape is there twice")
        if self.batch_size is not None and self.batch_pixels is not None:
            raise ValueError("Buckets: give batch_size or batch_pixels, not both")
        sizes = self.batch_size
        if isinstance(sizes, Sequence) and not isinstance(sizes, str):
            sizes = tuple(integer("batch_size", size, low=1) for size in sizes)
            if len(sizes) != len(shapes):
                raise ValueError(
                    f"Buckets: batch_size has {len(sizes)} numbers for {len(shapes)} shapes"
                )
        elif sizes is not None:
            sizes = integer("batch_size", sizes, low=1)
        if self.batch_pixels is not None:
            integer("batch_pixels", self.batch_pixels, low=1)
        boolean("same_shape", self.same_shape)
        boolean("carry_over", self.carry_over)
        object.__setattr__(self, "shapes", shapes)
        object.__setattr__(self, "batch_size", sizes)

    @classmethod
    def of(cls, value: Any) -> Buckets:
        """Return `Buckets` as they are, or those with a list of shapes."""
        return value if isinstance(value, Buckets) else cls(value)

    def _of_pairs(self, shapes: Any) -> tuple[tuple[int, int], ...]:
        if isinstance(shapes, (str, bytes)) or not isinstance(shapes, Sequence) or not len(shapes):
            raise ValueError(f"buckets={shapes!r}: expected a list of (height, width)")
        pairs = []
        for shape in shapes:
            if not isinstance(shape, Sequence) or len(shape) != 2:
                raise ValueError(f"buckets: {shape!r} is not (height, width)")
            height, width = (integer("buckets", side, low=1, high=MOST_SIDE) for side in shape)
            pairs.append((height, width))
        return tuple(pairs)

    def _of_pixels(self) -> tuple[tuple[int, int], ...]:
        step = integer("step", self.step, low=1, high=MOST_SIDE)
        pixels = integer("pixels", self.pixels, low=step * step, high=MOST_SIDE * MOST_SIDE)
        ratio = real("ratio", self.ratio, 1, 1e6)
        shapes: list[tuple[int, int]] = []
        for height in range(min(pixels // step, MOST_SIDE) // step * step, 0, -step):
            width = int(min(pixels // height, ratio * height, MOST_SIDE)) // step * step
            if width * ratio >= height and (not shapes or width > shapes[-1][1]):
                shapes.append((height, width))
        return tuple(shapes)

    def batch_sizes(self, most: int) -> tuple[int, ...]:
        """Return the number of images in a batch of each bucket, at most `most`."""
        shapes = self.every_shape
        if self.batch_pixels is not None:
            return tuple(min(max(self.batch_pixels // (h * w), 1), most) for h, w in shapes)
        sizes: Any = self.batch_size
        counts = sizes if isinstance(sizes, tuple) else (sizes or most,) * len(shapes)
        if max(counts) > most:
            raise ValueError(
                f"a bucket has batches of {max(counts)}: batch_size={most} is the most that a "
                "batch may have; make it larger"
            )
        return counts

    @property
    def every_shape(self) -> tuple[tuple[int, int], ...]:
        """The shapes, given or made: height and width of each."""
        return self.shapes  # type: ignore[return-value]

    def nearest(self, sizes: np.ndarray) -> np.ndarray:
        """Return the number of the bucket of each image, by width and height: uint8."""
        aspects: dict[float, list[int]] = {}
        for number, (height, width) in enumerate(self.every_shape):
            aspects.setdefault(width / height, []).append(number)
        ratios = sorted(aspects)
        edges = [math.sqrt(low * high) for low, high in itertools.pairwise(ratios)]
        classes = aspect_classes(sizes, np.array(edges, np.float64))
        table = np.array([aspects[ratio][0] for ratio in ratios], np.uint8)
        numbers = table[classes] if (table != np.arange(len(table))).any() else classes
        for number, ratio in enumerate(ratios):
            if len(aspects[ratio]) > 1:
                self._by_size(sizes, classes == number, aspects[ratio], numbers)
        return numbers

    def _by_size(
        self, sizes: np.ndarray, mine: np.ndarray, buckets: list[int], numbers: np.ndarray
    ) -> None:
        """Choose among buckets of one aspect by the size of images."""
        rows = np.flatnonzero(mine)
        smallest, *larger = sorted(buckets, key=lambda number: self.every_shape[number])
        numbers[rows] = smallest
        for number in larger:
            height, width = self.every_shape[number]
            numbers[rows[(sizes[rows, 0] >= width) & (sizes[rows, 1] >= height)]] = number

    def described(self) -> str:
        """Describe what must stay the same for a saved position to stay valid."""
        shapes = ", ".join(f"{height}x{width}" for height, width in self.every_shape)
        shape = "one shape" if self.same_shape else "shapes of their own"
        return f"{shapes}; {shape}{', carried over' if self.carry_over else ''}"


class Members:
    """The records of each bucket: `records`, uint32, and where each bucket begins among them.

    >>> members = Members.of(Buckets([(1, 2), (2, 1)]), [np.array([[9, 3], [2, 7], [8, 3]], "u4")])
    >>> members.of_bucket(0).tolist(), members.of_bucket(1).tolist()
    ([0, 2], [1])
    """

    def __init__(self, records: np.ndarray, starts: np.ndarray) -> None:
        self.records: np.ndarray = records
        self.starts: np.ndarray = starts
        self.counts: np.ndarray = np.diff(starts)

    @classmethod
    def of(cls, buckets: Buckets, tables: Iterable[np.ndarray]) -> Members:
        """Sort the records of tables of widths and heights, one after the other, into buckets."""
        numbers = [buckets.nearest(np.ascontiguousarray(table, np.uint32)) for table in tables]
        classes = numbers[0] if len(numbers) == 1 else np.concatenate(numbers)
        return cls(*by_class(classes, len(buckets.every_shape)))

    def among(self, chosen: np.ndarray) -> Members:
        """Return those of some records, which are numbered anew in their order."""
        classes = np.zeros(len(self.records), np.uint8)
        for number in range(len(self.counts)):
            classes[self.of_bucket(number)] = number
        return Members(*by_class(classes[chosen], len(self.counts)))

    def of_bucket(self, number: int) -> np.ndarray:
        """Return the records of a bucket, in the order of the file."""
        return self.records[self.starts[number] : self.starts[number + 1]]


class _Groups(NamedTuple):
    """The groups of an epoch in its order."""

    buckets: np.ndarray  # of each: uint8
    firsts: np.ndarray  # position of its first image in the stream of its bucket: int64
    starts: np.ndarray  # positions of the epoch where each begins, and the end: int64
    steps: np.ndarray  # of all groups before each, and of all: int64


class _Step(NamedTuple):
    """The images that all parts take together."""

    bucket: int
    first: int  # position in the stream of the bucket
    images: int
    slots: int  # of the batch of each part
    after: int  # positions of the epoch that are done then


@dataclass(frozen=True, eq=False, kw_only=True)
class BucketPlan(BatchPlan):
    """An epoch cut into batches that have the shape of a bucket each.

    Parameters
    ----------
    order : Order
        What says how many images there are, and in how many parts.
    batch_size : int
        The most images that a batch has.
    tail : {"wrap", "pad"}
        Whether the last batches of a bucket are filled from its start, or have fewer images than
        slots.
    buckets : Buckets
        The shapes.
    members : Members
        The images of each.
    parts, part : int
        Number of parts, and which one this is.
    seed : int or None
        Determines the order; None for buckets one after the other, and images as they lie in the
        file.
    together : int
        Batches of a group; by default as many as there are parts.  An epoch that `together` parts
        began is carried on by any other number.
    short : bool
        Give the last batches of a bucket as many slots as the part with most images of them.
    """

    fills: ClassVar[bool] = True
    one_row: ClassVar[bool] = False
    shaped: ClassVar[bool] = True
    buckets: Buckets
    members: Members
    parts: int = 1
    part: int = 0
    seed: int | None = 0
    together: int = 0
    short: bool = False
    _sizes: np.ndarray = field(init=False, repr=False)
    #: The groups of the epochs that were asked for last.
    _groups_by_epoch: dict[int, _Groups] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        sizes = np.array(self.buckets.batch_sizes(self.batch_size), np.int64)
        object.__setattr__(self, "_sizes", sizes)
        if not self.together:
            object.__setattr__(self, "together", self.parts if self.buckets.same_shape else 1)

    # -- positions ----------------------------------------------------------------------------

    @property
    def empty(self) -> bool:
        """True if no epoch ever has a batch."""
        return not len(self.members.records)

    def count(self, epoch: int = 0) -> int:
        """Return the number of images of this part in an epoch, filled positions left out.

        Those that make batches `short` alike count.
        """
        groups = self._groups(epoch)
        taken = np.diff(groups.starts)
        if not self.buckets.same_shape:
            total = len(taken)
            mine = np.arange(self.part, -(-total // self.parts) * self.parts, self.parts)
            return int(taken[mine % max(total, 1) if self.short else mine[mine < total]].sum())
        kinds, times = np.unique(taken * MOST_CLASSES + groups.buckets, return_counts=True)
        result = 0
        for kind, count in zip(kinds.tolist(), times.tolist(), strict=True):
            left, bucket = divmod(kind, MOST_CLASSES)
            while left:
                images = self._taken(left, bucket)
                part = 0 if self.short else self.part
                result += count * len(range(part, images, self.parts))
                left -= images
        return result

    def batches(self, done: int = 0, epoch: int = 0) -> int:
        """Return the number of batches left behind the first `done` positions of an epoch."""
        groups = self._groups(epoch)
        total = int(groups.starts[-1])
        if done >= total:
            return 0
        if not self.buckets.same_shape:
            return -(-(len(groups.buckets) - self._group_at(groups, done)) // self.parts)
        group = self._group_at(groups, done)
        left = int(groups.starts[group + 1]) - done
        size = int(self._sizes[groups.buckets[group]])
        return int(groups.steps[-1] - groups.steps[group + 1]) + -(-left // (size * self.parts))

    def any_left(self, done: int = 0, epoch: int = 0) -> bool:
        """Return whether a batch is left behind the first `done` positions of an epoch."""
        return done < int(self._groups(epoch).starts[-1])

    def is_over(self, done: int, epoch: int = 0) -> bool:
        """Return whether no part has a batch left: all have as many."""
        return not self.any_left(done, epoch)

    def behind(self, epoch: int, done: int) -> int:
        """Return the `done` behind the batch that begins there."""
        return self._step(epoch, done).after

    def over(self, order: Any, tail: Tail, chosen: np.ndarray | None = None) -> BucketPlan:
        """Return a plan for another `DealtOrder`; see `BatchPlan.over`."""
        return replace(
            self,
            order=order,
            tail="wrap",  # a slot that other parts fill is filled
            members=self.members if chosen is None else self.members.among(chosen),
            parts=order.num_parts,
            part=order.part_index,
            seed=order.whole.seed if isinstance(order.whole, ShuffledOrder) else None,
            together=0,
            short=True,
        )

    def carried(self, epoch: int) -> int:
        """Return the images that are left for the next epoch, of all parts."""
        return int((self._counted(epoch + 1) - self._bases(epoch + 1)).sum())

    def counts(self, epoch: int) -> dict[str, float]:
        """Count what an epoch leaves for the next one, of all parts."""
        return {"carried_over": self.carried(epoch)} if self.buckets.carry_over else {}

    # -- batches ------------------------------------------------------------------------------

    def rows(self, epoch: int, number: int, done: int = 0) -> tuple[np.ndarray, int]:
        """Return record numbers of one batch and how many of its positions are padding."""
        step = self._step(epoch, self._done(epoch, number, done))
        positions = self._positions(step)
        pad = step.slots - len(positions)
        if pad and self.tail == "wrap":
            # From the start of the bucket in this epoch, by each part from another position.
            fills = np.arange(pad) * self.parts + self.part
            positions = np.concatenate([positions, self._turned(epoch, step.bucket, fills)])
        return self._in_stream(step.bucket, positions), pad

    def draws(self, number: int, done: int = 0, epoch: int = 0) -> np.ndarray:
        """Return numbers that tell the occurrences of a record in an epoch apart.

        They are 0, and for what was carried over the number of epochs since it should have come.
        """
        step = self._step(epoch, self._done(epoch, number, done))
        positions = self._positions(step)
        draws = np.zeros(step.slots if self.tail == "wrap" else len(positions), np.int64)
        turns = positions // self.members.counts[step.bucket]
        draws[: len(positions)] = np.maximum(epoch - turns, 0)
        return draws

    def sizes(self, epoch: int, number: int, done: int, rows: np.ndarray) -> tuple[int, int]:
        """Return height and width of the images of a batch."""
        height, width = self.buckets.every_shape[self.bucket(epoch, number, done)]
        return height, width

    def slots(self, epoch: int, number: int, done: int) -> int:
        """Return the number of slots of a batch."""
        return self._step(epoch, self._done(epoch, number, done)).slots

    def bucket(self, epoch: int, number: int, done: int) -> int:
        """Return the number of the bucket of a batch."""
        return self._step(epoch, self._done(epoch, number, done)).bucket

    def record(self, epoch: int, position: int, done: int = 0) -> int:
        """Return another record for the batch that begins at `done`, by its position.

        Those of its bucket come first, and then all others.
        """
        step = self._step(epoch, done)
        behind = position - step.slots - int(self.members.counts[step.bucket])
        if behind >= 0:
            everything = self.members.records
            key = derive_key(self.seed or 0, SHUFFLE_KEY, epoch)
            return int(everything[permute(key, len(everything), [behind % len(everything)])[0]])
        at = np.array([step.first + self.part + position])
        (number,) = self._in_stream(step.bucket, self._turned(epoch, step.bucket, at))
        return int(number)

    def others(self, epoch: int, done: int) -> int:
        """Return how many records may take the place of one in a batch."""
        step = self._step(epoch, done)
        return step.slots + int(self.members.counts[step.bucket]) + len(self.members.records)

    def described(self) -> str:
        """Describe what must stay the same for a saved position to stay valid."""
        sizes = ",".join(map(str, self._sizes))
        how = "in order" if self.seed is None else "shuffled"
        check = check_of(self.members.starts)
        return f"buckets {self.buckets.described()}; batches of {sizes}; {how}; {check}"

    def state(self) -> dict[str, int]:
        """Return what belongs to a saved position besides it."""
        return {"together": self.together}

    def resumed(self, state: Mapping[str, Any]) -> BucketPlan:
        """Return the plan that goes on with what another number of parts began."""
        if "together" not in state:
            raise ValueError("the state is incomplete: it needs together")
        return replace(self, together=integer("together", state["together"], low=1))

    # -- the arithmetic -----------------------------------------------------------------------

    @property
    def _group_sizes(self) -> np.ndarray:
        return self._sizes * self.together

    def _counted(self, epoch: int) -> np.ndarray:
        """Count the images of each bucket in all epochs before one."""
        return self.members.counts * epoch

    def _bases(self, epoch: int) -> np.ndarray:
        """Find where an epoch begins in the stream of each bucket: its images, permuted anew."""
        if not self.buckets.carry_over:
            return self._counted(epoch)
        return self._counted(epoch) // self._group_sizes * self._group_sizes

    def _groups(self, epoch: int) -> _Groups:
        groups = self._groups_by_epoch.get(epoch)
        if groups is None:
            for old in list(self._groups_by_epoch)[:-2]:  # other threads may change it
                self._groups_by_epoch.pop(old, None)
            groups = self._groups_by_epoch[epoch] = self._arranged(epoch)
        return groups

    def _arranged(self, epoch: int) -> _Groups:
        sizes, bases = self._group_sizes, self._bases(epoch)
        images = self._bases(epoch + 1) - bases
        counts = -(-images // sizes)
        ends = np.cumsum(counts)
        total = int(ends[-1])
        numbers = np.arange(total)
        if self.seed is not None and total:
            numbers = permute(derive_key(self.seed, GROUP_KEY, epoch), total, numbers)
        buckets = np.searchsorted(ends, numbers, side="right").astype(np.uint8)
        inside = (numbers - (ends - counts)[buckets]) * sizes[buckets]
        taken = np.minimum(sizes[buckets], images[buckets] - inside)
        starts = np.concatenate([[0], np.cumsum(taken)])
        steps = -(-taken // (self._sizes[buckets] * self.parts))
        return _Groups(
            buckets, bases[buckets] + inside, starts, np.concatenate([[0], np.cumsum(steps)])
        )

    @staticmethod
    def _group_at(groups: _Groups, done: int) -> int:
        return int(np.searchsorted(groups.starts, done, side="right")) - 1

    def _step(self, epoch: int, done: int) -> _Step:
        """Find what is taken together at a position, by all parts or by this one."""
        groups = self._groups(epoch)
        group = self._group_at(groups, done)
        if group >= len(groups.buckets):
            raise IndexError(f"epoch {epoch} has no batch at position {done}")
        if not self.buckets.same_shape:
            return self._step_apart(groups, group)
        bucket, start, end = (
            int(table) for table in (groups.buckets[group], *groups.starts[group : group + 2])
        )
        images = self._taken(end - done, bucket)
        is_last = end - start < int(self._group_sizes[bucket])
        fills = is_last and not self.short
        slots = int(self._sizes[bucket]) if fills else -(-images // self.parts)
        first = int(groups.firsts[group]) + done - start
        return _Step(bucket, first, images, slots, done + images)

    def _taken(self, left: int, bucket: int) -> int:
        """Return what all parts take of the images left of a group: the same in each of its steps.

        They differ by one where these cannot be divided.
        """
        steps = -(-left // (int(self._sizes[bucket]) * self.parts))
        return -(-left // steps)

    def _step_apart(self, groups: _Groups, group: int) -> _Step:
        """Find the batch of this part where each takes one of its own."""
        total = len(groups.buckets)
        mine = group + self.part
        bucket = int(groups.buckets[mine % total])
        images = int(groups.starts[mine % total + 1] - groups.starts[mine % total])
        after = int(groups.starts[min(group + self.parts, total)])
        size = images if self.short else int(self._sizes[bucket])
        if mine >= total:  # the last step: what is there is repeated, so that all have as many
            return _Step(bucket, int(groups.firsts[mine % total]), 0, size, after)
        return _Step(bucket, int(groups.firsts[mine]), images, size, after)

    def _positions(self, step: _Step) -> np.ndarray:
        """Return the positions of this part's images in the stream of the bucket."""
        if not self.buckets.same_shape:
            return step.first + np.arange(step.images)
        return step.first + np.arange(self.part, step.images, self.parts)

    def _turned(self, epoch: int, bucket: int, positions: np.ndarray) -> np.ndarray:
        """Return positions in the first permutation of a bucket that an epoch uses, cyclically."""
        count = int(self.members.counts[bucket])
        return int(self._bases(epoch)[bucket]) // count * count + positions % count

    def _in_stream(self, bucket: int, positions: np.ndarray) -> np.ndarray:
        """Return the records at positions of the stream of a bucket."""
        mine, count = self.members.of_bucket(bucket), int(self.members.counts[bucket])
        turns, inside = np.divmod(positions, count)
        if self.seed is not None:
            for turn in np.unique(turns).tolist():
                key, at = derive_key(self.seed, SHUFFLE_KEY, turn, bucket), turns == turn
                inside[at] = permute(key, count, inside[at])
        return mine[inside].astype(np.int64)
