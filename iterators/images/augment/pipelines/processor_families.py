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
    Cut,
    Patches,
    PicturePlan,
    ProcessorRule,
    find_rule,
    whole,
)

_OPENAI = {
    "image_mean": [0.48145466, 0.4578275, 0.40821073],
    "image_std": [0.26862954, 0.26130258, 0.27577711],
}
_HALVES = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}
_LANCZOS, _BILINEAR, _BICUBIC = ({"do_resize": True, "resample": code} for code in (1, 2, 3))
Size = tuple[int, int]


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
    def renamed(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Return the limits on the area where they are kept today."""
        limits = {"shortest_edge": "min_pixels", "longest_edge": "max_pixels"}
        size = dict(given.get("size") or cls.defaults["size"])
        size.update({key: given[old] for key, old in limits.items() if given.get(old)})
        return {key: given[key] for key in given if key not in limits.values()} | {"size": size}

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
        steps = (whole(height, width, size),)
        return PicturePlan(steps, (Cut(1),), size, rows * columns, (rows, columns))

    def outputs(self, plans: Sequence[PicturePlan], sizes: Sequence[Size]) -> dict[str, Any]:
        """Return the grids of patches, in time, height and width."""
        grids = [(1, *plan.grid) for plan in plans]
        return {"image_grid_thw": np.array(grids, np.int64).reshape(-1, 3)}


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

    defaults = {**_BILINEAR, **_HALVES, "patch_size": 16, "max_num_patches": 256}

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
        steps = (whole(height, width, size),)
        return PicturePlan(steps, (Cut(1),), size, rows * columns, (rows, columns))

    def outputs(self, plans: Sequence[PicturePlan], sizes: Sequence[Size]) -> dict[str, Any]:
        """Return which patches there are, and their rows and columns."""
        counts = np.array([plan.count for plan in plans], np.int64)
        return {
            "pixel_attention_mask": _first(counts, self.slots(plans), np.int32),
            "spatial_shapes": np.array([plan.grid for plan in plans], np.int64).reshape(-1, 2),
        }


# -- shared ---------------------------------------------------------------------------------------


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


def _first(counts: np.ndarray, room: int, dtype: Any) -> np.ndarray:
    """Return rows of `room` that begin with so many ones."""
    return (np.arange(room) < counts[:, None]).astype(dtype)


#: Rules by the names of classes, without "ImageProcessor".
FAMILIES: dict[str, type[ProcessorRule]] = {
    "Qwen2VL": Qwen2VL,
    "Glm4v": Glm4v,
    "Glm46V": Glm4v,
    "PaddleOCRVL": PaddleOCRVL,
    "Siglip2": Siglip2,
}


def rule_of(processor: Any) -> ProcessorRule | None:
    """Return the rule of a processor of a vision-language model; None for one of another kind.

    A processor is given as `iterators.NamedRecipe.from_processor` takes it.
    """
    return find_rule(processor, FAMILIES)
