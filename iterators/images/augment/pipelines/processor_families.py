"""Rules of the image processors of vision-language models, one class for each family.

A class has the settings of transformers 5 and says how a size becomes tiles or patches, in the
arithmetic of the original, float operations in their order included: one that is rounded
differently would make one picture of a thousand another number of patches.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from recordio.errors import ImageSizeError

from .processor_rules import (
    Box,
    Cut,
    Patches,
    PicturePlan,
    ProcessorRule,
    ResizeStep,
    find_rule,
    sides,
    split,
    tiles,
    whole,
)

_OPENAI = {
    "image_mean": [0.48145466, 0.4578275, 0.40821073],
    "image_std": [0.26862954, 0.26130258, 0.27577711],
}
_HALVES = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}
_LANCZOS, _BILINEAR, _BICUBIC = ({"do_resize": True, "resample": code} for code in (1, 2, 3))
Size = tuple[int, int]
Counts = Sequence[int] | None


# -- patches, as many as a picture needs ----------------------------------------------------------


class Qwen2VL(ProcessorRule):
    """Qwen2-VL, 2.5 and 3: sides are multiples of a patch, and the area lies in a range."""

    defaults = {
        **_BICUBIC, **_OPENAI, "size": {"shortest_edge": 56 * 56, "longest_edge": 28 * 28 * 1280},
        "patch_size": 14, "temporal_patch_size": 2, "merge_size": 2,
    }  # fmt: skip
    needed = {}
    floats = True

    @classmethod
    def renamed(cls, config: dict[str, Any]) -> dict[str, Any]:
        """Return the limits on the area where they are kept today."""
        limits = {"shortest_edge": "min_pixels", "longest_edge": "max_pixels"}
        size = dict(config.get("size") or cls.defaults["size"])
        size.update({key: config[old] for key, old in limits.items() if config.get(old)})
        return {key: config[key] for key in config if key not in limits.values()} | {"size": size}

    @property
    def patches(self) -> Patches:
        """The form of patches: those of a square that the model merges follow one another."""
        config = self.config
        return Patches(config["patch_size"], config["merge_size"], config["temporal_patch_size"])

    def check(self) -> None:
        """Refuse a size that is no range of areas."""
        size, form = self.config["size"], self.patches
        if not size.get("shortest_edge") or not size.get("longest_edge"):
            raise self.error(f"size={size!r}: expected shortest_edge and longest_edge, two areas")
        if min(form.side, form.merge, form.repeat) < 1:
            raise self.error("patch_size, merge_size and temporal_patch_size are at least 1")

    def area(self, height: int, width: int) -> Size:
        """Return the size that a picture gets."""
        _check_aspect(height, width)
        return self.fitted(height, width, 1)

    def fitted(self, height: int, width: int, frames: int) -> Size:
        """Round the sides, and bring the area of so many frames into its range."""
        factor = self.config["patch_size"] * self.config["merge_size"]
        least, most = (self.config["size"][key] for key in ("shortest_edge", "longest_edge"))
        h, w = round(height / factor) * factor, round(width / factor) * factor
        if frames * h * w > most:
            beta = math.sqrt((frames * height * width) / most)
            h = max(factor, math.floor(height / beta / factor) * factor)
            w = max(factor, math.floor(width / beta / factor) * factor)
        elif frames * h * w < least:
            beta = math.sqrt(least / (frames * height * width))
            h = math.ceil(height * beta / factor) * factor
            w = math.ceil(width * beta / factor) * factor
        return h, w

    def make_plan(self, height: int, width: int) -> PicturePlan:
        """Return the plan of one tile, the whole picture."""
        form, size = self.patches, (height, width)
        if self.config["do_resize"]:
            size = self.area(height, width)
        _check_multiple(size, form.side * form.merge)
        rows, columns = size[0] // form.side, size[1] // form.side
        return _one_tile(height, width, size, (rows, columns))

    def outputs(
        self, plans: Sequence[PicturePlan], sizes: Sequence[Size], counts: Counts = None
    ) -> dict[str, Any]:
        """Return the grids of patches, in time, height and width."""
        grids = [(1, *plan.grid) for plan in plans]
        return {"image_grid_thw": _table(grids, 3)}


class Glm4v(Qwen2VL):
    """GLM-4.1V and 4.6V: the area counts all frames of a patch, and small pictures grow first."""

    defaults = {
        **Qwen2VL.defaults, "size": {"shortest_edge": 112 * 112, "longest_edge": 28 * 28 * 15000},
    }  # fmt: skip

    def area(self, height: int, width: int) -> Size:
        """Return the size that a picture gets."""
        factor = self.config["patch_size"] * self.config["merge_size"]
        if height < factor or width < factor:
            scale = max(factor / height, factor / width)
            height, width = int(height * scale), int(width * scale)
        _check_aspect(height, width)
        return self.fitted(height, width, self.config["temporal_patch_size"])


class PaddleOCRVL(Qwen2VL):
    """PaddleOCR-VL: patches are small pictures, row by row, and small pictures grow first."""

    defaults = {
        **Qwen2VL.defaults, "size": {"shortest_edge": 384 * 384, "longest_edge": 1536 * 1536},
        "temporal_patch_size": 1,
    }  # fmt: skip

    @property
    def patches(self) -> Patches:
        """The form of patches; those that the model merges are not neighbours here."""
        side, repeat = self.config["patch_size"], self.config["temporal_patch_size"]
        return Patches(side, repeat=repeat, planes=True)

    def area(self, height: int, width: int) -> Size:
        """Return the size that a picture gets."""
        factor = self.config["patch_size"] * self.config["merge_size"]
        if height < factor:
            height, width = factor, round((width * factor) / height)
        if width < factor:
            height, width = round((height * factor) / width), factor
        _check_aspect(height, width)
        return self.fitted(height, width, 1)


# -- patches, padded to one number ----------------------------------------------------------------


class Siglip2(ProcessorRule):
    """SigLIP 2 NaFlex: the largest scale at which the patches are no more than allowed."""

    defaults = {
        **_BILINEAR, **_HALVES, "patch_size": 16, "max_num_patches": 256, "do_convert_rgb": None,
    }  # fmt: skip

    @property
    def patches(self) -> Patches:
        """The form of patches: the channels of a pixel stay together."""
        return Patches(self.config["patch_size"], interleaved=True)

    def slots(self, plans: Sequence[PicturePlan]) -> int:
        """Return how many patches every picture has room for."""
        return int(self.config["max_num_patches"])

    def make_plan(self, height: int, width: int) -> PicturePlan:
        """Return the plan of one tile, the whole picture."""
        side, most = self.config["patch_size"], self.config["max_num_patches"]

        def scaled(scale: float) -> Size:
            return (
                max(side, math.ceil(height * scale / side) * side),
                max(side, math.ceil(width * scale / side) * side),
            )

        low, high = 1e-5 / 10, 100.0
        while high - low >= 1e-5:
            scale = (low + high) / 2
            h, w = scaled(scale)
            low, high = (scale, high) if (h / side) * (w / side) <= most else (low, scale)
        size = scaled(low)
        rows, columns = size[0] // side, size[1] // side
        if rows * columns > most:
            raise ImageSizeError(
                f"a picture of {height} x {width} pixels has more than {most} patches at any scale"
            )
        return _one_tile(height, width, size, (rows, columns))

    def outputs(
        self, plans: Sequence[PicturePlan], sizes: Sequence[Size], counts: Counts = None
    ) -> dict[str, Any]:
        """Return which patches there are, and their rows and columns."""
        used = np.array([plan.count for plan in plans], np.int64)
        return {
            "pixel_attention_mask": _first(used, self.slots(plans), np.int32),
            "spatial_shapes": _table([plan.grid for plan in plans], 2),
        }


class Gemma4(ProcessorRule):
    """Gemma 4: as large as the number of patches allows, a whole number of pools a side."""

    defaults = {
        **_BICUBIC, "do_normalize": False, "image_mean": [0.0] * 3, "image_std": [1.0] * 3,
        "patch_size": 16, "max_soft_tokens": 280, "pooling_kernel_size": 3,
    }  # fmt: skip

    @property
    def patches(self) -> Patches:
        """The form of patches: the channels of a pixel stay together."""
        return Patches(self.config["patch_size"], interleaved=True)

    def check(self) -> None:
        """Refuse a number of tokens that the processor refuses."""
        tokens = self.config["max_soft_tokens"]
        if tokens not in (70, 140, 280, 560, 1120):
            raise self.error(f"max_soft_tokens={tokens}: expected 70, 140, 280, 560 or 1120")

    def slots(self, plans: Sequence[PicturePlan]) -> int:
        """Return how many patches every picture has room for."""
        return int(self.config["max_soft_tokens"] * self.config["pooling_kernel_size"] ** 2)

    def make_plan(self, height: int, width: int) -> PicturePlan:
        """Return the plan of one tile, the whole picture."""
        patch, pool = self.config["patch_size"], self.config["pooling_kernel_size"]
        most, side = self.slots(()), pool * patch
        area = most * patch**2
        factor = math.sqrt(area / (height * width))
        h = math.floor(factor * height / side) * side
        w = math.floor(factor * width / side) * side
        longest = (most // pool**2) * side
        if h == 0 and w == 0:
            raise ImageSizeError(f"Attempting to resize to a 0 x 0 image: {side} x {side} is least")
        if h == 0:
            h, w = side, min(math.floor(width / height) * side, longest)
        elif w == 0:
            h, w = min(math.floor(height / width) * side, longest), side
        if h * w > area:
            raise ImageSizeError(
                f"Resizing [{height}x{width}] to [{h}x{w}] but this exceeds {most} patches"
            )
        return _one_tile(height, width, (h, w), (h // patch, w // patch))

    def outputs(
        self, plans: Sequence[PicturePlan], sizes: Sequence[Size], counts: Counts = None
    ) -> dict[str, Any]:
        """Return where patches lie (x, y), -1 beyond them, and the tokens of every picture."""
        places = np.full((len(plans), self.slots(plans), 2), -1, np.int64)
        for place, plan in zip(places, plans, strict=True):
            place[: plan.count] = np.argwhere(np.ones(plan.grid))[:, ::-1]
        pool = self.config["pooling_kernel_size"] ** 2
        tokens = np.array([plan.count // pool for plan in plans], np.int64)
        return {"image_position_ids": places, "num_soft_tokens_per_image": tokens}


# -- tiles, one after the other -------------------------------------------------------------------


class GotOcr2(ProcessorRule):
    """GOT-OCR 2 and InternVL 3: the grid of tiles nearest in aspect, and a thumbnail."""

    defaults = {
        **_BICUBIC, **_OPENAI, "size": {"height": 384, "width": 384}, "crop_to_patches": False,
        "min_patches": 1, "max_patches": 12,
    }  # fmt: skip

    def make_plan(self, height: int, width: int) -> PicturePlan:
        """Return the plan of tiles row by row, and of the picture as a whole after them."""
        config, side = self.config, sides(self, "size")
        most = config["max_patches"]
        if not config["crop_to_patches"] or most <= 1:
            return PicturePlan((whole(height, width, side),), (Cut(1),), side, 1)
        columns, rows = self._grid(height, width, side)
        steps = [whole(height, width, (side[0] * rows, side[1] * columns))]
        cuts = tiles(1, rows, columns, side)
        if len(cuts) != 1:
            steps.append(whole(height, width, side))
            cuts.append(Cut(2))
        return PicturePlan(tuple(steps), tuple(cuts), side, len(cuts), (rows, columns))

    def _grid(self, height: int, width: int, side: Size) -> Size:
        """Return (columns, rows); of equal ones the larger if the picture has pixels for half."""
        least, most = self.config["min_patches"], self.config["max_patches"]
        grids = sorted(
            (
                (columns, rows)
                for columns in range(1, most + 1)
                for rows in range(1, most + 1)
                if least <= columns * rows <= most
            ),
            key=math.prod,
        )
        best, nearest = (1, 1), math.inf
        for grid in grids:
            distance = abs(width / height - grid[0] / grid[1])
            area = 0.5 * side[0] * side[1] * grid[0] * grid[1]
            if distance < nearest or (distance == nearest and width * height > area):
                best, nearest = grid, distance
        return best

    def outputs(
        self, plans: Sequence[PicturePlan], sizes: Sequence[Size], counts: Counts = None
    ) -> dict[str, Any]:
        """Return the number of tiles of every picture."""
        return {"num_patches": np.array([plan.count for plan in plans], np.int64)}


class Gemma3(ProcessorRule):
    """Gemma 3: the whole picture, and with pan and scan squares along its long side."""

    defaults = {
        **_BILINEAR, **_HALVES, "size": {"height": 224, "width": 224}, "do_pan_and_scan": None,
        "pan_and_scan_min_crop_size": None, "pan_and_scan_max_num_crops": None,
        "pan_and_scan_min_ratio_to_activate": None,
    }  # fmt: skip

    def check(self) -> None:
        """Refuse pan and scan without its numbers."""
        keys = [key for key in self.defaults if key.startswith("pan_")]
        if self.config["do_pan_and_scan"] and not all(self.config[key] for key in keys):
            raise self.error(f"do_pan_and_scan needs {', '.join(keys)}")

    def make_plan(self, height: int, width: int) -> PicturePlan:
        """Return the plan of the whole picture and its crops."""
        side = sides(self, "size")
        steps = [whole(height, width, side)]
        if self.config["do_pan_and_scan"]:
            steps += [ResizeStep(0, box, side) for box in self._crops(height, width)]
        cuts = tuple(Cut(number + 1) for number in range(len(steps)))
        return PicturePlan(tuple(steps), cuts, side, len(cuts))

    def _crops(self, height: int, width: int) -> list[Box]:
        """Return the crops along the long side; none for a picture that is nearly square."""
        least, most, ratio = (
            self.config[f"pan_and_scan_{key}"]
            for key in ("min_crop_size", "max_num_crops", "min_ratio_to_activate")
        )
        long, short = max(height, width), min(height, width)
        if long / short < ratio:
            return []
        count = min(math.floor(long / least), math.floor(long / short + 0.5))
        count = min(most, max(2, count))
        length = math.ceil(long / count)
        if min(length, short) < least:
            return []
        spans = [(at * length, min(length, long - at * length)) for at in range(count)]
        if spans[-1][1] < 1:
            raise ImageSizeError(f"{count} crops of a side of {long} pixels leave one empty")
        if width >= height:
            return [(at, 0, size, height) for at, size in spans]
        return [(0, at, width, size) for at, size in spans]

    def outputs(
        self, plans: Sequence[PicturePlan], sizes: Sequence[Size], counts: Counts = None
    ) -> dict[str, Any]:
        """Return the number of crops of every picture."""
        return {"num_crops": np.array([plan.count - 1 for plan in plans], np.int64)}


class Idefics3(ProcessorRule):
    """Idefics 3 and SmolVLM: tiles of a picture with a fixed long side, and the whole."""

    defaults = {
        **_LANCZOS, **_HALVES, "size": {"longest_edge": 4 * 364}, "do_pad": True,
        "max_image_size": {"longest_edge": 364}, "do_image_splitting": True,
        "return_row_col_info": False,
    }  # fmt: skip
    needed = {"do_resize": True, "do_pad": True}
    nested = True

    def make_plan(self, height: int, width: int) -> PicturePlan:
        """Return the plan of two resizes, the tiles and the whole picture."""
        side = int(self.config["max_image_size"]["longest_edge"])
        if "longest_edge" in self.config["size"]:
            first = self._long_side(height, width, int(self.config["size"]["longest_edge"]))
        else:
            first = sides(self, "size")
        steps = [whole(height, width, first)]
        if not self.config["do_image_splitting"]:
            steps.append(ResizeStep(1, (0, 0, first[1], first[0]), (side, side)))
            return PicturePlan(tuple(steps), (Cut(2),), (side, side), 1, (0, 0))
        h, w = first
        aspect = w / h
        if w >= h:
            w = math.ceil(w / side) * side
            h = math.ceil(int(w / aspect) / side) * side
        else:
            h = math.ceil(h / side) * side
            w = math.ceil(int(h * aspect) / side) * side
        steps.append(ResizeStep(1, (0, 0, first[1], first[0]), (h, w)))
        if h <= side and w <= side:
            return PicturePlan(tuple(steps), (Cut(2),), (h, w), 1, (0, 0))
        rows, columns = h // side, w // side
        steps.append(ResizeStep(2, (0, 0, w, h), (side, side)))
        cuts = (*tiles(2, rows, columns, (side, side)), Cut(3))
        return PicturePlan(tuple(steps), cuts, (side, side), len(cuts), (rows, columns))

    def _long_side(self, height: int, width: int, most: int) -> Size:
        """Return the size with that long side; the other one is even, and no side above 4096."""
        aspect = width / height
        if width >= height:
            w, h = most, int(most / aspect)
            h += h % 2
        else:
            h, w = most, int(most * aspect)
            w += w % 2
        h, w = max(h, 1), max(w, 1)
        aspect, limit = w / h, 4096
        if w >= h and w > limit:
            w, h = limit, int(limit / aspect)
        elif h > w and h > limit:
            h, w = limit, int(limit * aspect)
        return max(h, 1), max(w, 1)

    def outputs(
        self, plans: Sequence[PicturePlan], sizes: Sequence[Size], counts: Counts = None
    ) -> dict[str, Any]:
        """Return which pixels are of the pictures, and the grids if they are asked for."""
        samples, room, _, *side = self.shape_of(plans, counts)
        shape = samples, room, *side
        mask = np.ndarray(shape, np.int64, self.pool.take(8 * math.prod(shape)))
        mask[...] = 0
        for plan, (at, _) in zip(plans, self.rooms(plans, counts), strict=True):
            sample, first = divmod(at, room)
            mask[sample, first : first + plan.count, : plan.tile[0], : plan.tile[1]] = 1
        outputs: dict[str, Any] = {"pixel_attention_mask": mask}
        if self.config["return_row_col_info"]:
            for number, name in enumerate(("rows", "cols")):
                grids = split([plan.grid[number] for plan in plans], counts)
                outputs[name] = [list(grid) for grid in grids]
        return outputs


class Pixtral(ProcessorRule):
    """Pixtral: pictures with a limit on their sides, padded to the largest of the batch."""

    defaults = {
        **_BICUBIC, **_OPENAI, "patch_size": {"height": 16, "width": 16}, "do_pad": True,
        "size": {"longest_edge": 1024},
    }  # fmt: skip
    needed = {"do_resize": True, "do_pad": True}

    def make_plan(self, height: int, width: int) -> PicturePlan:
        """Return the plan of one tile, the whole picture; its patches are counted."""
        most = self.config["size"].get("longest_edge")
        limit = (most, most) if most else sides(self, "size")
        patch = sides(self, "patch_size")
        h, w = height, width
        ratio = max(h / limit[0], w / limit[1])
        if ratio > 1:
            h, w = math.floor(h / ratio), math.floor(w / ratio)
        rows, columns = (h - 1) // patch[0] + 1, (w - 1) // patch[1] + 1
        if rows < 1 or columns < 1:
            raise ImageSizeError(
                f"a picture of {height} x {width} pixels has no pixel left across at sides of "
                f"{limit[0]} x {limit[1]}"
            )
        size = rows * patch[0], columns * patch[1]
        return _one_tile(height, width, size, (rows, columns))

    def outputs(
        self, plans: Sequence[PicturePlan], sizes: Sequence[Size], counts: Counts = None
    ) -> dict[str, Any]:
        """Return the sizes that the pictures have got."""
        return {"image_sizes": _table([plan.tile for plan in plans], 2)}


# -- tiles, padded to one number ------------------------------------------------------------------


class LlavaNext(ProcessorRule):
    """LLaVA-NeXT: the whole picture, then tiles of it on the best canvas of a list."""

    defaults = {
        **_BICUBIC, **_OPENAI, "size": {"shortest_edge": 224}, "do_pad": True,
        "crop_size": {"height": 224, "width": 224}, "do_center_crop": True,
        "image_grid_pinpoints": [[336, 672], [672, 336], [672, 672], [1008, 336], [336, 1008]],
    }  # fmt: skip
    needed = {"do_pad": True, "do_resize": True}

    def slots(self, plans: Sequence[PicturePlan]) -> int:
        """Return the most tiles of a picture."""
        return max((len(plan.cuts) for plan in plans), default=1)

    def _side(self) -> int:
        """Return the side of tiles, by the rule of the processor."""
        crop = self.config["crop_size"]
        return crop["height"] if crop else sides(self, "size", square=True)[0]

    def make_plan(self, height: int, width: int) -> PicturePlan:
        """Return the plan of the whole picture and of its tiles, black around it."""
        side = self._side()
        canvas = self._canvas(height, width)
        across, down = canvas[1] / width, canvas[0] / height
        if across < down:
            size = min(math.ceil(height * across), canvas[0]), canvas[1]
        else:
            size = canvas[0], min(math.ceil(width * down), canvas[1])
        at = (canvas[0] - size[0]) // 2, (canvas[1] - size[1]) // 2
        first = sides(self, "size", square=True)
        steps = [whole(height, width, first), whole(height, width, size, canvas=canvas, at=at)]
        pieces = [(1, 0, 0, *first)]
        for y in range(0, canvas[0], side):
            for x in range(0, canvas[1], side):
                pieces.append((2, y, x, min(side, canvas[0] - y), min(side, canvas[1] - x)))
        cuts, shapes = [], set()
        for source, y, x, h, w in pieces:
            resized = self._resized(h, w)
            if resized != (h, w):
                steps.append(ResizeStep(source, (x, y, w, h), resized))
                source, y, x = len(steps), 0, 0
            tile = sides(self, "crop_size") if self.config["do_center_crop"] else resized
            if tile[0] > resized[0] or tile[1] > resized[1]:
                raise self.error(f"crops {tile} of tiles of {resized}: give crop_size at most that")
            cuts.append(
                Cut(source, y + (resized[0] - tile[0]) // 2, x + (resized[1] - tile[1]) // 2)
            )
            shapes.add(tile)
        if len(shapes) != 1:
            raise self.error(
                f"makes tiles of several sizes, {sorted(shapes)}: do_center_crop is off"
            )
        rows, columns = -(-canvas[0] // side), -(-canvas[1] // side)
        return PicturePlan(tuple(steps), tuple(cuts), tile, len(cuts), (rows, columns))

    def _resized(self, height: int, width: int) -> Size:
        """Return the size that a tile gets at last, mostly its own."""
        short = self.config["size"].get("shortest_edge")
        if not short:
            return sides(self, "size")
        long = int(short * max(height, width) / min(height, width))
        return (long, short) if width <= height else (short, long)

    def _canvas(self, height: int, width: int) -> Size:
        """Return the size of the list that keeps most of the picture, and of those the smallest."""
        best, most, least = None, 0, math.inf
        for h, w in self.config["image_grid_pinpoints"]:
            scale = min(w / width, h / height)
            kept = min(int(width * scale) * int(height * scale), width * height)
            wasted = h * w - kept
            if kept > most or (kept == most and wasted < least):
                best, most, least = (h, w), kept, wasted
        if best is None:
            raise ImageSizeError(f"a picture of {height} x {width} pixels fits no canvas")
        return best

    def outputs(
        self, plans: Sequence[PicturePlan], sizes: Sequence[Size], counts: Counts = None
    ) -> dict[str, Any]:
        """Return the sizes that the pictures had."""
        return {"image_sizes": _table(sizes, 2)}


class LlavaOnevision(LlavaNext):
    """LLaVA-OneVision: as LLaVA-NeXT, on more canvases."""

    defaults = {
        **LlavaNext.defaults, "size": {"height": 384, "width": 384}, "crop_size": None,
        "do_center_crop": None,
        "image_grid_pinpoints": [
            [h, w] for h in range(384, 2305, 384) for w in range(384, 2305, 384)
        ],
    }  # fmt: skip

    def outputs(
        self, plans: Sequence[PicturePlan], sizes: Sequence[Size], counts: Counts = None
    ) -> dict[str, Any]:
        """Return the sizes that the pictures had, and how many the samples with any have."""
        totals = [1] * len(plans) if counts is None else [count for count in counts if count]
        return {
            **super().outputs(plans, sizes, counts), "batch_num_images": np.array(totals, np.int64),
        }  # fmt: skip

    def make_plan_of_several(self, height: int, width: int) -> PicturePlan:
        """Return the plan of the whole picture, in the middle of a square of the mean colour."""
        side = max(height, width)
        at = (side - height) // 2, (side - width) // 2
        step = whole(height, width, (height, width), canvas=(side, side), at=at)
        resized = self._resized(side, side)
        steps = step, ResizeStep(1, (0, 0, side, side), resized)
        tile = sides(self, "crop_size") if self.config["do_center_crop"] else resized
        if tile[0] > resized[0] or tile[1] > resized[1]:
            raise self.error(f"crops {tile} of tiles of {resized}: give crop_size at most that")
        cut = Cut(2, (resized[0] - tile[0]) // 2, (resized[1] - tile[1]) // 2)
        mean = self.config["image_mean"]
        red, green, blue = mean if isinstance(mean, tuple) else (mean,) * 3
        fill = int(red * 255), int(green * 255), int(blue * 255)
        return PicturePlan(steps, (cut,), tile, 1, (1, 1), fill)


class Mllama(ProcessorRule):
    """Llama 3.2 Vision: the smallest canvas of tiles that a picture fits, black around it."""

    defaults = {
        **_BILINEAR, **_HALVES, "size": {"height": 224, "width": 224}, "do_pad": True,
        "max_image_tiles": 4,
    }  # fmt: skip
    needed = {"do_pad": True, "do_resize": True}
    nested = True
    floats = True

    def check(self) -> None:
        """Refuse tiles that are no squares."""
        side = sides(self, "size")
        if side[0] != side[1] or self.config["max_image_tiles"] < 1:
            raise self.error(f"size={self.config['size']!r}: expected squares, and at least a tile")

    def slots(self, plans: Sequence[PicturePlan]) -> int:
        """Return the most tiles of any picture."""
        return int(self.config["max_image_tiles"])

    def _grids(self) -> list[Size]:
        """Return the grids in the order of their numbers."""
        most = self.config["max_image_tiles"]
        every = range(1, most + 1)
        return [(rows, columns) for rows in every for columns in every if rows * columns <= most]

    def make_plan(self, height: int, width: int) -> PicturePlan:
        """Return the plan of a picture in the corner of its canvas, and of all tiles."""
        side = sides(self, "size")[0]
        scales = [
            (min(rows * side / height, columns * side / width), (rows, columns))
            for rows, columns in self._grids()
        ]
        larger = [scale for scale, _ in scales if scale >= 1]
        chosen = min(larger) if larger else max(scale for scale, _ in scales)
        rows, columns = min((grid for scale, grid in scales if scale == chosen), key=math.prod)
        canvas = rows * side, columns * side
        target = [min(max(a, side), b) for a, b in zip((height, width), canvas, strict=True)]
        down, across = target[0] / height, target[1] / width
        if across < down:
            size = min(math.floor(height * across) or 1, target[0]), target[1]
        else:
            size = target[0], min(math.floor(width * down) or 1, target[1])
        steps = (whole(height, width, size, canvas=canvas),)
        cuts = tuple(tiles(1, rows, columns, (side, side)))
        return PicturePlan(steps, cuts, (side, side), len(cuts), (rows, columns))

    def outputs(
        self, plans: Sequence[PicturePlan], sizes: Sequence[Size], counts: Counts = None
    ) -> dict[str, Any]:
        """Return the numbers of grids, which tiles there are, and how many."""
        grids, samples = self._grids(), split(plans, counts)
        shape = self.shape_of(plans, counts)[:3]
        ids, tiles = np.zeros(shape[:2], np.int64), np.ones(shape[:2], np.int64)
        for number, sample in enumerate(samples):
            ids[number, : len(sample)] = [grids.index(plan.grid) + 1 for plan in sample]
            tiles[number, : len(sample)] = [plan.count for plan in sample]
        return {
            "aspect_ratio_ids": ids,
            "aspect_ratio_mask": _first(tiles, self.slots(plans), np.int64),
            "num_tiles": [[plan.count for plan in sample] for sample in samples],
        }


# -- shared ---------------------------------------------------------------------------------------


def _one_tile(height: int, width: int, size: Size, grid: Size) -> PicturePlan:
    """Return the plan of a picture that is resized and not cut."""
    return PicturePlan((whole(height, width, size),), (Cut(1),), size, grid[0] * grid[1], grid)


def _check_aspect(height: int, width: int) -> None:
    """Refuse a strip."""
    aspect = max(height, width) / min(height, width)
    if aspect > 200:
        raise ImageSizeError(
            f"absolute aspect ratio must be smaller than 200, got {aspect} ({height} x {width} "
            "pixels)"
        )


def _check_multiple(size: Size, factor: int) -> None:
    """Refuse sides that do not divide into patches, as those of pictures that stay as they are."""
    if size[0] % factor or size[1] % factor:
        raise ImageSizeError(
            f"sides of {size[0]} x {size[1]} pixels are no multiples of {factor}: resize them, or "
            "set do_resize to true"
        )


def _table(rows: Sequence[Sequence[int]], columns: int) -> np.ndarray:
    """Return rows of whole numbers, of which there may be none."""
    return np.array(rows if len(rows) else np.zeros((0, columns)), np.int64)


def _first(counts: np.ndarray, room: int, dtype: Any) -> np.ndarray:
    """Return rows of `room` that begin with so many ones."""
    return (np.arange(room) < counts[..., None]).astype(dtype)


#: Rules by the names of classes, without "ImageProcessor".
FAMILIES: dict[str, type[ProcessorRule]] = {
    "Qwen2VL": Qwen2VL,
    "Glm4v": Glm4v,
    "Glm46V": Glm4v,
    "PaddleOCRVL": PaddleOCRVL,
    "Siglip2": Siglip2,
    "Gemma4": Gemma4,
    "GotOcr2": GotOcr2,
    "Gemma3": Gemma3,
    "Idefics3": Idefics3,
    "SmolVLM": Idefics3,
    "Pixtral": Pixtral,
    "LlavaNext": LlavaNext,
    "LlavaOnevision": LlavaOnevision,
    "Mllama": Mllama,
}


def rule_of(processor: Any) -> ProcessorRule | None:
    """Return the rule of a processor of a vision-language model; None for one of another kind.

    A processor is given as `iterators.NamedRecipe.from_processor` takes it.
    """
    return find_rule(processor, FAMILIES)
