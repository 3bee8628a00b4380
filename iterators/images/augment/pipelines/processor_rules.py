"""The rule of an image processor of a vision-language model: from a size to cuts of a picture.

A rule is an object of one of the classes of `processor_families`, with the configuration of the
processor.  It knows sizes alone: how a picture of one becomes tiles or patches (`PicturePlan`), and
what the tensors beside ``pixel_values`` hold.  `iterators.images.processors` makes the pixels.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from recordio.errors import ImageSizeError

from ....core.pool import BufferPool
from .parts import PipelineError
from .processors import IDLE, config_of, name_of, short_name

#: (x, y, width, height) in pixels.
Box = tuple[int, int, int, int]
#: Plans of one rule that are kept, as pictures of one size are usual.
MOST_PLANS = 4096
#: Height and width of a picture that every processor takes; the size of tiles where there are none.
USUAL_SIZE = (448, 448)


class ResizeStep(NamedTuple):
    """A rectangle of one picture resized and laid on a canvas: one more picture."""

    #: 0 is the picture that was given, 1 what the first resize gives, and so on.
    source: int
    region: Box
    #: (height, width) that the rectangle gets.
    size: tuple[int, int]
    #: (height, width) of the new picture; the size if it is None.
    canvas: tuple[int, int] | None = None
    #: (y, x) of the rectangle there.
    at: tuple[int, int] = (0, 0)


class Cut(NamedTuple):
    """A tile: the rectangle of the size `PicturePlan.tile` that begins there."""

    source: int
    y: int = 0
    x: int = 0


@dataclass(frozen=True)
class PicturePlan:
    """All that is made of a picture of one size."""

    steps: tuple[ResizeStep, ...]
    #: In the order of the output.
    cuts: tuple[Cut, ...]
    #: (height, width) of every tile.
    tile: tuple[int, int]
    #: Patches, or tiles where the rule makes no patches.
    count: int
    #: Rows and columns of patches or tiles.
    grid: tuple[int, int] = (1, 1)
    #: Red, green and blue of a canvas around a picture.
    fill: tuple[int, int, int] = (0, 0, 0)


class Patches(NamedTuple):
    """The layout of the pixels of a tile where it becomes patches."""

    side: int
    #: Patches of a square of so many a side follow one another.
    merge: int = 1
    #: Every plane is written so many times.
    repeat: int = 1
    #: Channels of a pixel follow one another, instead of planes.
    interleaved: bool = False
    #: A patch has the axes (planes, side, side), instead of one.
    planes: bool = False


@dataclass(frozen=True)
class ProcessorRule:
    """A processor of pictures, by their sizes; equal to others of its class and configuration.

    `processor_families.rule_of` finds the rule of a processor.

    >>> from iterators.images.augment.pipelines.processor_families import rule_of
    >>> rule = rule_of({"image_processor_type": "Qwen2VLImageProcessor"})
    >>> rule.count(600, 800), rule.shape(600, 800)
    (2436, (2436, 1176))
    >>> rule.plan(600, 800).grid
    (42, 58)
    """

    #: Of the class, as the configuration has it.
    name: str
    #: All settings, those of the class where the configuration says nothing.
    config: dict[str, Any] = field(hash=False)

    #: Settings of the class, as transformers has them.
    defaults: ClassVar[dict[str, Any]] = {}
    #: Values of settings without which the arrays of several pictures would not be one.
    needed: ClassVar[dict[str, Any]] = {"do_resize": True}
    #: Whether the first axis of `pixel_values` counts samples: all pictures are one, unless it is
    #: said how many each sample has.
    nested: ClassVar[bool] = False
    #: Whether pixels that are neither scaled nor normalised are made floats nevertheless.
    floats: ClassVar[bool] = False

    @classmethod
    def of(cls, name: str, settings: Mapping[str, Any]) -> ProcessorRule:
        """Make the rule of a configuration; a PipelineError names what is not known."""
        settings = cls.renamed(dict(settings))
        config = {**_USUAL, **cls.defaults, **settings}
        for key, value in config.items():
            if value and not (key in cls.defaults or key in _USUAL or key in _IDLE):
                raise PipelineError(
                    f"{key}={value!r:.60} is not known here: drop it if it changes no pixel", name
                )
        pixel_settings = {key: value for key, value in config.items() if key not in _IDLE}
        for key, value in cls.needed.items():
            if bool(pixel_settings.get(key)) is not value:
                raise PipelineError(
                    f"{key}={pixel_settings.get(key)!r} makes arrays of sizes of their own, which "
                    f"are not supported: set it to {value}",
                    name,
                )
        rule = cls(name, {key: _plain(value) for key, value in sorted(pixel_settings.items())})
        if rule.config["resample"] not in range(6):
            raise rule.error(f"resample={rule.config['resample']!r}: expected a filter of Pillow")
        gap = rule.config["reducing_gap"]
        if gap is not None and not (type(gap) in (int, float) and gap >= 1):
            raise rule.error(f"reducing_gap={gap!r}: expected a number of at least 1")
        if gap is not None and rule.config["resample"] == 0:
            raise rule.error(
                f"reducing_gap={gap!r} has no effect with resample=0, nearest: drop it"
            )
        try:
            rule.check()
            rule.tables()
        except (KeyError, TypeError, IndexError) as error:
            raise PipelineError(
                f"lacks a setting, or has one of another form: {error!r}", name
            ) from None
        return rule

    @classmethod
    def renamed(cls, config: dict[str, Any]) -> dict[str, Any]:
        """Return settings under today's names."""
        return config

    def check(self) -> None:
        """Refuse settings that have no meaning here."""

    def error(self, reason: str) -> PipelineError:
        """Make the error that names the processor."""
        return PipelineError(reason, self.name)

    def make_plan(self, height: int, width: int) -> PicturePlan:
        """Return what becomes of a picture; an ImageSizeError if the processor refuses it."""
        raise NotImplementedError

    def make_plan_of_several(self, height: int, width: int) -> PicturePlan:
        """Return what becomes of a picture whose sample has others; mostly the same."""
        return self.make_plan(height, width)

    def outputs(
        self,
        plans: Sequence[PicturePlan],
        sizes: Sequence[tuple[int, int]],
        counts: Sequence[int] | None = None,
    ) -> dict[str, Any]:
        """Return what the processor gives beside ``pixel_values``; see `shape_of`."""
        raise NotImplementedError

    @property
    def patches(self) -> Patches | None:
        """The form of patches, or None for tiles."""
        return None

    def slots(self, plans: Sequence[PicturePlan]) -> int | None:
        """Return the room of every picture along an axis of its own; None if there is no axis."""
        return None

    def plan(self, height: int, width: int, of_several: bool = False) -> PicturePlan:
        """Return what becomes of a picture of that size; an ImageSizeError if nothing does.

        `of_several` says that its sample has other pictures.
        """
        plan = self._plans.get((height, width, of_several))
        if plan is None:
            if height < 1 or width < 1:
                raise ImageSizeError(f"a picture of {height} x {width} pixels has none")
            make = self.make_plan_of_several if of_several else self.make_plan
            plan = make(height, width)
            if len(self._plans) >= MOST_PLANS:
                self._plans.clear()
            self._plans[height, width, of_several] = plan
        return plan

    @functools.cached_property
    def _plans(self) -> dict[tuple[int, int, bool], PicturePlan]:
        return {}

    @functools.cached_property
    def pool(self) -> BufferPool:
        """Memory of tensors that nobody holds any more, of the last two calls."""
        return BufferPool(0, keep=3)  # masks of pixels are tensors of their own

    def __getstate__(self) -> dict[str, Any]:
        """Leave plans and memory behind."""
        return {"name": self.name, "config": self.config}

    def count(self, height: int, width: int) -> int:
        """Return the number of patches of a picture, or of tiles where there are no patches."""
        return self.plan(height, width).count

    def counts(self, sizes: Any) -> np.ndarray:
        """Return `count` of many sizes, rows of (height, width); an error names the row."""
        rows = np.asarray(sizes)
        if rows.ndim != 2 or rows.shape[1] != 2 or rows.dtype.kind not in "iu":
            raise ValueError(
                f"sizes: expected rows of whole numbers (height, width), not {rows.dtype} "
                f"{rows.shape}"
            )
        counts = np.empty(len(rows), np.int64)
        for number, (height, width) in enumerate(rows.tolist()):
            try:
                counts[number] = self.count(height, width)
            except ImageSizeError as error:
                raise error.at(record=number) from None
        return counts

    def item(self, plans: Sequence[PicturePlan]) -> tuple[int, ...]:
        """Return the shape of one patch or tile in the tensor of several pictures."""
        form = self.patches
        plans = plans or [self.plan(*USUAL_SIZE)]
        if form is None:
            return 3, max(plan.tile[0] for plan in plans), max(plan.tile[1] for plan in plans)
        planes = 3 * form.repeat
        if form.planes:
            return planes, form.side, form.side
        return (planes * form.side * form.side,)

    def items(self, plan: PicturePlan) -> int:
        """Return how many patches or tiles of a picture are in ``pixel_values``."""
        return len(plan.cuts) if self.patches is None else plan.count

    def rooms(
        self, plans: Sequence[PicturePlan], counts: Sequence[int] | None = None
    ) -> list[tuple[int, int]]:
        """Return where each picture begins among patches or tiles, and for how many it has room."""
        slots, rooms = self.slots(plans), []
        spaces = [self.items(plan) if slots is None else slots for plan in plans]
        if not self.nested:
            ends = np.cumsum([0, *spaces]).tolist()
            return list(zip(ends, spaces, strict=False))
        samples = split(spaces, counts)
        length = max(map(sum, samples), default=0)
        for number, sample in enumerate(samples):
            at, end = number * length, (number + 1) * length
            for left, space in zip(range(len(sample), 0, -1), sample, strict=True):
                rooms.append((at, end - at if left == 1 else space))
                at += space
        return rooms

    def shape_of(
        self, plans: Sequence[PicturePlan], counts: Sequence[int] | None = None
    ) -> tuple[int, ...]:
        """Return the shape of ``pixel_values`` of several pictures.

        `counts` are the pictures of each sample, where a sample has a list of them.
        """
        slots = self.slots(plans)
        rows: tuple[int, ...]
        if not self.nested:
            rows = (sum(map(self.items, plans)),) if slots is None else (len(plans), slots)
        elif slots is None:
            samples = split(list(map(self.items, plans)), counts)
            rows = len(samples), max(map(sum, samples), default=0)
        else:
            samples = split(plans, counts)
            rows = len(samples), max(map(len, samples), default=0), slots
        return rows + self.item(plans)

    def shape(self, height: int, width: int) -> tuple[int, ...]:
        """Return the shape of ``pixel_values`` of a picture of that size alone."""
        return self.shape_of([self.plan(height, width)])

    def denominator(self, plan: PicturePlan) -> int:
        """Return the 1, 2, 4 or 8 by which a JPEG picture is decoded, as Pillow's draft has it.

        >>> from iterators.images.augment.pipelines.processor_families import rule_of
        >>> rule = rule_of({"image_processor_type": "GotOcr2ImageProcessor", "reducing_gap": 2.0})
        >>> rule.denominator(rule.plan(1600, 3200))  # to 384 x 384
        2
        """
        gap, denominator = self.config["reducing_gap"], 8
        if gap is None or any(cut.source == 0 for cut in plan.cuts):
            return 1
        for (_, _, width, height), (to_height, to_width) in (
            (step.region, step.size) for step in plan.steps if step.source == 0
        ):
            while denominator > 1 and not (
                to_width * gap * denominator <= width and to_height * gap * denominator <= height
            ):
                denominator //= 2
        return denominator

    def tables(self) -> np.ndarray:
        """Return the value of every level of every channel, (3, 256) of float32.

        The order of operations is that of the processor, so the values are the same.
        """
        config = self.config
        levels = np.arange(256)
        values = levels.astype(np.float32)
        if config["do_rescale"]:
            values = (levels.astype(np.float64) * config["rescale_factor"]).astype(np.float32)
        tables = np.repeat(values[None], 3, 0)
        if config["do_normalize"]:
            mean, std = (self._colours(key) for key in ("image_mean", "image_std"))
            tables = (tables - mean) / std
        return tables

    def scale(self) -> np.ndarray:
        """Return what `tables` divides by, takes away and divides by, of float32: (1 + 3 + 3,).

        Rounded divisions by them give the values of `tables` with most configurations, not all.
        """
        config = self.config
        divisor = 1 / (config["rescale_factor"] or 1) if config["do_rescale"] else 1
        colours = [np.zeros(3), np.ones(3)]
        if config["do_normalize"]:
            colours = [self._colours(key)[:, 0] for key in ("image_mean", "image_std")]
        return np.concatenate([[divisor], *colours]).astype(np.float32)

    def _colours(self, key: str) -> np.ndarray:
        """Return a number for each channel."""
        value = self.config[key]
        values = value if isinstance(value, (list, tuple)) else [value] * 3
        if len(values) != 3:
            raise self.error(f"{key}={value!r}: expected a number for each of 3 channels")
        return np.array(values, np.float32)[:, None]

    @property
    def is_plain(self) -> bool:
        """True if pixels stay the whole numbers that they are."""
        config = self.config
        return not (config["do_rescale"] or config["do_normalize"] or self.floats)


#: Settings that all classes have.
_USUAL = {
    "do_convert_rgb": True, "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True,
    "reducing_gap": None,  # ours
}  # fmt: skip
#: Settings without a meaning of their own.
_IDLE = (IDLE | {"default_to_square"}) - _USUAL.keys()


def _plain(value: Any) -> Any:
    """Return a setting as JSON has it, without the keys that say nothing."""
    if hasattr(value, "value") and not isinstance(value, (int, float, str)):
        value = value.value
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items() if one is not None}
    if isinstance(value, (list, tuple)):
        return tuple(_plain(one) for one in value)
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else value


def find_rule(processor: Any, families: Mapping[str, type[ProcessorRule]]) -> ProcessorRule | None:
    """Return the rule of a processor whose class has one; None for all others."""
    if isinstance(processor, ProcessorRule):
        return processor
    config = config_of(processor)
    name = name_of(processor, config, families)
    family = families.get(short_name(name))
    if family is None:
        return None
    return family.of(name, {key: value for key, value in config.items() if value is not None})


def sides(rule: ProcessorRule, key: str, square: bool = False) -> tuple[int, int]:
    """Return (height, width) of a setting that is a size."""
    value = rule.config[key]
    if isinstance(value, int):
        return value, value
    if value.keys() >= {"height", "width"}:
        return int(value["height"]), int(value["width"])
    if square and "shortest_edge" in value:
        return int(value["shortest_edge"]), int(value["shortest_edge"])
    raise rule.error(f"{key}={value!r}: expected height and width")


def split(pictures: Sequence[Any], counts: Sequence[int] | None) -> list[Sequence[Any]]:
    """Return the pictures of each sample; all are of one if nobody says how many each has."""
    ends = np.cumsum([0, *([len(pictures)] if counts is None else counts)]).tolist()
    return [pictures[begin:end] for begin, end in itertools.pairwise(ends)]


def whole(height: int, width: int, size: tuple[int, int], **more: Any) -> ResizeStep:
    """Make the step that resizes the picture that was given."""
    return ResizeStep(0, (0, 0, width, height), size, **more)


def tiles(source: int, rows: int, columns: int, side: tuple[int, int]) -> list[Cut]:
    """Return the cuts of a grid of tiles, row by row."""
    return [Cut(source, y * side[0], x * side[1]) for y in range(rows) for x in range(columns)]
