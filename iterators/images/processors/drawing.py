"""The plan of a picture for people: all that becomes of it, and where it lies there.

`recordio view` and the pictures of the manual draw this.
"""

from __future__ import annotations

from typing import NamedTuple

from ..augment.pipelines.processor_rules import PicturePlan, ProcessorRule

#: (x, y, width, height), in pixels.
Area = tuple[float, float, float, float]


class MadePicture(NamedTuple):
    """A picture of which tiles are cut or which becomes patches."""

    #: (width, height).
    size: tuple[int, int]
    #: Where the whole picture that was given would lie, and what of that is seen.
    placed: Area
    seen: Area
    #: What of the picture that was given is seen.
    part: Area
    #: The tiles, by their numbers in the tensor, from 0.
    tiles: dict[int, Area]
    #: Rows and columns of patches, (0, 0) if there are none.
    grid: tuple[int, int]


def made_pictures(rule: ProcessorRule, height: int, width: int) -> list[MadePicture]:
    """Return the pictures that one of a size becomes; an ImageSizeError if it is refused.

    >>> from iterators.images.augment.pipelines.processor_families import rule_of
    >>> rule = rule_of({"image_processor_type": "Qwen2VLImageProcessor"})
    >>> made_pictures(rule, 600, 800)[0].size
    (812, 588)
    """
    plan = rule.plan(height, width)
    whole = (0.0, 0.0, float(width), float(height))
    placed, seen, sizes = [whole], [whole], [(width, height)]
    for step in plan.steps:
        x, y, w, h = step.region
        across, down = step.size[1] / w, step.size[0] / h
        left, top = step.at[1] - x * across, step.at[0] - y * down
        px, py, pw, ph = placed[step.source]
        placed.append((px * across + left, py * down + top, pw * across, ph * down))
        sx, sy, sw, sh = _shared(seen[step.source], step.region)
        seen.append((sx * across + left, sy * down + top, sw * across, sh * down))
        canvas = step.canvas or step.size
        sizes.append((canvas[1], canvas[0]))
    tile_height, tile_width = plan.tile
    has_patches = rule.patches is not None or plan.count != len(plan.cuts)
    pictures = []
    for source in dict.fromkeys(cut.source for cut in plan.cuts):
        px, py, pw, ph = placed[source]
        sx, sy, sw, sh = seen[source]
        part = ((sx - px) * width / pw, (sy - py) * height / ph, sw * width / pw, sh * height / ph)
        tiles: dict[int, Area] = {
            number: (cut.x, cut.y, tile_width, tile_height)
            for number, cut in enumerate(plan.cuts)
            if cut.source == source
        }
        grid = plan.grid if has_patches else (0, 0)
        pictures.append(
            MadePicture(
                sizes[source],
                _rounded(placed[source]),
                _rounded(seen[source]),
                _rounded(part),
                tiles,
                grid,
            )
        )
    return pictures


def plan_words(rule: ProcessorRule, plan: PicturePlan) -> str:
    """Return how much a plan makes.

    >>> from iterators.images.augment.pipelines.processor_families import rule_of
    >>> rule = rule_of({"image_processor_type": "Qwen2VLImageProcessor"})
    >>> plan_words(rule, rule.plan(600, 800))
    '2,436 patches, 42 rows of 58; 609 where the model merges 2 x 2'
    """
    height, width = plan.tile
    if rule.patches is None and plan.count == len(plan.cuts):
        tiles = "1 tile" if plan.count == 1 else f"{plan.count:,} tiles"
        return f"{tiles} of {width} x {height} pixels"
    rows, columns = plan.grid
    words = f"{plan.count:,} patches, {rows} rows of {columns}"
    slots = rule.slots([plan])
    if slots is not None and slots != plan.count:
        words += f", in room for {slots:,}"
    merged = rule.config.get("merge_size") or rule.config.get("pooling_kernel_size") or 1
    if merged > 1:
        words += f"; {plan.count // merged**2:,} where the model merges {merged} x {merged}"
    return words


def _rounded(area: Area) -> Area:
    """Return an area without the errors of a chain of products."""
    x, y, width, height = (round(number, 6) for number in area)
    return x, y, width, height


def _shared(one: Area, other: Area) -> Area:
    """Return what two areas have in common."""
    left, top = max(one[0], other[0]), max(one[1], other[1])
    right = min(one[0] + one[2], other[0] + other[2])
    bottom = min(one[1] + one[3], other[1] + other[3])
    return left, top, max(right - left, 0.0), max(bottom - top, 0.0)
