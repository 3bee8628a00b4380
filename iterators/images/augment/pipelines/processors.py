"""Image processors of Hugging Face as keywords: their ``preprocessor_config.json``.

A processor is read by its `to_dict`; nothing of transformers is imported.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .assembly import Assembly
from .parts import Part, PipelineError, Translated
from .torchvision import PILLOW, method

__all__ = ["translated"]

FILE = "preprocessor_config.json"
#: Steps that are known; another one that is on is refused.
_KNOWN = (
    "do_resize", "do_center_crop", "do_rescale", "do_normalize", "do_convert_rgb",
    "do_convert_grayscale",
)  # fmt: skip
#: Processors for which a size of one number is the short side.
_SHORT = ("CLIP", "ConvNext", "LeViT", "Levit", "PoolFormer", "MobileNetV1", "MobileNetV2", "Deit3")
#: Keys that change the geometry when they are set.
_REFUSED = {
    "keep_aspect_ratio": "keeps the aspect ratio in a way of its own",
    "ensure_multiple_of": "rounds sizes to multiples",
    "size_divisor": "rounds sizes to multiples",
    "rescale_offset": "shifts values",
    "include_top": "normalises twice",
    "do_flip_channel_order": "exchanges the channels",
    "max_image_size": "makes images of different sizes",
}


def translated(processor: Any) -> Translated:
    """Return what a processor is in keywords: a path, a dictionary or an object with `to_dict`."""
    config = _config(processor)
    name = str(config.get("image_processor_type") or config.get("feature_extractor_type") or "")
    name = name or ("" if isinstance(processor, (str, os.PathLike, Mapping)) else _name(processor))
    kind = name or "the image processor"
    for key, value in config.items():
        if value and (key in _REFUSED or (key.startswith("do_") and key not in _KNOWN)):
            reason = _REFUSED.get(key, "has no counterpart here")
            raise PipelineError(f"{key}={value!r} {reason}: set it to false if you can", kind)
    if name.startswith("Perceiver"):
        raise PipelineError("crops before it resizes, by a share of the image", kind)
    assembly, part = Assembly(PILLOW), _Named(config, (), kind)
    _geometry(assembly, part, config)
    _values(assembly, part, config)
    return assembly.finish()


class _Named(Part):
    """A part whose name is that of the processor."""

    def __init__(self, transform: Any, position: tuple[int, ...], kind: str) -> None:
        super().__init__(transform, position)
        object.__setattr__(self, "_kind", kind)

    @property
    def name(self) -> str:
        """The name of the processor."""
        return str(self.__dict__["_kind"])


def _name(processor: Any) -> str:
    return type(processor).__name__


def _config(processor: Any) -> Mapping[str, Any]:
    """Return the configuration as a dictionary."""
    if isinstance(processor, (str, os.PathLike)):
        path = Path(processor)
        path = path / FILE if path.is_dir() else path
        processor = json.loads(path.read_text(encoding="utf-8"))
    inside = getattr(processor, "image_processor", processor)  # of a processor for several things
    found = inside.to_dict() if hasattr(inside, "to_dict") else inside
    if not isinstance(found, Mapping):
        raise TypeError(
            f"processor={processor!r:.80}: expected the path of a {FILE}, what is in it, or an "
            "image processor"
        )
    return found.get("image_processor", found)


def _geometry(assembly: Assembly, part: Part, config: Mapping[str, Any]) -> None:
    crop = _sizes(part, config.get("crop_size"), square=True)
    if config.get("do_resize", False):
        square = not part.name.startswith(_SHORT)
        size = _sizes(part, config.get("size"), square)
        if size is None:
            raise part.error("resizes, but says no size: give size")
        share = config.get("crop_pct")
        if part.name.startswith("Levit") and isinstance(size, int):
            size = int(256 / 224 * size)
        elif part.name.startswith("ConvNext") and isinstance(size, int):
            if size >= 384:
                size = size, size
            else:
                crop, size = (size, size), int(size / (share or 224 / 256))
        elif share is not None:
            raise part.error(f"crop_pct={share!r} belongs to a rule that is not known here")
        resample = config.get("resample", 2)
        assembly.resize(part, size, {"interpolation": method(part, resample)})
    wanted = config.get("do_center_crop", False) or part.name.startswith("ConvNext")
    if wanted and crop is not None:
        sides = crop if isinstance(crop, tuple) else (crop, crop)
        assembly.center_crop(part, sides, "center_floor", fill=0)


def _sizes(part: Part, size: Any, square: bool) -> int | tuple[int, int] | None:
    """Return the short side or (height, width)."""
    if size is None:
        return None
    if isinstance(size, Mapping):
        given = {key: value for key, value in size.items() if value is not None}
        if given.keys() == {"height", "width"}:
            return int(given["height"]), int(given["width"])
        if given.keys() == {"shortest_edge"}:
            return int(given["shortest_edge"])
        raise part.error(
            f"size={dict(size)!r}: only height and width, or shortest_edge, are supported"
        )
    if isinstance(size, (list, tuple)):
        return int(size[0]), int(size[1])
    return (int(size), int(size)) if square else int(size)


def _values(assembly: Assembly, part: Part, config: Mapping[str, Any]) -> None:
    if config.get("do_convert_grayscale"):
        assembly.grey(part, 1)
    rescales = config.get("do_rescale", config.get("do_normalize", False))
    factor = float(config.get("rescale_factor") or 1 / 255)
    normalises = bool(config.get("do_normalize", False))
    if rescales or normalises:
        assembly.to_unit(1 / factor if rescales else 1.0)
    if normalises:
        assembly.normalise(part, config["image_mean"], config["image_std"])
